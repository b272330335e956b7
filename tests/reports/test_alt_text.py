from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import seaborn as sns

from erlib.reports.alt_text import LONGEST, described
from erlib.reports.diagrams import Box, diagram
from erlib.reports.style import new_figure


def line(axis):
    axis.plot([1, 2], [3, 4])


def map_with_colours(axis):
    sns.heatmap(
        pd.DataFrame([[1.0, 2.0]], index=["Baseline"], columns=["low", "high"]),
        ax=axis, cbar_kws={"label": "AUC"},
    )  # fmt: skip


def bars(axis):
    data = pd.DataFrame({"system": ["Baseline", "SaLoss"], "F1": [1.0, 2.0]})
    sns.barplot(data, x="F1", y="system", ax=axis)
    axis.set(ylabel="")


def boxes(axis):
    axis.boxplot([[1, 2, 3]], patch_artist=True, tick_labels=["Baseline"])
    axis.set(ylabel="F1")


def histogram(axis):
    axis.hist([1, 2, 2], histtype="stepfilled")
    axis.axvline(2)
    axis.set(xlabel="τ")


def points(axis):
    axis.scatter([1, 2], [1, 2])
    axis.axhline(0)
    axis.set(title="ρ = 1")


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (line, "A line chart."),
        (map_with_colours, "A colour map: “Baseline” against “low”, “high”; colour: “AUC”."),
        (bars, "A bar chart: “Baseline”, “SaLoss” against “F1”."),
        (boxes, "A box plot: “F1” against “Baseline”."),
        (histogram, "A histogram: “τ”."),
        (points, "A scatter plot: titled “ρ = 1”."),
    ],
)
def test_a_panel_is_named_by_its_kind_and_what_stands_at_its_axes(draw, said):
    figure, [[axis]] = new_figure()
    draw(axis)
    assert described(figure) == said


def test_panels_share_labels_titles_and_a_legend():
    figure, [axes] = new_figure(1, 3)
    for axis, title in zip(axes, ("sufficiency", "comprehensiveness"), strict=False):
        for name in ("α∇α", "DeepLift"):
            axis.plot([0.01, 1], [0, 1], label=name)
        axis.set(title=f"normalised\n{title}", xlabel="λ₄, weight", ylabel="AOPC", xscale="log")
    axes[2].set_axis_off()  # a place that is left empty
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
    assert described(figure) == (
        "2 line charts: “AOPC” against “λ₄, weight”; titled “normalised sufficiency”, "
        "“normalised comprehensiveness”; legend: “α∇α”, “DeepLift”."
    )


def test_numbers_at_the_ticks_of_an_axis_without_a_label_are_not_read_out():
    figure, [[axis]] = new_figure()
    axis.loglog([0.01, 1], [1, 1000])
    assert described(figure) == "A line chart."


def test_a_drawing_is_named_by_what_is_written_in_it_but_not_by_the_words_of_a_text():
    boxes = {"a": Box((0, 0), "text x", "black"), "b": Box((2, 0), "model\n$p_y$(x)", "black")}
    figure, _ = diagram(boxes, [("a", "b")], height=2)
    figure.axes[0].text(0, 0, "gripping")
    assert described(figure) == "A drawing: the words “text x”, “model p_y(x)”."


def test_long_lists_are_counted_and_the_whole_is_short():
    figure, [axes] = new_figure(1, 9)
    for i, axis in enumerate(axes):
        axis.scatter(*np.ones((2, 3)), label=f"a system with a long name {i}")
        axis.set(title=f"a set {i}", xlabel="F1", ylabel=f"a measure of a technique {i}")
        axis.legend()
    text = described(figure)
    assert text.startswith("9 scatter plots: “a measure of a technique 0”, ")
    assert "“a measure of a technique 4” and 4 more against “F1”; titled" in text
    assert len(text) <= LONGEST and text.endswith(" …")
