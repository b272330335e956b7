"""What a notebook makes reaches the site whole, or not at all."""

from __future__ import annotations

import errno
import os
import shutil

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_notebook

from erlib.cli import main
from erlib.disk import DiskFull
from erlib.notebooks import NotebookFailed, execute
from erlib.papers.evidence import decide_claims
from erlib.reports import artefact, build_index, footer
from erlib.reports.ledger import STAGE, read_rows, reports_folder
from erlib.reports.recorded import record
from erlib.reports.staging import publish, staged
from tests.reports.sample import plain_figure

PARAMETERS = """profile = "quick"
data = seeds = store = device = None
executor = "local"
"""
MADE = """import pandas as pd
from erlib import reports

frame = pd.DataFrame({"F1": [%s]})
reports.artefact("er_lens", "table-2", frame, caption="F1.", profile=profile, seeds=[0])
"""
GIVEN = {"profile": "quick", "data": None, "seeds": None, "executor": "local", "store": None,
         "device": None}  # fmt: skip


def emit(root, *names, paper="er_lens", value=1.0):
    """Tables and figures of a paper under a root."""
    for name in names:
        data = pd.DataFrame({"F1": [value]})
        content = plain_figure() if name.startswith("figure") else data
        artefact(paper, name, content, data=data, caption="", profile="quick", seeds=[0], root=root)


def claim(root, *names):
    found = decide_claims("er_lens", lambda cell: None, profile="quick")
    record("er_lens", {name: found[name] for name in names}, profile="quick", root=root)


def contents(root):
    files = (file for kind in ("reports", "figures") for file in (root / kind).rglob("[!.]*"))
    return {str(f.relative_to(root)): f.read_bytes() for f in files if f.is_file()}


def listed(root, file, column):
    return [(r["paper"], r[column]) for r in read_rows(root / "reports/quick" / file)]


def test_what_is_staged_takes_the_place_of_all_that_the_paper_had(tmp_path):
    root, stage = tmp_path / "root", tmp_path / "stage"
    emit(root, "table-2", "table-3", "figure-2", "figure-4")
    emit(root, "table-1", paper="saloss")
    claim(root, "ER-C1", "ER-C2")
    footer("er_lens", profile="quick", root=root)
    emit(stage, "table-10", "table-2", "figure-4", value=2.0)
    claim(stage, "ER-C2")
    publish("er_lens", "quick", stage, root)
    assert listed(root, "artefacts.csv", "id") == [
        ("er_lens", "figure-4"), ("er_lens", "table-2"), ("er_lens", "table-10"),
        ("saloss", "table-1"),
    ]  # fmt: skip
    assert listed(root, "claims.csv", "claim") == [("er_lens", "ER-C2")]
    assert set(contents(root)) == {
        "figures/quick/er_lens-figure-4.pdf", "figures/quick/er_lens-figure-4.png",
        "reports/quick/artefacts.csv", "reports/quick/claims.csv",
        "reports/quick/claims_parts.csv",
        "reports/quick/tables/er_lens-figure-4.csv", "reports/quick/tables/er_lens-table-10.csv",
        "reports/quick/tables/er_lens-table-2.csv", "reports/quick/tables/saloss-table-1.csv",
    }  # fmt: skip
    assert contents(root)["reports/quick/tables/er_lens-table-2.csv"] == b"F1\n2.0\n"


def test_a_paper_that_no_longer_has_claims_leaves_none(tmp_path):
    root, stage = tmp_path / "root", tmp_path / "stage"
    claim(root, "ER-C1")
    emit(stage, "table-2")
    publish("er_lens", "quick", stage, root)
    assert not (root / "reports/quick/claims.csv").exists()


def test_a_full_disk_leaves_the_old_report_and_is_named_with_what_was_needed(tmp_path, monkeypatch):
    root, stage = tmp_path / "root", tmp_path / "stage"
    emit(root, "table-2", "table-3")
    before = contents(root)
    emit(stage, "table-2", value=2.0)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "copyfile", full)
        with pytest.raises(DiskFull) as raised:
            publish("er_lens", "quick", stage, root)
    said = str(raised.value)
    assert f"no room for the report of er_lens in {root / 'reports/quick'}" in said
    assert "it takes 0.0 MB" in said and "MB are free there" in said and "as it was" in said
    assert contents(root) == before
    publish("er_lens", "quick", stage, root)
    assert contents(root)["reports/quick/tables/er_lens-table-2.csv"] == b"F1\n2.0\n"


def test_reports_are_written_to_the_stage_while_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt), staged() as stage:
        assert reports_folder("quick") == stage / "reports/quick"
        assert reports_folder("quick", tmp_path) == tmp_path / "reports/quick"
        emit(None, "table-2")
        raise KeyboardInterrupt
    assert STAGE not in os.environ and not stage.exists() and contents(tmp_path) == {}


def write_notebook(root, *sources):
    cells = [new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})]
    notebook = new_notebook(cells=[*cells, *map(new_code_cell, sources)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    (root / "notebooks").mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, root / "notebooks/01_er_lens.ipynb")


def index(root):
    page = build_index("quick", root).read_text(encoding="utf-8")
    return BeautifulSoup(page, "html.parser").find(id="er_lens").get_text(" ", strip=True)


def test_a_notebook_that_fails_half_way_changes_nothing_but_the_word_on_the_index(tmp_path):
    """In a folder whose name papermill would take for a format."""
    root = tmp_path / "a {profile} b"
    write_notebook(root, MADE % 1)
    page = execute("er_lens", GIVEN, root)
    assert page == root / "reports/quick/01_er_lens.html" and "er_lens-table-2" in page.read_text()
    before = contents(root)
    assert before["reports/quick/tables/er_lens-table-2.csv"] == b"F1\n1\n"
    assert "reports/quick/er_lens.sources.json" in before and "failed" not in index(root)

    write_notebook(root, MADE % 2, "1 / 0")
    with pytest.raises(NotebookFailed, match="ZeroDivisionError"):
        execute("er_lens", GIVEN, root)
    after = contents(root)
    assert b"ZeroDivisionError" in after.pop("reports/quick/01_er_lens.failed.ipynb")
    del after["reports/quick/index.html"]
    assert after == before
    assert "The last execution failed; what is shown is of the one before." in index(root)

    write_notebook(root, MADE % 3)
    execute("er_lens", GIVEN, root)
    assert contents(root)["reports/quick/tables/er_lens-table-2.csv"] == b"F1\n3\n"
    assert "failed" not in index(root)


def test_a_paper_of_which_nothing_but_a_failure_is_known_is_on_the_index_too(tmp_path):
    folder = tmp_path / "reports/quick"
    folder.mkdir(parents=True)
    (folder / "01_er_lens.failed.ipynb").write_text("{}")
    assert "The last execution failed." in index(tmp_path)


def test_an_interrupted_run_leaves_an_index_of_the_notebooks_that_were_executed(
    tmp_path, monkeypatch
):
    def interrupted(paper, parameters, root):
        if paper == "saloss":
            raise KeyboardInterrupt
        emit(root, "table-2")
        return root / "a page"

    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("erlib.notebooks.execute", interrupted)
    assert main(["run", "--only", "er_lens,saloss"]) == 130
    page = (tmp_path / "reports/quick/index.html").read_text(encoding="utf-8")
    assert BeautifulSoup(page, "html.parser").find(id="er_lens") is not None
