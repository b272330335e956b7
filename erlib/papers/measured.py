"""What do the cells of a contrast say of it, seed by seed and text by text?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pandas as pd

from erlib.metrics.estimates import Estimate, Evidence, Share, correlation_of, mean_of, text_draws
from erlib.metrics.moderation import Prior
from erlib.metrics.pseudovalues import distances, models, observed, spread
from erlib.metrics.scales import SCALES, Scale
from erlib.papers.readings import DRAWS, Correlated, Distances, Floats, Read, Reading, Readings
from erlib.reports.criteria import Contrast, Criterion, Difference

FEWEST = 3  # seeds or models for a jackknife of pairs


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of a contrast; `why` says what is missing.

    `fixed` is an estimate that no pool moderates: a correlation, a share. `cells`: the mean
    difference of each cell that is measured; `untrained`: how many pairs of runs were left out
    because a model had not learnt.
    """

    evidence: Evidence | None = None
    fixed: Estimate | None = None
    cells: tuple[float, ...] = ()
    texts: int = 0
    untrained: int = 0
    why: str = ""

    def estimate(self, prior: Prior) -> Estimate | None:
        """The estimate; None of what was not measured."""
        return self.fixed if self.evidence is None else mean_of(self.evidence, prior)


def of_given(given: Evidence | Distances | Correlated, contrast: Contrast) -> Measured:
    """What a paper gives that is no difference of cells."""
    if isinstance(given, Correlated):
        if max((len(np.unique(x)) for x, _ in given.points.values()), default=0) < 4:
            return Measured(why="no system has the four seeds that a correlation takes")
        return Measured(fixed=correlation_of(given.points), texts=given.texts)
    if isinstance(given, Distances):
        seeds = {seed for pair in given.within for seed in pair}
        if len(seeds) < FEWEST:
            return Measured(why=f"{len(seeds)} of the {FEWEST} seeds that it takes are measured")
        scale = SCALES[contrast.scale]
        across, within = (
            {pair: scale.of(distance) for pair, distance in pairs.items()}
            for pairs in (given.across, given.within)
        )
        base = float(np.mean(list(given.within.values())))
        given = Evidence(distances(across, within), texts=given.texts, base=base)
    cells = (float(np.asarray(given.differences).mean()),)
    return Measured(given, cells=cells, texts=given.texts)


Terms = tuple[tuple[int, Reading], ...]  # of one seed: sign and cell; their sum is the difference


@dataclass(frozen=True, eq=False)
class _Compared:
    """A difference of cells: the terms of each seed that counts, and how many do not."""

    difference: Difference
    terms: Mapping[int, Terms]
    untrained: int
    short: int  # texts of a seed that has too few; 0 if none has

    @property
    def texts(self) -> int:
        """The fewest of any seed and end."""
        counts = [one.count for terms in self.terms.values() for _, one in terms if one.count]
        return min(counts, default=0)


def measure(contrast: Contrast, criterion: Criterion, read: Read, seeds: int) -> Measured:
    """The contrast's evidence from its cells, where half of them have so many seeds."""
    if contrast.rule == "SHARE":
        return _of_share(contrast, read)
    found = [_compared(d, contrast, criterion.texts, read) for d in contrast.differences]
    untrained = sum(one.untrained for one in found)
    scale = SCALES["identity" if contrast.rule == "SPREAD" else contrast.scale]
    if criterion.by == "models":
        return replace(_of_models(found, seeds, scale), untrained=untrained)
    kept = [one for one in found if len(one.terms) >= seeds]
    while len(kept) > 1 and len(_common(kept)) < seeds:
        kept.remove(min(kept, key=lambda one: len(one.terms)))
    if not kept or 2 * len(kept) < len(found):
        return Measured(untrained=untrained, why=_missing(found, len(kept), seeds))
    common = _common(kept)
    by_cell = np.array([[_value(one.terms[s], scale) for s in common] for one in kept])
    if contrast.rule == "SPREAD":
        ends = [[[one.terms[s][end][1].value for s in common] for end in (0, 1)] for one in kept]
        by_cell = np.array([spread(after, before) for after, before in ends])
        if not np.isfinite(by_cell).all():
            return Measured(untrained=untrained, why="seeds with one value have no spread")
        evidence = Evidence(by_cell.mean(axis=0))
    else:
        evidence = _with_texts(by_cell.mean(axis=0), kept, common, scale)
    cells = tuple(by_cell.mean(axis=1).tolist())
    return Measured(evidence, cells=cells, texts=evidence.texts, untrained=untrained)


def _of_share(contrast: Contrast, read: Read) -> Measured:
    """How many seeds have a 1; a model that has not learnt is a seed like any other."""
    (difference,) = contrast.differences
    seeds = read(difference.after)
    if not seeds:
        return Measured(why="it was not measured")
    counted = [one.value for one in seeds.values()]
    if not set(counted) <= {0.0, 1.0}:
        raise ValueError(f"{difference.after}: a share of seeds has 1 or 0 for each, got {counted}")
    return Measured(fixed=Share(int(sum(counted)), len(counted)))


def _compared(difference: Difference, contrast: Contrast, fewest: int, read: Read) -> _Compared:
    """after − before, or after − level; less the same difference elsewhere."""
    after = read(difference.after) or {}
    if difference.before is None:
        before: Readings = dict.fromkeys(after, Reading(contrast.level or 0.0))
    else:
        before = read(difference.before) or {}
    one = _pair(difference, after, before, fewest)
    if difference.less is None:
        return one
    start, end = difference.less
    other = _pair(difference, read(end) or {}, read(start) or {}, fewest)
    both = {
        seed: (*terms, *((-sign, reading) for sign, reading in other.terms[seed]))
        for seed, terms in one.terms.items()
        if seed in other.terms
    }
    untrained = one.untrained + other.untrained
    return _Compared(difference, both, untrained, max(one.short, other.short))


def _pair(difference: Difference, after: Readings, before: Readings, fewest: int) -> _Compared:
    terms: dict[int, Terms] = {}
    untrained = short = 0
    for seed in sorted(set(after) & set(before)):
        ends = after[seed], before[seed]
        if not (ends[0].trained and ends[1].trained):
            untrained += 1
            continue
        last, first = _on_shared(*ends)
        count = min((one.count for one in (last, first) if one.texts is not None), default=fewest)
        if count < fewest:
            short = max(short, count)
        else:
            terms[seed] = ((1, last), (-1, first))
    return _Compared(difference, terms, untrained, short)


def _on_shared(after: Reading, before: Reading) -> tuple[Reading, Reading]:
    """Both ends on the texts that both have, unless a model chose its own."""
    if after.texts is None or before.texts is None or after.chosen or before.chosen:
        return after, before
    shared = after.texts.index.intersection(before.texts.index).sort_values()
    return after.among(shared), before.among(shared)


def _common(found: Sequence[_Compared]) -> list[int]:
    return sorted(set.intersection(*(set(one.terms) for one in found)))


def _missing(found: Sequence[_Compared], kept: int, seeds: int) -> str:
    most = max(len(one.terms) for one in found)
    if kept:
        return f"{kept} of its {len(found)} cells are measured, fewer than half"
    if most:
        return f"{most} of the {seeds} seeds that it takes are measured"
    if short := max(one.short for one in found):
        return f"{short} texts are too few"
    if any(one.untrained for one in found):
        return "its models have not learnt their task"
    return "it was not measured"


def _value(terms: Terms, scale: Scale) -> float:
    return sum(sign * scale.of(one.value, one.count) for sign, one in terms)


def _base(kept: Sequence[_Compared], common: Sequence[int]) -> float:
    """The mean of what is compared with, in the metric's unit."""
    return float(np.mean([one.terms[seed][1][1].value for one in kept for seed in common]))


def _of_models(found: Sequence[_Compared], fewest: int, scale: Scale) -> Measured:
    """The mean over pairs of models, by model: "Init#1|REGEX" beside "Init#2" is a pair."""
    pairs, bases = {}, []
    for one in (one for one in found if one.terms):
        after = one.difference.after
        values = [_value(terms, scale) for terms in one.terms.values()]
        pairs[after.row.partition("|")[0], after.column] = float(np.mean(values))
        bases.append(_base([one], list(one.terms)))
    if 2 * len(pairs) < len(found):
        return Measured(why=_missing(found, len(pairs), 1))
    units = len(observed(pairs))
    if units < max(fewest, FEWEST):
        return Measured(why=f"{units} of the {fewest} models that it takes are measured")
    by_model = models(pairs)
    evidence = Evidence(by_model, base=float(np.mean(bases)))
    return Measured(evidence, cells=tuple(pairs.values()))


def _with_texts(
    differences: Floats, kept: Sequence[_Compared], common: Sequence[int], scale: Scale
) -> Evidence:
    """The differences with s²_text/N, of means by their texts' influence, else by bootstrap."""
    base = _base(kept, common)
    terms = [[one.terms[seed] for one in kept] for seed in common]  # [seed][cell]
    read = [one for of_seed in terms for of_cell in of_seed for _, one in of_cell if one.count]
    if not read:
        return Evidence(differences, base=base)
    texts = min(one.count for one in read)
    if any(isinstance(one.texts, pd.DataFrame) for one in read):
        drawn = np.stack([_drawn(of_seed, scale) for of_seed in terms], axis=1)
        drawn = drawn[np.isfinite(drawn).all(axis=1)]
        return Evidence(differences, drawn.mean(axis=1).var(ddof=1), texts, drawn, base)
    moved = pd.concat([_influence(of_seed, scale) for of_seed in terms], axis=1).fillna(0.0)
    influence = moved.to_numpy()  # [text, seed]
    n = len(influence)
    variance = float((influence.mean(axis=1) ** 2).sum() * n / (n - 1)) if n > 1 else 0.0
    drawn = differences + (text_draws(n) - 1) @ influence
    return Evidence(differences, variance, texts, drawn, base)


def _influence(cells: Sequence[Terms], scale: Scale) -> pd.Series:
    """How much each text moves the mean over cells, in one seed."""
    moved = [sign * one.influence(scale) for terms in cells for sign, one in terms if one.count]
    return reduce(lambda a, b: a.add(b, fill_value=0.0), moved) / len(cells)


def _drawn(cells: Sequence[Terms], scale: Scale) -> Floats:
    """The mean over cells in each resample of the texts, in one seed."""
    total = np.zeros(DRAWS)
    for sign, one in (term for terms in cells for term in terms):
        values = one.drawn if one.count else np.full(DRAWS, one.value)
        total += sign * np.array([scale.of(value, one.count) for value in values])
    return total / len(cells)
