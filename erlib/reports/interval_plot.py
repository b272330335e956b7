"""How do our interval and the paper's value lie to each other? A small picture to scale."""

from __future__ import annotations

import math

from markupsafe import Markup

from erlib.reports.markup import Html
from erlib.reports.recorded import Row, interval, short

KEY = Html(
    '<svg width="60" height="18" viewBox="0 0 60 18" aria-hidden="true"><line x1="6" x2="40" y1="9"'
    ' y2="9" stroke="#3d96cf" stroke-width="3" stroke-linecap="round"/><circle cx="23" cy="9" r="4"'
    ' fill="#3d96cf"/><path d="M50 4l5 5l-5 5l-5 -5z" fill="none" stroke="#e0732b" stroke-width="2"'
    "/></svg>"
)


def interval_svg(row: Row) -> Html:
    """Our interval and estimate (line, dot), no effect (dots), the paper's (diamond), to scale."""
    read = {k: float(row[k]) for k in ("ci_low", "ci_high", "our_value", "paper_value") if row[k]}
    numbers = {k: value for k, value in read.items() if math.isfinite(value)}
    if "our_value" not in numbers:
        return Html("")
    null = float(row["no_effect"])
    low, high = min(null, *numbers.values()), max(null, *numbers.values())
    span = (high - low) or 1.0
    at = {k: 6 + 108 * (v - low) / span for k, v in {**numbers, "null": null}.items()}
    shapes = [
        f'<line x1="{at["null"]:.1f}" x2="{at["null"]:.1f}" y1="1" y2="17" stroke="currentColor" '
        'stroke-dasharray="2 2"/>'
    ]
    if "ci_low" in at and "ci_high" in at:
        shapes.append(
            f'<line x1="{at["ci_low"]:.1f}" x2="{at["ci_high"]:.1f}" y1="9" y2="9" '
            'stroke="#3d96cf" stroke-width="3" stroke-linecap="round"/>'
        )
    shapes.append(f'<circle cx="{at["our_value"]:.1f}" cy="9" r="4" fill="#3d96cf"/>')
    if "paper_value" in at:
        x = at["paper_value"]
        shapes.append(
            f'<path d="M{x:.1f} 4l5 5l-5 5l-5 -5z" fill="none" stroke="#e0732b" stroke-width="2"/>'
        )
    frame = '<svg width="120" height="18" viewBox="0 0 120 18" role="img" aria-label="{}">{}</svg>'
    return Html(Markup(frame).format(_said(row), Markup("".join(shapes))))


def _said(row: Row) -> str:
    return f"ours {short(row['our_value'])}, {interval(row)}; paper {short(row['paper_value'])}"
