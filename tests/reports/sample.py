"""A finished profile in a temporary project: what the notebooks would have left there."""

from __future__ import annotations

from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from erlib.papers.evidence import Reading, decide_claims
from erlib.reports import artefact, footer, heatmap, render_notebook
from erlib.reports.cells import Cell
from erlib.reports.markup import examples_html, figure_html, png_uri, table_html
from erlib.reports.recorded import record
from erlib.reports.verdicts import Verdict

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


def three_verdicts() -> dict[str, Verdict]:
    """ER-C1 has one seed, ER-C4 holds, ER-C18 fails with two seeds lost."""
    lead = {"SST-Dev/ATT": 40.0, "Movies/ATT": 4.1, "Yelp-50/ATT": 15.0}

    def read(cell: Cell) -> dict[int, Reading] | None:
        if cell.table == "footnote-14":
            return {seed: Reading(1.0) for seed in range(12)}
        if cell.table == "table2" and cell.row in ("Baseline", "ER+Att"):
            return {0: Reading(90.0)}
        gains = {"Baseline": 0.0, "ER+Att": lead.get(cell.column), "Lexpl(A)": 60.0}
        if cell.column not in lead or cell.row not in gains:
            return None
        noise = (0.0, 0.1, -0.1) if cell.row == "ER+Att" else (0.0, 0.0, 0.0)
        return {s: Reading(50.0 + s + gains[cell.row] + e) for s, e in enumerate(noise)}

    found = decide_claims("er_lens", read, profile="night", lost={"ER-C18": 2})
    return {name: found[name] for name in ("ER-C1", "ER-C4", "ER-C18")}


def finished_profile(root: Path) -> Path:
    """Tables, a figure, three claims, provenance and a rendered notebook of er_lens."""
    common = {"profile": "quick", "root": root}
    frame = pd.DataFrame({"system": ["Baseline", NASTY], "F1": [91.0, np.nan]})
    artefact("er_lens", "table-2", frame, caption=NASTY, seeds=[0, 1, 2], **common)
    artefact("er_lens", "figure-2", plain_figure(), caption="Per seed.", seeds=[0], **common)
    record("er_lens", three_verdicts(), notes={"ER-C4": NASTY}, **common)
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
