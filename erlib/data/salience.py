"""Which words of a text are salient, whatever a model thinks of them? (SaLoss, §3)

A salience function gives every token of a text a number; specials have 0. By default the functions
are those of the paper's code, whose options for what the paper says, or what one would expect, are
named in each: saloss.md §3 and 4 say where they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from erlib.data.encoding import Encoded
from erlib.errors import unknown

Floats = NDArray[np.float64]
DAMPING = 0.85


@dataclass(frozen=True)
class Tokens:
    """A text as its model reads it, pads left out: the tokens, and which of them are specials."""

    strings: tuple[str, ...]
    special: tuple[bool, ...]

    @classmethod
    def of(cls, text: Encoded) -> Tokens:
        """The tokens of an encoded text."""
        return cls(tuple(text.tokens), tuple(text.special))

    @property
    def pieces(self) -> list[str]:
        """The tokens that are no specials."""
        return [s for s, skip in zip(self.strings, self.special, strict=True) if not skip]


def textrank(
    text: Sequence[str],
    *,
    window: int = 4,
    steps: int = 10,
    two_way: int = 2,
    tolerance: float = 1e-5,
) -> Floats:
    """σ of each piece in the order given, by the walk σ ← (1 − d) + d G σ from σ = 1.

    G joins the distinct pieces i and j if one follows the other by less than `window` places, with
    weight 1, or `two_way` if each somewhere follows the other (the paper's code: 2; an unweighted
    graph: 1). A piece that follows itself has a loop of weight 1. Columns are divided by their
    sums. At most `steps` steps, fewer once no score moves by `tolerance`. Scores of a connected
    text sum to the number of distinct pieces.
    """
    vocabulary, node = np.unique(np.asarray(text), return_inverse=True)
    follows = np.zeros((len(vocabulary), len(vocabulary)))
    for distance in range(1, window):
        follows[node[:-distance], node[distance:]] = 1
    graph = np.minimum(follows + follows.T - np.diag(follows.diagonal()), two_way)
    graph /= np.maximum(graph.sum(axis=0), 1)  # a piece alone in its text has no neighbour
    scores = np.ones(len(vocabulary))
    for _ in range(steps):
        moved = (1 - DAMPING) + DAMPING * graph @ scores
        largest, scores = np.abs(moved - scores).max(), moved
        if largest < tolerance:
            break
    return scores[node]


class Salience(Protocol):
    """A salience function; the ones that count words learn them from the training texts."""

    def fit(self, texts: Sequence[Tokens], labels: Sequence[int]) -> None:
        """Learn what there is to learn from the training texts."""
        ...

    def score(self, text: Tokens) -> Floats:
        """The salience of each token."""
        ...


class TextRank:
    """TextRank of each text on its own graph; the separator inside a pair is a piece of it.

    The paper states a window of 4 and ten steps; its code's call has window 8 and stops after 2.
    """

    def __init__(self, window: int = 4, steps: int = 10, two_way: int = 2) -> None:
        self.window, self.steps, self.two_way = window, steps, two_way

    def fit(self, texts: Sequence[Tokens], labels: Sequence[int]) -> None:
        """Nothing: a text needs no other."""

    def score(self, text: Tokens) -> Floats:
        """The salience of each token."""
        pieces = np.flatnonzero(~np.array(text.special))
        inner = slice(pieces[0], pieces[-1] + 1)
        scores = np.zeros(len(text.strings))
        scores[inner] = textrank(
            text.strings[inner], window=self.window, steps=self.steps, two_way=self.two_way
        )
        return scores


class TfIdf:
    """scikit-learn's tf · idf, each text scaled to length 1; what training never saw has 0.

    The paper's code joins the tokens of a text by blanks, [CLS], [SEP] and pads up to the longest
    training text included, and scikit-learn splits them again: its words are lower-case runs of two
    or more letters or digits. A token that is no such word has 0: punctuation, single letters,
    "##ing" (though it counts as "ing"), "Ġthe". Specials and pads count as words, and so lower the
    others. With `every_piece` each piece is a word, and specials and pads are none.
    """

    def __init__(self, every_piece: bool = False) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.every_piece = every_piece
        self.vectoriser = TfidfVectorizer(**{"analyzer": list} if every_piece else {})

    def fit(self, texts: Sequence[Tokens], labels: Sequence[int]) -> None:
        """Document frequencies of the training texts."""
        self.longest = max(len(text.strings) for text in texts)
        self.weights = self.vectoriser.fit_transform(self._documents(texts))

    def score(self, text: Tokens) -> Floats:
        """The salience of each token."""
        return self._read(self.vectoriser.transform(self._documents([text])).toarray()[0], text)

    def _documents(self, texts: Sequence[Tokens]) -> list[str] | list[list[str]]:
        if self.every_piece:
            return [text.pieces for text in texts]
        return [
            " ".join(text.strings) + " [PAD]" * (self.longest - len(text.strings)) for text in texts
        ]

    def _read(self, weights: Floats, text: Tokens) -> Floats:
        column = self.vectoriser.vocabulary_
        return np.array([weights[column[s]] if s in column else 0.0 for s in text.strings])


class ChiSquared(TfIdf):
    """χ² of a word's tf · idf with the training labels: one number per word; unseen 0."""

    def fit(self, texts: Sequence[Tokens], labels: Sequence[int]) -> None:
        """The statistic of every word of the training texts."""
        from sklearn.feature_selection import chi2

        super().fit(texts, labels)
        self.statistic = np.nan_to_num(chi2(self.weights, labels)[0])

    def score(self, text: Tokens) -> Floats:
        """The salience of each token."""
        return self._read(self.statistic, text)


class Uniform:
    """Every token 0: the paper's uninformative baseline."""

    def fit(self, texts: Sequence[Tokens], labels: Sequence[int]) -> None:
        """Nothing to learn."""

    def score(self, text: Tokens) -> Floats:
        """The salience of each token."""
        return np.zeros(len(text.strings))


SALIENCES = {"textrank": TextRank, "tfidf": TfIdf, "chi_squared": ChiSquared, "uniform": Uniform}


def salience(name: str, **options: int) -> Salience:
    """A salience function by name.

    `window`, `steps` and `two_way` are TextRank's; `every_piece` is TF-IDF's and χ²'s.
    """
    if name not in SALIENCES:
        raise unknown("salience", name, SALIENCES)
    made: Salience = SALIENCES[name](**options)
    return made
