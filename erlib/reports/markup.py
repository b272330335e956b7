"""How does content become HTML in which every character that is not ours is escaped?"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup, escape

TIGHT = 24  # characters: cells whose lines are no longer are not wrapped


class Html(Markup):
    """HTML that erlib made itself: Jupyter shows it, and it is not escaped again."""

    def _repr_html_(self) -> str:
        return str(self)


def table_html(
    frame: pd.DataFrame,
    anchor: str,
    caption: str,
    *,
    reduced: str = "",
    notes: Sequence[str] = (),
    digits: int = 2,
) -> Html:
    """A captioned table with the HTML id `anchor`.

    Numbers are right-aligned and floats rounded to `digits`. The lines of a cell after the first
    are set small under it. A named index becomes row headings; a plain range is left out.
    """
    labels = not isinstance(frame.index, pd.RangeIndex)
    names = [str(n) if n is not None else "" for n in frame.index.names] if labels else []
    head = Markup("").join(
        Markup('<th scope="col">{}</th>').format(_lines(name)) for name in [*names, *frame.columns]
    )
    body = Markup("").join(
        _row_html(index, values, labels, digits)
        for index, *values in frame.itertuples(index=True, name=None)
    )
    return Html(
        Markup(
            '<figure class="artefact" id="{}"><figcaption>{}</figcaption>{}<div class="scroll">'
            "<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></figure>"
        ).format(anchor, caption_html(anchor, caption), below_html(reduced, notes), head, body)
    )


def _row_html(index: object, values: Sequence[object], labels: bool, digits: int) -> Markup:
    keys = index if isinstance(index, tuple) else (index,)
    cells = [Markup('<th scope="row"{}>{}</th>').format(_css(k), _lines(k)) for k in keys if labels]
    cells += [
        Markup("<td{}>{}</td>").format(_css(value), _lines(cell_text(value, digits)))
        for value in values
    ]
    return Markup("<tr>{}</tr>").format(Markup("").join(cells))


def _css(value: object) -> Markup:
    """The class of a cell: numbers stand to the right, and short lines are not wrapped."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Markup(' class="number"')
    if isinstance(value, str) and max(map(len, value.split("\n"))) <= TIGHT:
        return Markup(' class="tight"')
    return Markup("")


def cell_text(value: object, digits: int = 2) -> str:
    """A cell as text: floats rounded, "–" for what is missing, our own HTML as it is."""
    if isinstance(value, Html):
        return value
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, float):
        return f"{value:.{digits}f}".replace("-", "−")
    return str(value)


SIGNS = {
    "holds": "✓", "holds (direction)": "↗", "leans with": "↑", "open": "?", "leans against": "↓",
    "no difference": "=", "fails": "✗", "not attempted": "·",
    "inconclusive": "?",  # reports made by older rules
}  # fmt: skip


def badge_html(verdict: str) -> Html:
    """A verdict as a coloured label; the sign says it without the colour."""
    css = "direction" if verdict == "holds (direction)" else verdict.replace(" ", "-")
    return Html(
        Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>').format(
            css, SIGNS[verdict], verdict
        )
    )


def _lines(text: object) -> Markup:
    if isinstance(text, Html):
        return text
    first, *rest = str(text).split("\n")
    if not rest:
        return escape(first)
    return Markup("{}<br><small>{}</small>").format(
        first, Markup("<br>").join(escape(line) for line in rest)
    )


def figure_html(image: str, anchor: str, caption: str, alt: str, *, reduced: str = "") -> Html:
    """A captioned figure; `image` is the address of the picture, a data: URI in a notebook."""
    return Html(
        Markup(
            '<figure class="artefact" id="{}"><img src="{}" alt="{}" style="max-width:100%">'
            "<figcaption>{}</figcaption>{}</figure>"
        ).format(anchor, image, alt, caption_html(anchor, caption), below_html(reduced, ()))
    )


def png_uri(png: bytes) -> str:
    """The picture as an address that needs no file."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


def examples_html(content: str, anchor: str, caption: str, *, reduced: str = "") -> Html:
    """Captioned examples: `Html` as it is, any other text escaped with its line breaks kept."""
    inside = content if isinstance(content, Html) else Markup("<pre>{}</pre>").format(content)
    return Html(
        Markup('<figure class="artefact" id="{}"><figcaption>{}</figcaption>{}{}</figure>').format(
            anchor, caption_html(anchor, caption), below_html(reduced, ()), inside
        )
    )


def caption_html(anchor: str, caption: str) -> Markup:
    """ "Table 2." in bold, linked to itself, and the caption."""
    return Markup('<a class="self" href="#{}"><strong>{}.</strong></a> {}').format(
        anchor, label(anchor.partition("-")[2]), caption
    )


def label(artefact: str) -> str:
    """An artefact's id as a reader says it: "Table 2" for table-2."""
    return artefact.replace("-", " ").capitalize()


def plain(text: str) -> str:
    """The text in Markdown in which nothing stands for anything else, such as `_` in a name."""
    return re.sub(r"([\\`*_\[\]<>&|~$])", r"\\\1", text)


def counted(n: int, noun: str) -> str:
    """How many of a thing: 1 seed, 3 seeds."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def below_html(reduced: str, notes: Sequence[str]) -> Markup:
    """What is less than in the paper, and the notes of missing cells, under the caption."""
    lines = [Markup('<p class="reduced">Reduced: {}</p>').format(reduced)] if reduced else []
    lines += [Markup('<p class="note">{}</p>').format(note) for note in notes]
    return Markup("").join(lines)
