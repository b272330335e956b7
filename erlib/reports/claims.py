"""What did the paper find, and what do our runs say of it?

Findings are data (`erlib/claims/<paper>.toml`); their verdicts are computed by
`erlib.metrics.verdicts` and collected in `reports/<profile>/claims.csv`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, TypeVar

import pandas as pd
from markupsafe import Markup

from erlib.errors import unknown
from erlib.metrics.verdicts import (
    MIN_SEEDS,
    VERDICTS,
    Decision,
    decide_corr,
    decide_nil,
    decide_pair,
    decide_parts,
    decide_quartile,
    decide_share,
    decide_spread,
)
from erlib.reports.artefacts import show
from erlib.reports.ledger import known_paper, read_rows, reports_folder, upsert
from erlib.reports.markup import Html, badge_html, counted, label, table_html
from erlib.reports.paper_numbers import paper_table

Given = TypeVar("Given", bound=Mapping[str, Any])  # what was measured of one part

RULES: dict[str, Callable[..., Decision]] = {
    "PAIR": decide_pair,
    "NIL": decide_nil,
    "CORR": decide_corr,
    "SPREAD": decide_spread,
    "QUARTILE": decide_quartile,
    "SHARE": decide_share,
    "COMBINE": lambda decision, alpha=0.05: decision,  # already decided, at its own level
}


@dataclass(frozen=True)
class ClaimPart:
    """One thing to measure for a claim; `paper` is its effect, ratio or share in the paper."""

    name: str
    rule: str
    paper: float | None
    margin: float | None = None
    side: int | None = None
    limit: float | None = None
    few_texts: bool = False
    each: bool = False
    by_column: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> ClaimPart:
        """This part as `name` has it: one of `each`, "over SMaT IMDb", has its column's effect."""
        column = name.removeprefix(self.name).strip()
        return replace(self, paper=self.by_column.get(column, self.paper))

    def rule_for(self, measured: Mapping[str, Any]) -> Callable[..., Decision]:
        """The rule with what was measured and what the claim asks for; it still takes `alpha`."""
        asked: dict[str, Any] = {
            "PAIR": {"paper_effect": self.paper, "margin": self.margin, "side": self.side},
            "NIL": {
                "paper_effect": self.paper,
                "margin": self.margin,
                "few_texts": self.few_texts,
            },
            "CORR": {},
            "SPREAD": {"paper_ratio": self.paper},
            "QUARTILE": {"paper_effect": self.paper, "margin": self.margin, "side": self.side},
            "SHARE": {"paper_share": self.paper, "limit": self.limit},
            "COMBINE": {},
        }[self.rule]
        return partial(RULES[self.rule], **measured, **asked)


@dataclass(frozen=True)
class Claim:
    """A finding of a paper, with the rule that decides it."""

    paper: str
    id: str
    statement: str
    source: tuple[str, ...]
    unit: str
    need: Literal["all", "most"]
    decides: tuple[str, ...]
    parts: tuple[ClaimPart, ...]

    def part(self, name: str) -> ClaimPart:
        """The part of that name; `each` parts match whatever begins with their name and a blank."""
        exact = [p for p in self.parts if p.name == name]
        begun = [p for p in self.parts if p.each and name.startswith(f"{p.name} ")]
        found = exact or sorted(begun, key=lambda p: -len(p.name))
        if not found:
            raise unknown(f"part of {self.id}", name, [p.name for p in self.parts])
        return found[0].of(name)


@cache
def claims(paper: str) -> dict[str, Claim]:
    """All claims of a paper by id, in its order."""
    path = files("erlib") / "claims" / f"{known_paper(paper)}.toml"
    if not path.is_file():
        raise ValueError(
            f"the claims of {paper} are not written down yet: erlib/claims has no file"
        )
    listed = tomllib.loads(path.read_text(encoding="utf-8"))["claim"]
    return {entry["id"]: _claim(paper, entry) for entry in listed}


def _claim(paper: str, entry: Mapping[str, Any]) -> Claim:
    return Claim(
        paper=paper,
        id=entry["id"],
        statement=entry["statement"],
        source=tuple(entry["source"]),
        unit=entry["unit"],
        need=entry.get("need", "all"),
        decides=tuple(entry.get("decides", ())),
        parts=tuple(_part(paper, entry["rule"], dict(part)) for part in entry["parts"]),
    )


def _part(paper: str, rule: str, entry: dict[str, Any]) -> ClaimPart:
    rule = entry.pop("rule", rule)
    cells: dict[str, Any] = {
        k: entry.pop(k) for k in ("table", "column", "metric", "from", "to") if k in entry
    }
    printed = entry.pop("paper", None)
    if not cells:
        return ClaimPart(rule=rule, paper=printed, **entry)
    columns = [cells["column"]] if isinstance(cells["column"], str) else cells["column"]
    effects = {c: _paper_value(paper, rule, {**cells, "column": c}) for c in columns}
    mean = round(sum(effects.values()) / len(effects), 6)
    return ClaimPart(rule=rule, paper=mean, by_column=effects, **entry)


def _paper_value(paper: str, rule: str, cells: Mapping[str, Any]) -> float:
    """The paper's effect in a column, to − from, or ratio of variances, from its tables."""
    table = paper_table(paper, cells["table"])
    if "metric" in cells:
        table = table[table["metric"] == cells["metric"]]
    cell = table.set_index(["row", "column"])
    before, after = (cell.loc[(cells[end], cells["column"])] for end in ("from", "to"))
    if rule == "SPREAD":
        return round(float((after["std"] / before["std"]) ** 2), 6)
    return round(float(after["mean"] - before["mean"]), 6)


def claim(paper: str, claim_id: str) -> Claim:
    """One claim by id."""
    found = claims(paper)
    if claim_id not in found:
        raise unknown(f"claim of {paper}", claim_id, found)
    return found[claim_id]


_NONE = float("nan")
UNDECIDED = Decision(
    _NONE, _NONE, _NONE, 0, _NONE, "inconclusive", "no part that decides was measured", _NONE
)


def decide(paper: str, claim_id: str, measured: Mapping[str, Mapping[str, Any]]) -> Decision:
    """The claim's verdict from what was measured of its parts.

    `measured`: part → the arguments of its rule, {"differences": d, "per_text": […]} for PAIR and
    NIL, {"treated": …, "baseline": …} for SPREAD and QUARTILE, {"x", "y", "system", "seeds"} for
    CORR, {"successes", "trials"} for SHARE, {"decision"} for COMBINE. Parts that are not among
    them are named in the reason, and a claim that needs them all is then not decided in its favour;
    without any part that decides it is inconclusive.
    Parts that do not decide are decided together, too, with Holm among themselves.
    """
    finding = claim(paper, claim_id)
    if not measured:
        raise ValueError(f"nothing was measured for {claim_id}")
    rules = {name: finding.part(name).rule_for(given) for name, given in measured.items()}
    deciding = {n: r for n, r in rules.items() if _decides(finding, n)}
    decision = decide_parts(deciding, need=finding.need) if deciding else UNDECIDED
    if others := {n: r for n, r in rules.items() if n not in deciding}:
        decision = replace(decision, parts={**decision.parts, **decide_parts(others).parts})
    return _without(decision, finding, [finding.part(n).name for n in measured])


def decidable(parts: Mapping[str, Given]) -> dict[str, Given]:
    """The parts with three seeds or more; all of them where none has as many."""
    enough = {name: given for name, given in parts.items() if _seeds(given) >= MIN_SEEDS}
    return enough or dict(parts)


def _seeds(given: Mapping[str, Any]) -> int:
    return given["trials"] if "trials" in given else len(given["differences"])


def _decides(finding: Claim, name: str) -> bool:
    return not finding.decides or finding.part(name).name in finding.decides


def _without(decision: Decision, finding: Claim, measured: list[str]) -> Decision:
    absent = [p.name for p in finding.parts if p.name not in measured and _decides(finding, p.name)]
    if not absent:
        return decision
    reason = f"{decision.reason}; left out (too few seeds) or not measured: {', '.join(absent)}"
    if finding.need == "all" and decision.verdict.startswith("holds"):
        return replace(decision, verdict="inconclusive", reason=reason)
    return replace(decision, reason=reason)


def record(
    paper: str,
    claim_id: str,
    decision: Decision,
    *,
    profile: str,
    our_value: float | None = None,
    lost: int = 0,
    note: str = "",
    root: Path | str | None = None,
) -> None:
    """Enter the verdict in claims.csv, in place of an earlier one.

    `our_value` is the decision's estimate unless given; `lost`: how many seeds were lost; `note`: a
    deviation from the paper that the reader of this verdict has to know.
    """
    finding = claim(paper, claim_id)
    row = {
        "paper": paper,
        "claim": claim_id,
        "statement": finding.statement,
        "paper_value": _text(decision.paper),
        "our_value": _text(decision.estimate if our_value is None else our_value),
        "ci_low": _text(decision.ci_low),
        "ci_high": _text(decision.ci_high),
        "seeds": decision.n,
        "verdict": decision.verdict,
        "reason": decision.reason,
        "source": " ".join(finding.source),
        "part": decision.part,
        "no_effect": _text(decision.null),
        "unit": finding.unit,
        "lost": lost,
        "note": note,
    }
    upsert(reports_folder(profile, root) / "claims.csv", row, key=("paper", "claim"))


def claims_table(paper: str, profile: str, root: Path | str | None = None) -> None:
    """Show the paper's claims that have been evaluated, with their verdicts."""
    rows = _recorded(paper, profile, root)
    frame = pd.DataFrame(
        {
            "claim": pd.Series([_linked(r) for r in rows], dtype=object),
            "statement": [f"{r['statement']}\n{_because(r)}" for r in rows],
            "paper": [short(r["paper_value"]) for r in rows],
            "ours": [f"{short(r['our_value'])}\n{interval(r)}" for r in rows],
            "seeds": [int(r["seeds"]) for r in rows],
            "verdict": pd.Series([badge_html(r["verdict"]) for r in rows], dtype=object),
        }
    )
    anchor = f"{known_paper(paper)}-claims"
    caption = f"{len(rows)} of {len(claims(paper))} evaluated: {tally(rows)}."
    show(table_html(frame, anchor, caption), f"{anchor}: {len(rows)} rows")


def _linked(row: Mapping[str, str]) -> Html:
    """The claim's id, and under it links to the tables and figures that it is read from."""
    links = [
        Markup('<a href="#{}-{}">{}</a>').format(row["paper"], source, label(source))
        for source in row["source"].split()
    ]
    return Html(Markup("{}<br><small>{}</small>").format(row["claim"], Markup(", ").join(links)))


def tally(rows: Sequence[Mapping[str, str]]) -> str:
    """How many rows of claims.csv have each verdict: "3 hold, 1 is inconclusive"."""
    given = [r["verdict"] for r in rows]
    return ", ".join(f"{n} {verdict_verb(v, n)}" for v in VERDICTS if (n := given.count(v)))


def _because(row: Mapping[str, str]) -> str:
    lost = f" {counted(int(row['lost']), 'seed')} lost." if row["lost"] != "0" else ""
    return f"{row['reason']} ({row['unit']}).{lost} {row['note']}".strip()


def summarise(
    paper: str, profile: str, root: Path | str | None = None, *, core: Sequence[str] = ()
) -> str:
    """One paragraph on how the paper fared, made from the recorded verdicts alone.

    Of the `core` claims it also says what was measured.
    """
    rows = _recorded(paper, profile, root)
    total = len(claims(paper))
    if not rows:
        return f"None of the {total} claims has been evaluated in the {profile} profile."
    groups = {v: [r["claim"] for r in rows if r["verdict"] == v] for v in VERDICTS}
    said = [
        f"{'all' if len(ids) == len(rows) > 1 else _listed(ids)} {verdict_verb(v, len(ids))}"
        for v, ids in groups.items()
        if ids
    ]
    text = f"{len(rows)} of {total} claims evaluated in the {profile} profile: {'; '.join(said)}."
    few = [r["claim"] for r in rows if int(r["seeds"]) < 3]
    if few:
        which = "All of them" if len(few) == len(rows) else _listed(few)
        verb = "rests" if which != "All of them" and len(few) == 1 else "rest"
        text += f" {which} {verb} on fewer than three seeds, which decide nothing."
    numbers = [
        f"{r['claim']} {verdict_verb(r['verdict'], 1)} ({r['part']}: {short(r['our_value'])}, "
        f"{interval(r)}; paper {short(r['paper_value'])})"
        for r in rows
        if r["claim"] in core
    ]
    return f"{text} {'; '.join(numbers)}." if numbers else text


def verdict_verb(verdict: str, n: int) -> str:
    """The verdict of n claims as a verb: "holds" of one, "hold" of two."""
    singular = {"inconclusive": "is inconclusive"}
    plural = {
        "holds": "hold",
        "holds (direction)": "hold in direction",
        "fails": "fail",
        "inconclusive": "are inconclusive",
    }
    if n > 1:
        return plural[verdict]
    return singular.get(verdict, verdict.replace("holds (direction)", "holds in direction"))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _recorded(paper: str, profile: str, root: Path | str | None) -> list[dict[str, str]]:
    rows = read_rows(reports_folder(profile, root) / "claims.csv")
    return [r for r in rows if r["paper"] == known_paper(paper)]


def _text(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{round(value, 9):.6g}"


def short(value: str) -> str:
    """A number of claims.csv for reading: three digits, a true minus, "–" where there is none."""
    return f"{round(float(value), 6):.3g}".replace("-", "−") if value else "–"


def interval(row: Mapping[str, str]) -> str:
    """The interval of a row of claims.csv for reading."""
    if not row["ci_low"]:
        return "no interval"
    return f"{short(row['ci_low'])} to {short(row['ci_high'])}"
