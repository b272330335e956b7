"""Does every part import only what stands below it? What a function imports late does not count."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "erlib"
NOT_IMPORTED = {
    "config": {"data", "models", "losses", "attributions", "metrics", "training", "reports"},
    "data": {"models", "losses", "attributions", "metrics", "training", "reports"},
    "models": {"losses", "attributions", "metrics", "training", "reports"},
    "losses": {"metrics", "training", "reports"},
    "attributions": {"losses", "metrics", "training", "reports"},
    "metrics": {"losses", "training", "reports", "papers"},
    "training": {"reading", "reports", "explorer", "papers", "bench"},
    "reading": {"reports", "explorer", "papers", "bench"},
    "reports": {"papers", "explorer", "bench", "reading"},
    "papers": {"explorer", "bench", "reading"},
    "bench": {"explorer", "papers", "reports"},
}


def imported(part: str) -> set[str]:
    """The parts of erlib that the modules of one name at their top."""
    home = PACKAGE / part
    files = home.rglob("*.py") if home.is_dir() else [home.with_suffix(".py")]
    top = [line for file in files for line in ast.parse(file.read_text("utf-8")).body]
    named = [line.module or "" for line in top if isinstance(line, ast.ImportFrom)]
    return {name.split(".")[1] for name in named if name.startswith("erlib.")}


@pytest.mark.parametrize("part", NOT_IMPORTED)
def test_a_part_imports_nothing_that_stands_above_it(part):
    found = imported(part)
    assert found and not found & NOT_IMPORTED[part]
