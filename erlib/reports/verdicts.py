"""What do our runs say of a claim, in one word and with its reason?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from erlib.metrics.rules import WORDS, Word, join
from erlib.reports.criteria import Criterion
from erlib.reports.parts import Part
from erlib.reports.reasons import reason, takes

VERBS = {  # of one claim, of several; in the order in which they are listed
    "holds": ("holds", "hold"),
    "holds (direction)": ("holds in direction", "hold in direction"),
    "leans with": ("leans with the paper", "lean with the paper"),
    "open": ("is open", "are open"),
    "inconclusive": ("is inconclusive", "are inconclusive"),  # reports made by older rules
    "leans against": ("leans against the paper", "lean against the paper"),
    "no difference": ("shows no difference", "show no difference"),
    "fails": ("fails", "fail"),
    "not attempted": ("is not attempted", "are not attempted"),
}


@dataclass(frozen=True, eq=False)
class Verdict:
    """A claim's verdict, the part whose numbers stand for it, and every part."""

    criterion: Criterion
    word: Word
    reason: str
    part: Part | None
    parts: tuple[Part, ...]
    lost: int = 0

    @classmethod
    def of(
        cls,
        criterion: Criterion,
        parts: Sequence[Part],
        profile: str,
        lost: int = 0,
        hours: float | None = None,
    ) -> Verdict:
        """All parts as one; a profile that cannot decide the claim does not attempt it."""
        joined = join([part.tested for part in parts])
        word, stands = joined.word, None if joined.part is None else parts[joined.part]
        if stands is None:
            stands = next((part for part in parts if part.estimate is not None), None)
        said = _told(joined.word, stands, parts, joined.measured, hours)
        if profile in criterion.cannot:
            word = "not attempted"
            said = f"The {profile} profile cannot decide it ({criterion.cannot[profile]})."
        return cls(criterion, word, said, stands, tuple(parts), lost)


def _told(
    word: Word, stands: Part | None, parts: Sequence[Part], measured: int, hours: float | None
) -> str:
    """The verdict's reason: the counts of its parts, and the part that decides in full."""
    if stands is None or word == "not attempted":
        return _not_attempted(parts, measured)
    counts = _cells(stands) if len(parts) == 1 else _counts(parts, measured)
    if not stands.estimate:
        return f'{counts} "{stands.name}": {stands.why}.'
    if len(parts) == 1:
        return " ".join(filter(None, (reason(stands, hours), counts)))
    which = {"fails": "It fails by", "no difference": "There is none in"}.get(word, "Weakest:")
    if word in ("open", "leans with", "leans against"):
        which = "Undecided by"
    text = f'{counts} {which} "{stands.name}". {reason(stands, hours)}'
    return f"{text} {_all_need(parts, stands, hours)}".strip()


def _not_attempted(parts: Sequence[Part], measured: int) -> str:
    whys = list(dict.fromkeys(part.why for part in parts if part.why))
    if len(parts) == 1:
        return f"{whys[0][:1].upper()}{whys[0][1:]}." if whys else "It was not measured."
    lead = f"{measured} of its {len(parts)} parts are measured, fewer than half"
    return f"{lead}: {whys[0]}." if len(whys) == 1 else f"{lead}."


def _cells(part: Part) -> str:
    """Of a mean over cells, how many there are, and how many of them lie on the claimed side."""
    if part.named < 2:
        return ""
    over = f"It is the mean over {len(part.cells)} of {part.named} cells"
    if not part.contrast.side or part.contrast.rule == "NONINFERIOR":
        return f"{over}."
    return f"{over}, of which {part.on_side} lie on the claimed side."


def _counts(parts: Sequence[Part], measured: int) -> str:
    given = [part.tested.word for part in parts if part.tested.decides]
    counts = [f"{n} {VERBS[w][n > 1]}" for w in WORDS if (n := given.count(w))]
    of = "" if measured == len(parts) else f" of {len(parts)}"
    return f"{measured}{of} parts measured: {', '.join(counts)}."


def _all_need(parts: Sequence[Part], stands: Part, hours: float | None) -> str:
    """What the undecided part with the greatest need takes, where it is not the one shown."""
    others = [p for p in parts if p.undecided and p is not stands and p.estimate is not None]
    most = max(others, key=lambda p: p.needs.seeds if p.needs else math.inf, default=None)
    if most is None or not stands.undecided or (stands.needs and most.needs == stands.needs):
        return ""
    if stands.needs is None or (most.needs and most.needs.seeds <= stands.needs.seeds):
        return ""
    return f'"{most.name}": {takes(most, most.needs, hours)}'
