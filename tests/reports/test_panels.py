"""What figures of several panels share shows every number, and no panel that there is none of."""

from __future__ import annotations

import pandas as pd
import pytest

from erlib.reports.panels import band, boxes, heat_map, legend_below, panels
from erlib.reports.style import palette


def test_places_without_a_panel_are_empty():
    figure, axes = panels(4, 3, width=6, height=4)
    assert len(axes) == 4 and [a.axison for a in figure.axes] == [True] * 4 + [False] * 2


def test_a_legend_is_made_of_what_the_first_panel_shows_and_of_nothing_there_is_none():
    figure, [axis, _] = panels(2, 2, width=6, height=3)
    legend_below(figure, axis)
    assert not figure.legends
    values = pd.Series([1.0, 3.0], index=[1, 2])
    band(axis, values, values - 1, values + 1, colour="black", label="REGEX")
    legend_below(figure, axis)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["REGEX"]
    low, high = axis.collections[0].get_paths()[0].get_extents().get_points()[:, 1]
    assert (low, high) == (0.0, 4.0)


def test_a_map_says_its_numbers_or_what_it_is_told():
    values = pd.DataFrame({"a": [0.25, 1.0]}, index=["x", "y"])
    _, axes = panels(2, 2, width=6, height=3)
    heat_map(axes[0], values, ".1f", size=8)
    heat_map(axes[1], values, values.map("{:.0%}".format), size=8, cbar=False)
    said = [[text.get_text() for text in axis.texts] for axis in axes]
    assert said == [["0.2", "1.0"], ["25%", "100%"]]


def test_every_value_is_a_dot_in_the_row_and_the_colour_of_its_name():
    values = {"Baseline": pd.Series([0.5, 0.7]), "ER+Att": pd.Series([0.9])}
    _, [axis] = panels(1, 1, width=4, height=3)
    boxes(axis, values)
    dots = [dots.get_offsets() for dots in axis.collections]
    assert [points[:, 0].tolist() for points in dots] == [[0.5, 0.7], [0.9]]
    assert [points[:, 1].round().tolist() for points in dots] == [[0, 0], [1]]
    assert axis.patches[1].get_facecolor()[:3] == pytest.approx(
        tuple(int(palette(values)["ER+Att"][i : i + 2], 16) / 255 for i in (1, 3, 5))
    )
