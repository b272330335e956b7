"""Texts whose label hangs on a few words, and a tiny model that has learnt which."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import torch
from torch import Tensor

from erlib.config import OptimiserSpec, term
from erlib.losses import Step, Weighted
from erlib.models import Classifier
from erlib.training.updates import PlainUpdate
from tests import tiny

WORDS = {1: ["great", "best", "funny", "liked"], 0: ["dull", "bad", "worst", "hated"]}
NEUTRAL = ["a", "film", ",", "and", "the", "plot", "is", "acting", "but", "ending", "which",
           "review", "most", "of", "year", "i", "music"]  # fmt: skip


def texts(n: int, seed: int) -> list[dict[str, Any]]:
    """Rows of five to eleven words, one to three of which give away the label."""
    rng, rows = random.Random(seed), []
    for i in range(n):
        label = rng.randrange(2)
        words = rng.choices(NEUTRAL, k=rng.randint(4, 8))
        words += rng.choices(WORDS[label], k=rng.randint(1, 3))
        rng.shuffle(words)
        rows.append({"id": str(i), "words": words, "label": label})
    return rows


def taught(**options: Any) -> Classifier:
    """A tiny BERT after a hundred steps; right on more than nine texts of ten."""
    model = tiny.classifier("bert", **options)
    model.model.load_state_dict(_learnt(), strict=False)  # all but an explainer
    return model.eval()


@cache
def _learnt() -> dict[str, Tensor]:
    model = tiny.classifier("bert")
    read = model.encode(texts(1600, 0))
    update = PlainUpdate(model, OptimiserSpec(lr=3e-3, schedule="constant"), 100)
    model.train()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for i in range(100):
            step = Step(model, model.batch(read[16 * i : 16 * i + 16]))
            update.apply(Weighted((term("task"),)), step, i)
    model.eval()
    unseen = tiny.batch(model, texts(40, 1))
    answers = model.forward(unseen.inputs).logits.argmax(dim=1)
    assert (answers == unseen.labels).float().mean() > 0.9
    return model.model.state_dict()
