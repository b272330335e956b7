"""In which order is the paper trained and measured?

Explanation-only runs come first: the bounds of the constrained ones are made from them.
"""

from __future__ import annotations

from math import isfinite

import pandas as pd

from erlib.attributions import method
from erlib.config import EvalSpec, RunSpec
from erlib.papers.er_lens.sets import (
    TestSet,
    annotated,
    data_of,
    rows_attributed,
    rows_used,
    test_sets,
)
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    Bounds,
    bounds_of,
    double_embedding,
    run_spec,
    seeds_of,
    sweep_spec,
    system_of,
)
from erlib.papers.holes import failed
from erlib.parameters import Settings
from erlib.training.stages import Results, Stage, no_model, nothing

RANDOM = "random"
AUDITED = ("Baseline", "ER+Att")  # trained once more with the embedding block applied twice


def grid(settings: Settings) -> list[Stage]:
    """Train, compute the bounds, train under them, sweep λ, audit; then measure what was kept.

    Where runs go on from others, those are a stage of their own, so that the report has them too.
    """

    def of_mode(*modes: str, bounds: dict[str, Bounds] | None = None) -> list[RunSpec]:
        return [
            run_spec(settings, name, seed, (bounds or {}).get(system.guide))
            for name, system in SYSTEMS.items()
            if system.mode in modes and (bounds is None or system.guide in bounds)
            for seed in seeds_of(settings, name)
        ]

    alone, free = of_mode("explanation"), of_mode("baseline", "joint")
    guess = dict.fromkeys(GUIDES, Bounds(0.0, 0.0))  # for counting only
    constrained = of_mode("constrained", bounds=guess)
    sweep, audit = sweep_specs(settings), audit_specs(settings)
    known = (*alone, *free, *constrained, *sweep, *audit)
    starts = list(dict.fromkeys(spec.start for spec in known if spec.start))
    measured = eval_specs(settings, [(s.seed, s) for s in (*alone, *free, *constrained)])
    checked = audit_evals(settings)

    def asked(run: RunSpec) -> list[EvalSpec]:
        return [*eval_specs(settings, [(run.seed, run)]), *(e for e in checked if e.run == run)]

    def kept(run: RunSpec) -> bool:
        return run.seed == settings.seeds[0] and system_of(run) in settings.grid["keep"]

    def under_bounds(results: Results) -> list[RunSpec]:
        found = {guide: bounds_of(results["explanation_only"], guide) for guide in GUIDES}
        found = {guide: bounds for guide, bounds in found.items() if isfinite(bounds.dev)}
        # IxG's, which take twice as long, come first: else a core would wait for the last of them
        return of_mode("constrained", bounds=found)[::-1]

    def measure(results: Results) -> list[EvalSpec]:
        runs = trained(results)
        return eval_specs(settings, list(zip(runs["place"], runs["spec"], strict=True)))

    return [
        *([Stage("starts", lambda r: starts, len(starts), starts, keeps=no_model)] * bool(starts)),
        Stage("explanation_only", lambda r: alone, len(alone), alone, asked=asked, keeps=kept),
        Stage("systems", lambda r: free, len(free), free, asked=asked, keeps=kept),
        Stage("constrained", under_bounds, len(constrained), constrained, guessed=True, keeps=kept),
        Stage("sweep", lambda r: sweep, len(sweep), sweep, asked=nothing, keeps=no_model),
        Stage("audit", lambda r: audit, len(audit), audit, asked=asked, keeps=no_model),
        Stage("measurements", measure, len(measured), measured[0]),
        Stage("audit_measurements", lambda r: checked, len(checked), checked[0]),
    ]


def trained(results: Results) -> pd.DataFrame:
    """All finished runs of the ten systems, in their order, with `system` and `place`.

    `place` is the seed that was wanted: a lost run's place is taken by its replacement. A run of
    which answers or erasure could not be measured is left out like one that failed.
    """
    stages = [results[name] for name in ("systems", "constrained", "explanation_only")]
    runs = pd.concat(stages, ignore_index=True).query("status == 'done'")
    unmeasured = {
        spec.run
        for spec in failed([results.get("measurements", pd.DataFrame())])
        if spec.kind != "plausibility"
    }
    runs = runs[[spec not in unmeasured for spec in runs["spec"]]]
    runs = runs.assign(
        system=[system_of(s) for s in runs["spec"]],
        place=runs["replaces"].fillna(runs["seed"]).astype(int),
    )
    order = {name: i for i, name in enumerate(SYSTEMS)}
    return runs.sort_values("system", key=lambda s: s.map(order), kind="stable", ignore_index=True)


def sweep_specs(settings: Settings) -> list[RunSpec]:
    """λ x guide x seed; λ = 0 has no guide, and is trained once for all of them."""
    sweep = settings.grid["sweep"]
    return [
        sweep_spec(settings, guide, weight, seed)
        for weight in sweep["lambda"]
        for guide in (GUIDES if weight else (None,))
        for seed in settings.seeds[: sweep["seeds"]]
    ]


def audit_specs(settings: Settings) -> list[RunSpec]:
    """What is trained only to see what an oversight of the paper's code changes, on one seed."""
    return [double_embedding(run_spec(settings, s, settings.seeds[0])) for s in AUDITED]


def eval_specs(settings: Settings, runs: list[tuple[int, RunSpec]]) -> list[EvalSpec]:
    """Predictions on every set, plausibility of every technique on the annotated ones, erasure.

    `runs`: with the place of each (see `trained`).
    """
    specs = []
    for place, spec in runs:
        system = system_of(spec)
        if system in CLASSIFIERS:
            specs += [prediction_spec(settings, spec, test) for test in test_sets(settings)]
        for test in annotated(settings):
            specs += [
                plausibility_spec(settings, spec, test, technique)
                for technique in techniques_on(settings, test, system, place)
            ]
        if system == "Baseline":
            specs += [erasure_spec(settings, spec, name) for name in (*TECHNIQUES, RANDOM)]
    return specs


def techniques_on(settings: Settings, test: TestSet, system: str, place: int) -> list[str]:
    """The techniques measured of a run on a set.

    Decompositions are dear. The profile may keep them to some systems and to the first seeds, on
    every set (`decomposed`) or on the long documents (`long`), which the paper left out.
    """
    limits = [settings.grid.get("decomposed", {})]
    if test.plausibility == "Movies":
        limits.append(settings.grid["long"])
    for limit in limits:
        systems = limit.get("systems", list(SYSTEMS))
        first = settings.seeds[: limit.get("seeds")]
        others = settings.seeds[: limit.get("seeds_of_others", 0)]
        if place not in (first if system in systems else others):
            return list(GUIDES)
    return list(TECHNIQUES)


def prediction_spec(settings: Settings, spec: RunSpec, test: TestSet) -> EvalSpec:
    """What a run answers on a set."""
    rows = rows_used(settings, test)
    return EvalSpec(spec, data_of(settings, test), test.split, "predictions", rows)


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on every set."""
    seeds = seeds_of(settings, "Baseline")
    runs = [run_spec(settings, "Baseline", seed) for seed in seeds]
    return {
        test.paper or test.name: [prediction_spec(settings, run, test) for run in runs]
        for test in test_sets(settings)
    }


def plausibility_spec(settings: Settings, spec: RunSpec, test: TestSet, technique: str) -> EvalSpec:
    """AUC, AP and recall@k of a technique on a set; of every layer where it has layers."""
    name = TECHNIQUES[technique]
    long = test.plausibility == "Movies"  # cut alike for all techniques, to be compared
    return EvalSpec(
        spec,
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
    settings: Settings, spec: RunSpec, technique: str, variant: str | None = None
) -> EvalSpec:
    """Sufficiency and comprehensiveness on the dev texts; signed scores, as in the paper."""
    home = annotated(settings)[0]
    signed = "er_lens_signed" if technique == "IXG" else "er_lens"
    return EvalSpec(
        spec,
        data_of(settings, home),
        home.split,
        "faithfulness",
        settings.grid.get("erased_rows"),
        method=TECHNIQUES.get(technique, technique),
        variant=variant or signed,
        target="gold",
        protocol="er_lens",
    )


def audit_evals(settings: Settings) -> list[EvalSpec]:
    """The doubled embedding's answers and plausibility, and erasure by absolute scores."""
    specs: list[EvalSpec] = []
    for spec in audit_specs(settings):
        sets = [t for t in test_sets(settings) if t.in_domain]
        specs += [prediction_spec(settings, spec, test) for test in sets]
        home = annotated(settings)[0]
        specs += [plausibility_spec(settings, spec, home, technique) for technique in GUIDES]
    first = run_spec(settings, "Baseline", settings.seeds[0])
    specs += [
        erasure_spec(settings, first, "IXG", "er_lens"),
        erasure_spec(settings, first, "DX-C", "er_lens_absolute"),
    ]
    return specs
