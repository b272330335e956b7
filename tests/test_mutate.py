"""The mistakes that `tests/mutate.py` makes are such: valid code that says something else."""

from __future__ import annotations

import ast
from dataclasses import replace
from unittest.mock import patch

from tests.mutate import CORE, ROOT, Mutant, Suite, drawn, neighbour, survives


def test_every_mutant_is_valid_code_in_one_place_of_a_function_that_begins_where_it_says():
    chosen = drawn(150, seed=0)
    assert len({(m.file, m.start, m.stop) for m in chosen}) == 150 and chosen == drawn(150, seed=0)
    for mutant in chosen:
        text = (ROOT / mutant.file).read_bytes()
        made = text[: mutant.start] + mutant.new.encode() + text[mutant.stop :]
        assert text[mutant.start : mutant.stop].decode() == mutant.old
        assert ast.dump(ast.parse(made)) != ast.dump(ast.parse(text)), mutant
        begins = text.decode().splitlines()[mutant.begins - 1]
        assert f"def {mutant.function}(" in begins or begins.lstrip().startswith("@"), mutant
    assert all((ROOT / tests).is_dir() for tests in CORE.values())
    assert {m.file.split("/")[1] for m in chosen} == {p.split("/")[1] for p in CORE}


def test_a_neighbour_differs_by_one_mistake():
    pairs = {"a < b": "a <= b", "a + b": "a - b", "not a": "a", "a and b": "a or b", "3": "4",
             "True": "False", "a if b else c": "c if b else a", "min": "max", "x.any": "x.all",
             }  # fmt: skip
    for text, other in pairs.items():
        assert ast.unparse(neighbour(ast.parse(text, mode="eval").body)) == other
    assert neighbour(ast.parse("'words'", mode="eval").body) is None


def test_the_tests_that_call_a_function_are_found_and_notice_that_it_is_wrong(tmp_path):
    """In a repository of one function, with a test that calls it and one that does not."""
    (tmp_path / "erlib").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "erlib/__init__.py").write_text("")
    (tmp_path / "erlib/sums.py").write_text("def add(a, b):\n    return a + b\n")
    calling = "from erlib.sums import add\n\ndef test_add():\n    assert add(2, 2) == 4\n"
    (tmp_path / "tests/test_calling.py").write_text(calling)
    (tmp_path / "tests/test_other.py").write_text("def test_other():\n    pass\n")
    tests = Suite(tmp_path.resolve())
    mistake = Mutant("erlib/sums.py", "add", 2, 26, 31, "a + b", "a - b", begins=1)
    with patch.dict(CORE, {"erlib/sums.py": "tests/test_c"}):
        assert tests.noticing(mistake, subject=True) == ["tests/test_calling.py"]
        assert tests.noticing(mistake, subject=False) == []
    assert not survives(mistake, ["tests/test_calling.py"], tests)
    assert survives(replace(mistake, new="a * b"), ["tests/test_calling.py"], tests)
    assert (tmp_path / "erlib/sums.py").read_text().endswith("a + b\n")
