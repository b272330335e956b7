"""How well do attribution scores rank the rationale's tokens first? (metrics.md §1)

Scores and 0/1 labels are per text, over whatever tokens the paper counts (ER: sub-words with
[CLS] and [SEP] as negatives; IvRA: words without specials). Signed methods whose sign is no
evidence (IXG, DX-C) come in as absolute values. A text whose labels are all 0 or all 1 has no
ranking to judge: its value is NaN, and `mean_defined` counts it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from erlib.errors import unknown

NAN = float("nan")


def auc(scores: ArrayLike, labels: ArrayLike) -> float:
    """Share of (rationale, other) token pairs in the right order, ties counting one half.

    >>> auc([0.9, 0.2, 0.2], [1, 1, 0])
    0.75
    """
    s, e = _text(scores, labels)
    positives = int(e.sum())
    pairs = positives * (e.size - positives)
    if pairs == 0:
        return NAN
    # Mann and Whitney: the rank sum of the positives, less the least it can be.
    return float((rankdata(s)[e].sum() - positives * (positives + 1) / 2) / pairs)


def average_precision(scores: ArrayLike, labels: ArrayLike) -> float:
    """Σ (R_i − R_{i−1}) P_i over the distinct scores from the top, without interpolation."""
    s, e = _text(scores, labels)
    positives = int(e.sum())
    if positives in (0, e.size):
        return NAN
    order = np.argsort(-s, kind="stable")
    ranked = s[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), s.size - 1)  # tied scores enter together
    found = np.cumsum(e[order])[last]
    precision = found / (last + 1)
    return float(np.diff(found, prepend=0) @ precision / positives)


def recall_at_k(scores: ArrayLike, labels: ArrayLike) -> float:
    """Share of the rationale's k tokens among the k best; of equal scores the earlier token."""
    s, e = _text(scores, labels)
    k = int(e.sum())
    if k in (0, e.size):
        return NAN
    return float(e[np.argsort(-s, kind="stable")[:k]].sum() / k)


METRICS: dict[str, Callable[[ArrayLike, ArrayLike], float]] = {
    "auc": auc,
    "average_precision": average_precision,
    "recall_at_k": recall_at_k,
}


def plausibility(
    scores: Sequence[ArrayLike], labels: Sequence[ArrayLike], metric: str = "auc"
) -> NDArray[np.float64]:
    """One value per text, [text], in [0, 1]; NaN where the text has labels of one class only."""
    if metric not in METRICS:
        raise unknown("plausibility metric", metric, METRICS)
    if len(scores) != len(labels):
        raise ValueError(f"{len(scores)} texts of scores but {len(labels)} of labels")
    measure = METRICS[metric]
    return np.array([measure(s, e) for s, e in zip(scores, labels, strict=True)], dtype=np.float64)


def mean_defined(values: ArrayLike) -> tuple[float, int]:
    """Mean over the texts with a value, and how many have none."""
    v = np.asarray(values, dtype=np.float64)
    defined = v[~np.isnan(v)]
    return (float(defined.mean()) if defined.size else NAN), int(v.size - defined.size)


def _text(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    s, e = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if s.ndim != 1 or s.shape != e.shape:
        raise ValueError(f"scores {s.shape} and labels {e.shape} must be vectors of one length")
    if not np.isin(e, (0, 1)).all():
        raise ValueError(f"labels must be 0 or 1, got {sorted(set(e.tolist()))}")
    if not np.isfinite(s).all():
        raise ValueError("scores have values that are not finite")
    return s, e.astype(bool)
