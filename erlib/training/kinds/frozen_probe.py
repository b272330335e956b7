"""What does an encoder know of a task before it is trained on it?"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from erlib.config import RunSpec
from erlib.data.encoding import Encoded, batch_indices
from erlib.models import Classifier, load_classifier
from erlib.training.evaluations import Evaluation, evaluation
from erlib.training.kinds.predictions import task_scores
from erlib.training.rows import rows_of


@evaluation("frozen_probe", version=1, summarise=task_scores)
def frozen_probe(this: Evaluation) -> pd.DataFrame:
    """As `predictions`, of a logistic regression in place of the run's model.

    It reads the mean vectors of the encoder that the run began from, as it was pretrained, and is
    fitted to the run's own training texts, with scikit-learn's defaults and no scaling: nothing is
    tuned, so that better may be had.
    """
    run = this.spec.run
    assert run is not None
    if run.model.task == "span" or run.data.extract or run.data.taught:
        raise ValueError("logistic regression answers with a class, and learns from whole texts")
    encoder, regression = _fitted(run, this.device)
    texts = encoder.encode(this.rows, max_length=this.spec.data.max_length)
    known = regression.predict_proba(mean_vectors(encoder, texts))
    p = np.zeros((len(texts), encoder.num_labels))
    p[:, regression.classes_] = known  # a class without a training text has no chance
    answers = {"id": [t.id for t in texts], "label": [t.label for t in texts]}
    table = pd.DataFrame({**answers, "predicted": p.argmax(axis=1)})
    return table.assign(**{f"p{c}": p[:, c] for c in range(p.shape[1])})


@lru_cache(maxsize=1)
def _fitted(run: RunSpec, device: str) -> tuple[Classifier, LogisticRegression]:
    """The run's encoder as pretrained, and the regression on its vectors of the training texts."""
    rows = rows_of(run.data, "train", run.data.train_rows)
    encoder = load_classifier(
        run.model.name,
        num_labels=len(rows.features["label"].names),
        specials=run.model.specials,
        layers=run.model.layers,
    )
    encoder.to(device).eval()
    texts = encoder.encode(rows, max_length=run.data.max_length)
    regression = LogisticRegression(max_iter=1000)
    return encoder, regression.fit(mean_vectors(encoder, texts), [t.label for t in texts])


@torch.no_grad()
def mean_vectors(
    encoder: Classifier, texts: list[Encoded], batch_size: int = 64
) -> NDArray[np.float32]:
    """[text, D]: the last hidden states, averaged over the tokens of a text, specials included."""
    vectors: dict[int, NDArray[np.float32]] = {}
    for chosen in batch_indices([len(t.input_ids) for t in texts], batch_size):
        inputs = encoder.batch([texts[i] for i in chosen]).inputs
        mask = inputs["attention_mask"][:, :, None]
        states = encoder.forward(inputs).hidden_states[-1]
        means = (states * mask).sum(dim=1) / mask.sum(dim=1)
        vectors.update(zip(chosen, means.cpu().numpy(), strict=True))
    return np.stack([vectors[i] for i in range(len(texts))])
