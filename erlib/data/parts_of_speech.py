"""Which part of speech is each word of a text?

spaCy's small English model, the paper's tagger, where it is installed; otherwise TextBlob's
PatternTagger, whose lexicon and rules are plain text inside its package. Nothing is downloaded and
nothing is unpickled. PatternTagger's Penn tags are mapped to the Universal Dependencies tags that
spaCy prints.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from erlib.errors import unknown

SPACY_MODEL = "en_core_web_sm"
TAGS = (
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
    "PUNCT", "SCONJ", "SYM", "VERB", "X",
)  # fmt: skip
UNIVERSAL = {
    "JJ": "ADJ", "JJR": "ADJ", "JJS": "ADJ", "IN": "ADP", "RB": "ADV", "RBR": "ADV", "RBS": "ADV",
    "WRB": "ADV", "MD": "AUX", "CC": "CCONJ", "DT": "DET", "PDT": "DET", "WDT": "DET", "EX": "PRON",
    "UH": "INTJ", "NN": "NOUN", "NNS": "NOUN", "CD": "NUM", "POS": "PART", "RP": "ADP",
    "TO": "PART", "PRP": "PRON", "PRP$": "PRON", "WP": "PRON", "WP$": "PRON", "NNP": "PROPN",
    "NNPS": "PROPN", ".": "PUNCT", ",": "PUNCT", ":": "PUNCT", "(": "PUNCT", ")": "PUNCT",
    "``": "PUNCT", "''": "PUNCT", '"': "PUNCT", "-": "PUNCT", "SYM": "SYM", "$": "SYM",
    "#": "SYM", "VB": "VERB", "VBD": "VERB", "VBG": "VERB", "VBN": "VERB", "VBP": "VERB",
    "VBZ": "VERB", "FW": "X", "LS": "X",
}  # fmt: skip
# Words that Penn's tag set does not tell from prepositions, full verbs and adverbs.
SUBORDINATORS = frozenset([
    "although", "as", "because", "if", "lest", "once", "since", "than", "that", "though", "till",
    "unless", "until", "whereas", "whether", "while",
])  # fmt: skip
BE = frozenset(["am", "are", "be", "been", "being", "is", "was", "were", "'m", "'re", "'s"])
NOT = frozenset(["not", "n't"])

EDGES = "".join(set(string.punctuation) - set("'$%")) + "“”‘’…"


def installed_tagger() -> str:
    """The name of the tagger that is used on this machine: "spacy" or "pattern"."""
    return "spacy" if find_spec("spacy") and find_spec(SPACY_MODEL) else "pattern"


def tag_words(words: Sequence[str], tagger: str = "pattern") -> list[str]:
    """A universal tag for each word; "X" where the tagger's own tag has no counterpart.

    Punctuation that is written to a word ("performances,") does not hide it from the tagger.
    """
    if tagger not in TAGGERS:
        raise unknown("tagger", tagger, TAGGERS)
    return TAGGERS[tagger]([word.strip(EDGES) or word for word in words])


def _pattern(words: list[str]) -> list[str]:
    from textblob.en import parser  # reads its lexicon when first used

    tagged = parser.find_tags(words)
    return [universal(word, tag) for word, (_, tag) in zip(words, tagged, strict=True)]


def _spacy(words: list[str]) -> list[str]:
    from spacy.tokens import Doc

    pipeline = _spacy_pipeline()
    document = pipeline(Doc(pipeline.vocab, words=words))
    return [token.pos_ if token.pos_ in TAGS else "X" for token in document]


@cache
def _spacy_pipeline() -> Any:
    import spacy

    return spacy.load(SPACY_MODEL, exclude=["parser", "ner"])


TAGGERS: dict[str, Callable[[list[str]], list[str]]] = {"pattern": _pattern, "spacy": _spacy}
TAGGER_NAMES = {"pattern": "TextBlob's PatternTagger", "spacy": f"spaCy's {SPACY_MODEL}"}


def universal(word: str, penn: str) -> str:
    """The universal tag of a word with this Penn tag."""
    plain = word.lower()
    if not any(letter.isalnum() for letter in word):
        return "SYM" if penn == "SYM" else "PUNCT"
    if penn == "IN" and plain in SUBORDINATORS:
        return "SCONJ"
    if penn.startswith("VB") and plain in BE:
        return "AUX"
    if penn == "RB" and plain in NOT:
        return "PART"
    return UNIVERSAL.get(penn.split("-")[0], "X")
