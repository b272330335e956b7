"""A paper goes from its folder to a rendered report: nothing outside the folder knows it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import erlib.papers
from erlib.catalogue import paper, papers
from erlib.cli import main
from erlib.parameters import check_parameters
from erlib.reports.criteria import criteria
from erlib.training.store import Store
from tests import corpus, tiny

TOY = Path(__file__).parent / "toy" / "guided"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project with the toy's notebook, a tiny corpus, and the toy among the papers."""
    folder = tmp_path / "papers" / "guided"
    shutil.copytree(TOY, folder)
    sizes = folder / "profiles" / "quick.toml"
    sizes.write_text(sizes.read_text().replace("A TINY MODEL", str(tiny.directory("bert"))))
    (tmp_path / "notebooks").mkdir()
    shutil.move(folder / "06_guided.ipynb", tmp_path / "notebooks")
    monkeypatch.setattr(corpus, "SIZES", {"train": 120, "dev": 40, "test": 50})
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    monkeypatch.setenv("ERLIB_PAPERS", str(folder.parent))  # for the notebook's kernel
    monkeypatch.setattr(erlib.papers, "__path__", [*erlib.papers.__path__, str(folder.parent)])
    monkeypatch.chdir(tmp_path)
    papers.cache_clear()
    yield tmp_path
    papers.cache_clear()


def test_a_new_paper_is_a_folder_and_a_notebook(root):
    assert list(papers())[-1] == "guided" and paper("guided").title.startswith("Attention")
    (contrast,) = criteria("guided")["GU-C1"].contrasts
    assert contrast.asked == 15 and contrast.side == 1

    assert main(["run", "--only", "guided", "--data", "local"]) == 0
    reports = root / "reports/quick"
    numbers = pd.read_csv(reports / "tables/guided-table-1.csv").set_index(["row", "column"])
    guided, baseline = (numbers.loc[(row, "Rationales")] for row in ("Guided", "Baseline"))
    assert (guided["n"], guided["paper"]) == (3, 75) and guided["ours"] > baseline["ours"] + 10
    less = pd.read_csv(reports / "tables/guided-table-profile.csv").set_index("what")
    assert less.loc["epochs"].tolist() == ["6", "10"]
    page = (reports / "06_guided.html").read_text(encoding="utf-8")
    assert f"AUC of Guided {guided['ours']:.1f} %, of the Baseline" in page
    assert 'id="guided-figure-1"' in page
    assert "1 claim: 1 holds" in page and "<strong>What held.</strong>" in page
    corpora = pd.read_csv(reports / "tables/guided-table-corpora.csv")
    assert set(corpora["is"]) == {"of your own"} and set(corpora["from"]) == {"local"}
    assert (root / "figures/quick/guided-figure-1.png").is_file()
    (claim,) = pd.read_csv(reports / "claims.csv").to_dict("records")
    assert claim["claim"] == "GU-C1" and claim["seeds"] == 3 and claim["texts"] == 50
    assert claim["our_value"] == pytest.approx(guided["ours"] - baseline["ours"], abs=1e-4)
    assert claim["verdict"] == "holds"
    assert "06_guided.html" in (reports / "index.html").read_text(encoding="utf-8")


def test_two_starts_at_once_on_one_store_end_as_one_alone(root):
    """Each has its kernel; what one trains the other waits for."""
    command = [sys.executable, "-m", "erlib", "run", "--only=guided", "--data=local", "--seeds=0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run(command, env={**environment, "ERLIB_STORE": str(root / "alone")}, check=True)
    starts = [subprocess.Popen([*command, "--force"], env=environment) for _ in range(2)]
    assert [start.wait(500) for start in starts] == [0, 0]
    found, expected = results(root / "store"), results(root / "alone")
    assert found.keys() == expected.keys()
    assert [name for name, bytes_ in found.items() if bytes_ != expected[name]] == []
    assert not any(Store(root / "store").verify().values())
    assert [file.name for file in (root / "notebooks").iterdir()] == ["06_guided.ipynb"]
    assert len(pd.read_csv(root / "reports/quick/claims.csv")) == 1
    assert "GU-C1" in (root / "reports/quick/06_guided.html").read_text(encoding="utf-8")


def results(store):
    """All of it but when and how fast it was made."""
    files = (file for kind in ("runs", "evals") for file in (store / kind).rglob("*"))
    return {
        file.relative_to(store): file.read_bytes()
        for file in files
        if file.is_file() and file.name not in ("provenance.json", "DONE")
    }


def test_a_setting_that_the_paper_does_not_know_is_refused_before_anything_is_trained(root):
    sizes = root / "papers/guided/profiles/quick.toml"
    sizes.write_text(sizes.read_text().replace("epochs", "epoch"))
    with pytest.raises(ValueError, match=r"unknown setting of \[guided\] in profile 'quick'"):
        check_parameters("guided", {"profile": "quick", "data": "local", "executor": "local"})
