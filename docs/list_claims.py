"""What decides each claim, and what did before: writes claims.md from the papers' claims.toml.

`python docs/list_claims.py`. claims_before.csv has the rules of version 0.1.
"""

from __future__ import annotations

import csv
from pathlib import Path

from erlib.catalogue import papers
from erlib.reports.criteria import SEEDS, Contrast, Criterion, criteria

HERE = Path(__file__).parent
HEAD = """# What decides each claim

The 80 claims of the five papers: where the paper says it, by what it is decided, by what it was in
version 0.1, and why that changed. All but *before* is read from `erlib/papers/<paper>/claims.toml`,
where the contrasts stand cell by cell; they were fixed before any result of night was read, and
have not changed since. [verdicts.md](verdicts.md) explains the rules.

↑ and ↓: the side that the paper claims. *each*: a conjunction, every part at its own level. *mean*:
over all cells named, as one contrast. Earlier, several parts were tested at Holm's levels, and a
difference was held against 0 or the margin named, by a plain t interval.
"""
RULES = {
    "PAIR": "difference",
    "NIL": "no difference",
    "NONINFERIOR": "not",
    "SPREAD": "ratio of variances",
    "SHARE": "share of seeds",
    "CORR": "no relation",
}
UNITS = {"distance": "distances between models", "models": "pairs of models"}
ARROWS = {1: "↑", -1: "↓", None: ""}
NAMED = 2  # parts that are named, the others counted


def page() -> str:
    """All of claims.md."""
    with (HERE / "claims_before.csv").open(encoding="utf-8", newline="") as file:
        before = {row["claim"]: row["rule"] for row in csv.DictReader(file)}
    return HEAD + "".join(
        f"\n## {about.title}\n\n" + table(list(criteria(name).values()), before)
        for name, about in papers().items()
        if about.claims_text()
    )


def table(listed: list[Criterion], before: dict[str, str]) -> str:
    """One line per claim."""
    lines = ["| claim | place | decided by | before | why |", "| --- | --- | --- | --- | --- |"]
    for one in listed:
        cells = (one.claim, one.where, decided_by(one), before[one.claim], one.why)
        lines.append(f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def decided_by(one: Criterion) -> str:
    """Rule, side, margin, how parts are joined, and which they are."""
    if one.rule == "SAME":
        return f"{', '.join(one.claims)}: the same verdict by {' and by '.join(one.metrics)}"
    kinds = dict.fromkeys(map(_asked, one.contrasts))
    said = " and ".join(
        f"{kind}: {_parts([c for c in one.contrasts if _asked(c) == kind], one.join)}"
        for kind in kinds
    )
    more = [f"of {UNITS[one.by]}"] if one.by in UNITS else []
    if one.seeds != SEEDS.get(one.rule, 3):
        more.append(f"at least {one.seeds} {'models' if one.by == 'models' else 'seeds'}")
    if one.cannot.keys() - {"quick"}:
        more.append(f"not in {', '.join(name for name in one.cannot if name != 'quick')}")
    return "; ".join([said, *more])


def _asked(contrast: Contrast) -> str:
    side, margin = ARROWS[contrast.side], contrast.margin
    words = f"{RULES[contrast.rule]} {side}".strip()
    if contrast.rule == "NONINFERIOR":
        words = f"not {'lower' if contrast.side == 1 else 'higher'} by more than {margin:g}"
    elif margin is not None:
        words += f", ±{margin:g}"
    if contrast.of:
        words += " of another part"
    if contrast.ceiling:
        words += ", at most what explanation loss alone gains"
    return words


def _parts(contrasts: list[Contrast], join: str) -> str:
    if join == "most":
        return f"mean of {len(contrasts[0].differences)} cells"
    names = [contrast.name for contrast in contrasts]
    shown = ", ".join(names[:NAMED])
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'each of ' if join != 'one' and len(names) > 1 else ''}{shown}{more}"


if __name__ == "__main__":
    (HERE / "claims.md").write_text(page(), encoding="utf-8")
