"""How do scores look on the words of a text?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from markupsafe import Markup

from erlib.reports.markup import Html

# Blue for, orange against: told apart by colour-blind readers, on white or on black.
FOR, AGAINST, NEUTRAL = (0, 114, 178), (213, 94, 0), (255, 255, 255)
UNDEFINED = (200, 200, 200)
APART = Markup("<br>")  # before the second text of a pair


class Scored(Protocol):
    """Anything with tokens and one score per token: an `Attribution`, say."""

    @property
    def tokens(self) -> Sequence[str]: ...

    @property
    def scores(self) -> np.ndarray: ...


def heatmap(
    attributions: Sequence[Scored],
    *,
    titles: Sequence[str] | None = None,
    rationales: Sequence[Sequence[int] | None] | None = None,
) -> Html:
    """Each text as a line of coloured words: blue for the class, orange against it.

    Colour is score / largest |score| of that text; the value is in each word's tooltip. Words of
    the rationale are underlined: `rationales`, or each attribution's own `rationale` if it has one.
    """
    given = rationales or [getattr(a, "rationale", None) for a in attributions]
    names = titles or [""] * len(attributions)
    if not len(attributions) == len(given) == len(names):
        raise ValueError(
            f"{len(attributions)} texts, {len(given)} rationales and {len(names)} titles"
        )
    lines = [line_html(a, n, r) for a, n, r in zip(attributions, names, given, strict=True)]
    signed = any(np.any(np.asarray(a.scores) < 0) for a in attributions)
    legend = legend_html(signed, any(r is not None for r in given))
    return Html(Markup('<div class="heatmap">{}{}</div>').format(legend, Markup("").join(lines)))


def heatmap_grid(
    rows: Mapping[str, Sequence[Scored]],
    *,
    columns: Sequence[str],
    title: str,
    rationale: Sequence[int] | None = None,
    legend: bool = True,
) -> Html:
    """One text many times: a named row of attributions, one in each of the columns."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(c) for c in columns)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            name,
            Markup("").join(
                Markup('<td style="text-align:left;vertical-align:top">{}</td>').format(
                    line_html(a, "", rationale)
                )
                for a in attributions
            ),
        )
        for name, attributions in rows.items()
    )
    everything = [a for attributions in rows.values() for a in attributions]
    signed = any(np.any(np.asarray(a.scores) < 0) for a in everything)
    key = legend_html(signed, rationale is not None) if legend else ""
    return Html(
        Markup(
            '<div class="heatmap">{}<p style="font-weight:600">{}</p><div class="scroll"><table>'
            "<thead><tr><th></th>{}</tr></thead><tbody>{}</tbody></table></div></div>"
        ).format(key, title, head, body)
    )


def line_html(
    text: Scored,
    title: str,
    rationale: Sequence[int] | None,
    places: Sequence[str] | None = None,
) -> Markup:
    """One text as a line of coloured words under its title; of a pair, two lines of one scale.

    `places` puts a name on every word (`data-place`), by which a page knows which was clicked.
    """
    scores = np.asarray(text.scores, dtype=np.float64)
    if len(text.tokens) != scores.size or (rationale is not None and len(rationale) != scores.size):
        raise ValueError(
            f"{len(text.tokens)} tokens have {scores.size} scores and a rationale of "
            f"{scores.size if rationale is None else len(rationale)}"
        )
    largest = float(np.nanmax(np.abs(scores), initial=0.0)) if scores.size else 0.0
    marked = rationale if rationale is not None else [0] * scores.size
    named = places if places is not None else [""] * scores.size
    segments = list(getattr(text, "segment", None) or [0] * scores.size)
    second = segments.index(1) if 1 in segments and 0 in segments else -1
    words = Markup(" ").join(
        APART * (i == second) + _word(token, float(score), largest, bool(mark), place)
        for i, (token, score, mark, place) in enumerate(
            zip(text.tokens, scores, marked, named, strict=True)
        )
    )
    heading = (
        Markup('<div style="font-size:.85em;opacity:.75">{}</div>').format(title) if title else ""
    )
    return Markup('<div class="text" dir="auto" style="margin:.5em 0;line-height:1.9">{}{}</div>'
                  ).format(heading, words)  # fmt: skip


def _word(token: str, score: float, largest: float, marked: bool, place: str) -> Markup:
    strength = score / largest if largest else 0.0
    colour = UNDEFINED if math.isnan(score) else _mix(strength)
    line = ";text-decoration:underline;text-decoration-thickness:2px" if marked else ""
    said = "undefined" if math.isnan(score) else f"{score:.4g}".replace("-", "−")
    named = Markup(' data-place="{}"').format(place) if place else ""
    return Markup('<span{} title="{}" style="{}">{}</span>').format(
        named, f"{token}: {said}" + (" (rationale)" if marked else ""), _chip(colour) + line, token
    )


def legend_html(signed: bool, rationale: bool) -> Markup:
    """Which colour stands for which share of a text's largest score."""
    values = (-1.0, -0.5, 0.0, 0.5, 1.0) if signed else (0.0, 0.5, 1.0)
    steps = Markup("").join(
        Markup('<span style="{}">{}</span>').format(_chip(_mix(s)), f"{s:g}".replace("-", "−"))
        for s in values
    )
    scale = Markup("against {} for" if signed else "{}").format(steps)
    marked = Markup(" · <u>underlined</u>: rationale") if rationale else ""
    return Markup(
        '<div class="legend" style="font-size:.85em;margin-bottom:.4em">{} '
        "(share of the text’s largest score){}</div>"
    ).format(scale, marked)


def _mix(strength: float) -> tuple[int, int, int]:
    """White at 0, the full colour at ±1."""
    end = FOR if strength >= 0 else AGAINST
    s = min(abs(strength), 1.0)
    red, green, blue = (round(n + (e - n) * s) for n, e in zip(NEUTRAL, end, strict=True))
    return red, green, blue


def _chip(colour: tuple[int, int, int]) -> str:
    """Background and text colour are both said, so that dark pages stay readable."""
    text = max(("#000", "#fff"), key=lambda c: _contrast(colour, 0 if c == "#000" else 255))
    return f"background:rgb{colour};color:{text};padding:.1em .25em;border-radius:.2em".replace(
        ", ", ","
    )


def _contrast(colour: tuple[int, int, int], text: int) -> float:
    """WCAG's contrast ratio of a colour with a grey text."""
    a, b = sorted((_luminance(colour), _luminance((text, text, text))))
    return (b + 0.05) / (a + 0.05)


def _luminance(colour: tuple[int, int, int]) -> float:
    linear = [
        v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4
        for v in (c / 255 for c in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
