"""How do results become tables, figures, verdicts and pages?"""

from __future__ import annotations

from typing import Any

from erlib.config import project_root
from erlib.reports.artefacts import artefact
from erlib.reports.footer import footer
from erlib.reports.heatmap import heatmap
from erlib.reports.paper_numbers import beside, paper_table
from erlib.reports.style import figure_style, new_figure, palette

__all__ = [
    "artefact",
    "beside",
    "build_index",
    "figure_style",
    "footer",
    "heatmap",
    "new_figure",
    "palette",
    "paper_table",
    "project_root",
    "render_notebook",
]


def __getattr__(name: str) -> Any:
    """The two that need the packages of the extra `notebooks`, when they are first used."""
    if name == "render_notebook":
        from erlib.reports.render import render_notebook

        return render_notebook
    if name == "build_index":
        from erlib.reports.site import build_index

        return build_index
    raise AttributeError(f"module 'erlib.reports' has no attribute '{name}'")
