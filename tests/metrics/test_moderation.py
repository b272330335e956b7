import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from erlib.metrics.moderation import ALONE, Prior, moderated, moments, pool, trigamma_inverse

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("y", [1e-6, 0.01, 0.5, np.pi**2 / 6, 100.0, 1e6])
def test_the_inverse_of_trigamma_gives_back_its_argument(y):
    assert polygamma(1, trigamma_inverse(y)) == pytest.approx(y, rel=1e-9)


def test_the_prior_from_which_variances_were_drawn_is_found():
    rng = np.random.default_rng(0)
    truth = 2.0 * 6 / rng.chisquare(6, 200_000)  # d0 = 6, s0² = 2
    found = moments(truth * rng.chisquare(2, truth.size) / 2, 2.0)
    assert float(found.freedom.item()) == pytest.approx(6, rel=0.03)
    assert float(found.variance.item()) == pytest.approx(2, rel=0.02)


def test_variances_as_alike_as_sampling_makes_them_are_pooled():
    found = pool([1.0, 1.2, 0.9, 1.1, 1.0], seeds=[3, 3, 3, 3, 5])
    assert found.freedom == np.inf
    assert found.variance == pytest.approx((2 * (1.0 + 1.2 + 0.9 + 1.1) + 4 * 1.0) / 12)


def test_contrasts_without_variance_or_with_two_seeds_stay_out_of_the_pool():
    variances, seeds = [1.0, 4.0, 0.2, 9.0, 1.0], [5, 5, 5, 5, 5]
    assert pool([*variances, 0.0, 7.0], [*seeds, 5, 2]) == pool(variances, seeds)


def test_fewer_than_five_contrasts_know_nothing():
    assert pool([1.0, 4.0, 0.2, 9.0], [3] * 4) == ALONE
    assert moderated(4.0, 2, ALONE) == (4.0, 2.0)


def test_a_moderated_variance_is_smyths_and_never_below_its_own():
    prior = Prior(4.0, 3.0, np.inf)
    assert moderated(1.0, 2, prior) == (pytest.approx((4 * 3 + 2 * 1) / 6), 6.0)
    assert moderated(9.0, 2, prior) == (9.0, 6.0)
    assert moderated(1.0, 2, Prior(np.inf, 3.0, 8.0)) == (3.0, 8.0)


def test_degrees_of_freedom_stay_within_what_contrasts_with_one_baseline_leave():
    found = pool([1.0] * 9, seeds=[3] * 9)
    assert found.residual == pytest.approx(9 * 2 / (1 + 8 / 4))
    assert moderated(1.0, 2, found)[1] == pytest.approx(6)


def test_contrasts_with_one_baseline_correlate_by_a_half_and_their_variances_by_a_quarter():
    rng = np.random.default_rng(0)
    base, a, b = rng.standard_normal((3, 40_000, 5))
    s2 = [(x - base).var(axis=1, ddof=1) for x in (a, b)]
    assert np.corrcoef(*s2)[0, 1] == pytest.approx(0.25, abs=0.02)


@pytest.fixture(scope="module")
def measuring():
    return runpy.run_path(str(DOCS / "measure_verdicts.py"))


@pytest.mark.parametrize("contrasts", [8, 20])
@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_three_to_six_percent_are_wrong_and_more_is_found_than_before(measuring, contrasts, seeds):
    rng = np.random.default_rng(contrasts + seeds)
    for kind in measuring["KINDS"][:2]:
        found = measuring["simulated"](kind, contrasts, seeds, 4_000, rng).set_index("rule")
        old, new = found.loc["old: t"], found.loc["new: the larger"]
        assert 0.03 <= new["size"] <= 0.06
        assert new["power 2 SD"] >= old["power 2 SD"] - 0.005
        assert seeds > 3 or new["power 2 SD"] > old["power 2 SD"] + 0.15


def test_the_larger_variance_halves_what_moderation_does_to_a_noisy_contrast(measuring):
    rng = np.random.default_rng(0)
    by_n = {}
    for seeds in (3, 5, 10):
        found = measuring["simulated"](measuring["KINDS"][2], 20, seeds, 4_000, rng)
        by_n[seeds] = found.set_index("rule")["noisy"]
    assert by_n[3]["moderated"] > 0.18 and by_n[3]["new: the larger"] < 0.13
    assert by_n[5]["moderated"] > 0.13 and by_n[5]["new: the larger"] < 0.10
    assert by_n[10]["new: the larger"] < 0.07


def test_the_simulated_power_of_the_plain_t_test_is_the_textbooks(measuring):
    rng = np.random.default_rng(0)
    found = measuring["simulated"]("equal", 8, 5, 10_000, rng).set_index("rule").loc["old: t"]
    for effect in (1, 2):
        exact = stats.nct.sf(stats.t.isf(0.025, 4), 4, effect * np.sqrt(5))
        assert found[f"power {effect} SD"] == pytest.approx(exact, abs=0.01)


def test_the_page_shows_what_was_measured():
    drawing = runpy.run_path(str(DOCS / "draw_verdicts.py"))
    page = (DOCS / "verdicts.md").read_text(encoding="utf-8")
    assert drawing["table"](drawing["pd"].read_csv(DOCS / "verdicts.csv")) in page
    joined = drawing["pd"].read_csv(DOCS / "verdicts_joined.csv", index_col=0)
    assert drawing["joined_table"](joined) in page
