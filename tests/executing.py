"""A paper's notebook, executed in this process: its code cells one after the other."""

from __future__ import annotations

import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat

from erlib.catalogue import paper
from erlib.parameters import PARAMETERS

ROOT = Path(__file__).parents[1]


def raised(name: str, profile: str) -> list[str]:
    """What the cells raise, in their order; one that does not stop the next."""
    notebook = nbformat.read(ROOT / "notebooks" / f"{paper(name).notebook}.ipynb", as_version=4)
    namespace = {**dict.fromkeys(PARAMETERS), "profile": profile, "executor": "local"}
    errors = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and "parameters" not in cell.metadata.get("tags", []):
            try:
                exec(compile(cell.source, f"<{cell.source[:60]}>", "exec"), namespace)
            except Exception:
                errors.append(f"{cell.source}\n{traceback.format_exc()}")
    plt.close("all")
    return errors
