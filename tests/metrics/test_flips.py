from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from erlib.metrics.flips import decision_flips, removal_counts
from tests import tiny
from tests.metrics.bag import CLS, PAD, SEP, Bag, text

A, B = 3, 4


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (1, [1]),
        (4, [1, 2, 3, 4]),  # .2 rounds to 0, so one at a time
        (30, [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 30]),  # 1.5 rounds to 2
        (50, [*range(1, 50, 2), 50]),  # 2.5 rounds to 2: halves go to the even number
        (62, [*range(1, 62, 3), 62]),  # 3.1; the last step stops at n
    ],
)
def test_removal_starts_at_one_and_steps_by_a_twentieth(n, counts):
    assert removal_counts(n) == counts


def brute_force(classifier, encoded, scores, query_segment=None):
    """metrics.md §4 in plain Python: one forward pass for each count."""

    def prediction(ids, types):
        inputs = {
            "input_ids": torch.tensor([ids]),
            "attention_mask": torch.ones(1, len(ids)).long(),
        }
        if types is not None:
            inputs["token_type_ids"] = torch.tensor([types])
        with torch.no_grad():
            return int(classifier.forward(inputs).logits.argmax())

    classifier.eval()
    fractions = []
    for arrays in scores.values():
        for t, a in zip(encoded, arrays, strict=True):
            may_go = [i for i, s in enumerate(t.segment) if s >= 0 and s != query_segment]
            order = sorted(may_go, key=lambda i, a=a: -a[i])
            n, step = len(may_go), max(1, round(0.05 * len(may_go)))
            decided = prediction(t.input_ids, t.token_type_ids)
            fraction, removed = 1.0, 1
            while removed < n:
                gone = set(order[:removed])
                pad = classifier.tokenizer.pad_token_id
                ids = [pad if i in gone else x for i, x in enumerate(t.input_ids)]
                if prediction(ids, t.token_type_ids) != decided:
                    fraction = removed / n
                    break
                removed += step
            fractions.append(fraction)
    return fractions


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2"])
def test_flips_in_batches_are_the_flips_of_one_text_at_a_time(family):
    classifier = tiny.classifier(family, num_labels=8, seed=2)  # whose decisions flip often
    classifier.model.double()
    encoded = classifier.encode(tiny.CORPUS[:4])
    rng = np.random.default_rng(0)
    scores = {m: [rng.normal(size=len(e.tokens)) for e in encoded] for m in ("one", "other")}
    frame = decision_flips(classifier, encoded, scores)
    assert frame["fraction"].tolist() == brute_force(classifier, encoded, scores)
    assert frame["flipped"].mean() > 0 and frame["fraction"].nunique() > 2


def test_the_query_of_a_pair_is_neither_ranked_nor_removed_nor_counted():
    classifier = tiny.classifier("bert", num_labels=8)
    encoded = classifier.encode(
        [("a great film", "which review is dull ?"), ("bad plot", "the best")]
    )
    rng = np.random.default_rng(1)
    scores = {"m": [rng.normal(size=len(e.tokens)) for e in encoded]}
    frame = decision_flips(classifier, encoded, scores, query_segment=1)
    assert frame["fraction"].tolist() == brute_force(classifier, encoded, scores, query_segment=1)
    assert frame["n"].tolist() == [e.segment.count(0) for e in encoded]


def test_the_share_removed_at_the_flip_by_hand():
    # Three A make 3 − 1.5 > 0; with two of them gone it is < 0: 2 of 4 words, specials uncounted.
    bag = Bag([0.0, 0.0, 0.0, 1.0, 0.0], bias=-1.5)
    scores = {"m": [np.array([9.0, 3.0, 0.0, 2.0, 1.0, 9.0])]}
    frame = decision_flips(bag, [text("t", [A, B, A, A])], scores)
    row = frame.iloc[0]
    assert (row["removed"], row["n"], row["fraction"], row["flipped"]) == (2, 4, 0.5, True)
    assert ((CLS, PAD, B, PAD, A, SEP), (1,) * 6, False) in bag.shown


def test_a_decision_that_never_flips_counts_as_one():
    bag = Bag([0.0, 0.0, 0.0, 1.0], bias=5.0)
    frame = decision_flips(bag, [text("t", [A, A, A])], {"m": [np.zeros(5)]})
    assert frame.iloc[0][["fraction", "flipped"]].tolist() == [1.0, False]


def test_a_flip_only_when_everything_is_gone_is_one_too_but_flipped():
    bag = Bag([0.0, 0.0, 0.0, 1.0], bias=-0.5)
    frame = decision_flips(bag, [text("t", [A, A, A])], {"m": [np.zeros(5)]})
    assert frame.iloc[0][["fraction", "flipped"]].tolist() == [1.0, True]


def test_methods_in_agreement_and_texts_that_have_flipped_cost_nothing():
    bag = Bag([0.0, 0.0, 0.0, 1.0], bias=-8.5)  # ten A: flips when two are gone
    encoded = [text("t", [A] * 10)]
    scores = {f"m{i}": [np.arange(12.0) * (i + 1)] for i in range(15)}
    frame = decision_flips(bag, encoded, scores)
    assert frame["fraction"].tolist() == [0.2] * 15
    assert len(bag.shown) == 3  # nothing gone, one gone, two gone


def test_deletion_is_a_variant_in_which_the_sequence_shrinks():
    bag = Bag([1.0, 0.0, 0.0, 1.0], bias=-2.5)  # pads vote as A does: only deletion can flip
    encoded, scores = [text("t", [A, A, A])], {"m": [np.zeros(5)]}
    assert decision_flips(bag, encoded, scores)["flipped"].tolist() == [False]
    deleted = decision_flips(bag, encoded, scores, operator="delete")
    assert deleted["fraction"].tolist() == pytest.approx([1 / 3])


def test_results_come_text_by_text_within_each_method():
    bag = Bag([0.0, 0.0, 0.0, 1.0], bias=-0.5)
    encoded = [text("a", [A]), text("b", [A, A])]
    frame = decision_flips(
        bag, encoded, {"m": [np.zeros(3), np.zeros(4)], "k": [np.zeros(3), np.zeros(4)]}
    )
    expected = pd.DataFrame({"method": ["m", "m", "k", "k"], "id": ["a", "b", "a", "b"]})
    pd.testing.assert_frame_equal(frame[["method", "id"]], expected)


def test_a_text_with_nothing_to_remove_is_refused():
    lonely = replace(text("t", [A]), segment=[-1, 1, -1])
    with pytest.raises(ValueError, match="'t' has no token outside query segment 1"):
        decision_flips(Bag([0.0] * 4), [lonely], {"m": [np.zeros(3)]}, query_segment=1)
