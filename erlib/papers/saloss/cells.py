"""Every number of SaLoss's tables and figure, and in which order what they need is made.

λ is chosen by development texts: `cells` can be told when the search is done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.data.parts_of_speech import TAGS, installed_tagger
from erlib.metrics.task import counted_f1_macro
from erlib.papers.cells import Cell, Read, of_answers, summary, text_mean
from erlib.papers.grid import evaluations_of, later, runs_of, stage
from erlib.papers.holes import measured_rows
from erlib.papers.saloss import systems
from erlib.papers.saloss.importance import importance_of
from erlib.papers.saloss.systems import (
    AUDIT,
    AUDITED,
    BASELINE,
    CHOSEN,
    EQ3,
    SALOSS,
    Task,
    fresh_spec,
    recipe_of,
    run_spec,
)
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.identity import as_measured
from erlib.training.stages import Results, Stage, listed_in

Runs = Mapping[str, RunSpec]  # system → its model of full texts, all of one seed
Weights = Mapping[tuple[str, str], float]  # (corpus, system) → the λ that was chosen
COLUMNS = {BASELINE: "Baseline", SALOSS: "SaLoss", CHOSEN: "SaLoss, chosen λ"}
FRESH_COLUMNS = {BASELINE: "Baseline", SALOSS: "SaLoss-TextRank", "Uniform": "SaLoss-Uniform"}
FUNCTIONS = (SALOSS, "ChiSquared", "TFIDF")  # the blocks of Table 8
SHAPES = {
    "top_k": ("table3", "f1_macro_topk_alpha"),
    "contiguous": ("table7", "f1_macro_contiguous_alpha"),
}
F1 = of_answers(counted_f1_macro, 1.0)
FRACTION = {"frac_tokens_to_flip": text_mean("fraction")}


def cells(study: Study) -> Iterator[Cell]:
    """All of them, of the systems at the λ that the search has chosen."""
    yield from cells_at(study.settings, chosen(study.settings, study.results))


def cells_at(settings: Settings, weights: Weights) -> Iterator[Cell]:
    """The cells where the searched systems have these λ."""
    for task in systems.tasks(settings):
        for seed in systems.seeds_of(settings, task):
            runs = support_runs(settings, weights, task, seed)
            yield from _performance(settings, task, runs)
            yield from _flips(settings, task, runs)
            yield from _fresh(settings, task, runs)
            if task.role in systems.TAGGED:
                yield from _parts_of_speech(settings, task, runs)
            if task.role == AUDITED:
                yield from _audit(settings, weights, task, runs)


def support_runs(settings: Settings, weights: Weights, task: Task, seed: int) -> Runs:
    """Both λ of SaLoss, the same run where they are equal.

    Salience functions other than TextRank take its λ in the paper, which does not say that they
    were searched for.
    """
    run = partial(run_spec, settings, task, seed=seed)
    others = [
        name for name, sets in systems.MEASURED_ON.items() if task.role in settings.grid[sets]
    ]
    return {
        BASELINE: run(system=BASELINE),
        SALOSS: run(system=SALOSS, weight=task.weight),
        CHOSEN: run(system=SALOSS, weight=weights[task.corpus, SALOSS]),
        **{name: run(system=name, weight=task.weight) for name in others},
    }


def _performance(settings: Settings, task: Task, runs: Runs) -> Iterator[Cell]:
    """Table 1."""
    seed = runs[BASELINE].seed
    for system, column in COLUMNS.items():
        answers = prediction_spec(settings, runs[system])
        yield Cell("table1", task.paper, column, seed, (answers,), {"f1_macro": F1})


def _flips(settings: Settings, task: Task, runs: Runs) -> Iterator[Cell]:
    """Tables 2 and 8."""
    seed, rows = runs[BASELINE].seed, recipe_of(settings, task).get("flip_rows")

    def cell(table: str, row: str, system: str, sign: str) -> Cell:
        spec = flips(runs[system], "test", rows, sign)
        return Cell(table, row, task.paper, seed, (spec,), FRACTION)

    for table, blocks in (("table2", COLUMNS), ("table8", {f: f for f in FUNCTIONS})):
        yield cell(table, "Random", BASELINE, "random")
        for system, name in blocks.items():
            if system in runs:
                for sign in systems.ATTRIBUTIONS:
                    yield cell(table, f"{name}|{sign}", system, sign)


def _fresh(settings: Settings, task: Task, runs: Runs) -> Iterator[Cell]:
    """Tables 3 and 7: `contiguous_seeds` says how many seeds have contiguous rationales."""
    if task.role not in settings.grid["fresh_sets"]:
        return
    seed = runs[BASELINE].seed
    brief = seed in settings.seeds[: settings.grid["contiguous_seeds"]]
    for shape, (table, metric) in SHAPES.items():
        for system in systems.SUPPORTS if shape == "top_k" or brief else ():
            classifier = fresh_spec(settings, task, runs[system], shape)
            answers = prediction_spec(settings, classifier)
            yield Cell(table, task.paper, FRESH_COLUMNS[system], seed, (answers,), {metric: F1})


def _parts_of_speech(settings: Settings, task: Task, runs: Runs) -> Iterator[Cell]:
    """Figure 1; and the word scores of Table 4, of the first seed."""
    seed = runs[BASELINE].seed
    for system in (BASELINE, SALOSS):
        tagged = tagged_spec(settings, task, runs[system])
        for tag in TAGS:
            read = {"mean_importance": importance_of(tag)}
            yield Cell("figure-1", f"{task.paper} {tag}", COLUMNS[system], seed, (tagged,), read)
        if seed == settings.seeds[0]:
            scored = example_scores(settings, runs[system])
            yield Cell("table4", task.paper, COLUMNS[system], seed, (scored,), {})


def _audit(settings: Settings, weights: Weights, task: Task, runs: Runs) -> Iterator[Cell]:
    """What the departures of the paper's code change: rows are systems, columns measures.

    Eq. 3 has every seed, the other changes of the loss the first.
    """
    seed, rows = runs[BASELINE].seed, recipe_of(settings, task).get("flip_rows")
    first = seed == settings.seeds[0]
    changed = [*AUDIT, "TFIDF"] if first else [EQ3]

    def cell(system: str, column: str, spec: EvalSpec, read: Read) -> Cell:
        return Cell("audit", system, column, seed, (spec,), {"value": read})

    for system in (BASELINE, SALOSS, *changed):
        if system in AUDIT:
            weight = weights[task.corpus, EQ3] if system in systems.PER_TEXT else task.weight
            run = run_spec(settings, task, system, seed, weight)
        elif system in runs:
            run = runs[system]
        else:
            continue
        yield cell(system, "f1", prediction_spec(settings, run), F1)
        yield cell(system, "a", flips(run, "test", rows, "a"), FRACTION["frac_tokens_to_flip"])
    for system in (BASELINE, SALOSS) if first else ():
        by = partial(flips, runs[system], "test", rows)
        ways = {
            "xGx": by("xGx"),
            "IG": by("IG"),
            "a, delete": by("a", protocol="delete"),
            "xGx, matrix": by("xGx", variant="saloss_signed", protocol="matrix"),
            "IG, matrix": by("IG", protocol="matrix"),
        }
        for column, spec in ways.items():
            yield cell(system, column, spec, FRACTION["frac_tokens_to_flip"])
    if first and task.role in settings.grid["fresh_sets"]:
        for order in ("document", "score"):
            classifier = fresh_spec(settings, task, runs[BASELINE], "top_k", order)
            spec = prediction_spec(settings, classifier)
            yield cell(BASELINE, f"fresh, {order}", spec, summary("f1_macro"))


# --- what is measured of a run --------------------------------------------------------------------


def prediction_spec(settings: Settings, run: RunSpec) -> EvalSpec:
    """The answers of a model, or of a FRESH classifier, to the task's test texts."""
    rows = recipe_of(settings, systems.task_of(settings, run)).get("test_rows")
    return EvalSpec(run, as_measured(run.data), "test", "predictions", rows)


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on every task."""
    return {
        task.paper: [prediction_spec(settings, run) for run in baseline_runs(settings, task)]
        for task in systems.tasks(settings)
    }


def baseline_runs(settings: Settings, task: Task) -> list[RunSpec]:
    """The Baseline of every seed of a task."""
    return [run_spec(settings, task, BASELINE, seed) for seed in systems.seeds_of(settings, task)]


def flips(
    run: RunSpec, split: str, rows: int | None, sign: str, *,
    variant: str = "saloss", protocol: str | None = None,
) -> EvalSpec:  # fmt: skip
    """Decision flips by an attribution under the paper's sign, or by "random"."""
    data, method = as_measured(run.data), systems.ATTRIBUTIONS.get(sign, sign)
    return EvalSpec(run, data, split, "flips", rows, method, variant, protocol=protocol)


def tagged_spec(settings: Settings, task: Task, run: RunSpec) -> EvalSpec:
    """Word scores by α∇α with the words' parts of speech."""
    rows, tagger = recipe_of(settings, task).get("tag_rows"), installed_tagger()
    return replace(_scored(run, "parts_of_speech", rows), protocol=tagger)


def example_scores(settings: Settings, run: RunSpec) -> EvalSpec:
    """The word scores of Table 4."""
    return replace(_scored(run, "word_scores", settings.grid.get("example_rows")), level="word")


def _scored(run: RunSpec, kind: str, rows: int | None) -> EvalSpec:
    method = systems.ATTRIBUTIONS["aGa"]
    return EvalSpec(run, as_measured(run.data), "test", kind, rows, method, "saloss")


# --- the search for λ -----------------------------------------------------------------------------


def searched(settings: Settings) -> dict[tuple[str, str], list[float]]:
    """(corpus, system) → the λ to try, largest first.

    SaLoss on every task, the paper's λ among those of the profile; eq. 3 on the audited task.
    """
    every = {
        (t.corpus, SALOSS): sorted({*recipe_of(settings, t)["lambdas"], t.weight}, reverse=True)
        for t in systems.tasks(settings)
    }
    return {**every, (settings.roles[AUDITED], EQ3): settings.grid["lambdas_eq3"]}


def candidates(settings: Settings) -> list[RunSpec]:
    """A run of the first seed for every λ."""
    by_corpus = {task.corpus: task for task in systems.tasks(settings)}
    return [
        run_spec(settings, by_corpus[corpus], system, settings.seeds[0], weight)
        for (corpus, system), weights in searched(settings).items()
        for weight in weights
    ]


def search_evals(settings: Settings, runs: Sequence[RunSpec]) -> list[EvalSpec]:
    """Decision flips on development texts, by the attributions that the profile looks at.

    Where one λ was tried there is no choice, and nothing to measure.
    """
    tried = searched(settings)
    rows = {t.corpus: recipe_of(settings, t).get("search_rows") for t in systems.tasks(settings)}
    return [
        flips(run, "dev", rows[run.data.corpus], sign)
        for run in runs
        if len(tried[run.data.corpus, systems.system_of(run)]) > 1
        for sign in settings.grid["search_attributions"]
    ]


def search_fractions(results: Results) -> pd.DataFrame:
    """corpus, system, weight, and the fraction of tokens on dev texts, mean over attributions."""
    table = measured_rows(results["search"])
    if table.empty:
        return pd.DataFrame(columns=["corpus", "system", "weight", "fraction"])
    runs = [spec.run for spec in table["spec"]]
    found = pd.DataFrame(
        {
            "corpus": table["corpus"].to_numpy(),
            "system": [systems.system_of(run) for run in runs],
            "weight": [run.objective[-1].weight for run in runs],
            "fraction": table["fraction"].to_numpy(),
        }
    )
    return found.groupby(["corpus", "system", "weight"])["fraction"].mean().reset_index()


def chosen(settings: Settings, results: Results) -> dict[tuple[str, str], float]:
    """(corpus, system) → the λ with the smallest mean fraction; the smaller λ on a tie. The first
    while there are no results."""
    only = {key: weights[0] for key, weights in searched(settings).items()}
    if not results:
        return only
    best = search_fractions(results).sort_values(["fraction", "weight"])
    best = best.drop_duplicates(["corpus", "system"])
    return only | {(row.corpus, row.system): float(row.weight) for row in best.itertuples()}


def grid(settings: Settings) -> list[Stage]:
    """Baselines; runs at every λ; flips that choose among them; all systems and FRESH; measures.

    How many systems there are is known when λ is chosen: at most, every choice is another than the
    paper's.
    """
    first = [run for task in systems.tasks(settings) for run in baseline_runs(settings, task)]
    tried = candidates(settings)
    trials = search_evals(settings, tried)
    papers = {(task.corpus, SALOSS): task.weight for task in systems.tasks(settings)}
    assumed = {
        key: next((w for w in weights if w != papers.get(key)), weights[0])
        for key, weights in searched(settings).items()
    }
    expected = list(cells_at(settings, assumed))
    asked, unsure = listed_in(evaluations_of(expected)), {trial.run for trial in trials}

    def told(run: RunSpec) -> list[EvalSpec] | None:
        return None if run in unsure else asked(run)  # if it is chosen, tables will tell of it

    def known(results: Results) -> list[Cell]:
        return list(cells_at(settings, chosen(settings, results)))

    def kept(run: RunSpec) -> bool:
        task = systems.task_of(settings, run)
        first = run.seed == settings.seeds[0] and (task.core or run.start is not None)
        plain = run.data.extract is None and systems.system_of(run) in (BASELINE, SALOSS)
        at_paper_s = run.objective[-1].weight == task.weight or systems.system_of(run) == BASELINE
        return task.role in settings.grid["keep"] and plain and at_paper_s and first

    return [
        stage("baselines", first, keeps=kept),
        stage("candidates", tried, asked=told, keeps=kept),
        stage("search", trials),
        later("runs", lambda r: runs_of(known(r)), runs_of(expected), asked=told, keeps=kept),
        later("measurements", lambda r: evaluations_of(known(r)), evaluations_of(expected)),
    ]
