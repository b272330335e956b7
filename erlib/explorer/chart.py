"""How do the curves of one text look? Small SVG pictures that scale and show their values."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from erlib.reports.style import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION

# Seven colours that are seen on white and on black; then again dashed, then dotted.
COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, GREY)
DASHES = ("", "6 3", "2 3")
WIDTH, HEIGHT = 330, 190
LEFT, RIGHT, TOP, BOTTOM = 34, 18, 22, 34  # margins, in which the labels stand


def chart_svg(
    frame: pd.DataFrame, column: str, full: float, methods: Sequence[str], title: str
) -> Markup:
    """One line per method: `column` over `bin`; `full` is a dashed line across."""
    ticks = [
        Markup(
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(LEFT, WIDTH - RIGHT, _y(p), _y(p), LEFT - 5, _y(p) + 3.5, f"{p:g}")
        for p in (0.0, 0.5, 1.0)
    ]
    ticks += [
        Markup('<text x="{}" y="{}" text-anchor="middle">{} %</text>').format(
            _x(percent), HEIGHT - BOTTOM + 14, percent
        )
        for percent in (0, 20, 40, 60, 80, 100)
    ]
    lines = [
        _line(method, frame[frame["method"] == method], column, *_style(methods.index(method)))
        for method in dict.fromkeys(frame["method"])
    ]
    return Markup(
        '<svg class="chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" '
        'aria-label="{}"><text class="title" x="{}" y="13">{}</text>{}'
        '<line class="full" x1="{}" x2="{}" y1="{}" y2="{}"/>{}</svg>'
    ).format(
        WIDTH, HEIGHT, WIDTH, HEIGHT, title, LEFT, title, Markup("").join(ticks),
        LEFT, WIDTH - RIGHT, _y(full), _y(full), Markup("").join(lines),
    )  # fmt: skip


def key_html(methods: Sequence[str]) -> Markup:
    """Which line is which method."""
    entries = [
        Markup(
            '<span class="entry"><svg width="26" height="8" aria-hidden="true"><line x1="0" '
            'x2="26" y1="4" y2="4" stroke="{}" stroke-width="2.5" stroke-dasharray="{}"/></svg> '
            "{}</span>"
        ).format(*_style(i), method)
        for i, method in enumerate(methods)
    ]
    return Markup('<div class="key">{}</div>').format(Markup("").join(entries))


def _line(method: str, rows: pd.DataFrame, column: str, colour: str, dash: str) -> Markup:
    points = [(_x(x), _y(y), x, y) for x, y in zip(rows["bin"], rows[column], strict=True)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, *_ in points)
    dots = [
        Markup('<circle cx="{}" cy="{}" r="3" fill="{}"><title>{}</title></circle>').format(
            f"{x:.1f}", f"{y:.1f}", colour, f"{method}, {percent} %: {p:.3f}"
        )
        for x, y, percent, p in points
    ]
    return Markup(
        '<polyline points="{}" fill="none" stroke="{}" stroke-width="2" stroke-dasharray="{}"/>{}'
    ).format(path, colour, dash, Markup("").join(dots))


def _style(number: int) -> tuple[str, str]:
    return COLOURS[number % len(COLOURS)], DASHES[number // len(COLOURS) % len(DASHES)]


def _x(percent: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * percent / 100


def _y(p: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - p)
