"""Which number does an attribution explain?

f is the target's logit or probability: z_c or p_c. A model with a single logit z gives class 1 the
logit z and class 0 the logit −z, and the probabilities σ(±z). A span model explains its start and
end together: z_start + z_end, or p_start · p_end, with p over the text's tokens.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from erlib.checks import is_number
from erlib.data.encoding import NO_ANSWER, Batch
from erlib.errors import unknown
from erlib.models.classifier import Classifier

TARGETS = ("predicted", "gold")
Target = str | int  # one of these, or a class


def class_of(target: Target, classifier: Classifier, inputs: Any = None) -> Target:
    """The target with a class's name replaced by its index.

    Classes are called as in `inputs`, if that is a `Dataset`, or as `Classifier.classes` says.
    """
    if target in TARGETS:
        return target
    if classifier.task == "span":
        raise ValueError(f"spans have no classes, so no target {target!r}; known: {TARGETS}")
    if is_number(target, whole=True):
        check_target(torch.tensor([target]), classifier)
        return int(target)
    names = dict(getattr(classifier.model.config, "label2id", None) or {})
    names |= {name: i for i, name in enumerate(classifier.classes)}
    if label := getattr(inputs, "features", {}).get("label"):
        names = {name: i for i, name in enumerate(label.names)}
    if not isinstance(target, str) or target not in names:
        raise unknown("target", target, [*TARGETS, *names, "the index of a class"])
    return class_of(names[target], classifier)


def chosen_target(kind: Target, batch: Batch, logits: Tensor | None) -> Tensor:
    """The class [batch] or span [batch, 2] to explain; `logits` are read for "predicted"."""
    if isinstance(kind, int):
        return torch.full((len(batch.ids),), kind, device=batch.inputs["input_ids"].device)
    if kind == "gold":
        return _gold(batch)
    if logits is None:
        raise unknown("target", kind, TARGETS)
    if logits.ndim == 3:
        return over_tokens(logits, batch.inputs["attention_mask"]).argmax(dim=1)
    if logits.shape[-1] == 1:
        return (logits[:, 0] > 0).long()
    return logits.argmax(dim=-1)


def _gold(batch: Batch) -> Tensor:
    if batch.labels is None:
        raise ValueError(
            "the gold target needs labels: pass labels=…, or a data set that has them; "
            "target='predicted' needs none (variants that explain the gold class do)"
        )
    if (batch.labels == NO_ANSWER).any():
        cut = [i for i, span in zip(batch.ids, batch.labels, strict=True) if NO_ANSWER in span]
        raise ValueError(f"no gold span in the text as encoded, its end was cut: {', '.join(cut)}")
    return batch.labels


def explained(logits: Tensor, target: Tensor, mask: Tensor, of: str) -> Tensor:
    """f, [batch], in the graph. logits [batch, class] or [batch, token, 2]; mask [batch, token]."""
    rows = torch.arange(len(logits), device=logits.device)
    if logits.ndim == 3:
        if of == "probability":
            logits = over_tokens(logits, mask).softmax(dim=1)
            return logits[rows, target[:, 0], 0] * logits[rows, target[:, 1], 1]
        return logits[rows, target[:, 0], 0] + logits[rows, target[:, 1], 1]
    if logits.shape[-1] == 1:
        signed = logits[:, 0] * (2 * target - 1)
        return signed.sigmoid() if of == "probability" else signed
    return (logits.softmax(dim=-1) if of == "probability" else logits)[rows, target]


def over_tokens(logits: Tensor, mask: Tensor) -> Tensor:
    """Span logits with no chance left for pads."""
    return logits.masked_fill((mask == 0)[..., None], torch.finfo(logits.dtype).min)


def check_target(target: Tensor, classifier: Classifier) -> None:
    """Refuse classes that the model does not have."""
    if classifier.task == "span":
        return
    classes = max(classifier.num_labels, 2)
    for label in set(target.tolist()):
        if not 0 <= label < classes:
            raise ValueError(f"label {label} for a model of {classes} classes, 0 to {classes - 1}")
