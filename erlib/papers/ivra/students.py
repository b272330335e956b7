"""How are students taught, whose agreement with a model is its simulatability?"""

from __future__ import annotations

from erlib.config import RunSpec, Teaching, term, update
from erlib.papers.ivra.systems import (
    FLOOR,
    MODULES,
    Task,
    data_spec,
    decay_of,
    method_of,
    model_spec,
    optimiser_of,
    options_of,
    recipe,
)
from erlib.parameters import Settings

STUDENTS = 100  # added to the teacher's seed: its head must not begin where the teacher's began


def student(
    settings: Settings, base: str, task: Task, teacher: RunSpec, explainer: str,
    stage: str = "student", transferred: Task | None = None,
) -> RunSpec:  # fmt: skip
    """A fresh model that learns what `teacher` answers, helped by its explanations.

    `transferred`: the set whose texts it learns from, where that is not the teacher's own.
    """
    where = transferred or task
    sizes = recipe(settings, where, pupil_recipe(settings, stage))
    told = explainer != FLOOR
    teaching = Teaching(teacher)
    if told:
        options = options_of(settings, explainer)
        teaching = Teaching(teacher, method_of(explainer), "ivra", options)
    module = MODULES.get(explainer, "ivra-softmax") if told else None
    # eq. 7 has log p(start) + log p(end) of a span, of which the task's loss is the mean
    answers = term("task", 2.0 if where.spans else 1.0)
    beta = term("simulation", settings.grid["pilot"]["beta"])
    learns = update(sizes["update"], **decay_of(sizes))
    if told:
        factor = settings.grid["explainer_factor"]
        learns = update(sizes["update"], explainer_lr=sizes["lr"] * factor, **decay_of(sizes))
    return RunSpec(
        data_spec(settings, where, sizes, teaching),
        model_spec(settings, base, where, module),
        objective=(answers, beta) if told else (answers,),
        optimiser=optimiser_of(sizes, sizes["lr"], "dev_loss"),
        seed=teacher.seed + STUDENTS,
        update=learns,
    )


def pupil_recipe(settings: Settings, stage: str) -> str:
    """The recipe of a student: that of the stage, or of all where the profile knows but one."""
    return stage if stage in settings.grid else "student"
