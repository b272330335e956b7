"""The mistakes that `tests/mutate.py` makes are such: valid code that says something else."""

from __future__ import annotations

import ast

from tests.mutate import CORE, ROOT, drawn, neighbour, noticing


def test_every_mutant_is_valid_code_in_one_place_and_its_tests_are_there():
    chosen = drawn(150, seed=0)
    assert len({(m.file, m.start, m.stop) for m in chosen}) == 150 and chosen == drawn(150, seed=0)
    for mutant in chosen:
        text = (ROOT / mutant.file).read_bytes()
        made = text[: mutant.start] + mutant.new.encode() + text[mutant.stop :]
        assert text[mutant.start : mutant.stop].decode() == mutant.old
        assert ast.dump(ast.parse(made)) != ast.dump(ast.parse(text)), mutant
        assert all((ROOT / test).exists() for test in noticing(mutant.file))
    assert {m.file.split("/")[1] for m in chosen} == {p.split("/")[1] for p in CORE}


def test_a_neighbour_differs_by_one_mistake():
    pairs = {"a < b": "a <= b", "a + b": "a - b", "not a": "a", "a and b": "a or b", "3": "4",
             "True": "False", "a if b else c": "c if b else a", "min": "max", "x.any": "x.all",
             }  # fmt: skip
    for text, other in pairs.items():
        assert ast.unparse(neighbour(ast.parse(text, mode="eval").body)) == other
    assert neighbour(ast.parse("'words'", mode="eval").body) is None
