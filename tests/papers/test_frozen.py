"""The table of frozen encoders: the right numbers in its columns, and what it says of them."""

from __future__ import annotations

import pandas as pd
import pytest

from erlib.catalogue import paper as paper_named
from erlib.config import RunSpec
from erlib.papers import frozen
from erlib.parameters import check_parameters

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
SETS = {"er_lens": 6, "regex": 6, "ivra": 2, "saloss": 5, "agreement": 4}  # with a Baseline


def baselines(paper):
    return paper_named(paper).module("cells").baselines(check_parameters(paper, PARAMETERS))


@pytest.mark.parametrize("paper", SETS)
def test_baselines_are_of_the_task_alone_and_learn_from_the_same_texts(paper):
    found = baselines(paper)
    assert len(found) == SETS[paper]
    for specs in found.values():
        runs: list[RunSpec] = [spec.run for spec in specs]
        first = [run.start or run for run in runs]
        assert len({run.with_seed(0) for run in first}) == 1 and runs[0].model.name == "minilm"
        assert all(len(run.objective) == 1 for run in (*runs, *first))
        assert all(run.start is None for run in first)
        assert {spec.kind for spec in specs} == {"predictions"}


def test_one_regression_stands_beside_the_mean_of_all_seeds(monkeypatch):
    settings = check_parameters("er_lens", PARAMETERS)
    given = dict(list(baselines("er_lens").items())[:2])
    f1 = {0: 0.7, 1: 0.8, 2: 0.9}

    def evaluated(specs, **where):
        rows = [{"eval": str(i), "f1_macro": 0.85 if s.kind == "frozen_probe" else f1[s.run.seed]}
                for i, s in enumerate(specs)]  # fmt: skip
        return pd.DataFrame(rows)

    monkeypatch.setattr(frozen, "evaluate", evaluated)
    gold = pd.DataFrame({"label": [1, 1, 1, 0]})
    monkeypatch.setattr(frozen, "per_text", lambda spec, **where: gold)
    table, evals = frozen.encoder_table(settings, given, "f1_macro")
    assert len(evals) == 2 * 3 + 2
    row = table.set_index("set").loc["SST-Dev"]
    assert row["Baseline"] == pytest.approx(80) and row["logistic regression"] == 85
    assert row["one answer"] == pytest.approx(100 * (6 / 7) / 2)  # F1 of class 1, and 0
    assert "the Baseline of SST-Dev, SST-Test." in frozen.about_encoder(table)
    better = table.assign(difference=1.0)
    assert frozen.about_encoder(better).startswith("Every Baseline is at least as good")
    idle = better.assign(Baseline=better["one answer"])
    assert frozen.about_encoder(idle).endswith("one answer for all texts: the Baseline of "
                                               "SST-Dev, SST-Test.")  # fmt: skip


def test_one_answer_is_the_best_constant_by_the_metric():
    gold = pd.Series([1, 1, 0, 0, 0])  # always 1: precision .4, recall 1
    assert frozen.constant_score(gold, "f1_binary") == pytest.approx(2 * 0.4 / 1.4)
    assert frozen.constant_score(gold, "accuracy") == pytest.approx(0.6)
