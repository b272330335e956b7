"""A finished profile in a temporary project: what the notebooks would have left there."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from erlib.reports import artefact, decide, footer, heatmap, record, render_notebook
from erlib.reports.markup import examples_html, figure_html, png_uri, table_html

LESS = "2 of 15 seeds."
SORTED = pd.DataFrame(
    {"system": ["b 10", "a", "b 9"], "F1": ["10.5 ± 0.1\npaper 9", "–", "−2.25\npaper 1"]}
)
NASTY = "<script>alert(1)</script> \"quoted\" 'single' & 🎬 فيلم"


class Scored:
    """A text with scores for, against and neither."""

    tokens, scores = ["good", NASTY, "bad"], np.array([1.0, 0.0, -0.6])


def plain_figure() -> Figure:
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([1, 2, 3], [1, 4, 9], label="Baseline")
    axes.set(xlabel="epoch", ylabel="F1 (%)")
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
    png = png_uri((root / "figures/quick/er_lens-figure-2.png").read_bytes())
    shown = [
        table_html(SORTED, "er_lens-table-2", "A table.", reduced=LESS),
        figure_html(png, "er_lens-figure-2", "Per seed.", "Two lines.", reduced=LESS),
        examples_html(heatmap([Scored()]), "er_lens-examples-1", "Words."),
    ]
    made = notebook(root / "reports/quick/01_er_lens.ipynb", *map(html_output, shown))
    render_notebook(made)
    return root
