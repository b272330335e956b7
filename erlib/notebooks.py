"""How is a notebook executed, and what becomes of it?

The executed notebook, its HTML, tables and figures appear in `reports/<profile>/` and
`figures/<profile>/` only when all of them are complete. A notebook that failed is left there as
`<name>.failed.ipynb`, beside what the last good one made; what it had trained is in the store.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager

from erlib.catalogue import paper as paper_named
from erlib.config import store_root
from erlib.parameters import check_parameters
from erlib.reports import render_notebook
from erlib.reports.freshness import made_with, record_sources, text_sources
from erlib.reports.ledger import reports_folder
from erlib.reports.staging import publish, staged

BAR = re.compile(r"[\w ]+: +\d+%\|")  # how a bar begins


class NotebookFailed(RuntimeError):
    """A notebook was not executed to its end: which cell, and why."""


def local_kernel(folder: Path | str) -> type[AsyncKernelManager]:
    """A kernel that is reached through sockets in a folder of its own, not through network ports.

    Two that shared one would take each other's messages.
    """

    class LocalKernel(AsyncKernelManager):
        transport = "ipc"
        ip = f"{folder}/kernel"

    return LocalKernel


def execute(paper: str, parameters: Mapping[str, Any], root: Path) -> Path:
    """Run the paper's notebook with these parameters; the path of its HTML report."""
    settings = check_parameters(paper, parameters)
    profile = settings.profile
    name = paper_named(paper).notebook
    reports = reports_folder(profile, root)
    reports.mkdir(parents=True, exist_ok=True)
    failed = reports / f"{name}.failed.ipynb"
    written = {**text_sources(paper, profile, root), **made_with(settings)}
    os.environ["ERLIB_TERMINAL_BAR"] = "1" if sys.stderr.isatty() else "0"
    with staged() as stage, TemporaryDirectory(prefix="erlib-kernel-") as sockets:
        made = reports_folder(profile, stage) / f"{name}.ipynb"
        made.parent.mkdir(parents=True)
        try:
            papermill.execute_notebook(
                _literal(root / "notebooks" / f"{name}.ipynb"),
                _literal(made),
                parameters=dict(parameters),
                cwd=str(root / "notebooks"),
                kernel_name="python3",
                progress_bar=False,
                stderr_file=sys.stderr,
                kernel_manager_class=local_kernel(sockets),
            )
        except Exception as error:  # of a cell, or of its kernel: died, timed out, never started
            where = failing_cell(_place(made, failed)) if made.exists() else "no cell"
            raise NotebookFailed(f"{where}: {_said(error)}") from error
        html = render_notebook(_place(made, made))
        record_sources(paper, profile, written, root=stage, store=store_root(settings.store))
        publish(paper, profile, stage, root)
    return reports / html.name


def failing_cell(executed: Path) -> str:
    """`the cell "table = saloss.table_2(study)" under "Results"`: the last that was begun."""
    heading, found = "", ""
    for cell in nbformat.read(executed, as_version=4).cells:
        lines = cell.source.strip().splitlines() or [""]
        if cell.cell_type == "markdown" and lines[0].startswith("#"):
            heading = lines[0].strip("# ")
        elif cell.cell_type == "code" and cell.metadata.get("papermill", {}).get("start_time"):
            found = f'the cell "{lines[0]}"' + (f' under "{heading}"' if heading else "")
    return found


def _said(error: Exception) -> str:
    if isinstance(error, papermill.PapermillExecutionError):
        return f"{error.ename}: {error.evalue}"
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _literal(path: Path) -> str:
    """Papermill formats paths with the parameters' values: a brace must stand for itself."""
    return str(path).replace("{", "{{").replace("}", "}}")


def _place(made: Path, place: Path) -> Path:
    """Move an executed notebook in, without the progress bars among its outputs."""
    notebook = nbformat.read(made, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                if output.get("name") == "stderr":
                    output.text = without_bars(output.text)
            cell.outputs = [o for o in cell.outputs if o.get("text") != ""]
    partial = place.with_suffix(".tmp")
    nbformat.write(notebook, partial)
    partial.rename(place)
    return place


def without_bars(said: str) -> str:
    """What was written to a log but for the bars: lines, or one that is written over itself."""
    lines = re.split(r"(?<=[\r\n])", said)
    return "".join(line for line in lines if not (line.endswith("\r") or BAR.match(line)))
