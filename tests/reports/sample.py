"""A finished profile in a temporary project: what the notebooks would have left there."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from erlib.reports import artefact, decide, footer, record, render_notebook

NASTY = "<script>alert(1)</script> \"quoted\" 'single' & 🎬 فيلم"


def plain_figure() -> Figure:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot([1, 2, 3], [1, 4, 9], label="Baseline")
    return figure


def notebook(path: Path, *outputs: dict) -> Path:
    cells = [
        new_markdown_cell("# A title\n\nThree sentences."),
        new_markdown_cell("## Results\n\n### Results\n\nprose with `code`"),
        new_code_cell("value = '<b>'  # a comment", outputs=list(outputs)),
        new_markdown_cell("## Results"),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


def html_output(html: str) -> dict:
    return new_output("display_data", data={"text/html": html, "text/plain": "a table"})


def finished_profile(root: Path) -> Path:
    """Tables, a figure, three claims, provenance and a rendered notebook of er_lens."""
    common = {"profile": "quick", "root": root}
    frame = pd.DataFrame({"system": ["Baseline", NASTY], "F1": [91.0, np.nan]})
    artefact("er_lens", "table-2", frame, caption=NASTY, seeds=[0, 1, 2], **common)
    artefact("er_lens", "figure-2", plain_figure(), caption="Per seed.", seeds=[0], **common)
    d = {"SST-Dev": 40.0, "Movies": 4.0, "Yelp-50": 15.0}
    measured = {n: {"differences": [v, v + 0.1, v + 0.2]} for n, v in d.items()}
    record("er_lens", "ER-C4", decide("er_lens", "ER-C4", measured), note=NASTY, **common)
    one = decide("er_lens", "ER-C1", {"pooled": {"differences": [1.0]}})
    record("er_lens", "ER-C1", one, **common)
    share = decide("er_lens", "ER-C18", {"usable seeds": {"successes": 12, "trials": 12}})
    record("er_lens", "ER-C18", share, lost=2, **common)
    footer("er_lens", runs=["ab" * 32], evals=["cd" * 32], seconds=75.0, data="packaged", **common)
    anchors = "".join(f'<div id="er_lens-{i}">here</div>' for i in ("table-2", "figure-2"))
    made = notebook(root / "reports/quick/01_er_lens.ipynb", html_output(anchors))
    render_notebook(made)
    return root
