"""How is a drawing of boxes and arrows made?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from erlib.reports.style import figure_style, new_figure

ARROW = "#666666"
EDGE = 0.1  # of the field beyond the outermost boxes


@dataclass(frozen=True)
class Box:
    """Words in a frame: `at` is its lower left corner."""

    at: tuple[float, float]
    words: str
    colour: str
    size: tuple[float, float] = (1.5, 0.75)

    @property
    def middle(self) -> float:
        """The height of its centre, where arrows arrive and leave."""
        return self.at[1] + self.size[1] / 2

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.at[0] + self.size[0]


def diagram(
    boxes: Mapping[str, Box], arrows: Sequence[tuple[str, str]], *, height: float
) -> tuple[Figure, pd.DataFrame]:
    """The drawing, `height` inches high, and its arrows as a table.

    An arrow goes from the right side of its first box to the left side of its second.
    """
    figure, [[axis]] = new_figure(height=height)
    with figure_style():
        axis.set(
            xlim=(min(b.at[0] for b in boxes.values()) - EDGE,
                  max(b.right for b in boxes.values()) + EDGE),
            ylim=(min(b.at[1] for b in boxes.values()) - EDGE,
                  max(b.at[1] + b.size[1] for b in boxes.values()) + EDGE),
        )  # fmt: skip
        axis.set_axis_off()
        for box in boxes.values():
            axis.text(box.at[0] + box.size[0] / 2, box.middle, box.words, ha="center",
                      va="center", fontsize=8.5, zorder=3)  # fmt: skip
            frame = FancyBboxPatch(
                box.at, *box.size, boxstyle="round,pad=0.02,rounding_size=0.08",
                facecolor="white", edgecolor=box.colour, linewidth=1.4,
            )  # fmt: skip
            axis.add_patch(frame)
        line = {"arrowstyle": "->", "color": ARROW, "shrinkA": 2, "shrinkB": 2}
        for start, end in arrows:
            begins, ends = boxes[start], boxes[end]
            axis.annotate(
                "",
                xy=(ends.at[0], ends.middle),
                xytext=(begins.right, begins.middle),
                arrowprops=line,
            )
    return figure, pd.DataFrame(arrows, columns=["from", "to"])
