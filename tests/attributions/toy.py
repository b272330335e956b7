"""Classifiers around a network small enough to work out on paper, and the BiLSTM at toy size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from erlib.data.encoding import Batch, Encoded, collate
from erlib.models import Classifier, Output, load_classifier
from tests import tiny

PAD, CLS, SEP = 0, 1, 2
VOCABULARY, DIM = 30, 6


class Body(nn.Module):
    """Word vectors, and a network from [text, token, DIM] (pads zero) to logits [text, class]."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, DIM)
        self.net = net
        self.config = SimpleNamespace(hidden_size=DIM, num_labels=2)


class Toy:
    """What `attribute` uses of a `Classifier`; keeps the inputs of every pass in `seen`."""

    family, task, num_labels = "toy", "classify", 2
    tokenizer = SimpleNamespace(pad_token_id=PAD)
    device = torch.device("cpu")

    def __init__(self, net: nn.Module, seed: int = 0) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = Body(net).double()
            for parameter in self.model.parameters():
                nn.init.normal_(parameter, std=0.7)
        self.seen: list[dict[str, Tensor]] = []

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        return collate(encoded, PAD)

    def train(self, mode: bool = True) -> Toy:
        self.model.train(mode)
        return self

    def forward(
        self,
        inputs: Mapping[str, Tensor],
        *,
        embeddings: Tensor | None = None,
        entry: Tensor | None = None,
        maps: bool = True,
    ) -> Output:
        self.seen.append(dict(inputs))
        x = self.model.table(inputs["input_ids"]) if embeddings is None else embeddings
        x = x if entry is None else entry
        logits = self.model.net(x * inputs["attention_mask"][..., None])
        return Output(logits, (), (x,), embeddings=x, entry=x, pooled=None)


class SumOverTokens(nn.Module):
    """z = Σ_t g(x_t): tokens do not meet, so each one's share is known."""

    def __init__(self, g: nn.Module) -> None:
        super().__init__()
        self.g = g

    def forward(self, x: Tensor) -> Tensor:
        return self.g(x).sum(dim=1)


class AttendingPool(nn.Module):
    """z = U Σ_t softmax_t(v·x)_t x_t: a softmax and a product, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.out = nn.Linear(DIM, 1), nn.Linear(DIM, 2)

    def forward(self, x: Tensor) -> Tensor:
        weights = nn.functional.softmax(self.score(x), dim=1)
        return self.out(torch.matmul(weights.transpose(1, 2), x)[:, 0])


def text(words: list[int], *, label: int | None = None) -> Encoded:
    """[CLS] words [SEP], each word one token, from ids."""
    n = len(words)
    return Encoded(
        id=str(words),
        input_ids=[CLS, *words, SEP],
        token_type_ids=None,
        tokens=["[CLS]", *map(str, words), "[SEP]"],
        word_ids=[-1, *range(n), -1],
        segment=[-1, *[0] * n, -1],
        special=[True, *[False] * n, True],
        label=label,
        words=[[str(w) for w in words]],
    )


def jwa(folder: Path, *, seed: int = 0, **options: object) -> Classifier:
    """A BiLSTM on random vectors of the tiny corpus's words."""
    words = sorted({word for line in tiny.CORPUS for word in line.split()})
    vectors = torch.randn(len(words), 8, generator=torch.Generator().manual_seed(seed))
    lines = [
        f"{w} {' '.join(f'{v:.4f}' for v in vector)}"
        for w, vector in zip(words, vectors.tolist(), strict=True)
    ]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n")
    return load_classifier("jwa", glove=folder / "glove.txt", seed=seed, **options)
