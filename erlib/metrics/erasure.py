"""What does a classifier answer when tokens are erased, with no input asked twice?

Erasure metrics ask for many inputs that turn out to be the same: 1 % and 5 % of twenty tokens are
one token, and methods often agree on which. An `Erased` is the input itself, so equal
inputs are equal objects; a `Witness` runs each distinct one once, in batches of similar length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from erlib.data.encoding import Encoded
from erlib.memory import Room
from erlib.models.classifier import Classifier

Operator = Literal["delete", "pad", "mask"]
Target = tuple[int, ...]  # (class,), or (start, end) of a span

# In a pass: a core's cache is small, a GPU is not full with less.
TOKENS, TOKENS_OF_GPU = 2**11, 2**16


@dataclass(frozen=True)
class Erased:
    """An input as the model is to see it, one entry per token."""

    ids: tuple[int, ...]
    visible: tuple[bool, ...]  # attention mask
    types: tuple[int, ...] | None
    blank: bool = False  # zero vectors in place of the word embeddings


def whole(text: Encoded) -> Erased:
    """`text` with nothing erased."""
    return _erased(
        np.asarray(text.input_ids), np.ones(len(text.input_ids), dtype=bool), text.token_type_ids
    )


def erase(text: Encoded, kept: np.ndarray, operator: Operator, pad_id: int) -> Erased:
    """`text` without the tokens that are not in `kept` ([token] bool).

    delete: the sequence shrinks; pad: the id becomes [PAD], mask and position stay; mask: the
    attention mask becomes 0. Where nothing at all is left to look at (a model without specials),
    the model sees blank tokens: one for a deleted text, as many as the text has for a masked one.
    """
    ids, types = np.asarray(text.input_ids), text.token_type_ids
    if operator == "pad":
        return _erased(np.where(kept, ids, pad_id), np.ones_like(kept), types)
    if not kept.any():
        return blank(text, np.arange(len(kept)) < 1 if operator == "delete" else ~kept, pad_id)
    if operator == "mask":
        return _erased(ids, kept, types)
    shorter = None if types is None else np.asarray(types)[kept]
    return _erased(ids[kept], np.ones(kept.sum(), dtype=bool), shorter)


def blank(text: Encoded, kept: np.ndarray, pad_id: int) -> Erased:
    """As many zero embedding vectors as `kept` has tokens; the same for all texts of a length."""
    types = None if text.token_type_ids is None else np.asarray(text.token_type_ids)[kept]
    return _erased(np.full(kept.sum(), pad_id), np.ones(kept.sum(), dtype=bool), types, blank=True)


def _erased(
    ids: np.ndarray,
    visible: np.ndarray,
    types: Sequence[int] | np.ndarray | None,
    blank: bool = False,
) -> Erased:
    rows = None if types is None else tuple(np.asarray(types).tolist())
    return Erased(tuple(ids.tolist()), tuple(visible.tolist()), rows, blank)


class Witness:
    """A classifier in eval mode that remembers its answers.

    An answer is [class] probabilities; of a span model [token, 2], over tokens, for start and end.
    """

    def __init__(self, classifier: Classifier, *, batch_size: int | None = None) -> None:
        self.classifier = classifier.eval()
        self.batch_size = batch_size
        self.pad_id = int(classifier.tokenizer.pad_token_id)
        self.answers: dict[Erased, np.ndarray] = {}
        self.room = Room()

    def ask(self, inputs: Sequence[Erased]) -> list[np.ndarray]:
        """The answer to each input; only those not asked before are run."""
        new = [erased for erased in dict.fromkeys(inputs) if erased not in self.answers]
        most = TOKENS if self.classifier.device.type == "cpu" else TOKENS_OF_GPU
        for batch in _batches(new, self.batch_size, most):
            for some, answers in self.room.portions(batch, self._run):
                for erased, row in zip(some, answers, strict=True):
                    self.answers[erased] = row if row.ndim == 1 else row[: len(erased.ids)]
        return [self.answers[erased] for erased in inputs]

    @torch.no_grad()
    def _run(self, batch: Sequence[Erased]) -> np.ndarray:
        tensors = _collate(batch, self.pad_id, self.classifier.device)
        output = self.classifier.forward(tensors, maps=False)
        if batch[0].blank:
            zeros = torch.zeros_like(output.embeddings)
            output = self.classifier.forward(tensors, embeddings=zeros, maps=False)
        return _distribution(output.logits, batch).cpu().numpy()


def predicted(distribution: np.ndarray) -> Target:
    """The likeliest class, or the likeliest start and end."""
    return tuple(int(i) for i in np.atleast_1d(distribution.argmax(axis=0)))


def probability(distribution: np.ndarray, target: Target) -> float:
    """p(class), or p(start)·p(end)."""
    if distribution.ndim == 1:
        return float(distribution[target[0]])
    return float(np.prod([distribution[token, side] for side, token in enumerate(target)]))


def _batches(
    inputs: Sequence[Erased], batch_size: int | None, most: int
) -> Iterator[list[Erased]]:
    """Inputs in which as many tokens are seen together, blank ones apart: so many inputs, or as
    many as have `most` tokens."""
    batch: list[Erased] = []
    for erased in sorted(inputs, key=lambda e: (e.blank, sum(e.visible), len(e.ids))):
        tokens = (len(batch) + 1) * sum(erased.visible)
        full = tokens > most if batch_size is None else len(batch) == batch_size
        if batch and (full or erased.blank != batch[0].blank):
            yield batch
            batch = []
        batch.append(erased)
    if batch:
        yield batch


def _collate(batch: Sequence[Erased], pad_id: int, device: torch.device | str) -> dict[str, Tensor]:
    """[batch, token] tensors, padded on the right."""
    width = max(len(e.ids) for e in batch)

    def padded(rows: Sequence[Sequence[int]], fill: int) -> Tensor:
        table = np.full((len(rows), width), fill, dtype=np.int64)
        for i, row in enumerate(rows):
            table[i, : len(row)] = row
        return torch.from_numpy(table).to(device)

    tensors = {
        "input_ids": padded([e.ids for e in batch], pad_id),
        "attention_mask": padded([e.visible for e in batch], 0),
    }
    types = [e.types for e in batch if e.types is not None]
    if types:
        tensors["token_type_ids"] = padded(types, 0)
    return tensors


def _distribution(logits: Tensor, batch: Sequence[Erased]) -> Tensor:
    """Softmax over classes; for spans over the text's own tokens, erased ones included: the set
    of possible answers does not change with what is hidden."""
    if logits.ndim == 3:
        logits = logits.double()
        lengths = torch.tensor([len(e.ids) for e in batch], device=logits.device)
        beyond = torch.arange(logits.shape[1], device=logits.device) >= lengths[:, None]
        return logits.masked_fill(beyond[..., None], -torch.inf).softmax(dim=1)
    return probabilities(logits)


def probabilities(logits: Tensor) -> Tensor:
    """[batch, class] in double precision; one logit is that of class 1."""
    logits = logits.double()
    if logits.shape[-1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
    return logits.softmax(dim=-1)
