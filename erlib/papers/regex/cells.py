"""Every number of REGEX's tables and figures, and the evaluation that it is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import F1_MACRO, Cell, Read
from erlib.papers.grid import whole_grid
from erlib.papers.regex import evaluations, systems
from erlib.papers.regex.audit import audited
from erlib.papers.regex.evaluations import FAITHFULNESS, FIVE, faithfulness, predictions
from erlib.papers.regex.systems import BEST, MAIN, SHORT_RUN, System, main_run, run_spec, seeds_of
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Stage

ANSWERS = {"f1_macro": F1_MACRO}
SHORTENED = {  # what short variants are compared with, and one of these variants
    "REGEX": "IG (Mean)",
    "w/o robustness improvement": "w/o virtual adversarial training",
}
IN_TABLE_4 = [name for name in systems.ABLATIONS if name not in (
    "w/o virtual adversarial training", "w/o input gradient regularization")]  # fmt: skip


def cells(study: Study) -> Iterator[Cell]:
    """All of them: none needs a result of another."""
    settings = study.settings
    yield from _pairs(settings)
    yield from _ablation(settings)
    yield from _sweeps(settings)
    yield from _initialisations(settings, "table3", small=False)
    yield from _initialisations(settings, "table8", small=True)
    yield from _attack(settings)
    yield from _fresh(settings)
    yield from audited(settings)


def grid(settings: Settings) -> list[Stage]:
    """Train the systems, and classifiers on their rationales; measure them all."""
    planned = Study(paper("regex"), settings, {}).cells
    return whole_grid(planned, keeps=kept(settings).__contains__)


def kept(settings: Settings) -> set[RunSpec]:
    """The first seed's models of both systems on the sets that the profile names, and what those on
    SST began from: the audit and Table 5 look at them once more."""
    seed = settings.seeds[0]
    start = run_spec(settings, "Baseline", "SST", seed)
    return {start, *(main_run(settings, s, x, seed) for s in MAIN for x in settings.grid["keep"])}


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on their own sets."""
    return {
        name: [
            predictions(settings, "Baseline", home, home,
                        main_run(settings, "Baseline", name, seed))
            for seed in seeds_of(settings, "Baseline", name, name)
        ]
        for name, home in systems.sets(settings).items()
    }  # fmt: skip


def _pairs(settings: Settings) -> Iterator[Cell]:
    """Table 1, and the first column of Table 2: both systems in all 18 pairs."""
    for (source, target), system in product(systems.pairs(settings), MAIN):
        row = f"{systems.pair_name(source, target)}|{system}"
        for seed in seeds_of(settings, system, source.paper, target.paper):
            run = main_run(settings, system, source.paper, seed)
            for a in _attributions(settings, seed):
                spec = faithfulness(settings, system, source, target, a, run)
                yield Cell("table1", row, a, seed, (spec,), FAITHFULNESS)
            answers = predictions(settings, system, source, target, run)
            yield Cell("table2", row, "Full-text", seed, (answers,), ANSWERS)


def _ablation(settings: Settings) -> Iterator[Cell]:
    """Tables 4, 7 and 10: the variants in SST's domain."""
    home = systems.sets(settings)["SST"]
    for label, run in ablation_runs(settings):
        for a in _attributions(settings, run.seed):
            spec = faithfulness(settings, label, home, home, a, run)
            short = _as_short(settings, label, a, run.seed)
            ten = short if label == "w/o robustness improvement" else {}  # RX-C13
            yield Cell("table10", label, a, run.seed, (spec,), FAITHFULNESS, decides=ten)
            if a in BEST and label.removesuffix(SHORT_RUN) in IN_TABLE_4:
                four = short if label == "REGEX" else {}  # RX-C12
                yield Cell("table4", label, a, run.seed, (spec,), FAITHFULNESS, decides=four)
        answers = predictions(settings, label, home, home, run)
        yield Cell("table7", label, "Full-text", run.seed, (answers,), ANSWERS)


def ablation_runs(settings: Settings) -> list[tuple[str, RunSpec]]:
    """Every variant with its seeds; and what short ones compare with, as short, on their texts."""
    runs = [
        (system, main_run(settings, system, "SST", seed))
        for system in systems.ABLATIONS
        for seed in seeds_of(settings, system)
    ]
    return runs + [
        (system + SHORT_RUN, run_spec(settings, system, "SST", seed, wide=True))
        for system, variant in SHORTENED.items()
        if "short" in settings.grid and systems.is_core(settings, system)
        for seed in seeds_of(settings, variant)
    ]


def _as_short(settings: Settings, label: str, a: str, seed: int) -> dict[str, Read]:
    """What claims read of a long run where the variants that it is compared with are short ones."""
    variant = SHORTENED.get(label, label)
    if systems.is_long(settings, variant) or not systems.is_long(settings, label):
        return {}
    home, run = systems.sets(settings)["SST"], run_spec(settings, label, "SST", seed, wide=True)
    short = faithfulness(settings, label + SHORT_RUN, home, home, a, run)
    return {metric: evaluations.read_of(short, read) for metric, read in FAITHFULNESS.items()}


def _sweeps(settings: Settings) -> Iterator[Cell]:
    """Figures 3 and 4. The column without a name is the mean over the five attributions."""
    home, swept = systems.sets(settings)["SST"], settings.grid["swept"]
    for figure, row, system in _swept(settings):
        for seed in seeds_of(settings, "sweep"):
            run = run_spec(settings, system, "SST", seed, wide=True)
            specs = {a: faithfulness(settings, row, home, home, a, run) for a in swept}
            for a, spec in specs.items():
                yield Cell(figure, row, a, seed, (spec,), FAITHFULNESS)
            if specs.keys() >= set(FIVE):
                five = tuple(specs[a] for a in FIVE)
                yield Cell(figure, row, "", seed, five, evaluations.MEAN_OF_FIVE)


def _swept(settings: Settings) -> Iterator[tuple[str, str, System]]:
    """(figure, its row, REGEX with another λ4 or K)."""
    regex = systems.SYSTEMS["REGEX"]
    for weight in settings.grid["lambdas"]:
        yield "figure-3", f"λ4 = {_printed(weight)}", replace(regex, guided=weight)
    for percent in settings.grid["percents"]:
        yield "figure-4", f"K = {_printed(percent / 100)}", replace(regex, percent=percent)


def _printed(value: float) -> str:
    """As the paper prints it: .01, 1."""
    return f"{value:g}".removeprefix("0")


def _initialisations(settings: Settings, table: str, *, small: bool) -> Iterator[Cell]:
    """Tables 3 and 8: each initialisation with each, itself included."""
    for system in MAIN:
        found = evaluations.initialisations(settings, system, small=small)
        for (a, first), (b, second) in product(found.items(), repeat=2):
            assert first.run is not None
            specs = tuple(dict.fromkeys((first, second)))
            row, seed = f"{a}|{system}", first.run.seed
            yield Cell(table, row, b, seed, specs, evaluations.JACCARD)


def _attack(settings: Settings) -> Iterator[Cell]:
    """Table 6: both systems of IMDB under attack."""
    for system in MAIN:
        for seed in seeds_of(settings, system, "IMDB", "IMDB"):
            spec = evaluations.attacked(settings, system, seed)
            for row, read in evaluations.ATTACK.items():
                yield Cell("table6", row, system, seed, (spec,), {"attack": read})


def _fresh(settings: Settings) -> Iterator[Cell]:
    """Tables 2 and 9: classifiers that read nothing but rationales, of the target's ratio.

    Of every source that the profile names, both supports and five attributions.
    """
    for (source, target), system, a in product(systems.pairs(settings), MAIN, FIVE):
        if source.paper in settings.grid["fresh"]["sources"]:
            row = f"{systems.pair_name(source, target)}|{system}"
            for seed in seeds_of(settings, "fresh"):
                spec = evaluations.fresh(settings, system, source, target, a, seed)
                for table in ("table2", "table9") if system == "REGEX" else ("table2",):
                    yield Cell(table, row, a, seed, (spec,), ANSWERS)


def _attributions(settings: Settings, seed: int) -> Sequence[str]:
    """All six of the first seed; of the others those that decide claims, unless the profile has
    room for more."""
    every = systems.everywhere(settings) or seed == settings.seeds[0]
    return list(systems.ATTRIBUTIONS) if every else BEST
