from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from erlib.config import EvalSpec
from erlib.metrics.plausibility import auc
from erlib.models import load_classifier
from erlib.training.evaluating import evaluate, per_text
from erlib.training.identity import run_hash
from erlib.training.kinds.plausibility import by_word
from erlib.training.rows import rows_of
from tests import tiny


def test_pieces_are_summed_to_words_and_specials_left_out():
    (text,) = tiny.classifier("bert").encode([("a unfunny film", "dull")])
    scores = np.arange(len(text.tokens), dtype=float)
    rationale = np.array(
        [
            int(word == 1 and part == 0)
            for word, part in zip(text.word_ids, text.segment, strict=True)
        ]
    )
    summed, marked = by_word(text, scores, rationale)
    pieces = [
        i
        for i, (w, s) in enumerate(zip(text.word_ids, text.segment, strict=True))
        if (s, w) == (0, 1)
    ]
    assert len(pieces) > 1  # "unfunny" falls into pieces here
    assert summed.tolist() == [1.0, float(sum(pieces)), pieces[-1] + 1.0, pieces[-1] + 3.0]
    assert marked.tolist() == [0, 1, 0, 0]


def test_ivra_s_plausibility_ranks_words(spec, tmp_path):
    store = tmp_path / "store"
    wanted = EvalSpec(
        spec, spec.data, "test", "plausibility", 5, "input_x_gradient", "ivra", protocol="ivra"
    )
    row = evaluate([wanted], store=store).iloc[0]
    model = load_classifier(str(store / "runs" / run_hash(spec)))
    texts = model.encode(rows_of(spec.data, "test", 5), max_length=32)
    table = per_text(replace(wanted, kind="attributions"), store=store)
    expected = []
    for text, scores, source in zip(
        texts, table["scores"], rows_of(spec.data, "test", 5), strict=True
    ):
        words = np.zeros(len(source["words"]))
        for word, score in zip(text.word_ids, scores, strict=True):
            if word >= 0:
                words[word] += score
        expected.append(auc(np.abs(words), source["rationale"]))
    assert per_text(wanted, store=store)["auc"].tolist() == pytest.approx(expected)
    assert row["auc"] == pytest.approx(np.nanmean(expected))
