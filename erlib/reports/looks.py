"""Was what decides a paper's claims fixed before the first results were seen?

Beside the verdicts lies `<paper>.looks.json`: every time that verdicts were made from results and
the criteria, the rules or the planned seeds differed from the time before. It is never rewritten,
only added to, and a report says what has changed since its first entry.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from erlib.catalogue import paper as paper_named
from erlib.config import project_root
from erlib.metrics.rules import VERSION
from erlib.reports.ledger import reports_folder, write_whole


@dataclass(frozen=True)
class Look:
    """What decided when: sha256 of the list of claims and of its criteria alone."""

    date: str
    claims: str
    criteria: str
    rules: int
    seeds: tuple[int, ...]


def look(paper: str, seeds: Sequence[int], *, today: date | None = None) -> Look:
    """What decides now. A statement or a unit that is mended leaves the criteria as they were."""
    text = paper_named(paper).claims_text()
    written = tomllib.loads(text)
    criteria = {
        "criteria": written["criteria"],
        **{entry["id"]: entry["criterion"] for entry in written["claim"]},
    }
    return Look(
        date=(today or date.today()).isoformat(),
        claims=_sha256(text),
        criteria=_sha256(json.dumps(criteria, sort_keys=True)),
        rules=VERSION,
        seeds=tuple(seeds),
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def looked(paper: str, profile: str, now: Look, root: Path | str | None = None) -> list[Look]:
    """Enter that results were seen, if it differs from the last entry; all entries.

    While a notebook is executed the entries that are published already are read as well.
    """
    here = reports_folder(profile, root) / f"{paper}.looks.json"
    published = reports_folder(profile, root or project_root()) / here.name
    known = next((read(path) for path in (here, published) if path.exists()), [])
    if not known or changes(known[-1], now):
        known = [*known, now]
    write_whole(here, json.dumps([asdict(one) for one in known], indent=1) + "\n")
    return known


def read(path: Path) -> list[Look]:
    """The entries of a file."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [Look(**{**entry, "seeds": tuple(entry["seeds"])}) for entry in entries]


def changes(first: Look, now: Look) -> list[str]:
    """What decides otherwise than it did, in words."""
    found = []
    if first.criteria != now.criteria:
        found.append("the criteria of the claims")
    if first.rules != now.rules:
        found.append(f"the rules (version {first.rules})")
    if first.seeds != now.seeds:
        found.append(f"the seeds planned ({_listed(first.seeds)})")
    return found


def foresight(looks: Sequence[Look], now: Look) -> str:
    """What decides, and whether it was fixed before results were seen, in two sentences."""
    what = (
        f"Claims: sha256 {now.claims}; rules: version {now.rules}; "
        f"seeds planned: {_listed(now.seeds)}."
    )
    if not looks:
        return f"{what} No results have been seen yet."
    changed = list(dict.fromkeys(c for one in looks for c in changes(one, now)))
    if not changed:
        return f"{what} None of them has changed since results were first seen, {looks[0].date}."
    was = " and ".join(changed)
    return f"{what} Changed since results were first seen, {looks[0].date}: {was}."


def _listed(seeds: Sequence[int]) -> str:
    return ", ".join(map(str, seeds))
