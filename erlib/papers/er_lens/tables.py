"""Which numbers stand in the paper's tables?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from erlib.config import RunSpec
from erlib.data import corpus_report, load_data, truncated_share
from erlib.metrics.stats import t_interval
from erlib.metrics.verdicts import MIN_SEEDS
from erlib.models import load_classifier
from erlib.papers.er_lens.pairs import auc_differences, f1_differences
from erlib.papers.er_lens.sets import YELP_50, TestSet, data_of, outside
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    DECOMPOSITIONS,
    GLOBAL,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    run_spec,
    system_named,
)
from erlib.papers.holes import as_table, or_hole
from erlib.reports.paper_numbers import ABSENT, Beside, beside, paper_table
from erlib.training.notes import noted
from erlib.training.rows import rows_of

MODES = {"Joint": "joint", "Constrained": "constrained"}
SCOPES = {"Local": ("ATT",), "Global": GLOBAL}


def table_1(study: Study) -> pd.DataFrame:
    """What each way of guiding does, as a sign: + or − where the interval excludes 0."""
    home = study.annotated[0]
    printed = paper_table("er_lens", "table1").set_index(["row", "column"])["printed"]
    rows = []
    for mode, kind in MODES.items():
        for scope, guides in SCOPES.items():
            systems = {g: system_named(kind, g) for g in guides}
            effects = {
                "F1": [f1_differences(study, s, outside(study.settings)) for s in systems.values()],
                "Guided": [auc_differences(study, s, home, g) for g, s in systems.items()],
                "Non-Guided": [
                    auc_differences(study, s, home, x)
                    for g, s in systems.items()
                    for x in TECHNIQUES
                    if x != g
                ],
            }
            row: dict[str, str] = {"": f"{mode}/{scope}"}
            for name, measured in effects.items():
                row[_HEADINGS[name]] = _effect([m["differences"] for m in measured if m])
                sign = printed[f"{mode}/{scope}", name].replace("-", "−")
                row[f"{_HEADINGS[name]}, paper"] = sign or "unclear"
            rows.append(row)
    return pd.DataFrame(rows).set_index("")


_HEADINGS = {"F1": "OOD F1", "Guided": "AUC, guided", "Non-Guided": "AUC, not guided"}


def _effect(measured: list[pd.Series]) -> str:
    """The sign of the mean over systems and techniques, with the mean and its interval over seeds.

    `measured`: differences by seed. Where some have three seeds and others fewer, only those with
    three make the sign, by the seeds that all of them have.
    """
    if not measured:
        return "–"
    enough = [d for d in measured if len(d) >= MIN_SEEDS] or measured
    means = pd.concat(enough, axis=1).dropna().mean(axis=1)
    if means.empty:
        return "–"
    sign = "?"
    if len(means) >= MIN_SEEDS:
        sign = "0" if 0.0 in t_interval(means) else ("+" if means.mean() > 0 else "−")
    some = f"\n{len(enough)} of {len(measured)} effects" if len(enough) < len(measured) else ""
    return f"{sign}\n{_with_interval(means)}{some}"


def _with_interval(values: ArrayLike) -> str:
    """The mean over seeds and its 95 % t interval; of fewer than three only how many there are."""
    x = np.asarray(values)
    found = t_interval(x)
    spread = f" ({found.low:+.1f} to {found.high:+.1f})" if x.size >= MIN_SEEDS else f", n={x.size}"
    return f"{x.mean():+.1f}{spread}".replace("-", "−")


def effects(study: Study) -> pd.DataFrame:
    """What each system changes over the Baseline: every technique's AUC in domain, and F1."""
    home = study.annotated[0]
    rows = []
    for system in CLASSIFIERS:
        if system == "Baseline" or not study.places(system):
            continue
        changes = {x: auc_differences(study, system, home, x) for x in TECHNIQUES}
        for test in study.sets:
            if test.corpus == home.corpus:
                changes[f"F1, {test.name}"] = f1_differences(study, system, [test])
        changes["F1, out of domain"] = f1_differences(study, system, outside(study.settings))
        found = {n: _with_interval(m["differences"]) if m else "–" for n, m in changes.items()}
        rows.append({"": system, **found})
    return pd.DataFrame(rows).set_index("")


def table_2(study: Study) -> Beside:
    """F1-macro of every system on every set."""
    return _f1(study, "table2", [t for t in study.sets if t.paper != YELP_50])


def table_7(study: Study) -> Beside:
    """F1-macro on the short annotated reviews."""
    test = study.set_for(YELP_50)
    return _f1(study, "table7", [] if test is None else [replace(test, paper=YELP_50)])


def _f1(study: Study, table: str, sets: list[TestSet]) -> Beside:
    scores = study.f1_scores
    wanted = {(t.corpus, t.split): t for t in sets}
    kept = scores[[(t.corpus, t.split) in wanted for t in scores["set"]]]
    ours = pd.DataFrame(
        {
            "row": kept["system"],
            "column": [t.name for t in kept["set"]],
            "value": kept["value"],
        }
    )
    names = {t.name: t.paper for t in sets if t.paper}
    return beside(ours, "er_lens", table, rows=CLASSIFIERS, stands_for=names)


def table_3(study: Study) -> Beside:
    """In-domain plausibility: AUC of each technique on the dev texts of the training corpus."""
    return _plausibility(study, "table3", study.annotated[:1], ["auc_x100"])


def table_4(study: Study) -> Beside:
    """Out-of-domain plausibility on the annotated sets, long documents too."""
    return _plausibility(study, "table4", study.annotated[1:], ["auc_x100"])


def table_9(study: Study) -> Beside:
    """AUC, average precision and recall@k of every technique on every annotated set."""
    return _plausibility(
        study, "table9", study.annotated, ["auc_x100", "average_precision", "recall_at_k"]
    )


def _plausibility(study: Study, table: str, sets: list[TestSet], measures: list[str]) -> Beside:
    scores = study.plausibility_scores
    kept = scores[scores["set"].isin(sets) & scores["measure"].isin(measures)]
    ours = pd.DataFrame(
        {
            "row": kept["system"],
            "column": [
                f"{t.name}/{x}" for t, x in zip(kept["set"], kept["technique"], strict=True)
            ],
            "metric": kept["measure"],
            "value": kept["value"],
            "remark": [
                _remark(study, *row)
                for row in zip(kept["set"], kept["technique"], kept["texts"], strict=True)
            ],
        }
    )
    printed = set(paper_table("er_lens", table)["column"])
    names = {
        f"{t.name}/{x}": f"{t.plausibility}/{x}"
        for t in sets
        for x in TECHNIQUES
        if f"{t.plausibility}/{x}" in printed
    }
    found = beside(ours, "er_lens", table, rows=list(SYSTEMS), stands_for=names, digits=1)
    new = [f"{t.name}/{x}" for t in sets if t.plausibility == "Movies" for x in DECOMPOSITIONS]
    absent = (found.long["note"] == ABSENT) & ~found.long["column"].isin(new)
    long = found.long.assign(note=found.long["note"].mask(absent, _UNPRINTED.get(table, ABSENT)))
    return replace(found, long=long)


# Cells that the paper has, but not where our copy of its numbers has this table's.
_UNPRINTED = {
    "table4": "not in the paper's Table 4",
    "table9": "in the paper's Table 9, the body of which its text lacks",
}


def _remark(study: Study, test: TestSet, technique: str, texts: int) -> str:
    """Long documents decomposed: what the paper could not measure, on how many and how long."""
    if test.plausibility != "Movies" or technique not in DECOMPOSITIONS:
        return ""
    return f"new: {texts} texts of ≤ {study.settings.grid['long']['max_length']} tokens"


def table_5(study: Study) -> Beside:
    """The explanation loss on dev and the AUC of the guided technique, by objective."""
    home, rows = study.annotated[0], []
    objectives = {"Lexpl": "explanation", "Joint": "joint", "Constrained": "constrained"}
    for guide in GUIDES:
        for label, mode in objectives.items():
            system = system_named(mode, guide)
            runs = study.runs[study.runs["system"] == system]
            for place, loss in zip(runs["place"], runs["dev_explanation"], strict=True):
                auc = study.plausibility(system, place, home, guide)["auc"]
                cell = {"row": f"{guide}/{label}", "column": home.name}
                rows += [
                    {**cell, "metric": "expl_loss", "value": loss},
                    {**cell, "metric": "auc_x100", "value": 100 * auc.mean()},
                ]
    names, digits = {home.name: "SST-Dev"}, {"expl_loss": 3, "auc_x100": 1}
    return beside(pd.DataFrame(rows), "er_lens", "table5", stands_for=names, digits=digits)


@or_hole(as_table)
@noted
def table_6(study: Study) -> pd.DataFrame:
    """The data as the models see it: sizes used, length in sub-words, what was cut."""
    settings = study.settings
    classifier = load_classifier(settings.grid["model"])
    sets = [replace(study.sets[0], split="train"), *study.sets]
    length, rows = settings.grid["max_length"], []
    for test in sets:
        count = settings.grid.get(f"{test.split}_rows")
        texts = classifier.encode(
            rows_of(data_of(settings, test), test.split, count), max_length=length
        )
        lengths = [len(t.input_ids) for t in texts]
        marked = [np.mean(t.rationale) for t in texts if t.rationale is not None]
        rows.append(
            {
                "set": f"{test.corpus} {test.split}",
                "texts": len(texts),
                "of": len(load_data(test.corpus, split=test.split, source=settings.source)),
                "paper's texts": _printed(test, test.split),
                "% positive": 100 * np.mean([t.label for t in texts]),
                "paper's %": _printed(test, "pct_positive"),
                "mean length": np.mean(lengths),
                "paper's length": _printed(test, "avg_len"),
                "longest": max(lengths),
                "paper's longest": _printed(test, "max_len"),
                "% cut": 100 * truncated_share(texts),
                "rationales": corpus_report(test.corpus, settings.source).rationale or "none",
                "% marked": 100 * np.mean(marked) if marked else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _printed(test: TestSet, column: str) -> str:
    """The cell of the paper's Table 6 for the corpus that this one is or stands in for."""
    cells = paper_table("er_lens", "table6").set_index(["row", "column"])["printed"]
    return cells.get(("SST" if test.in_domain else test.paper, column)) or "–"


def table_8(study: Study) -> pd.DataFrame:
    """Hyper-parameters of every system, ours and the paper's."""
    cells = paper_table("er_lens", "table8").set_index(["row", "column"])["printed"]
    words = {"joint": "Joint", "constrained": "Constrained", "baseline": "Baseline"}
    guides = {"ATT": " Attention", "ATTR": " Rollout", "IXG": " IxG", "": ""}
    rows = []
    for name in CLASSIFIERS:
        this = SYSTEMS[name]
        bounds = study.bounds(this.guide) if this.mode == "constrained" else None
        spec = run_spec(study.settings, name, 0, bounds)
        ours = {
            "lr": _rate(spec.optimiser.lr),
            "epochs": f"{_epochs_before(spec)}{spec.optimiser.epochs}",
            "lambda": f"{spec.objective[1].weight:g}" if this.mode == "joint" else "",
            "constraint_lr": f"{dict(spec.update.options)['lr']:g}" if bounds else "",
            "b_train": f"{bounds.train:g}" if bounds else "",
            "b_val": f"{bounds.dev:g}" if bounds else "",
        }
        key = words[this.mode] + guides[this.guide]
        rows.append(
            {"": name}
            | {
                column: f"{value}\npaper {cells.get((key, column), '–')}" if value else ""
                for column, value in ours.items()
            }
            | {"batch": f"{spec.optimiser.batch_size}\npaper 32"}
        )
    headings = {"lambda": "λ", "constraint_lr": "lr of the multiplier"}
    return pd.DataFrame(rows).set_index("").rename(columns=headings)


def _epochs_before(spec: RunSpec) -> str:
    """For a run that began from the Baseline's weights, the Baseline's epochs and a plus sign."""
    return "" if spec.start is None else f"{spec.start.optimiser.epochs} + "


def _rate(lr: float) -> str:
    """A learning rate as the paper prints it: 3e-5."""
    digits, exponent = f"{lr:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
