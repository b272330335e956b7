"""Every number of IvRA's tables and figures: of what it is measured, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import Cell, Read, of_spec, summary, text_mean
from erlib.papers.grid import whole_grid
from erlib.papers.ivra import measured, readings, systems
from erlib.papers.ivra.measured import answers, briefly, row_spec, subset_seeds
from erlib.papers.ivra.readings import METRICS, READS, SIM_PER_CENT, difference, logged
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
    FLOOR,
    SMAT,
    SOFTMAX,
    SPARSEMAX,
    UNTRAINED,
    Learner,
    System,
    Task,
    subset_name,
)
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Stage

BY_CRITERION = {"SIM": ("table1", "table8"), "COMP": ("table2", "table9"),
                "SUFF": ("table3", "table10"), "CONS": ("table4", "table11")}  # fmt: skip
# Table 11 alone calls SMaT so in its lower half.
PRINTED = {("table11", f"Llama-2|{SMAT}"): "Llama-2|SMaT"}
BASELINE = "ELECTRA baseline"  # as Table 5 calls it
CONTINUED = "Baseline, trained on"  # as long as a model for one criterion
SHORT = "Baseline, trained on briefly"  # as one for several, where that is another run
COUNTED = ("Integrated Gradients", "LIME", SOFTMAX, SPARSEMAX, *UNTRAINED)  # Figure 7
MARKED = {SOFTMAX: "softmax", SPARSEMAX: "sparsemax"}
OUTER = {"simulation": "CE + KL (eq. 15)", "smat": "CE, held out (SMaT)"}  # of the pilot update
# Table 6: row → the criterion that its model is trained for; SMaT for its own.
PLAUSIBLE = {
    **{f"IvRA Sparsemax ({criterion})": (SPARSEMAX, criterion) for criterion in CRITERIA},
    "SMaT": (SMAT, "SIM"),
    "Attention (Avg.)": ("Attention (Avg. all layers)", "COMP"),
    "Attention (Last layer)": ("Attention (last layer)", "COMP"),
    **{name: (name, "COMP") for name in list(systems.FIXED)[2:]},
    **{row.replace(" - ", " "): (row, "COMP") for row in UNTRAINED},
}
COLLUSION = {
    "outer CE, first epoch": logged("train_student_ce", 0, 2),
    "outer CE, last epoch": logged("train_student_ce", -1, 2),
    "KL, first epoch": logged("train_student_kl", 0, 2),
    "KL, last epoch": logged("train_student_kl", -1, 2),
    "entropy of r, last epoch": logged("train_entropy", -1, 2),
    "SIM of a fresh student": SIM_PER_CENT,
    "SIM without explanations": of_spec(1, SIM_PER_CENT),
}
SHARE, AUC = text_mean("share"), text_mean("auc")
Where = tuple[Learner, str, str, int]  # learner, row, criterion, seed


def cells(study: Study) -> Iterator[Cell]:
    """All of them; none needs a result."""
    for table in (by_explainer, above_the_floor, base_models, accuracies, by_subset, by_level,
                  important_tokens, transfers, plausible, tuned, colluding):  # fmt: skip
        yield from table(study.settings)


def grid(settings: Settings) -> list[Stage]:
    """Train the models and their students, measure both."""
    planned = Study(paper("ivra"), settings, {}).cells
    return whole_grid(planned, keeps=kept(settings).__contains__)


def kept(settings: Settings) -> set[RunSpec]:
    """The first seed's models of the tasks that the profile names, trained for a criterion, and
    their Baselines: figures, examples and costs explain texts by them."""
    return {
        measured.row_run(learner, row, criterion, settings.seeds[0])
        for learner in systems.learners(settings, "ELECTRA")
        for criterion in settings.grid["keep"].get(learner.task.paper, ())
        for row in measured.explainers(learner)
    }


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The answers of the first base model, fine-tuned, on tasks with classes."""
    return {
        learner.task.paper: [answers(settings, run) for run in measured.fine_tuned(learner)]
        for learner in systems.learners(settings, BASES[0])
        if not learner.task.spans
    }


def _rows(settings: Settings) -> Iterator[Where]:
    """Every explanation method by every criterion that it is measured by."""
    for base in BASES:
        for learner in systems.learners(settings, base):
            for row, criteria in measured.rows_measured(learner).items():
                for criterion in criteria:
                    for seed in systems.seeds_of(learner, row, criterion):
                        yield learner, row, criterion, seed


def by_explainer(settings: Settings) -> Iterator[Cell]:
    """Tables 1 to 4 of the first base model, 8 to 11 of the others."""
    for learner, row, criterion, seed in _rows(settings):
        table = BY_CRITERION[criterion][learner.base != BASES[0]]
        name = f"{learner.base}|{row}"
        read = {METRICS[criterion]: READS[criterion]}
        if table == "table8":  # which alone is in per cent
            read = {"simulatability_pct": SIM_PER_CENT}
        spec = row_spec(learner, row, criterion, seed)
        name = PRINTED.get((table, name), name)
        yield Cell(table, name, learner.task.paper, seed, (spec,), read)


def above_the_floor(settings: Settings) -> Iterator[Cell]:
    """What explanations add to students: SIM of each method minus that of students without any."""
    read = {"above the floor": difference(SIM_PER_CENT), "floor": of_spec(1, SIM_PER_CENT)}
    for learner, row, criterion, seed in _rows(settings):
        if criterion == "SIM" and row != FLOOR:
            both = tuple(row_spec(learner, name, "SIM", seed) for name in (row, FLOOR))
            name = f"{learner.base}|{row}"
            yield Cell("table-floor", name, learner.task.paper, seed, both, read)


def base_models(settings: Settings) -> Iterator[Cell]:
    """How well every base model has learnt every task."""
    for learner in (learner for base in BASES for learner in systems.learners(settings, base)):
        task = learner.task
        other = ("exact match", "exact_match") if task.spans else ("majority class", "majority")
        read = {"accuracy or span F1": readings.answers_read(task),
                other[0]: summary(other[1], 100.0)}  # fmt: skip
        for run in measured.fine_tuned(learner):
            spec = answers(settings, run)
            yield Cell("table-bases", learner.base, task.paper, run.seed, (spec,), read)


def accuracies(settings: Settings) -> Iterator[Cell]:
    """Table 5: what each set of criteria costs, against a Baseline trained as long.

    Of a single criterion the run of Tables 1 to 4 is asked, of several that of Figure 5.
    """
    for learner in systems.learners(settings, "ELECTRA"):
        task, read = learner.task.paper, readings.answers_read(learner.task)
        accuracy, cost = {"accuracy": read}, {"accuracy_delta_vs_baseline": difference(read)}
        for criteria, seed, run, before in _compared(learner):
            own, other = answers(settings, run), answers(settings, before)
            name = subset_name(criteria)
            yield Cell("table5", name, task, seed, (own,), accuracy)
            yield Cell("table5", name, task, seed, (own, other), cost)
        for run, name in _longer(learner).items():
            yield Cell("table5", name, task, run.seed, (answers(settings, run),), accuracy)
        for run in measured.fine_tuned(learner):
            longer = measured.as_long(learner, ("COMP",), run.seed, learner.stage)
            both = answers(settings, run), answers(settings, longer)
            # A claim compares with what was trained as long as the models for a criterion.
            yield Cell("table5", BASELINE, task, run.seed, both, accuracy,
                       decides={"accuracy": of_spec(1, read)})  # fmt: skip


def _compared(learner: Learner) -> Iterator[tuple[tuple[str, ...], int, RunSpec, RunSpec]]:
    """(criteria, seed, the model for these criteria, the Baseline trained as long)."""
    for criteria in systems.SUBSETS:
        if len(criteria) == 1:
            for seed in systems.seeds_of(learner, SPARSEMAX, criteria[0]):
                run = measured.row_run(learner, SPARSEMAX, criteria[0], seed)
                yield criteria, seed, run, measured.as_long(learner, criteria, seed, learner.stage)
        elif len(criteria) <= measured.most_criteria(learner):
            for seed in subset_seeds(learner.settings):
                run = measured.subset_run(learner, criteria, seed)
                yield criteria, seed, run, measured.as_long(learner, criteria, seed, "short")


def _longer(learner: Learner) -> dict[RunSpec, str]:
    """Baselines that were trained on, where models begin from them, and what they are called.

    Models for several criteria are short on every task, and so is what they are compared with.
    """
    found: dict[RunSpec, str] = {}
    first = learner.settings.seeds[:1]
    for name, stage, seeds in (CONTINUED, learner.stage, learner.seeds), (SHORT, "short", first):
        for seed in seeds if systems.follows(learner.settings, stage) else ():
            found.setdefault(systems.continued(learner, seed, stage), name)
    return found


def by_subset(settings: Settings) -> Iterator[Cell]:
    """Figure 5: every criterion of models trained for every set of criteria, mean over tasks, and
    its gain over models trained for it alone."""

    def of(learner: Learner, criteria: tuple[str, ...], criterion: str, seed: int) -> EvalSpec:
        return briefly(learner, measured.subset_run(learner, criteria, seed), criterion)

    every = [(x, measured.most_criteria(x)) for x in systems.learners(settings, "ELECTRA")]
    for criteria in systems.SUBSETS:
        where = [learner for learner, most in every if most >= max(2, len(criteria))]
        for seed in subset_seeds(settings) if where else ():
            for criterion in CRITERIA:
                own = tuple(of(learner, criteria, criterion, seed) for learner in where)
                alone = tuple(of(learner, (criterion,), criterion, seed) for learner in where)
                name, read = subset_name(criteria), readings.over_tasks(READS[criterion])
                yield Cell("figure-5", name, "", seed, own, {METRICS[criterion]: read})
                gains = {"gain": readings.ARG[criterion], "difference": readings.PLAIN[criterion]}
                yield Cell("figure-5", name, criterion, seed, (*alone, *own), gains)


def by_level(settings: Settings) -> Iterator[Cell]:
    """Figure 6: the last epoch's loss of runs that train one level of the module, or all."""
    home = systems.core(settings)
    for criterion in CRITERIA:
        read = {"criterion_loss": logged(readings.LOGGED[criterion], -1)}
        for level in (None, *systems.LEVELS):
            for seed in settings.seeds[: settings.grid.get("curve_seeds")]:
                run = systems.trained(home, System((criterion,), level=level), seed, "curves")
                yield Cell("figure-6", level or "all levels", criterion, seed, (run,), read)


def important_tokens(settings: Settings) -> Iterator[Cell]:
    """Figure 7: how many tokens an explainer marks, for models trained for COMP and for SUFF.

    The rows of what is not trained are of one and the same model.
    """
    found: dict[tuple[str, str, int], Cell] = {}
    for learner, row, criterion, seed in _rows(settings):
        if learner.base == "ELECTRA" and row in COUNTED and criterion in ("COMP", "SUFF"):
            name = f"{MARKED[row]}, {criterion}" if row in MARKED else row
            spec = replace(row_spec(learner, row, criterion, seed), kind="important_share")
            cell = Cell("figure-7", name, learner.task.paper, seed, (spec,),
                        {"important_tokens": SHARE})  # fmt: skip
            found.setdefault((name, cell.column, seed), cell)
    yield from found.values()


def transfers(settings: Settings) -> Iterator[Cell]:
    """Figure 8: what models trained on a set have over those from another set of its kind."""
    homes = systems.learners(settings, settings.grid["studied"])
    targets = [(home, systems.transfer_target(settings, home.task)) for home in homes]
    pairs = [(home, target) for home, target in targets if target]

    def of(home: Learner, target: Task, criterion: str, seed: int) -> EvalSpec:
        run = systems.trained(home, System((criterion,)), seed, "short")
        return briefly(home, run, criterion, on=target)

    for criterion in CRITERIA:
        gains = {"arg_of_direct_training": readings.ARG[criterion],
                 "difference": readings.PLAIN[criterion]}  # fmt: skip
        for seed in subset_seeds(settings) if pairs else ():
            brought = tuple(of(home, target, criterion, seed) for home, target in pairs)
            direct = tuple(of(home.on(target), target, criterion, seed) for home, target in pairs)
            yield Cell("figure-8", criterion, "", seed, (*brought, *direct), gains)


def plausible(settings: Settings) -> Iterator[Cell]:
    """Table 6: explanations against rationales, of models of the core task."""
    home = systems.core(settings)
    where = home.on(Task("MovieReviews", settings.roles["plausibility"], home.task.paper))
    for name, (row, criterion) in PLAUSIBLE.items():
        for seed in systems.seeds_of(home, row, criterion):
            run = measured.row_run(home, row, criterion, seed)
            spec = measured.explained(where, run, row, "plausibility")
            yield Cell("table6", name, where.task.paper, seed, (spec,), {"plausibility_auc": AUC})


def tuned(settings: Settings) -> Iterator[Cell]:
    """Table 7: every criterion under every learning rate and decay that the profile tries."""
    learner = replace(systems.core(settings), base=settings.grid["studied"])
    read: dict[str, dict[str, Read]] = {c: {METRICS[c]: READS[c]} for c in CRITERIA}
    read["SIM"] = {"simulatability_pct": SIM_PER_CENT}
    for lr, decay in settings.grid["settings"]:
        for criterion in CRITERIA:
            for seed in subset_seeds(settings):
                system = System((criterion,), lr=lr, decay=decay)
                spec = briefly(learner, systems.trained(learner, system, seed, "tuning"), criterion)
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
    home = systems.core(settings)
    for outer, name in OUTER.items():
        for seed in settings.seeds[: settings.grid.get("collusion_seeds")]:
            run = systems.trained(home, System(("SIM",), outer=outer), seed, "curves")
            specs = (measured.measure(home, run, SPARSEMAX, "SIM"),
                     row_spec(home, FLOOR, "SIM", seed), run)  # fmt: skip
            yield Cell("table-collusion", name, home.task.paper, seed, specs, COLLUSION)
