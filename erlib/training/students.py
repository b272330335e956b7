"""What does a student see of its teacher? (IvRA §2.2.1 and B.2.1)

A student learns from a fifth of the texts that its teacher is tested on and is examined on the
other four fifths; there, as on dev, the right answer is what the teacher says. Each text it learns
from comes with the teacher's explanation; those it is examined on come without.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from datasets import Dataset, Features, List, Value

from erlib.config import DataSpec, EvalSpec, Teaching
from erlib.data import select_rows
from erlib.metrics.consistency import distribution

PARTS = 5  # of the test split, one of which the student learns from
LEARNT, UNSEEN = "learnt", "unseen"  # that fifth, and the others: splits like any, for the teacher
OWN = {"train": LEARNT, "test": UNSEEN}  # a student's split → what it is of the corpus


def part_of(test: Dataset, split: str) -> Dataset:
    """Of the teacher's test split: LEARNT, the fifth with the lowest hashes; UNSEEN, the rest."""
    learnt = select_rows(test, max(1, len(test) // PARTS))
    if split == LEARNT:
        return learnt
    seen = set(learnt["id"][:])
    return test.select([i for i, name in enumerate(test["id"][:]) if name not in seen])


def answers(teaching: Teaching, data: DataSpec, split: str, rows: int | None) -> EvalSpec:
    """The evaluation with what the teacher says of these rows of a student's split."""
    return EvalSpec(teaching.run, untaught(data), OWN.get(split, split), "predictions", rows)


def explanations(teaching: Teaching, data: DataSpec, rows: int) -> EvalSpec:
    """The evaluation with the teacher's explanations of the rows that the student learns from."""
    return EvalSpec(
        teaching.run,
        untaught(data),
        LEARNT,
        "attributions",
        rows,
        method=teaching.method,
        variant=teaching.variant,
        options=teaching.options,
    )


def untaught(data: DataSpec) -> DataSpec:
    """The corpus as the teacher is evaluated on it."""
    return replace(data, taught=None, train_rows=None, dev_rows=None)


def with_lessons(
    texts: Dataset, predictions: pd.DataFrame, attributions: pd.DataFrame | None
) -> Dataset:
    """`texts` with the teacher's answer (`taught`) and, if given, its `explanation` of each.

    An answer is one class, or the first and last token of a span. An explanation is a distribution
    over tokens, whatever the method: |scores| divided by their sum (ivra.md §3).
    """
    spoken = ["start", "end"] if "start" in predictions else ["predicted"]
    names = texts["id"][:]
    lessons = {"taught": predictions.set_index("id")[spoken].loc[names].to_numpy().tolist()}
    features = {**texts.features, "taught": List(Value("int64"))}
    if attributions is not None:
        scores = attributions.set_index("id")["scores"]
        lessons["explanation"] = [distribution(scores[name]).tolist() for name in names]
        features["explanation"] = List(Value("float64"))
    return Dataset.from_dict(texts[:] | lessons, features=Features(features))
