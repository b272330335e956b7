"""IvRA trained for each of its four criteria, and SMaT.

A learned attention stands beside the head. For COMP, SUFF and CONS it is trained with the model;
for SIM, and by SMaT, it is learnt through a student while the model, a finished Baseline, stays as
it is.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from erlib.config import CheckpointRule, RunSpec, term, update
from erlib.papers.cross_paper.ground import Ground
from erlib.papers.cross_paper.rows import row
from erlib.papers.ivra.systems import LOSSES, MODULES, SMAT, SPARSEMAX


def _explainer_lr(ground: Ground) -> float:
    return float(ground.of("ivra")["explainer_factor"] * ground.baseline.optimiser.lr)


def _with_model(ground: Ground, criterion: str) -> RunSpec:
    run = ground.baseline
    return replace(
        run,
        model=replace(run.model, explainer=MODULES[SPARSEMAX]),
        objective=(term("task"), term(LOSSES[criterion])),
        update=update("plain", explainer_lr=_explainer_lr(ground)),
    )


def _through_a_student(ground: Ground, module: str, outer: str) -> RunSpec:
    run = ground.baseline
    return replace(
        run,
        model=replace(run.model, explainer=module),
        objective=(term("task", 0.0),),
        optimiser=replace(run.optimiser, checkpoint=CheckpointRule("train_student_ce")),
        update=update(
            "pilot", **ground.of("ivra")["pilot"], outer=outer, explainer_lr=_explainer_lr(ground)
        ),
        start=ground.finished,
    )


for _criterion in LOSSES:
    row(f"IvRA-{_criterion}", family="IvRA", own="ivra")(partial(_with_model, criterion=_criterion))
row("IvRA-SIM", family="IvRA", own="ivra")(
    partial(_through_a_student, module=MODULES[SPARSEMAX], outer="simulation")
)
row("SMaT", family="IvRA", own="smat")(
    partial(_through_a_student, module=MODULES[SMAT], outer="smat")
)
