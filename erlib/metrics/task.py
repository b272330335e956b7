"""How well does a model do its task? F1-macro, binary F1, accuracy; span exact match and F1.

All values are in [0, 1]; tables multiply by 100 where the paper does.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics


def f1_macro(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Unweighted mean of each class's F1, over the classes that occur in gold or predicted."""
    return float(metrics.f1_score(gold, predicted, average="macro", zero_division=0))


def f1_binary(gold: ArrayLike, predicted: ArrayLike) -> float:
    """F1 of class 1."""
    return float(metrics.f1_score(gold, predicted, average="binary", zero_division=0))


def accuracy(gold: ArrayLike, predicted: ArrayLike) -> float:
    """Share of texts whose predicted class is the gold one."""
    return float(metrics.accuracy_score(gold, predicted))


def majority_share(gold: ArrayLike) -> float:
    """Accuracy of always saying the commonest class: what a trained model has to beat."""
    return float(np.unique(np.asarray(gold), return_counts=True)[1].max() / np.asarray(gold).size)


def counted_f1_macro(gold: ArrayLike, predicted: ArrayLike) -> float:
    """`f1_macro` from a confusion matrix of whole numbers, some forty times faster: F1 is no mean
    over texts, so that a bootstrap over texts asks for it hundreds of times."""
    gold, predicted = (np.asarray(x, dtype=np.int64) for x in (gold, predicted))
    classes = int(max(gold.max(), predicted.max())) + 1
    confusion = np.bincount(gold * classes + predicted, minlength=classes**2)
    confusion = confusion.reshape(classes, classes)  # [gold, predicted]
    size = confusion.sum(axis=0) + confusion.sum(axis=1)
    seen = size > 0
    return float((2 * confusion.diagonal()[seen] / size[seen]).mean())


def counted_f1_binary(gold: ArrayLike, predicted: ArrayLike) -> float:
    """`f1_binary` by counting."""
    gold, predicted = (np.asarray(x, dtype=bool) for x in (gold, predicted))
    size = gold.sum() + predicted.sum()
    return float(2 * (gold & predicted).sum() / size) if size else 0.0


def counted_accuracy(gold: ArrayLike, predicted: ArrayLike) -> float:
    """`accuracy` by counting."""
    return float(np.mean(np.asarray(gold) == np.asarray(predicted)))


def span_exact_match(predicted: str, answers: Sequence[str]) -> float:
    """1 if the predicted text equals any answer after SQuAD's normalisation."""
    return max(float(_normalised(predicted) == _normalised(a)) for a in _required(answers))


def span_f1(predicted: str, answers: Sequence[str]) -> float:
    """Best F1 of shared words over the answers (SQuAD); two empty texts agree fully."""
    return max(_word_f1(_normalised(predicted), _normalised(a)) for a in _required(answers))


def _word_f1(predicted: str, answer: str) -> float:
    p, a = predicted.split(), answer.split()
    if not p or not a:
        return float(p == a)
    shared = sum((Counter(p) & Counter(a)).values())
    return 2 * shared / (len(p) + len(a))


def _normalised(text: str) -> str:
    """Lower case, no punctuation, no articles, single blanks: as SQuAD's evaluation does."""
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def _required(answers: Sequence[str]) -> Sequence[str]:
    if not answers:
        raise ValueError("a span needs at least one answer to compare with")
    return answers
