"""How were the systems trained, and on what? (Tables 6 and 8, and the bounds)"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import isfinite

import numpy as np
import pandas as pd

from erlib.data import corpus_report, load_data, truncated_share
from erlib.data.absent import MissingCorpus
from erlib.models import load_classifier
from erlib.papers.er_lens.evaluations import TestSet, data_of, rows_used, test_sets
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    Bounds,
    bounds_of,
    guided_by,
    run_spec,
    system_named,
)
from erlib.papers.holes import as_table, or_hole
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place
from erlib.reports.paper_numbers import paper_table
from erlib.training.notes import noted
from erlib.training.rows import rows_of

GUIDED = {"ATT": "Attention", "ATTR": "Rollout", "IXG": "IxG", "": ""}  # Table 8's names
COLUMNS = {  # Table 8's → ours
    "lr": "lr", "epochs": "epochs", "lambda": "λ", "constraint_lr": "lr of the multiplier",
    "b_train": "b_train", "b_val": "b_val", "batch": "batch",
}  # fmt: skip


@or_hole(as_table)
@noted
def texts(study: Study) -> pd.DataFrame:
    """Table 6: the texts as the models see them, and the paper's set that they stand for."""
    settings, printed = study.settings, paper_table("er_lens", "table6")
    cells = printed.set_index(["row", "column"])["printed"]
    classifier, sets = load_classifier(settings.grid["model"]), test_sets(settings)
    rows = []
    for test in [replace(sets[0], split="train"), *sets]:
        source, data = settings.source_of(test.corpus), data_of(settings, test)
        try:
            found = rows_of(data, test.split, rows_used(settings, test))
        except MissingCorpus:
            continue
        encoded = classifier.encode(found, max_length=data.max_length)
        lengths = [len(t.input_ids) for t in encoded]
        marked = [np.mean(t.rationale) for t in encoded if t.rationale is not None]
        theirs = partial(_printed, cells, "SST" if test.in_domain else test.paper)
        rows.append(
            {
                "set": f"{test.corpus} {test.split}",
                "in the place of": _places(test),
                "texts": len(encoded),
                "of": len(load_data(test.corpus, split=test.split, source=source)),
                "paper's texts": theirs(test.split),
                "% positive": 100 * np.mean([t.label for t in encoded]),
                "paper's %": theirs("pct_positive"),
                "mean length": np.mean(lengths),
                "paper's length": theirs("avg_len"),
                "longest": max(lengths),
                "paper's longest": theirs("max_len"),
                "% cut": 100 * truncated_share(encoded),
                "rationales": corpus_report(test.corpus, source).rationale or "none",
                "% marked": 100 * np.mean(marked) if marked else np.nan,
            }
        )
    return pd.DataFrame(rows)


def _printed(cells: pd.Series, row: str | None, column: str) -> str:
    return cells.get((row, column)) or "–"


def _places(test: TestSet) -> str:
    """The paper's sets that a set stands for: one for its F1, and perhaps another for its AUC."""
    if test.in_domain:
        return f"SST {test.split}"
    also = f"{test.plausibility} (AUC)" if test.plausibility not in (None, test.paper) else ""
    return ", ".join(filter(None, (test.paper, also))) or "–"


def bounds(study: Study, guide: str) -> Bounds:
    """The bounds that the constrained runs of a technique were trained with."""
    return bounds_of(study.results["explanation_only"], guide)


def bounds_table(study: Study) -> pd.DataFrame:
    """The bounds, the losses that they were made from, and what an unguided model has already."""
    rows = []
    for guide in GUIDES:
        runs, found = guided_by(study.results["explanation_only"], guide), bounds(study, guide)
        unguided = f"{system_named('joint', guide)} at λ=0"
        losses = study.read(Place("figure-5", unguided, "", "expl_loss")) or {}
        rows.append(
            {
                "technique": guide,
                "runs": len(runs),
                "lowest batch loss": runs["lowest_train_explanation_min"].mean(),
                "lowest dev loss": runs["lowest_dev_explanation"].mean(),
                "b_train": found.train,
                "b_val": found.dev,
                "to be met": 1.1 * found.dev,
                "dev loss at λ = 0": np.mean([loss.value for loss in losses.values()] or [np.nan]),
            }
        )
    return pd.DataFrame(rows)


def hyper_parameters(study: Study) -> pd.DataFrame:
    """Table 8: those of every system, ours and the paper's."""
    printed = paper_table("er_lens", "table8").set_index(["row", "column"])["printed"]
    rows = {}
    for name in CLASSIFIERS:
        this, unknown = SYSTEMS[name], Bounds(0.0, 0.0)
        found = bounds(study, this.guide) if this.mode == "constrained" else unknown
        spec = run_spec(study.settings, name, 0, found if isfinite(found.dev) else unknown)
        before = f"{spec.start.optimiser.epochs} + " if spec.start else ""
        ours = {"lr": _rate(spec.optimiser.lr), "epochs": f"{before}{spec.optimiser.epochs}"}
        if this.mode == "joint":
            ours["lambda"] = f"{spec.objective[1].weight:g}"
        if this.mode == "constrained":
            ours["constraint_lr"] = f"{dict(spec.update.options)['lr']:g}"
            ours["b_train"], ours["b_val"] = (f"{b:g}".replace("nan", "–") for b in found)
        row = f"{this.mode.capitalize()} {GUIDED[this.guide]}".strip()
        beside = {
            column: f"{ours[column]}\npaper {_printed(printed, row, column)}" for column in ours
        }
        rows[name] = {**beside, "batch": f"{spec.optimiser.batch_size}\npaper 32"}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(COLUMNS)).fillna("")
    return table.rename(columns=COLUMNS).rename_axis("")


def _rate(lr: float) -> str:
    """A learning rate as the paper prints it: 3e-5."""
    digits, exponent = f"{lr:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
