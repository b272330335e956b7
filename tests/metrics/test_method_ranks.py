from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.metrics.method_ranks import FEWEST, above_floor, method_ranks


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def test_a_method_that_is_always_better_is_first_in_every_draw(rng):
    noise = rng.normal(size=30)
    table = method_ranks(pd.DataFrame({"low": noise, "high": noise + 0.01}))
    assert table.loc["high", ["rank", "rank_low", "rank_high"]].tolist() == [1, 1, 1]
    assert table.loc["low", ["rank", "rank_low", "rank_high"]].tolist() == [2, 2, 2]


def test_methods_that_cannot_be_told_apart_change_places(rng):
    base = rng.normal(size=40)
    alike = pd.DataFrame({name: rng.permutation(base) for name in "abc"})
    table = method_ranks(alike)
    assert (table["rank_low"] == 1).all() and (table["rank_high"] == 3).all()


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution_when_texts_are_many(rng):
    values = rng.normal(2.0, 3.0, size=900)
    table = method_ranks(pd.DataFrame({"m": values}))
    # the quantile of 1,000 draws has itself a standard error of 0.0085
    half = 1.96 * values.std() / 30
    assert table.loc["m", "mean"] == pytest.approx(values.mean(), abs=1e-12)
    assert table.loc["m", "low"] == pytest.approx(values.mean() - half, abs=0.03)
    assert table.loc["m", "high"] == pytest.approx(values.mean() + half, abs=0.03)


def test_equal_methods_have_one_place_together_and_push_nobody_down():
    values = pd.DataFrame({"a": [3.0, 3], "twin": [3.0 + 1e-9, 3], "b": [1.0, 1]})
    table = method_ranks(values, {"twin": "a"})
    assert table["rank"].tolist() == [1, 1, 2] and list(table.index) == ["a", "twin", "b"]


def test_too_few_texts_have_no_intervals():
    few = method_ranks(pd.DataFrame({"m": np.arange(FEWEST - 1.0)}))
    assert few["low"].isna().all() and few["rank_high"].isna().all()


def test_what_is_above_the_floor_is_above_it_text_by_text(rng):
    hard = rng.normal(0.0, 5.0, size=50)  # texts differ more than methods do
    values = pd.DataFrame({"floor": hard, "better": hard + 0.1 + 0.05 * rng.normal(size=50)})
    values["same"] = hard + 0.05 * rng.normal(size=50) - 0.01
    assert above_floor(values, "floor").to_dict() == {"floor": False, "better": True, "same": False}
