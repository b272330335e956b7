from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from erlib.metrics.word_erasure import erasers, leave_one_out, word_faithfulness
from tests import tiny
from tests.metrics.bag import FIRST_WORD, Bag, sigma, text

WEIGHTS = np.array([3.0, 1.0, -1.0, 0.5, 0.25])  # of five words, whose ids begin at FIRST_WORD
WORDS = [FIRST_WORD + i for i in range(5)]


def asked(target=1, encoded=None):
    model = Bag([0.0] * FIRST_WORD + list(WEIGHTS))
    return erasers(model, [encoded or text("a", WORDS)], [(target,)])


def test_both_measures_are_those_worked_out_by_hand():
    [row] = word_faithfulness(asked(), {"right": [WEIGHTS]}).to_dict("records")
    full, best = sigma(WEIGHTS.sum()), [3.0, 1.0, 0.5]
    # 1, 5, 10 and 20 % of five words are one word, 50 % are three
    kept = [sigma(sum(best[:k])) for k in (1, 1, 1, 1, 3)]
    removed = [sigma(WEIGHTS.sum() - sum(best[:k])) for k in (1, 1, 1, 1, 3)]
    assert row["sufficiency"] == pytest.approx(full - np.mean(kept), abs=1e-12)
    assert row["comprehensiveness"] == pytest.approx(full - np.mean(removed), abs=1e-12)


def test_what_is_measured_is_the_class_asked_for_and_not_the_predicted_one():
    for_one = word_faithfulness(asked(1), {"m": [WEIGHTS]})
    for_zero = word_faithfulness(asked(0), {"m": [WEIGHTS]})
    for column in ("comprehensiveness", "sufficiency"):
        assert for_zero[column][0] == pytest.approx(-for_one[column][0], abs=1e-12)


def test_each_word_is_left_out_once_with_all_its_pieces():
    split = {"word_ids": [-1, 0, 0, 1, 0, 1, -1], "segment": [-1, 0, 0, 0, 1, 1, -1]}
    [pair] = asked(encoded=replace(text("a", WORDS), **split))
    total = WEIGHTS.sum()
    lost = [sigma(total) - sigma(total - w) for w in (3.0 + 1.0, -1.0, 0.5, 0.25)]
    assert leave_one_out(pair) == pytest.approx(lost, abs=1e-12)


def test_an_answer_keeps_its_place_when_words_go():
    model = tiny.classifier("bert", task="span")
    [encoded] = model.encode([{"question": "which ?", "context": "a great film"}])
    [one] = erasers(model, [encoded], [(4, 6)])
    ids = model.batch([encoded]).inputs
    ids["input_ids"][0, 5] = model.tokenizer.pad_token_id
    assert encoded.tokens[5] == "great"
    start, end = model.forward(ids).logits[0].double().softmax(0).unbind(1)
    kept = np.array([True, True, True, False, True])
    assert one.p([kept])[0] == pytest.approx(float(start[4] * end[6]), abs=1e-6)


def test_scores_of_another_number_of_words_are_refused():
    with pytest.raises(ValueError, match="'m' has 4 scores for the 5 words .* of text 'a'"):
        word_faithfulness(asked(), {"m": [WEIGHTS[:4]]})
