"""REGEX, and its two halves: robustness alone, explanation guided training alone."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from erlib.config import RunSpec
from erlib.papers.cross_paper.ground import Ground, sister
from erlib.papers.cross_paper.rows import row
from erlib.papers.regex.systems import SYSTEMS, System, objective

HALVES = {
    "REGEX": "REGEX",
    "REGEX, robust": "w/o explanation guided training",
    "REGEX, guided": "w/o robustness improvement",
}


def _made(ground: Ground, system: System) -> RunSpec:
    terms = objective(sister(ground.settings, "regex"), system)
    return replace(ground.baseline, objective=terms)


for _name, _variant in HALVES.items():
    row(_name, family="REGEX")(partial(_made, system=SYSTEMS[_variant]))
