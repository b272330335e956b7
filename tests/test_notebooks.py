"""Notebooks are clean sources: parameters first, short cells, no outputs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from erlib.catalogue import papers
from erlib.notebooks import NotebookFailed, execute, local_kernel
from erlib.parameters import PARAMETERS, check_parameters

NOTEBOOKS = {name: paper.notebook for name, paper in papers().items()}
FOLDER = Path(__file__).parents[1] / "notebooks"
EACH = pytest.mark.parametrize("name", sorted(NOTEBOOKS.values()))
EXPLORER = "explore"  # no paper's: it has no parameters and is not executed by the command line


def parameters_cell(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    return next(c for c in notebook.cells if "parameters" in c.metadata.get("tags", []))


def test_every_notebook_belongs_to_a_paper_or_is_the_explorer():
    assert {p.stem for p in FOLDER.glob("*.ipynb")} == {*NOTEBOOKS.values(), EXPLORER}


@pytest.mark.parametrize("name", [*sorted(NOTEBOOKS.values()), EXPLORER])
def test_sources_are_committed_without_outputs_and_with_short_cells(name):
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
            assert len(cell.source.splitlines()) <= 15, cell.source
            assert "def " not in cell.source


@EACH
def test_the_parameters_cell_sets_the_shared_parameters_to_values_that_are_valid(name):
    values: dict = {}
    exec(parameters_cell(name).source, values)
    del values["__builtins__"]
    assert tuple(values) == PARAMETERS
    paper = next(paper for paper, notebook in NOTEBOOKS.items() if notebook == name)
    assert check_parameters(paper, values).profile == "quick"


def test_a_parameter_that_the_notebook_does_not_have_stops_it_before_any_work(tmp_path):
    """Papermill alone would warn and run the defaults."""
    with pytest.raises(
        papermill.PapermillExecutionError, match="unknown notebook parameter 'sedes'"
    ):
        papermill.execute_notebook(
            str(FOLDER / "01_er_lens.ipynb"),
            str(tmp_path / "out.ipynb"),
            parameters={"sedes": [1], "store": str(tmp_path / "store")},
            cwd=str(FOLDER),
            progress_bar=False,
            kernel_manager_class=local_kernel(tmp_path),
        )
    assert not (tmp_path / "store").exists()


def test_the_command_line_s_way_refuses_it_without_starting_a_kernel(tmp_path):
    with pytest.raises(ValueError, match="unknown notebook parameter 'sedes'"):
        execute("er_lens", {"sedes": [1]}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_that_fails_is_kept_apart_and_the_report_is_left_as_it_was(
    tmp_path, monkeypatch
):
    """In a folder whose name papermill would take for a format."""
    root = tmp_path / "a {profile} b"
    (root / "notebooks").mkdir(parents=True)
    (root / "reports" / "quick").mkdir(parents=True)
    report = root / "reports" / "quick" / "01_er_lens.ipynb"
    report.write_text("the last good one")
    cells = [parameters_cell("01_er_lens"), nbformat.v4.new_code_cell("1 / 0")]
    broken = nbformat.v4.new_notebook(cells=cells)
    broken.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    nbformat.write(broken, root / "notebooks" / "01_er_lens.ipynb")
    good = {"profile": "quick", "data": None, "seeds": None, "executor": "local", "store": None,
            "device": None}  # fmt: skip
    with pytest.raises(NotebookFailed, match='^the cell "1 / 0": ZeroDivisionError: division by z'):
        execute("er_lens", good, root)
    assert report.read_text() == "the last good one"
    assert (report.parent / "01_er_lens.failed.ipynb").exists()


def test_two_kernels_that_start_at_once_each_answer_their_own_notebook(tmp_path):
    """They shared the sockets `kernel-ipc-1`, … of the folder, which are left there no more."""
    code = """
import sys, tempfile, papermill
from erlib.notebooks import local_kernel
source, made, word = sys.argv[1:]
with tempfile.TemporaryDirectory() as sockets:
    kernel = local_kernel(sockets)
    papermill.execute_notebook(
        source, made, parameters={"word": word}, progress_bar=False, kernel_manager_class=kernel
    )
"""
    cells = [
        nbformat.v4.new_code_cell("word = ''", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("for _ in range(5):\n    import time; time.sleep(.1)\nword * 2"),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "", "language": "python"}
    folder = tmp_path / "notebooks"
    folder.mkdir()
    nbformat.write(notebook, tmp_path / "two.ipynb")
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parent)}
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", code, tmp_path / "two.ipynb", tmp_path / f"{word}.ipynb", word],
            cwd=folder,
            env=environment,
        )
        for word in ("ab", "cd")
    ]
    assert [start.wait(300) for start in starts] == [0, 0]
    for word in ("ab", "cd"):
        (output,) = nbformat.read(tmp_path / f"{word}.ipynb", 4).cells[-1].outputs
        assert output["data"]["text/plain"] == repr(2 * word)
    assert list(folder.iterdir()) == []
