"""Which model stands behind a row of the tables, who learns from it, and how is it measured?"""

from __future__ import annotations

from erlib.config import EvalSpec, RunSpec, Teaching, term, update
from erlib.papers.ivra import systems
from erlib.papers.ivra.systems import CRITERIA, FLOOR, MODULES, UNTRAINED, Learner, System, Task
from erlib.parameters import Settings
from erlib.training.identity import as_measured

KINDS = {"SIM": "simulatability", "COMP": "faithfulness", "SUFF": "faithfulness",
         "CONS": "consistency"}  # fmt: skip
STUDENTS = 100  # added to the teacher's seed: its head must not begin where the teacher's began


def measure(
    learner: Learner, run: RunSpec, row: str, criterion: str, *, pupil: str = "student",
    on: Task | None = None, texts: str = "explained_rows",
) -> EvalSpec:  # fmt: skip
    """How well a model's explanations meet a criterion, on its own task or `on` another.

    For SIM a student is taught first, by the recipe `pupil`; for the others `texts` names the
    profile's number of texts.
    """
    where = learner.on(on or learner.task)
    if criterion != "SIM":
        return explained(where, run, row, KINDS[criterion], texts)
    taught = student(where, run, row, pupil)
    examined = systems.recipe(where, _known(where.settings, pupil)).get("examined_rows")
    return EvalSpec(taught, as_measured(taught.data), "test", KINDS[criterion], examined)


def explained(
    where: Learner, run: RunSpec, row: str, kind: str, texts: str = "explained_rows"
) -> EvalSpec:
    """A measure of the explanations themselves; all of one model share one table of scores."""
    grid = where.settings.grid
    return EvalSpec(
        run,
        as_measured(systems.data_spec(where, systems.recipe(where))),
        "test",
        kind,
        grid.get(texts, grid.get("explained_rows")),
        method=systems.method_of(row),
        variant="ivra",
        protocol="ivra",
        options=systems.options_of(where.settings, row),
    )


def answers(settings: Settings, run: RunSpec) -> EvalSpec:
    """What a model answers to test texts."""
    return EvalSpec(
        run, as_measured(run.data), "test", "predictions", settings.grid.get("test_rows")
    )


def student(where: Learner, teacher: RunSpec, row: str, stage: str = "student") -> RunSpec:
    """A fresh model that learns, from texts of this task, what `teacher` answers, helped by its
    explanations."""
    grid = where.settings.grid
    sizes = systems.recipe(where, _known(where.settings, stage))
    # eq. 7 has log p(start) + log p(end) of a span, of which the task's loss is the mean
    objective = [term("task", 2.0 if where.task.spans else 1.0)]
    teaching, module, options = Teaching(teacher), None, systems.decay_of(sizes)
    if row != FLOOR:
        spent = systems.options_of(where.settings, row)
        teaching = Teaching(teacher, systems.method_of(row), "ivra", spent)
        module = MODULES.get(row, "ivra-softmax")
        objective.append(term("simulation", grid["pilot"]["beta"]))
        options["explainer_lr"] = sizes["lr"] * grid["explainer_factor"]
    return RunSpec(
        systems.data_spec(where, sizes, teaching),
        systems.model_spec(where, module),
        objective=tuple(objective),
        optimiser=systems.optimiser_of(sizes),
        seed=teacher.seed + STUDENTS,
        update=update(sizes["update"], **options),
    )


def _known(settings: Settings, stage: str) -> str:
    """The recipe of a student: that of the stage, or of all where the profile knows but one."""
    return stage if stage in settings.grid else "student"


def row_spec(learner: Learner, row: str, criterion: str, seed: int) -> EvalSpec:
    """A row of Tables 1 to 4 and 8 to 11 by one criterion."""
    run = row_run(learner, row, criterion, seed)
    return measure(learner, run, row, criterion, pupil=learner.pupil)


def row_run(learner: Learner, row: str, criterion: str, seed: int) -> RunSpec:
    """The model that a row is measured on: trained for the criterion, or a Baseline.

    Where models for COMP, SUFF and CONS begin from the Baseline, it is trained on as long as they
    are; SIM alone leaves its model's answers as they were.
    """
    if row in UNTRAINED:
        return systems.untrained(learner, UNTRAINED[row], seed)
    if row in MODULES:
        return systems.trained(learner, System((criterion,), row), seed, learner.stage)
    return as_long(learner, (criterion,), seed, learner.stage)


def fine_tuned(learner: Learner) -> list[RunSpec]:
    """The Baselines of a task."""
    return [systems.baseline(learner, seed) for seed in learner.seeds]


def as_long(learner: Learner, criteria: tuple[str, ...], seed: int, stage: str) -> RunSpec:
    """The Baseline that was trained as long as a model of this stage for these criteria."""
    if criteria != ("SIM",) and systems.follows(learner.settings, stage):
        return systems.continued(learner, seed, stage)
    return systems.baseline(learner, seed)


def explainers(learner: Learner) -> tuple[str, ...]:
    """The rows that the profile measures of a base model on a task."""
    grid = learner.settings.grid
    asked = grid["bases"][learner.base]["tasks"][learner.task.paper]
    return systems.EXPLAINERS if asked == "all" else tuple(grid["rows"][asked])


def rows_measured(learner: Learner) -> dict[str, tuple[str, ...]]:
    """Row → the criteria it is measured by: the profile's methods, beside ELECTRA's modules the
    same as they begin, and students without explanations."""
    rows = explainers(learner)
    begun = [row for row, module in UNTRAINED.items() if module in rows]
    begun = begun if learner.base == "ELECTRA" else []
    return {**dict.fromkeys(rows, CRITERIA), **dict.fromkeys(begun, CRITERIA[1:]), FLOOR: ("SIM",)}


def subset_run(learner: Learner, criteria: tuple[str, ...], seed: int) -> RunSpec:
    """A model of Figure 5: all sets of criteria are trained alike, to be compared."""
    return systems.trained(learner, System(criteria), seed, "short")


def briefly(learner: Learner, run: RunSpec, criterion: str, on: Task | None = None) -> EvalSpec:
    """A criterion by sparsemax, with a short student or few texts: for the many runs of studies."""
    return measure(learner, run, systems.SPARSEMAX, criterion, pupil="short_student", on=on,
                   texts="wide_rows")  # fmt: skip


def most_criteria(learner: Learner) -> int:
    """How many criteria are trained together on a task at the most; the single ones everywhere."""
    most: int = learner.settings.grid["subsets"].get(learner.task.paper, 1)
    return most


def subset_seeds(settings: Settings) -> tuple[int, ...]:
    """Every seed where the profile has the time, else the first."""
    return settings.seeds[:1] if "every_seed" in settings.grid else settings.seeds
