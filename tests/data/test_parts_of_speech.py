"""Words get universal tags, whatever punctuation is written to them."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from erlib.data import parts_of_speech
from erlib.data.parts_of_speech import (
    TAGS,
    UNIVERSAL,
    installed_tagger,
    tag_words,
    universal,
)


def test_an_ordinary_sentence_is_tagged_as_a_grammar_would():
    tagged = """The/DET old/ADJ movie/NOUN is/AUX better/ADJ than/SCONJ Rashomon/PROPN ,/PUNCT
        and/CCONJ she/PRON did/VERB not/PART sleep/VERB !/PUNCT"""
    words, expected = zip(*(pair.split("/") for pair in tagged.split()), strict=True)
    assert tag_words(words) == list(expected)


def test_punctuation_at_the_edge_of_a_word_does_not_change_its_tag():
    plain = tag_words(["exceptional", "performances", "of", "a", "film", "if", "it", "is"])
    edged = ["exceptional", "performances,", "of", "a", "film.", "(if", "it", "is)"]
    assert tag_words(edged) == plain and plain[5:] == ["SCONJ", "PRON", "AUX"]


@pytest.mark.parametrize(
    ("word", "penn", "expected"),
    [("Than", "IN", "SCONJ"), ("of", "IN", "ADP"), ("were", "VBD", "AUX"), ("ran", "VBD", "VERB"),
     ("...", "NN", "PUNCT"), (":)", "SYM", "SYM"), ("zz", "??", "X"), ("Bob", "NNP-PERS", "PROPN"),
     ("n't", "RB", "PART")],
)  # fmt: skip
def test_penn_tags_become_universal_ones(word, penn, expected):
    assert universal(word, penn) == expected


def test_every_tag_of_the_table_is_universal():
    assert set(UNIVERSAL.values()) <= set(TAGS) and len(set(TAGS)) == 17


def test_spacy_is_used_where_it_and_its_model_are_installed(monkeypatch):
    """A stand-in for spaCy: a pipeline that calls "good" ADJ and everything else SPACE."""

    class Pipeline:
        vocab = "its vocabulary"

        def __call__(self, document):
            tags = {"good": "ADJ"}
            return [SimpleNamespace(pos_=tags.get(w, "SPACE")) for w in document.words]

    spacy, tokens = ModuleType("spacy"), ModuleType("spacy.tokens")
    spacy.load = lambda name, exclude: Pipeline() if name == "en_core_web_sm" else None
    tokens.Doc = lambda vocab, words: SimpleNamespace(vocab=vocab, words=words)
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", tokens)
    assert tag_words(["(good,", "film"], "spacy") == ["ADJ", "X"]
    parts_of_speech._spacy_pipeline.cache_clear()

    present = {"spacy"}
    monkeypatch.setattr(parts_of_speech, "find_spec", lambda name: name in present)
    assert installed_tagger() == "pattern"
    present.add("en_core_web_sm")
    assert installed_tagger() == "spacy"


def test_an_unknown_tagger_is_refused():
    with pytest.raises(ValueError, match="unknown tagger 'spcy'; did you mean 'spacy'"):
        tag_words(["film"], "spcy")
