import numpy as np
import pytest
from scipy.special import logit

from erlib.metrics.estimates import Correlation, Mean, Share
from erlib.metrics.rules import NOT_ATTEMPTED, WORDS, Outcome, Question, decide, effect, join

INFINITE = 1e9  # degrees of freedom: intervals are the normal's, ± 1.96 · error


def found(mean: float, error: float = 1.0) -> Mean:
    return Mean(mean, error**2 * 4, INFINITE, 4)


def word(question: Question, mean: float, error: float = 1.0) -> str:
    return decide(question, found(mean, error)).word


@pytest.mark.parametrize(("mean", "error", "verdict"), [
    (5.1, 1.0, "holds"),
    (4.9, 1.0, "holds (direction)"),
    (2.5, 1.0, "holds (direction)"),
    (-2.5, 1.0, "fails"),
    (1.5, 1.0, "leans with"),
    (-1.5, 1.0, "leans against"),
    (1.2, 1.0, "open"),
    (0.1, 0.5, "no difference"),
    (1.5, 0.5, "no difference"),  # on the side, but within a quarter of 10
    (-1.5, 0.5, "no difference"),
    (6.0, 4.0, "leans with"),
])  # fmt: skip
def test_an_effect_of_ten_is_asked(mean, error, verdict):
    assert word(effect(1, 10.0), mean, error) == verdict
    assert word(effect(-1, -10.0), -mean, error) == verdict


def test_without_a_printed_effect_the_side_alone_decides():
    assert word(effect(1), 2.0) == "holds"
    assert word(effect(1), -2.0) == "fails"
    assert word(effect(1), 0.01, 0.001) == "holds"
    assert word(effect(1), 0.0, 0.001) == "open"


@pytest.mark.parametrize(("mean", "error", "verdict"), [
    (0.0, 1.0, "holds"), (1.3, 1.0, "holds"), (1.6, 1.0, "leans with"), (2.5, 1.0, "open"),
    (5.0, 1.0, "fails"), (-5.0, 1.0, "fails"), (4.5, 1.0, "leans against"), (0.0, 3.0, "open"),
])  # fmt: skip
def test_no_effect_is_two_one_sided_tests(mean, error, verdict):
    assert word(Question("NIL", low=-3.0, high=3.0), mean, error) == verdict


def test_an_interval_that_includes_zero_shows_nothing():
    assert word(Question("NIL", low=-3.0, high=3.0), 0.0, 5.0) == "open"


def test_a_gain_is_no_evidence_against_costing_at_most_three():
    question = Question("NONINFERIOR", 1, low=-3.0)
    assert [word(question, m) for m in (50.0, 0.0, -1.5, -3.0, -4.5, -5.1)] == [
        "holds", "holds", "leans with", "open", "leans against", "fails",
    ]  # fmt: skip
    assert word(Question("NONINFERIOR", -1, high=3.0), -50.0) == "holds"


def test_no_relation_is_equivalence_first_and_fails_if_zero_is_excluded():
    half = float(np.arctanh(0.5))
    question = Question("CORR", low=-half, high=half)
    few, many = 20.0, 400.0
    assert decide(question, Correlation(0.0, 5, 10, few)).word == "holds"
    assert decide(question, Correlation(0.3, 5, 10, many)).word == "holds"
    assert decide(question, Correlation(0.6, 5, 10, few)).word == "fails"
    assert decide(question, Correlation(0.35, 5, 10, few)).word == "leans against"
    assert decide(question, Correlation(0.2, 5, 3, 6.0)).word == "open"


def test_a_share_of_seeds_below_two_thirds_of_which_the_paper_has_a_third():
    question = effect(-1, logit(1 / 3) - logit(2 / 3), rule="SHARE", null=float(logit(2 / 3)))
    verdicts = [decide(question, Share(x, 10)).word for x in (1, 3, 5, 10)]
    assert verdicts == ["holds", "holds", "open", "fails"]
    assert decide(question, Share(3, 3)).word == "open"


def part(mean: float, error: float = 1.0) -> Outcome:
    return decide(effect(1, 10.0), found(mean, error))


def test_a_conjunction_holds_if_every_part_holds_at_its_own_level():
    assert join([part(6.0)] * 10).word == "holds"
    assert part(5.1, 2.5).claimed > 0.0025 / 2  # which Holm over ten parts would not let pass
    joined = join([part(5.1, 2.5), *[part(8.0)] * 9])
    assert (joined.word, joined.part, joined.measured) == ("holds", 0, 10)


def test_it_holds_in_direction_if_the_weakest_part_does():
    assert join([part(8.0), part(3.0), part(9.0)]).word == "holds (direction)"
    assert join([part(8.0), part(3.0), part(9.0)]).part == 1


def test_it_fails_if_a_part_fails_at_holms_level_and_leans_otherwise():
    assert join([part(8.0)] * 9 + [part(-4.0)]).word == "fails"
    barely = part(-2.2)
    assert barely.word == "fails"
    assert join([barely]).word == "fails"
    assert join([part(8.0)] * 3 + [barely]).word == "leans against"
    assert join([part(8.0)] * 9 + [barely]).word == "open"


def test_one_part_without_a_difference_contradicts_every():
    assert join([part(8.0), part(0.0, 0.3)]).word == "no difference"


def test_an_undecided_part_leaves_a_conjunction_undecided():
    assert join([part(8.0), part(1.5)]).word == "leans with"
    assert join([part(8.0), part(1.2)]).word == "open"
    assert join([part(8.0), part(1.2)]).part == 1


def test_fewer_than_half_of_the_parts_are_no_attempt_whatever_they_say():
    assert join([part(8.0), *[NOT_ATTEMPTED] * 2]).word == "not attempted"
    assert join([part(8.0), NOT_ATTEMPTED]).word == "holds"
    assert join([part(8.0), NOT_ATTEMPTED]).measured == 1


def test_a_part_that_was_not_attempted_does_not_hide_one_that_fails():
    assert join([NOT_ATTEMPTED, part(-8.0)]).word == "fails"


def test_ten_true_effects_are_found_without_holm_and_were_not_with_it():
    rng = np.random.default_rng(0)

    def share_found(seeds: int) -> float:
        verdicts = []
        for _ in range(400):
            draws = rng.normal(4.0, 1.0, (10, seeds))
            parts = [
                decide(effect(1), Mean(d.mean(), d.var(ddof=1), seeds - 1.0, seeds)) for d in draws
            ]
            verdicts.append(join(parts).word == "holds")
        return float(np.mean(verdicts))

    assert share_found(3) == pytest.approx(0.38, abs=0.06)  # with Holm .02
    assert share_found(5) > 0.99


def test_a_conjunction_with_one_false_part_holds_no_more_often_than_its_level():
    rng = np.random.default_rng(0)
    wrong = []
    for _ in range(2_000):
        draws = [rng.normal(mean, 1.0, 5) for mean in (9.0, 9.0, 9.0, 0.0)]
        parts = [decide(effect(1), Mean(d.mean(), d.var(ddof=1), 4.0, 5)) for d in draws]
        wrong.append(join(parts).word == "holds")
    assert np.mean(wrong) <= 0.035


def test_best_of_several_with_equal_truths_holds_rarely_and_against_each_not_their_maximum():
    rng = np.random.default_rng(0)
    others = rng.normal(0.0, 1.0, (2_000, 3, 5))
    best = rng.normal(1.5, 1.0, (2_000, 5))
    against_each = [
        join(
            [decide(effect(1), Mean((b - o).mean(), (b - o).var(ddof=1), 4.0, 5)) for o in three]
        ).word
        for b, three in zip(best[:400], others[:400], strict=True)
    ]
    maximum = (best - others.max(axis=1)).mean()
    assert maximum < 1.0  # the old contrast: biased by a third of the effect
    assert "fails" not in against_each


def test_every_verdict_has_its_place_in_the_list():
    assert {
        word(effect(1, 10.0), m, e) for m in np.linspace(-9, 9, 19) for e in (0.5, 1, 3)
    } <= set(WORDS)


def test_no_difference_of_one_part_among_many_is_tested_at_holms_level():
    barely = part(1.0, 0.9)  # 90 % interval −.48 to 2.48, within ±2.5
    assert barely.word == "no difference" and barely.nil > 0.025
    assert join([barely]).word == "no difference"
    assert join([part(8.0), barely]).word == "open"
