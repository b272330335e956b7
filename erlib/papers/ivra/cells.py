"""Every number of IvRA's tables and figures: of what it is measured, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import Cell, Read, summary, text_mean
from erlib.papers.grid import whole_grid
from erlib.papers.ivra.accuracy import accuracies
from erlib.papers.ivra.measured import (
    answers,
    explained,
    explainers,
    fine_tuned,
    measure,
    most_criteria,
    row_run,
    row_spec,
    rows_measured,
    subset_run,
    subset_seeds,
)
from erlib.papers.ivra.readings import (
    ARG,
    LOGGED,
    METRICS,
    PLAIN,
    READS,
    SIM_PER_CENT,
    answers_read,
    difference,
    logged,
    nth,
    over_tasks,
)
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
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
    core_task,
    seeds_of,
    subset_name,
    tasks,
    trained,
    transfer_target,
)
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Stage

BY_CRITERION = {"SIM": ("table1", "table8"), "COMP": ("table2", "table9"),
                "SUFF": ("table3", "table10"), "CONS": ("table4", "table11")}  # fmt: skip
# Table 11 alone calls SMaT so in its lower half.
PRINTED = {("table11", f"Llama-2|{SMAT}"): "Llama-2|SMaT"}
COUNTED = ("Integrated Gradients", "LIME", SOFTMAX, SPARSEMAX, *UNTRAINED)  # Figure 7
MARKED = {SOFTMAX: "softmax", SPARSEMAX: "sparsemax"}
OUTER = {"simulation": "CE + KL (eq. 15)", "smat": "CE, held out (SMaT)"}  # of the pilot update
# Table 6: row → the criterion that its model is trained for; SMaT for its own.
PLAUSIBLE = {
    **{f"IvRA Sparsemax ({criterion})": (SPARSEMAX, criterion) for criterion in CRITERIA},
    "SMaT": (SMAT, "SIM"),
    "Attention (Avg.)": ("Attention (Avg. all layers)", "COMP"),
    "Attention (Last layer)": ("Attention (last layer)", "COMP"),
    **{name: (name, "COMP") for name in list(FIXED)[2:]},
    **{row.replace(" - ", " "): (row, "COMP") for row in UNTRAINED},
}
NOT_MEASURED: Mapping[str, str] = {}
Where = tuple[str, Task, str, str, int]  # base model, task, row, criterion, seed


def cells(study: Study) -> Iterator[Cell]:
    """All of them; none needs a result."""
    settings = study.settings
    for table in (by_explainer, above_the_floor, base_models, accuracies, by_subset, by_level,
                  important_tokens, transfers, plausible, tuned, colluding):  # fmt: skip
        yield from table(settings)


def grid(settings: Settings) -> list[Stage]:
    """Train the models and their students, measure both."""
    planned = Study(paper("ivra"), settings, {}).cells
    return whole_grid(planned, keeps=kept(settings).__contains__)


def kept(settings: Settings) -> set[RunSpec]:
    """The first seed's models of the tasks that the profile names, trained for a criterion, and
    their Baselines: figures, examples and costs explain texts by them."""
    return {
        row_run(settings, "ELECTRA", task, row, criterion, settings.seeds[0])
        for task in tasks(settings, "ELECTRA")
        for criterion in settings.grid["keep"].get(task.paper, ())
        for row in explainers(settings, "ELECTRA", task)
    }


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The answers of the first base model, fine-tuned, on tasks with classes."""
    return {
        task.paper: [answers(settings, run) for run in fine_tuned(settings, BASES[0], task)]
        for task in tasks(settings, BASES[0])
        if not task.spans
    }


def _rows(settings: Settings) -> Iterator[Where]:
    """Every explanation method by every criterion that it is measured by."""
    for base in BASES:
        for task in tasks(settings, base):
            for row, criteria in rows_measured(settings, base, task).items():
                for criterion in criteria:
                    for seed in seeds_of(settings, base, task, row, criterion):
                        yield base, task, row, criterion, seed


def by_explainer(settings: Settings) -> Iterator[Cell]:
    """Tables 1 to 4 of the first base model, 8 to 11 of the others."""
    for base, task, row, criterion, seed in _rows(settings):
        table = BY_CRITERION[criterion][base != BASES[0]]
        name = PRINTED.get((table, f"{base}|{row}"), f"{base}|{row}")
        read = {METRICS[criterion]: READS[criterion]}
        if table == "table8":  # which alone is in per cent
            read = {"simulatability_pct": SIM_PER_CENT}
        spec = row_spec(settings, base, task, row, criterion, seed)
        yield Cell(table, name, task.paper, seed, (spec,), read)


def above_the_floor(settings: Settings) -> Iterator[Cell]:
    """What explanations add to students: SIM of each method minus that of students without any."""
    read = {"above the floor": difference(SIM_PER_CENT), "floor": nth(SIM_PER_CENT, 1)}
    for base, task, row, criterion, seed in _rows(settings):
        if criterion == "SIM" and row != FLOOR:
            told, alone = (
                row_spec(settings, base, task, name, "SIM", seed) for name in (row, FLOOR)
            )
            yield Cell("table-floor", f"{base}|{row}", task.paper, seed, (told, alone), read)


def base_models(settings: Settings) -> Iterator[Cell]:
    """How well every base model has learnt every task."""
    for base in BASES:
        for task in tasks(settings, base):
            name, column = (
                ("exact match", "exact_match") if task.spans else ("majority class", "majority")
            )
            read = {"accuracy or span F1": answers_read(task), name: summary(column, 100.0)}
            for run in fine_tuned(settings, base, task):
                spec = answers(settings, run)
                yield Cell("table-bases", base, task.paper, run.seed, (spec,), read)


def by_subset(settings: Settings) -> Iterator[Cell]:
    """Figure 5: every criterion of models trained for every set of criteria, mean over tasks, and
    its gain over models trained for it alone."""

    def measured(task: Task, criteria: tuple[str, ...], criterion: str, seed: int) -> EvalSpec:
        run = subset_run(settings, task, criteria, seed)
        return measure(settings, "ELECTRA", task, run, SPARSEMAX, criterion,
                       pupil="short_student", rows="wide_rows")  # fmt: skip

    for criteria in SUBSETS:
        every = [(t, most_criteria(settings, t)) for t in tasks(settings, "ELECTRA")]
        where = [t for t, most in every if most >= max(2, len(criteria))]
        for seed in subset_seeds(settings) if where else ():
            for criterion in CRITERIA:
                own = tuple(measured(t, criteria, criterion, seed) for t in where)
                alone = tuple(measured(t, (criterion,), criterion, seed) for t in where)
                name, read = subset_name(criteria), over_tasks(READS[criterion])
                yield Cell("figure-5", name, "", seed, own, {METRICS[criterion]: read})
                gains = {"gain": ARG[criterion], "difference": PLAIN[criterion]}
                yield Cell("figure-5", name, criterion, seed, (*alone, *own), gains)


def by_level(settings: Settings) -> Iterator[Cell]:
    """Figure 6: the last epoch's loss of runs that train one level of the module, or all."""
    task = core_task(settings)
    for criterion in CRITERIA:
        read = {"criterion_loss": logged(LOGGED[criterion], -1)}
        for level in (None, *LEVELS):
            for seed in settings.seeds[: settings.grid.get("curve_seeds")]:
                system = System((criterion,), level=level)
                run = trained(settings, "ELECTRA", task, system, seed, "curves")
                yield Cell("figure-6", level or "all levels", criterion, seed, (run,), read)


def important_tokens(settings: Settings) -> Iterator[Cell]:
    """Figure 7: how many tokens an explainer marks, for models trained for COMP and for SUFF.

    The rows of what is not trained are of one and the same model.
    """
    found: dict[tuple[str, str, int], Cell] = {}
    for base, task, row, criterion, seed in _rows(settings):
        if base == "ELECTRA" and row in COUNTED and criterion in ("COMP", "SUFF"):
            name = f"{MARKED[row]}, {criterion}" if row in MODULES else row
            spec = row_spec(settings, base, task, row, criterion, seed)
            spec, read = replace(spec, kind="important_share"), {"important_tokens": SHARE}
            cell = Cell("figure-7", name, task.paper, seed, (spec,), read)
            found.setdefault((name, task.paper, seed), cell)
    yield from found.values()


def transfers(settings: Settings) -> Iterator[Cell]:
    """Figure 8: what models trained on a set have over those from another set of its kind."""
    base = settings.grid["studied"]
    homes = [(source, transfer_target(settings, source)) for source in tasks(settings, base)]
    pairs = [(source, target) for source, target in homes if target]

    def measured(home: Task, target: Task, criterion: str, seed: int) -> EvalSpec:
        run = trained(settings, base, home, System((criterion,)), seed, "short")
        return measure(settings, base, home, run, SPARSEMAX, criterion,
                       pupil="short_student", on=target, rows="wide_rows")  # fmt: skip

    for criterion in CRITERIA:
        gains = {"arg_of_direct_training": ARG[criterion], "difference": PLAIN[criterion]}
        for seed in subset_seeds(settings) if pairs else ():
            brought = tuple(measured(source, target, criterion, seed) for source, target in pairs)
            direct = tuple(measured(target, target, criterion, seed) for _, target in pairs)
            yield Cell("figure-8", criterion, "", seed, (*brought, *direct), gains)


def plausible(settings: Settings) -> Iterator[Cell]:
    """Table 6: explanations against rationales, of models of the core task."""
    home = core_task(settings)
    where = Task("MovieReviews", settings.roles["plausibility"], home.paper)
    for name, (row, criterion) in PLAUSIBLE.items():
        for seed in seeds_of(settings, "ELECTRA", home, row, criterion):
            run = row_run(settings, "ELECTRA", home, row, criterion, seed)
            spec = explained(settings, where, run, row, "plausibility")
            yield Cell("table6", name, where.paper, seed, (spec,), {"plausibility_auc": AUC})


def tuned(settings: Settings) -> Iterator[Cell]:
    """Table 7: every criterion under every learning rate and decay that the profile tries."""
    base, task = settings.grid["studied"], core_task(settings)
    read: dict[str, dict[str, Read]] = {c: {METRICS[c]: READS[c]} for c in CRITERIA}
    read["SIM"] = {"simulatability_pct": SIM_PER_CENT}
    for lr, decay in settings.grid["settings"]:
        for criterion in CRITERIA:
            for seed in subset_seeds(settings):
                system = System((criterion,), lr=lr, decay=decay)
                run = trained(settings, base, task, system, seed, "tuning")
                spec = measure(settings, base, task, run, SPARSEMAX, criterion,
                               pupil="short_student", rows="wide_rows")  # fmt: skip
                name = setting_name(lr, decay)
                yield Cell("table7", name, criterion, seed, (spec,), read[criterion])


def setting_name(lr: float, decay: float) -> str:
    """As Table 7's rows are named: lr=3e-5|gamma=0.750."""
    mantissa, exponent = f"{lr:.0e}".split("e")
    return f"lr={mantissa}e{int(exponent)}|gamma={decay:.3f}"


def colluding(settings: Settings) -> Iterator[Cell]:
    """Teacher and scaffold student under either outer loss of the pilot update, and what a fresh
    student makes of it.

    The direct KL of eq. 15 can fall because both agree on any map; the outer cross-entropy, and
    above all a student that was not there, cannot be helped by that. The runs are those of Figure
    6, whose losses are known by epoch; their students are full ones.
    """
    task = core_task(settings)
    for outer, name in OUTER.items():
        for seed in settings.seeds[: settings.grid.get("collusion_seeds")]:
            system = System(("SIM",), outer=outer)
            run = trained(settings, "ELECTRA", task, system, seed, "curves")
            fresh = measure(settings, "ELECTRA", task, run, SPARSEMAX, "SIM")
            alone = row_spec(settings, "ELECTRA", task, FLOOR, "SIM", seed)
            yield Cell("table-collusion", name, task.paper, seed, (fresh, alone, run), COLLUSION)


SHARE, AUC = text_mean("share"), text_mean("auc")
COLLUSION = {
    "outer CE, first epoch": logged("train_student_ce", 0, 2),
    "outer CE, last epoch": logged("train_student_ce", -1, 2),
    "KL, first epoch": logged("train_student_kl", 0, 2),
    "KL, last epoch": logged("train_student_kl", -1, 2),
    "entropy of r, last epoch": logged("train_entropy", -1, 2),
    "SIM of a fresh student": SIM_PER_CENT,
    "SIM without explanations": nth(SIM_PER_CENT, 1),
}
