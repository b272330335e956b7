from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats as scipy_stats

from erlib.metrics import stats
from erlib.metrics.stats import Interval

D = [2.1, 0.4, 1.7, -0.3, 1.1]


def test_mean_and_std_use_the_sample_deviation():
    assert stats.mean_std([1.0, 2.0, 6.0]) == (3.0, pytest.approx(7.0**0.5))
    mean, std = stats.mean_std([4.0])
    assert mean == 4.0 and np.isnan(std)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_t_interval_and_p_are_those_of_scipy(confidence):
    found = scipy_stats.ttest_1samp(D, 0.0)
    low, high = found.confidence_interval(confidence)
    interval = stats.t_interval(D, confidence)
    assert (interval.low, interval.high) == pytest.approx((low, high), rel=1e-12)
    assert stats.t_p(D) == pytest.approx(found.pvalue, rel=1e-12)


def test_one_seed_has_no_interval_and_no_evidence():
    assert np.isnan(stats.t_interval([1.0]).low)
    assert stats.t_p([1.0]) == 1.0
    assert stats.tost_p([0.0], margin=1.0) == 1.0


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


def test_tost_p_is_below_alpha_exactly_when_the_90_percent_interval_is_inside():
    interval = stats.t_interval(D, 0.90)
    edge = max(abs(interval.low), abs(interval.high))
    assert stats.tost_p(D, edge) == pytest.approx(0.05, abs=1e-9)
    assert stats.tost_p(D, edge * 1.01) < 0.05 < stats.tost_p(D, edge * 0.99)


def test_tost_p_is_the_larger_of_two_one_sided_tests():
    lower = scipy_stats.ttest_1samp(D, -1.5, alternative="greater").pvalue
    upper = scipy_stats.ttest_1samp(D, 1.5, alternative="less").pvalue
    assert stats.tost_p(D, 1.5) == pytest.approx(max(lower, upper), rel=1e-9)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, made monotone.
    assert stats.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert stats.holm([0.6, 0.7]).tolist() == [1.0, 1.0]


def test_holm_levels_reject_what_holm_rejects():
    rng = np.random.default_rng(1)
    for _ in range(200):
        p = rng.uniform(0, 0.08, size=rng.integers(1, 7))
        assert ((p <= stats.holm_levels(p)) == (stats.holm(p) <= 0.05)).all()


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


def test_two_level_bootstrap_is_repeatable_and_moves_with_its_seed():
    values = np.random.default_rng(0).normal(1, 1, (4, 30))
    assert stats.two_level_bootstrap(values) == stats.two_level_bootstrap(values)
    assert stats.two_level_bootstrap(values) != stats.two_level_bootstrap(values, seed=1)


def test_two_level_bootstrap_by_counting_matches_drawing_texts_one_by_one():
    values = np.random.default_rng(5).normal(0.3, 1, (5, 40)) + np.arange(5)[:, None] / 4
    fast = stats.two_level_bootstrap(values)
    plain = stats.two_level_bootstrap(values, statistic=lambda rows: float(rows.mean()), seed=1)
    assert (fast.low, fast.high) == pytest.approx((plain.low, plain.high), abs=0.03)


def test_two_level_bootstrap_has_the_width_that_theory_gives():
    rng = np.random.default_rng(2)
    # No spread between seeds, one shared set of texts: the interval is that of the text mean.
    texts = rng.normal(0, 1, 400)
    same = stats.two_level_bootstrap(np.tile(texts, (3, 1)))
    assert same.high - same.low == pytest.approx(2 * 1.96 * texts.std() / 20, rel=0.05)
    # No spread between texts: the interval is that of a resampled mean of seeds.
    seeds = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    flat = stats.two_level_bootstrap(np.repeat(seeds[:, None], 50, axis=1))
    draws = rng.choice(seeds, (20_000, 6)).mean(axis=1)
    assert (flat.low, flat.high) == pytest.approx(
        tuple(np.quantile(draws, [0.025, 0.975])), abs=0.1
    )


def test_shared_texts_keep_their_spread_and_own_texts_average_it_out():
    texts = np.random.default_rng(2).normal(0, 1, 100)
    values = np.tile(texts, (9, 1))
    shared = stats.two_level_bootstrap(values, resamples=1000)
    own = stats.two_level_bootstrap(list(values), same_texts=False, resamples=1000)
    assert (own.high - own.low) * 3 == pytest.approx(shared.high - shared.low, rel=0.15)


def test_two_level_bootstrap_refuses_ragged_texts_called_the_same():
    with pytest.raises(ValueError, match="same_texts=False"):
        stats.two_level_bootstrap([[1.0, 2.0], [1.0]])


def test_undefined_texts_do_not_count():
    values = np.random.default_rng(0).normal(1, 1, (4, 30))
    holes = np.insert(values, 7, np.nan, axis=1)
    assert stats.per_seed(holes) == pytest.approx(values.mean(axis=1))
    a, b = stats.two_level_bootstrap(values), stats.two_level_bootstrap(holes)
    assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=0.05)


def test_spearman_is_that_of_scipy_with_ties():
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, y = rng.integers(0, 6, 15), rng.integers(0, 6, 15)
        assert stats.spearman(x, y) == pytest.approx(scipy_stats.spearmanr(x, y).statistic)
    assert np.isnan(stats.spearman([1, 1, 1], [1, 2, 3]))


def test_partial_spearman_is_the_correlation_of_regression_residuals_of_ranks():
    rng = np.random.default_rng(4)
    system = np.repeat(["a", "b", "c"], [8, 6, 9])
    shift = np.repeat([0.0, 3.0, 6.0], [8, 6, 9])
    x, y = rng.normal(size=23) + shift, rng.normal(size=23) + shift
    dummies = (system[:, None] == np.array(["a", "b", "c"])).astype(float)
    residuals = []
    for v in (x, y):
        ranks = scipy_stats.rankdata(v)
        residuals.append(ranks - dummies @ np.linalg.lstsq(dummies, ranks, rcond=None)[0])
    expected = np.corrcoef(*residuals)[0, 1]
    assert stats.spearman(x, y, system.tolist()) == pytest.approx(expected, abs=1e-12)
    assert stats.spearman(x, y) > expected + 0.3  # the systems' shift is what correlates


def test_spearman_of_a_resample_is_that_of_the_points_written_out():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 5, (2, 9)).astype(float)
    times = rng.multinomial(9, np.full(9, 1 / 9), 30)
    found = stats._resampled_rho(x, y, np.zeros(9, dtype=int), times.astype(float))
    for counts, rho in zip(times, found, strict=True):
        written = scipy_stats.spearmanr(np.repeat(x, counts), np.repeat(y, counts)).statistic
        assert rho == pytest.approx(written, abs=1e-12)


def test_spearman_interval_covers_about_its_share():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(60):
        x, y = rng.normal(size=(2, 25))
        hits += 0.0 in stats.spearman_interval(x, y, resamples=200)
    assert 50 <= hits <= 60


def test_points_of_several_systems_must_say_which_seed_they_are():
    with pytest.raises(ValueError, match="seeds="):
        stats.spearman_interval([1, 2, 3, 4], [1, 2, 3, 4], system=["a", "a", "b", "b"])


def test_seeds_are_drawn_whole():
    # Each seed repeated in 20 systems is no more evidence than the seed itself.
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 8))
    once = stats.spearman_interval(x, y, resamples=500)
    many = stats.spearman_interval(
        np.tile(x, 20), np.tile(y, 20), seeds=list(range(8)) * 20, resamples=500
    )
    assert many.high - many.low == pytest.approx(once.high - once.low, rel=0.02)


def test_fisher_interval_by_hand_and_without_freedom():
    # atanh(.5) = .5493; half width 1.96 · sqrt(1.06/16) = .5045
    interval = stats.fisher_interval(0.5, 19)
    assert (interval.low, interval.high) == pytest.approx(
        (np.tanh(0.5493 - 0.5045), np.tanh(0.5493 + 0.5045)), abs=1e-4
    )
    assert stats.fisher_interval(1.0, 3) == Interval(-1.0, 1.0)


def test_variance_ratio_interval_inverts_the_f_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 12), rng.normal(0, 2, 10)
    interval = stats.log_variance_ratio_interval(a, b)
    for edge, tail in ((interval.low, 0.975), (interval.high, 0.025)):
        f = a.var(ddof=1) / b.var(ddof=1) / np.exp(edge)
        assert scipy_stats.f.cdf(f, 11, 9) == pytest.approx(tail)
    assert np.isnan(stats.log_variance_ratio_interval([1, 1, 1], [1, 2, 3]).low)


def test_brown_forsythe_is_the_anova_of_distances_from_the_median():
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 12), rng.normal(0, 3, 15)
    distances = [np.abs(v - np.median(v)) for v in (a, b)]
    assert stats.brown_forsythe_p(a, b) == pytest.approx(scipy_stats.f_oneway(*distances).pvalue)
    assert stats.brown_forsythe_p([1, 1], [2, 2]) == 1.0


def test_binomial_interval_leaves_exactly_the_tails():
    interval = stats.binomial_interval(5, 15)
    assert scipy_stats.binom.sf(4, 15, interval.low) == pytest.approx(0.025, abs=1e-6)
    assert scipy_stats.binom.cdf(5, 15, interval.high) == pytest.approx(0.025, abs=1e-6)
    assert stats.binomial_interval(0, 4).low == 0.0
    with pytest.raises(ValueError, match="not a share"):
        stats.binomial_interval(3, 2)


def test_paired_bootstrap_draws_pairs():
    a = np.random.default_rng(0).normal(size=12)
    drawn = stats.paired_bootstrap(a + 1.5, a, lambda seeds: np.median(seeds, axis=1))
    assert drawn == pytest.approx(1.5)


@pytest.mark.parametrize("bad", [[], [[1.0]], [1.0, float("nan")]])
def test_values_that_are_no_finite_vector_are_refused(bad):
    with pytest.raises(ValueError, match="differences"):
        stats.sign_flip_p(bad)


def test_of_a_resample_only_the_texts_that_are_defined_count():
    values = np.full((3, 20), 5.0)
    values[:, ::4] = np.nan
    found = stats.two_level_bootstrap(values)  # whatever is drawn, the mean is 5
    assert (found.low, found.high) == (5.0, 5.0)
