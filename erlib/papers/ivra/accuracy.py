"""What do criteria cost in accuracy? The cells of Table 5."""

from __future__ import annotations

from collections.abc import Iterator

from erlib.config import RunSpec
from erlib.papers.cells import Cell
from erlib.papers.ivra.measured import (
    answers,
    as_long,
    fine_tuned,
    most_criteria,
    row_run,
    stage_of,
    subset_run,
    subset_seeds,
)
from erlib.papers.ivra.readings import answers_read, difference, nth
from erlib.papers.ivra.systems import (
    SPARSEMAX,
    SUBSETS,
    Task,
    continued,
    follows,
    seeds_of,
    subset_name,
    tasks,
)
from erlib.parameters import Settings

BASELINE = "ELECTRA baseline"  # as Table 5 calls it
CONTINUED = "Baseline, trained on"  # as long as a model for one criterion
SHORT = "Baseline, trained on briefly"  # as one for several, where that is another run


def accuracies(settings: Settings) -> Iterator[Cell]:
    """Table 5: what each set of criteria costs, against a Baseline trained as long.

    Of a single criterion the run of Tables 1 to 4 is asked, of several that of Figure 5.
    """
    for task in tasks(settings, "ELECTRA"):
        read = answers_read(task)
        accuracy, cost = {"accuracy": read}, {"accuracy_delta_vs_baseline": difference(read)}
        most = most_criteria(settings, task)
        for criteria in (c for c in SUBSETS if len(c) <= most):
            for seed, run, before in _compared(settings, task, criteria):
                own, other = answers(settings, run), answers(settings, before)
                name = subset_name(criteria)
                yield Cell("table5", name, task.paper, seed, (own,), accuracy)
                yield Cell("table5", name, task.paper, seed, (own, other), cost)
        for name, run in _longer(settings, task):
            yield Cell("table5", name, task.paper, run.seed, (answers(settings, run),), accuracy)
        stage = stage_of(settings, "ELECTRA", task)[0]
        for tuned_run in fine_tuned(settings, "ELECTRA", task):
            seed = tuned_run.seed
            longer = as_long(settings, "ELECTRA", task, ("COMP",), seed, stage)
            both = answers(settings, tuned_run), answers(settings, longer)
            # A claim compares with what was trained as long as the models for a criterion.
            yield Cell("table5", BASELINE, task.paper, seed, both, accuracy,
                       decides={"accuracy": nth(read, 1)})  # fmt: skip


def _compared(
    settings: Settings, task: Task, criteria: tuple[str, ...]
) -> Iterator[tuple[int, RunSpec, RunSpec]]:
    """(seed, the model for these criteria, the Baseline trained as long)."""
    if len(criteria) > 1:
        for seed in subset_seeds(settings):
            before = as_long(settings, "ELECTRA", task, criteria, seed, "short")
            yield seed, subset_run(settings, task, criteria, seed), before
        return
    stage = stage_of(settings, "ELECTRA", task)[0]
    for seed in seeds_of(settings, "ELECTRA", task, SPARSEMAX, criteria[0]):
        run = row_run(settings, "ELECTRA", task, SPARSEMAX, criteria[0], seed)
        yield seed, run, as_long(settings, "ELECTRA", task, criteria, seed, stage)


def _longer(settings: Settings, task: Task) -> Iterator[tuple[str, RunSpec]]:
    """Baselines that were trained on, where models begin from them.

    Models for several criteria are short on every task, and so is what they are compared with.
    """
    tuned = fine_tuned(settings, "ELECTRA", task)
    found: dict[RunSpec, str] = {}
    for name, stage in ((CONTINUED, stage_of(settings, "ELECTRA", task)[0]), (SHORT, "short")):
        if follows(settings, stage):
            seeds = [run.seed for run in tuned] if name == CONTINUED else settings.seeds[:1]
            for seed in seeds:
                found.setdefault(continued(settings, "ELECTRA", task, seed, stage), name)
    yield from ((name, run) for run, name in found.items())
