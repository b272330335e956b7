"""A word's importance is the sum of its pieces' softmax, beside its tag."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from erlib.config import EvalSpec
from erlib.data.parts_of_speech import tag_words
from erlib.training.evaluating import per_text
from erlib.training.rows import rows_of


def test_scores_are_a_distribution_over_the_words_and_follow_the_attributions(spec, tmp_path):
    wanted = EvalSpec(spec, spec.data, "test", "parts_of_speech", 6, "scaled_attention", "saloss")
    table = per_text(wanted, store=tmp_path / "store")
    tokens = per_text(replace(wanted, kind="attributions"), store=tmp_path / "store")
    rows = rows_of(spec.data, "test", 6)
    assert [list(w) for w in table["words"]] == rows["words"][:]
    for words, row, given in zip(
        table["words"], table.itertuples(), tokens.itertuples(), strict=True
    ):
        assert list(row.tags) == tag_words(list(words))
        assert sum(row.scores) == pytest.approx(1)
        inner = np.asarray(given.scores)[1:-1]  # without [CLS] and [SEP], which rank last
        weights = softmax(inner / np.abs(inner).sum())
        first = 0
        for word, score in zip(words, row.scores, strict=True):  # pieces spell the word out
            spelt, total = "", 0.0
            while spelt != word:
                spelt += given.tokens[1 + first].removeprefix("##")
                total, first = total + weights[first], first + 1
            assert score == pytest.approx(total)
