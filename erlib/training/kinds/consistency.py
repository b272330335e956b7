"""Do texts that look alike to a model get explanations that look alike? (IvRA, eq. 12 and 18)"""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from erlib.data.encoding import Encoded
from erlib.metrics.consistency import BATCH, distribution
from erlib.metrics.consistency import consistency as measure
from erlib.models import Classifier
from erlib.training.evaluations import Evaluation, evaluation

AT_ONCE = 16  # texts in one forward pass


def _mean_of_batches(table: pd.DataFrame) -> dict[str, float]:
    return {
        "consistency": float(table["consistency"].mean()),
        "batches": float(table["consistency"].notna().sum()),
        "skipped": float(table["consistency"].isna().sum()),
    }


@evaluation("consistency", version=1, summarise=_mean_of_batches, uses="attributions")
def consistency(this: Evaluation) -> pd.DataFrame:
    """One row for each 64 texts in order: ρ over their pairs, NaN where all distances are equal.

    `id` is the batch's first text. Every method's scores are made a distribution over the text's
    tokens first, |scores| / Σ|scores|, as r is one.
    """
    assert this.used is not None
    maps = [distribution(np.asarray(scores)) for scores in this.used["scores"]]
    rows = []
    for start in range(0, len(this.texts), BATCH):
        texts = this.texts[start : start + BATCH]
        found = measure(mean_states(this.classifier, texts), maps[start : start + BATCH])
        rows.append({"id": texts[0].id, "texts": len(texts), "consistency": found.value})
    return pd.DataFrame(rows)


@torch.no_grad()
def mean_states(classifier: Classifier, texts: list[Encoded]) -> list[np.ndarray]:
    """H of each text: [token, dim], the mean of its hidden states over the layers."""
    found = []
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        states = classifier.forward(classifier.batch(some).inputs).hidden_states[1:]
        mean = torch.stack(states).mean(dim=0).cpu().numpy()
        found += [row[: len(text.input_ids)] for row, text in zip(mean, some, strict=True)]
    return found
