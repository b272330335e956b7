"""How sharply does a model bend around each text, and where does it put it? (Agreement, §5.1)"""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor

from erlib.data.encoding import Encoded, batch_indices
from erlib.metrics.cartography import curvature as measure
from erlib.models import Classifier
from erlib.training.evaluations import Evaluation, evaluation


def _mean_norms(table: pd.DataFrame) -> dict[str, float]:
    return {name: float(table[name].mean()) for name in ("norm", "sum")}


@evaluation("curvature", version=1, summarise=_mean_norms, protocols=("exact", "hutchinson"))
def curvature(this: Evaluation) -> pd.DataFrame:
    """`norm` ‖∂h/∂E‖ (`protocol`: "exact" or "hutchinson"), `sum` ‖∂(Σ_k h_k)/∂E‖, and `state` h.

    Distances between texts are left to the reader of the whole table: an evaluation sees its texts
    in parts.
    """
    protocol = this.spec.protocol or "hutchinson"
    norms = measure(this.classifier, this.texts, norms=(protocol, "sum"), seed=this.spec.seed)
    norms = norms.rename(columns={protocol: "norm"}).drop(columns="min_dist")
    return norms.assign(state=[h.tolist() for h in states(this.classifier, this.texts)])


@torch.no_grad()
def states(classifier: Classifier, texts: list[Encoded], batch_size: int = 64) -> list[Tensor]:
    """The vector that the last linear map reads, [dim], of each text."""
    found: dict[int, Tensor] = {}
    for rows in batch_indices([len(t.input_ids) for t in texts], batch_size):
        pooled = classifier.forward(classifier.batch([texts[i] for i in rows]).inputs).pooled
        if pooled is None:
            raise ValueError(f"'{classifier.name}' has no pooled vector: a span model?")
        found.update(zip(rows, pooled.cpu(), strict=True))
    return [found[i] for i in range(len(texts))]
