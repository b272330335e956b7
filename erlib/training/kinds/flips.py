"""What share of its best tokens must go before the model changes its mind?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded, batch_indices
from erlib.metrics.flips import decision_flips
from erlib.training.evaluations import Evaluation, evaluation

QUERY = 1  # the segment of a pair that is neither ranked nor removed
PROTOCOLS = ("pad", "delete", "matrix")
Scores = list[np.ndarray]  # one [token] per text


def _summary(table: pd.DataFrame) -> dict[str, float]:
    return {
        "fraction": float(table["fraction"].mean()),
        "flipped": float(table["flipped"].mean()),
        "texts": float(len(table)),
    }


@evaluation("flips", version=1, summarise=_summary, uses="attributions", protocols=PROTOCOLS)
def flips(this: Evaluation) -> pd.DataFrame:
    """One row per text, as `erlib.metrics.flips` gives them; of a pair only the first text counts.

    `protocol`: "pad" (also when left out), "delete", or "matrix", which pads but ranks by gradients
    that are read from the embedding matrix, as the reference does (saloss.md §4.6): see `by_type`.
    """
    spec = this.spec
    assert this.used is not None
    if spec.level != "token":
        raise ValueError(
            f"tokens are removed, not words: level must be 'token', not '{spec.level}'"
        )
    protocol = spec.protocol or "pad"
    scores = [np.asarray(s, dtype=np.float64) for s in this.used["scores"]]
    if protocol == "matrix":
        assert spec.run is not None
        scores = by_type(this.texts, scores, spec.run.optimiser.batch_size)
        if spec.method == "input_x_gradient":  # which ranks by size, and takes the size last
            scores = [np.abs(s) for s in scores]
    return decision_flips(
        this.classifier,
        this.texts,
        {spec.method or "": scores},
        query_segment=QUERY if "words_b" in this.rows.column_names else None,
        operator="delete" if protocol == "delete" else "pad",
    )


def by_type(texts: Sequence[Encoded], scores: Scores, batch_size: int) -> Scores:
    """Every token has the sum of the scores that tokens of its type have in its batch.

    A row of the embedding matrix is the vector of all of them, so its gradient, times that vector,
    is their sum. Batches are of texts of like length, as in the reference; specials keep theirs.
    """
    found = [np.empty(0)] * len(texts)
    for batch in batch_indices([len(text.input_ids) for text in texts], batch_size):
        real = {i: ~np.asarray(texts[i].special) for i in batch}
        ids = {i: np.asarray(texts[i].input_ids) for i in batch}
        sums = np.bincount(
            np.concatenate([ids[i][real[i]] for i in batch]),
            weights=np.concatenate([scores[i][real[i]] for i in batch]),
            minlength=max(int(ids[i].max()) for i in batch) + 1,
        )
        for i in batch:
            found[i] = np.where(real[i], sums[ids[i]], scores[i])
    return found
