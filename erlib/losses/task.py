"""How wrong is the model on its task?"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from erlib.data.encoding import NO_ANSWER
from erlib.losses.objective import Step, counted_texts, objective


@objective("task", version=1)
class TaskLoss:
    """Mean cross-entropy over the batch; binary for one logit, start plus end for spans."""

    version: ClassVar[int]

    def loss(self, step: Step) -> dict[str, Tensor]:
        logits, labels = step.forward().logits, step.batch.labels
        if labels is None:
            raise ValueError("the task loss needs labels; this batch has none")
        if step.classifier.task == "span":
            start, end = logits.unbind(-1)  # [batch, token] each
            padding = step.mask == 0
            start, end = (z.masked_fill(padding, float("-inf")) for z in (start, end))
            charged = self.counted(step).clamp(min=1)
            both = zip((start, end), labels.unbind(-1), strict=True)
            value = sum(cross_entropy(z, y, reduction="sum") for z, y in both) / (2 * charged)
        elif logits.shape[-1] == 1:
            value = binary_cross_entropy_with_logits(logits[:, 0], labels.to(logits.dtype))
        else:
            value = cross_entropy(logits, labels)
        return {"task": value}

    def counted(self, step: Step) -> Tensor:
        """Texts; of questions, those whose answer was not cut off."""
        if step.classifier.task != "span" or step.batch.labels is None:
            return counted_texts(step)
        return (step.batch.labels[:, 0] != NO_ANSWER).sum()
