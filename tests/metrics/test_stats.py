from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats as scipy_stats

from erlib.metrics import stats

D = [2.1, 0.4, 1.7, -0.3, 1.1]


def test_sign_flip_p_counts_all_sign_patterns():
    rng = np.random.default_rng(3)
    for n in (1, 2, 3, 5, 8):
        d = rng.normal(0.5, 1.0, n)
        means = [abs(np.mean(np.array(signs) * d)) for signs in product([1, -1], repeat=n)]
        brute = np.mean([m >= abs(d.mean()) - 1e-12 for m in means])
        assert stats.sign_flip_p(d) == pytest.approx(brute, abs=1e-12)


@pytest.mark.parametrize(("seeds", "smallest"), [(3, 0.25), (5, 0.0625)])
def test_sign_flip_p_of_a_clean_sweep_is_the_smallest_possible(seeds, smallest):
    assert stats.sign_flip_p(np.linspace(1, 2, seeds)) == smallest


def test_sign_flip_p_is_the_same_for_sums_that_differ_only_in_rounding():
    assert stats.sign_flip_p([0.1, 0.2, 0.3]) == stats.sign_flip_p([1.0, 2.0, 3.0]) == 0.25
    # 0.1 + 0.2 - 0.3 is not 0 in binary: of 8 patterns all reach the observed |sum| of 0.
    assert stats.sign_flip_p([0.1, 0.2, -0.3]) == 1.0


def test_sampled_sign_flips_agree_with_the_exact_ones():
    d = np.random.default_rng(0).normal(0.45, 1.0, 18)
    patterns = 1 - 2 * ((np.arange(2**18)[:, None] >> np.arange(18)) & 1)
    exact = (np.abs(patterns @ d) >= abs(d.sum()) - 1e-12).mean()
    assert 0.01 < exact < 0.9
    assert stats.sign_flip_p(d) == pytest.approx(exact, abs=0.02)
    assert stats.sign_flip_p(d, seed=1) == stats.sign_flip_p(d, seed=1)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, made monotone.
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.7]).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("n", [6, 13, 14, 40])
def test_the_signed_rank_test_is_scipy_s_with_ties_and_without(n, alternative):
    rng = np.random.default_rng(n)
    for d in (rng.normal(0.3, 1, n), rng.integers(1, 4, n) * rng.choice([-1, 1], n)):
        expected = scipy_stats.wilcoxon(d, alternative=alternative).pvalue
        assert stats.signed_rank_p(d, alternative) == pytest.approx(expected)


def test_the_signed_rank_test_drops_what_says_nothing():
    up = np.arange(1.0, 9.0)
    assert stats.signed_rank_p(up, "greater") == pytest.approx(1 / 2**8)  # all eight signs plus
    assert stats.signed_rank_p([*up, 0, np.nan], "greater") == stats.signed_rank_p(up, "greater")
    assert stats.signed_rank_p(-up, "greater") == 1 == stats.signed_rank_p(np.zeros(5))


def test_spearman_is_that_of_scipy_with_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 6, 15), rng.integers(0, 6, 15)
        assert stats.spearman(x, y) == pytest.approx(scipy_stats.spearmanr(x, y).statistic)
    assert np.isnan(stats.spearman([1, 1, 1], [1, 2, 3]))


@pytest.mark.parametrize("bad", [[], [[1.0]], [1.0, float("nan")]])
def test_values_that_are_no_finite_vector_are_refused(bad):
    with pytest.raises(ValueError, match="differences"):
        stats.sign_flip_p(bad)


def test_t_interval_is_that_of_scipy():
    x = [1.0, 2.5, 3.0, 4.5]
    low, high = scipy_stats.ttest_1samp(x, 0).confidence_interval(0.95)
    found = stats.t_interval(x)
    assert (found.low, found.high) == pytest.approx((low, high))
    assert np.isnan(stats.t_interval([1.0]).low)  # one seed has none
