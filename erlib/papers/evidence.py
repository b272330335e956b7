"""What do a paper's cells say of its claims? (metrics.md §13)

The criteria of its `claims.toml` name cells; the paper gives readings of them; the rules of
`erlib.metrics.rules` do the rest. A claim is decided here and nowhere else.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from erlib.errors import unknown
from erlib.metrics.estimates import Evidence
from erlib.metrics.moderation import ALONE, Prior, pool
from erlib.metrics.rules import (
    DECIDED,
    NEGLIGIBLE,
    NOT_ATTEMPTED,
    Outcome,
    Question,
    Word,
    decide,
    effect,
    join,
)
from erlib.metrics.scales import SCALES, Scale
from erlib.papers.measured import Measured, measure, of_given
from erlib.papers.readings import Correlated, Distances, Read, Reading, Readings
from erlib.reports.criteria import Contrast, Criterion, criteria
from erlib.reports.parts import Part
from erlib.reports.verdicts import Verdict

__all__ = ["Correlated", "Distances", "Evidence", "Reading", "Readings", "decide_claims"]
Given = Mapping[str, Mapping[str, "Evidence | Distances | Correlated"]]  # claim → contrast


UNITS = {"seeds": "seed", "distance": "seed", "models": "model", "repetitions": "repetition"}


def decide_claims(
    paper: str,
    read: Read,
    given: Given | None = None,
    *,
    profile: str,
    lost: Mapping[str, int] | None = None,
    hours: Mapping[str, float] | None = None,
) -> dict[str, Verdict]:
    """The verdict of every claim of a paper.

    `read`: the readings of a cell by seed, None for what was not measured. The same cells are asked
    for in other metrics where a claim is about them (`metrics` of a criterion). `given`: what is no
    difference of cells, by claim and contrast. `lost`: seeds lost, by claim; `hours`: what one more
    seed of everything that a claim compares would take.
    """
    study = _Study(criteria(paper), cache(read), given or {})
    return {
        name: Verdict.of(
            claim, study.parts(claim), profile, (lost or {}).get(name, 0), (hours or {}).get(name)
        )
        for name, claim in study.claims.items()
    }


class _Study:
    """A paper's claims, with what was measured of their contrasts and what the pools know."""

    def __init__(self, claims: Mapping[str, Criterion], read: Read, given: Given) -> None:
        self.claims, self.read, self.given = claims, read, _named(claims, given)
        also = [
            under(claims[name], metric)
            for claim in claims.values()
            for metric in claim.metrics
            for name in claim.claims
        ]
        self.measured = {
            (claim.claim, contrast): self._measured(claim, contrast)
            for claim in (*claims.values(), *also)
            for contrast in claim.contrasts
        }
        self.priors = priors(self.measured)

    def _measured(self, claim: Criterion, contrast: Contrast) -> Measured:
        given = self.given.get(claim.claim, {}).get(contrast.name)
        if given is not None:
            return of_given(given, contrast)
        if claim.by == "distance" or contrast.rule == "CORR":
            return Measured(why="it was not measured")
        found = measure(contrast, claim, self.read, claim.seeds)
        if found.why and claim.by == "seeds" and contrast.rule != "SPREAD":  # to be seen at least
            return replace(measure(contrast, claim, self.read, 1), why=found.why)
        return found

    def parts(self, claim: Criterion) -> list[Part]:
        """Every part of a claim, those that margins are in units of first decided."""
        if claim.rule == "SAME":
            return [self._same(name, m) for m in claim.metrics for name in claim.claims]
        found: dict[str, Part] = {}
        for contrast in sorted(claim.contrasts, key=lambda c: c.of is not None):
            found[contrast.name] = self._part(claim, contrast, found)
        return [found[contrast.name] for contrast in claim.contrasts]

    def _part(self, claim: Criterion, contrast: Contrast, known: Mapping[str, Part]) -> Part:
        measured = self.measured[claim.claim, contrast]
        part = Part(contrast, untrained=measured.untrained, unit=UNITS[claim.by], why=measured.why)
        estimate = measured.estimate(self.priors.get(contrast.pool, ALONE))
        if estimate is None:
            return part
        part = replace(
            part,
            estimate=estimate,
            evidence=measured.evidence,
            base=_base(contrast, measured.evidence),
            cells=measured.cells,
            texts=measured.texts,
        )
        why = measured.why or _too_few(part, claim)
        if why:
            return replace(part, why=why)
        question, capped, why = _question(contrast, part, self._attainable(contrast), known)
        if question is None:
            return replace(part, why=why)
        return replace(part, question=question, capped=capped, tested=decide(question, estimate))

    def _attainable(self, contrast: Contrast) -> float | None:
        """What explanation loss alone gains over the Baseline, on the scale; None: not asked."""
        if contrast.ceiling is None:
            return None
        scale, gains = SCALES[contrast.scale], []
        for difference in contrast.differences:
            assert difference.before is not None
            ends = (replace(difference.before, row=contrast.ceiling), difference.before)
            reached, start = (_mean(self.read(cell), scale) for cell in ends)
            if not math.isnan(reached - start):
                gains.append(reached - start)
        return float(np.mean(gains)) if gains else None

    def _same(self, name: str, metric: str) -> Part:
        """Does a claim have the verdict under another metric that it has under its own?"""
        claim = self.claims[name]
        both = (claim, under(claim, metric))
        old, new = (join([part.tested for part in self.parts(one)]).word for one in both)
        contrast = Contrast(f"{name} by {metric}", (), "identity", "", "SAME")
        why = f"{old} by its own metric, {new} by {metric}"
        return Part(contrast, tested=same(old, new), why=why)


def under(claim: Criterion, metric: str) -> Criterion:
    """The claim's criterion on another metric; the paper's effects are of the old one."""

    def moved(contrast: Contrast) -> Contrast:
        differences = tuple(
            replace(
                d,
                after=replace(d.after, metric=metric),
                before=d.before and replace(d.before, metric=metric),
                less=d.less
                and (replace(d.less[0], metric=metric), replace(d.less[1], metric=metric)),
                paper=None,
            )
            for d in contrast.differences
        )
        paper, _, scale = contrast.pool.split("/")
        return replace(contrast, differences=differences, pool=f"{paper}/{metric}/{scale}")

    return replace(claim, contrasts=tuple(map(moved, claim.contrasts)))


def _named(claims: Mapping[str, Criterion], given: Given) -> Given:
    """What is given, if all of it belongs to a claim and its contrast."""
    for claim, contrasts in given.items():
        if claim not in claims:
            raise unknown("claim", claim, claims)
        names = [contrast.name for contrast in claims[claim].contrasts]
        for name in contrasts:
            if name not in names:
                raise unknown(f"contrast of {claim}", name, names)
    return given


def same(old: Word, new: Word) -> Outcome:
    """The verdict on one verdict beside another; a claim that holds in direction holds."""
    sides = {"holds (direction)": "holds"}
    if "not attempted" in (old, new):
        return NOT_ATTEMPTED
    if not {old, new} <= set(DECIDED):
        return Outcome("open")
    if sides.get(old, old) == sides.get(new, new):
        return Outcome("holds", claimed=0.0)
    return Outcome("fails", against=0.0)


def priors(measured: Mapping[tuple[str, Contrast], Measured]) -> dict[str, Prior]:
    """What each pool knows; a contrast that several claims name counts once."""
    members: dict[str, dict[object, Evidence]] = defaultdict(dict)
    for (_, contrast), one in measured.items():
        if one.evidence is not None and not one.why:
            members[contrast.pool][contrast.differences] = one.evidence
    return {
        name: pool([e.variance for e in ones.values()], [e.seeds for e in ones.values()])
        for name, ones in members.items()
    }


def _too_few(part: Part, claim: Criterion) -> str:
    evidence = part.evidence
    if part.seeds < claim.seeds:
        return f"{part.seeds} of the {claim.seeds} {part.unit}s that it takes are measured"
    if 0 < part.texts < claim.texts:
        return f"{part.texts} texts are too few"
    if evidence is not None and evidence.constant:
        return "every seed has the same difference: an identity, which decides nothing"
    return ""


def _base(contrast: Contrast, evidence: Evidence | None) -> float:
    """What the contrast is compared with, in the metric's unit; NaN if it is not known."""
    if evidence is not None and not math.isnan(evidence.base):
        return evidence.base
    return math.nan if contrast.level is None else contrast.level


def _question(
    contrast: Contrast, part: Part, attainable: float | None, known: Mapping[str, Part]
) -> tuple[Question | None, bool, str]:
    """The contrast's question on its scale, whether what explanation loss gains caps it, or why
    there is none.
    """
    side = contrast.side or 0
    if attainable is not None and (side or 1) * attainable <= 0:
        return None, False, "explanation loss alone gains nothing here, so nothing can be asked"
    if contrast.rule in ("PAIR", "SPREAD", "SHARE"):
        asked = contrast.asked
        capped = attainable is not None and asked is not None and abs(asked) > abs(attainable)
        null = SCALES[contrast.scale].of(contrast.level or 0.0) if contrast.rule == "SHARE" else 0.0
        wanted = attainable if capped else asked
        return effect(side, wanted, rule=contrast.rule, null=null), capped, ""
    low, high = _margin(contrast, part.base)
    if contrast.of is not None:
        whole = known[contrast.of]
        if whole.question is None or whole.estimate is None:
            return None, False, f"its margin is in units of '{contrast.of}', which is not measured"
        high = abs((contrast.margin or 0.0) * whole.estimate.mean)
        low = -high
    if attainable is not None:
        cap = NEGLIGIBLE * abs(attainable)
        low, high = max(low, -cap), min(high, cap)
    one_sided = contrast.rule == "NONINFERIOR"
    return (
        Question(
            contrast.rule,
            side,
            low=None if one_sided and side < 0 else low,
            high=None if one_sided and side > 0 else high,
        ),
        False,
        "",
    )


def _margin(contrast: Contrast, base: float) -> tuple[float, float]:
    """The margin on the scale, at the Baseline's mean."""
    assert contrast.margin is not None
    scale, margin = SCALES[contrast.scale], contrast.margin
    if contrast.rule == "CORR":
        return -scale.of(margin), scale.of(margin)
    if contrast.scale == "log":  # a share more, or as many times less
        return -math.log(1 + margin), math.log(1 + margin)
    if contrast.scale == "identity":
        return -margin, margin
    if math.isnan(base):
        raise ValueError(
            f"'{contrast.name}': a margin on {contrast.scale} stands at the Baseline's mean: "
            "give the evidence a base"
        )
    return scale.of(base - margin) - scale.of(base), scale.of(base + margin) - scale.of(base)


def _mean(readings: Readings | None, scale: Scale) -> float:
    """Over the seeds whose model has learnt; NaN without any."""
    values = [scale.of(one.value, one.count) for one in (readings or {}).values() if one.trained]
    return float(np.mean(values)) if values else math.nan
