"""How far is the model's attention from the words that are salient in themselves? (SaLoss, §3)

    L = CE + λ L_sal,    L_sal = KL(α, σ) = Σ_t α_t (log α_t − log σ_t)                      (2, 3)

α is the read token's row of the last layer's head-averaged attention, σ the softmax of a salience
function over all real tokens. The paper's code departs from eq. 3 twice: it takes a second softmax
of α, which makes it almost uniform, and squares the sum over the batch (saloss.md §4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from erlib.data.encoding import Encoded
from erlib.data.salience import Tokens, salience
from erlib.errors import unknown
from erlib.losses.objective import Step, objective

# reading → (second softmax of α, square of the batch's sum)
READINGS = {
    "paper": (False, False),
    "second_softmax": (True, False),
    "squared_sum": (False, True),
    "reference": (True, True),
}
SMALLEST = 1e-12  # attention dropout may leave a token nothing, whose logarithm would be −∞


@objective("salience", version=2)
class SalienceLoss:
    """KL of attention from salience: mean over texts, or the reference's squared sum.

    `salience_of` and its options are those of `erlib.data.salience`; `kl` is a reading of eq. 3. A
    text is scored once and remembered by its tokens.
    """

    version: ClassVar[int]

    def __init__(self, kl: str, salience_of: str = "textrank", **options: int) -> None:
        if kl not in READINGS:
            raise unknown("reading of the KL term", kl, READINGS)
        self.second_softmax, self.squared_sum = READINGS[kl]
        self.of_whole_batch = self.squared_sum
        self.salience = salience(salience_of, **options)
        self.remembered: dict[Tokens, Tensor] = {}

    def fit(self, texts: Sequence[Encoded]) -> None:
        """Word statistics of the training texts, and their salience."""
        tokens = [Tokens.of(text) for text in texts]
        self.salience.fit(tokens, [text.label or 0 for text in texts])
        for text in tokens:
            self._score(text)

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted term under the name `salience`."""
        attention = step.forward().attentions[-1].mean(dim=1)  # [batch, query, key]
        read = step.classifier.read_row(attention, step.mask)
        divergence = kl_divergence(
            read, self._salience(step), step.mask.bool(), second_softmax=self.second_softmax
        )
        value = divergence.sum() ** 2 if self.squared_sum else divergence.mean()
        return {"salience": value}

    def _salience(self, step: Step) -> Tensor:
        """[batch, token], specials and pads 0"""
        inputs, name = step.batch.inputs, step.classifier.tokenizer.convert_ids_to_tokens
        all_ids, all_special, mask = (
            t.cpu() for t in (inputs["input_ids"], step.batch.special, step.mask.bool())
        )
        texts = [
            Tokens(tuple(name(ids[real].tolist())), tuple(special[real].tolist()))
            for ids, special, real in zip(all_ids, all_special, mask, strict=True)
        ]
        scores = torch.zeros(mask.shape)
        scores[mask] = torch.cat([self._score(text) for text in texts])
        return scores.to(step.mask.device)

    def _score(self, text: Tokens) -> Tensor:
        if text not in self.remembered:
            self.remembered[text] = torch.from_numpy(self.salience.score(text)).float()
        return self.remembered[text]


def kl_divergence(
    attention: Tensor, salience: Tensor, mask: Tensor, *, second_softmax: bool = False
) -> Tensor:
    """eq. 3 for each text, [batch], from [batch, token] scores and a mask of the real tokens.

    α is divided by its sum, which attention dropout moves away from 1, or goes through another
    softmax; σ always goes through one.
    """
    log_sigma = salience.masked_fill(~mask, -torch.inf).log_softmax(dim=-1)
    if second_softmax:
        alpha = attention.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    else:
        alpha = attention * mask / (attention * mask).sum(dim=-1, keepdim=True)
    log_ratio = alpha.clamp(min=SMALLEST).log() - log_sigma.masked_fill(~mask, 0.0)
    return (alpha * log_ratio).sum(dim=-1)


@objective("task_on_probabilities", version=1)
class TaskOnProbabilities:
    """Cross-entropy of softmax outputs taken for logits, as the paper's code: saloss.md §4.4."""

    version: ClassVar[int]

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Under the name `task`, in whose place it stands."""
        if step.batch.labels is None:
            raise ValueError("the task loss needs labels; this batch has none")
        return {"task": cross_entropy(step.forward().logits.softmax(dim=-1), step.batch.labels)}
