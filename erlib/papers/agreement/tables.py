"""Which numbers stand in the paper's tables?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from erlib.config import DataSpec, RunSpec
from erlib.metrics.cartography import GROUPS
from erlib.metrics.stats import holm, signed_rank_p
from erlib.metrics.task import f1_binary
from erlib.papers.agreement.correlations import correlations, fisher_mean, of_whole_seeds
from erlib.papers.agreement.groups import grouped
from erlib.papers.agreement.study import METRICS, Study
from erlib.papers.agreement.systems import (
    MODELS,
    VARIANTS,
    Task,
    count_of,
    data_spec,
    systems,
    tasks,
    under_dropout,
)
from erlib.parameters import Settings
from erlib.reports.paper_numbers import Beside, beside, paper_table
from erlib.training.rows import size_of

PRINTED_PAIRS = {"JWA": "table1a_jwa", "DBERT": "table1b_dbert"}
SIGNS = {"kendall_tau": "τ", "pearson_r": "r"}


def stands_for(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set, where they are not the same."""
    return {t.corpus: t.paper for t in tasks(settings) if t.corpus != t.paper.lower()}


def table_1(study: Study, model: str) -> Beside:
    """Agreement of each pair of methods in the last epoch of Base."""
    rows = []
    for run in base_runs(study, model).itertuples():
        rows += _pair_cells(run, study.pairs(run.spec))
    names = stands_for(study.settings)
    return beside(_remarked(rows), "agreement", PRINTED_PAIRS[model], stands_for=names)


def table_1b_dropout(study: Study) -> Beside:
    """Agreement of each pair of methods as the paper's code took it: the kept model, dropout on."""
    rows = []
    for run in base_runs(study, "DBERT").itertuples():
        means = study.with_dropout(run.spec).groupby("pair", sort=False)[list(METRICS.values())]
        rows += _pair_cells(run, means.mean())
    names = stands_for(study.settings)
    return beside(_remarked(rows), "agreement", PRINTED_PAIRS["DBERT"], stands_for=names)


def base_runs(study: Study, model: str) -> pd.DataFrame:
    """A model's runs of Base, which Table 1 reads."""
    return study.main[(study.main["model"] == model) & (study.main["variant"] == "Base")]


def _pair_cells(run: Any, means: pd.DataFrame) -> list[dict[str, object]]:
    """The cells of one run in Table 1; means: pair × our metric."""
    return [
        {"row": pair, "column": run.set, "metric": m, "value": value, "trained": run.trained}
        for m, ours in METRICS.items()
        for pair, value in means[ours].items()
    ]


def _remarked(rows: Iterable[dict[str, object]]) -> pd.DataFrame:
    """One row per cell and seed, with a remark in cells whose models are not trained."""
    found = pd.DataFrame(rows)
    cells = found.groupby([k for k in ("row", "column", "metric") if k in found])["trained"]
    weak, n = cells.transform(lambda trained: (~trained).sum()), cells.transform("size")
    partly = weak.astype(str) + " of " + n.astype(str) + " not trained"
    return found.assign(remark=partly.mask(weak == n, "not trained").mask(weak == 0, ""))


def table_2(study: Study) -> Beside:
    """Mean agreement over pairs in the last epoch, by variant."""
    rows = [
        {**_cell_of(run), "metric": metric, "value": value}
        for run in study.main.itertuples()
        for metric, value in mean_agreement(study, run.spec).items()
    ]
    return beside(_remarked(rows), "agreement", "table2")


def _cell_of(run: Any) -> dict[str, object]:
    """The row and column of a run in Tables 2, 3 and 6."""
    return {"row": f"{run.model}|{run.set}", "column": run.variant, "trained": run.trained}


def mean_agreement(study: Study, spec: RunSpec) -> dict[str, float]:
    """τ and r in the last epoch, mean over texts and then over pairs."""
    pairs = study.pairs(spec)
    return {metric: float(pairs[ours].mean()) for metric, ours in METRICS.items()}


def table_2_tests(study: Study) -> pd.DataFrame:
    """The paper's test: is a variant above each of the other two? Signed-rank over texts, Holm.

    A text's agreement is its mean over pairs and seeds (agreement.md §4.15); a text that one of the
    three variants has no agreement on is left out. Cells are Holm's p of "row above column"; the
    dagger is for a variant that is above both others, of trained models only.
    """
    rows = []
    for model in MODELS:
        for task in study.tasks:
            shared = study.paired(model, task.paper, *VARIANTS)  # equal seeds of all three
            if not shared:  # of one of them every run failed
                continue
            for metric, ours in METRICS.items():
                texts = pd.DataFrame(
                    {
                        variant: pd.concat(
                            [study.text_means(spec)[ours] for spec in specs], axis=1
                        ).mean(axis=1)
                        for variant, specs in zip(VARIANTS, zip(*shared, strict=True), strict=True)
                    }
                ).dropna()
                rows += [
                    {
                        "model": model,
                        "set": task.paper,
                        "of": SIGNS[metric],
                        "seeds": len(shared),
                        "texts": len(texts),
                        "trained": study.all_trained(model, task.paper, *VARIANTS),
                        "variant": one,
                        "above": other,
                        "p": signed_rank_p(texts[one] - texts[other], "greater"),
                    }
                    for one, other in permutations(VARIANTS, 2)
                ]
    table = pd.DataFrame(rows)
    table["p"] = holm(table["p"])
    index = ["model", "set", "of", "seeds", "texts", "trained", "variant"]
    wide = table.pivot(index=index, columns="above", values="p").reindex(columns=list(VARIANTS))
    wide.columns = [f"p, above {name}" for name in VARIANTS]
    trained = wide.index.get_level_values("trained") == "yes"
    wide["†"] = np.where((wide.max(axis=1) < 0.05) & trained, "†", "")
    order = table[index].drop_duplicates()
    return wide.reindex(pd.MultiIndex.from_frame(order)).reset_index()


def table_3(study: Study) -> Beside:
    """F1 on test texts in the epoch that is best on validation texts."""
    rows = [
        {**_cell_of(run), "value": f1_on_test(study, run.spec)} for run in study.main.itertuples()
    ]
    return beside(_remarked(rows), "agreement", "table3")


def f1_on_test(study: Study, spec: RunSpec) -> float:
    """Binary F1 on test texts after the kept epoch."""
    table = study.answers(spec)
    chosen = table[table["epoch"] == study.kept[spec]]
    return f1_binary(chosen["label"], chosen["predicted"])


def table_4(study: Study, model: str) -> Beside:
    """Mean r in each cartography group, Base and Tying."""
    texts = grouped(study, model).dropna(subset=["pearson"])
    cells = texts.groupby(["set", "group", "variant", "seed"])["pearson"]
    means = cells.agg(["mean", "size"]).reset_index()
    counts = means.groupby(["set", "group", "variant"])["size"].transform("sum")
    ours = pd.DataFrame(
        {
            "row": means["set"] + "|" + means["group"],
            "column": means["variant"],
            "value": means["mean"],
            "remark": [f"{n} text{'s' if n > 1 else ''}" for n in counts],
        }
    )
    rows = [f"{task.paper}|{group}" for task in study.tasks for group in GROUPS]
    return beside(ours, "agreement", "table4", rows=rows)


def table_5(study: Study, model: str) -> Beside:
    """Correlation of curvature with cartography: mean over sets on Fisher's z scale.

    Of the seeds that have every set: a seed that has one alone would count that set again.
    """
    found = of_whole_seeds(correlations(study, model))
    means = found.groupby(["statistic", "attribute", "variant", "seed"])["r"].agg(fisher_mean)
    ours = means.rename("value").reset_index()
    ours["row"] = ours["statistic"] + "|" + ours["attribute"]
    return beside(ours.rename(columns={"variant": "column"}), "agreement", "table5")


def table_6(study: Study) -> Beside:
    """F1 on validation texts in the kept epoch."""
    rows = [{**_cell_of(run), "value": run.dev_f1} for run in study.main.itertuples()]
    return beside(_remarked(rows), "agreement", "table6")


def table_7(study: Study, number: int = 7) -> Beside:
    """Minutes that a run takes, mean over variants and seeds; the paper prints it as 9, too."""
    rows = [
        {"row": run.set, "column": run.model, "value": study.minutes(run.spec)}
        for run in study.main.itertuples()
    ]
    return beside(pd.DataFrame(rows), "agreement", f"table{number}")


def table_8(study: Study) -> Beside:
    """The λ that the search chose."""
    rows = [
        {"row": f"{s.model}|{s.task.paper}", "column": s.variant, "value": study.weight(s)}
        for s in systems(study.settings, VARIANTS[1:])
    ]
    return beside(pd.DataFrame(rows), "agreement", "table8", digits=3)


def table_10(settings: Settings) -> pd.DataFrame:
    """Texts of each split: as used, as there are, and the paper's."""
    printed = paper_table("agreement", "table10").set_index(["row", "column"])["mean"]
    rows = []
    for task in tasks(settings):
        row, total = {"set": task.paper, "corpus": task.corpus}, 0
        for split, theirs in (("train", "train"), ("dev", "validation"), ("test", "test")):
            used = dict.fromkeys(
                texts_used(settings, task, split, asked_for(settings, model, task, f"{split}_rows"))
                for model in MODELS
            )
            there = texts_used(settings, task, split, None)
            row[theirs] = (
                f"{' / '.join(f'{n:,}' for n in used)}\nof {there:,}\n"
                f"paper {int(printed[task.paper, theirs]):,}"
            )
            total += there
        row["total"] = f"{total:,}\npaper {int(printed[task.paper, 'total']):,}"
        rows.append(row)
    return pd.DataFrame(rows)


def asked_for(settings: Settings, model: str, task: Task, what: str) -> int | None:
    """How many texts of a kind ("dev_rows", "explained_rows", …) a profile asks for; None: all."""
    if what == "dropout_rows":
        explained = asked_for(settings, model, task, "explained_rows")
        return None if explained is None else under_dropout(explained)
    of_all = {"dev_rows": settings.grid, "curvature_rows": settings.grid["models"][model]}
    return of_all[what].get(what) if what in of_all else count_of(settings, model, task, what)


def texts_used(settings: Settings, task: Task, split: str, asked: int | None) -> int:
    """How many texts of a split there are to be had where so many are asked for."""
    data = data_spec(settings, MODELS[0], task)
    there = _length(replace(data, train_rows=None, dev_rows=None), split)
    return there if asked is None else min(asked, there)


@lru_cache(maxsize=64)
def _length(data: DataSpec, split: str) -> int:
    return size_of(data, split, None)


def table_11(study: Study, model: str) -> Beside:
    """Table 5 by set."""
    found = correlations(study, model)
    ours = pd.DataFrame(
        {
            "row": found["statistic"] + "|" + found["set"] + "|" + found["attribute"],
            "column": found["variant"],
            "value": found["r"],
        }
    )
    return beside(ours, "agreement", "table11")
