"""Which of our numbers go into which claim of the paper?

What a claim says, what the paper measured and by which rule it is decided are data
(`erlib/claims/er_lens.toml`); here are the measurements of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from erlib.metrics.agreement import kendall
from erlib.metrics.faithfulness import area
from erlib.metrics.verdicts import MIN_SEEDS, Decision, Verdict, decide_pair
from erlib.papers.er_lens.figures import CONSTRAINED, PREDICTORS, enough_seeds, predicted
from erlib.papers.er_lens.pairs import (
    Measured,
    auc_differences,
    f1_differences,
    layer_differences,
    layer_shift,
    measured_places,
)
from erlib.papers.er_lens.sets import YELP_50, outside
from erlib.papers.er_lens.stages import RANDOM
from erlib.papers.er_lens.study import ERASURE, Study
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    DECOMPOSITIONS,
    GLOBAL,
    GUIDES,
    TECHNIQUES,
    system_named,
    system_of,
)
from erlib.parameters import Settings

CORE_CLAIMS = ("ER-C4", "ER-C5", "ER-C6", "ER-C12", "ER-C17")  # the paper's central findings
JOINT = ("ER+Att", "ER+AttR", "ER+IxG")
# The guided systems that a claim rests on; of those it does not name, none or only sweeps.
SYSTEMS_OF: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ER-C1", "ER-C3", "ER-C4", "ER-C6", "ER-C7", "ER-C8"), ("ER+Att",)),
    **dict.fromkeys(("ER-C2", "ER-C9"), JOINT),
    "ER-C5": ("ER+AttR", "ER+IxG"),
    "ER-C12": ("ER-C+AttR",),
    **dict.fromkeys(("ER-C13", "ER-C18"), ("ER-C+IxG",)),
    "ER-C14": ("ER-C+Att",),
    **dict.fromkeys(("ER-C15", "ER-C17"), ("ER-C+AttR", "ER-C+IxG")),
    "ER-C16": ("ER-C+AttR", "ER-C+IxG", "ER-C+Att", "ER+Att"),
    "ER-C20": tuple(CONSTRAINED[1:]),
    **dict.fromkeys(("ER-C11", "ER-C19", "ER-C22", "ER-C23", "ER-C24"), tuple(CLASSIFIERS[1:])),
}
Parts = Mapping[str, Measured | None]


def measure_claims(study: Study) -> dict[str, dict[str, Measured]]:
    """Claim id → part → what its rule takes, for the claims that this study can speak to."""
    long, short = study.set_for("Movies"), study.set_for(YELP_50)
    away = outside(study.settings)
    named = {str(t.paper): t for t in away if t.paper}
    spread = {name: named[name] for name in ("Movies", "Yelp") if name in named}
    in_test = next(t for t in study.sets if t.paper == "SST-Test")
    top = _top_layer(study)
    measured: dict[str, Parts] = {
        "ER-C1": {
            "pooled": f1_differences(study, "ER+Att", away),
            **{name: f1_differences(study, "ER+Att", [t]) for name, t in named.items()},
        },
        "ER-C2": {
            f"ER+Att over {other}": f1_differences(study, "ER+Att", away, over=other)
            for other in ("ER+AttR", "ER+IxG")
        },
        "ER-C3": {
            part + name: _f1_values(study, t)
            for name, t in spread.items()
            for part in ("", "lower quartile ")
        },
        **plausibility_claims(study, "auc"),
        "ER-C7": {
            "top layer": _layer(study, "ER+Att", top),
            **{f"lower layer {i}": _layer(study, "ER+Att", i) for i in range(top)},
        },
        "ER-C8": {
            f"{technique} {test.name}": _tau_differences(study, test, technique)
            for technique in TECHNIQUES
            if technique != "ATT"
            for test in study.annotated
        },
        "ER-C9": {
            g: _loss_differences(study, system_named("explanation", g), system_named("joint", g))
            for g in GUIDES
        },
        "ER-C10": _sweep_parts(study),
        "ER-C11": {
            **{f"bound {g}": _above_bound(study, g) for g in GUIDES},
            **{
                f"AUC {g}": auc_differences(
                    study,
                    system_named("constrained", g),
                    study.annotated[0],
                    g,
                    over=system_named("joint", g),
                )
                for g in GUIDES
            },
        },
        "ER-C15": {
            f"{guide} {name}": auc_differences(
                study, system_named("constrained", guide), test, guide
            )
            for guide in GLOBAL
            for name, test in (("Movies", long), (YELP_50, short))
        },
        "ER-C16": {
            system: _lower_layers(study, system)
            for system in ("ER-C+AttR", "ER-C+IxG", "ER-C+Att", "ER+Att")
        },
        "ER-C17": {
            f"{system} {name}": f1_differences(study, system, [test])
            for system in ("ER-C+AttR", "ER-C+IxG")
            for name, test in (("SST-Test", in_test), *named.items())
        },
        "ER-C18": {"usable seeds": _usable_seeds(study, "ER-C+IxG")},
        "ER-C19": {
            f"{predictor} {test.name}": _correlation(study, predictor, study.annotated[0], test)
            for predictor in PREDICTORS
            for test in study.sets
            if not test.in_domain
        },
        "ER-C20": {
            name: _correlation(study, "AUC-IXG", test, test, CONSTRAINED)
            for name, test in (("Movies", long), (YELP_50, short))
            if test is not None
        },
        "ER-C21": _erasure_parts(study),
        "ER-C22": _same_conclusions(study),
        "ER-C23": {
            system: f1_differences(study, system, [short] if short else [])
            for system in CLASSIFIERS[1:]
        },
        "ER-C24": {system: _pair_changes(study, system) for system in CLASSIFIERS[1:]},
    }
    kept = {
        claim: {name: part for name, part in parts.items() if part is not None}
        for claim, parts in measured.items()
    }
    return {claim: parts for claim, parts in sorted(kept.items(), key=_number) if parts}


def lost_seeds(study: Study, claim: str) -> int:
    """How many runs that the claim would rest on ended without a model."""
    lost = study.results["constrained"].query("status == 'lost'")
    return sum(system_of(spec) in SYSTEMS_OF.get(claim, ()) for spec in lost["spec"])


def claim_note(settings: Settings, claim: str) -> str:
    """What the reader of the verdict has to know of how its systems were trained."""
    started = [s for s in SYSTEMS_OF.get(claim, ()) if s in settings.grid.get("started", ())]
    if not started:
        return ""
    has = "it has" if len(started) == 1 else "they have"
    return (
        f"{' and '.join(started)} went on from a model trained on the task alone; in all {has} as "
        "many steps as the Baseline."
    )


def _number(item: tuple[str, Any]) -> int:
    return int(item[0].removeprefix("ER-C"))


def plausibility_claims(study: Study, measure: str) -> dict[str, Parts]:
    """The claims that Table 3 (and 4) decide, by AUC or by another measure of Table 9."""
    home = study.annotated[0]

    def on(system: str, technique: str, where: str = "SST-Dev") -> Measured | None:
        test = home if where == "SST-Dev" else study.set_for(where)
        return auc_differences(study, system, test, technique, measure=measure)

    return {
        "ER-C4": {where: on("ER+Att", "ATT", where) for where in ("SST-Dev", "Movies", YELP_50)},
        "ER-C5": {"ATTR": on("ER+AttR", "ATTR"), "IXG": on("ER+IxG", "IXG")},
        "ER-C6": {x: on("ER+Att", x) for x in TECHNIQUES if x != "ATT"},
        "ER-C12": {x: on("ER-C+AttR", x) for x in TECHNIQUES if x != "ATTR"},
        "ER-C13": {x: on("ER-C+IxG", x) for x in TECHNIQUES if x != "IXG"},
        "ER-C14": {x: on("ER-C+Att", x) for x in ("DX", "DX-C", "ATTR", "IXG")},
    }


def _f1_values(study: Study, test: Any) -> Measured | None:
    places = study.deciding("Baseline", "ER+Att")
    if len(places) < 2:
        return None
    baseline, treated = (
        np.array([study.f1(system, p, test) for p in places]) for system in ("Baseline", "ER+Att")
    )
    return {"baseline": baseline, "treated": treated}


def _top_layer(study: Study) -> int:
    home, place = study.annotated[0], study.places("Baseline")[0]
    return len(study.plausibility("Baseline", place, home, "ATT")["layer_auc"].iloc[0]) - 1


def _layer(study: Study, system: str, layer: int) -> Measured | None:
    return layer_differences(study, system, study.annotated[0], "ATT", layer)


def _lower_layers(study: Study, system: str) -> Measured | None:
    return layer_shift(study, system, study.annotated[0], "ATT", range(_top_layer(study)))


def _tau_differences(study: Study, test: Any, technique: str) -> Measured | None:
    """τ between a Baseline and ER+Att minus τ between two Baselines, per seed of ER+Att."""
    places = measured_places(study, test, technique, "Baseline", "ER+Att")
    if len(places) < 2:
        return None
    rows = []
    for place, other in zip(places, [*places[1:], places[0]], strict=True):
        reference = study.attributions("Baseline", other, test, technique)
        taus = [
            kendall(reference, study.attributions(system, place, test, technique))
            for system in ("Baseline", "ER+Att")
        ]
        rows.append(taus[1] - taus[0])
    return {"differences": [float(np.nanmean(r)) for r in rows], "per_text": rows}


def _losses(study: Study, system: str) -> dict[int, float]:
    runs = study.runs[study.runs["system"] == system]
    return dict(zip(runs["place"], runs["dev_explanation"], strict=True))


def _loss_differences(study: Study, system: str, over: str) -> Measured | None:
    a, b = _losses(study, over), _losses(study, system)
    places = study.deciding(over, system)
    return {"differences": [b[p] - a[p] for p in places]} if places else None


def _above_bound(study: Study, guide: str) -> Measured | None:
    system = system_named("constrained", guide)
    losses, limit = _losses(study, system), 1.1 * study.bounds(guide).dev
    places = study.deciding(system)
    return {"differences": [losses[p] - limit for p in places]} if places else None


def _sweep_parts(study: Study) -> dict[str, Measured | None]:
    """ρ of λ with both losses for each guide, and how much more the last λ costs than under Att."""
    parts: dict[str, Measured | None] = {}
    by_guide = {g: study.sweep[study.sweep["guide"] == g] for g in GUIDES}
    for guide, runs in by_guide.items():
        for name, column in (("explanation loss", "explanation"), ("cross-entropy", "task")):
            rhos = [
                float(spearmanr(r["weight"], r[column]).statistic)
                for _, r in runs.groupby("seed")
                if r["weight"].nunique() > 2
            ]
            parts[f"{name} {guide}"] = {"differences": rhos} if rhos else None
    last = study.sweep["weight"].max()
    cost = {
        g: r[r["weight"] == last].set_index("seed")["task"].sort_index()
        for g, r in by_guide.items()
    }
    for guide in GLOBAL:
        parts[f"steeper than Att {guide}"] = {"differences": (cost[guide] - cost["ATT"]).to_list()}
    return parts


def _usable_seeds(study: Study, system: str) -> Measured:
    runs = study.results["constrained"]
    tried = runs[[system_of(s) == system for s in runs["spec"]]]
    tried = tried[tried["status"] != "failed"]
    return {"successes": int((tried["status"] == "done").sum()), "trials": len(tried)}


def _correlation(
    study: Study, predictor: str, where: Any, test: Any, systems: Sequence[str] = CLASSIFIERS
) -> Measured | None:
    data = predicted(study, predictor, where, test)
    data = enough_seeds(data[data["system"].isin(systems)])
    if len(data) < 2:
        return None
    return {
        "x": data["x"].to_numpy(),
        "y": data["y"].to_numpy(),
        "system": list(data["system"]),
        "seeds": list(data["place"]),
    }


def _erasure_parts(study: Study) -> dict[str, Measured | None]:
    """Of the Baselines: do both curves rise, and is a decomposition's area the larger one?"""
    parts: dict[str, Measured | None] = {}
    places = study.deciding("Baseline")
    for column, name in ERASURE.items():
        tables = {(x, p): study.erasure(p, x) for x in (*TECHNIQUES, RANDOM) for p in places}
        for technique in TECHNIQUES:
            rises = [_rise(tables[technique, p], column) for p in places]
            parts[f"{name} rises, {technique}"] = _mean_of(rises)
        for best in DECOMPOSITIONS:
            for other in (*GUIDES, RANDOM):
                gains = [
                    (area(tables[best, p], column).to_numpy())
                    - area(tables[other, p], column).to_numpy()
                    for p in places
                ]
                parts[f"{name} of {best} over {other}"] = _mean_of(gains)
    return parts


def _rise(table: Any, column: str) -> np.ndarray:
    wide = table.pivot(index="id", columns="bin", values=column)
    return (wide[wide.columns.max()] - wide[wide.columns.min()]).to_numpy()


def _mean_of(every: list[np.ndarray]) -> Measured | None:
    rows = [r for r in every if not np.isnan(r).all()]  # not all texts are left out
    if not rows:
        return None
    return {"differences": [float(np.nanmean(r)) for r in rows], "per_text": rows}


def _same_conclusions(study: Study) -> dict[str, Measured]:
    """Does another measure move to the same side as AUC in each part of a plausibility claim?

    Of the parts with three seeds; of all where none has as many.
    """
    by_auc = plausibility_claims(study, "auc")
    parts: dict[str, Measured] = {}
    for name, measure in (("average precision", "average_precision"), ("recall@k", "recall_at_k")):
        for claim, again in plausibility_claims(study, measure).items():
            for part, second in again.items():
                first = by_auc[claim][part]
                if first and second:
                    agreeing = _agreeing(*(decide_pair(**m, side=1, margin=0.0)
                                           for m in (first, second)))  # fmt: skip
                    parts[f"{name} {claim} {part}"] = {"decision": agreeing}
    return {n: p for n, p in parts.items() if p["decision"].n >= MIN_SEEDS} or parts


def _agreeing(by_auc: Decision, again: Decision) -> Decision:
    """Holds where both means have one sign, or neither interval excludes 0; else fails."""
    signs = {np.sign(d.estimate) for d in (by_auc, again)}
    unmoved = all(d.ci_low <= 0 <= d.ci_high for d in (by_auc, again))
    said = f"by AUC {by_auc.estimate:+.1f}, by this measure {again.estimate:+.1f}"
    verdict: Verdict = "holds" if len(signs) == 1 or unmoved else "fails"
    return replace(again, verdict=verdict, reason=said.replace("-", "−"))


def _pair_changes(study: Study, system: str) -> Measured | None:
    """How far a system's agreement between techniques is from its Baseline's, beyond how far two
    Baselines are from each other: mean over pairs of techniques, per seed."""
    test, rows = study.annotated[0], []
    baselines = measured_places(study, test, "DX", "Baseline")
    for place in measured_places(study, test, "DX", "Baseline", system):
        others = [p for p in baselines if p != place]
        if not others:
            return None
        other = next((p for p in others if p > place), others[0])
        compared = ((system, place), ("Baseline", other), ("Baseline", place))
        rows.append(np.concatenate([_pair_taus(study, *run) for run in compared], axis=1))
    if not rows:
        return None
    return {
        "differences": [moved_beyond(r) for r in rows],
        "per_text": rows,
        "statistic": moved_beyond,
    }


def moved_beyond(taus: np.ndarray) -> float:
    """From [text, (system, another Baseline, the Baseline) x pairs]: mean over pairs of the
    system's distance from the Baseline in mean τ, less the other Baseline's."""
    system, other, reference = np.split(np.nanmean(taus, axis=0), 3)
    return float(np.abs(system - reference).mean() - np.abs(other - reference).mean())


def _pair_taus(study: Study, system: str, place: int) -> np.ndarray:
    """[text, pair] τ of every pair of techniques of one run, on the texts that all of them have."""
    test = study.annotated[0]
    scores = {x: study.attributions(system, place, test, x) for x in TECHNIQUES}
    texts = min(len(s) for s in scores.values())
    pairs = combinations(TECHNIQUES, 2)
    return np.stack([kendall(scores[a][:texts], scores[b][:texts]) for a, b in pairs], axis=1)
