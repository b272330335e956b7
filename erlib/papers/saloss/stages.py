"""In which order are SaLoss's models trained and measured, and what of each?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.data.parts_of_speech import installed_tagger
from erlib.papers.holes import measured_rows
from erlib.papers.saloss.systems import (
    ATTRIBUTIONS,
    AUDIT,
    AUDITED,
    BASELINE,
    CHOSEN,
    EQ3,
    MEASURED_ON,
    PER_TEXT,
    SALOSS,
    SUPPORTS,
    TAGGED,
    fresh_spec,
    recipe_of,
    row_of,
    run_spec,
    seeds_of,
    system_of,
    task_of,
    tasks,
)
from erlib.papers.trained import untrained_models
from erlib.parameters import Settings
from erlib.training.identity import scoring
from erlib.training.stages import Results, Stage, no_model


def grid(settings: Settings) -> list[Stage]:
    """Baselines; runs at every λ; flips that choose among them; all systems; FRESH; measures.

    How many systems there are is known when λ is chosen: at most, every choice is another than the
    paper's.
    """
    every = tasks(settings)
    baselines = [
        run_spec(settings, task, BASELINE, seed)
        for task in every
        for seed in seeds_of(settings, task)
    ]
    tried = candidates(settings)
    trials = search_evals(settings, tried)
    papers = {(task.corpus, SALOSS): task.weight for task in every}
    assumed = {
        key: next((w for w in weights if w != papers.get(key)), weights[0])
        for key, weights in searched(settings).items()
    }
    systems = system_specs(settings, assumed)
    fresh = fresh_specs(settings, [*baselines, *systems])
    measured = eval_specs(settings, [*baselines, *systems], fresh)
    choices = {trial.run for trial in trials}

    def asked(run: RunSpec) -> list[EvalSpec] | None:
        if run in choices:  # if it is chosen, tables will tell of it
            return None
        return [*eval_specs(settings, [run], []), *rationale_scores(settings, run)]

    def kept(run: RunSpec) -> bool:
        task, compared = task_of(settings, run), row_of(settings, run) in (BASELINE, SALOSS)
        first = run.seed == settings.seeds[0] and (task.core or run.start is not None)
        return task.role in settings.grid["keep"] and compared and first

    return [
        Stage("baselines", lambda r: baselines, len(baselines), baselines, keeps=kept),
        Stage("candidates", lambda r: tried, len(tried), tried, asked=asked, keeps=kept),
        Stage("search", lambda r: trials, len(trials), trials[0]),
        Stage(
            "systems",
            lambda r: system_specs(settings, chosen(settings, r)),
            len(systems),
            systems,
            guessed=True,
            asked=asked,
            keeps=kept,
        ),
        Stage(
            "fresh",
            lambda r: fresh_specs(settings, supports(r)),
            len(fresh),
            fresh,
            guessed=True,
            asked=lambda run: [prediction_spec(settings, run)],
            keeps=no_model,
        ),
        Stage(
            "measurements",
            lambda r: eval_specs(settings, supports(r), measured_rows(r["fresh"])["spec"]),
            len(measured),
            measured[0],
        ),
    ]


def supports(results: Results, *, failed: bool = False) -> list[RunSpec]:
    """All models of full texts that tables tell of; with `failed` also those that there are not."""
    tables = [results[name] for name in ("baselines", "systems")]
    return [s for t in tables for s in (t if failed else measured_rows(t))["spec"]]


def not_trained(results: Results) -> set[RunSpec]:
    """The models of the grid from which nothing follows."""
    stages = ("baselines", "systems", "fresh")
    return untrained_models(pd.concat([results[name] for name in stages]))


def searched(settings: Settings) -> dict[tuple[str, str], list[float]]:
    """(corpus, system) → the λ to try, largest first.

    SaLoss on every task, the paper's λ among those of the profile; eq. 3 on the audited task.
    """
    every = {
        (t.corpus, SALOSS): sorted({*recipe_of(settings, t)["lambdas"], t.weight}, reverse=True)
        for t in tasks(settings)
    }
    return {**every, (settings.roles[AUDITED], EQ3): settings.grid["lambdas_eq3"]}


def candidates(settings: Settings) -> list[RunSpec]:
    """A run of the first seed for every λ."""
    by_corpus = {task.corpus: task for task in tasks(settings)}
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
    return [
        flips(run, "dev", recipe_of(settings, task_of(settings, run)).get("search_rows"), sign)
        for run in runs
        if len(tried[run.data.corpus, system_of(run)]) > 1
        for sign in settings.grid["search_attributions"]
    ]


def search_fractions(results: Results) -> pd.DataFrame:
    """corpus, system, weight, and the fraction of tokens on dev texts, mean over attributions."""
    table = measured_rows(results["search"])
    runs = [spec.run for spec in table["spec"]]
    found = pd.DataFrame(
        {
            "corpus": table["corpus"].to_numpy(),
            "system": [system_of(run) for run in runs],
            "weight": [run.objective[-1].weight for run in runs],
            "fraction": table["fraction"].to_numpy(),
        }
    )
    return found.groupby(["corpus", "system", "weight"])["fraction"].mean().reset_index()


def chosen(settings: Settings, results: Results) -> dict[tuple[str, str], float]:
    """(corpus, system) → the λ with the smallest mean fraction; the smaller λ on a tie."""
    only = {key: weights[0] for key, weights in searched(settings).items()}
    best = search_fractions(results).sort_values(["fraction", "weight"])
    best = best.drop_duplicates(["corpus", "system"])
    return only | {(row.corpus, row.system): float(row.weight) for row in best.itertuples()}


def system_specs(settings: Settings, weights: Mapping[tuple[str, str], float]) -> list[RunSpec]:
    """Every salience function on its tasks, TextRank at the chosen λ as well, and the audit.

    Salience functions other than TextRank take its λ in the paper, which does not say that they
    were searched for. Eq. 3 has every seed of its task, the other changes the first.
    """
    specs = []
    for task in tasks(settings):
        others = [name for name, sets in MEASURED_ON.items() if task.role in settings.grid[sets]]
        wanted = [(SALOSS, task.weight), (SALOSS, weights[task.corpus, SALOSS])]
        wanted += [(system, task.weight) for system in others]
        specs += [
            run_spec(settings, task, system, seed, weight)
            for system, weight in dict.fromkeys(wanted)
            for seed in seeds_of(settings, task)
        ]
    task = next(t for t in tasks(settings) if t.role == AUDITED)
    for system in AUDIT:
        weight = weights[task.corpus, EQ3] if system in PER_TEXT else task.weight
        seeds = seeds_of(settings, task) if system == EQ3 else settings.seeds[:1]
        specs += [run_spec(settings, task, system, seed, weight) for seed in seeds]
    return specs


def fresh_specs(settings: Settings, runs: Sequence[RunSpec]) -> list[RunSpec]:
    """FRESH classifiers of the three supports in both shapes; of the first in score order too.

    `contiguous_seeds` says how many seeds of a core task have contiguous rationales.
    """
    specs = []
    for run in runs:
        task = task_of(settings, run)
        if row_of(settings, run) in SUPPORTS and task.role in settings.grid["fresh_sets"]:
            specs.append(fresh_spec(settings, task, run, "top_k"))
            if run.seed in settings.seeds[: settings.grid["contiguous_seeds"]]:
                specs.append(fresh_spec(settings, task, run, "contiguous"))
            if task.role == AUDITED and run == runs[0]:
                specs.append(fresh_spec(settings, task, run, "top_k", order="score"))
    return specs


def rationale_scores(settings: Settings, run: RunSpec) -> list[EvalSpec]:
    """What the FRESH classifiers of a model want to know of it."""
    wanted = []
    for fresh in fresh_specs(settings, [run]):
        tested = prediction_spec(settings, fresh)
        for data, split, rows in (
            (fresh.data, "train", fresh.data.train_rows),
            (fresh.data, "dev", fresh.data.dev_rows),
            (tested.data, tested.split, tested.rows),
        ):
            assert data.extract is not None
            wanted.append(scoring(data.extract, data, split, rows))
    return wanted


def prediction_spec(settings: Settings, run: RunSpec) -> EvalSpec:
    """The answers of a model, or of a FRESH classifier, to the task's test texts."""
    rows = recipe_of(settings, task_of(settings, run)).get("test_rows")
    return EvalSpec(run, _without_rows(run.data), "test", "predictions", rows)


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on every task."""
    return {
        task.paper: [
            prediction_spec(settings, run_spec(settings, task, BASELINE, seed))
            for seed in seeds_of(settings, task)
        ]
        for task in tasks(settings)
    }


def _without_rows(data: DataSpec) -> DataSpec:
    """What an evaluation reads: how many texts its run was trained on does not name it."""
    return replace(data, train_rows=None, dev_rows=None)


def flips(
    run: RunSpec,
    split: str,
    rows: int | None,
    sign: str,
    *,
    variant: str = "saloss",
    protocol: str | None = None,
) -> EvalSpec:
    """Decision flips by an attribution under the paper's sign, or by "random"."""
    data, method = _without_rows(run.data), ATTRIBUTIONS.get(sign, sign)
    return EvalSpec(run, data, split, "flips", rows, method, variant, protocol=protocol)


def example_scores(settings: Settings, run: RunSpec) -> EvalSpec:
    """The word scores of Table 4."""
    return EvalSpec(
        run,
        _without_rows(run.data),
        "test",
        "word_scores",
        settings.grid.get("example_rows"),
        ATTRIBUTIONS["aGa"],
        "saloss",
        level="word",
    )


def signs_of(system: str) -> tuple[str, ...]:
    """By which attributions a system's decisions are flipped."""
    if system == "Uniform":  # FRESH alone
        return ()
    if system in AUDIT:
        return ("a",)
    return (*(("random",) if system == BASELINE else ()), *ATTRIBUTIONS)


def eval_specs(
    settings: Settings, runs: Iterable[RunSpec], fresh: Iterable[RunSpec]
) -> list[EvalSpec]:
    """Everything that the tables and figures read."""
    specs: list[EvalSpec] = []
    for run in runs:
        task, system = task_of(settings, run), row_of(settings, run)
        sizes = recipe_of(settings, task)
        rows = sizes.get("flip_rows")
        audited = task.role == AUDITED and run.seed == settings.seeds[0]
        if system in (BASELINE, SALOSS, CHOSEN, *AUDIT) or (system == "TFIDF" and audited):
            specs.append(prediction_spec(settings, run))  # Table 1 and the audit
        specs += [flips(run, "test", rows, sign) for sign in signs_of(system)]
        if system in (BASELINE, SALOSS):
            if task.role in TAGGED:
                tagged = EvalSpec(
                    run, _without_rows(run.data), "test", "parts_of_speech", sizes.get("tag_rows"),
                    method=ATTRIBUTIONS["aGa"], variant="saloss", protocol=installed_tagger(),
                )  # fmt: skip
                specs.append(tagged)
                if run.seed == settings.seeds[0]:
                    specs.append(example_scores(settings, run))
            if audited:
                specs += [
                    flips(run, "test", rows, "a", protocol="delete"),
                    flips(run, "test", rows, "xGx", variant="saloss_signed", protocol="matrix"),
                    flips(run, "test", rows, "IG", protocol="matrix"),
                ]
    return [*specs, *(prediction_spec(settings, run) for run in fresh)]
