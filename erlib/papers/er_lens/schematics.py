"""What do Figures 1 and 7, the paper's two drawings, say?"""

from __future__ import annotations

from itertools import product

import pandas as pd

from erlib.reports.diagrams import Box, diagram
from erlib.reports.panels import Drawn, heat_map, panels
from erlib.reports.style import BLACK, GREY, VERMILION, figure_style

WORDS = ["[CLS]", "a", "dull", "plot", "[SEP]"]
MARKED = (0, 0, 1, 0, 0)
HACKED = (0.08, 0.05, 0.75, 0.07, 0.05)
SHARES = {  # of a model: its guided attribution by word, and what the class rests on
    "before": ((0.55, 0.05, 0.15, 0.05, 0.2), (0.1, 0.1, 0.35, 0.35, 0.1)),
    "guided: learnt": (HACKED, (0.05, 0.05, 0.75, 0.1, 0.05)),
    "guided: hacked": (HACKED, (0.1, 0.1, 0.35, 0.35, 0.1)),
}
REACHED = {  # guidance → the layers that it reaches, of four
    "local: attention of the last layer": (4,),
    "global: rollout, input x gradient": (1, 2, 3, 4),
}
STACK = ("embeddings", "layer 1", "layer 2", "layer 3", "layer 4", "classifier")


def figure_1() -> Drawn:
    """A guided attribution can become plausible while what decides the class stays as it was.

    The numbers are made up, and returned as they are drawn.
    """
    figure, axes = panels(2, 2, width=7.2, height=2.4)
    looks = (("guided attribution (attention)", "Blues"), ("what the class rests on", "Oranges"))
    with figure_style():
        for i, (axis, (title, colours)) in enumerate(zip(axes, looks, strict=True)):
            rows = {"annotators marked": MARKED, **{name: both[i] for name, both in SHARES.items()}}
            shown = pd.DataFrame.from_dict(rows, orient="index", columns=WORDS)
            words = pd.DataFrame([WORDS] * len(shown), shown.index, WORDS)
            heat_map(axis, shown, words, size=8, cmap=colours, vmin=0, vmax=1, cbar=False)
            axis.set(title=title, xticks=[])
        axes[1].set_yticks([])
    data = [
        {"model": name, "word": word, "attention": a, "evidence": e}
        for name, both in SHARES.items()
        for word, a, e in zip(WORDS, *both, strict=True)
    ]
    return figure, pd.DataFrame(data)


def figure_7() -> Drawn:
    """Local guidance reaches one attention map; global guidance has every layer in its path."""
    boxes, arrows = {}, []
    for left, (guidance, reached) in zip((0.0, 5.6), REACHED.items(), strict=True):
        said = "$L_{expl}$\n" + guidance.replace(": ", ":\n")
        boxes[guidance] = Box((left, 2.0), said, BLACK, (2.6, 1.3))
        for i, name in enumerate(STACK):
            colour = VERMILION if i in reached else GREY
            boxes[f"{guidance}, {i}"] = Box((left + 3.2, 1.0 * i), name, colour, (1.6, 0.62))
        arrows += [(guidance, f"{guidance}, {layer}") for layer in reached]
    figure, _ = diagram(boxes, arrows, height=3.6)
    [axis] = figure.axes
    for x, low in product((4.0, 9.6), range(len(STACK) - 1)):
        axis.annotate("", (x, low + 1), (x, low + 0.62), arrowprops={"arrowstyle": "->"})
    data = [
        {"guidance": guidance, "layer": layer, "reached": layer in reached}
        for guidance, reached in REACHED.items()
        for layer in range(1, 5)
    ]
    return figure, pd.DataFrame(data)
