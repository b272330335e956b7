"""Notebooks are clean sources: parameters first, short cells, no outputs."""

from __future__ import annotations

from pathlib import Path

import nbformat
import papermill
import pytest

from erlib.notebooks import LocalKernel, NotebookFailed, execute
from erlib.papers import NOTEBOOKS
from erlib.parameters import PARAMETERS, check_parameters

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
            kernel_manager_class=LocalKernel,
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
