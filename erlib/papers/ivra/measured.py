"""Which model stands behind a row of the tables, and how is it measured?"""

from __future__ import annotations

from dataclasses import replace

from erlib.config import EvalSpec, RunSpec
from erlib.papers.ivra.students import pupil_recipe, student
from erlib.papers.ivra.systems import (
    CRITERIA,
    EXPLAINERS,
    FLOOR,
    MODULES,
    UNTRAINED,
    System,
    Task,
    baseline,
    continued,
    data_spec,
    follows,
    is_core,
    method_of,
    options_of,
    recipe,
    trained,
    untrained,
)
from erlib.parameters import Settings

KINDS = {"SIM": "simulatability", "COMP": "faithfulness", "SUFF": "faithfulness",
         "CONS": "consistency"}  # fmt: skip


def measure(
    settings: Settings, base: str, task: Task, run: RunSpec, explainer: str, criterion: str,
    *, pupil: str = "student", on: Task | None = None, rows: str = "explained_rows",
) -> EvalSpec:  # fmt: skip
    """How well a model's explanations meet a criterion, on its own texts or `on` another set's.

    For SIM a student is taught first, by the recipe `pupil`; for the others `rows` names the
    profile's number of texts.
    """
    where = on or task
    if criterion != "SIM":
        return explained(settings, where, run, explainer, KINDS[criterion], rows)
    taught = student(settings, base, task, run, explainer, pupil, on)
    data = replace(taught.data, train_rows=None, dev_rows=None)
    examined = recipe(settings, where, pupil_recipe(settings, pupil)).get("examined_rows")
    return EvalSpec(taught, data, "test", KINDS[criterion], examined)


def explained(
    settings: Settings, where: Task, run: RunSpec, explainer: str, kind: str,
    rows: str = "explained_rows",
) -> EvalSpec:  # fmt: skip
    """A measure of the explanations themselves; all of one model share one table of scores."""
    sizes = {**recipe(settings, where), "train_rows": None, "dev_rows": None}
    return EvalSpec(
        run,
        data_spec(settings, where, sizes),
        "test",
        kind,
        settings.grid.get(rows, settings.grid.get("explained_rows")),
        method=method_of(explainer),
        variant="ivra",
        protocol="ivra",
        options=options_of(settings, explainer),
    )


def answers(settings: Settings, run: RunSpec) -> EvalSpec:
    """What a model answers to test texts."""
    data = replace(run.data, train_rows=None, dev_rows=None)
    return EvalSpec(run, data, "test", "predictions", settings.grid.get("test_rows"))


def stage_of(settings: Settings, base: str, task: Task) -> tuple[str, str]:
    """How models and students of a task are trained: at full length, or short."""
    return ("full", "student") if is_core(settings, base, task) else ("short", "short_student")


def row_spec(
    settings: Settings, base: str, task: Task, explainer: str, criterion: str, seed: int
) -> EvalSpec:
    """A row of Tables 1 to 4 and 8 to 11 by one criterion."""
    run = row_run(settings, base, task, explainer, criterion, seed)
    pupil = stage_of(settings, base, task)[1]
    return measure(settings, base, task, run, explainer, criterion, pupil=pupil)


def row_run(
    settings: Settings, base: str, task: Task, explainer: str, criterion: str, seed: int
) -> RunSpec:
    """The model that a row is measured on: trained for the criterion, or a Baseline.

    Where models for COMP, SUFF and CONS begin from the Baseline, it is trained on as long as they
    are; SIM alone leaves its model's answers as they were.
    """
    stage = stage_of(settings, base, task)[0]
    if explainer in UNTRAINED:
        return untrained(settings, base, task, UNTRAINED[explainer], seed, stage)
    if explainer in MODULES:
        return trained(settings, base, task, System((criterion,), explainer), seed, stage)
    return as_long(settings, base, task, (criterion,), seed, stage)


def fine_tuned(settings: Settings, base: str, task: Task) -> list[RunSpec]:
    """The Baselines of a task: every seed of what is trained in full, else the first."""
    seeds = settings.seeds if is_core(settings, base, task) else settings.seeds[:1]
    return [baseline(settings, base, task, seed) for seed in seeds]


def as_long(
    settings: Settings, base: str, task: Task, criteria: tuple[str, ...], seed: int, stage: str
) -> RunSpec:
    """The Baseline that was trained as long as a model of this stage for these criteria."""
    if criteria != ("SIM",) and follows(settings, stage):
        return continued(settings, base, task, seed, stage)
    return baseline(settings, base, task, seed)


def explainers(settings: Settings, base: str, task: Task) -> tuple[str, ...]:
    """The rows that the profile measures of a base model on a task."""
    asked = settings.grid["bases"][base]["tasks"][task.paper]
    return EXPLAINERS if asked == "all" else tuple(settings.grid["rows"][asked])


def rows_measured(settings: Settings, base: str, task: Task) -> dict[str, tuple[str, ...]]:
    """Row → the criteria it is measured by: the profile's methods, beside ELECTRA's modules the
    same as they begin, and students without explanations."""
    rows = explainers(settings, base, task)
    begun = [row for row, module in UNTRAINED.items() if base == "ELECTRA" and module in rows]
    return {**dict.fromkeys(rows, CRITERIA), **dict.fromkeys(begun, CRITERIA[1:]), FLOOR: ("SIM",)}


def subset_run(settings: Settings, task: Task, criteria: tuple[str, ...], seed: int) -> RunSpec:
    """A model of Figure 5: all sets of criteria are trained alike, to be compared."""
    return trained(settings, "ELECTRA", task, System(criteria), seed, "short")


def most_criteria(settings: Settings, task: Task) -> int:
    """How many criteria are trained together on a task at the most; the single ones everywhere."""
    most: int = settings.grid["subsets"].get(task.paper, 1)
    return most


def subset_seeds(settings: Settings) -> tuple[int, ...]:
    """Every seed where the profile has the time, else the first."""
    return settings.seeds[:1] if "every_seed" in settings.grid else settings.seeds
