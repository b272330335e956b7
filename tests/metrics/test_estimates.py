import numpy as np
import pytest
from scipy import stats
from scipy.special import logit

from erlib.metrics.estimates import (
    Correlation,
    Evidence,
    Mean,
    Share,
    correlation_of,
    mean_of,
    text_draws,
)
from erlib.metrics.moderation import Prior

D = [1.0, 2.0, 4.0]


def test_without_pool_and_texts_the_interval_and_both_tests_are_students():
    found = mean_of(Evidence(D))
    theirs = stats.ttest_1samp(D, 0.5)
    assert (found.interval(0.95).low, found.interval(0.95).high) == pytest.approx(
        tuple(theirs.confidence_interval(0.95))
    )
    assert found.above(0.5) == pytest.approx(
        stats.ttest_1samp(D, 0.5, alternative="greater").pvalue
    )
    assert found.below(0.5) == pytest.approx(1 - found.above(0.5))


def test_the_pool_and_the_texts_make_the_variance_with_satterthwaites_freedom():
    found = mean_of(Evidence([1.0, 3.0], text_variance=0.5, texts=11), Prior(4.0, 6.0, np.inf))
    moderated = (4 * 6 + 1 * 2) / 5
    assert found.variance == pytest.approx(moderated / 2 + 0.5)
    freedom = found.variance**2 / ((moderated / 2) ** 2 / 5 + 0.5**2 / 10)
    assert found.freedom == pytest.approx(freedom)
    assert found.of_texts == pytest.approx(0.5 / found.variance)


def test_seeds_and_texts_that_vary_the_mean_are_both_in_its_interval():
    rng = np.random.default_rng(0)
    n, texts, hits = 4, 30, 0
    for _ in range(2_000):
        values = (
            rng.normal(0, 1, (n, 1)) + rng.normal(0, 4, (1, texts)) + rng.normal(0, 1, (n, texts))
        )
        by_text = values.mean(axis=0)
        variance = by_text.var(ddof=1) / texts
        found = mean_of(Evidence(values.mean(axis=1), variance, texts)).interval(0.95)
        hits += 0.0 in found
    assert 0.94 <= hits / 2_000 <= 0.98


def test_equal_differences_without_texts_are_an_identity():
    assert Evidence([0.1 + 0.2, 0.3, 0.3]).constant
    assert not Evidence([0.0, 0.0, 0.0], text_variance=1e-6, texts=50).constant
    assert not Evidence([0.0, 1e-6, 0.0]).constant


def test_beside_it_stand_the_t_interval_the_bootstrap_and_the_sign_flip():
    drawn = np.array(D) + np.random.default_rng(0).normal(0, 0.5, (4_000, 3))
    plain, both, p = Evidence(D, draws=drawn).beside()
    assert (plain.low, plain.high) == pytest.approx(
        tuple(stats.ttest_1samp(D, 0.0).confidence_interval())
    )
    assert p == 2 / 8
    within, between = 0.5**2 / 3, np.var(D) / 3  # of a mean over drawn seeds
    assert (both.high - both.low) / 3.92 == pytest.approx(np.sqrt(within + between), rel=0.1)


def test_power_is_that_of_the_noncentral_t():
    # G*Power: paired t, d = 1, n = 10, two-sided .05: .803
    assert Mean(1.0, 1.0, 9, 10).power(0.0, 1, 0.025) == pytest.approx(0.803, abs=0.001)
    assert Mean(1.0, 1.0, 9, 10).power(0.0, -1, 0.025) < 1e-5
    assert Mean(-1.0, 1.0, 9, 10).power(0.0, -1, 0.025) == pytest.approx(0.803, abs=0.001)


def test_more_seeds_and_texts_shrink_their_own_part_of_the_variance():
    now = Mean(1.0, 6.0, 2, 3, text_variance=0.4, texts=50)
    assert now.at(6, 200).variance == pytest.approx(6 / 6 + 0.4 * 50 / 200)
    assert now.at(6, 200).spread_freedom == 5


def test_a_correlation_is_pooled_by_fishers_z_with_n_minus_3():
    x = np.arange(6.0)
    points = {"a": (x, [0, 1, 2, 3, 5, 4]), "b": (x[:4], [3, 2, 1, 0]), "constant": (x, np.ones(6))}
    found = correlation_of(points)
    most = 1 - 6 / (4 * 15)  # ρ = −1 of four points, half a step inside
    z = (3 * np.arctanh(1 - 6 * 2 / (6 * 35)) - 1 * np.arctanh(most)) / 4
    assert found.mean == pytest.approx(z)
    assert (found.seeds, found.systems, found.weight) == (4, 2, 4)
    half = 1.959964 / 2
    assert found.interval(0.95).high == pytest.approx(z + half)


def test_a_correlation_errs_no_more_than_it_says():
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(1_500):
        points = {str(k): (rng.normal(size=5), rng.normal(size=5)) for k in range(7)}
        wrong += min((found := correlation_of(points)).above(0.0), found.below(0.0)) < 0.025
    assert wrong / 1_500 < 0.06


def test_a_correlation_of_three_seeds_is_refused():
    with pytest.raises(ValueError, match="four seeds"):
        correlation_of({"a": ([1, 2, 3], [1, 2, 3])})


def test_a_share_has_clopper_and_pearsons_interval_and_the_binomial_tests():
    found = Share(1, 10)
    exact = stats.binomtest(1, 10, 2 / 3)
    assert found.interval(0.95).high == pytest.approx(logit(exact.proportion_ci().high))
    assert found.below(logit(2 / 3)) == pytest.approx(
        stats.binomtest(1, 10, 2 / 3, alternative="less").pvalue
    )
    assert found.above(logit(2 / 3)) == pytest.approx(
        stats.binomtest(1, 10, 2 / 3, alternative="greater").pvalue
    )
    assert found.mean == pytest.approx(logit(1.5 / 11))


def test_three_of_three_seeds_can_never_leave_two_thirds_but_ten_can():
    level = logit(2 / 3)
    assert Share(3, 3).above(level) > 0.025 and Share(10, 10).above(level) < 0.025
    assert Share(3, 10).below(level) < 0.025


def test_each_resample_draws_as_many_texts_as_there_are():
    assert (text_draws(7).sum(axis=1) == 7).all()
    assert Correlation(0.0, 5, 2, 4.0).at(7, 0).weight == 8


def test_the_power_of_a_share_is_the_chance_of_the_counts_that_are_significant():
    """Of four seeds under one half, only all four are: P(4) = 1/16 and P(≥ 3) = 5/16."""
    found = Share(3, 4)  # its truth: 3.5 of 5
    assert found.power(0.0, 1, 0.07) == pytest.approx(0.7**4)
    assert found.power(0.0, -1, 0.07) == pytest.approx(0.3**4)
    assert found.power(0.0, 1, 0.32) == pytest.approx(0.7**4 + 4 * 0.7**3 * 0.3)
