from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt

from erlib.reports import figure_style, new_figure, palette


def test_the_style_ends_with_its_context():
    before = dict(matplotlib.rcParams)
    with figure_style():
        assert matplotlib.rcParams["pdf.fonttype"] == 42
    assert dict(matplotlib.rcParams) == before


def test_new_figures_are_unknown_to_pyplot():
    before = plt.get_fignums()
    figure, axes = new_figure(2, 3)
    assert plt.get_fignums() == before and len(axes) == 2 and len(axes[0]) == 3
    assert figure.axes == [a for row in axes for a in row]


def test_a_name_has_the_same_colour_in_every_figure():
    assert palette(["ATT", "ER+Att"])["ER+Att"] == palette(["ER+Att", "DX", "x"])["ER+Att"]


def test_names_without_a_colour_get_one_that_is_not_taken():
    found = palette(["Baseline", "ER-C+Att", "something", "else"])
    assert len(set(found.values())) == 4
