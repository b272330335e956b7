"""What does a classifier say of texts, and what does it call its classes?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import torch
from torch import Tensor

from erlib import checks
from erlib.data.encoding import Encoded, batch_indices
from erlib.data.local import local_info
from erlib.models.heads import OWN

if TYPE_CHECKING:
    from erlib.models.classifier import Classifier

RUN_FILE = "spec.json"  # of a run's folder


def class_names(classifier: Classifier) -> tuple[str, ...]:
    """As the corpus of its run calls them, or its configuration; () for spans."""
    if classifier.task == "span":
        return ()
    run = Path(classifier.name) / RUN_FILE
    if run.is_file():
        data = json.loads(run.read_text(encoding="utf-8"))["data"]
        return tuple(data["classes"]) or local_info(data["corpus"]).labels
    names = getattr(classifier.model.config, "id2label", None) or {}
    return tuple(str(names.get(i, i)) for i in range(max(2, classifier.num_labels)))


def refuse_no_classes(classifier: Classifier) -> None:
    """Refuse a head that does not give probabilities to classes of which one is right."""
    if classifier.head != OWN or classifier.task == "span":
        return
    problem = classifier.model.config.problem_type
    if problem == "multi_label_classification":
        found = "gives several labels to a text (problem_type multi_label_classification)"
    elif problem == "regression" or classifier.num_labels == 1:
        found = "gives a text a number instead of a class (one logit, or problem_type regression)"
    else:
        return
    raise ValueError(
        f"{classifier.name} {found}; what can be shown: classifiers with two or more classes of "
        "which one is right, and models that answer questions with a span"
    )


@torch.no_grad()
def predictions(classifier: Classifier, inputs: Any, batch_size: int) -> pd.DataFrame:
    """`Classifier.predict`."""
    refuse_no_classes(classifier)
    checks.whole("batch_size", batch_size, 1)
    encoded = classifier.encode(inputs)
    rows: dict[int, dict[str, Any]] = {}
    training = classifier.model.training
    classifier.eval()
    for indices in batch_indices([len(text.input_ids) for text in encoded], batch_size):
        texts = [encoded[i] for i in indices]
        batch = classifier.batch(texts)
        logits = classifier.forward(batch.inputs).logits.double().cpu()
        made = _spans(texts, logits) if classifier.task == "span" else _classes(classifier, logits)
        rows.update(zip(indices, made, strict=True))
    classifier.train(training)
    return pd.DataFrame([rows[i] for i in range(len(encoded))], index=[e.id for e in encoded])


def _classes(classifier: Classifier, logits: Tensor) -> list[dict[str, Any]]:
    """logits [text, class]; a single one is that of class 1."""
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    names = classifier.classes
    return [
        {"label": names[int(p.argmax())], **dict(zip(names, p.tolist(), strict=True))}
        for p in logits.softmax(dim=-1)
    ]


def _spans(texts: Sequence[Encoded], logits: Tensor) -> list[dict[str, Any]]:
    """logits [text, token, 2]: the likeliest start and end, pads left out."""
    rows = []
    for text, row in zip(texts, logits, strict=True):
        p = row[: len(text.input_ids)].softmax(dim=0)
        start, end = p.argmax(dim=0).tolist()
        tokens = range(start, end + 1)
        words = dict.fromkeys((text.segment[t], text.word_ids[t]) for t in tokens)
        answer = " ".join(text.words[s][w] for s, w in words if s >= 0) or "no answer"
        rows.append({"answer": answer, "probability": float(p[start, 0] * p[end, 1])})
    return rows
