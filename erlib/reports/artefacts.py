"""How does a table or figure of a notebook become a file, an HTML anchor and a row in a list?"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from IPython.core.getipython import get_ipython
from IPython.display import display
from matplotlib.figure import Figure
from PIL import Image

from erlib.reports.alt_text import described
from erlib.reports.ledger import (
    figures_folder,
    known_paper,
    reports_folder,
    upsert,
    write_whole,
)
from erlib.reports.markup import Html, examples_html, figure_html, png_uri, table_html
from erlib.reports.paper_numbers import Beside
from erlib.reports.png import few_colours
from erlib.reports.style import figure_style

DPI = 150
MARGIN = 0.1  # inches of white around a figure


def artefact(
    paper: str,
    id: str,
    content: pd.DataFrame | Beside | Figure | str,
    *,
    caption: str,
    profile: str,
    seeds: Sequence[int],
    sources: Sequence[str] = (),
    reduced: str = "",
    alt: str = "",
    data: pd.DataFrame | None = None,
    digits: int = 2,
    root: Path | str | None = None,
) -> None:
    """Show the content under the HTML id `<paper>-<id>`, save it, and enter it in artefacts.csv.

    A DataFrame or `Beside` is a table (CSV), a matplotlib Figure a figure (PNG and PDF, closed
    afterwards), `Html` (a heatmap) or text are examples. `data`: the numbers behind, saved as CSV
    where the shown table is not them or where the content is a figure. `sources`: hashes of the
    runs and evaluations used. `reduced`: the one line that says what is less than in the paper.
    `alt`: what is seen in a figure, for who cannot see it; if not given, what its axes say.
    """
    known_paper(paper)
    if not re.fullmatch(r"(table|figure|examples)-[a-z0-9]+(-[a-z0-9]+)*", id):
        raise ValueError(f"an artefact's id looks like table-2, figure-9 or examples-1, got {id!r}")
    anchor = f"{paper}-{id}"
    tables = reports_folder(profile, root) / "tables"
    if isinstance(content, Beside):
        html = table_html(
            content.wide(), anchor, caption, reduced=reduced, notes=content.notes(), digits=digits
        )
        kind, data = "table", content.long if data is None else data
    elif isinstance(content, pd.DataFrame):
        html = table_html(content, anchor, caption, reduced=reduced, digits=digits)
        kind, data = "table", content if data is None else data
    elif isinstance(content, Figure):
        image = _save(content, figures_folder(profile, root) / anchor)
        alt = alt or described(content)
        html = figure_html(image, anchor, caption, alt, reduced=reduced)
        kind = "figure"
    elif isinstance(content, str):
        html = examples_html(content, anchor, caption, reduced=reduced)
        kind = "examples"
    else:
        raise TypeError(f"an artefact is a DataFrame, Figure or text, not {type(content).__name__}")
    if data is not None:
        index = not isinstance(data.index, pd.RangeIndex)
        write_whole(tables / f"{anchor}.csv", data.to_csv(index=index, lineterminator="\n"))
    row = {
        "paper": paper,
        "id": id,
        "kind": kind,
        "rows": None if data is None else len(data),
        "seeds": " ".join(str(s) for s in seeds),
        "sources": " ".join(dict.fromkeys(sources)),
        "reduced": reduced,
        "caption": caption,
        "alt": alt,
    }
    upsert(reports_folder(profile, root) / "artefacts.csv", row, key=("paper", "id"))
    show(html, f"{anchor}: {caption}")


def show(html: Html, plain: str) -> None:
    """Display in a notebook, with a plain line for logs; silent where there is no notebook."""
    if get_ipython() is not None:
        display({"text/html": str(html), "text/plain": plain}, raw=True)


def _save(figure: Figure, stem: Path) -> str:
    """Write stem.png and stem.pdf, byte for byte the same for the same figure; the PNG as URI.

    Both have one layout and one frame: to find them takes longer than to draw.
    """
    drawn, png, pdf = io.BytesIO(), io.BytesIO(), io.BytesIO()
    undated = {"CreationDate": None, "Producer": None}
    with figure_style():
        figure.set_dpi(DPI)
        figure.draw_without_rendering()
        figure.set_layout_engine(None)
        frame = figure.get_tightbbox().padded(MARGIN)
        figure.savefig(drawn, format="png", dpi=DPI, bbox_inches=frame)
        figure.savefig(pdf, format="pdf", bbox_inches=frame, metadata=undated)
    plt.close(figure)
    few_colours(Image.open(drawn)).save(png, "PNG", optimize=True)
    write_whole(stem.with_name(stem.name + ".png"), png.getvalue())
    write_whole(stem.with_name(stem.name + ".pdf"), pdf.getvalue())
    return png_uri(png.getvalue())
