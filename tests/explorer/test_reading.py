from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import torch

from erlib.attributions import METHODS, attribute
from erlib.explorer.models import Model
from erlib.explorer.reading import Reading, is_slow, label, places, predict
from erlib.explorer.texts import typed
from erlib.explorer.worker import Stopped
from tests import tiny

SENTENCE = "the plot is bad and unfunny"


def model(**options):
    classifier = tiny.classifier(**options)
    return Model("tiny", classifier, ("no", "yes") if classifier.task == "classify" else ())


def read(methods=("attention", "input_x_gradient", "deeplift"), text=SENTENCE, **options):
    reading = Reading(model(**options), typed(text))
    for method in methods:
        reading.explain(method)
    reading.measure(methods)
    return reading


def test_the_prediction_is_the_softmax_of_the_logits_with_the_likeliest_class_first():
    this = model()
    with torch.no_grad():
        logits = this.classifier.forward(tiny.inputs(this.classifier, [SENTENCE])).logits[0]
    p = dict(zip(this.classes, torch.softmax(logits, 0).tolist(), strict=True))
    answers = predict(this, typed(SENTENCE)).answers
    assert dict(answers) == pytest.approx(p, abs=1e-6)
    assert [name for name, _ in answers] == sorted(p, key=p.get, reverse=True)


def test_one_logit_is_shown_as_two_classes():
    answers = predict(model(head="agreement"), typed(SENTENCE)).answers
    assert {name for name, _ in answers} == {"no", "yes"}
    assert sum(p for _, p in answers) == pytest.approx(1)


def test_a_question_is_answered_with_words_of_the_passage_or_none():
    this = model(task="span")
    [(answer, p)] = predict(this, typed("which ?", "the plot is bad")).answers
    assert 0 < p <= 1
    assert answer == "no answer" or answer in "which ? the plot is bad"


def test_a_removed_word_is_as_if_it_had_never_been_typed():
    this = model()
    left = predict(this, typed("the plot is not bad").without({(0, 3)}))
    assert left == predict(this, typed("the plot is bad"))


@pytest.mark.parametrize("level", ["word", "token"])
def test_scores_are_those_of_attribute_at_either_level(level):
    reading = read(["input_x_gradient"])
    shown = reading.at(level)["input_x_gradient"]
    [expected] = attribute(reading.model.classifier, [SENTENCE], "input_x_gradient", level=level)
    assert shown.tokens == expected.tokens
    assert shown.scores == pytest.approx(expected.scores, rel=1e-5)


def test_every_piece_of_a_word_has_the_word_s_place_and_specials_have_none():
    reading = read(["attention"])
    named = places(reading.at("token")["attention"])
    assert named[0] == named[-1] == "" and named.count("0:5") == len("unfunny")
    assert places(reading.at("word")["attention"]) == [f"0:{i}" for i in range(6)]


@pytest.mark.parametrize("level", ["word", "token"])
def test_agreement_is_pearson_above_and_kendall_below_the_diagonal(level):
    reading = read()
    table, shown = reading.agreement(level), reading.at(level)
    real = [not special for special in shown["attention"].special]
    a, b = (np.abs(shown[m].scores[real]) for m in ("attention", "deeplift"))
    assert table.loc["attention", "deeplift"] == pytest.approx(scipy.stats.pearsonr(a, b)[0])
    assert table.loc["deeplift", "attention"] == pytest.approx(scipy.stats.kendalltau(a, b)[0])
    assert np.isnan(np.diag(table)).all()


def test_curves_end_where_everything_is_kept_or_removed():
    reading = read()
    classifier, frame = reading.model.classifier, reading.curves()
    whole = reading.prediction.answers[0][1]
    assert frame["p_full"].to_numpy() == pytest.approx(whole)
    last = frame[frame["bin"] == 100]
    assert last["p_kept"].to_numpy() == pytest.approx(whole)
    ids = [classifier.tokenizer.cls_token_id, classifier.tokenizer.sep_token_id]
    inputs = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, 2)}
    with torch.no_grad():
        bare = classifier.forward(inputs).logits.softmax(-1)[0]
    winner = reading.model.classes.index(reading.prediction.answers[0][0])
    assert last["p_removed"].to_numpy() == pytest.approx(bare[winner].item(), abs=1e-5)


def test_the_class_asked_for_is_explained_and_measured_and_not_the_predicted_one():
    this = model()
    winner = predict(this, typed(SENTENCE)).answers[0][0]
    [other] = set(this.classes) - {winner}
    reading = Reading(this, typed(SENTENCE), other)
    reading.explain("input_x_gradient")
    reading.measure(["input_x_gradient"])
    index = this.classes.index(other)
    [expected] = attribute(
        this.classifier, [SENTENCE], "input_x_gradient", target=index, level="token"
    )
    assert reading.target == other
    assert reading.explained["input_x_gradient"].scores == pytest.approx(expected.scores, rel=1e-5)
    p = dict(reading.prediction.answers)[other]
    assert reading.curves()["p_full"].to_numpy() == pytest.approx(p)
    assert Reading(this, typed(SENTENCE), "of another model").target == winner


def test_faithfulness_is_the_mean_of_the_curves():
    reading = read(["attention"])
    frame = reading.curves()
    found = reading.faithfulness().loc["attention"]
    full, kept, removed = (frame[name].tolist() for name in ("p_full", "p_kept", "p_removed"))
    n = len(full)
    assert found["comprehensiveness"] == pytest.approx((sum(full) - sum(removed)) / n)
    assert found["sufficiency"] == pytest.approx((sum(full) - sum(kept)) / n)
    assert found["difference"] == pytest.approx((sum(kept) - sum(removed)) / n)


def test_measuring_one_more_method_leaves_the_others_curves():
    reading = read(["attention"])
    before = reading.curves()
    reading.explain("rollout")
    reading.measure(["rollout"])
    after = reading.curves()
    assert list(after["method"].unique()) == ["attention", "rollout"]
    assert after[after["method"] == "attention"].equals(before)


def test_integrated_gradients_take_fewer_points_and_say_so():
    shown = read(["integrated_gradients"]).explained["integrated_gradients"]
    [exact] = attribute(tiny.classifier(), [SENTENCE], "integrated_gradients", level="token")
    assert np.corrcoef(shown.scores, exact.scores)[0, 1] > 0.99
    assert label("integrated_gradients") == "integrated_gradients (20 points)"
    assert label("attention") == "attention"


def test_a_span_model_is_explained_and_measured():
    reading = Reading(model(task="span"), typed("which ?", "the plot is bad"))
    reading.explain("input_x_gradient")
    reading.measure(["input_x_gradient"])
    assert reading.refused == {} and len(reading.curves()) > 0


def test_a_method_that_fails_says_why_and_spoils_nothing(monkeypatch):
    broken = METHODS["random"].__class__(
        "broken", lambda request: 1 / 0, True, "local", False, False, (), 1
    )
    monkeypatch.setitem(METHODS, "broken", broken)
    reading = read(["attention", "broken"])
    assert reading.refused == {"broken": "division by zero"}
    assert list(reading.explained) == ["attention"]
    assert reading.agreement("word").isna().all(axis=None)


def test_what_somebody_looks_at_does_not_change_meanwhile():
    reading = read(["attention"])
    looked_at = reading.explained
    reading.explain("rollout")
    assert list(looked_at) == ["attention"] and list(reading.explained) == ["attention", "rollout"]


@pytest.mark.parametrize("method", ["lime", "alti", "decompx", "decompx_classifier"])
def test_a_slow_method_says_how_far_it_is_and_can_be_stopped_there(method):
    reading, told = read([]), []
    reading.explain(method, lambda done, total: told.append((done, total)))
    assert told and all(0 <= done <= total for done, total in told)

    def stop(done, total):
        raise Stopped

    stopped = read([])
    with pytest.raises(Stopped):
        stopped.explain(method, stop)
    assert stopped.explained == stopped.refused == {}
    stopped.explain(method)
    assert stopped.explained[method].scores.tolist() == reading.explained[method].scores.tolist()


def test_a_long_text_is_cut_and_its_words_are_counted():
    reading = read(["attention"], text=" ".join(["film"] * 2000))
    assert reading.words_read == tiny.POSITIONS - 2
    assert len(reading.at("word")["attention"].tokens) == tiny.POSITIONS - 2


def test_lime_alti_and_decompx_are_the_slow_ones():
    slow = {"lime", "alti", "decompx", "decompx_classifier"}
    assert {m for m in METHODS if is_slow(m)} & (slow | {"integrated_gradients", "rollout"}) == slow
