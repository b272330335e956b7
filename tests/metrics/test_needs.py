import pytest
from scipy import stats
from scipy.special import logit

from erlib.metrics.estimates import Correlation, Mean, Share
from erlib.metrics.needs import Need, detectable, needed
from erlib.metrics.rules import Question, effect


@pytest.mark.parametrize(("d", "seeds"), [(0.5, 34), (0.8, 15), (1.0, 10), (1.5, 6)])
def test_the_seeds_needed_are_those_of_tables_of_power(d, seeds):
    # G*Power: t test of paired differences, two-sided .05, power .80
    assert needed(effect(1), Mean(d, 1.0, 2.0, 3)) == Need(seeds, 0)


def test_what_is_found_at_this_n_would_be_decided_with_80_percent_power():
    now = Mean(0.3, 4.0, 4.0, 5)
    found = detectable(effect(1), now)
    power = stats.nct.sf(stats.t.isf(0.025, 4), 4, found / (4 / 5) ** 0.5)
    assert power == pytest.approx(0.80, abs=1e-4)


def test_the_margin_that_could_be_met_is_that_of_two_tests():
    now = Mean(0.0, 4.0, 1e9, 4)
    margin = detectable(Question("NIL", low=-1.0, high=1.0), now)
    assert margin == pytest.approx(stats.norm.isf(0.05) + stats.norm.isf(0.10), rel=1e-3)
    one_sided = detectable(Question("NONINFERIOR", 1, low=-1.0), now)
    assert one_sided == pytest.approx(stats.norm.isf(0.05) + stats.norm.isf(0.20), rel=1e-3)


def test_texts_are_asked_for_where_texts_are_short():
    short_of_texts = Mean(2.0, 0.3, 8.0, 5, text_variance=1.0, texts=59)
    need = needed(effect(1), short_of_texts)
    assert need is not None and need.seeds == 5
    reached = short_of_texts.at(5, need.texts)
    assert (
        reached.power(0.0, 1, 0.025)
        >= 0.80
        > short_of_texts.at(5, need.texts - 1).power(0.0, 1, 0.025)
    )


def test_no_number_of_seeds_finds_nothing():
    assert needed(effect(1), Mean(0.0, 1.0, 4.0, 5)) is None
    assert needed(Question("NIL", low=-2.0, high=2.0), Mean(2.0, 1.0, 4.0, 5)) is None


def test_an_estimate_next_to_nothing_needs_what_shows_that_there_is_no_difference():
    need = needed(effect(1, 10.0), Mean(0.0, 9.0, 4.0, 5))
    assert need is not None and 5 < need.seeds < 30


def test_correlations_and_shares_need_seeds_too():
    half = 0.549
    corr = needed(Question("CORR", low=-half, high=half), Correlation(0.0, 5, 7, 14.0))
    assert corr is not None and 7 * (corr.seeds - 3) == pytest.approx((2.93 / half) ** 2, abs=7)
    share = needed(effect(-1, -1.39, rule="SHARE", null=float(logit(2 / 3))), Share(4, 10))
    assert share is not None and 15 < share.seeds < 40
