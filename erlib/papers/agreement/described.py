"""What are the texts, which λ were tried, and how large are the groups? For reading."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from itertools import product

import pandas as pd

from erlib.config import DataSpec
from erlib.metrics.cartography import GROUPS
from erlib.papers.agreement.cells import ATTRIBUTES, of_model
from erlib.papers.agreement.reads import STATISTICS
from erlib.papers.agreement.search import accepted, base_score, chosen_weight, searched, tried
from erlib.papers.agreement.systems import MODELS, SETS, count_of, data_spec, tasks
from erlib.papers.report import remarked
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.reports.paper_numbers import Beside, beside, paper_table
from erlib.training.rows import size_of

ROWS = {  # a row of the tables → what a reader calls it
    "|".join(names): ", ".join(names)
    for axes in (
        (MODELS, SETS),
        (SETS, GROUPS),
        (STATISTICS, ATTRIBUTES),
        (STATISTICS, SETS, ATTRIBUTES),
    )
    for names in product(*axes)
}
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # ours → the paper's


def stands_for(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set, where they are not the same."""
    return {t.corpus: t.paper for t in tasks(settings) if t.corpus != t.paper.lower()}


def table_10(settings: Settings) -> pd.DataFrame:
    """Texts of each split: as used, as there are, and the paper's."""
    printed = paper_table("agreement", "table10").set_index(["row", "column"])["mean"]
    rows = []
    for task in tasks(settings):
        row, total = {"set": task.paper, "corpus": task.corpus}, 0
        for split, theirs in SPLITS.items():
            there = texts_of(data_spec(settings, MODELS[0], task), split)
            asked = (
                settings.grid.get("dev_rows")
                if split == "dev"
                else count_of(settings, model, task, f"{split}_rows")
                for model in MODELS
            )
            used = dict.fromkeys(f"{min(n or there, there):,}" for n in asked)
            row[theirs] = (
                f"{' / '.join(used)}\nof {there:,}\npaper {int(printed[task.paper, theirs]):,}"
            )
            total += there
        row["total"] = f"{total:,}\npaper {int(printed[task.paper, 'total']):,}"
        rows.append(row)
    return pd.DataFrame(rows)


@lru_cache(maxsize=64)
def texts_of(data: DataSpec, split: str) -> int:
    """How many texts of a split there are, whatever is asked for."""
    return size_of(replace(data, train_rows=None, dev_rows=None), split, None)


def search_table(study: Study) -> pd.DataFrame:
    """Where λ was searched: validation F1 of Base and at each λ tried, and the λ chosen."""
    settings, results = study.settings, study.results
    rows = []
    for system in searched(settings):
        scores = [f"λ {weight:g}: {f1:.2f}" for weight, f1 in tried(settings, results, system)]
        if accepted(settings, results, system) is None:
            scores.append("none close enough, the weakest used")
        rows.append(
            {
                "searched on": f"{system.model} {system.task.paper}",
                "variant": system.variant,
                "F1 of Base": base_score(settings, results, system),
                "F1 tried": "\n".join(scores),
                "chosen": f"{chosen_weight(settings, results, system):g}",
            }
        )
    return pd.DataFrame(rows)


def table_4(study: Study, model: str) -> Beside:
    """Mean r in each cartography group, and of how many texts, those of all seeds."""
    numbers = study.numbers(study.of(of_model("table4", model)))
    counts = numbers.groupby(["row", "column"])["texts"].transform("sum")
    remarks = [f"{n} text{'s' if n > 1 else ''}" if n else "" for n in counts]
    return beside(remarked(numbers.assign(remark=remarks)), "agreement", "table4", labels=ROWS)
