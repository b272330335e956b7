"""Which numbers stand in the paper's tables?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.metrics.cartography import GROUPS
from erlib.metrics.stats import holm, signed_rank_p
from erlib.metrics.task import f1_binary
from erlib.papers.agreement.correlations import correlations, fisher_mean
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
)
from erlib.parameters import Settings
from erlib.reports.paper_numbers import Beside, beside, paper_table
from erlib.training.identity import rows_of

PRINTED_PAIRS = {"JWA": "table1a_jwa", "DBERT": "table1b_dbert"}
SIGNS = {"kendall_tau": "τ", "pearson_r": "r"}


def stands_for(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set, where they are not the same."""
    return {t.corpus: t.paper for t in tasks(settings) if t.corpus != t.paper.lower()}


def table_1(study: Study, model: str) -> Beside:
    """Agreement of each pair of methods in the last epoch of Base."""
    rows = []
    for run in _base_runs(study, model).itertuples():
        rows += _pair_cells(run.set, study.pairs(run.spec))
    names = stands_for(study.settings)
    return beside(pd.DataFrame(rows), "agreement", PRINTED_PAIRS[model], stands_for=names)


def table_1b_dropout(study: Study) -> Beside:
    """Agreement of each pair of methods as the paper's code took it: the kept model, dropout on."""
    rows = []
    for run in _base_runs(study, "DBERT").itertuples():
        means = study.with_dropout(run.spec).groupby("pair", sort=False)[list(METRICS.values())]
        rows += _pair_cells(run.set, means.mean())
    names = stands_for(study.settings)
    return beside(pd.DataFrame(rows), "agreement", PRINTED_PAIRS["DBERT"], stands_for=names)


def _base_runs(study: Study, model: str) -> pd.DataFrame:
    return study.main[(study.main["model"] == model) & (study.main["variant"] == "Base")]


def _pair_cells(paper: str, means: pd.DataFrame) -> list[dict[str, object]]:
    """The cells of one run in Table 1; means: pair × our metric."""
    return [
        {"row": pair, "column": paper, "metric": metric, "value": value}
        for metric, ours in METRICS.items()
        for pair, value in means[ours].items()
    ]


def table_2(study: Study) -> Beside:
    """Mean agreement over pairs in the last epoch, by variant."""
    rows = [
        {"row": f"{run.model}|{run.set}", "column": run.variant, "metric": metric, "value": value}
        for run in study.main.itertuples()
        for metric, value in mean_agreement(study, run.spec).items()
    ]
    return beside(pd.DataFrame(rows), "agreement", "table2")


def mean_agreement(study: Study, spec: RunSpec) -> dict[str, float]:
    """τ and r in the last epoch, mean over texts and then over pairs."""
    pairs = study.pairs(spec)
    return {metric: float(pairs[ours].mean()) for metric, ours in METRICS.items()}


def table_2_tests(study: Study) -> pd.DataFrame:
    """The paper's test: is a variant above each of the other two? Signed-rank over texts, Holm.

    A text's agreement is its mean over pairs and seeds (agreement.md §4.15). Cells are Holm's p of
    "row above column"; the dagger is for a variant that is above both others.
    """
    rows = []
    for model in MODELS:
        for task in study.tasks:
            shared = study.paired(model, task.paper, *VARIANTS)  # equal seeds of all three
            for metric, ours in METRICS.items():
                texts = {
                    variant: pd.concat(
                        [study.text_means(spec)[ours] for spec in specs], axis=1
                    ).mean(axis=1)
                    for variant, specs in zip(VARIANTS, zip(*shared, strict=True), strict=True)
                }
                for one in VARIANTS:
                    for other in VARIANTS:
                        if one != other:
                            d = (texts[one] - texts[other]).dropna().to_numpy()
                            rows.append(
                                {
                                    "model": model,
                                    "set": task.paper,
                                    "of": SIGNS[metric],
                                    "seeds": len(shared),
                                    "texts": len(d),
                                    "variant": one,
                                    "above": other,
                                    "p": signed_rank_p(d, "greater"),
                                }
                            )
    table = pd.DataFrame(rows)
    table["p"] = holm(table["p"])
    index = ["model", "set", "of", "seeds", "texts", "variant"]
    wide = table.pivot(index=index, columns="above", values="p").reindex(columns=list(VARIANTS))
    wide.columns = [f"p, above {name}" for name in VARIANTS]
    wide["†"] = np.where(wide.max(axis=1) < 0.05, "†", "")
    order = table[index].drop_duplicates()
    return wide.reindex(pd.MultiIndex.from_frame(order)).reset_index()


def table_3(study: Study) -> Beside:
    """F1 on test texts in the epoch that is best on validation texts."""
    rows = [
        {
            "row": f"{run.model}|{run.set}",
            "column": run.variant,
            "value": f1_on_test(study, run.spec),
        }
        for run in study.main.itertuples()
    ]
    return beside(pd.DataFrame(rows), "agreement", "table3")


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
    """Correlation of curvature with cartography: mean over sets on Fisher's z scale."""
    found = correlations(study, model)
    means = found.groupby(["statistic", "attribute", "variant", "seed"])["r"].agg(fisher_mean)
    ours = means.rename("value").reset_index()
    ours["row"] = ours["statistic"] + "|" + ours["attribute"]
    return beside(ours.rename(columns={"variant": "column"}), "agreement", "table5")


def table_6(study: Study) -> Beside:
    """F1 on validation texts in the kept epoch."""
    runs = study.main
    ours = pd.DataFrame(
        {
            "row": runs["model"] + "|" + runs["set"],
            "column": runs["variant"],
            "value": runs["dev_f1"],
        }
    )
    return beside(ours, "agreement", "table6")


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
            used = dict.fromkeys(texts_used(settings, model, task, split) for model in MODELS)
            there = len(rows_of(data_spec(settings, MODELS[0], task), split, None))
            row[theirs] = (
                f"{' / '.join(f'{n:,}' for n in used)}\nof {there:,}\n"
                f"paper {int(printed[task.paper, theirs]):,}"
            )
            total += there
        row["total"] = f"{total:,}\npaper {int(printed[task.paper, 'total']):,}"
        rows.append(row)
    return pd.DataFrame(rows)


def texts_used(settings: Settings, model: str, task: Task, split: str) -> int:
    """How many texts of a split a model is trained on or predicts."""
    data = data_spec(settings, model, task)
    asked = count_of(settings, model, task, "test_rows")
    rows = {"train": data.train_rows, "dev": data.dev_rows, "test": asked}
    return len(rows_of(data, split, rows[split]))


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
