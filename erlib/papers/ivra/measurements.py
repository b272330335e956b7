"""Which runs and measurements make up IvRA's tables and figures?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from erlib.config import EvalSpec, RunSpec
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
    EXPLAINERS,
    FIXED,
    FLOOR,
    LEVELS,
    MODULES,
    SMAT,
    SOFTMAX,
    SPARSEMAX,
    SUBSETS,
    UNTRAINED,
    System,
    Task,
    baseline,
    continued,
    core_task,
    data_spec,
    follows,
    is_core,
    method_of,
    options_of,
    pupil_recipe,
    recipe,
    seeds_of,
    student,
    tasks,
    trained,
    transfer_target,
    untrained,
)
from erlib.parameters import Settings
from erlib.training.stages import Stage, listed_in

KINDS = {"SIM": "simulatability", "COMP": "faithfulness", "SUFF": "faithfulness",
         "CONS": "consistency"}  # fmt: skip
COUNTED = ("Integrated Gradients", "LIME", SOFTMAX, SPARSEMAX, *UNTRAINED)  # Figure 7
CONTINUED = "Baseline, trained on"  # as long as a model for one criterion
SHORT = "Baseline, trained on briefly"  # as one for several, where that is another run
OUTER = ("simulation", "smat")  # the outer loss of the pilot update: eq. 15, and SMaT's


@dataclass(frozen=True)
class Cell:
    """One number: what was measured of which model, with which seed.

    `row` is an explainer of the paper's tables, a set of criteria, or a setting; `criterion` says
    what the number is, and is empty for accuracy.
    """

    base: str
    task: Task
    row: str
    criterion: str
    seed: int
    spec: EvalSpec


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


def answers(settings: Settings, task: Task, run: RunSpec) -> EvalSpec:
    """What a model answers to test texts."""
    data = replace(run.data, train_rows=None, dev_rows=None)
    return EvalSpec(run, data, "test", "predictions", settings.grid.get("test_rows"))


def stage_of(settings: Settings, base: str, task: Task) -> tuple[str, str]:
    """How models and students of a task are trained: at full length, or short."""
    return ("full", "student") if is_core(settings, base, task) else ("short", "short_student")


def explainers(settings: Settings, base: str, task: Task) -> tuple[str, ...]:
    """The rows that the profile measures of a base model on a task."""
    asked = settings.grid["bases"][base]["tasks"][task.paper]
    return EXPLAINERS if asked == "all" else tuple(settings.grid["rows"][asked])


def explained_run(
    settings: Settings, base: str, task: Task, explainer: str, criterion: str, seed: int
) -> RunSpec:
    """The model that a row is measured on: trained for the criterion, or a Baseline.

    Where models for COMP, SUFF and CONS begin from the Baseline, it is trained on as long as they
    are; SIM alone leaves its model's answers as they were.
    """
    stage = stage_of(settings, base, task)[0]
    if explainer in UNTRAINED:
        return untrained(settings, base, task, UNTRAINED[explainer], seed, stage)
    if explainer not in MODULES:
        longer = criterion != "SIM" and follows(settings, stage)
        return (
            continued(settings, base, task, seed, stage)
            if longer
            else baseline(settings, base, task, seed)
        )
    return trained(settings, base, task, System((criterion,), explainer), seed, stage)


def measured_rows(settings: Settings, base: str, task: Task) -> dict[str, tuple[str, ...]]:
    """Row → the criteria it is measured by: the profile's methods, students without explanations,
    and beside ELECTRA's modules the same as they begin."""
    rows = explainers(settings, base, task)
    beside = [row for row, module in UNTRAINED.items() if base == "ELECTRA" and module in rows]
    return {FLOOR: ("SIM",), **dict.fromkeys(rows, CRITERIA), **dict.fromkeys(beside, CRITERIA[1:])}


def by_explainer(settings: Settings) -> list[Cell]:
    """Tables 1 to 4 and 8 to 11: every explanation method by every criterion."""
    cells = []
    for base in BASES:
        for task in tasks(settings, base):
            pupil = stage_of(settings, base, task)[1]
            for row, criteria in measured_rows(settings, base, task).items():
                for criterion in criteria:
                    for seed in seeds_of(settings, base, task, row, criterion):
                        run = explained_run(settings, base, task, row, criterion, seed)
                        spec = measure(settings, base, task, run, row, criterion, pupil=pupil)
                        cells.append(Cell(base, task, row, criterion, seed, spec))
    return cells


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The answers of the first base model, fine-tuned, on tasks with classes."""
    found: dict[str, list[EvalSpec]] = {}
    for cell in base_answers(settings):
        if cell.base == BASES[0] and not cell.task.spans:
            found.setdefault(cell.task.paper, []).append(cell.spec)
    return found


def base_answers(settings: Settings) -> list[Cell]:
    """How well every base model has learnt every task."""
    return [
        Cell(base, task, "Baseline", "", seed, answers(settings, task, run))
        for base in BASES
        for task in tasks(settings, base)
        for seed in (settings.seeds if is_core(settings, base, task) else settings.seeds[:1])
        for run in [baseline(settings, base, task, seed)]
    ]


def continued_answers(settings: Settings) -> list[Cell]:
    """What is lost or won by training on, where models for criteria begin from the Baseline.

    Those for several criteria are short on every task, and so is what they are compared with.
    """
    cells: dict[EvalSpec, Cell] = {}
    for task in tasks(settings, "ELECTRA"):
        core = is_core(settings, "ELECTRA", task)
        alone = stage_of(settings, "ELECTRA", task)[0]
        for row, stage in ((CONTINUED, alone), (SHORT, "short")):
            if follows(settings, stage):
                for seed in settings.seeds if core and row == CONTINUED else settings.seeds[:1]:
                    run = continued(settings, "ELECTRA", task, seed, stage)
                    spec = answers(settings, task, run)
                    cells.setdefault(spec, Cell("ELECTRA", task, row, "", seed, spec))
    return list(cells.values())


def subsets(settings: Settings, task: Task) -> list[tuple[str, ...]]:
    """The sets of criteria that are trained together on a task; everywhere the single ones."""
    asked = settings.grid["subsets"].get(task.paper, 1)  # at most so many criteria
    return [s for s in SUBSETS if len(s) <= asked]


def subset_run(settings: Settings, task: Task, criteria: tuple[str, ...], seed: int) -> RunSpec:
    """A model of Figure 5: all sets of criteria are trained alike, to be compared."""
    return trained(settings, "ELECTRA", task, System(criteria), seed, "short")


def subset_seeds(settings: Settings) -> tuple[int, ...]:
    """Every seed where the profile has the time, else the first."""
    return settings.seeds if settings.grid["every_seed"] == "all" else settings.seeds[:1]


def by_subset(settings: Settings) -> list[Cell]:
    """Figure 5: every criterion of models trained for every set of criteria."""
    return [
        Cell("ELECTRA", task, "+".join(criteria), criterion, seed,
             measure(settings, "ELECTRA", task, subset_run(settings, task, criteria, seed),
                     SPARSEMAX, criterion, pupil="short_student", rows="wide_rows"))
        for task in tasks(settings, "ELECTRA")
        if settings.grid["subsets"].get(task.paper, 1) > 1
        for criteria in subsets(settings, task)
        for seed in subset_seeds(settings)
        for criterion in CRITERIA
    ]  # fmt: skip


def subset_answers(settings: Settings) -> list[Cell]:
    """Table 5: what each set of criteria costs in accuracy.

    Of a single criterion the run of Tables 1 to 4 is asked, of several that of Figure 5.
    """
    cells = []
    for task in tasks(settings, "ELECTRA"):
        for criteria in subsets(settings, task):
            alone = len(criteria) == 1
            seeds = subset_seeds(settings)
            if alone:
                seeds = seeds_of(settings, "ELECTRA", task, SPARSEMAX, criteria[0])
            for seed in seeds:
                run = (
                    explained_run(settings, "ELECTRA", task, SPARSEMAX, criteria[0], seed)
                    if alone
                    else subset_run(settings, task, criteria, seed)
                )
                spec = answers(settings, task, run)
                cells.append(Cell("ELECTRA", task, "+".join(criteria), "", seed, spec))
    return cells


def level_runs(settings: Settings) -> dict[tuple[str, str, int], RunSpec]:
    """Figure 6: (criterion, level, seed) → a run that trains one level of the module, or all."""
    task, count = core_task(settings), settings.grid.get("curve_seeds")
    return {
        (criterion, level or "all levels", seed): trained(
            settings, "ELECTRA", task, System((criterion,), level=level), seed, "curves"
        )
        for criterion in CRITERIA
        for level in (None, *LEVELS)
        for seed in settings.seeds[:count]
    }


def important_tokens(settings: Settings) -> list[Cell]:
    """Figure 7: how many tokens an explainer marks, for models trained for COMP and for SUFF."""
    return [
        replace(cell, spec=replace(cell.spec, kind="important_share"))
        for cell in by_explainer(settings)
        if cell.base == "ELECTRA" and cell.criterion in ("COMP", "SUFF") and cell.row in COUNTED
    ]


def transferred(settings: Settings) -> list[Cell]:
    """Figure 8: models trained on another set of the same kind, "direct" and "transferred"."""
    base, cells = settings.grid["studied"], []
    for source in tasks(settings, base):
        target = transfer_target(settings, source)
        if target is None:
            continue
        for criterion in CRITERIA:
            for seed in subset_seeds(settings):
                system = System((criterion,))
                for row, home in (("direct", target), ("transferred", source)):
                    run = trained(settings, base, home, system, seed, "short")
                    spec = measure(settings, base, home, run, SPARSEMAX, criterion,
                                   pupil="short_student", on=target, rows="wide_rows")  # fmt: skip
                    cells.append(Cell(base, target, row, criterion, seed, spec))
    return cells


# Table 6: row → the criterion that its model is trained for; SMaT for its own.
PLAUSIBLE = {
    **{f"IvRA Sparsemax ({criterion})": (SPARSEMAX, criterion) for criterion in CRITERIA},
    "SMaT": (SMAT, "SIM"),
    "Attention (Avg.)": ("Attention (Avg. all layers)", "COMP"),
    "Attention (Last layer)": ("Attention (last layer)", "COMP"),
    **{name: (name, "COMP") for name in list(FIXED)[2:]},
    **{row.replace(" - ", " "): (row, "COMP") for row in UNTRAINED},
}


def plausible(settings: Settings) -> list[Cell]:
    """Table 6: explanations against rationales, of models of the core task."""
    home = core_task(settings)
    where = Task("MovieReviews", settings.roles["plausibility"], home.paper)
    return [
        Cell("ELECTRA", where, row, criterion, seed,
             explained(settings, where,
                       explained_run(settings, "ELECTRA", home, explainer, criterion, seed),
                       explainer, "plausibility"))
        for row, (explainer, criterion) in PLAUSIBLE.items()
        for seed in seeds_of(settings, "ELECTRA", home, explainer, criterion)
    ]  # fmt: skip


def tuned(settings: Settings) -> list[Cell]:
    """Table 7: every criterion under every learning rate and decay that the profile tries."""
    base, task = settings.grid["studied"], core_task(settings)
    return [
        Cell(base, task, setting_name(lr, decay), criterion, seed,
             measure(settings, base, task,
                     trained(settings, base, task, System((criterion,), lr=lr, decay=decay), seed,
                             "tuning"),
                     SPARSEMAX, criterion, pupil="short_student", rows="wide_rows"))
        for lr, decay in settings.grid["settings"]
        for criterion in CRITERIA
        for seed in subset_seeds(settings)
    ]  # fmt: skip


def setting_name(lr: float, decay: float) -> str:
    """As Table 7's rows are named: lr=3e-5|gamma=0.750."""
    mantissa, exponent = f"{lr:.0e}".split("e")
    return f"lr={mantissa}e{int(exponent)}|gamma={decay:.3f}"


def colluding(settings: Settings) -> list[Cell]:
    """Simulatability after training with either outer loss of the pilot update.

    The runs are those of Figure 6, whose losses are known by epoch; their students are full ones.
    """
    task = core_task(settings)
    return [
        Cell("ELECTRA", task, outer, "SIM", seed,
             measure(settings, "ELECTRA", task,
                     trained(settings, "ELECTRA", task, System(("SIM",), outer=outer), seed,
                             "curves"),
                     SPARSEMAX, "SIM"))
        for outer in OUTER
        for seed in settings.seeds[: settings.grid.get("collusion_seeds")]
    ]  # fmt: skip


def every_cell(settings: Settings) -> list[Cell]:
    """All measurements."""
    lists = (by_explainer, base_answers, continued_answers, by_subset, subset_answers,
             important_tokens, transferred, plausible, tuned, colluding)  # fmt: skip
    return list(chain.from_iterable(make(settings) for make in lists))


def grid(settings: Settings) -> list[Stage]:
    """Train the models, teach the students, measure both."""
    evals = list(dict.fromkeys(cell.spec for cell in every_cell(settings)))
    measured = [spec.run for spec in evals if spec.run is not None]
    students = list(dict.fromkeys(run for run in measured if run.data.taught))
    teachers = [run.data.taught.run for run in students if run.data.taught]
    models = _with_starts([*teachers, *(run for run in measured if not run.data.taught),
                           *level_runs(settings).values()])  # fmt: skip
    run_stage = partial(Stage, asked=listed_in(evals), keeps=kept(settings).__contains__)
    return [
        run_stage("models", lambda results: models, len(models), models),
        run_stage("students", lambda results: students, len(students), students),
        Stage("measurements", lambda results: evals, len(evals), evals),
    ]


def kept(settings: Settings) -> set[RunSpec]:
    """The first seed's models of the tasks that the profile names, trained for a criterion, and
    their Baselines: figures, examples and costs explain texts by them."""
    return {
        explained_run(settings, "ELECTRA", task, row, criterion, settings.seeds[0])
        for task in tasks(settings, "ELECTRA")
        for criterion in settings.grid["keep"].get(task.paper, ())
        for row in explainers(settings, "ELECTRA", task)
    }


def _with_starts(runs: Iterable[RunSpec]) -> Sequence[RunSpec]:
    """Each run once, after the one it begins from."""
    return list(dict.fromkeys(chain.from_iterable((r.start, r) if r.start else (r,) for r in runs)))
