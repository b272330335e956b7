"""How were the systems trained, and on what? (Tables 6 and 8, and the bounds)"""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.data import corpus_report, load_data, truncated_share
from erlib.data.absent import MissingCorpus
from erlib.models import load_classifier
from erlib.papers.er_lens.sets import TestSet, data_of, test_sets
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    Bounds,
    bounds_of,
    guide_of,
    run_spec,
    system_named,
)
from erlib.papers.holes import as_table, or_hole
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place
from erlib.reports.paper_numbers import paper_table
from erlib.training.notes import noted
from erlib.training.rows import rows_of


@or_hole(as_table)
@noted
def texts(study: Study) -> pd.DataFrame:
    """Table 6: the texts as the models see them, and the paper's set that they stand for."""
    settings, printed = study.settings, paper_table("er_lens", "table6")
    cells = printed.set_index(["row", "column"])["printed"]
    classifier, sets = load_classifier(settings.grid["model"]), test_sets(settings)
    rows = []
    for test in [replace(sets[0], split="train"), *sets]:
        source = settings.source_of(test.corpus)
        try:
            found = rows_of(
                data_of(settings, test), test.split, settings.grid.get(f"{test.split}_rows")
            )
        except MissingCorpus:
            continue
        encoded = classifier.encode(found, max_length=settings.grid["max_length"])
        lengths = [len(t.input_ids) for t in encoded]
        marked = [np.mean(t.rationale) for t in encoded if t.rationale is not None]
        theirs = {
            name: cells.get(("SST" if test.in_domain else test.paper, column)) or "–"
            for name, column in (
                ("texts", test.split), ("%", "pct_positive"), ("length", "avg_len"),
                ("longest", "max_len"),
            )
        }  # fmt: skip
        rows.append(
            {
                "set": f"{test.corpus} {test.split}",
                "in the place of": _places(test),
                "texts": len(encoded),
                "of": len(load_data(test.corpus, split=test.split, source=source)),
                "paper's texts": theirs["texts"],
                "% positive": 100 * np.mean([t.label for t in encoded]),
                "paper's %": theirs["%"],
                "mean length": np.mean(lengths),
                "paper's length": theirs["length"],
                "longest": max(lengths),
                "paper's longest": theirs["longest"],
                "% cut": 100 * truncated_share(encoded),
                "rationales": corpus_report(test.corpus, source).rationale or "none",
                "% marked": 100 * np.mean(marked) if marked else np.nan,
            }
        )
    return pd.DataFrame(rows)


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
    runs = study.results["explanation_only"]
    rows = []
    for guide in GUIDES:
        these = runs[[guide_of(spec) == guide for spec in runs["spec"]]]
        found = bounds(study, guide)
        unguided = study.read(Place("figure-5", f"{system_named('joint', guide)} at λ=0", "",
                                    "expl_loss")) or {}  # fmt: skip
        rows.append(
            {
                "technique": guide,
                "runs": len(these),
                "lowest batch loss": these["lowest_train_explanation_min"].mean(),
                "lowest dev loss": these["lowest_dev_explanation"].mean(),
                "b_train": found.train,
                "b_val": found.dev,
                "to be met": 1.1 * found.dev,
                "dev loss at λ = 0": np.mean([r.value for r in unguided.values()] or [np.nan]),
            }
        )
    return pd.DataFrame(rows)


def hyper_parameters(study: Study) -> pd.DataFrame:
    """Table 8: those of every system, ours and the paper's."""
    cells = paper_table("er_lens", "table8").set_index(["row", "column"])["printed"]
    words = {"joint": "Joint", "constrained": "Constrained", "baseline": "Baseline"}
    guides = {"ATT": " Attention", "ATTR": " Rollout", "IXG": " IxG", "": ""}
    rows = []
    for name in CLASSIFIERS:
        this = SYSTEMS[name]
        found = bounds(study, this.guide) if this.mode == "constrained" else None
        known = found if found and isfinite(found.dev) else Bounds(0.0, 0.0)
        spec = run_spec(study.settings, name, 0, known)
        ours = {
            "lr": _rate(spec.optimiser.lr),
            "epochs": f"{_epochs_before(spec)}{spec.optimiser.epochs}",
            "lambda": f"{spec.objective[1].weight:g}" if this.mode == "joint" else "",
            "constraint_lr": f"{dict(spec.update.options)['lr']:g}" if found else "",
            "b_train": f"{found.train:g}".replace("nan", "–") if found else "",
            "b_val": f"{found.dev:g}".replace("nan", "–") if found else "",
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
    """For a run that goes on from another, that one's epochs and a plus sign."""
    return "" if spec.start is None else f"{spec.start.optimiser.epochs} + "


def _rate(lr: float) -> str:
    """A learning rate as the paper prints it: 3e-5."""
    digits, exponent = f"{lr:e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"
