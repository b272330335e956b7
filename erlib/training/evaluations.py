"""What can be measured of a trained model, text by text?

A kind of evaluation is one function from an `Evaluation` to a table with one row per text, and
one from that table to a few numbers. Kinds that start from another kind's table (plausibility
from attributions) say so in `uses`, and the store then makes that one first and shares it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from datasets import Dataset

from erlib.attributions import attribute_encoded
from erlib.config import EvalSpec, ModelSpec
from erlib.data.encoding import Encoded, batch_indices
from erlib.errors import unknown
from erlib.metrics.plausibility import auc, average_precision, recall_at_k
from erlib.metrics.task import accuracy, f1_binary, f1_macro, majority_share
from erlib.models import Classifier


@dataclass
class Evaluation:
    """What a kind works on: the rows, a way to the model, and the table of the kind it uses."""

    spec: EvalSpec
    rows: Dataset
    load: Callable[[], Classifier]
    used: pd.DataFrame | None = None

    @cached_property
    def classifier(self) -> Classifier:
        """The trained model in eval mode; loaded only by kinds that need it."""
        return self.load()

    @cached_property
    def texts(self) -> list[Encoded]:
        """The rows as the model sees them."""
        return self.classifier.encode(self.rows, max_length=self.spec.data.max_length)


@dataclass(frozen=True)
class Kind:
    """A registered kind of evaluation; `version` rises whenever its numbers change."""

    name: str
    per_text: Callable[[Evaluation], pd.DataFrame]
    summarise: Callable[[pd.DataFrame], dict[str, float]]
    version: int
    uses: str | None = None


KINDS: dict[str, Kind] = {}


def evaluation(
    name: str,
    *,
    version: int,
    summarise: Callable[[pd.DataFrame], dict[str, float]],
    uses: str | None = None,
) -> Callable[[Callable[[Evaluation], pd.DataFrame]], Callable[[Evaluation], pd.DataFrame]]:
    """Register a kind under `name`."""

    def add(function: Callable[[Evaluation], pd.DataFrame]) -> Callable[[Evaluation], pd.DataFrame]:
        KINDS[name] = Kind(name, function, summarise, version, uses)
        return function

    return add


def kind(name: str) -> Kind:
    """The registered kind of this name."""
    if name not in KINDS:
        raise unknown("kind of evaluation", name, KINDS)
    return KINDS[name]


def label_count(rows: Dataset, model: ModelSpec) -> int | None:
    """How many logits the head needs: one for a binary logit, none to choose for spans."""
    if model.task == "span":
        return None
    return 1 if model.head == "agreement" else len(rows.features["label"].names)


@torch.no_grad()
def predict(classifier: Classifier, texts: list[Encoded], batch_size: int = 64) -> pd.DataFrame:
    """Gold and predicted classes with probabilities, or spans, in the order of `texts`."""
    rows: dict[int, dict[str, object]] = {}
    for chosen in batch_indices([len(t.input_ids) for t in texts], batch_size):
        some = [texts[i] for i in chosen]
        batch = classifier.batch(some)
        logits = classifier.forward(batch.inputs).logits
        answers = predicted_rows(logits, batch.inputs["attention_mask"], some)
        rows.update(zip(chosen, answers, strict=True))
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
    return scores if gold.max() > 1 else {**scores, "f1_binary": f1_binary(gold, predicted)}


def span_overlap(spans: pd.DataFrame) -> dict[str, float]:
    """Share of spans found exactly, and mean F1 of shared tokens; a cut-off answer is missed."""
    last_first = spans[["start", "gold_start"]].max(axis=1)
    first_last = spans[["end", "gold_end"]].min(axis=1)
    shared = (first_last - last_first + 1).clip(lower=0).where(spans["gold_start"] >= 0, 0)
    found = (spans["end"] - spans["start"] + 1).clip(lower=0)
    sizes = found + spans["gold_end"] - spans["gold_start"] + 1
    exact = (spans["start"] == spans["gold_start"]) & (spans["end"] == spans["gold_end"])
    return {"exact_match": float(exact.mean()), "token_f1": float((2 * shared / sizes).mean())}


@evaluation("predictions", version=1, summarise=task_scores)
def predictions(this: Evaluation) -> pd.DataFrame:
    """One row per text: gold and predicted class, and the probability of each class."""
    return predict(this.classifier, this.texts)


def _count(table: pd.DataFrame) -> dict[str, float]:
    return {"texts": float(len(table))}


@evaluation("attributions", version=1, summarise=_count)
def attributions(this: Evaluation) -> pd.DataFrame:
    """One row per text, lists per token; `protocol="layers"` keeps every layer's scores too."""
    spec = this.spec
    scores = attribute_encoded(
        this.classifier,
        this.texts,
        spec.method or "",
        variant=spec.variant,
        target=spec.target,
        level=spec.level,
        per_layer=spec.protocol == "layers",
        seed=spec.seed,
    )
    rationales = [t.rationale for t in this.texts]
    return pd.DataFrame(
        {
            "id": [t.id for t in this.texts],
            "tokens": [s.tokens for s in scores],
            "special": [s.special for s in scores],
            "rationale": rationales if spec.level == "token" else [None] * len(scores),
            "scores": [s.scores.tolist() for s in scores],
            "layers": [None if s.layers is None else s.layers.tolist() for s in scores],
            "completeness_gap": [s.completeness_gap for s in scores],
        }
    )


def _plausibility_summary(table: pd.DataFrame) -> dict[str, float]:
    names = ("auc", "average_precision", "recall_at_k")
    means = {name: float(table[name].mean()) for name in names}
    return {**means, "texts": float(len(table)), "skipped": float(table["auc"].isna().sum())}


@evaluation("plausibility", version=1, summarise=_plausibility_summary, uses="attributions")
def plausibility(this: Evaluation) -> pd.DataFrame:
    """AUC, average precision and recall@k per text; |score| ranks the tokens of signed methods.

    With `protocol="layers"` also `layer_auc`, one AUC per layer.
    """
    assert this.used is not None
    rows = []
    for row in this.used.itertuples():
        if row.rationale is None:
            raise ValueError(f"{this.spec.data.corpus} has no rationales to compare with")
        scores = np.abs(row.scores)
        rows.append(
            {
                "id": row.id,
                "auc": auc(scores, row.rationale),
                "average_precision": average_precision(scores, row.rationale),
                "recall_at_k": recall_at_k(scores, row.rationale),
                "layer_auc": None
                if row.layers is None
                else [auc(np.abs(layer), row.rationale) for layer in row.layers],
            }
        )
    return pd.DataFrame(rows)
