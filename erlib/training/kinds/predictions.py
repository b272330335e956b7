"""What does a model answer, and how well does it do its task?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from erlib.attributions.attribute import explaining
from erlib.data.encoding import Encoded, batch_indices
from erlib.memory import Room
from erlib.metrics.learnt import classes_p, spans_p
from erlib.metrics.task import accuracy, f1_binary, f1_macro, majority_share
from erlib.models import Classifier
from erlib.training.evaluations import Evaluation, evaluation


@torch.no_grad()
def predict(classifier: Classifier, texts: list[Encoded], batch_size: int = 64) -> pd.DataFrame:
    """Gold and predicted classes with probabilities, or spans, in the order of `texts`."""
    rows: dict[int, dict[str, object]] = {}
    room = Room()

    def answer(chosen: Sequence[int]) -> list[dict[str, object]]:
        some = [texts[i] for i in chosen]
        batch = classifier.batch(some)
        logits = classifier.forward(batch.inputs, maps=False).logits
        return predicted_rows(logits, batch.inputs["attention_mask"], some)

    for chosen in batch_indices([len(t.input_ids) for t in texts], batch_size):
        for some, answers in room.portions(chosen, answer):
            rows.update(zip(some, answers, strict=True))
    return pd.DataFrame([rows[i] for i in range(len(texts))])


def predicted_rows(
    logits: torch.Tensor, mask: torch.Tensor, texts: list[Encoded]
) -> list[dict[str, object]]:
    """What a model answered to a batch of texts, beside the gold answers."""
    if logits.ndim == 3:  # [batch, token, (start, end)]
        found = logits.masked_fill((mask == 0)[:, :, None], float("-inf")).argmax(dim=1).tolist()
        gold = [text.answer or (-1, -1) for text in texts]
        return [
            {"id": t.id, "gold_start": g[0], "gold_end": g[1], "start": start, "end": end}
            for t, g, (start, end) in zip(texts, gold, found, strict=True)
        ]
    return [
        {"id": t.id, "label": t.label, "predicted": int(np.argmax(p))}
        | {f"p{c}": value for c, value in enumerate(p)}
        for t, p in zip(texts, probabilities(logits).tolist(), strict=True)
    ]


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """[batch, class] probabilities; a single logit is that of class 1."""
    if logits.shape[-1] == 1:
        p = logits.sigmoid()
        return torch.cat([1 - p, p], dim=-1)
    return logits.softmax(dim=-1)


def task_scores(predictions: pd.DataFrame) -> dict[str, float]:
    """F1, accuracy and the majority class's share; for spans exact match and token overlap."""
    if "start" in predictions:
        return span_overlap(predictions)
    gold, predicted = predictions["label"], predictions["predicted"]
    scores = {
        "accuracy": accuracy(gold, predicted),
        "f1_macro": f1_macro(gold, predicted),
        "majority": majority_share(gold),
    }
    more_than_two = "p2" in predictions  # the model's classes, whichever occur in these texts
    return scores if more_than_two else {**scores, "f1_binary": f1_binary(gold, predicted)}


def chance_p(predictions: pd.DataFrame) -> float:
    """The p-value of a model that has learnt nothing (see `erlib.metrics.learnt`)."""
    if "start" in predictions:
        return spans_p(predictions[["gold_start", "gold_end"]], predictions[["start", "end"]])
    return classes_p(predictions["label"], predictions["predicted"])


def span_overlap(spans: pd.DataFrame) -> dict[str, float]:
    """Share of spans found exactly, and mean F1 of shared tokens; a cut-off answer is missed."""
    last_first = spans[["start", "gold_start"]].max(axis=1)
    first_last = spans[["end", "gold_end"]].min(axis=1)
    shared = (first_last - last_first + 1).clip(lower=0).where(spans["gold_start"] >= 0, 0)
    found = (spans["end"] - spans["start"] + 1).clip(lower=0)
    sizes = found + spans["gold_end"] - spans["gold_start"] + 1
    exact = (spans["start"] == spans["gold_start"]) & (spans["end"] == spans["gold_end"])
    return {"exact_match": float(exact.mean()), "token_f1": float((2 * shared / sizes).mean())}


@evaluation("predictions", version=2, summarise=task_scores, protocols=("dropout",))
def predictions(this: Evaluation) -> pd.DataFrame:
    """One row per text: gold and predicted class, and the probability of each class.

    `protocol="dropout"` leaves dropout on, as one paper's code did by oversight
    (agreement.md §4.11).
    """
    if this.spec.protocol == "dropout":
        with explaining(this.classifier, dropout=True), torch.random.fork_rng():
            torch.manual_seed(this.spec.seed)
            return predict(this.classifier, this.texts)
    return predict(this.classifier, this.texts)
