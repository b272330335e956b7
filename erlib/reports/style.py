"""What do our figures look like? One style, and one colour for each system and technique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import matplotlib
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette: eight colours that colour-blind readers tell apart.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
GREY = "#8C8C8C"

# Guided technique = hue (Att blue, AttR orange, IxG green); joint light, constrained dark.
COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "Baseline": GREY,
        "ER+Att": SKY, "ER-C+Att": BLUE, "Lexpl(A)": "#004A75",
        "ER+AttR": ORANGE, "ER-C+AttR": VERMILION, "Lexpl(R)": "#8A3D00",
        "ER+IxG": "#66C9A8", "ER-C+IxG": GREEN, "Lexpl(I)": "#00553E",
        "REGEX": PURPLE, "SaLoss": "#B8A800", "IvRA": "#7A3E68",
        "ATT": BLUE, "ATTR": VERMILION, "IXG": GREEN,
        "ALTI": PURPLE, "DX": ORANGE, "DX-C": SKY, "RAND": GREY,
    }
)  # fmt: skip
SIGNED = "vlag_r"  # maps of signed numbers: red below 0, blue above
SIZED = "cividis"  # maps of sizes

WIDTH = 7.2  # inches: the width of a page's text
RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.8,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.bbox": "tight",
    "pdf.fonttype": 42,  # text in a PDF stays text
    "svg.hashsalt": "erlib",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Everything drawn inside has the house style; nothing outside is touched."""
    rc: Any = {**sns.axes_style("whitegrid"), **RC}
    with matplotlib.rc_context(rc):
        yield


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float = WIDTH, height: float | None = None
) -> tuple[Figure, list[list[Axes]]]:
    """A figure that pyplot does not know of (nothing to leak), and its axes [row][column]."""
    with figure_style():
        figure = Figure(figsize=(width, height or 2.6 * rows + 0.6), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(row) for row in axes]


def palette(names: Iterable[str]) -> dict[str, str]:
    """The colour of each name, always the same; names without one get the free colours in order."""
    wanted = list(dict.fromkeys(names))
    taken = {COLOURS[n] for n in wanted if n in COLOURS}
    order = [BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, "#B8A800", BLACK, GREY]
    free = [c for c in order if c not in taken] or order
    others = [n for n in wanted if n not in COLOURS]
    extra = {n: free[i % len(free)] for i, n in enumerate(others)}
    return {n: COLOURS.get(n) or extra[n] for n in wanted}
