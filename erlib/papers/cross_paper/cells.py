"""Every number of the grid and of planted reasons, and in which order what they need is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.metrics.planted import pairs_right
from erlib.papers.cells import Cell, Read, Spec, mean_over, text_mean
from erlib.papers.cross_paper import systems
from erlib.papers.cross_paper.columns import Subject, in_order, mean_of
from erlib.papers.cross_paper.ground import CLEAN, measured, on_rule
from erlib.papers.cross_paper.rows import ROWS
from erlib.papers.cross_paper.systems import BASELINE, Key
from erlib.papers.grid import evaluations_of, later, runs_of, stage
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.making import with_origins
from erlib.training.stages import Results, Stage, no_model

SPURIOUS, SINGLE = "spurious", "single"


def cells(study: Study) -> Iterator[Cell]:
    """All of them, of the runs that were kept; of those that are wanted while there are none."""
    runs = placed(study)
    yield from _grid(study.settings, runs)
    for (rule, row, seed), run in runs.items():
        if rule != CLEAN:
            yield from _planted(study.settings, rule, row, seed, run)


def placed(study: Study) -> dict[Key, RunSpec]:
    """The finished runs, each in the place of the seed that was wanted."""
    settings = study.settings
    if not study.results:
        return systems.wanted(settings, systems.unknown_bounds(settings))
    found = systems.wanted(settings, {}, bounded=False)
    for row in study.results.get("constrained", pd.DataFrame()).to_dict("records"):
        if row["status"] != "done":
            continue
        seed = row["seed"] if pd.isna(row["replaces"]) else int(row["replaces"])
        found[systems.key_of(row["spec"], seed)] = row["spec"]
    return {key: found[key] for key in systems.keys(settings) if key in found}


def subject(settings: Settings, runs: Mapping[Key, RunSpec], key: Key) -> Subject:
    """A run of the grid beside the same row's other seeds."""
    alike = [run for k, run in runs.items() if (k.rule, k.row) == (key.rule, key.row)]
    place = alike.index(runs[key])
    return Subject(settings, runs[key], tuple(alike[place + 1 :] + alike[:place]))


def _grid(settings: Settings, runs: Mapping[Key, RunSpec]) -> Iterator[Cell]:
    """Every row by every column, and by attribution where a column has several."""
    for key in (key for key in runs if key.rule == CLEAN):
        one = subject(settings, runs, key)
        for column in in_order():
            by_method = column.of(one)
            if not by_method:
                continue
            every = tuple(dict.fromkeys(s for specs in by_method.values() for s in specs))
            read = mean_of(column.read, list(by_method.values()))
            yield Cell("grid", key.row, column.name, key.seed, every, {column.metric: read})
            for method, specs in by_method.items():
                if method:
                    place = f"{column.name}|{method}"
                    reads = {column.metric: column.read}
                    yield Cell("methods", key.row, place, key.seed, specs, reads)


def _both_right(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """1 where the model is right on a planted text and on its twin."""
    texts, twins = (study.texts(spec) for spec in specs)
    return pairs_right(texts, twins[twins["id"].isin(texts["id"])])


def _followed(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """Of the texts whose planted word says another class than the text: is the word believed?"""
    table = study.texts(specs[0]).set_index("id")
    against = table[table["said"].notna() & (table["said"] != table["label"])]
    return (against["predicted"] == against["said"]).astype(float)


def _planted(settings: Settings, rule: str, row: str, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Is the rule used, and which attribution finds its words? And of a rule that ends with
    training: is it believed still, and what do explanations show of it?"""
    own = settings.grid["planted"]
    answers = measured(settings, run, "predictions", own["answered"])
    twins = measured(settings, run, "predictions", own["answered"] // 2)
    twins = on_rule(twins, rule, swapped=True)
    used = {"rule_accuracy": mean_over(_both_right)}
    yield Cell("planted", row, f"{rule}|used", seed, (answers, twins), used)
    found = text_mean("found")
    by_method = {m: _scored(settings, run, "planted", m) for m in own["methods"]}
    extra = {"own": _scored(settings, run, "planted", ROWS[row].own)} if ROWS[row].own else {}
    for shown, spec in (by_method | extra).items():
        yield Cell("planted", row, f"{rule}|{shown}", seed, (spec,), {"found_at_k": found})
    yield _of_all("planted", row, f"{rule}|all", seed, by_method.values(), {"found_at_k": found})
    if rule == SINGLE and SPURIOUS in own["rules"]:
        said = on_rule(measured(settings, run, "planted_answers", own["answered"]), SPURIOUS)
        yield Cell("spurious", row, "followed", seed, (said,), {"followed": mean_over(_followed)})
        for kind, read in (
            ("planted", {"found_at_k": found}), ("word_plausibility", {"auc": text_mean("auc")})
        ):  # fmt: skip
            specs = [on_rule(_scored(settings, run, kind, m), SPURIOUS) for m in own["methods"]]
            for method, spec in zip(own["methods"], specs, strict=True):
                yield Cell("spurious", row, method, seed, (spec,), read)
            yield _of_all("spurious", row, "all", seed, specs, read)


def _of_all(
    table: str, row: str, column: str, seed: int, specs: Iterable[Spec], read: Mapping[str, Read]
) -> Cell:
    """The mean over attributions of what is read of each."""
    each = tuple(specs)
    reads = {metric: mean_of(one, [(spec,) for spec in each]) for metric, one in read.items()}
    return Cell(table, row, column, seed, each, reads)


def _scored(settings: Settings, run: RunSpec, kind: str, method: str) -> EvalSpec:
    spends = settings.grid.get("spends", {}).get(method, {})
    return measured(
        settings, run, kind, settings.grid["planted"]["explained"], method=method, level="word",
        options=tuple(sorted(spends.items())),
    )  # fmt: skip


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers where they learnt."""
    runs = systems.wanted(settings, {}, bounded=False)
    rows = settings.grid["texts"]["answered"]
    return {
        rule or "as it is": [
            measured(settings, run, "predictions", rows)
            for key, run in runs.items()
            if (key.rule, key.row) == (rule, BASELINE)
        ]
        for rule in systems.rules(settings)
    }


def grid(settings: Settings) -> list[Stage]:
    """Bounds first, as in the ER-lens notebook; then all runs, and what is measured of them."""
    expected = Study(paper("cross_paper"), settings, {})
    guesses = systems.unknown_bounds(settings)
    alone = systems.explanation_only(settings)
    free = list(dict.fromkeys(systems.wanted(settings, {}, bounded=False).values()))
    starts = [run for run in with_origins([*alone, *free]) if run not in {*alone, *free}]
    bound = list(systems.wanted(settings, guesses, bounded=True).values())
    readers = [run for run in runs_of(expected.cells) if run.data.extract or run.data.taught]

    def under_bounds(results: Results) -> list[RunSpec]:
        known = systems.bounds(settings, results["explanation_only"])
        return list(systems.wanted(settings, known, bounded=True).values())

    def readers_of(results: Results) -> list[RunSpec]:
        found = runs_of(Study(paper("cross_paper"), settings, results).cells)
        return [run for run in found if run.data.extract or run.data.taught]

    def measure(results: Results) -> list[EvalSpec]:
        return evaluations_of(Study(paper("cross_paper"), settings, results).cells)

    return [
        *([stage("starts", starts, keeps=no_model)] * bool(starts)),
        *([stage("explanation_only", alone, keeps=no_model)] * bool(alone)),
        stage("systems", free, keeps=no_model),
        *([later("constrained", under_bounds, bound, keeps=no_model)] * bool(bound)),
        *([later("readers", readers_of, readers, keeps=no_model)] * bool(readers)),
        later("measurements", measure, evaluations_of(expected.cells)),
    ]
