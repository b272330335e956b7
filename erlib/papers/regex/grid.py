"""Which runs and measurements make up REGEX's tables and figures?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from erlib.config import EvalSpec, RunSpec
from erlib.papers.regex.systems import (
    ABLATIONS,
    ATTRIBUTIONS,
    RATIO,
    SYSTEMS,
    Set,
    System,
    data_spec,
    extraction,
    fresh_spec,
    is_core,
    is_long,
    options_of,
    other_readings,
    pairs,
    run_spec,
    seeds_of,
    sets,
    untrained,
)
from erlib.parameters import Settings
from erlib.training.stages import Stage, listed_in

MAIN = ("Baseline", "REGEX")
BEST = ("aGa", "DeepLift")  # the two attributions that the paper's claims are about
SHORT = "REGEX, short run"
SHORTENED = ("REGEX", "w/o robustness improvement")  # with which short variants are compared
OTHER_DEEPLIFTS = {  # variant → how it differs from the protocol's code
    "regex_hooked": "hooked at the embedding block's output",
    "regex_hooked_word_embedding": "hooked at the word embedding",
    "regex_word_embedding": "through the whole model from the word embedding",
}
UNTRAINED = "#Untrained"  # the row of Tables 3 and 8 that is meant to have learnt nothing
PAPERS_BEST = {  # Figures 3 and 4: the values that the text names, per sweep and metric
    ("lambda", "norm_suff"): (0.01,),
    ("lambda", "norm_comp"): (0.001,),
    ("percent", "norm_suff"): (15, 20),
    ("percent", "norm_comp"): (15, 20),
}


@dataclass(frozen=True)
class Cell:
    """One number: a system trained on a source with a seed, measured on a target in some way."""

    system: str
    source: str
    target: str
    attribution: str
    spec: EvalSpec

    @property
    def seed(self) -> int:
        """Of the measured run."""
        assert self.spec.run is not None
        return self.spec.run.seed


def main_run(settings: Settings, system: str, source: str, seed: int) -> RunSpec:
    """The run of a system that the tables are about: full length only on SST, if at all."""
    wide = source != "SST" or not is_long(settings, system)
    return run_spec(settings, system, source, seed, wide=wide)


def lambdas(settings: Settings) -> dict[float, System]:
    """Figure 3: the weight of explanation guided training."""
    return {w: replace(SYSTEMS["REGEX"], guided=w) for w in settings.grid["lambdas"]}


def percents(settings: Settings) -> dict[int, System]:
    """Figure 4: how much of a text is masked."""
    return {k: replace(SYSTEMS["REGEX"], percent=k) for k in settings.grid["percents"]}


def sweep_run(settings: Settings, system: System, seed: int) -> RunSpec:
    """A run of Figures 3 and 4, and of the audit."""
    return run_spec(settings, system, "SST", seed, wide=True)


def full_text(settings: Settings) -> list[Cell]:
    """Table 2, first column: predictions of both systems in all 18 pairs."""
    return [
        predictions_cell(settings, system, source, target,
                         main_run(settings, system, source.paper, seed))
        for source, target in pairs(settings)
        for system in MAIN
        for seed in seeds_of(settings, system, source.paper, target.paper)
    ]  # fmt: skip


def faithful(settings: Settings) -> list[Cell]:
    """Table 1: sufficiency and comprehensiveness of both systems in all 18 pairs."""
    return [
        faithfulness_cell(settings, system, source, target, attribution,
                          main_run(settings, system, source.paper, seed))
        for source, target in pairs(settings)
        for system in MAIN
        for seed in seeds_of(settings, system, source.paper, target.paper)
        for attribution in _attributions(settings, seed)
    ]  # fmt: skip


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on their own sets."""
    found: dict[str, list[EvalSpec]] = {}
    for cell in full_text(settings):
        if cell.system == "Baseline" and cell.source == cell.target:
            found.setdefault(cell.source, []).append(cell.spec)
    return found


def ablated(settings: Settings) -> list[Cell]:
    """Tables 4 and 10: the variants, measured on SST as in Table 1."""
    home = sets(settings)["SST"]
    return [
        faithfulness_cell(settings, label, home, home, attribution, spec)
        for label, spec in ablation_runs(settings)
        for attribution in _attributions(settings, spec.seed)
    ]


def ablation_runs(settings: Settings) -> list[tuple[str, RunSpec]]:
    """Every variant with its seeds; and what short ones compare with, as short, on their texts."""
    runs = [
        (system, main_run(settings, system, "SST", seed))
        for system in ABLATIONS
        for seed in seeds_of(settings, system)
    ]
    return runs + [
        (short_run(system), run_spec(settings, system, "SST", settings.seeds[0], wide=True))
        for system in SHORTENED
        if "short" in settings.grid and is_core(settings, system)
    ]


def short_run(system: str) -> str:
    """The row of a system that is trained as the short variants are."""
    return f"{system}, short run"


def ablated_predictions(settings: Settings) -> list[Cell]:
    """Table 7: F1 of the variants."""
    home = sets(settings)["SST"]
    return [
        predictions_cell(settings, label, home, home, spec)
        for label, spec in ablation_runs(settings)
    ]


def swept(settings: Settings, name: str) -> dict[float, list[Cell]]:
    """Figures 3 ("lambda") and 4 ("percent"): value → cells."""
    home = sets(settings)["SST"]
    values = lambdas(settings) if name == "lambda" else percents(settings)
    return {
        value: [
            faithfulness_cell(settings, f"{name} {value}", home, home, attribution,
                              sweep_run(settings, system, seed))
            for seed in seeds_of(settings, "sweep")
            for attribution in settings.grid["swept"]
        ]
        for value, system in values.items()
    }  # fmt: skip


def audited(settings: Settings) -> list[Cell]:
    """Choices that the paper leaves open, each as a short run beside REGEX's short run."""
    home, seed = sets(settings)["SST"], settings.seeds[0]
    runs = {
        SHORT: sweep_run(settings, SYSTEMS["REGEX"], seed),
        **{
            label: sweep_run(settings, system, seed)
            for label, system in other_readings(settings).items()
        },
    }
    return [
        faithfulness_cell(settings, label, home, home, attribution, spec)
        for label, spec in runs.items()
        for attribution in BEST
    ]


def deeplifts(settings: Settings) -> dict[tuple[str, str], Cell]:
    """(system, variant) → DeepLift as the protocol's code has it, the other ways, and random.

    Of the first seed's models in SST's domain, all on the same texts.
    """
    home, seed = sets(settings)["SST"], settings.seeds[0]
    found = {}
    for system in MAIN:
        run = main_run(settings, system, "SST", seed)
        for variant in ("regex", *OTHER_DEEPLIFTS, "random"):
            attribution = "RAND" if variant == "random" else "DeepLift"
            cell = faithfulness_cell(settings, system, home, home, attribution, run)
            spec = replace(cell.spec, rows=settings.grid.get("deeplift_rows"))
            if variant in OTHER_DEEPLIFTS:
                spec = replace(spec, variant=variant)
            found[system, variant] = replace(cell, spec=spec)
    return found


def initialisations(settings: Settings, *, small: bool) -> dict[str, dict[str, EvalSpec]]:
    """Tables 3 and 8: system → initialisation → attributions by α∇α on SST's test texts."""
    home = sets(settings)["SST"]
    count = settings.grid["small_initialisations"] if small else settings.grid["initialisations"]
    seeds = settings.seeds[:count]
    rows = settings.grid.get("erased_rows", {}).get("core")

    def scores(spec: RunSpec) -> EvalSpec:
        cell = faithfulness_cell(settings, "", home, home, "aGa", spec)
        return replace(cell.spec, kind="attributions", rows=rows)

    return {
        system: {
            **{
                f"Init#{i}": scores(
                    run_spec(settings, system, "SST", seed, small=True, wide=True)
                    if small
                    else main_run(settings, system, "SST", seed)
                )
                for i, seed in enumerate(seeds, start=1)
            },
            UNTRAINED: scores(untrained(settings, small=small)),
        }
        for system in MAIN
    }


def attacked(settings: Settings) -> list[Cell]:
    """Table 6: both systems of IMDB under attack."""
    imdb = sets(settings)["IMDB"]
    return [
        Cell(system, "IMDB", "IMDB", "attack",
             _eval(settings, main_run(settings, system, "IMDB", seed), imdb, "attack",
                   settings.grid["attack_rows"]))
        for system in MAIN
        for seed in seeds_of(settings, system, "IMDB", "IMDB")
    ]  # fmt: skip


def fresh(settings: Settings) -> list[Cell]:
    """Tables 2 and 9: classifiers that read nothing but rationales.

    Of every source that the profile names, both supports and five attributions; rationales of the
    target have the target's ratio.
    """
    return [
        Cell(system, source.paper, target.paper, attribution,
             _fresh_eval(settings, system, source, target, attribution, seed, RATIO[target.paper]))
        for source, target in pairs(settings)
        if source.paper in settings.grid["fresh"]["sources"]
        for system in MAIN
        for attribution in ATTRIBUTIONS
        if attribution != "RAND"
        for seed in seeds_of(settings, "fresh")
    ]  # fmt: skip


def fresh_with_source_ratio(settings: Settings) -> list[Cell]:
    """The audit's other reading: rationales of IMDB texts as long, in per cent, as those of SST."""
    source, target = sets(settings)["SST"], sets(settings)["IMDB"]
    return [
        Cell(system, "SST", "IMDB", attribution,
             _fresh_eval(settings, system, source, target, attribution, settings.seeds[0],
                         RATIO["SST"]))
        for system in MAIN
        for attribution in BEST
    ]  # fmt: skip


def _fresh_eval(
    settings: Settings,
    system: str,
    source: Set,
    target: Set,
    attribution: str,
    seed: int,
    percent: int,
) -> EvalSpec:
    support = main_run(settings, system, source.paper, seed)
    classifier = fresh_spec(settings, support, source, attribution, seed)
    rationales = extraction(settings, support, attribution, percent)
    data = replace(data_spec(settings, target, rationales), train_rows=None, dev_rows=None)
    rows = settings.grid["fresh"].get("test_rows")
    return EvalSpec(classifier, data, "test", "predictions", rows)


def faithfulness_cell(
    settings: Settings, system: str, source: Set, target: Set, attribution: str, run: RunSpec
) -> Cell:
    """Sufficiency and comprehensiveness by the paper's protocol."""
    rows = _rows(settings, "erased_rows", system, source, target)
    spec = replace(
        _eval(settings, run, target, "faithfulness", rows),
        method=ATTRIBUTIONS[attribution],
        variant="regex",
        protocol="regex",
        options=options_of(settings, attribution),
    )
    return Cell(system, source.paper, target.paper, attribution, spec)


def predictions_cell(
    settings: Settings, system: str, source: Set, target: Set, run: RunSpec
) -> Cell:
    """F1 on the full text."""
    rows = _rows(settings, "test_rows", system, source, target)
    spec = _eval(settings, run, target, "predictions", rows)
    return Cell(system, source.paper, target.paper, "Full-text", spec)


def _rows(settings: Settings, name: str, system: str, source: Set, target: Set) -> int | None:
    """How many test texts: more where claims are decided."""
    core = is_core(settings, system) and source.paper == target.paper == "SST"
    return settings.grid.get(name, {}).get("core" if core else "wide")


def _eval(settings: Settings, run: RunSpec, target: Set, kind: str, rows: int | None) -> EvalSpec:
    data = replace(data_spec(settings, target), train_rows=None, dev_rows=None)
    return EvalSpec(run, data, "test", kind, rows)


def _attributions(settings: Settings, seed: int) -> list[str]:
    """All six of the first seed; of the others those that decide claims, unless the profile has
    room for more."""
    every = settings.grid["core"] == "all" or seed == settings.seeds[0]
    return list(ATTRIBUTIONS) if every else list(BEST)


def every_cell(settings: Settings) -> list[Cell]:
    """All measurements but those of FRESH."""
    return [
        *full_text(settings),
        *faithful(settings),
        *ablated(settings),
        *ablated_predictions(settings),
        *chain.from_iterable(swept(settings, "lambda").values()),
        *chain.from_iterable(swept(settings, "percent").values()),
        *audited(settings),
        *deeplifts(settings).values(),
        *attacked(settings),
    ]


def every_attribution(settings: Settings) -> list[EvalSpec]:
    """What the tables of Jaccard similarities compare."""
    tables = [initialisations(settings, small=small) for small in (False, True)]
    return [spec for table in tables for systems in table.values() for spec in systems.values()]


def grid(settings: Settings) -> list[Stage]:
    """Train the systems; measure them; train on their rationales, and measure that."""
    cells = list(dict.fromkeys(c.spec for c in every_cell(settings)))
    measured = list(dict.fromkeys([*cells, *every_attribution(settings)]))
    rationales = list(
        dict.fromkeys(c.spec for c in [*fresh(settings), *fresh_with_source_ratio(settings)])
    )
    runs = _runs(measured)
    classifiers = _runs(rationales)
    asked, keeps = listed_in(measured, rationales), kept(settings).__contains__
    run_stage = partial(Stage, asked=asked, keeps=keeps)
    return [
        run_stage("runs", lambda results: runs, len(runs), runs),
        Stage("measurements", lambda results: measured, len(measured), measured),
        run_stage("classifiers", lambda results: classifiers, len(classifiers), classifiers),
        Stage("rationales", lambda results: rationales, len(rationales), rationales),
    ]


def kept(settings: Settings) -> set[RunSpec]:
    """The first seed's models of both systems on the sets that the profile names, and what those on
    SST began from: the audit and Table 5 look at them once more."""
    seed = settings.seeds[0]
    start = run_spec(settings, "Baseline", "SST", seed)
    return {start, *(main_run(settings, s, x, seed) for s in MAIN for x in settings.grid["keep"])}


def _runs(specs: list[EvalSpec]) -> list[RunSpec]:
    """The measured runs and those they begin from, which are theirs to train first."""
    runs = [spec.run for spec in specs if spec.run is not None]
    return list(dict.fromkeys(chain.from_iterable((r.start, r) if r.start else (r,) for r in runs)))
