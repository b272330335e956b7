"""How do scores that were made elsewhere become scores of a text's words?

Captum, SHAP, inseq or code of one's own give a number for each piece of a text, and have other
ideas of what a piece is. Pieces are laid along the text letter by letter; a piece belongs to the
word of its first letter, as everywhere in erlib, and a word has the sum of its pieces.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np

from erlib.attributions.attribute import Attribution
from erlib.data.encoding import Encoded

SPECIAL = re.compile(r"\[(CLS|SEP|PAD)\]|</?s>|<pad>|<\|.*\|>")
MARKS = re.compile(r"^##(?=.)|</w>$|[\sĠĊ▁]")  # how tokenizers mark where words begin, go on or end


def from_elsewhere(name: str, scores: Any, encoded: Encoded, target: Any) -> Attribution:
    """One text's scores by word, under the name of what made them.

    `scores`: one number for each token that the model reads (specials too, or without them), or for
    each word of the text; or `(pieces, numbers)` with pieces of any tokenizer, or words; or an
    object that has `tokens` and `scores`.
    """
    pieces: Sequence[str] | None = None
    if hasattr(scores, "tokens") and hasattr(scores, "scores"):
        pieces, scores = scores.tokens, scores.scores
    elif isinstance(scores, tuple):
        if len(scores) != 2:
            raise ValueError(f"'{name}', text '{encoded.id}': a pair (pieces, numbers) is wanted")
        pieces, scores = scores
    values = _vector(name, scores, encoded)
    places = _places_read(encoded)
    if pieces is not None:
        owners = _owners(name, list(pieces), encoded)
        if len(owners) != len(values):
            raise ValueError(
                f"'{name}', text '{encoded.id}': {len(owners)} pieces have {len(values)} scores"
            )
    else:
        owners = _owners_by_count(name, len(values), encoded)
    found = dict.fromkeys(places, 0.0)
    for owner, value in zip(owners, values, strict=True):
        if owner in found:
            found[owner] += float(value)
    if bare := [p for p in places if p not in owners]:
        segment, word = bare[0]
        raise ValueError(
            f"'{name}', text '{encoded.id}': the word '{encoded.words[segment][word]}' has no score"
        )
    return Attribution(
        tokens=[encoded.words[segment][word] for segment, word in places],
        word_ids=[word for _, word in places],
        segment=[segment for segment, _ in places],
        special=[False] * len(places),
        scores=np.array([found[p] for p in places]),
        layers=None,
        target=target,
        method=name,
        variant=None,
        completeness_gap=None,
        cut=encoded.words_cut,
    )


Place = tuple[int, int]  # segment, word
NOWHERE: Place = (-1, -1)


def _vector(name: str, scores: Any, encoded: Encoded) -> np.ndarray:
    if hasattr(scores, "detach"):  # a tensor, on any device, in a graph or not
        scores = scores.detach().cpu()
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    if values.ndim == 2 and len(values) == 1:  # a batch of one
        values = values[0]
    if values.ndim != 1:
        raise ValueError(
            f"'{name}', text '{encoded.id}': one number for each token or word is wanted, not "
            f"{np.shape(scores)}; sum over dimensions, or choose a class, first"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"'{name}', text '{encoded.id}' has scores that are not finite")
    return values


def _places_read(encoded: Encoded) -> list[Place]:
    """The words that the model reads a piece of, in order."""
    pairs = zip(encoded.segment, encoded.word_ids, strict=True)
    return [place for place in dict.fromkeys(pairs) if place[0] >= 0]


def _owners_by_count(name: str, count: int, encoded: Encoded) -> list[Place]:
    """Whose each number is, known by how many there are."""
    tokens = list(zip(encoded.segment, encoded.word_ids, strict=True))
    without = [place for place in tokens if place[0] >= 0]
    words = [(s, w) for s, segment in enumerate(encoded.words) for w in range(len(segment))]
    for owners in (tokens, without, words):
        if len(owners) == count:
            return owners
    raise ValueError(
        f"'{name}', text '{encoded.id}': {count} scores, where the model reads {len(tokens)} "
        f"tokens ({len(without)} without specials) and the text has {len(words)} words; with "
        "pieces of another kind give (pieces, scores)"
    )


def _owners(name: str, pieces: list[str], encoded: Encoded) -> list[Place]:
    """The word of each piece, found by laying the pieces along the text."""
    letters: list[tuple[str, Place]] = []
    for s, words in enumerate(encoded.words):
        for w, word in enumerate(words):
            letters += [(letter, (s, w)) for letter in _letters(word)]
    at, owners = 0, []
    for piece in pieces:
        said = _letters(MARKS.sub("", piece))
        here = "".join(letter for letter, _ in letters[at : at + len(said)])
        if here == said and said:
            owners.append(letters[at][1])
            at += len(said)
        elif SPECIAL.fullmatch(piece.strip()) or not said:
            owners.append(NOWHERE)
        else:
            rest = "".join(letter for letter, _ in letters[at : at + 20])
            raise ValueError(
                f"'{name}', text '{encoded.id}': the piece '{piece}' is not what stands there "
                f"('{rest}…'); give the text's words, or the model's own tokens, instead"
            )
    return owners


def _letters(text: str) -> str:
    """Lower-case letters without accents, which some tokenizers take away."""
    apart = unicodedata.normalize("NFD", text.lower())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
