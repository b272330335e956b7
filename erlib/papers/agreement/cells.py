"""Every number of the paper's tables and figures, and in which order what they need is made.

λ is chosen by results: `cells_at` can be told which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.cartography import GROUPS
from erlib.papers.agreement import reads
from erlib.papers.agreement.agreements import DIFFERENT, METRICS, PAIRS, SAME, text_means
from erlib.papers.agreement.search import chosen_weight, searched, trials, weights
from erlib.papers.agreement.systems import (
    AUDITED,
    COMPARED,
    MODELS,
    SETS,
    VARIANTS,
    System,
    Task,
    core_tasks,
    curvature_spec,
    dropout_spec,
    measures,
    run_spec,
    seeds_of,
    system_of,
    systems,
    tasks,
)
from erlib.papers.agreement.vectors import glove_file
from erlib.papers.cells import Cell, Read, Spec, of_spec, summary
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Results, Stage, no_model

Runs = Mapping[System, Mapping[int, RunSpec]]  # by seed
TABLE_1 = {"JWA": "table1a_jwa", "DBERT": "table1b_dbert"}
ATTRIBUTES = ("confidence", "closeness", "variability")
# Figures 4 to 11: one model on one set each
CURVES = {f"figure-{4 + i}": place for i, place in enumerate(product(MODELS, SETS))}
EXPLAINING, PREDICTING = "dropout while explaining", "dropout while predicting"
SIX, ONE = "r, all six pairs", "r, DeepLIFT and D-SHAP"


def of_model(table: str, model: str) -> str:
    """A table that the paper prints of one model: its values are DBERT's."""
    return table if model == "DBERT" else f"{table}-jwa"


def cells(study: Study) -> Iterator[Cell]:
    """All of them, of the runs with the λ that the search has chosen."""
    yield from cells_at(study.settings, partial(chosen_weight, study.settings, study.results))


def cells_at(settings: Settings, weight: Callable[[System], float]) -> Iterator[Cell]:
    """The cells where systems have this λ."""
    runs = runs_at(settings, weight)
    for system, by_seed in runs.items():
        for seed, run in by_seed.items():
            yield from _of_run(settings, system, seed, run)
    yield from _over_sets(settings, runs)
    yield from _audit(settings, runs)


def runs_at(
    settings: Settings,
    weight: Callable[[System], float],
    variants: Sequence[str] = (*VARIANTS, *AUDITED),
) -> Runs:
    """The runs that tables read: Base, and every other variant with its λ."""
    return {
        system: {
            seed: run_spec(settings, system, seed, weight(system))
            for seed in seeds_of(settings, system)
        }
        for system in systems(settings, variants)
    }


def _of_run(settings: Settings, system: System, seed: int, run: RunSpec) -> Iterator[Cell]:
    """What one run tells; of those that only the audit compares, nothing."""
    model, paper, variant = system.model, system.task.paper, system.variant
    if variant not in VARIANTS:
        return

    def cell(table: str, row: str, column: str, read: Mapping[str, Read], *more: Spec) -> Cell:
        return Cell(table, row, column, seed, (run, *more), read)

    place = f"{model}|{paper}", variant
    five = {m: reads.mean(partial(text_means, metric=m, pairs=DIFFERENT)) for m in METRICS}
    yield replace(cell("table2", *place, reads.agreement_at(None)), decides=five)
    yield cell("table3", *place, {"f1_test": reads.f1_on_test})
    yield cell("table6", *place, {"f1_val": summary("dev_f1_binary")})
    for table in ("table7", "table9"):
        yield cell(table, paper, model, {"minutes": reads.time_taken})
    if variant != "Base" and seed == settings.seeds[0]:
        yield cell("table8", *place, {"lambda": reads.weight_of})
    figure = next(name for name, shown in CURVES.items() if shown == (model, paper))
    for epoch in range(1, run.optimiser.epochs + 1):
        yield cell(figure, variant, f"epoch {epoch}", reads.agreement_at(epoch))
    for pair in PAIRS if variant == "Base" else ():
        yield cell(TABLE_1[model], pair, paper, reads.of_pair(pair))
        if model == "DBERT":
            noisy = reads.of_pair_under_dropout(pair)
            yield cell("table1b-dropout", pair, paper, noisy, dropout_spec(run))
    if variant in COMPARED:
        yield from _mapped(settings, system, seed, run)


def _mapped(settings: Settings, system: System, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Cartography, agreement in its groups, and its correlations with curvature."""
    model, paper, variant = system.model, system.task.paper, system.variant
    attributes = {name: reads.attribute_of(name) for name in ("confidence", "variability")}
    maps = ["figure-3"]
    if seed == settings.seeds[0]:  # the one that is drawn
        maps.append("figure-3 points")
        if (model, variant) == ("DBERT", "Base"):
            maps.append("figure-2" if paper == "SUBJ" else "figure-12")
    for figure in maps:
        yield Cell(figure, variant, f"{model}|{paper}", seed, (run,), attributes)
    for group in GROUPS:
        six, five = ({"pearson_r": reads.agreement_in(group, of)} for of in (PAIRS, DIFFERENT))
        row = f"{paper}|{group}"
        yield Cell(of_model("table4", model), row, variant, seed, (run,), six, decides=five)
    bent, table = (run, curvature_spec(settings, run, model)), of_model("table11", model)
    for statistic, attribute in product(reads.STATISTICS, ATTRIBUTES):
        row, read = f"{statistic}|{paper}|{attribute}", reads.correlation(statistic, attribute)
        yield Cell(table, row, variant, seed, bent, {"pearson_r": read})


def _over_sets(settings: Settings, runs: Runs) -> Iterator[Cell]:
    """Table 5, of the seeds that have every set; and agreement over the epochs on core sets."""

    def of(model: str, variant: str, seed: int, sets: Sequence[Task]) -> list[RunSpec]:
        by_seed = [runs[System(model, task, variant)] for task in sets]
        return [of_set[seed] for of_set in by_seed if seed in of_set]

    for model, variant, seed in product(MODELS, COMPARED, settings.seeds):
        every = of(model, variant, seed, tasks(settings))
        core = of(model, variant, seed, core_tasks(settings, model))
        if len(every) == len(SETS):
            yield from _table_5(settings, model, variant, seed, every)
        for epoch in range(1, settings.grid["epochs"] + 1) if core else ():
            read = {"pearson_r": reads.over_sets(epoch)}
            column = f"{model}, epoch {epoch}"
            yield Cell("figures-4-11", variant, column, seed, tuple(core), read)


def _table_5(
    settings: Settings, model: str, variant: str, seed: int, runs: Sequence[RunSpec]
) -> Iterator[Cell]:
    bent = tuple(spec for run in runs for spec in (run, curvature_spec(settings, run, model)))
    for statistic, attribute in product(reads.STATISTICS, ATTRIBUTES):
        row, read = f"{statistic}|{attribute}", reads.mean_correlation(statistic, attribute)
        yield Cell(of_model("table5", model), row, variant, seed, bent, {"pearson_r": read})


def _audit(settings: Settings, runs: Runs) -> Iterator[Cell]:
    """One switch at a time: rows are switch, system and measure; `here` beside `switched`."""
    dbert = {s: of for s, of in runs.items() if s.model == "DBERT"}
    plain = {s: of for s, of in dbert.items() if s.variant in VARIANTS}

    def cell(
        system: System, seed: int, switch: str, measure: str, specs: tuple[Spec, ...],
        here: Read, switched: Read,
    ) -> Cell:  # fmt: skip
        row = f"{switch}|DBERT {system.variant.split(', ')[0]}|{measure}"
        read = {"here": here, "switched": switched}
        return Cell("audit", row, system.task.paper, seed, specs, read)

    for system, by_seed in plain.items():
        for measure, pairs in ((ONE, [SAME]), (SIX, PAIRS)):
            both = reads.explained(pairs), reads.explained(pairs, dropout=True)
            for seed, run in by_seed.items():
                specs = run, dropout_spec(run)
                yield cell(system, seed, EXPLAINING, measure, specs, *both)
    for system, by_seed in plain.items():
        for name in ("confidence", "variability"):
            both = reads.attribute_of(name), reads.attribute_of(name, dropout=True)
            for seed, run in by_seed.items():
                if len(run.each_epoch) > 2:
                    yield cell(system, seed, PREDICTING, name, (run,), *both)
    r = reads.mean(text_means)
    for system in (s for s in dbert if s not in plain):
        name, switch = system.variant.split(", ")
        base = dbert[replace(system, variant=name)]
        for seed, run in dbert[system].items():
            if seed in base:
                said = f"{name.lower()}: {switch} (λ {run.objective[-1].weight:g})"
                yield cell(system, seed, said, SIX, (base[seed], run), r, of_spec(1, r))


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The answers of DBERT's Base on every task; JWA has no pretrained encoder."""
    found = {}
    for task in tasks(settings):
        system = System("DBERT", task, "Base")
        runs = [run_spec(settings, system, seed) for seed in seeds_of(settings, system)]
        found[task.paper] = [replace(run.each_epoch[0], run=run) for run in runs]
    return found


def grid(settings: Settings) -> list[Stage]:
    """Base; λ from the strongest down; the regularised runs; then what the kept models show.

    Runs that need no result are listed beforehand, unless making the list reads word vectors.
    """
    regularised = [*VARIANTS[1:], *AUDITED]
    sample = run_spec(settings, System("DBERT", tasks(settings)[0], "Base"), settings.seeds[0])
    one = measures(settings, system_of(settings, sample), sample)[0]

    def trained(variants: Sequence[str], results: Results) -> list[RunSpec]:
        runs = runs_at(settings, partial(chosen_weight, settings, results), variants)
        return [run for by_seed in runs.values() for run in by_seed.values()]

    def measured(results: Results) -> list[EvalSpec]:
        runs = trained(VARIANTS, results)
        return [m for run in runs for m in measures(settings, system_of(settings, run), run)]

    def runs(
        name: str, specs: Callable[[Results], list[RunSpec]], most: int, *, known: bool,
        keeps: Callable[[RunSpec], bool] | None = None,
    ) -> Stage:  # fmt: skip
        known = known and glove_file() is None
        listed = specs({}) if known else [sample] * most
        asked, keeps = partial(_asked, settings), keeps or partial(_kept, settings)
        return Stage(name, specs, most, listed, guessed=not known, asked=asked, keeps=keeps)

    def count(variants: Sequence[str]) -> int:
        return sum(len(seeds_of(settings, s)) for s in systems(settings, variants))

    steps = max(len(weights(settings, s)) for s in searched(settings))
    most = sum(
        len(measures(settings, s, sample)) * len(seeds_of(settings, s)) for s in systems(settings)
    )
    return [
        runs("base", partial(trained, ["Base"]), count(["Base"]), known=True),
        *(
            runs(
                f"λ search {step + 1}", partial(trials, settings, step),
                sum(step < len(weights(settings, s)) for s in searched(settings)),
                known=step == 0, keeps=no_model,
            )
            for step in range(steps)
        ),
        runs("regularised", partial(trained, regularised), count(regularised), known=steps == 1),
        Stage("measurements", measured, most, [one] * most, guessed=True),
    ]  # fmt: skip


def _asked(settings: Settings, run: RunSpec) -> list[EvalSpec]:
    """What is measured of a finished run; nothing of one that only the search looks at."""
    system = system_of(settings, run)
    if not run.each_epoch or system.variant not in VARIANTS:
        return []
    answers = replace(run.each_epoch[0], run=run)  # beside those of the frozen encoder
    compared = system.model == "DBERT" and system.variant == "Base"
    return [*measures(settings, system, run), *([answers] if compared else [])]


def _kept(settings: Settings, run: RunSpec) -> bool:
    system = system_of(settings, run)
    named = system.task.paper in settings.grid["keep"] and system.variant in COMPARED
    return named and run.seed == settings.seeds[0]
