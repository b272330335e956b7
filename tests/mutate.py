"""Would the tests notice? Small mistakes are put into the core, one at a time, drawn by a seed.

    python -m tests.mutate                  # 150 mutants, an hour or more: not for CI
    python -m tests.mutate --list           # which they would be

A function of `CORE` is drawn, then a place in it: a comparison, an operation, a condition, a number
or a truth value is replaced by its neighbour. Messages and annotations are left alone. The tests
named beside the module run in a copy of the repository until one fails; a mutant that makes them
hang is noticed, too. Printed are killed / made, and every survivor with file, line and change.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = {  # modules → the tests that should notice
    "erlib/losses/*.py": ["tests/losses"],
    "erlib/attributions/*.py": ["tests/attributions"],
    "erlib/metrics/*.py": ["tests/metrics"],
    "erlib/training/store.py": ["tests/training/test_store.py", "tests/training/test_dropped.py"],
    "erlib/training/identity.py": ["tests/training/test_identity.py", "tests/test_names.py"],
}
SECONDS = 600  # after which a run of the tests hangs
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "argmax": "argmin"}


@dataclass(frozen=True)
class Mutant:
    """Bytes `start` to `stop` of a file become `new`."""

    file: str
    function: str
    line: int
    start: int
    stop: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}: {self.old} → {self.new}"


def neighbour(node: ast.AST) -> ast.AST | None:
    """The node with one small mistake in it."""
    other = copy.deepcopy(node)
    match other:
        case ast.Compare(ops=[op, *_]) if type(op) in SWAPS:
            other.ops[0] = SWAPS[type(op)]()
        case ast.BinOp(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            other.op = SWAPS[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            return other.operand
        case ast.IfExp():
            other.body, other.orelse = other.orelse, other.body
        case ast.Constant(value=bool()):
            other.value = not other.value
        case ast.Constant(value=int() | float()):
            other.value += 1
        case ast.Name(id=name) if name in CALLS:
            other.id = CALLS[name]
        case ast.Attribute(attr=name) if name in CALLS:
            other.attr = CALLS[name]
        case _:
            return None
    return other


def computed(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it but messages, annotations and functions of their own."""
    if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert | ast.FunctionDef):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from computed(child)


def mutants() -> dict[tuple[str, str], list[Mutant]]:
    """All there are, by file and function."""
    found: dict[tuple[str, str], list[Mutant]] = {}
    for path in sorted(path for pattern in CORE for path in ROOT.glob(pattern)):
        text, file = path.read_bytes(), str(path.relative_to(ROOT))
        lines = [0]
        for line in text.splitlines(keepends=True):
            lines.append(lines[-1] + len(line))
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            for node in (n for statement in function.body for n in computed(statement)):
                if (other := neighbour(node)) is None:
                    continue
                start = lines[node.lineno - 1] + node.col_offset
                stop = lines[node.end_lineno - 1] + node.end_col_offset
                change = (text[start:stop].decode(), f"({ast.unparse(other)})")
                name = f"{function.name}, line {function.lineno}"
                one = Mutant(file, function.name, node.lineno, start, stop, *change)
                found.setdefault((file, name), []).append(one)
    return found


def drawn(count: int, seed: int) -> list[Mutant]:
    """A function at random, a place in it at random, no place twice."""
    rng, left, chosen = random.Random(seed), mutants(), []
    while left and len(chosen) < count:
        function = rng.choice(sorted(left))
        chosen.append(left[function].pop(rng.randrange(len(left[function]))))
        if not left[function]:
            del left[function]
    return chosen


def noticing(file: str) -> list[str]:
    """The tests that should notice a mistake in this file."""
    return next(tests for pattern, tests in CORE.items() if Path(file).match(pattern))


def passes(tests: list[str], folder: Path) -> bool:
    """Do they pass in this copy of the repository?"""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not full", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        made = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return False
    return made.returncode == 0


def main() -> int:
    """Print what survived, and killed / made."""
    parser = argparse.ArgumentParser("python -m tests.mutate", description=__doc__)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="only say which they are")
    options = parser.parse_args()
    chosen = drawn(options.count, options.seed)
    if options.list:
        print("\n".join(map(str, chosen)))
        return 0
    survivors = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "erlib"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "store", "reports"))
        for tests in CORE.values():
            if not passes(tests, folder):
                raise SystemExit(f"{', '.join(tests)} fail without a mutant; mend them first")
        for number, mutant in enumerate(chosen, start=1):
            path = folder / mutant.file
            text = path.read_bytes()
            path.write_bytes(text[: mutant.start] + mutant.new.encode() + text[mutant.stop :])
            survived = passes(noticing(mutant.file), folder)
            path.write_bytes(text)
            survivors += [mutant] if survived else []
            print(f"{number}/{len(chosen)} {'SURVIVED' if survived else 'killed'} {mutant}")
    print("\n".join(["", "survivors:", *map(str, survivors)]))
    print(f"{len(chosen) - len(survivors)} killed / {len(chosen)} made")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
