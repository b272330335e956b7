"""Every number of the paper's tables and figures, and in which order what they need is made.

Explanation-only runs come first: the bounds of the constrained ones are made from them. A run that
never meets its bound is lost, and its replacement stands in the place of the seed that was wanted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

import pandas as pd

from erlib.catalogue import paper
from erlib.config import EvalSpec, RunSpec
from erlib.papers.cells import F1_MACRO, Cell, Read, Reading, Spec, summary, text_mean
from erlib.papers.er_lens import audit, systems
from erlib.papers.er_lens.evaluations import (
    HOME,
    LONG,
    YELP_50,
    annotated,
    erasure_specs,
    in_table_2,
    plausibility_spec,
    prediction_spec,
    techniques_on,
    test_sets,
)
from erlib.papers.er_lens.reads import DEPTHS, MEASURES, area_under, at_depth
from erlib.papers.er_lens.systems import GUIDES, SYSTEMS, Bounds, run_spec, seeds_of, system_of
from erlib.papers.grid import evaluations_of, later, stage
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.stages import Results, Stage, listed_in, no_model, nothing

UNKNOWN = dict.fromkeys(GUIDES, Bounds(0.0, 0.0))  # before the explanation-only runs
OBJECTIVES = {"explanation": "Lexpl", "joint": "Joint", "constrained": "Constrained"}  # Table 5
PLAUSIBILITY: Mapping[str, Read] = {
    "auc_x100": text_mean("auc", 100),
    "average_precision": text_mean("average_precision", 100),
    "recall_at_k": text_mean("recall_at_k", 100),
}


def cells(study: Study) -> Iterator[Cell]:
    """All of them, of the runs that were kept; of those that are wanted while there are none."""
    settings, runs = study.settings, placed(study)
    for (system, seed), run in runs.items():
        if system in systems.CLASSIFIERS:
            yield from _answers(settings, system, seed, run)
        yield from _plausibility(settings, system, seed, run)
        yield from _layers(settings, system, seed, run)
        yield from _losses(settings, system, seed, run)
        if system == "Baseline":
            yield from _erasure(settings, seed, run)
    yield from _sweep(settings)
    yield from _usable(study)
    yield from audit.cells(settings, runs)


def wanted(settings: Settings, bounds: Mapping[str, Bounds]) -> dict[tuple[str, int], RunSpec]:
    """The paper's runs; constrained ones of the techniques that have bounds."""
    return {
        (name, seed): run_spec(settings, name, seed, bounds.get(system.guide))
        for name, system in SYSTEMS.items()
        if system.mode != "constrained" or system.guide in bounds
        for seed in seeds_of(settings, name)
    }


def placed(study: Study) -> dict[tuple[str, int], RunSpec]:
    """The finished runs, each in the place of the seed that was wanted."""
    if not study.results:
        return wanted(study.settings, UNKNOWN)
    tables = [study.results[name] for name in ("systems", "constrained", "explanation_only")]
    runs = pd.concat(tables, ignore_index=True).query("status == 'done'")
    seeds = runs["replaces"].fillna(runs["seed"]).astype(int)
    found = {(system_of(s), place): s for s, place in zip(runs["spec"], seeds, strict=True)}
    return {(name, s): found[name, s] for name in SYSTEMS for n, s in sorted(found) if n == name}


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The Baselines' answers on every set."""
    runs = [run_spec(settings, "Baseline", seed) for seed in seeds_of(settings, "Baseline")]
    return {
        test.column: [prediction_spec(settings, run, test) for run in runs]
        for test in test_sets(settings)
    }


def _answers(settings: Settings, system: str, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Tables 2 and 7."""
    for test in in_table_2(settings):
        spec = prediction_spec(settings, run, test)
        yield Cell("table2", system, test.column, seed, (spec,), {"f1_macro": F1_MACRO})
    if short := annotated(settings).get(YELP_50):
        spec = prediction_spec(settings, run, short)
        yield Cell("table7", system, YELP_50, seed, (spec,), {"f1_macro": F1_MACRO})


def _plausibility(settings: Settings, system: str, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Tables 3, 4 and 9, and the AUC of Table 5."""
    for where, test in annotated(settings).items():
        for technique in techniques_on(settings, test, system, seed):
            new = where == LONG and technique in systems.DECOMPOSITIONS
            remark = f"new, ≤ {settings.grid['long']['max_length']} tokens" if new else ""
            specs = (plausibility_spec(settings, run, test, technique),)
            for table in ("table3" if where == HOME else "table4", "table9"):
                column = f"{where}/{technique}"
                yield Cell(table, system, column, seed, specs, PLAUSIBILITY, remark)
            if where == HOME and technique == SYSTEMS[system].guide:
                read = {"auc_x100": PLAUSIBILITY["auc_x100"]}
                yield Cell("table5", _objective(system), HOME, seed, specs, read)


def _layers(settings: Settings, system: str, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Figure 4, below the top layer."""
    spec = plausibility_spec(settings, run, annotated(settings)[HOME], "ATT")
    for name, depth in DEPTHS.items():
        read = {"layer_auc": at_depth(depth)}
        yield Cell("figure-4", system, f"ATT at depth {name}", seed, (spec,), read)


def _losses(settings: Settings, system: str, seed: int, run: RunSpec) -> Iterator[Cell]:
    """The losses of Table 5, and those that Figures 5 and 12 compare with."""
    read = {"expl_loss": summary("dev_explanation")}
    if SYSTEMS[system].guide:
        yield Cell("table5", _objective(system), HOME, seed, (run,), read)
    if SYSTEMS[system].mode == "explanation":
        figure = "figure-12" if SYSTEMS[system].guide == "IXG" else "figure-5"
        yield Cell(figure, system, "", seed, (run,), read)


def _objective(system: str) -> str:
    return f"{SYSTEMS[system].guide}/{OBJECTIVES[SYSTEMS[system].mode]}"


def _erasure(settings: Settings, seed: int, run: RunSpec) -> Iterator[Cell]:
    """Figure 8: the areas under its curves."""
    every = erasure_specs(settings, run)
    read = {f"area_{measure}": area_under(measure) for measure in MEASURES}
    for name, own in every.items():
        yield Cell("figure-8", name, "", seed, (own, *every.values()), read)


def _sweep(settings: Settings) -> Iterator[Cell]:
    """Figures 5 and 12: both losses on dev for every λ. Figure 5 has IxG too, to compare with."""
    task = summary("dev_task")
    for (guide, weight, seed), run in systems.sweep_specs(settings).items():
        if guide is None:
            yield Cell("figure-5", "Baseline", "", seed, (run,), {"cross_entropy": task})
        for each in GUIDES if guide is None else (guide,):
            logged = "explanation" if guide else systems.watched_loss(each)
            read = {"cross_entropy": task, "expl_loss": summary(f"dev_{logged}")}
            row = f"{systems.system_named('joint', each)} at λ={weight:g}"
            for figure in ("figure-5", "figure-12") if each == "IXG" else ("figure-5",):
                yield Cell(figure, row, "", seed, (run,), read)


def _usable(study: Study) -> Iterator[Cell]:
    """Footnote 14: of every seed that was tried from scratch, whether it came to a checkpoint."""
    system = "ER-C+IxG"
    done = study.results.get("constrained")
    tried = wanted(study.settings, UNKNOWN).values() if done is None else done["spec"]
    for run in tried:
        if system_of(run) == system and run.start is None:
            read: Mapping[str, Read] = {"share_of_seeds": _was_kept}
            yield Cell("footnote-14", system, "", run.seed, (run,), read)


def _was_kept(study: Study, specs: Sequence[Spec]) -> Reading:
    return Reading(float(study.rows[specs[0]]["status"] == "done"))


def grid(settings: Settings) -> list[Stage]:
    """Train, compute the bounds, train under them, sweep λ, audit; then measure what was kept.

    Where runs go on from others, those are a stage of their own, so that the report has them too.
    """
    expected = Study(paper("er_lens"), settings, {})
    runs, measured = wanted(settings, UNKNOWN), _measured(expected)
    also, known = evaluations_of(expected.of("audit")), set(measured)
    checked = [spec for spec in also if spec not in known]
    sweep = list(systems.sweep_specs(settings).values())
    audits = list(systems.audited(settings).values())
    starts = list(dict.fromkeys(s.start for s in (*runs.values(), *sweep, *audits) if s.start))
    asked = listed_in(measured, checked)

    def of_mode(*modes: str) -> list[RunSpec]:
        return [run for (name, _), run in runs.items() if SYSTEMS[name].mode in modes]

    def kept(run: RunSpec) -> bool:
        return run.seed == settings.seeds[0] and system_of(run) in settings.grid["keep"]

    def under_bounds(results: Results) -> list[RunSpec]:
        found = {guide: systems.bounds_of(results["explanation_only"], guide) for guide in GUIDES}
        finite = {guide: bounds for guide, bounds in found.items() if isfinite(bounds.dev)}
        bound = wanted(settings, finite).items()
        # IxG's, which take twice as long, come first: else a core would wait for the last of them
        return [run for (name, _), run in bound if SYSTEMS[name].mode == "constrained"][::-1]

    def measure(results: Results) -> list[EvalSpec]:
        return _measured(Study(paper("er_lens"), settings, results))

    alone, free = of_mode("explanation"), of_mode("baseline", "joint")
    return [
        *([stage("starts", starts, keeps=no_model)] * bool(starts)),
        stage("explanation_only", alone, asked=asked, keeps=kept),
        stage("systems", free, asked=asked, keeps=kept),
        later("constrained", under_bounds, of_mode("constrained"), keeps=kept),
        stage("sweep", sweep, asked=nothing, keeps=no_model),
        stage("audit", audits, asked=asked, keeps=no_model),
        later("measurements", measure, measured),
        stage("audit_measurements", checked),
    ]


def _measured(study: Study) -> list[EvalSpec]:
    return evaluations_of(cell for cell in study.cells if cell.table != "audit")
