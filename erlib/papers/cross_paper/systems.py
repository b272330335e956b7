"""Which runs does the grid have, and in the place of which row, rule and seed does each stand?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import NamedTuple

import pandas as pd

from erlib.config import RunSpec
from erlib.data.planted import parts_of
from erlib.papers.cross_paper.ground import CLEAN, Ground, lens, rules_of
from erlib.papers.cross_paper.rows import ROWS
from erlib.papers.er_lens import systems as er
from erlib.papers.er_lens.systems import Bounds
from erlib.parameters import Settings

BASELINE = "Baseline"
Known = Mapping[str, Mapping[str, Bounds]]  # rule → guide → bounds


class Key(NamedTuple):
    """The place of a run: what is planted (nothing: CLEAN), the row, the seed that was wanted."""

    rule: str
    row: str
    seed: int


def rules(settings: Settings) -> list[str]:
    """Every rule that models are trained on, the corpus as it is first."""
    return [CLEAN, *rules_of(settings)]


def rows_on(settings: Settings, rule: str) -> list[str]:
    """The rows that are trained on a rule, in their order."""
    planted = settings.grid["planted"]
    wanted = settings.grid["systems"]
    if rule != CLEAN:
        wanted = planted.get("systems", {}).get(rule, wanted)
    return [name for name in ROWS if name in wanted or wanted == ["all"]]


def seeds_on(settings: Settings, rule: str) -> tuple[int, ...]:
    """Every seed, or the first few where the profile says so of planted reasons."""
    count = None if rule == CLEAN else settings.grid["planted"].get("seeds")
    return settings.seeds[:count]


def keys(settings: Settings) -> Iterator[Key]:
    """Every place of the grid."""
    for rule in rules(settings):
        for row in rows_on(settings, rule):
            for seed in seeds_on(settings, rule):
                yield Key(rule, row, seed)


def guides(settings: Settings, rule: str) -> list[str]:
    """The techniques that some row is trained under bounds of."""
    found = (ROWS[name].guide for name in rows_on(settings, rule))
    return list(dict.fromkeys(guide for guide in found if guide))


def explanation_only(settings: Settings) -> list[RunSpec]:
    """The runs that bounds are made of, as in the ER-lens notebook."""
    found = []
    for rule in rules(settings):
        there = lens(settings, rule)
        for guide in guides(settings, rule):
            name = er.system_named("explanation", guide)
            found += [er.run_spec(there, name, seed) for seed in er.seeds_of(there, name)]
    return found


def bounds(settings: Settings, runs: pd.DataFrame) -> Known:
    """The bounds of each rule and guide that has any."""
    found: dict[str, dict[str, Bounds]] = {}
    for rule in rules(settings):
        here = runs[[rule_of(spec) == rule for spec in runs["spec"]]]
        made = {guide: er.bounds_of(here, guide) for guide in guides(settings, rule)}
        found[rule] = {guide: one for guide, one in made.items() if isfinite(one.dev)}
    return found


def unknown_bounds(settings: Settings) -> Known:
    """What stands for bounds before the explanation-only runs."""
    return {r: dict.fromkeys(guides(settings, r), Bounds(0.0, 0.0)) for r in rules(settings)}


def run_of(settings: Settings, key: Key, known: Known) -> RunSpec:
    """The run of a place."""
    there = lens(settings, key.rule)
    started = {*settings.grid.get("started", ())} if "short" in there.grid else set()
    started |= ROWS.keys() if BASELINE in there.grid.get("started", ()) else set()
    return ROWS[key.row].make(Ground(there, key.seed, known.get(key.rule, {}), key.row in started))


def wanted(settings: Settings, known: Known, *, bounded: bool | None = None) -> dict[Key, RunSpec]:
    """The runs of the grid; with `bounded`, those that are trained under bounds, or the others."""
    return {
        key: run_of(settings, key, known)
        for key in keys(settings)
        if bounded is None or bool(ROWS[key.row].guide) == bounded
        if not ROWS[key.row].guide or ROWS[key.row].guide in known.get(key.rule, {})
    }


def key_of(run: RunSpec, seed: int) -> Key:
    """The place of a run that was trained under bounds."""
    return Key(rule_of(run), er.system_of(run), seed)


def rule_of(run: RunSpec) -> str:
    """What is planted in the texts that a run learnt."""
    return parts_of(run.data.corpus).rule or CLEAN


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run."""
    planted = f", {rule} planted" if (rule := rule_of(run)) else ""
    if run.data.extract:
        return f"classifiers of rationales{planted}"
    if run.data.taught:
        return f"students{planted}"
    if er.system_of(run) in (er.system_named("explanation", g) for g in er.GUIDES):
        return f"{er.system_of(run)}{planted}"
    if run == er.start_spec(lens(settings, rule_of(run)), run.seed):
        return f"start{planted}"
    plain = replace(run, seed=0)
    for key, made in wanted(settings, unknown_bounds(settings), bounded=False).items():
        if key.rule == rule_of(run) and key.seed == run.seed and replace(made, seed=0) == plain:
            return f"{key.row}{planted}"
    return f"{er.system_of(run)}{planted}"
