"""What was found, in a few sentences made from the verdicts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from erlib.reports.markup import Html, counted
from erlib.reports.recorded import Row, interval, short, statements, tally

GROUPS: Mapping[str, tuple[str, ...]] = {
    "What held": ("holds", "holds (direction)"),
    "What did not": ("fails", "no difference"),
    "What leans": ("leans with", "leans against"),
}
MOST = 4  # findings of a group that are told; the others are counted


def findings_html(rows: Sequence[Row], *, first: str = "", anchored: bool = False) -> Html:
    """What held of a paper's claims, what did not and what leans, each with our effect, its
    interval and the paper's. `first`: what has to be known before; `anchored`: every claim has an
    anchor of its own on the page."""
    if not rows:
        return Html("")
    said = [_group(title, words, rows, anchored) for title, words in GROUPS.items()]
    return Html(
        Markup('<div class="findings">{}<p>{}: {}.</p><ul>{}</ul></div>').format(
            Markup("<p>{}</p>").format(first) if first else "",
            f"Of {counted(len(rows), 'claim')}",
            tally(rows),
            Markup("").join(said) or Markup("<li>No claim was decided here.</li>"),
        )
    )


def _group(title: str, words: Sequence[str], rows: Sequence[Row], anchored: bool) -> Markup:
    """One item of the list; nothing where no claim has such a verdict."""
    chosen = [r for r in rows if r["verdict"] in words]
    if not chosen:
        return Markup("")
    told = Markup("; ").join(_told(r, words[0], anchored) for r in chosen[:MOST])
    more = f"; and {len(chosen) - MOST} more" if len(chosen) > MOST else ""
    return Markup("<li><strong>{}.</strong> {}{}.</li>").format(title, told, more)


def _told(row: Row, usual: str, anchored: bool) -> Markup:
    """What the paper says, our effect beside its own, and the verdict where it needs a word."""
    says = statements(row["paper"])[row["claim"]]["criterion"]["says"]
    numbers = f"{short(row['our_value'])} {row['unit']}, {interval(row)}"
    theirs = f"; paper {short(row['paper_value'])}" if row["paper_value"] else ""
    word = "" if row["verdict"] == usual else f", {row['verdict']}"
    place = row["claim"] if anchored else "claims"
    link = Markup('<a href="#{}-{}">{}</a>').format(row["paper"], place, row["claim"])
    return Markup("{} ({}{}: {}{})").format(says, link, word, numbers, theirs)
