"""How does content become HTML in which every character that is not ours is escaped?"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Sequence
from itertools import groupby

import pandas as pd
from markupsafe import Markup, escape

from erlib.reports.names import readable

WIDE = 8  # columns of a table whose columns have groups; wider ones are one table for each group
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
    tables = Markup("").join(_scrolled(part, digits) for part in _fitting(frame))
    return Html(
        Markup('<figure class="artefact" id="{}"><figcaption>{}</figcaption>{}{}</figure>').format(
            anchor, caption_html(anchor, caption), below_html(reduced, notes), tables
        )
    )


def _scrolled(frame: pd.DataFrame, digits: int) -> Markup:
    """One table in a box that scrolls where it has to."""
    labels = not isinstance(frame.index, pd.RangeIndex)
    names = [str(n) if n is not None else "" for n in frame.index.names] if labels else []
    body = Markup("").join(
        _row_html(index, values, labels, digits)
        for index, *values in frame.itertuples(index=True, name=None)
    )
    return Markup(
        '<div class="scroll"><table><thead>{}</thead><tbody>{}</tbody></table></div>'
    ).format(_head(names, list(frame.columns)), body)


def _head(names: Sequence[str], columns: Sequence[object]) -> Markup:
    """One row of headings; two where columns share the part before a slash, `Movies/ATT`."""
    grouped = _groups(columns)
    if not grouped:
        cells = [Markup('<th scope="col">{}</th>').format(_lines(c)) for c in [*names, *columns]]
        return Markup("<tr>{}</tr>").format(Markup("").join(cells))
    over = [Markup('<th scope="col" rowspan="2">{}</th>').format(_lines(name)) for name in names]
    over += [
        Markup('<th scope="colgroup" colspan="{}">{}</th>').format(len(list(run)), _lines(group))
        for group, run in groupby(grouped, key=lambda pair: pair[0])
    ]
    leaves = [Markup('<th scope="col">{}</th>').format(_lines(leaf)) for _, leaf in grouped]
    return Markup("<tr>{}</tr><tr>{}</tr>").format(Markup("").join(over), Markup("").join(leaves))


def _groups(columns: Sequence[object]) -> list[tuple[str, str]]:
    """(what is over it, what is left) of each column, `a/x` or `a/x` over `for b/x`; none where
    not all columns are such, or no two share what is over them."""
    pairs = []
    for column in columns:
        halves = [line.rpartition("/") for line in str(column).split("\n")]
        leaves = {leaf for _, _, leaf in halves}
        if not all(group for group, _, _ in halves) or len(leaves) > 1:
            return []
        pairs.append(("\n".join(group for group, _, _ in halves), leaves.pop()))
    return pairs if len({group for group, _ in pairs}) < len(pairs) else []


def _fitting(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The table, or where it is too wide to be read one for each group of columns."""
    grouped = _groups(list(frame.columns))
    if len(grouped) <= WIDE:
        return [frame]
    places: dict[str, list[int]] = {}
    for place, (group, _) in enumerate(grouped):
        places.setdefault(group, []).append(place)
    return [frame.iloc[:, columns] for columns in places.values()]


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
    first, *rest = readable(str(text)).split("\n")
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
