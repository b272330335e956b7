"""A notebook, a run or an evaluation that fails stops neither its report nor the others."""

from __future__ import annotations

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from erlib.cli import main
from tests import corpus, tiny

PARAMETERS = """profile = "quick"
data = seeds = store = device = None
executor = "local"
"""
ONE_RUN_OF_TWO_FAILS = """import warnings
import pandas as pd
import erlib
from dataclasses import replace
from erlib import reports

warnings.simplefilter("ignore")
good = erlib.RunSpec(erlib.DataSpec("movies", "local", 32), erlib.ModelSpec({model!r}),
                     optimiser=erlib.OptimiserSpec(lr=5e-3, epochs=1))
bad = replace(good, optimiser=replace(good.optimiser, lr=1e30, epochs=2))
runs = erlib.run([good, bad])
asked = [erlib.EvalSpec(r, good.data, "test", "predictions") for r in (good, bad)]
measured = erlib.evaluate(asked)
reports.artefact({paper!r}, "table-1", measured[["seed", "accuracy"]], caption="F1.",
                 profile=profile, seeds=[0])
reports.footer({paper!r}, profile=profile, runs=list(runs["run"]), evals=list(measured["eval"]))
"""
NOTEBOOKS = {"er_lens": "01_er_lens", "saloss": "04_saloss"}


def write(root, paper, source):
    cells = [
        new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        new_markdown_cell("## What comes out\nA table."),
        new_code_cell(source),
    ]
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    (root / "notebooks").mkdir(exist_ok=True)
    nbformat.write(notebook, root / "notebooks" / f"{NOTEBOOKS[paper]}.ipynb")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project with a tiny corpus and store, and er_lens's last good report in it."""
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    reports = tmp_path / "reports" / "quick"
    reports.mkdir(parents=True)
    (reports / "01_er_lens.html").write_text("the last good one")
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_kernel_that_dies_is_named_and_holes_are_reported_with_exit_code_1(root, capfd):
    write(root, "er_lens", "import os\nos.kill(os.getpid(), 9)")
    source = ONE_RUN_OF_TWO_FAILS.format(model=str(tiny.directory("bert")), paper="saloss")
    write(root, "saloss", source)
    assert main(["run", "--only", "er_lens,saloss"]) == 1
    said = capfd.readouterr().err.split("erlib: failed:\n")[1].splitlines()
    assert said[0] == (
        'er_lens stopped in the cell "import os" under "What comes out": DeadKernelError: Kernel '
        "died; its report is left as it was"
    )
    assert (root / "reports/quick/01_er_lens.html").read_text() == "the last good one"
    [failed] = [p.parent for p in (root / "store" / "runs").glob("*/failure.json")]
    assert len(said) == 2 and said[1].startswith(f"saloss: {failed.name}: Baseline · movies · tiny")
    assert "Diverged: " in said[1] and said[1].endswith("; lower the learning rate or the weight of"
                                                        " a term")  # fmt: skip

    page = (root / "reports/quick/04_saloss.html").read_text(encoding="utf-8")
    assert "<dt>Failed</dt><dd>The cells that would rest on these are empty." in page
    assert failed.name in page
    table = (root / "reports/quick/tables/saloss-table-1.csv").read_text().splitlines()
    assert table[2] == "0," and table[1] != "0,"
