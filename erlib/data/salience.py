"""Which words of a text are salient, whatever a model thinks of them? (SaLoss, §2)

A salience function gives every piece of a text a number. A text is the list of its tokens' ids
without specials, the query of a pair included; equal ids are one piece. `saloss.md` §3 and §4 say
where the paper and its code differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.feature_selection import chi2

from erlib.errors import unknown

Floats = NDArray[np.float64]
Pieces = Sequence[int]
DAMPING = 0.85


def textrank(text: Pieces, *, window: int = 4, steps: int = 10, tolerance: float = 1e-5) -> Floats:
    """σ of each piece in the order given, by the walk σ ← (1 − d) + d G σ from σ = 1.

    G joins pieces i < j with j − i < window in an unweighted, undirected graph of the distinct
    pieces (a piece that is its own neighbour has a loop), columns divided by their sums. At most
    `steps` steps, fewer once no score moves by `tolerance`. Scores of a connected text sum to the
    number of distinct pieces.
    """
    vocabulary, node = np.unique(np.asarray(text), return_inverse=True)
    graph = np.zeros((len(vocabulary), len(vocabulary)))
    for distance in range(1, window):
        graph[node[:-distance], node[distance:]] = 1
        graph[node[distance:], node[:-distance]] = 1
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

    def fit(self, texts: Sequence[Pieces], labels: Sequence[int]) -> None:
        """Learn what there is to learn from the training texts."""
        ...

    def score(self, text: Pieces) -> Floats:
        """The salience of each piece, in the order given."""
        ...


class TextRank:
    """TextRank of each text on its own graph. The reference's call has window 8 and 2 steps."""

    def __init__(self, window: int = 4, steps: int = 10) -> None:
        self.window, self.steps = window, steps

    def fit(self, texts: Sequence[Pieces], labels: Sequence[int]) -> None:
        """Nothing: a text needs no other."""

    def score(self, text: Pieces) -> Floats:
        """The salience of each piece."""
        return textrank(text, window=self.window, steps=self.steps)


class TfIdf:
    """tf · idf with scikit-learn's smoothing, each text scaled to length 1; unseen pieces 0."""

    def fit(self, texts: Sequence[Pieces], labels: Sequence[int]) -> None:
        """Document frequencies of the training texts."""
        self.counter = _Counter(texts)
        self.transformer = TfidfTransformer().fit(self.counter.counts(texts))

    def score(self, text: Pieces) -> Floats:
        """The salience of each piece."""
        weights = self.transformer.transform(self.counter.counts([text])).toarray()[0]
        return self.counter.read(weights, text)


class ChiSquared:
    """χ² of a piece's tf · idf with the training labels: one number per piece; unseen 0."""

    def fit(self, texts: Sequence[Pieces], labels: Sequence[int]) -> None:
        """The statistic of every piece of the training texts."""
        self.counter = _Counter(texts)
        weights = TfidfTransformer().fit_transform(self.counter.counts(texts))
        self.statistic = np.nan_to_num(chi2(weights, labels)[0])

    def score(self, text: Pieces) -> Floats:
        """The salience of each piece."""
        return self.counter.read(self.statistic, text)


class Uniform:
    """Every piece 0, like the specials: the paper's uninformative baseline."""

    def fit(self, texts: Sequence[Pieces], labels: Sequence[int]) -> None:
        """Nothing to learn."""

    def score(self, text: Pieces) -> Floats:
        """The salience of each piece."""
        return np.zeros(len(text))


SALIENCES = {"textrank": TextRank, "tfidf": TfIdf, "chi_squared": ChiSquared, "uniform": Uniform}


def salience(name: str, **options: int) -> Salience:
    """A salience function by name; `window` and `steps` are TextRank's."""
    if name not in SALIENCES:
        raise unknown("salience", name, SALIENCES)
    made: Salience = SALIENCES[name](**options)
    return made


class _Counter:
    """Counts of the pieces that the training texts have."""

    def __init__(self, texts: Sequence[Pieces]) -> None:
        seen = sorted({piece for text in texts for piece in text})
        self.column = {piece: i for i, piece in enumerate(seen)}

    def counts(self, texts: Sequence[Pieces]) -> csr_matrix:
        """[text, piece]"""
        cells = [
            (row, self.column[piece])
            for row, text in enumerate(texts)
            for piece in text
            if piece in self.column
        ]
        rows, columns = np.array(cells, dtype=np.int64).reshape(-1, 2).T
        shape = (len(texts), len(self.column))
        return csr_matrix((np.ones(len(cells)), (rows, columns)), shape=shape)

    def read(self, weights: Floats, text: Pieces) -> Floats:
        """The weight of each of the text's pieces, 0 for one that training never saw."""
        padded = np.append(weights, 0.0)
        return padded[[self.column.get(piece, -1) for piece in text]]
