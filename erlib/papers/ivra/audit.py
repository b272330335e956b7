"""What does the paper leave out?

How well the models have learnt, what explanations add to a student that has none, and whether
teacher and student only agree with each other.
"""

from __future__ import annotations

import pandas as pd

from erlib.papers.ivra.systems import model_name, task_named
from erlib.papers.study import Study, by_metric


def base_table(study: Study) -> pd.DataFrame:
    """How well each base model has learnt each task, mean over seeds, beside the majority class."""
    found = by_metric(study.numbers(study.of("table-bases")))
    found = found.rename(columns={"row": "base", "column": "task"})
    tasks = {name: task_named(study.settings, name) for name in found["task"].unique()}
    cells = found.groupby(["base", "task"], sort=False)
    means = cells[["accuracy or span F1", "exact match", "majority class"]].mean()
    means.insert(0, "corpus", [tasks[task].corpus for _, task in means.index])
    names = [model_name(study.settings, base, tasks[task]) for base, task in means.index]
    means.insert(0, "model", names)
    return means.assign(seeds=cells.size()).reset_index()


def floor_table(study: Study) -> pd.DataFrame:
    """Points of simulatability over students of the same teachers that are told only the answers,
    and these students' own, mean over seeds."""
    found = by_metric(study.numbers(study.of("table-floor"))).dropna(subset="above the floor")
    base, _, method = found["row"].str.partition("|").to_numpy().T
    found = found.assign(base=base, method=method).rename(columns={"column": "task"})
    cells = found.groupby(["base", "task", "method"], sort=False)
    gain = cells["above the floor"]
    table = pd.DataFrame(
        {"floor": cells["floor"].mean(), gain.mean().name: gain.mean(), "std": gain.std()}
    )
    return table.assign(seeds=gain.size()).reset_index()


def collusion_table(study: Study) -> pd.DataFrame:
    """Training for SIM under both outer losses, and what a fresh student makes of it."""
    found = by_metric(study.numbers(study.of("table-collusion"))).dropna()
    found = found.rename(columns={"row": "outer loss"})
    return found.drop(columns=["table", "column", "trained"])
