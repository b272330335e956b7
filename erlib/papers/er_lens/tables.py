"""Which numbers stand in the paper's tables?

Every function starts from the results of the grid (`carry_out`) and returns what `artefact` shows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.config import DataSpec
from erlib.data import corpus_report, load_data, truncated_share
from erlib.models import load_classifier
from erlib.papers.er_lens.systems import (
    ANNOTATED,
    TECHNIQUES,
    TestSet,
    annotated,
    system_of,
    test_sets,
)
from erlib.parameters import Settings
from erlib.reports.paper_numbers import Beside, beside, paper_table
from erlib.training.identity import rows_of
from erlib.training.stages import Results


def scores(settings: Settings, results: Results, kind: str, value: str) -> pd.DataFrame:
    """One row per run and set: row (system), column (set), method, seed, and value x 100."""
    table = results["measurements"].query("kind == @kind")
    names = {(t.corpus, t.split): t.name for t in test_sets(settings)}
    return pd.DataFrame(
        {
            "row": [system_of(s.run) for s in table["spec"]],
            "column": [names[key] for key in zip(table["corpus"], table["split"], strict=True)],
            "method": table["method"].to_numpy(),
            "seed": table["seed"].to_numpy(),
            "value": 100 * table[value].to_numpy(),
        }
    )


def table_2(settings: Settings, results: Results) -> Beside:
    """F1-macro of every system on every set."""
    sets = [t for t in test_sets(settings) if t.paper != "Yelp-50"]  # which is Table 7
    ours = scores(settings, results, "predictions", "f1_macro")
    ours = ours[ours["column"].isin([t.name for t in sets])]
    return beside(
        ours, "er_lens", "table2", rows=settings.grid["systems"], stands_for=_stands_for(sets)
    )


def table_3(settings: Settings, results: Results) -> Beside:
    """In-domain plausibility: AUC of each technique on the dev texts of the training corpus."""
    return _plausibility(
        settings, results, "table3", [t for t in annotated(settings) if t.in_domain]
    )


def table_4(settings: Settings, results: Results) -> Beside:
    """Out-of-domain plausibility on the annotated sets."""
    return _plausibility(
        settings, results, "table4", [t for t in annotated(settings) if not t.in_domain]
    )


def _plausibility(settings: Settings, results: Results, table: str, sets: list[TestSet]) -> Beside:
    ours = scores(settings, results, "plausibility", "auc")
    ours = ours[ours["column"].isin([t.name for t in sets])]
    short = {method: technique for technique, method in TECHNIQUES.items()}
    ours["column"] = ours["column"] + "/" + ours["method"].map(short)
    names = {
        f"{t.name}/{x}": f"{t.paper}/{x}" for t in sets if t.paper in ANNOTATED for x in TECHNIQUES
    }
    return beside(ours, "er_lens", table, rows=settings.grid["systems"], stands_for=names, digits=1)


def _stands_for(sets: list[TestSet]) -> dict[str, str]:
    return {t.name: t.paper for t in sets if t.paper}


def table_6(settings: Settings) -> pd.DataFrame:
    """The data as the models see it: sizes used, length in sub-words, what was cut."""
    classifier = load_classifier(settings.grid["model"])
    home = test_sets(settings)[0]
    sets = [replace(home, split="train"), *test_sets(settings)]
    length, rows = settings.grid["max_length"], []
    for test in sets:
        count = settings.grid.get(f"{test.split}_rows")
        data = rows_of(DataSpec(test.corpus, settings.source, length), test.split, count)
        texts = classifier.encode(data, max_length=length)
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
