"""Would the tests notice? Small mistakes are put into the core, one at a time, drawn by a seed.

    python -m tests.mutate                  # 150 mutants, hours on one core: not for CI
    python -m tests.mutate --list           # which they would be

A function of `CORE` is drawn, then a place in it: a comparison, an operation, a condition, a number
or a truth value is replaced by its neighbour. Messages and annotations are left alone. In a copy of
the repository each file of tests runs once to learn which functions it calls and how long it takes.
For each mutant, the files of its subject that call its function run, the quickest first, until a
test fails or hangs; then, for those that survived, all other files that call theirs. Printed are
killed / made, and every survivor with file, line and change.
"""

from __future__ import annotations

import argparse
import ast
import copy
import cProfile
import importlib
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = {  # modules → where the tests of their subject are
    "erlib/losses/*.py": "tests/losses",
    "erlib/attributions/*.py": "tests/attributions",
    "erlib/metrics/*.py": "tests/metrics",
    "erlib/training/store.py": "tests/training",
    "erlib/training/identity.py": "tests/training",
}
LEFT_OUT = "not full and not slow and not browser and not report"
WARM = (  # what a run of the tests would import first: it takes longer than most of them
    "torch", "transformers.models.bert.modeling_bert", "captum.attr", "datasets", "papermill",
    "sklearn.linear_model", "sklearn.metrics", "scipy.stats", "seaborn", "nbconvert", "pytest",
    "hypothesis", "bs4", "entmax",
)  # fmt: skip
PATIENCE = 10  # a mutant hangs if its tests take that many times as long as without it, and …
SECONDS = 60  # … that much longer
BROKEN = 99  # a child's exit code where the tests could not even begin
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
    begins: int  # the line where the function begins, with its decorators

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
                begins = min(n.lineno for n in (function, *function.decorator_list))
                one = Mutant(file, function.name, node.lineno, start, stop, *change, begins)
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


@dataclass(frozen=True)
class Heard:
    """What a file of tests does without a mutant: whether it passes, in how many seconds, and
    which functions of erlib it calls (file, first line)."""

    passed: bool
    seconds: float
    calls: frozenset[tuple[str, int]]


class Suite:
    """The files of tests in a copy of the repository, each heard once without a mutant."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = [
            str(f.relative_to(folder)) for f in sorted(folder.rglob("tests/**/test_*.py"))
        ]
        self._heard: dict[str, Heard] = {}

    def heard(self, file: str) -> Heard:
        """What the file does without a mutant."""
        if file not in self._heard:
            self._heard[file] = listen(file, self.folder)
            if not self._heard[file].passed:
                print(f"{file} fails without a mutant, and is not asked", flush=True)
        return self._heard[file]

    def noticing(self, mutant: Mutant, *, subject: bool) -> list[str]:
        """The files that call the mutant's function, the quickest first: those of its subject, or
        all others."""
        place = next(place for files, place in CORE.items() if Path(mutant.file).match(files))
        found = [f for f in self.files if f.startswith(place) == subject]
        calling = [f for f in found if (mutant.file, mutant.begins) in self.heard(f).calls]
        return sorted(
            (f for f in calling if self.heard(f).passed), key=lambda f: self.heard(f).seconds
        )


def in_a_fork(work: Callable[[], int], folder: Path, seconds: float) -> int | None:
    """What `work` returns in a process of its own that works in this copy of the repository; None
    where it had to be ended."""
    child = os.fork()
    if not child:
        code = BROKEN
        try:
            os.setsid()
            os.chdir(folder)
            os.environ["PYTHONPATH"] = str(folder)
            for name in [n for n in sys.modules if n.split(".")[0] in ("erlib", "tests")]:
                del sys.modules[name]
            sys.path[:] = [str(folder), *(p for p in sys.path if p not in ("", str(ROOT)))]
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            code = work()
        finally:
            os._exit(code)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            if (code := os.waitstatus_to_exitcode(status)) == BROKEN:
                raise RuntimeError(f"{work} broke down")
            return code
        time.sleep(0.05)
    os.killpg(child, 9)
    os.waitpid(child, 0)
    return None


def tested(files: Sequence[str]) -> int:
    """Run these tests until one fails; pytest's exit code."""
    import pytest

    return int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-m", LEFT_OUT, *files]))


def listen(file: str, folder: Path) -> Heard:
    """Run a file of tests in the copy, and see which functions of erlib it calls."""
    note = folder / "called.json"
    note.unlink(missing_ok=True)

    def work() -> int:
        profile = cProfile.Profile(builtins=False)
        code = profile.runcall(tested, [file])
        codes = [entry.code for entry in profile.getstats() if not isinstance(entry.code, str)]
        inside = {(c.co_filename.removeprefix(f"{folder}/"), c.co_firstlineno) for c in codes}
        note.write_text(json.dumps(sorted(c for c in inside if c[0].startswith("erlib/"))))
        return code

    began = time.monotonic()
    code = in_a_fork(work, folder, 30 * SECONDS)
    calls = json.loads(note.read_text()) if note.exists() else []
    passed = code in (0, 5)  # 5: all its tests are left out
    return Heard(passed, time.monotonic() - began, frozenset((f, line) for f, line in calls))


def survives(mutant: Mutant, files: Sequence[str], tests: Suite) -> bool:
    """Do all these files of tests pass with the mutant in the copy?"""
    path = tests.folder / mutant.file
    text = path.read_bytes()
    path.write_bytes(text[: mutant.start] + mutant.new.encode() + text[mutant.stop :])
    usual = sum(tests.heard(file).seconds for file in files)

    def work() -> int:
        sys.dont_write_bytecode = True
        return tested(files)

    try:
        return not files or in_a_fork(work, tests.folder, PATIENCE * usual + SECONDS) == 0
    finally:
        path.write_bytes(text)


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
    for module in WARM:
        importlib.import_module(module)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (Path(temporary) / "erlib").resolve()
        without = shutil.ignore_patterns(".*", "store", "reports", "figures", "__pycache__")
        shutil.copytree(ROOT, folder, ignore=without)
        tests, left = Suite(folder), chosen
        for subject in (True, False):
            asked, left = left, []
            for number, mutant in enumerate(asked, start=1):
                files, began = tests.noticing(mutant, subject=subject), time.monotonic()
                survived = survives(mutant, files, tests)
                left += [mutant] if survived else []
                said = "SURVIVED" if survived else "killed"
                seconds = time.monotonic() - began
                print(
                    f"{number}/{len(asked)} {said} {mutant} ({len(files)} files, {seconds:.0f} s)",
                    flush=True,
                )
    print("\n".join(["", "survivors:", *map(str, left)]))
    print(f"{len(chosen) - len(left)} killed / {len(chosen)} made")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
