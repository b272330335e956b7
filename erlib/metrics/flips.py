"""How many of the best tokens must go before the model changes its mind?

SaLoss's decision flip (metrics.md §4): remove 1 token, then 1+s, 1+2s, … in the order of their
scores until the prediction differs; the result is the share of tokens removed by then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded
from erlib.metrics.erasure import Operator, Witness, erase, predicted, whole
from erlib.metrics.faithfulness import check_scores
from erlib.metrics.ranking import best_first
from erlib.models.classifier import Classifier


def removal_counts(n: int) -> list[int]:
    """1, 1+s, 1+2s, … up to n, with s = max(1, round(n/20)), halves to even as in the reference."""
    step = max(1, round(n / 20))
    return [*range(1, n, step), n]


def decision_flips(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    scores: Mapping[str, Sequence[np.ndarray]],
    *,
    query_segment: int | None = None,
    operator: Operator = "pad",
    batch_size: int | None = None,
) -> pd.DataFrame:
    """The fraction of tokens whose removal flips the prediction, one row per text and method.

    `scores` as for `faithfulness`. Specials and the tokens of `query_segment` (pair tasks) are
    neither ranked nor removed nor counted. Columns: `id, method, n` (removable tokens), `removed`
    (at the flip; n without one), `fraction, flipped`. Without a flip the fraction is 1.

    All texts and methods take a step together, those that flipped drop out, and methods that
    removed the same tokens share a forward pass.
    """
    check_scores(encoded, scores)
    witness = Witness(classifier, batch_size=batch_size)
    decided = [predicted(answer) for answer in witness.ask([whole(text) for text in encoded])]

    removable = [_removable(text, query_segment) for text in encoded]
    counts = [removal_counts(len(positions)) for positions in removable]
    cells = [(method, i) for method in scores for i in range(len(encoded))]
    order = {
        (method, i): removable[i][best_first(scores[method][i][removable[i]])]
        for method, i in cells
    }

    flipped_at: dict[tuple[str, int], int] = {}
    for step in range(max(map(len, counts), default=0)):
        walking = [c for c in cells if c not in flipped_at and step < len(counts[c[1]])]
        inputs = []
        for method, i in walking:
            kept = np.ones(len(encoded[i].tokens), dtype=bool)
            kept[order[method, i][: counts[i][step]]] = False
            inputs.append(erase(encoded[i], kept, operator, witness.pad_id))
        for (method, i), answer in zip(walking, witness.ask(inputs), strict=True):
            if predicted(answer) != decided[i]:
                flipped_at[method, i] = counts[i][step]

    frame = pd.DataFrame(
        {
            "id": [encoded[i].id for _, i in cells],
            "method": [method for method, _ in cells],
            "n": [len(removable[i]) for _, i in cells],
            "removed": [flipped_at.get(c, len(removable[c[1]])) for c in cells],
            "flipped": [c in flipped_at for c in cells],
        }
    )
    return frame.assign(fraction=frame["removed"] / frame["n"])


def _removable(text: Encoded, query_segment: int | None) -> np.ndarray:
    """Positions that may be ranked and removed."""
    segment = np.asarray(text.segment)
    positions = np.flatnonzero((segment >= 0) & (segment != query_segment))
    if len(positions) == 0:
        raise ValueError(f"text '{text.id}' has no token outside query segment {query_segment}")
    return positions
