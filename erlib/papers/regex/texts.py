"""Which texts do the models see, and what does a reader call the rows and columns?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data import load_data, truncated_share
from erlib.data.absent import MissingCorpus
from erlib.models import load_classifier
from erlib.papers.holes import as_table, or_hole
from erlib.papers.regex.evaluations import WORDS
from erlib.papers.regex.systems import RATIO, SYMBOLS, run_spec, sets
from erlib.papers.study import Study
from erlib.reports import paper_table
from erlib.training.notes import noted
from erlib.training.rows import rows_of


@or_hole(as_table)
@noted
def table_data(study: Study) -> pd.DataFrame:
    """The six sets as the models see them."""
    settings = study.settings
    classifier = load_classifier(settings.grid["model"]["name"])
    rows = []
    for this in sets(settings).values():
        data = run_spec(settings, "Baseline", this.paper, settings.seeds[0]).data
        tested = settings.grid.get("test_rows", {}).get("core" if this.paper == "SST" else "wide")
        for split, count in (("train", data.train_rows), ("test", tested)):
            try:
                used = rows_of(data, split, count)
            except MissingCorpus:
                continue
            texts = classifier.encode(used, max_length=data.max_length)
            shares = np.bincount([t.label or 0 for t in texts]) / len(texts)
            names = used.features["label"].names
            rows.append(
                {
                    "stands for": this.paper,
                    "set": f"{this.corpus} {split}",
                    "texts": len(texts),
                    "of": len(load_data(this.corpus, split=split, source=data.source)),
                    "classes": ", ".join(f"{n} {100 * s:.0f} %"
                                         for n, s in zip(names, shares, strict=False)),
                    "mean length": np.mean([len(t.input_ids) for t in texts]),
                    "% cut": 100 * truncated_share(texts),
                    "rationale, % of words": RATIO[this.paper],
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def labels(study: Study) -> dict[str, str]:
    """Row, column or metric of the tables → what stands for it in the report."""
    printed = [row for table in study.paper.tables() for row in paper_table("regex", table)["row"]]
    rows = {row: row.replace("->", " → ").replace("|", ", ") for row in printed}
    return {**rows, **WORDS, **SYMBOLS}
