"""A classifier whose answers can be worked out on paper, for planted examples.

Each visible token adds its weight to the logit of class 1, so p(1) = σ(bias + Σ weight[id]). Every
token, blank ones too, adds `per_token`: what is erased and how long the input is both show.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from erlib.data.encoding import Encoded

PAD, CLS, SEP = 0, 1, 2
FIRST_WORD = 3


class Bag:
    """Implements what the metrics use of `Classifier`, and keeps every row it was shown."""

    task = "classify"
    name = "bag"
    device = torch.device("cpu")
    tokenizer = SimpleNamespace(pad_token_id=PAD)

    def __init__(self, weights: list[float], *, bias: float = 0.0, per_token: float = 0.0) -> None:
        self.table = torch.tensor(weights, dtype=torch.float64)[:, None]
        self.bias, self.per_token = bias, per_token
        self.training = True
        self.shown: list[tuple[Any, ...]] = []

    def eval(self) -> Bag:
        self.training = False
        return self

    def forward(
        self, inputs: dict[str, Tensor], *, embeddings: Tensor | None = None, maps: bool = True
    ) -> SimpleNamespace:
        assert not self.training, "metrics must ask in eval mode"
        ids, mask = inputs["input_ids"], inputs["attention_mask"]
        x = self.table[ids] if embeddings is None else embeddings
        z = self.bias + ((x[..., 0] + self.per_token) * mask).sum(1)
        for row, seen in zip(ids.tolist(), mask.tolist(), strict=True):
            self.shown.append((tuple(row), tuple(seen), embeddings is not None))
        return SimpleNamespace(logits=torch.stack([-z / 2, z / 2], dim=1), embeddings=x)


def text(
    name: str, words: list[int], *, specials: bool = True, label: int | None = None
) -> Encoded:
    """[CLS] words [SEP], given the words' ids."""
    edge = [CLS], [SEP]
    ids = [*edge[0], *words, *edge[1]] if specials else list(words)
    special = [i in (CLS, SEP) for i in ids]
    return Encoded(
        id=name,
        input_ids=ids,
        token_type_ids=None,
        tokens=[str(i) for i in ids],
        word_ids=[-1 if s else i for i, s in enumerate(special)],
        segment=[-1 if s else 0 for s in special],
        special=special,
        label=label,
    )


def sigma(z: float) -> float:
    """p(class 1) of a logit z."""
    return 1 / (1 + math.exp(-z))
