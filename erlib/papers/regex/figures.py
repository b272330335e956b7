"""What do the paper's figures show? (Figures 1 and 2, its drawings, are redrawn from its text)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns

from erlib.papers.regex.evaluations import WORDS
from erlib.papers.regex.systems import SYMBOLS
from erlib.papers.study import Study
from erlib.reports.diagrams import Box, diagram
from erlib.reports.panels import Drawn, legend_below
from erlib.reports.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    figure_style,
    new_figure,
    palette,
)

TEXT = ["the", "acting", "is", "wonderful", "but", "the", "plot", "is", "thin"]
# what two models with the same prediction call important: 1 for, −1 against
HIGHLIGHTS = {
    "model A: positive": [0, 0, 0, 1, 0, 0, 0, 0, -1],
    "model A′: positive": [1, 0, 1, 0, 0, 0, 1, 0, 0],
}
INK = {1: ("white", BLUE), -1: ("black", ORANGE), 0: ("black", "white")}  # of the word, behind it


def figure_1() -> Drawn:
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


def figure_2() -> Drawn:
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


def figure_3(study: Study) -> Drawn:
    """Faithfulness against λ4, the weight of explanation guided training."""
    best = {"norm_suff": (0.01,), "norm_comp": (0.001,)}
    return _sweep(study, "figure-3", best, "λ₄, weight of guided training", scale="log")


def figure_4(study: Study) -> Drawn:
    """Faithfulness against K, the share of a text that is masked."""
    best = dict.fromkeys(WORDS, (0.15, 0.2))
    return _sweep(study, "figure-4", best, "K, share of masked tokens", scale="linear")


def _sweep(
    study: Study, name: str, best: Mapping[str, Sequence[float]], label: str, *, scale: str
) -> Drawn:
    """One panel per metric; dotted lines stand where the paper finds the best value."""
    data = swept(study, name)
    figure, [axes] = new_figure(1, 2, height=3.2)
    with figure_style():
        for axis, metric in zip(axes, WORDS, strict=True):
            panel = data[data["metric"] == metric].replace({"attribution": SYMBOLS})
            sns.lineplot(
                panel,
                x="value",
                y="AOPC",
                hue="attribution",
                style="attribution",
                palette=palette(panel["attribution"]),
                markers=True,
                dashes=False,
                errorbar=None,
                ax=axis,
            )
            for value in best[metric]:
                axis.axvline(value, color=GREY, linestyle=":", linewidth=1.8, zorder=1)
            values = sorted({*panel["value"], *best[metric]})
            axis.set(title=f"normalised {WORDS[metric]}", xlabel=label, ylim=(0, None))
            axis.set(xscale=scale, xticks=values, xticklabels=[f"{v:g}" for v in values])
            axis.grid(visible=False, axis="x")
        legend_below(figure, axes[0])
        for axis in axes:
            axis.legend().remove()
    return figure, data


def swept(study: Study, name: str) -> pd.DataFrame:
    """The cells of a sweep's figure by attribution: value, attribution, seed, metric, AOPC."""
    numbers = study.numbers(cell for cell in study.of(name) if cell.column)
    value = numbers["row"].str.split(" = ").str[1].astype(float)
    numbers = numbers.assign(value_of=value)[["value_of", "column", "seed", "metric", "value"]]
    return numbers.set_axis(["value", "attribution", "seed", "metric", "AOPC"], axis=1)
