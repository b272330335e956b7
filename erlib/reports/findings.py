"""What was found, in a few sentences made from the verdicts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from erlib.reports.interval_plot import interval_svg
from erlib.reports.markup import Html, counted
from erlib.reports.recorded import Row, interval, short, statements, tally

GROUPS: Mapping[str, tuple[str, ...]] = {
    "What held": ("holds", "holds (direction)"),
    "What did not": ("fails", "no difference"),
    "What leans": ("leans with", "leans against"),
}
OPEN: Mapping[str, tuple[str, ...]] = {
    "What the runs leave open": ("open", "inconclusive"),
    "What was not attempted": ("not attempted",),
}
MOST = 4  # findings of a group that are told; the others are counted


def findings_html(rows: Sequence[Row], *, first: str = "", on_index: bool = False) -> Html:
    """What held of a paper's claims, what did not and what leans, each with our effect, its
    interval and the paper's. `first`: what has to be known before; `on_index`: every claim has an
    anchor of its own on the page, its effect a picture, and what is open is counted too."""
    if not rows:
        return Html("")
    told = [_group(title, words, rows, on_index) for title, words in GROUPS.items()]
    told = [group for group in told if group] or [Markup("<li>No claim was decided here.</li>")]
    left = [_counted(title, words, rows, on_index) for title, words in OPEN.items()]
    return Html(
        Markup('<div class="findings">{}<p>{}: {}.</p><ul>{}</ul></div>').format(
            Markup("<p>{}</p>").format(first) if first else "",
            f"Of {counted(len(rows), 'claim')}",
            tally(rows),
            Markup("").join(told + (left if on_index else [])),
        )
    )


def _group(title: str, words: Sequence[str], rows: Sequence[Row], on_index: bool) -> Markup:
    """One item of the list, with an item for each claim; nothing where none has such a verdict."""
    chosen = [r for r in rows if r["verdict"] in words]
    if not chosen:
        return Markup("")
    told = [_told(r, words[0], on_index) for r in chosen[:MOST]]
    if len(chosen) > MOST:
        told.append(Markup("<li>and {} more.</li>").format(len(chosen) - MOST))
    return Markup("<li><strong>{}.</strong><ul>{}</ul></li>").format(title, Markup("").join(told))


def _counted(title: str, words: Sequence[str], rows: Sequence[Row], on_index: bool) -> Markup:
    """How many claims have such a verdict, and which."""
    chosen = [r for r in rows if r["verdict"] in words]
    if not chosen:
        return Markup("")
    links = Markup(", ").join(_link(r, on_index) for r in chosen)
    return Markup("<li><details><summary>{}: {}.</summary> {}</details></li>").format(
        title, counted(len(chosen), "claim"), links
    )


def _told(row: Row, usual: str, on_index: bool) -> Markup:
    """What the paper says, our effect beside its own, and the verdict where it needs a word."""
    says = statements(row["paper"])[row["claim"]]["criterion"]["says"]
    numbers = f"{short(row['our_value'])} {row['unit']}, {interval(row)}"
    theirs = f"; paper {short(row['paper_value'])}" if row["paper_value"] else ""
    word = "" if row["verdict"] == usual else f", {row['verdict']}"
    return Markup("<li>{} ({}{}: {}{}) {}</li>").format(
        says, _link(row, on_index), word, numbers, theirs, interval_svg(row) if on_index else ""
    )


def _link(row: Row, on_index: bool) -> Markup:
    place = row["claim"] if on_index else "claims"
    return Markup('<a href="#{}-{}">{}</a>').format(row["paper"], place, row["claim"])
