from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import stats as scipy_stats

from erlib.metrics.task import f1_difference
from erlib.metrics.verdicts import (
    Decision,
    combine,
    decide_corr,
    decide_nil,
    decide_pair,
    decide_parts,
    decide_quartile,
    decide_share,
    decide_spread,
)


def seeds(mean: float, half: float, n: int = 5) -> np.ndarray:
    """n differences whose 95% t interval is exactly mean ± half."""
    z = np.linspace(-1, 1, n)
    z /= z.std(ddof=1)
    return mean + z * half * np.sqrt(n) / scipy_stats.t.ppf(0.975, n - 1)


@pytest.mark.parametrize(
    ("mean", "half", "verdict"),
    [
        (5.01, 4.0, "holds"),  # clear of 0 and at least half of 10
        (4.99, 4.0, "holds (direction)"),  # clear of 0, less than half
        (4.0, 4.01, "inconclusive"),  # 0 in it
        (0.0, 2.49, "fails"),  # inside a quarter
        (0.0, 2.51, "inconclusive"),
        (1.0, 0.5, "fails"),  # above 0, but inside a quarter: next to nothing
        (2.0, 0.6, "holds (direction)"),  # above 0, reaching beyond a quarter
        (-3.0, 2.9, "fails"),  # the other side
        (-3.0, 3.1, "inconclusive"),
    ],
)
def test_pair_verdicts_at_their_boundaries(mean, half, verdict):
    decision = decide_pair(seeds(mean, half), paper_effect=10.0)
    assert decision.verdict == verdict
    assert (decision.ci_low, decision.ci_high) == pytest.approx((mean - half, mean + half))
    mirrored = decide_pair(-seeds(mean, half), paper_effect=-10.0)
    assert mirrored.verdict == verdict


def test_pair_margin_replaces_half_the_effect_but_not_the_nil_zone():
    d = seeds(3.0, 1.0)
    assert decide_pair(d, paper_effect=10.0).verdict == "holds (direction)"
    assert decide_pair(d, paper_effect=10.0, margin=3.0).verdict == "holds"
    assert decide_pair(seeds(1.0, 0.5), paper_effect=10.0, margin=0.5).verdict == "fails"


def test_pair_without_a_printed_effect_needs_side_and_margin():
    assert decide_pair(seeds(-3.0, 1.0), side=-1, margin=2.0).verdict == "holds"
    assert decide_pair(seeds(-3.0, 1.0), side=1, margin=2.0).verdict == "fails"
    assert decide_pair(seeds(0.1, 0.05), side=1, margin=0.0).verdict == "holds"
    with pytest.raises(ValueError, match="side"):
        decide_pair([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="contradicts"):
        decide_pair([1.0, 2.0, 3.0], paper_effect=2.0, side=-1)
    with pytest.raises(ValueError, match="decide_nil"):
        decide_pair([1.0, 2.0, 3.0], paper_effect=0.0)


@pytest.mark.parametrize("d", [[50.0], [50.0, 50.0]])
def test_fewer_than_three_seeds_are_always_inconclusive(d):
    treated, baseline = np.array(d), np.zeros(len(d))
    for decision in (
        decide_pair(d, paper_effect=1.0),
        decide_pair([-50.0] * len(d), paper_effect=1.0),
        decide_nil(d, 1.0),
        decide_nil([0.0] * len(d), 1.0),
        decide_corr(d, d),
        decide_spread(treated, baseline, paper_ratio=0.5),
        decide_quartile(treated, baseline, paper_effect=1.0),
        decide_share(len(d), len(d), paper_share=0.9, limit=0.001),
        decide_parts({"a": partial(decide_pair, d, paper_effect=1.0)}),
    ):
        assert decision.verdict == "inconclusive"
        assert decision.n == len(d)
        assert "fewer than 3" in decision.reason


def test_three_seeds_can_decide():
    assert decide_pair([10.0, 10.5, 11.0], paper_effect=10.0).verdict == "holds"


@pytest.mark.parametrize(
    ("mean", "half", "verdict"),
    [
        (0.0, 1.9, "holds"),
        (0.0, 2.5, "holds"),  # the 90% interval is narrower: 2.5 · 2.132/2.776 = 1.92
        (0.0, 2.7, "inconclusive"),  # 2.07 > 2
        (1.0, 1.2, "holds"),
        (3.0, 1.01, "inconclusive"),
        (3.0, 0.99, "fails"),
        (-3.0, 0.99, "fails"),
    ],
)
def test_nil_verdicts_at_their_boundaries(mean, half, verdict):
    decision = decide_nil(seeds(mean, half), 2.0)
    assert decision.verdict == verdict
    assert (decision.p < 0.05) == (verdict == "holds")
    assert (decision.ci_low, decision.ci_high) == pytest.approx((mean - half, mean + half))


def test_nil_needs_a_margin_above_zero():
    with pytest.raises(ValueError, match="above 0"):
        decide_nil([1.0, 2.0, 3.0], 0.0)


def test_texts_that_vary_widely_keep_few_seeds_from_deciding():
    rng = np.random.default_rng(0)
    texts = rng.normal(0, 20, 30)
    texts += 5 - texts.mean()
    per_text = np.tile(texts, (3, 1)) + np.array([[-0.1], [0.0], [0.1]])
    d = per_text.mean(axis=1)
    alone = decide_pair(d, paper_effect=5.0)
    both = decide_pair(d, paper_effect=5.0, per_text=per_text)
    assert alone.verdict == "holds" and both.verdict == "inconclusive"
    assert both.ci_low < 0 < alone.ci_low
    assert "two-level bootstrap" in both.reason and "two-level bootstrap" not in alone.reason


def test_from_ten_seeds_the_t_interval_is_enough():
    rng = np.random.default_rng(0)
    per_text = rng.normal(5, 20, (10, 30))
    d = per_text.mean(axis=1)
    with_texts = decide_pair(d, paper_effect=5.0, per_text=per_text)
    assert with_texts == decide_pair(d, paper_effect=5.0)


def test_where_texts_are_few_they_count_with_any_number_of_seeds():
    rng = np.random.default_rng(0)
    texts = rng.normal(0, 20, 30)
    per_text = np.tile(texts - texts.mean(), (12, 1)) + rng.normal(0, 0.1, (12, 1))
    d = per_text.mean(axis=1)  # twelve seeds agree, but on thirty texts that scatter
    by_seeds = decide_nil(d, 3.0, per_text=per_text)
    by_both = decide_nil(d, 3.0, per_text=per_text, few_texts=True)
    assert (by_seeds.verdict, by_both.verdict) == ("holds", "inconclusive")
    error = texts.std() / np.sqrt(30)
    assert by_both.ci_high - by_both.ci_low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_per_text_values_of_another_quantity_are_refused():
    with pytest.raises(ValueError, match="per-seed values"):
        decide_pair([1.0, 2.0, 3.0], paper_effect=1.0, per_text=np.zeros((3, 4)))


def test_f1_differences_bootstrap_through_their_own_statistic():
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 80)
    rows = []
    for _ in range(3):
        a = np.where(rng.random(80) < 0.6, gold, 1 - gold)
        b = np.where(rng.random(80) < 0.95, gold, 1 - gold)
        rows.append(np.stack([gold, a, b], axis=1))
    d = [f1_difference(r) for r in np.array(rows, dtype=float)]
    decision = decide_pair(d, paper_effect=30.0, per_text=rows, statistic=f1_difference)
    assert decision.verdict == "holds"
    assert decision.ci_low < np.mean(d) < decision.ci_high


def test_corr_holds_for_independent_points_and_fails_for_related_ones():
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=(2, 60))
    system, ids = ["a", "b", "c", "d"] * 15, [i for i in range(15) for _ in range(4)]
    assert decide_corr(x, noise, system=system, seeds=ids).verdict == "holds"
    related = decide_corr(x, x + 0.5 * noise, system=system, seeds=ids)
    assert related.verdict == "fails" and related.estimate > 0.6 and related.n == 15


def test_corr_takes_the_systems_out():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 60))
    shift = np.tile([0.0, 5.0, 10.0, 15.0], 15)
    system, ids = ["a", "b", "c", "d"] * 15, [i for i in range(15) for _ in range(4)]
    assert decide_corr(x + shift, y + shift).verdict == "fails"
    assert decide_corr(x + shift, y + shift, system=system, seeds=ids).verdict == "holds"


def test_corr_with_few_points_is_inconclusive_even_on_a_line():
    assert decide_corr([1, 2, 3], [1, 2, 3]).verdict == "inconclusive"
    assert decide_corr([1, 2, 3], [5, 5, 5]).verdict == "inconclusive"


def test_spread_by_a_ratio_of_variances():
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(0, 4, 15), rng.normal(0, 1, 15)
    holds = decide_spread(narrow, wide, paper_ratio=0.31)
    assert holds.verdict == "holds" and holds.ci_low < holds.estimate < holds.ci_high < 1
    assert holds.estimate == pytest.approx(narrow.var(ddof=1) / wide.var(ddof=1))
    assert decide_spread(wide, narrow, paper_ratio=0.31).verdict == "fails"
    assert decide_spread(wide, wide[::-1] + 1, paper_ratio=0.31).verdict == "inconclusive"


def test_quartile_sees_fewer_bad_seeds():
    baseline = np.array([60, 60, 61, 61, 62, 62, 64, 66, 91, 91, 92, 92.0])
    treated = np.array([85, 85, 85, 85, 86, 86, 86, 87, 91, 91, 92, 92.0])
    assert decide_quartile(treated, baseline, side=1, margin=1.0).verdict == "holds"
    assert decide_quartile(treated[:9], baseline[:9], side=1, margin=1.0).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("successes", "trials", "verdict"),
    [
        (10, 30, "holds"),
        (0, 30, "holds (direction)"),  # [0, .116]: below 2/3, without 1/3
        (30, 30, "fails"),
        (8, 15, "inconclusive"),
    ],
)
def test_share_verdicts(successes, trials, verdict):
    decision = decide_share(successes, trials, paper_share=1 / 3, limit=2 / 3)
    assert decision.verdict == verdict


def made(verdict: str, interval_p: float = 0.5, n: int = 5) -> Decision:
    return Decision(1.0, 0.0, 2.0, n, 0.5, verdict, "because", interval_p)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "every", "most"),
    [
        ("HHH", "holds", "holds"),
        ("HHD", "holds (direction)", "holds"),
        ("HDD", "holds (direction)", "holds (direction)"),
        ("HHI", "inconclusive", "holds"),
        ("HDI", "inconclusive", "holds (direction)"),
        ("HHF", "fails", "holds"),
        ("HFF", "fails", "fails"),
        ("HIF", "fails", "inconclusive"),
        ("HF", "fails", "inconclusive"),
    ],
)
def test_parts_combine_as_documented(parts, every, most):
    names = {"H": "holds", "D": "holds (direction)", "I": "inconclusive", "F": "fails"}
    decisions = {f"{i}": made(names[c]) for i, c in enumerate(parts)}
    assert combine(decisions).verdict == every
    assert combine(decisions, need="most").verdict == most


def test_the_deciding_part_is_the_weakest_that_holds_or_the_clearest_that_fails():
    held = combine({"a": made("holds", 0.001), "b": made("holds", 0.04)})
    assert held.part == "b" and "decided by b" in held.reason
    failed = combine({"a": made("fails", 0.04), "b": made("fails", 0.001), "c": made("holds", 0.0)})
    assert failed.part == "b" and failed.verdict == "fails"
    assert combine({"a": made("holds", n=5), "b": made("holds", n=3)}).n == 3


def test_holm_within_a_claim_widens_the_intervals():
    p_of = decide_pair(seeds(5.0, 4.5), paper_effect=5.0)
    assert p_of.verdict == "holds" and 0.025 < p_of.interval_p < 0.05
    alike = {name: partial(decide_pair, seeds(5.0, 4.5), paper_effect=5.0) for name in "ab"}
    together = decide_parts(alike)
    assert together.verdict == "inconclusive"
    assert together.confidence == pytest.approx(0.975)
    # Beside a part that Holm rejects first, the other is tested at the full level.
    alike["a"] = partial(decide_pair, seeds(5.0, 1.0), paper_effect=5.0)
    assert decide_parts(alike).verdict == "holds"


def test_a_claim_may_mix_rules():
    claim = decide_parts(
        {
            "layer 11": partial(decide_pair, seeds(20.0, 2.0), paper_effect=40.0, margin=5.0),
            "layer 0": partial(decide_nil, seeds(0.1, 0.5), 5.0),
        }
    )
    assert claim.verdict == "holds" and set(claim.parts) == {"layer 11", "layer 0"}


def test_the_false_alarm_rate_of_pair_is_about_alpha():
    rng = np.random.default_rng(0)
    found = [
        decide_pair(rng.normal(0, 1, 5), side=1, margin=0.0).verdict in ("holds", "fails")
        for _ in range(400)
    ]
    assert 0.02 < np.mean(found) < 0.09
