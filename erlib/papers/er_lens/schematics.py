"""What do Figures 1 and 7, the paper's two drawings, say?"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from erlib.reports.style import BLACK, BLUE, GREY, VERMILION, figure_style, new_figure

WORDS = ("[CLS]", "a", "dull", "plot", "[SEP]")
RATIONALE = (0, 0, 1, 0, 0)
UP = {"arrowstyle": "->", "color": BLACK, "shrinkA": 0, "shrinkB": 0}


def figure_1() -> tuple[Figure, pd.DataFrame]:
    """A guided attribution can become plausible while what decides the class stays as it was.

    The numbers are made up, and returned as they are drawn.
    """
    figure, [[axis]] = new_figure(height=3.5)
    with figure_style():
        _bare(axis, 10, 5.2)
        _row(axis, "annotators marked", 4.3, [0.85 * bit for bit in RATIONALE], BLACK)
        rows = (
            (2.9, "before", (0.55, 0.05, 0.15, 0.05, 0.2), (0.1, 0.1, 0.35, 0.35, 0.1)),
            (1.7, "guided: learnt", (0.08, 0.05, 0.75, 0.07, 0.05), (0.05, 0.05, 0.75, 0.1, 0.05)),
            (0.5, "guided: hacked", (0.08, 0.05, 0.75, 0.07, 0.05), (0.1, 0.1, 0.35, 0.35, 0.1)),
        )
        for y, name, attention, evidence in rows:
            _row(axis, name, y, attention, BLUE)
            _cells(axis, 6.1, y, evidence, VERMILION)
        axis.text(3.85, 3.65, "guided attribution (attention)", ha="center", color=BLUE)
        axis.text(8.05, 3.65, "what the class rests on", ha="center", color=VERMILION)
    data = pd.DataFrame(
        [
            {"model": name, "word": word, "attention": a, "evidence": e}
            for _, name, attention, evidence in rows
            for word, a, e in zip(WORDS, attention, evidence, strict=True)
        ]
    )
    return figure, data


def figure_7() -> tuple[Figure, pd.DataFrame]:
    """Local guidance reaches one attention map; global guidance has every layer in its path."""
    figure, [axes] = new_figure(1, 2, height=3.6)
    reached = {
        "local: attention of the last layer": (3,),
        "global: rollout, input x gradient": (0, 1, 2, 3),
    }
    with figure_style():
        for axis, (title, guided) in zip(axes, reached.items(), strict=True):
            _bare(axis, 6, 6.2)
            axis.set_title(title)
            for layer in range(4):
                inside = layer in guided
                y = 1.0 + layer
                _box(axis, 1.0, y, 2.6, 0.62, VERMILION if inside else GREY, 0.8 if inside else 0.2)
                axis.text(2.3, y + 0.31, f"layer {layer + 1}", ha="center", va="center",
                          color="white" if inside else BLACK)  # fmt: skip
                axis.annotate("", (2.3, y), (2.3, y - 0.38), arrowprops=UP)
            axis.text(2.3, 0.42, "embeddings", ha="center", va="center")
            axis.text(2.3, 5.45, "classifier", ha="center", va="center")
            axis.annotate("", (2.3, 5.25), (2.3, 4.62), arrowprops=UP)
            _box(axis, 4.4, 2.4, 1.4, 0.9, BLACK, 0.08)
            axis.text(5.1, 2.85, r"$L_\mathrm{expl}$", ha="center", va="center")
            for layer in guided:
                axis.annotate(
                    "",
                    (3.65, 1.31 + layer),
                    (4.4, 2.85),
                    arrowprops={"arrowstyle": "-|>", "color": VERMILION, "linewidth": 1.4},
                )
    data = pd.DataFrame(
        [
            {"guidance": title, "layer": layer + 1, "reached": layer in guided}
            for title, guided in reached.items()
            for layer in range(4)
        ]
    )
    return figure, data


def _bare(axis: Axes, width: float, height: float) -> None:
    axis.set(xlim=(0, width), ylim=(0, height))
    axis.set_axis_off()


def _row(axis: Axes, name: str, y: float, shares: tuple[float, ...] | list[float], colour: str
         ) -> None:  # fmt: skip
    axis.text(1.75, y + 0.3, name, ha="right", va="center")
    _cells(axis, 1.9, y, shares, colour)


def _cells(
    axis: Axes, left: float, y: float, shares: tuple[float, ...] | list[float], colour: str
) -> None:
    for i, (word, share) in enumerate(zip(WORDS, shares, strict=True)):
        _box(axis, left + 0.79 * i, y, 0.72, 0.6, colour, max(0.05, share))
        axis.text(left + 0.79 * i + 0.36, y + 0.3, word, ha="center", va="center", fontsize=8,
                  color="white" if share > 0.6 else BLACK)  # fmt: skip


def _box(
    axis: Axes, x: float, y: float, width: float, height: float, colour: str, alpha: float
) -> None:
    axis.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle="round,pad=0,rounding_size=0.08",
            facecolor=colour,
            alpha=alpha,
            edgecolor=BLACK,
            linewidth=0.6,
        )
    )
