"""Verdicts that earlier rules gave for reasons of their own: the same numbers, decided now.

Each test names the verdict of old. Seeds are those whose mean and interval were printed.
"""

import numpy as np
import pytest
from scipy import stats

from erlib.papers.evidence import Evidence, Reading, decide_claims
from erlib.reports.criteria import criteria


def seeds(mean, low, high, confidence=0.95):
    """Three seeds with this mean and t interval."""
    sd = (high - low) / 2 / stats.t.ppf((1 + confidence) / 2, 2) * 3**0.5
    return [mean - sd, mean, mean + sd]


def given(paper, claim, evidence):
    """The verdict with this evidence, by the beginning of a contrast's name."""
    names = [c.name for c in criteria(paper)[claim].contrasts]
    named = {
        name: found for name in names for start, found in evidence.items() if name.startswith(start)
    }
    assert named or not evidence
    return decide_claims(paper, lambda cell: None, {claim: named}, profile="night")[claim]


def cells(paper, claim, values):
    """The verdict from readings by (row, column)."""

    def read(cell):
        found = values.get((cell.row, cell.column))
        return None if found is None else {s: Reading(v) for s, v in enumerate(found)}

    return decide_claims(paper, read, profile="paper")[claim]


def test_er_c22_held_as_two_noises_are_alike_and_is_open():
    rng = np.random.default_rng(0)
    words = []

    def read(cell):
        if cell.table.startswith("table"):
            return {s: Reading(50 + rng.normal(0, 3)) for s in range(3)}
        return None

    for _ in range(5):
        found = decide_claims("er_lens", read, profile="night")
        words.append(found["ER-C22"].word)
    assert "holds" not in words


def test_ag_c3_failed_by_an_identity_and_is_decided_by_methods_that_differ():
    sets = ("SUBJ", "SST", "TREC", "IMDB")
    values = {("DeepLIFT vs D-SHAP", s): [1.0, 1.0, 1.0] for s in sets}
    for s in sets:
        values["DeepLIFT vs G-SHAP", s] = [0.30, 0.33, 0.31]
        values["DeepLIFT vs Int-Grad", s] = [0.25, 0.27, 0.28]
    found = cells("agreement", "AG-C3", values)
    assert found.word == "holds" and len(found.parts) == 8


def test_rx_c1_failed_by_one_pair_of_18_and_is_not_attempted():
    base = [0.40, 0.42, 0.41]
    differences = seeds(0.00848, -0.0225, 0.0395)
    values = {
        ("SST->SST|Baseline", "DeepLift"): base,
        ("SST->SST|REGEX", "DeepLift"): [b + d for b, d in zip(base, differences, strict=True)],
    }
    found = cells("regex", "RX-C1", values)
    assert found.word == "not attempted"
    assert found.reason.startswith("1 of its 18 parts are measured, fewer than half")


def test_iv_c13_failed_by_the_scale_of_an_untrained_start_which_decides_nothing():
    names = [c.name for c in criteria("ivra")["IV-C13"].contrasts]
    assert not any("oftmax" in name for name in names)
    assert given("ivra", "IV-C13", {}).word == "not attempted"


@pytest.mark.parametrize(("claim", "mean", "low", "high"), [
    ("SL-C3", 0.2086, 0.0124, 0.4048), ("SL-C4", 0.3785, 0.0509, 0.7061),
])  # fmt: skip
def test_sl_c3_and_c4_failed_on_one_set_and_are_not_attempted(claim, mean, low, high):
    differences = seeds(mean, low, high)
    values = {
        ("Baseline|a", "SST"): [0.5] * 3,
        ("SaLoss|a", "SST"): [0.5 + d for d in differences],
        **{(f"SaLoss|{method}", "SST"): [0.5] * 3 for method in ("xGx", "aGa", "IG")},
    }
    assert cells("saloss", claim, values).word == "not attempted"


def test_rx_c8_held_as_three_pairs_of_three_models_and_needs_a_fourth():
    low, middle, high = seeds(0.114, 0.00462, 0.223)
    pairs = {("Init#1", "Init#2"): low, ("Init#1", "Init#3"): middle, ("Init#2", "Init#3"): high}
    values = {}
    for (one, other), gain in pairs.items():
        values[f"{one}|Baseline", other] = [0.36]
        values[f"{one}|REGEX", other] = [0.36 + gain]
    found = cells("regex", "RX-C8", values)
    assert found.word == "not attempted"
    assert found.reason == "3 of the 4 models that it takes are measured."


def test_iv_c3_held_on_imdb_alone_and_is_not_attempted():
    base = [0.80, 0.82, 0.81]
    values = {
        ("ELECTRA|IvRA - Softmax", "IMDb"): base,
        ("ELECTRA|IvRA - Sparsemax", "IMDb"): [
            b + d for b, d in zip(base, seeds(0.0711, 0.0585, 0.0838), strict=True)
        ],
    }
    found = cells("ivra", "IV-C3", values)
    assert found.word == "not attempted"
    assert found.reason == "1 of its 3 cells are measured, fewer than half."


def test_iv_c10_failed_by_an_interval_from_0_to_0_which_is_an_identity():
    same = Evidence([0.0, 0.0, 0.0])
    found = given("ivra", "IV-C10", {"SUFF": same, "COMP": same, "CONS": same})
    assert found.word == "not attempted"
    assert "an identity, which decides nothing" in found.reason


def test_er_c4_held_in_direction_only_as_its_margin_stood_above_what_can_be_reached():
    low = [68.8, 68.9, 68.7]
    gains = seeds(11.432, 5.3039, 17.5602, 0.975)
    values = {
        ("Baseline", "SST-Dev/ATT"): low,
        ("ER+Att", "SST-Dev/ATT"): [b + g for b, g in zip(low, gains, strict=True)],
        ("Lexpl(A)", "SST-Dev/ATT"): [b + 14.8 for b in low],
    }
    for other in ("Movies/ATT", "Yelp-50/ATT"):
        values["Baseline", other] = [50.0, 50.1, 50.2]
        values["ER+Att", other] = [70.0, 70.2, 70.1]
    assert cells("er_lens", "ER-C4", values).word == "holds"


def test_er_c15_held_though_the_gain_out_of_domain_was_not_the_weaker():
    spread = np.array([-1.0, 0.0, 1.0])
    gains = {
        "SST-Dev/ATTR": 27.0, "Movies/ATTR": 28.7, "Yelp-50/ATTR": 28.7,
        "SST-Dev/IXG": 19.2, "Movies/IXG": 24.3, "Yelp-50/IXG": 24.3,
    }  # fmt: skip
    values = {}
    for column, gain in gains.items():
        system = "ER-C+AttR" if column.endswith("ATTR") else "ER-C+IxG"
        values["Baseline", column] = list(40 + 0 * spread)
        values[system, column] = list(40 + gain + spread * (0.5 if "SST" in column else -0.5))
    found = cells("er_lens", "ER-C15", values)
    words = [part.tested.word for part in found.parts]
    assert words[:4] == ["holds"] * 4
    assert found.word == "fails" and found.part.name == "IXG weaker than in domain"


def test_er_c16_held_in_56_to_76_percent_without_any_shift_and_hardly_ever_does():
    rng = np.random.default_rng(0)
    old = new = 0
    for _ in range(300):
        shifts = rng.normal(0.0, 3.0, (3, 4)) + rng.normal(0.0, 1.0, (3, 1))  # [seed, layer]
        sizes = np.abs(shifts).mean(axis=1)
        old += stats.ttest_1samp(sizes, 0.0).pvalue < 0.05
        moved = {"ER-C+AttR": Evidence(shifts.mean(axis=1))}
        part = given("er_lens", "ER-C16", moved).parts[0]
        new += part.tested.word.startswith("holds")
    assert old / 300 > 0.5 and new / 300 < 0.05


@pytest.mark.parametrize(
    ("gain", "verdict"), [(0.0314, "holds"), (0.05, "holds"), (-0.05, "fails")]
)
def test_ag_c7_counted_a_gain_against_costing_at_most_three_points(gain, verdict):
    evidence = {"mean of all": Evidence([gain - 0.005, gain, gain + 0.005])}
    assert given("agreement", "AG-C7", evidence).word == verdict


def test_er_c10_held_by_a_rank_correlation_of_minus_1_far_from_the_bound():
    ratio = np.log(0.0733 / 0.052)
    close = Evidence([np.log(1.01), np.log(1.02), np.log(1.0)])
    rise = Evidence([0.1, 0.11, 0.12])
    evidence = {
        "figure-5 expl_loss: Lexpl(A)": close,
        "figure-12": close,
        "figure-5 cross_entropy": rise,
        "figure-5 expl_loss: Lexpl(R)": Evidence([ratio - 0.02, ratio, ratio + 0.02]),
    }
    found = given("er_lens", "ER-C10", evidence)
    assert found.word == "fails" and found.part.ours == pytest.approx(0.0733 / 0.052)
    assert "lies above 1.1" in found.reason


def test_ag_c9_had_an_interval_from_minus_8_to_8_of_a_correlation():
    two = Evidence([1.2, -0.9], base=0.5)
    found = given(
        "agreement", "AG-C9", {c.name: two for c in criteria("agreement")["AG-C9"].contrasts}
    )
    assert found.word == "not attempted"
    wide = Evidence([1.2, -0.9, 0.1], base=0.5)
    part = given("agreement", "AG-C9", {"table4 SUBJ|Easy": wide}).parts[0]
    interval = part.interval(0.95)
    assert interval.low + 0.5 >= -1 and interval.high + 0.5 <= 1


def test_ag_c11_had_an_interval_from_minus_2_3_to_1_2_of_a_correlation():
    z = Evidence(np.arctanh([-0.9, -0.5, 0.1]), base=0.0)
    part = given("agreement", "AG-C11", {"Grad norm|*|variability": z}).parts[2]
    assert -1 < part.interval(0.95).low < part.interval(0.95).high < 1


def test_er_c3_said_of_a_ratio_from_007_to_104_that_it_has_0_in_it():
    few = {("Baseline", s): [90.0, 91.0, 92.5] for s in ("Movies", "Yelp", "IMDB", "Amazon-M-TV")}
    few |= {("ER+Att", s): [90.1, 91.0, 92.2] for _, s in few}
    found = cells("er_lens", "ER-C3", few)
    assert found.word == "not attempted" and found.reason == (
        "3 of the 8 seeds that it takes are measured."
    )
    rng = np.random.default_rng(1)
    many = {key: list(rng.normal(90, 1, 9)) for key in few}
    assert "includes 1" in cells("er_lens", "ER-C3", many).reason


def test_sl_c9_had_a_share_of_cells_with_an_interval_of_191_percent():
    evidence = {
        c.name: Evidence([-0.055, -0.045, -0.05]) for c in criteria("saloss")["SL-C9"].contrasts
    }
    found = given("saloss", "SL-C9", evidence)
    assert found.word == "holds" and found.part.interval(0.95).low > -0.1


def test_er_c14_was_undecided_by_one_seed_of_one_part_though_others_refute_it():
    names = [c.name for c in criteria("er_lens")["ER-C14"].contrasts]
    refuted = Evidence([6.7, 6.8, 6.9])
    found = given(
        "er_lens", "ER-C14", {names[0]: refuted, names[3]: refuted, names[1]: Evidence([0.1])}
    )
    assert found.word == "fails" and found.part.name == names[0]


def test_er_c6_was_short_of_texts_and_says_so():
    names = [c.name for c in criteria("er_lens")["ER-C6"].contrasts]
    nil = Evidence([0.1, 0.2, 0.0])
    short = Evidence([2.9, 3.2, 3.5], text_variance=0.95**2, texts=59)
    found = given("er_lens", "ER-C6", dict.fromkeys(names, nil) | {names[1]: short})
    assert found.word not in ("holds", "holds (direction)", "fails")
    assert "Texts, not seeds, are short" in found.reason and "in place of 59" in found.reason


def test_ag_c1_was_undecided_by_holm_over_40_cells_and_holds():
    names = [c.name for c in criteria("agreement")["AG-C1"].contrasts]
    rng = np.random.default_rng(0)
    evidence = {name: Evidence(0.22 + rng.normal(0, 0.03, 3), base=0.4) for name in names}
    assert given("agreement", "AG-C1", evidence).word.startswith("holds")
