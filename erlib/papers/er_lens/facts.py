"""Which numbers do the notebook's sentences tell?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

import numpy as np

from erlib.data import report_or_none
from erlib.papers.er_lens import kendall
from erlib.papers.er_lens.audit import table as audit_table
from erlib.papers.er_lens.effects import Change, auc_changes, changes, f1_changes, outside
from erlib.papers.er_lens.evaluations import annotated, shown, test_sets
from erlib.papers.er_lens.figures import sweep
from erlib.papers.er_lens.reads import MEASURES, erasure_curves
from erlib.papers.er_lens.recipe import bounds_table
from erlib.papers.er_lens.scatter import PREDICTORS, correlation, predicted
from erlib.papers.er_lens.systems import CLASSIFIERS, GUIDES, TECHNIQUES
from erlib.papers.means import Facts
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place

KINDS = {
    "human": "marked by annotators",
    "phrase labels": "derived from the human sentiment labels of phrases",
    "lexicon": (
        "words of a lexicon whose human-rated valence agrees with the label, after negation; "
        "nobody marked them in these texts"
    ),
}
UNGUIDED = tuple(x for x in TECHNIQUES if x != "ATT")


def rationales(study: Study) -> Facts:
    """Where the rationales of each corpus come from."""
    corpora = dict.fromkeys(t.corpus for t in test_sets(study.settings))
    reports = (report_or_none(name, study.settings.source_of(name)) for name in corpora)
    kinds = {report.name: report.rationale for report in reports if report}
    said = [
        f"those of {', '.join(n for n, k in kinds.items() if k == kind)} are {KINDS[kind]}"
        for kind in dict.fromkeys(filter(None, kinds.values()))
    ]
    return {"kinds": "; ".join(said)}


def idle_bounds(study: Study) -> Facts:
    """The techniques whose bound an unguided model meets: there it asks for next to nothing."""
    table = bounds_table(study)
    met = table.loc[table["dev loss at λ = 0"] < table["to be met"], "technique"]
    return {"idle": ", ".join(met) or "no technique"}


def accuracy(study: Study) -> Facts:
    """On dev, of the classifiers."""
    runs = study.runs[study.runs["spec"].isin([cell.run for cell in study.finished("table2")])]
    if runs.empty:
        return {}
    found = 100 * runs["dev_accuracy"]
    return {"low": found.min(), "high": found.max(), "majority": 100 * runs["dev_majority"].iloc[0]}


def f1(study: Study) -> Facts:
    """By how much guidance changes F1 out of domain, the mean over sets, seeds and guides."""
    systems = {"joint_local": ["ER+Att"], "joint_global": ["ER+AttR", "ER+IxG"],
               "constrained_global": ["ER-C+AttR", "ER-C+IxG"]}  # fmt: skip
    return {
        kind: _mean(f1_changes(study, system, *outside(study)) for system in of_kind)
        for kind, of_kind in systems.items()
    }


def _mean(found: Iterable[Change]) -> float:
    """Over what was measured; NaN where nothing was."""
    return float(np.mean([d.mean() for d in found if d is not None] or [np.nan]))


def guidance(study: Study) -> Facts:
    """What happens in domain to attention, which ER+Att guides, and to the other techniques."""

    def moved(system: str, *techniques: str) -> float:
        return _mean(auc_changes(study, system, x) for x in techniques)

    others = [x for x in TECHNIQUES if x != "ATTR"]
    return {"guided": moved("ER+Att", "ATT"), "others": moved("ER+Att", *UNGUIDED),
            "global_others": moved("ER-C+AttR", *others)}  # fmt: skip


def skipped(study: Study) -> Facts:
    """Texts without a rationale word, of those that attention was taken of."""
    parts = []
    for where, test in annotated(study.settings).items():
        specs = [*kendall.attributed(study, "Baseline", f"{where}/ATT").values()]
        if specs:
            auc = study.texts(specs[0])["auc"]
            parts.append(f"{test.name} {int(auc.isna().sum())} of {len(auc)}")
    return {"texts": "; ".join(parts)} if parts else {}


def texts(study: Study, *sets: str) -> Facts:
    """How many texts with a rationale each technique was taken of."""
    counts = study.numbers(study.of("table9")).groupby("column")["texts"].max()
    said = []
    for where, test in annotated(study.settings).items():
        alike: dict[int, list[str]] = {}
        for x in TECHNIQUES:
            if where in sets and f"{where}/{x}" in counts:
                alike.setdefault(counts[f"{where}/{x}"], []).append(x)
        each = [f"{', '.join(names)} of {n}" for n, names in alike.items()]
        said += [f"{test.name}: {'; '.join(each)}"] * bool(each)
    return {"texts": ". ".join(said)}


def layers(study: Study) -> Facts:
    """By how much ER+Att moves attention's AUC at the top layer and at the depths of Figure 4."""
    depths = dict.fromkeys(c.column for c in study.of("figure-4"))
    below = [changes(study, "ER+Att", [Place("figure-4", "", d, "layer_auc")]) for d in depths]
    return {"top": _mean([auc_changes(study, "ER+Att", "ATT")]), "below": _mean(below)}


def measures(study: Study) -> Facts:
    """In how many effects the other measures move to AUC's side."""
    same: list[bool] = []
    for system, technique in product(CLASSIFIERS[1:], TECHNIQUES):
        auc = auc_changes(study, system, technique)
        for metric in ("average_precision", "recall_at_k"):
            other = auc_changes(study, system, technique, metric)
            if auc is not None and other is not None:
                same.append(bool(np.sign(auc.mean()) == np.sign(other.mean())))
    return {"same": sum(same), "every": len(same)}


def gap(study: Study) -> Facts:
    """Joint ER's explanation loss as a multiple of what that loss alone reaches."""
    numbers = study.numbers(c for c in study.of("table5") if "expl_loss" in c.read)
    means = numbers.groupby("row")["value"].mean()
    ratio = {g: means.get(f"{g}/Joint", np.nan) / means.get(f"{g}/Lexpl", np.nan) for g in GUIDES}
    return {"ratios": ", ".join(f"{g} {value:.2f}" for g, value in ratio.items())}


def price(study: Study) -> Facts:
    """What the largest λ does to both losses, the mean over seeds."""
    means = sweep(study).groupby(["guide", "weight"])[["task", "explanation"]].mean()
    parts, most = [], 0.0
    for guide in [g for g in GUIDES if g in means.index]:
        of = means.loc[guide]
        most = float(of.index.max())
        task, loss = (of[name].iloc[-1] - of[name].iloc[0] for name in ("task", "explanation"))
        parts.append(f"{guide} {task:+.3f} ({loss:+.3f})")
    return {"most": most, "changes": ", ".join(parts)} if parts else {}


def agreement(study: Study) -> Facts:
    """Mean τ of the techniques that ER+Att does not guide, on the set of Figure 3."""
    where = shown(study.settings)

    def tau(system: str) -> float:
        found = [kendall.across_systems(study, f"{where}/{x}", system) for x in UNGUIDED]
        return float(np.mean([np.nanmean(t) for t in found if t is not None] or [np.nan]))

    return {"baselines": tau("Baseline"), "att": tau("ER+Att"), "rollout": tau("ER-C+AttR")}


def erasure(study: Study) -> Facts:
    """What the curves of Figure 8 are means of, and which techniques lead."""
    curves = erasure_curves(study)
    if curves.empty:
        return {}
    counted = curves.drop_duplicates("seed").set_index("seed")
    total = counted["texts"] + counted["left_out"]
    shares = 100 * counted["left_out"] / total
    areas = study.numbers(study.of("figure-8")).groupby(["metric", "row"])["value"].mean()
    best = {measure: areas[f"area_{measure}"].idxmax() for measure in MEASURES}
    return {
        "texts": int(total.max()),
        "shares": ", ".join(f"{share:.1f} % (seed {seed})" for seed, share in shares.items()),
        "best": ", ".join(f"{measure} {x}" for measure, x in best.items()),
    }


def prediction(study: Study) -> Facts:
    """In how many panels of Figure 14 there are seeds enough for ρ, and where it is not 0."""
    home, *others = test_sets(study.settings)
    found = [correlation(predicted(study, p, home, t)) for p in PREDICTORS for t in others]
    told = [one for one in found if one is not None]
    related = sum(0.0 not in within for _, within in told)
    return {"panels": len(found), "told": len(told), "related": related}


def departures(study: Study) -> Facts:
    """Which departure changes most, in points."""
    rows = audit_table(study).dropna(subset="difference")
    return {} if rows.empty else rows.loc[rows["difference"].abs().idxmax()].to_dict()
