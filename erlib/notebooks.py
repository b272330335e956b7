"""How is a notebook executed, and what becomes of it?

The executed notebook and its HTML appear in `reports/<profile>/` only when they are complete. One
that failed is left beside them as `<name>.failed.ipynb`; what it had trained is in the store.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager

from erlib.config import store_root
from erlib.papers import NOTEBOOKS
from erlib.parameters import check_parameters
from erlib.reports import render_notebook
from erlib.reports.freshness import record_sources, text_sources


class LocalKernel(AsyncKernelManager):
    """A kernel that is reached through files of this user, not through network ports."""

    transport = "ipc"


def execute(paper: str, parameters: Mapping[str, Any], root: Path) -> Path:
    """Run the paper's notebook with these parameters; the path of its HTML report."""
    settings = check_parameters(paper, parameters)
    profile = settings.profile
    name = NOTEBOOKS[paper]
    reports = root / "reports" / profile
    reports.mkdir(parents=True, exist_ok=True)
    written = text_sources(paper, profile, root)
    os.environ["ERLIB_TERMINAL_BAR"] = "1"
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch) / f"{name}.ipynb"
        try:
            papermill.execute_notebook(
                _literal(root / "notebooks" / f"{name}.ipynb"),
                _literal(made),
                parameters=dict(parameters),
                cwd=str(root / "notebooks"),
                kernel_name="python3",
                progress_bar=False,
                stderr_file=sys.stderr,
                kernel_manager_class=LocalKernel,
            )
        except papermill.PapermillExecutionError:
            _place(made, reports / f"{name}.failed.ipynb")
            raise
        html = render_notebook(_place(made, reports / f"{name}.ipynb"))
    record_sources(paper, profile, written, root=root, store=store_root(settings.store))
    (reports / f"{name}.failed.ipynb").unlink(missing_ok=True)
    return html


def _literal(path: Path) -> str:
    """Papermill formats paths with the parameters' values: a brace must stand for itself."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _place(made: Path, place: Path) -> Path:
    """Move an executed notebook in, without the progress bars among its outputs."""
    notebook = nbformat.read(made, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if not _is_bar(o)]
    partial = place.with_suffix(".tmp")
    nbformat.write(notebook, partial)
    partial.rename(place)
    return place


def _is_bar(output: Mapping[str, Any]) -> bool:
    return output.get("name") == "stderr" and "\r" in output.get("text", "")
