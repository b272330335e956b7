"""Do two explanations of the same text agree?

Kendall's τ-b and Pearson's r for every text and every pair of methods at once. τ-b is a cosine:
with s_ij = sign(a_i − a_j), the sum of s·s' over all pairs of tokens is concordant minus
discordant, and the sum of s² is the number of untied pairs, so

    τ_b = ⟨s, s'⟩ / (‖s‖ ‖s'‖)

is exact with ties, and one matrix product gives all pairs of methods. r is the same cosine of the
centred scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

MIN_TOKENS = 3
# Signs are float32, exact while counts stay below 2^24, which is 4,096 tokens. So many at a time.
MAX_CELLS = 2**23


def agreement(
    scores: Mapping[str, Sequence[np.ndarray]], *, ids: Sequence[str] | None = None
) -> pd.DataFrame:
    """τ-b and r of |scores| for every pair of methods, one row per pair and text.

    `scores`: for each method one array per text, of the tokens to be compared (Agreement: the real
    tokens; ER lens: specials too). Columns: `method_a, method_b, id, n, kendall, pearson`; both are
    NaN where a text has fewer than three tokens or one of the two explanations is constant.
    """
    methods = list(scores)
    if len(methods) < 2:
        raise ValueError(f"agreement needs at least two methods, got: {', '.join(methods)}")
    arrays = [[np.abs(np.asarray(a, dtype=np.float64)) for a in scores[m]] for m in methods]
    kendall, pearson = _correlations(arrays)
    names = [str(i) for i in range(len(arrays[0]))] if ids is None else list(ids)
    lengths = [len(a) for a in arrays[0]]
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "method_a": methods[a],
                    "method_b": methods[b],
                    "id": names,
                    "n": lengths,
                    "kendall": kendall[:, a, b],
                    "pearson": pearson[:, a, b],
                }
            )
            for a, b in combinations(range(len(methods)), 2)
        ],
        ignore_index=True,
    )


def kendall(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> np.ndarray:
    """[text] τ-b of two explanations of each text, as they are; NaN where it is skipped."""
    return _correlations([a, b])[0][:, 0, 1]


def pearson(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> np.ndarray:
    """[text] r of two explanations of each text, as they are; NaN where it is skipped."""
    return _correlations([a, b])[1][:, 0, 1]


def pair_means(frame: pd.DataFrame) -> pd.DataFrame:
    """Mean τ-b and r of each pair of methods over the texts that have them, and how many do not.

    The papers' single number is the mean of this table's rows: texts, then pairs, then seeds.
    """
    by_pair = frame.groupby(["method_a", "method_b"], sort=False)
    means = by_pair[["kendall", "pearson"]].mean()
    used = by_pair["kendall"].count()
    return means.assign(texts=used, skipped=by_pair.size() - used)


def _correlations(
    arrays: Sequence[Sequence[np.ndarray]],
) -> tuple[np.ndarray, np.ndarray]:
    """[text, method, method] τ-b and r of arrays[method][text]; texts of one length together."""
    lengths = np.array([len(a) for a in arrays[0]])
    for other in arrays[1:]:
        if [len(a) for a in other] != lengths.tolist():
            raise ValueError("the methods' scores differ in the number of texts or of tokens")
    shape = (len(lengths), len(arrays), len(arrays))
    tau, r = np.full(shape, np.nan), np.full(shape, np.nan)
    for n in np.unique(lengths[lengths >= MIN_TOKENS]):
        same = np.flatnonzero(lengths == n)
        rows = max(1, MAX_CELLS // int(len(arrays) * n * n))
        for start in range(0, len(same), rows):
            chunk = same[start : start + rows]
            # [text, method, token]
            table = np.array([[method[i] for method in arrays] for i in chunk], dtype=np.float64)
            if not np.isfinite(table).all():
                raise ValueError("agreement of scores that are not finite")
            constant = table.min(axis=2) == table.max(axis=2)
            centred = table - table.mean(axis=2, keepdims=True)
            above = table[..., :, None] > table[..., None, :]
            signs = np.subtract(above, above.swapaxes(2, 3), dtype=np.float32)
            tau[chunk] = _cosines(signs.reshape(*table.shape[:2], -1), constant)
            r[chunk] = _cosines(centred, constant)
    return tau, r


def _cosines(vectors: np.ndarray, undefined: np.ndarray) -> np.ndarray:
    """[text, method, method] cosines of [text, method, ·]; NaN where either is undefined."""
    products = np.matmul(vectors, vectors.transpose(0, 2, 1)).astype(np.float64)
    squares = np.where(undefined, np.nan, np.diagonal(products, axis1=1, axis2=2))
    norms = np.sqrt(squares[:, :, None] * squares[:, None, :])
    return np.clip(products / norms, -1.0, 1.0)
