"""A figure's PNG has few colours, and they are the right ones."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import maximum_filter, minimum_filter

from erlib.reports.png import few_colours
from erlib.reports.style import COLOURS, SIGNED, SIZED, new_figure


def bands():
    """Curves in bands that lie on each other: thousands of colours."""
    figure, axes = new_figure()
    names, x = ("ATT", "ATTR", "IXG", "ALTI", "DX-C", "DX", "RAND"), np.linspace(0, 1, 6)
    for row, name in enumerate(names):
        axes[0][0].plot(x, row / 9 + x / 3, marker="o", color=COLOURS[name])
        axes[0][0].fill_between(x, row / 9, row / 9 + x, color=COLOURS[name], alpha=0.12)
    return figure


def maps():
    """Two maps of which only one end is used, and the whole range in a colour bar."""
    figure, axes = new_figure(1, 2)
    for axis, colours in zip(axes[0], (SIGNED, SIZED), strict=True):
        values = np.linspace(0.5, 1, 36).reshape(6, 6)
        figure.colorbar(axis.imshow(values, cmap=colours, vmin=0, vmax=1))
    return figure


@pytest.mark.parametrize("drawing", [bands, maps])
def test_surfaces_keep_their_colour_and_everything_else_nearly(drawing):
    drawn = io.BytesIO()
    drawing().savefig(drawn, format="png", dpi=150)
    before = Image.open(drawn).convert("RGB")
    after = few_colours(before)
    assert len(before.getcolors(1 << 24)) > 256 >= len(after.getcolors())
    a, b = (np.asarray(image.convert("RGB")).astype(int) for image in (before, after))
    error = np.abs(a - b).max(axis=2)  # in levels of 256
    flat = (maximum_filter(a, (5, 5, 1)) == minimum_filter(a, (5, 5, 1))).all(axis=2)
    assert flat.mean() > 0.5 and error[flat].max() <= 1
    assert error.max() <= 24


def test_an_image_of_few_colours_stays_as_it_is():
    image = Image.new("RGB", (4, 4), "#EDF4F9")
    image.putpixel((1, 2), (3, 2, 1))
    assert (np.asarray(few_colours(image).convert("RGB")) == np.asarray(image)).all()
