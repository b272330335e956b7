"""The attack is greedy, changes a word once, stops at the first flip, and is counted as Table 6."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.config import EvalSpec
from erlib.training.evaluating import evaluate, per_text
from erlib.training.kinds.attack import _summary, greedy


def asker(weights, log):
    """p(1) from the sum of word weights; every text that was asked is kept."""

    def ask(texts):
        log.extend(" ".join(t) for t in texts)
        z = np.array([sum(weights.get(w, 0.0) for w in t) for t in texts])
        p = 1 / (1 + np.exp(-z))
        return np.stack([1 - p, p], axis=1)

    return ask


def test_the_most_harmful_change_comes_first_and_the_search_ends_with_the_flip():
    log = []
    ask = asker({"good": 1.0, "Rome": 0.5, "Seattle": 0.2, "Stockholm": -0.4, "it's": -0.9}, log)
    found = greedy(ask, ["it", "is", "good", "in", "Rome"], 1)
    # it's: 1.5 − 0.9 = 0.6; Shanghai 1.0; Seattle 1.2; Stockholm 0.6 (Rome → Seattle, Shanghai,
    # Stockholm): the first of the two lowest; then Stockholm: −0.3, a flip
    assert found.words == ["it's", "good", "in", "Stockholm"]
    assert (found.predicted, found.changed, found.kinds) == (0, 3, ("contraction", "location"))
    assert found.queries == len(log) == 1 + 4 + 3


def test_a_changed_word_is_not_changed_back():
    log = []
    found = greedy(asker({"good": 5.0}, log), ["it", "is", "good"], 1)
    assert found.words == ["it's", "good"] and found.predicted == 1  # no extension of it's
    assert found.queries == len(log) == 2


def test_a_text_with_nothing_to_change_costs_one_query():
    found = greedy(asker({"good": 1.0}, []), ["good"], 1)
    assert (found.changed, found.queries, found.predicted) == (0, 1, 1)


def test_the_statistics_by_hand():
    table = pd.DataFrame(
        {
            "label": [1, 1, 0, 0], "before": [1, 1, 0, 1], "after": [0, 1, 1, 1],
            "words": [10, 20, 30, 40], "changed": [1, 4, 6, 0], "queries": [5, 9, 7, 0],
        }
    )  # fmt: skip
    assert _summary(table) == pytest.approx(
        {
            "successes": 2, "accuracy": 0.75, "accuracy_under_attack": 0.25, "success_rate": 2 / 3,
            "changed": (0.1 + 0.2) / 2, "words": 25, "queries": 7, "texts": 4, "correct": 3,
        }
    )  # fmt: skip


def test_a_run_is_attacked_on_the_words_that_it_sees(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "attack", 6)
    row = evaluate([wanted], store=tmp_path / "store").iloc[0]
    table = per_text(wanted, store=tmp_path / "store")
    answers = per_text(
        EvalSpec(spec, spec.data, "test", "predictions", 6), store=tmp_path / "store"
    )
    assert table["before"].tolist() == answers["predicted"].tolist()
    assert row["texts"] == 6 and row["successes"] == 0  # none of these words is in a list
    assert (table["queries"] == (table["before"] == table["label"])).all()
