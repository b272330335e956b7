"""Which numbers stand in the paper's tables?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from erlib.papers.ivra import measurements
from erlib.papers.ivra.study import Study, chosen
from erlib.papers.ivra.systems import (
    EXPLAINERS,
    FLOOR,
    SUBSETS,
    UNTRAINED,
    Task,
    model_spec,
    subset_name,
    tasks,
)
from erlib.parameters import Settings
from erlib.reports.markup import counted
from erlib.reports.paper_numbers import Beside, beside

BY_CRITERION = {"SIM": ("table1", "table8"), "COMP": ("table2", "table9"),
                "SUFF": ("table3", "table10"), "CONS": ("table4", "table11")}  # fmt: skip
OTHERS = ("GPT-2", "Llama-2")
OURS = {
    "minilm": "MiniLM",
    "smollm2": "SmolLM2-135M, 4-bit weights",
}
# Table 11 alone calls SMaT so in its lower half.
PRINTED = {("table11", "Llama-2|Attention-SMaT"): "Llama-2|SMaT"}


@dataclass(frozen=True)
class Shown:
    """A table as it is read, and the numbers behind it."""

    wide: pd.DataFrame
    long: pd.DataFrame


def model_name(settings: Settings, base: str, task: Task | None = None) -> str:
    """What plays the part of a base model, on one task or on all; short for the hub's own."""
    options, where = settings.grid["bases"][base], [task] if task else tasks(settings, base)
    layers = {t.paper: model_spec(settings, base, t, None).layers for t in where}
    changed = []
    for count in sorted({n for n in layers.values() if n}):
        on = [name for name, n in layers.items() if n == count]
        only = f" on {' and '.join(on)}" if len(on) < len(where) else ""
        changed.append(f"{counted(count, 'layer')}{only}")
    changed += [f"lowest {counted(n, 'layer')} frozen"] if (n := options.get("frozen")) else []
    return short_name(options["name"]) + (f" ({', '.join(changed)})" if changed else "")


def short_name(model: str) -> str:
    """A model's name as a reader says it: without the hub's owner."""
    return OURS.get(model, model.split("/")[-1])


def by_criterion(study: Study, criterion: str, *, others: bool = False) -> Shown:
    """Tables 1 to 4 of the first base model by criterion, Tables 8 to 11 of the `others`."""
    table = BY_CRITERION[criterion][others]
    bases = OTHERS if others else ("ELECTRA",)
    cells = [c for c in study.by_explainer if c.base in bases and c.criterion == criterion]
    frame = study.frame(cells)
    names = frame["base"] + "|" + frame["row"]
    scale = 100 if table == "table8" else 1  # which alone is in per cent
    ours = pd.DataFrame(
        {
            "row": [PRINTED.get((table, name), name) for name in names],
            "column": frame["task"],
            "value": scale * frame["value"],
        }
    )
    printed = [f"{base}|{row}" for base in bases for row in EXPLAINERS]
    added = [f"{base}|{row}" for base in bases for row in (*UNTRAINED, FLOOR)]
    found = beside(
        ours, "ivra", table,
        rows=[*(PRINTED.get((table, name), name) for name in printed),
              *(name for name in added if name in set(names))],
        stands_for=corpora(study.settings), digits=1 if scale == 100 else 3,
    )  # fmt: skip
    return _shown(study, found)


def _shown(study: Study, found: Beside) -> Shown:
    """With our models' names in the rows, and the standard error beside the deviation."""
    wide = found.wide()
    wide.index = pd.Index([_row_name(study.settings, str(name)) for name in wide.index])
    long = found.long
    return Shown(wide, long.assign(ours_se=long["ours_std"] / np.sqrt(long["n"].clip(lower=1))))


def _row_name(settings: Settings, name: str) -> str:
    base, _, row = name.partition("|")
    if not row or base == "ELECTRA":  # of which every row is, so that the caption says it
        return row or name
    return f"{row}\n{model_name(settings, base)} for {base}"


def corpora(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set that it is or stands in for."""
    return {task.corpus: task.paper for task in tasks(settings, "ELECTRA")}


def table_5(study: Study) -> Shown:
    """Accuracy, or span F1, by the set of criteria that the model was trained for."""
    frame = study.frame([c for c in study.accuracies if c.base == "ELECTRA"])
    continued = (measurements.CONTINUED, measurements.SHORT)
    names = {"+".join(s): subset_name(s) for s in SUBSETS} | {"Baseline": "ELECTRA baseline"}
    names |= {row: row for row in continued}
    costs = {
        (row, task): float(np.mean(found["differences"]))
        for row, task in frame[["row", "task"]].drop_duplicates().itertuples(index=False)
        if row not in ("Baseline", *continued) and (found := study.cost(task, row))
    }
    of_cell = list(zip(frame["row"], frame["task"], strict=True))
    ours = pd.DataFrame(
        {
            "row": frame["row"].map(names),
            "column": frame["task"],
            "value": frame["value"],
            "remark": [f"cost {costs[c]:+.1f}".replace("-", "−") if c in costs else ""
                       for c in of_cell],
        }
    )  # fmt: skip
    order = [*(names["+".join(s)] for s in SUBSETS), "ELECTRA baseline", *continued]
    printed = beside(ours, "ivra", "table5", metric="accuracy", digits=1,
                     rows=[r for r in order if r in set(ours["row"])],
                     stands_for=corpora(study.settings))  # fmt: skip
    shown = _shown(study, printed)
    named = {(names[row], task): cost for (row, task), cost in costs.items()}
    cells = zip(shown.long["row"], shown.long["column"], strict=True)
    return Shown(shown.wide, shown.long.assign(cost=[named.get(c, np.nan) for c in cells]))


def table_6(study: Study) -> Beside:
    """AUC of explanations against rationales, by word."""
    frame = study.frame(measurements.plausible(study.settings))
    ours = frame.rename(columns={"task": "column"})[["row", "column", "value"]]
    corpus = study.settings.roles["plausibility"]
    return beside(ours, "ivra", "table6", stands_for={corpus: "MovieReviews"})


def table_7(study: Study) -> Shown:
    """Every criterion by learning rate and decay."""
    frame = study.frame(measurements.tuned(study.settings))
    frame = frame.assign(value=frame["value"].where(frame["criterion"] != "SIM",
                                                    100 * frame["value"]))  # fmt: skip
    metrics = {"SIM": "simulatability_pct", "COMP": "comp_aopc", "SUFF": "suff_aopc",
               "CONS": "consistency_spearman"}  # fmt: skip
    columns = []
    for criterion, metric in metrics.items():
        ours = frame[frame["criterion"] == criterion].rename(columns={"criterion": "column"})
        columns.append(
            beside(ours[["row", "column", "value"]], "ivra", "table7", metric=metric,
                   rows=list(dict.fromkeys(ours["row"])), digits=1 if criterion == "SIM" else 3)
        )  # fmt: skip
    wide = pd.concat([column.wide() for column in columns], axis=1)
    return Shown(
        wide.rename(index=lambda name: name.replace("|gamma=", ", γ=").replace("=", " ")),
        pd.concat([column.long for column in columns], ignore_index=True),
    )


def base_table(study: Study) -> pd.DataFrame:
    """How well each base model has learnt each task: accuracy beside the majority class."""
    rows = []
    for cell in measurements.base_answers(study.settings):
        found = study.rows[cell.spec]
        rows.append(
            {
                "base": cell.base,
                "model": model_name(study.settings, cell.base, cell.task),
                "task": cell.task.paper,
                "corpus": cell.task.corpus,
                "seed": cell.seed,
                "accuracy or span F1": study.value(cell),
                "exact match": 100 * found["exact_match"] if cell.task.spans else np.nan,
                "majority class": np.nan if cell.task.spans else 100 * found["majority"],
            }
        )
    means = pd.DataFrame(rows).drop(columns="seed")
    keys = ["base", "model", "task", "corpus"]
    return means.groupby(keys, sort=False).agg("mean").assign(
        seeds=means.groupby(keys, sort=False).size()
    ).reset_index()  # fmt: skip


def floor_table(study: Study, *, trained: bool = False) -> pd.DataFrame:
    """What explanations add to students: SIM of each method minus that of students without any.

    Of every seed that both have, or only of those whose teachers are `trained`.
    """
    every = [c for c in study.by_explainer if study.is_trained(c) or not trained]
    rows = []
    for base in dict.fromkeys(c.base for c in every):
        for task in tasks(study.settings, base):
            where = {"base": base, "task": task.paper, "criterion": "SIM"}
            floor = chosen(every, **where, row=FLOOR)
            for row in measurements.explainers(study.settings, base, task):
                told = chosen(every, **where, row=row)
                if pairs := study.paired(told, floor, every=True):
                    own, without = (100 * np.array([study.value(c) for c in cells])
                                    for cells in zip(*pairs, strict=True))  # fmt: skip
                    gains = own - without
                    rows.append(
                        {
                            "base": base,
                            "task": task.paper,
                            "method": row,
                            "floor": without.mean(),
                            "above the floor": gains.mean(),
                            "std": gains.std(ddof=1) if len(gains) > 1 else np.nan,
                            "seeds": len(gains),
                        }
                    )
    columns = ["base", "task", "method", "floor", "above the floor", "std", "seeds"]
    return pd.DataFrame(rows, columns=columns)


def collusion_table(study: Study) -> pd.DataFrame:
    """Teacher and scaffold student under both outer losses, and what a fresh student makes of it.

    The direct KL of eq. 15 can fall because both agree on any map; the outer cross-entropy, and
    above all a student that was not there, cannot be helped by that.
    """
    rows = []
    for cell in measurements.colluding(study.settings):
        student = cell.spec.run
        assert student is not None and student.data.taught is not None
        if not np.isfinite(study.value(cell)):
            continue
        history = study.history(student.data.taught.run)
        floor = chosen(study.by_explainer, base="ELECTRA", task=cell.task.paper, row=FLOOR)
        rows.append(
            {
                "outer loss": OUTER[cell.row],
                "seed": cell.seed,
                **{
                    f"{name}, {when} epoch": history[f"train_{column}"].iloc[place]
                    for name, column in (("outer CE", "student_ce"), ("KL", "student_kl"))
                    for when, place in (("first", 0), ("last", -1))
                },
                "entropy of r, last epoch": history["train_entropy"].iloc[-1],
                "SIM of a fresh student": 100 * study.value(cell),
                "SIM without explanations": next(
                    (100 * study.value(c) for c in floor if c.seed == cell.seed), np.nan
                ),
            }
        )
    return pd.DataFrame(rows)


OUTER = {"simulation": "CE + KL (eq. 15)", "smat": "CE, held out (SMaT)"}
