from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr

from erlib.metrics import agreement as module
from erlib.metrics.agreement import agreement, kendall, pair_means, pearson

A = np.array([0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 1.0])
B = np.array([0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.8])


def ragged(rng, texts, methods, ties=False, longest=40):
    lengths = rng.integers(3, longest, size=texts)
    draw = (
        (lambda n: rng.integers(0, 4, size=n).astype(float))
        if ties
        else (lambda n: rng.normal(size=n))
    )
    return {f"m{m}": [draw(n) for n in lengths] for m in range(methods)}


def test_the_papers_figure_1_disagrees_in_rank_and_agrees_in_value():
    assert kendall([A], [B])[0] == pytest.approx(-0.43, abs=0.005)
    assert pearson([A], [B])[0] == pytest.approx(0.99, abs=0.005)


@pytest.mark.parametrize("ties", [False, True])
def test_every_text_and_pair_equals_scipy(ties):
    scores = ragged(np.random.default_rng(0), texts=60, methods=4, ties=ties)
    frame = agreement(scores)
    assert len(frame) == 6 * 60
    for row in frame.itertuples():
        a, b = (np.abs(scores[m][int(row.id)]) for m in (row.method_a, row.method_b))
        if len(set(a)) == 1 or len(set(b)) == 1:
            assert np.isnan(row.kendall) and np.isnan(row.pearson)
        else:
            assert row.kendall == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)
            assert row.pearson == pytest.approx(pearsonr(a, b).statistic, abs=1e-10)


def test_chunks_of_texts_do_not_change_the_numbers(monkeypatch):
    scores = ragged(np.random.default_rng(1), texts=30, methods=3)
    whole = agreement(scores)
    monkeypatch.setattr(module, "MAX_CELLS", 1)
    assert whole.equals(agreement(scores))


def test_ties_are_corrected_as_tau_b_does_by_hand():
    # Pairs: (1,2) tied in a only, (1,3) and (2,3) concordant: 2 / sqrt(2 · 3).
    tau = kendall([np.array([1.0, 1.0, 2.0])], [np.array([1.0, 2.0, 3.0])])
    assert tau[0] == pytest.approx(2 / np.sqrt(6))


def test_identical_explanations_agree_exactly():
    a = [np.random.default_rng(2).normal(size=n) for n in (5, 17, 33)]
    assert (kendall(a, a) == 1.0).all()
    assert (pearson(a, a) == 1.0).all()
    assert (kendall(a, [-x for x in a]) == -1.0).all()


def test_agreement_compares_absolute_scores_and_the_plain_functions_do_not():
    a, b = [np.array([1.0, -2.0, 3.0])], [np.array([1.0, 2.0, 3.0])]
    assert agreement({"a": a, "b": b})["kendall"].tolist() == [1.0]
    assert kendall(a, b)[0] == pytest.approx(1 / 3)


def test_short_and_constant_texts_are_skipped_and_counted():
    a = [np.array([1.0, 2.0]), np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])]
    b = [np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])]
    c = [np.array([2.0, 1.0]), np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])]
    frame = agreement({"a": a, "b": b, "c": c}, ids=["short", "constant", "good"])
    means = pair_means(frame)
    assert means.loc[("a", "b"), ["kendall", "texts", "skipped"]].tolist() == [-1.0, 1, 2]
    assert means.loc[("b", "c"), ["kendall", "texts", "skipped"]].tolist() == [-1.0, 2, 1]
    assert frame[frame["id"] == "short"]["kendall"].isna().all()


def test_pairs_come_in_the_order_of_the_methods():
    a = [np.array([1.0, 2.0, 3.0])]
    means = pair_means(agreement({"saliency": a, "lime": a, "alti": a}))
    assert list(means.index) == [("saliency", "lime"), ("saliency", "alti"), ("lime", "alti")]


def test_a_vector_that_varies_by_one_ulp_is_not_constant():
    a = [np.array([1.0, 1.0, np.nextafter(1.0, 2.0)])]
    assert kendall(a, [np.array([1.0, 2.0, 3.0])])[0] == pytest.approx(2 / np.sqrt(6))


def test_thousands_of_texts_are_faster_than_scipy_one_by_one():
    scores = ragged(np.random.default_rng(3), texts=2000, methods=4)
    start = time.process_time()
    agreement(scores)
    ours = time.process_time() - start
    start = time.process_time()
    for i in range(100):  # a twentieth of the texts, one of the six pairs
        kendalltau(scores["m0"][i], scores["m1"][i])
        pearsonr(scores["m0"][i], scores["m1"][i])
    theirs = (time.process_time() - start) * 20 * 6
    assert ours < theirs / 5


def test_scores_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="at least two methods, got: a"):
        agreement({"a": [A]})
    with pytest.raises(ValueError, match="differ in the number"):
        agreement({"a": [A], "b": [B[:3]]})
    with pytest.raises(ValueError, match="differ in the number"):
        agreement({"a": [A], "b": [B, B]})
    with pytest.raises(ValueError, match="not finite"):
        kendall([A], [np.full(7, np.nan)])
