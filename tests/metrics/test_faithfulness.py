from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from erlib.metrics.faithfulness import (
    PROTOCOLS,
    aopc,
    area,
    bin_mean,
    faithfulness,
    important_share,
    undefined_share,
)
from tests import tiny
from tests.metrics.bag import CLS, PAD, SEP, Bag, sigma, text

# ---------------------------------------------------------------- the oracle: one forward per cell


def probabilities(classifier, ids, types=None, mask=None, zero=False):
    """[class] (or [token, 2]) of a single input, nothing batched, nothing padded."""
    inputs = {
        "input_ids": torch.tensor([ids]),
        "attention_mask": torch.tensor([mask or [1] * len(ids)]),
    }
    if types is not None:
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        output = classifier.forward(inputs)
        if zero:
            output = classifier.forward(inputs, embeddings=torch.zeros_like(output.embeddings))
    logits = output.logits[0].double()
    if logits.shape == (1,):
        return np.array([1 - sigma(logits.item()), sigma(logits.item())])
    return logits.softmax(0).numpy()


def of_target(p, target):
    return p[target] if p.ndim == 1 else p[target[0], 0] * p[target[1], 1]


def naive(classifier, encoded, scores, protocol):
    """metrics.md §2 once more, read off the table in plain Python."""
    classifier.eval()
    pad = classifier.tokenizer.pad_token_id
    rows = []
    for method, arrays in scores.items():
        for t, a in zip(encoded, arrays, strict=True):
            ids, types, n = t.input_ids, t.token_type_ids, len(t.input_ids)
            p_x = probabilities(classifier, ids, types)
            target = int(p_x.argmax()) if p_x.ndim == 1 else tuple(p_x.argmax(0))
            words = [i for i in range(n) if not t.special[i]]
            for percent in {"er_lens": (1, 20, 40, 60, 80, 100)}.get(protocol, (1, 5, 10, 20, 50)):
                if protocol == "er_lens":
                    k, candidates = max(1, math.floor(percent * n / 100)), list(range(n))
                elif protocol == "regex":
                    length = len(words) + (1 if t.special[0] else 0)
                    k, candidates = math.ceil(percent * length / 100), words
                else:
                    k, candidates = max(1, math.ceil(percent * len(words) / 100)), words
                top = sorted(candidates, key=lambda i, a=a: -a[i])[:k]
                p_empty = math.nan

                def answer(kept, t=t, ids=ids, types=types, n=n):
                    if protocol == "er_lens":
                        kept_types = None if types is None else [types[i] for i in kept]
                        return probabilities(classifier, [ids[i] for i in kept], kept_types)
                    if protocol == "regex":
                        shown = [ids[i] if i in kept else pad for i in range(n)]
                        return probabilities(classifier, shown, types)
                    return probabilities(classifier, ids, types, [int(i in kept) for i in range(n)])

                keep = [i for i in range(n) if i in top or t.special[i]]
                rest = [i for i in range(n) if i not in top or t.special[i]]
                p, p_t = of_target(p_x, target), of_target(answer(keep), target)
                p_rest = (
                    of_target(answer(rest), target)
                    if rest
                    else of_target(
                        probabilities(classifier, [pad], None if types is None else [0], zero=True),
                        target,
                    )
                )
                if protocol == "er_lens":
                    blank_types = None if types is None else [types[i] for i in keep]
                    p_empty = of_target(
                        probabilities(classifier, [pad] * len(keep), blank_types, zero=True), target
                    )
                elif protocol == "regex":
                    p_empty = of_target(probabilities(classifier, [pad] * n, types), target)
                if protocol == "ivra":
                    values = (p - p_t, p - p_rest, math.nan, math.nan)
                else:
                    s, c = 1 - max(0.0, p - p_t), max(0.0, p - p_rest)
                    s0 = 1 - max(0.0, p - p_empty)
                    if 1 - s0 <= 1e-4:
                        nothing = math.nan if protocol == "er_lens" else 0.0
                        values = (s, c, nothing, nothing)
                    else:
                        s0 -= 1e-4
                        suff, comp = (s - s0) / (1 - s0), c / (1 - s0)
                        values = (s, c, min(1.0, max(0.0, suff)), min(1.0, max(0.0, comp)))
                rows.append((t.id, method, percent, k, *values, p, p_t, p_rest, p_empty))
    columns = "id method bin k sufficiency comprehensiveness normalised_sufficiency "
    columns += "normalised_comprehensiveness p_full p_kept p_removed p_empty"
    frame = pd.DataFrame(rows, columns=columns.split())
    for _, rows in frame.groupby(["method", "id"]):  # left out in one bin is left out in all
        if protocol == "er_lens" and rows["normalised_sufficiency"].isna().any():
            frame.loc[rows.index, [c for c in frame if c.startswith("normalised")]] = math.nan
    return frame


def random_scores(encoded, methods=2, seed=0):
    rng = np.random.default_rng(seed)
    return {f"m{m}": [rng.normal(size=len(e.tokens)) for e in encoded] for m in range(methods)}


# ---------------------------------------------------------------------------- engine against oracle


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_the_engine_gives_what_one_forward_pass_per_text_method_and_bin_gives(family, protocol):
    classifier = tiny.classifier(family)
    classifier.model.double()
    encoded = classifier.encode(["a great film , truly moving", "dull plot"])
    scores = random_scores(encoded, methods=1)
    ours = faithfulness(classifier, encoded, scores, protocol=protocol)
    theirs = naive(classifier, encoded, scores, protocol)
    close = 1e-6 if family == "llama" else 1e-10  # Llama's norms are float32 whatever the model is
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs, rtol=0, atol=close)
    assert ours["p_kept"].nunique() > 4  # the model is not indifferent to what it is shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_bag_gives_the_oracles_numbers_to_the_last_bit_with_ties_and_repeated_texts(protocol):
    rng = np.random.default_rng(3)
    weights = [0.25, 0.5, -0.125, *(rng.integers(-8, 9, size=9) / 8)]  # sums are exact
    encoded = [
        text(str(i), rng.integers(3, 12, size=n).tolist()) for i, n in enumerate([1, 4, 4, 9, 15])
    ]
    scores = {
        f"m{m}": [np.round(rng.normal(size=len(e.tokens)), 1) for e in encoded] for m in range(5)
    }
    bag = Bag(weights, per_token=0.0625)
    ours = faithfulness(bag, encoded, scores, protocol=protocol)
    theirs = naive(bag, encoded, scores, protocol)
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs, rtol=0, atol=1e-15)


def test_pairs_and_spans_follow_the_oracle_too():
    for protocol in ("regex", "ivra"):
        classifier = tiny.classifier("bert", task="span")
        classifier.model.double()
        questions = [
            {"question": "which review is the best", "context": "a dull plot . great music ."},
            {"question": "which", "context": "not bad but not moving"},
        ]
        encoded = classifier.encode(questions)
        scores = random_scores(encoded)
        ours = faithfulness(classifier, encoded, scores, protocol=protocol)
        theirs = naive(classifier, encoded, scores, protocol)
        pd.testing.assert_frame_equal(ours[theirs.columns], theirs, rtol=0, atol=1e-10)
    classifier = tiny.classifier("bert", num_labels=3)
    classifier.model.double()
    pairs = classifier.encode([("a great film", "a dull plot"), ("bad", "the worst film")])
    # The second text's tokens and last [SEP] are of type 1: types must go with what is deleted.
    types = [[int(i >= e.segment.index(1)) for i in range(len(e.tokens))] for e in pairs]
    encoded = [replace(e, token_type_ids=t) for e, t in zip(pairs, types, strict=True)]
    scores = random_scores(encoded)
    ours = faithfulness(classifier, encoded, scores, protocol="er_lens")
    theirs = naive(classifier, encoded, scores, "er_lens")
    pd.testing.assert_frame_equal(ours[theirs.columns], theirs, rtol=0, atol=1e-10)


def test_a_head_with_one_logit_is_read_as_two_classes():
    classifier = tiny.classifier("distilbert", head="agreement", specials=False)
    encoded = classifier.encode(tiny.TEXTS)
    frame = faithfulness(classifier, encoded, random_scores(encoded), protocol="ivra")
    for e, p in zip(encoded, frame.groupby("id", sort=False)["p_full"].first(), strict=True):
        with torch.no_grad():
            z = classifier.forward(
                {
                    "input_ids": torch.tensor([e.input_ids]),
                    "attention_mask": torch.ones(1, len(e.input_ids)),
                }
            ).logits.item()
        assert p == pytest.approx(max(sigma(z), 1 - sigma(z)), abs=1e-6)


def test_batches_and_padding_change_nothing():
    classifier = tiny.classifier("bert")
    classifier.model.double()
    encoded = classifier.encode(tiny.TEXTS)
    scores = random_scores(encoded, methods=1)
    for protocol in PROTOCOLS:
        together = faithfulness(classifier, encoded, scores, protocol=protocol)
        alone = faithfulness(classifier, encoded, scores, protocol=protocol, batch_size=1)
        pd.testing.assert_frame_equal(together, alone, rtol=0, atol=1e-10)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_input_is_shown_to_the_model_twice(protocol):
    encoded = [text("a", list(range(3, 13))), text("b", list(range(3, 13))), text("c", [4, 4, 5])]
    base = np.linspace(1, 0, 12)
    scores = {f"m{m}": [base + 0.01 * m, base, np.arange(5.0)] for m in range(15)}
    bag = Bag([0.1] * 13)
    faithfulness(bag, encoded, scores, protocol=protocol, batch_size=1)
    asked = bag.shown
    if protocol == "er_lens":  # blank inputs are run once more as pads, to see their width
        asked = [row for row in asked if row[2] or set(row[0]) != {PAD}]
    assert len(asked) == len(set(asked))
    assert len(bag.shown) < 60  # of 450 cells: texts a and b are one, and so are all methods


# ------------------------------------------------------------------------- how many tokens is k?


@pytest.mark.parametrize(
    ("protocol", "ks"),
    [
        ("er_lens", [1, 2, 4, 7, 9, 12]),  # floor of 12 tokens, specials counted; 0.12 becomes 1
        ("regex", [1, 1, 2, 3, 6]),  # ceil of 11: ten words and [CLS]
        ("ivra", [1, 1, 1, 2, 5]),  # ceil of ten words
    ],
)
def test_k_of_a_text_of_ten_words(protocol, ks):
    encoded = [text("t", [3] * 10)]
    scores = {"m": [np.arange(12.0)]}
    frame = faithfulness(Bag([0.1] * 4), encoded, scores, protocol=protocol)
    assert frame["k"].tolist() == ks


# ------------------------------------------------- planted texts, each answer worked out on paper

A, B, C, D = 3, 4, 5, 6  # word ids


def one(bag, words, scores, protocol, percent):
    """The row of one text and bin; the gold label is the class that is not predicted."""
    encoded = [text("t", words, label=0)]
    frame = faithfulness(bag, encoded, {"m": [np.array(scores)]}, protocol=protocol)
    return frame.set_index("bin").loc[percent]


def test_er_lens_deletes_and_lets_specials_take_places_but_never_erases_them():
    # [CLS] A B C D [SEP]; every token adds 1/4, so that length shows. 60 % of 6 is 3.6: k = 3.
    bag = Bag([9.0, 0.5, 0.25, 2.0, 1.0, -0.5, -0.25], bias=-0.5, per_token=0.25)
    row = one(bag, [A, B, C, D], [5.0, 4.0, 3.0, 2.0, 1.0, 0.0], "er_lens", 60)
    p_full = sigma(-0.5 + 0.5 + 0.25 + 2 + 1 - 0.5 - 0.25 + 6 / 4)
    p_kept = sigma(-0.5 + 0.5 + 0.25 + 2 + 1 + 4 / 4)  # T_k = {CLS, A, B}; SEP stays as well
    p_removed = sigma(-0.5 + 0.5 + 0.25 - 0.5 - 0.25 + 4 / 4)
    p_empty = sigma(-0.5 + 4 / 4)  # four zero vectors, as many as the rationale has tokens
    assert row["k"] == 3
    assert row["p_full"] == pytest.approx(p_full, abs=1e-12)
    assert row["p_kept"] == pytest.approx(p_kept, abs=1e-12)
    assert row["p_removed"] == pytest.approx(p_removed, abs=1e-12)
    assert row["p_empty"] == pytest.approx(p_empty, abs=1e-12)
    null = p_full - p_empty + 1e-4
    assert p_kept > p_full  # more sufficient than the text itself: S is 1, not more
    assert row["sufficiency"] == 1.0
    assert row["normalised_sufficiency"] == pytest.approx(1.0, abs=1e-12)
    assert row["comprehensiveness"] == pytest.approx(p_full - p_removed, abs=1e-12)
    assert row["normalised_comprehensiveness"] == pytest.approx(
        min(1.0, (p_full - p_removed) / null), abs=1e-12
    )


def test_regex_puts_pads_in_place_keeps_the_mask_and_pads_the_specials_of_the_empty_rationale():
    # 20 % of [CLS] and four words is 1: k = 1. The pad weighs 1/8, and specials score highest.
    bag = Bag([0.125, 0.5, 0.25, 2.0, 1.0, -0.5, -0.25])
    row = one(bag, [A, B, C, D], [9.0, 1.0, 2.0, 0.0, 0.0, 9.0], "regex", 20)
    p_full = sigma(0.5 + 0.25 + 2 + 1 - 0.5 - 0.25)
    p_kept = sigma(0.5 + 0.25 + 1 + 3 * 0.125)  # B and three pads
    p_removed = sigma(0.5 + 0.25 + 2 - 0.5 - 0.25 + 0.125)
    p_empty = sigma(6 * 0.125)
    assert row["k"] == 1
    assert row["p_kept"] == pytest.approx(p_kept, abs=1e-12)
    assert row["p_removed"] == pytest.approx(p_removed, abs=1e-12)
    assert row["p_empty"] == pytest.approx(p_empty, abs=1e-12)
    s0 = 1 - (p_full - p_empty) - 1e-4
    suff = (1 - (p_full - p_kept) - s0) / (1 - s0)
    assert row["normalised_sufficiency"] == pytest.approx(suff, abs=1e-12)
    assert row["normalised_comprehensiveness"] == pytest.approx(
        (p_full - p_removed) / (1 - s0), abs=1e-12
    )
    rows = {(ids, mask) for ids, mask, _ in bag.shown}
    assert ((CLS, PAD, B, PAD, PAD, SEP), (1,) * 6) in rows
    assert ((PAD,) * 6, (1,) * 6) in rows


def test_ivra_masks_keeps_signs_and_is_not_normalised():
    # Removing B, which speaks against the prediction, raises p: comprehensiveness is negative.
    bag = Bag([9.0, 0.5, 0.25, 2.0, -1.0, 0.5, 0.25], per_token=0.125)
    row = one(bag, [A, B, C, D], [9.0, 1.0, 2.0, 0.0, 0.0, 9.0], "ivra", 20)
    p_full = sigma(0.75 + 1.75 + 6 / 8)
    p_kept = sigma(0.75 - 1 + 3 / 8)
    p_removed = sigma(0.75 + 2.75 + 5 / 8)
    assert row["k"] == 1
    assert row["sufficiency"] == pytest.approx(p_full - p_kept, abs=1e-12)
    assert row["comprehensiveness"] == pytest.approx(p_full - p_removed, abs=1e-12)
    assert row["comprehensiveness"] < 0
    assert np.isnan(row[["normalised_sufficiency", "p_empty"]].astype(float)).all()
    assert ((CLS, A, B, C, D, SEP), (1, 0, 1, 0, 0, 1), False) in bag.shown


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_class_is_the_predicted_one_even_after_erasure_turned_the_prediction(protocol):
    bag = Bag([0.0, 0.0, 0.0, -3.0, 1.0])  # A says class 0, B class 1; gold is 1
    encoded = [text("t", [A, B, B], label=1)]
    scores = {"m": [np.array([0.0, 1.0, 0.0, 0.0, 0.0])]}
    frame = faithfulness(bag, encoded, scores, protocol=protocol).set_index("bin")
    assert frame.loc[20, "p_full"] == pytest.approx(1 - sigma(-1), abs=1e-12)
    assert frame.loc[20, "p_removed"] == pytest.approx(1 - sigma(2), abs=1e-12)


@pytest.mark.parametrize(("protocol", "value"), [("er_lens", np.nan), ("regex", 0.0)])
def test_a_text_liked_no_better_than_nothing_is_left_out_or_zero_and_is_counted(protocol, value):
    bag = Bag([0.0, 0.0, 0.0, 2.0, -2.0], bias=1.0)
    liked, no_better = text("liked", [A, A]), text("no better", [A, B])
    scores = {"m": [np.array([0.0, 2.0, 1.0, 0.0])] * 2}
    frame = faithfulness(bag, [liked, no_better], scores, protocol=protocol)
    lost = frame[frame["undefined"]]
    assert set(lost["id"]) == {"no better"}
    columns = ["normalised_sufficiency", "normalised_comprehensiveness"]
    np.testing.assert_array_equal(lost[columns], np.full((len(lost), 2), value))
    assert (lost["sufficiency"] > 0).all()
    assert undefined_share(frame)["m"] == 0.5
    kept = aopc(frame, "normalised_sufficiency")["m"]
    assert kept["liked"] > 0 and np.array_equal([kept["no better"]], [value], equal_nan=True)


def test_with_all_tokens_kept_sufficiency_is_exactly_1_of_every_text_that_is_not_left_out():
    """p(x) − p(empty) is .001, .48 and 0."""
    bag = Bag([0.0, 0.0, 0.0, 2.0, -2.0, 0.004], bias=0.0)
    texts = [text("hardly", [C]), text("surer", [A, A]), text("no surer", [A, B])]
    scores = {"m": [np.linspace(0, 1, len(t.tokens)) for t in texts]}
    frame = faithfulness(bag, texts, scores, protocol="er_lens")
    whole = frame[frame["bin"] == 100].set_index("id")
    assert whole["undefined"].to_dict() == {"hardly": False, "surer": False, "no surer": True}
    assert whole["normalised_sufficiency"].dropna().to_dict() == {"hardly": 1.0, "surer": 1.0}


def test_a_text_left_out_in_one_bin_is_left_out_in_all():
    """z = 2 + 2.5 − 4 = .5 of the text; of an empty input of one token 1, of four tokens −2."""
    bag = Bag([0.0, 0.0, 0.0, 2.5, 0.0], bias=2.0, per_token=-1.0)
    encoded = [text("t", [A, B, B, B], specials=False)]
    frame = faithfulness(bag, encoded, {"m": [np.arange(4.0)]}, protocol="er_lens")
    surer = frame.set_index("bin").eval("p_full > p_empty")
    assert surer.to_dict() == {1: False, 20: False, 40: False, 60: True, 80: True, 100: True}
    assert frame["undefined"].all() and frame["normalised_sufficiency"].isna().all()


def test_without_specials_nothing_left_is_a_blank_and_not_a_crash():
    bag = Bag([0.0, 0.0, 0.0, 2.0, 1.0], bias=0.5, per_token=0.25)
    encoded = [text("t", [A, B], specials=False)]
    scores = {"m": [np.array([1.0, 0.0])]}
    er = faithfulness(bag, encoded, scores, protocol="er_lens").set_index("bin")
    assert er.loc[100, "p_removed"] == pytest.approx(sigma(0.5 + 0.25), abs=1e-12)
    single = faithfulness(
        bag, [text("t", [A], specials=False)], {"m": [np.ones(1)]}, protocol="ivra"
    )
    assert single["p_removed"].tolist() == pytest.approx([sigma(0.5 + 0.25)] * 5, abs=1e-12)


# ------------------------------------------------------------------------------------- refusals


def test_wrong_scores_names_and_tasks_are_refused_where_they_enter():
    encoded = [text("t", [A, B])]
    with pytest.raises(ValueError, match="unknown protocol 'regexp'; did you mean 'regex'"):
        faithfulness(Bag([0.0] * 5), encoded, {}, protocol="regexp")
    with pytest.raises(ValueError, match=r"shape \(2,\) for text 't' of 4 tokens"):
        faithfulness(Bag([0.0] * 5), encoded, {"m": [np.zeros(2)]}, protocol="ivra")
    with pytest.raises(ValueError, match="scores of 0 texts"):
        faithfulness(Bag([0.0] * 5), encoded, {"m": []}, protocol="ivra")
    with pytest.raises(ValueError, match="not finite"):
        faithfulness(Bag([0.0] * 5), encoded, {"m": [np.full(4, np.nan)]}, protocol="ivra")
    span = Bag([0.0] * 5)
    span.task = "span"
    with pytest.raises(ValueError, match="deletes tokens"):
        faithfulness(span, encoded, {"m": [np.zeros(4)]}, protocol="er_lens")


# ------------------------------------------------------------------------------------ aggregates


def frame_of(values, bins):
    return pd.DataFrame({"method": "m", "id": "t", "bin": bins, "x": values})


def test_five_perfect_bins_have_an_aopc_of_five_sixths_and_a_mean_of_one():
    frame = frame_of([1.0] * 5, [1, 5, 10, 20, 50])
    assert aopc(frame, "x")["m", "t"] == pytest.approx(5 / 6)
    assert bin_mean(frame, "x")["m", "t"] == 1.0


def test_the_area_weights_bins_by_their_distance():
    frame = frame_of([1.0, 0.0, 0.0, 0.0, 0.0, 1.0], [1, 20, 40, 60, 80, 100])
    assert area(frame, "x")["m", "t"] == pytest.approx((0.19 + 0.20) / 2)
    shuffled = frame.sample(frac=1, random_state=0)
    assert area(shuffled, "x")["m", "t"] == pytest.approx((0.19 + 0.20) / 2)


def test_aggregates_keep_texts_and_methods_apart():
    frame = pd.concat([frame_of([0.0, 1.0], [1, 5]), frame_of([1.0, 1.0], [1, 5]).assign(id="u")])
    assert aopc(frame, "x").to_dict() == {("m", "t"): 1 / 3, ("m", "u"): 2 / 3}


def test_the_share_of_important_tokens_counts_absolute_scores_above_nine_thresholds():
    # |scores| normalise to 1, 0, .55: above all nine, none, and five of the thresholds.
    assert important_share(np.array([-3.0, 1.0, 2.1])) == pytest.approx((9 + 0 + 5) / (9 * 3))
    assert important_share(np.array([2.0, -2.0])) == 0.0


@pytest.mark.parametrize("protocol", ["er_lens", "regex"])
def test_a_text_at_the_guard_itself_is_undefined(protocol, monkeypatch):
    bag = Bag([0.0, 0.0, 0.0, 2.0, -2.0], bias=0.0)
    texts, scores = [text("t", [A, A])], {"m": [np.arange(4.0)]}
    row = faithfulness(bag, texts, scores, protocol=protocol).iloc[0]
    rules = replace(PROTOCOLS[protocol], guard=row["p_full"] - row["p_empty"])
    monkeypatch.setitem(PROTOCOLS, protocol, rules)
    assert faithfulness(bag, texts, scores, protocol=protocol)["undefined"].all()
