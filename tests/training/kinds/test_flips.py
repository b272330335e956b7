"""The stored flips of a run are what removing tokens one count at a time gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from erlib.attributions import attribute_encoded
from erlib.config import EvalSpec
from erlib.data.encoding import collate
from erlib.metrics.flips import removal_counts
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.kinds.flips import by_type
from erlib.training.rows import rows_of
from tests import tiny


def brute_force(classifier, text, scores, *, delete=False):
    """Share of the real tokens gone when the prediction first differs, by single passes."""
    pad = classifier.tokenizer.pad_token_id

    def predicted(ids):
        shown = replace(text, input_ids=ids, token_type_ids=[0] * len(ids))
        trimmed = {
            name: getattr(shown, name)[: len(ids)]
            for name in ("tokens", "word_ids", "segment", "special")
        }
        batch = collate([replace(shown, **trimmed, rationale=None)], pad)
        with torch.no_grad():
            return classifier.forward(batch.inputs).logits.argmax().item()

    real = [t for t in range(len(text.tokens)) if not text.special[t]]
    order = sorted(real, key=lambda t: -scores[t])
    whole = predicted(text.input_ids)
    for count in removal_counts(len(real)):
        gone = set(order[:count])
        ids = [pad if t in gone else i for t, i in enumerate(text.input_ids)]
        if delete:
            ids = [i for t, i in enumerate(text.input_ids) if t not in gone]
        if predicted(ids) != whole:
            return count / len(real)
    return 1.0


@pytest.mark.parametrize("protocol", [None, "delete", "matrix"])
def test_every_text_agrees_with_brute_force(spec, tmp_path, protocol):
    wanted = EvalSpec(
        spec, spec.data, "test", "flips", 8, "scaled_attention", "saloss", protocol=protocol
    )
    store = tmp_path / "store"
    row = evaluate([wanted], store=store).iloc[0]
    table = per_text(wanted, store=store)
    scores = per_text(replace(wanted, kind="attributions"), store=store)["scores"]
    classifier = load_classifier(str(store / "runs" / run_hash(spec))).eval()
    texts = classifier.encode(rows_of(spec.data, "test", 8), max_length=32)
    if protocol == "matrix":
        scores = by_type(texts, list(scores), spec.optimiser.batch_size)
    expected = [
        brute_force(classifier, text, np.array(given), delete=protocol == "delete")
        for text, given in zip(texts, scores, strict=True)
    ]
    assert table["fraction"].tolist() == pytest.approx(expected)
    assert row["fraction"] == pytest.approx(np.mean(expected)) and row["texts"] == 8
    assert len(set(expected)) > 1


def test_sums_by_type_are_the_gradient_of_the_embedding_matrix_of_a_batch():
    classifier = tiny.classifier("bert").eval()
    texts = classifier.encode(
        ["the film the plot", "a dull film and the acting", "the plot is bad"]
    )
    given = attribute_encoded(
        classifier, texts, "input_x_gradient", variant="saloss_signed", level="token"
    )
    ours = by_type(texts, [np.asarray(g.scores, dtype=float) for g in given], batch_size=2)
    (first, second) = texts[0], texts[2]  # the two shortest are the first batch
    matrix = classifier.model.get_input_embeddings().weight
    probabilities = [
        classifier.forward(classifier.batch([t]).inputs).logits.softmax(-1).max()
        for t in (first, second)
    ]
    (gradient,) = torch.autograd.grad(sum(probabilities), matrix)
    for text, scores in ((first, ours[0]), (second, ours[2])):
        expected = (matrix * gradient).sum(-1)[text.input_ids].detach().numpy()
        real = ~np.array(text.special)
        assert scores[real] == pytest.approx(expected[real], abs=1e-6)
        assert np.isneginf(scores[~real]).all()
    alone = given[1].scores[given[1].tokens.index("film")]  # in the second batch there is no other
    assert ours[1][given[1].tokens.index("film")] == pytest.approx(alone)


def test_words_cannot_be_removed_and_unknown_protocols_are_refused(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "flips", 2, "attention", protocol="delet")
    with pytest.raises(ValueError, match="unknown protocol of flips 'delet'; did you mean"):
        evaluate([wanted], store=tmp_path / "store")
    with pytest.warns(UserWarning, match="level must be 'token', not 'word'"):
        evaluate([replace(wanted, protocol=None, level="word")], store=tmp_path / "store")
