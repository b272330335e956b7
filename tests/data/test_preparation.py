"""A corpus is read as the paper reads it: its words and its classes."""

from __future__ import annotations

import pytest

from erlib.config import DataSpec
from erlib.data.preparation import prepared
from erlib.data.schema import to_dataset

ROWS = [
    {"id": "a", "words": ["The", "film", ",", "n't", "2", "--"], "label": 2,
     "rationale": [0, 1, 0, 1, 0, 0]},
    {"id": "b", "words": ["Dull", "!", "!", "film"], "label": 1, "rationale": [1, 0, 0, 0]},
    {"id": "c", "words": ["a", "b", "c"], "label": 0, "rationale": None},
]  # fmt: skip
DATA = to_dataset(ROWS, "classify", ["x", "y", "z"])


def test_words_without_a_letter_or_digit_go_with_their_rationale_bits_and_so_do_short_texts():
    stripped = prepared(DATA, words="alphanumeric")
    assert stripped["id"][:] == ["a", "c"]  # b has two words left
    assert stripped["words"][:] == [["the", "film", "n't", "2"], ["a", "b", "c"]]
    assert stripped["rationale"][:] == [[0, 1, 1, 0], None]
    assert stripped.features == DATA.features


def test_classes_are_kept_and_numbered_in_the_order_given():
    chosen = prepared(DATA, classes=["z", "x"])
    assert list(zip(chosen["id"][:], chosen["label"][:], strict=True)) == [("a", 0), ("c", 1)]
    assert chosen.features["label"].names == ["z", "x"]
    assert chosen.column_names == DATA.column_names


def test_without_a_wish_the_corpus_is_the_same_object():
    assert prepared(DATA) is DATA


def test_unknown_wishes_are_refused():
    with pytest.raises(ValueError, match="unknown class 'w'"):
        prepared(DATA, classes=["w", "x"])
    with pytest.raises(ValueError, match="unknown choice of words 'alphanumerik'; did you mean"):
        DataSpec("movies", words="alphanumerik")
    pairs = to_dataset([{"id": "p", "words_a": ["a"], "words_b": ["b"], "label": 0}], "pair", ["x"])
    with pytest.raises(ValueError, match="only single texts"):
        prepared(pairs, words="alphanumeric")
