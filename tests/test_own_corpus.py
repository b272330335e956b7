"""The recipe of the README, on a corpus that erlib does not know, from files to pages."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from erlib.config import ModelSpec, OptimiserSpec
from tests import corpus, tiny

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """`mine/train.jsonl` and so on, plain; the working directory is where pages are written."""
    corpus.write(tmp_path)
    (tmp_path / "movies").rename(tmp_path / "mine")
    for packed in (tmp_path / "mine").glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        packed.unlink()
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_two_systems_on_a_corpus_of_ones_own_are_told_apart_by_its_rationales(mine):
    [recipe] = [
        block
        for block in re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
        if '"mine"' in block
    ]
    # a model that learns in a second; the rest is as a reader has it
    small = "model=small, optimiser=learn"
    code = recipe.replace("RunSpec(data)", f"RunSpec(data, {small})")
    code = code.replace('guide="input_x_gradient"))', f'guide="input_x_gradient")), {small}')
    assert code.count(small) == 2
    made = {
        "small": ModelSpec(str(tiny.directory("bert"))),
        "learn": OptimiserSpec(lr=3e-3, epochs=12, batch_size=4),
    }
    exec(code, made)
    table = made["table"]
    assert list(table.index.names) == ["system", "method"] and len(table) == 6
    plausibility = table["plausibility"].xs("input_x_gradient", level="method")
    assert plausibility["ER+IxG"] > plausibility["Baseline"] + 0.1  # what the loss asks for
    assert table[["plausibility", "faithfulness", "low", "high"]].notna().all(axis=None)
    for system in ("Baseline", "ER+IxG"):
        page = BeautifulSoup((mine / f"{system}.html").read_text(), "html.parser")
        assert "16 texts" in page.li.get_text() and page.select("td u, td [style*=underline]")
