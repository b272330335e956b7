"""The Baseline, and rationales as a guide: joint ER and constrained ER-C."""

from __future__ import annotations

from functools import partial

from erlib.config import RunSpec
from erlib.papers.cross_paper.ground import Ground
from erlib.papers.cross_paper.rows import row
from erlib.papers.er_lens.systems import SYSTEMS, run_spec


def _made(ground: Ground, name: str) -> RunSpec:
    return run_spec(ground.settings, name, ground.seed, ground.bounds.get(SYSTEMS[name].guide))


for _name, _system in SYSTEMS.items():
    if _system.mode != "explanation":
        _guide = _system.guide if _system.mode == "constrained" else ""
        row(_name, family="ER", guide=_guide)(partial(_made, name=_name))
