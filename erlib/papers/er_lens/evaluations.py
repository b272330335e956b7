"""What is measured of a run?"""

from __future__ import annotations

from erlib.attributions import method
from erlib.config import EvalSpec, RunSpec
from erlib.papers.er_lens.sets import (
    HOME,
    LONG,
    TestSet,
    annotated,
    data_of,
    rows_attributed,
    rows_used,
    test_sets,
)
from erlib.papers.er_lens.systems import GUIDES, SYSTEMS, TECHNIQUES, run_spec, seeds_of
from erlib.parameters import Settings

RANDOM = "random"


def techniques_on(settings: Settings, test: TestSet, system: str, seed: int) -> list[str]:
    """The techniques measured of a run on a set.

    Decompositions are expensive. The profile may keep them to some systems and to the first seeds,
    on every set (`decomposed`) or on the long documents (`long`), which the paper left out.
    """
    limits = [settings.grid.get("decomposed", {})]
    if test.plausibility == LONG:
        limits.append(settings.grid["long"])
    for limit in limits:
        systems = limit.get("systems", list(SYSTEMS))
        first = settings.seeds[: limit.get("seeds")]
        others = settings.seeds[: limit.get("seeds_of_others", 0)]
        if seed not in (first if system in systems else others):
            return list(GUIDES)
    return list(TECHNIQUES)


def prediction_spec(settings: Settings, run: RunSpec, test: TestSet) -> EvalSpec:
    """What a run answers on a set."""
    rows = rows_used(settings, test)
    return EvalSpec(run, data_of(settings, test), test.split, "predictions", rows)


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on every set."""
    runs = [run_spec(settings, "Baseline", seed) for seed in seeds_of(settings, "Baseline")]
    return {
        test.column: [prediction_spec(settings, run, test) for run in runs]
        for test in test_sets(settings)
    }


def plausibility_spec(settings: Settings, run: RunSpec, test: TestSet, technique: str) -> EvalSpec:
    """AUC, AP and recall@k of a technique on a set; of every layer where it has layers."""
    name = TECHNIQUES[technique]
    long = test.plausibility == LONG  # cut alike for all techniques, to be compared
    return EvalSpec(
        run,
        data_of(settings, test, settings.grid["long"]["max_length"] if long else None),
        test.split,
        "plausibility",
        rows_attributed(settings, test, technique),
        method=name,
        variant="er_lens",
        target="gold",
        protocol="layers" if method(name).per_layer else None,
    )


def erasure_spec(
    settings: Settings, run: RunSpec, technique: str, variant: str | None = None
) -> EvalSpec:
    """Sufficiency and comprehensiveness on the dev texts; signed scores, as in the paper."""
    home = annotated(settings)[HOME]
    signed = "er_lens_signed" if technique == "IXG" else "er_lens"
    return EvalSpec(
        run,
        data_of(settings, home),
        home.split,
        "faithfulness",
        settings.grid.get("erased_rows"),
        method=TECHNIQUES.get(technique, technique),
        variant=variant or signed,
        target="gold",
        protocol="er_lens",
    )


def erasure_specs(settings: Settings, run: RunSpec) -> dict[str, EvalSpec]:
    """Of every technique, and of tokens in a random order ("RAND")."""
    named = {**{x: x for x in TECHNIQUES}, "RAND": RANDOM}
    return {name: erasure_spec(settings, run, x) for name, x in named.items()}
