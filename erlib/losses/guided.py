"""Does the model attend to the tokens that its own explanation calls important? (REGEX, §3.3)

    L_kl = KL(att(x) ‖ g(x)) + KL(att(x̃) ‖ g(x))                                        (eq. 7)

g is the guide: an attribution of the gold class, a distribution over the text's tokens, held
fixed. x̃ is the text with its lowest-scored tokens masked (eq. 6). Specials take no part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from erlib.attributions.attribute import explaining
from erlib.attributions.registry import Request, method
from erlib.attributions.variants import options_of
from erlib.data.encoding import Batch, Encoded, batch_indices
from erlib.errors import unknown
from erlib.losses.objective import Step, objective
from erlib.models.classifier import Classifier

# guide → the variants of the method whose scores are ℓ2 norms, and |means|, over dimensions
GUIDES = {
    "saliency": {"l2": "regex", "mean": "regex_mean"},
    "input_x_gradient": {"l2": "regex_guide", "mean": "regex_guide_mean"},
    "deeplift": {"l2": "regex_guide", "mean": "regex_guide_mean"},
    "integrated_gradients": {"l2": "regex_guide", "mean": "regex_guide_mean"},
}
REFRESHED = ("batch", "epoch")
SMALLEST = 1e-8  # of a guide's share, so that its logarithm is finite
AT_ONCE = 32  # texts explained together when an epoch begins


@objective("guided", version=2)
class ExplanationGuided:
    """L_kl, mean over texts; `guided` is its first KL term, `guided_masked` its second.

    guide, aggregation: whose scores, and how a token's vector becomes one number.
    points: of integrated gradients. percent: how much of a text is masked.
    refreshed: "batch" explains every batch with the weights of that step; "epoch" explains all
        training texts with the weights that the epoch begins with. A text is seen once per epoch,
        so that both explain it equally often.
    """

    version: ClassVar[int]
    only_in_training: ClassVar[bool] = True

    def __init__(
        self,
        guide: str = "integrated_gradients",
        aggregation: str = "l2",
        points: int = 50,
        percent: int = 15,
        refreshed: str = "batch",
    ) -> None:
        if guide not in GUIDES:
            raise unknown("guide", guide, GUIDES)
        if aggregation not in GUIDES[guide]:
            raise unknown("aggregation", aggregation, GUIDES[guide])
        if refreshed not in REFRESHED:
            raise unknown("time to refresh the guide", refreshed, REFRESHED)
        self.guide, self.variant = guide, GUIDES[guide][aggregation]
        self.points, self.percent, self.refreshed = points, percent, refreshed
        self.remembered: dict[str, Tensor] = {}

    def refresh(self, classifier: Classifier, texts: Sequence[Encoded]) -> None:
        """Explain the training texts; does nothing where every batch is explained by itself."""
        if self.refreshed == "batch":
            return
        for chosen in batch_indices([len(t.input_ids) for t in texts], AT_ONCE):
            batch = classifier.batch([texts[i] for i in chosen])
            scores = self.explain(classifier, batch)
            for i, row in zip(chosen, scores, strict=True):
                self.remembered[texts[i].id] = row[: len(texts[i].input_ids)]

    def loss(self, step: Step) -> dict[str, Tensor]:
        """Both KL terms of eq. 7, unweighted."""
        counted = step.mask.bool() & ~step.batch.special  # [batch, token]
        scores = self.scores(step)
        g = distribution(scores, counted).clamp(min=SMALLEST)
        masked = {**step.batch.inputs, "input_ids": self._masked(step, scores, counted)}
        seen, hidden = (self._attention(step, inputs, counted) for inputs in (None, masked))
        return {
            "guided": divergence(seen, g).mean(),
            "guided_masked": divergence(hidden, g).mean(),
        }

    def explain(self, classifier: Classifier, batch: Batch) -> Tensor:
        """The guide's scores of the gold class, [batch, token], without dropout or gradient."""
        if batch.labels is None:
            raise ValueError("the guide explains the gold class; this batch has no labels")
        options = options_of(self.guide, self.variant, classifier.family)
        chosen = method(self.guide)
        with explaining(classifier, dropout=False):
            request = Request(
                classifier,
                batch,
                batch.labels,
                per_layer=False,
                seeds=[],
                options=replace(options, steps=self.points),
                gradients="gradients" in chosen.needs,
            )
            return chosen.function(request).tokens.detach()

    def scores(self, step: Step) -> Tensor:
        """Of this batch, or as remembered from the beginning of the epoch."""
        if self.refreshed == "batch":
            return self.explain(step.classifier, step.batch)
        return pad_sequence([self.remembered[name] for name in step.batch.ids], batch_first=True)

    def _masked(self, step: Step, scores: Tensor, counted: Tensor) -> Tensor:
        """eq. 6: ids with the max(1, ceil(K l)) lowest-scored of a text's l tokens masked."""
        mask_id = step.classifier.tokenizer.mask_token_id
        if mask_id is None:
            raise ValueError(
                f"explanation guided training masks tokens, and the tokenizer of "
                f"{step.classifier.name} has no mask token"
            )
        ids = step.batch.inputs["input_ids"]
        lengths = counted.sum(dim=1, keepdim=True)
        m = (-(-self.percent * lengths // 100)).clamp(min=1)  # ceil, in whole numbers
        order = scores.masked_fill(~counted, torch.inf).argsort(dim=1, stable=True)
        rank = order.argsort(dim=1)
        return ids.masked_fill((rank < m) & counted, mask_id)

    def _attention(self, step: Step, inputs: dict[str, Tensor] | None, counted: Tensor) -> Tensor:
        """att: the read token's row of the last layer, mean over heads, as a distribution."""
        attention = step.forward(inputs).attentions[-1].mean(dim=1)  # [batch, query, key]
        return distribution(step.classifier.read_row(attention, step.mask), counted)


def distribution(scores: Tensor, counted: Tensor) -> Tensor:
    """Scores ≥ 0 divided by their sum over the tokens that count; 0 for the others."""
    scores = scores * counted
    return scores / scores.sum(dim=-1, keepdim=True).clamp(min=SMALLEST)


def divergence(p: Tensor, q: Tensor) -> Tensor:
    """KL(p ‖ q) = Σ_t p_t (log p_t − log q_t), [batch]; where p is 0 nothing is added."""
    return (p * (p.clamp(min=1e-12).log() - q.log())).sum(dim=-1)
