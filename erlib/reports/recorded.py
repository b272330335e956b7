"""How are verdicts put down, and shown from what was put down?

`reports/<profile>/claims.csv` has a row for each claim, claims_parts.csv one for each part.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from erlib.catalogue import paper as paper_named
from erlib.metrics.estimates import Mean
from erlib.reports.artefacts import show
from erlib.reports.ledger import known_paper, read_rows, replace_rows, reports_folder
from erlib.reports.markup import Html, badge_html, counted, label, table_html
from erlib.reports.names import readable, readable_part
from erlib.reports.parts import Part
from erlib.reports.reasons import listed, reason
from erlib.reports.verdicts import VERBS, Verdict

CLAIMS, PARTS = "claims.csv", "claims_parts.csv"
BESIDE = ("t_low", "t_high", "bootstrap_low", "bootstrap_high", "sign_flip_p")
Row = Mapping[str, str]


@cache
def statements(paper: str) -> dict[str, dict[str, Any]]:
    """A paper's claims as they are written: statement, source, unit, by id."""
    return {c["id"]: c for c in tomllib.loads(paper_named(paper).claims_text())["claim"]}


def record(
    paper: str,
    verdicts: Mapping[str, Verdict],
    *,
    profile: str,
    notes: Mapping[str, str] | None = None,
    root: Path | str | None = None,
) -> None:
    """Put a paper's verdicts in place of all that it had.

    `notes`: by claim, a deviation from the paper that the reader of its verdict has to know.
    """
    folder = reports_folder(profile, root)
    said = notes or {}
    claims = [claim_row(paper, name, one, said.get(name, "")) for name, one in verdicts.items()]
    parts = [
        {"paper": paper, "claim": name, **part_row(part)}
        for name, one in verdicts.items()
        for part in one.parts
    ]
    replace_rows(folder / CLAIMS, known_paper(paper), claims)
    replace_rows(folder / PARTS, paper, parts)


def claim_row(paper: str, claim: str, verdict: Verdict, note: str = "") -> dict[str, str]:
    """The claim's row; its numbers are those of the part that stands for it."""
    written, part = statements(paper)[claim], verdict.part
    interval = part.interval() if part else None
    return {
        "paper": paper,
        "claim": claim,
        "statement": written["statement"],
        "paper_value": _text(part.paper) if part else "",
        "our_value": _text(part.ours) if part else "",
        "ci_low": _text(interval.low) if interval else "",
        "ci_high": _text(interval.high) if interval else "",
        "seeds": str(part.seeds if part else 0),
        "texts": str(part.texts if part else 0),
        "verdict": verdict.word,
        "reason": verdict.reason,
        "source": " ".join(written["source"]),
        "part": part.name if part else "",
        "unit": written["unit"],
        "scale": part.contrast.scale if part else "",
        "no_effect": _text(part.null) if part else "",
        "lost": str(verdict.lost),
        "note": note,
    }


def part_row(part: Part) -> dict[str, str]:
    """The part's row: what it asks, what was found, and the other tests beside."""
    numbers: dict[str, float] = {"paper_value": part.paper, "our_value": part.ours}
    for confidence in (0.95, 0.90, 0.80):
        found = part.interval(confidence)
        level = f"{100 * confidence:.0f}"
        numbers |= {f"low_{level}": found.low, f"high_{level}": found.high}
    numbers |= dict.fromkeys(BESIDE, math.nan)
    if part.evidence is not None:
        plain, two_level, sign_flip = part.evidence.beside()
        ends = (plain.low, plain.high, two_level.low, two_level.high)
        numbers |= dict(zip(BESIDE, (*map(part.printed, ends), sign_flip), strict=True))
    mean = part.estimate if isinstance(part.estimate, Mean) else None
    numbers["of_texts"] = mean.of_texts if mean and mean.seeds > 1 else math.nan
    numbers["detectable"] = part.detectable if part.question else math.nan
    needs = part.needs if part.undecided else None
    return {
        "part": part.name,
        "rule": part.contrast.rule,
        "side": {1: "above", -1: "below"}.get(part.contrast.side or 0, ""),
        "scale": part.contrast.scale,
        "pool": part.contrast.pool,
        "cells": f"{len(part.cells)} of {part.named}",
        "no_effect": _text(part.null),
        **{name: _text(value) for name, value in numbers.items()},
        "seeds": str(part.seeds),
        "texts": str(part.texts),
        "untrained": str(part.untrained),
        "verdict": part.tested.word,
        "needs_seeds": str(needs.seeds) if needs else "",
        "needs_texts": str(needs.texts) if needs and needs.texts else "",
        "reason": reason(part),
    }


def claims_table(paper: str, profile: str, root: Path | str | None = None) -> None:
    """Show a paper's claims with their verdicts, the parts of each folded under it."""
    anchor = f"{known_paper(paper)}-claims"
    rows = counted(len(claim_rows(paper, profile, root)), "row")
    show(claims_html(paper, profile, root), f"{anchor}: {rows}")


def claims_html(paper: str, profile: str, root: Path | str | None = None) -> Html:
    """The table of `claims_table`."""
    rows = claim_rows(paper, profile, root)
    parts = read_rows(reports_folder(profile, root) / PARTS)
    of_claim = {r["claim"]: [p for p in parts if p["claim"] == r["claim"]] for r in rows}
    frame = pd.DataFrame(
        {
            "claim": pd.Series([_linked(r) for r in rows], dtype=object),
            "statement": pd.Series([_told(r, of_claim[r["claim"]]) for r in rows], dtype=object),
            "paper": [short(r["paper_value"]) for r in rows],
            "ours": [f"{short(r['our_value'])}\n{interval(r)}" for r in rows],
            "seeds": [int(r["seeds"]) for r in rows],
            "verdict": pd.Series([badge_html(r["verdict"]) for r in rows], dtype=object),
        }
    )
    return table_html(frame, f"{paper}-claims", f"{counted(len(rows), 'claim')}: {tally(rows)}.")


def _linked(row: Row) -> Html:
    """The claim's id, and under it links to the tables and figures that it is read from."""
    links = [
        Markup('<a href="#{}-{}">{}</a>').format(row["paper"], source, label(source))
        for source in row["source"].split()
    ]
    return Html(Markup("{}<br><small>{}</small>").format(row["claim"], Markup(", ").join(links)))


def _told(row: Row, parts: Sequence[Row]) -> Html:
    lost = f"{counted(int(row['lost']), 'seed')} lost." if row["lost"] not in ("", "0") else ""
    below = " ".join(filter(None, (row["reason"], f"Unit: {row['unit']}.", lost, row["note"])))
    text = Markup("{}<br><small>{}</small>").format(row["statement"], readable(below))
    return Html(text + folded(parts) if len(parts) > 1 else text)


def folded(parts: Sequence[Row]) -> Html:
    """Every part of a claim in one line each, behind a summary."""
    cells = ("part", "ours", "interval", "seeds", "texts", "verdict")
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(name) for name in cells)
    lines = Markup("").join(
        Markup(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>"
        ).format(
            readable_part(row["part"]),
            short(row["our_value"]),
            _ends(row["low_95"], row["high_95"]),
            row["seeds"],
            row["texts"],
            badge_html(row["verdict"]),
        )
        for row in parts
    )
    return Html(
        Markup(
            '<details class="parts"><summary>{}</summary><div class="scroll"><table><thead><tr>{}'
            "</tr></thead><tbody>{}</tbody></table></div></details>"
        ).format(counted(len(parts), "part"), head, lines)
    )


def tally(rows: Sequence[Row]) -> str:
    """How many rows of claims.csv have each verdict: "3 hold, 1 is open"."""
    given = [r["verdict"] for r in rows]
    return ", ".join(f"{n} {verdict_verb(v, n)}" for v in VERBS if (n := given.count(v)))


def verdict_verb(verdict: str, n: int) -> str:
    """The verdict of n claims as a verb: "holds" of one, "hold" of two."""
    return VERBS[verdict][n > 1]


def summarise(
    paper: str, profile: str, root: Path | str | None = None, *, core: Sequence[str] = ()
) -> str:
    """One paragraph on how the paper fared, made from the recorded verdicts alone.

    Of the `core` claims that were attempted it also says what was measured.
    """
    rows = claim_rows(paper, profile, root)
    if not any(r["our_value"] for r in rows):
        total = len(statements(paper))
        return f"None of the {total} claims has been evaluated in the {profile} profile."
    groups = {v: [r["claim"] for r in rows if r["verdict"] == v] for v in VERBS}
    said = [
        f"{'all' if len(ids) == len(rows) > 1 else listed(ids)} {verdict_verb(v, len(ids))}"
        for v, ids in groups.items()
        if ids
    ]
    text = f"{counted(len(rows), 'claim')} in the {profile} profile: {'; '.join(said)}."
    numbers = [
        f"{r['claim']} {verdict_verb(r['verdict'], 1)} ({readable_part(r['part'])}: "
        f"{short(r['our_value'])}, {interval(r)}; paper {short(r['paper_value'])})"
        for r in rows
        if r["claim"] in core and r["our_value"] and r["verdict"] != "not attempted"
    ]
    return f"{text} {'; '.join(numbers)}." if numbers else text


def by_chance(rows: Sequence[Row]) -> str:
    """How many decided claims may be wrong by chance alone; each has its own 5 %."""
    tried = sum(r["verdict"] != "not attempted" for r in rows)
    if not tried:
        return ""
    return (
        f"Each claim has its own 5 %: of {counted(tried, 'claim')} attempted, "
        f"some {max(1, round(tried / 20))} could be decided wrongly by chance."
    )


def claim_rows(paper: str, profile: str, root: Path | str | None = None) -> list[dict[str, str]]:
    """A paper's rows of claims.csv."""
    rows = read_rows(reports_folder(profile, root) / CLAIMS)
    return [r for r in rows if r["paper"] == known_paper(paper)]


def _text(value: float) -> str:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return "" if math.isnan(value) else f"{round(value, 9):.6g}"


def short(value: str) -> str:
    """A number of claims.csv for reading: three digits, a true minus, "–" where there is none."""
    return f"{round(float(value), 6):.3g}".replace("-", "−").replace("inf", "∞") if value else "–"


def interval(row: Row) -> str:
    """The interval of a row of claims.csv for reading."""
    return _ends(row["ci_low"], row["ci_high"])


def _ends(low: str, high: str) -> str:
    return f"{short(low)} to {short(high)}" if low else "no interval"
