"""What does the paper mean, drawn? (Figures 1 and 2, redrawn from its text)"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from erlib.reports.diagrams import Box, diagram
from erlib.reports.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    figure_style,
    new_figure,
)

TEXT = ["the", "acting", "is", "wonderful", "but", "the", "plot", "is", "thin"]
# what two models with the same prediction call important: 1 for, −1 against
HIGHLIGHTS = {
    "model A: positive": [0, 0, 0, 1, 0, 0, 0, 0, -1],
    "model A′: positive": [1, 0, 1, 0, 0, 0, 1, 0, 0],
}
INK = {1: ("white", BLUE), -1: ("black", ORANGE), 0: ("black", "white")}  # of the word, behind it


def figure_1() -> tuple[Figure, pd.DataFrame]:
    """Two models, one prediction, two explanations."""
    figure, [[axis]] = new_figure(height=1.7)
    with figure_style():
        axis.set(xlim=(0, 9.3), ylim=(0, 3))
        axis.set_axis_off()
        for y, (title, marks) in zip((1.8, 0.3), HIGHLIGHTS.items(), strict=True):
            axis.text(0, y + 0.75, title, color="#444444", va="center")
            x = 0.0
            for word, mark in zip(TEXT, marks, strict=True):
                width = 0.42 + 0.13 * len(word)
                ink, behind = INK[mark]
                axis.text(x + width / 2, y, word, ha="center", va="center", color=ink,
                          bbox={"boxstyle": "round", "fc": behind, "ec": "none"})  # fmt: skip
                x += width
    rows = [
        {"model": title, "word": word, "highlight": mark}
        for title, marks in HIGHLIGHTS.items()
        for word, mark in zip(TEXT, marks, strict=True)
    ]
    return figure, pd.DataFrame(rows)


def figure_2() -> tuple[Figure, pd.DataFrame]:
    """One training step: which passes are made, and which loss each feeds."""
    boxes = {
        "x": Box((0.0, 2.2), "text x", GREY),
        "model": Box((2.0, 2.2), "model\np(x), att(x)", GREEN),
        "guide": Box((2.0, 0.0), "guide g(x):\nIG, gold class", VERMILION),
        "delta": Box((4.0, 1.1), "x + δ:\ntwo ascents", BLUE),
        "masked": Box((4.0, 0.0), "x̃: lowest\nK % masked", VERMILION),
        "classify": Box((6.0, 3.3), "L_cls\ncross-entropy", GREY),
        "gradient": Box((6.0, 2.2), "L_gr\n‖∂L/∂x‖ + ‖θ‖", BLUE),
        "adversarial": Box((6.0, 1.1), "L_at: KL of p(x)\nand p(x + δ)", BLUE),
        "guided": Box((6.0, 0.0), "L_kl: att(x) and\natt(x̃) from g(x)", VERMILION),
        "sum": Box((8.0, 1.65), "L = Σ λ L\n(eq. 8)", GREY),
    }
    arrows = [
        ("x", "model"), ("x", "guide"), ("model", "classify"), ("model", "gradient"),
        ("model", "delta"), ("guide", "masked"), ("delta", "adversarial"), ("masked", "guided"),
        ("classify", "sum"), ("gradient", "sum"), ("adversarial", "sum"), ("guided", "sum"),
    ]  # fmt: skip
    return diagram(boxes, arrows, height=3.2)
