"""Does every term of an objective move the model?

Where attention rests on one token alone, softmax(100·a) is saturated. L_expl then has a gradient
of about 1e-31, no weight changes by a bit, and the run is its Baseline under another name: nobody
would see it in the losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from erlib.config import Term
from erlib.data.encoding import Encoded
from erlib.losses import Step, Weighted
from erlib.models import Classifier

# AdamW divides a gradient by its size plus 1e-8. Below this it would move no weight even alone.
NEGLIGIBLE = 1e-12


class Watched(Weighted):
    """The same losses; and since the epoch began, which of them have `vanished` for the weights.

    A loss of weight 0 is only measured and not looked at, unless it is the `constrained` one,
    which its update weighs. The others cost a part of a backward pass in each epoch's first step,
    and in every further one as long as nothing was found. What is trained does not change.
    """

    def __init__(self, terms: Sequence[Term], constrained: str | None = None) -> None:
        super().__init__(terms)
        self.constrained = constrained
        self._moves: dict[str, bool] = {}

    @property
    def vanished(self) -> list[str]:
        """The losses that had no gradient to speak of in any step of the epoch so far."""
        return [name for name, moves in self._moves.items() if not moves]

    def refresh(self, classifier: Classifier, texts: Sequence[Encoded]) -> None:
        """Begin an epoch."""
        super().refresh(classifier, texts)
        self._moves = {}

    def each(self, step: Step) -> Iterator[tuple[str, float, Tensor]]:
        """As ever, with a look at each training loss that has not yet shown a gradient."""
        for name, weight, value in super().each(step):
            factor = weight or float(name == self.constrained)
            if step.classifier.model.training and factor and not self._moves.get(name):
                self._moves[name] = has_gradient(value, step.classifier, NEGLIGIBLE / abs(factor))
            yield name, weight, value


def has_gradient(loss: Tensor, classifier: Classifier, least: float) -> bool:
    """Is any weight's |∂loss| above `least`? Asked from the top down: there it costs least."""
    if not loss.requires_grad:
        return False
    encoder = classifier.encoder_parameters()
    upper, lower = encoder[len(encoder) // 2 :], encoder[: len(encoder) // 2]
    top = [*classifier.head_parameters(), *classifier.explainer_parameters()]
    for weights in filter(None, (top, upper, lower)):
        slopes = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        if any(slope is not None and slope.abs().max() > least for slope in slopes):
            return True
    return False
