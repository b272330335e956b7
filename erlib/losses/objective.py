"""What is an objective, and how are its terms composed?

An objective is a small class that turns a `Step` into named losses. It knows nothing of the
training loop. `Weighted` sums the terms of a `RunSpec` with their weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from erlib import checks
from erlib.config import Term
from erlib.data.encoding import Batch, Encoded
from erlib.errors import unknown
from erlib.models.classifier import Classifier, Output
from erlib.models.learned_attention import Explanation, explain


class Step:
    """One batch seen by one model; forward passes are shared by all terms of the objective.

    Where memory is short a pass holds only `at_once` of its texts: the step's `parts`.
    """

    def __init__(self, classifier: Classifier, batch: Batch, at_once: int | None = None) -> None:
        self.classifier = classifier
        self.batch = batch
        self.at_once = at_once
        self.whole: Step | None = None  # of which this is a part, from its text `first` on
        self.first = 0
        self._passes: list[tuple[tuple[Any, ...], Output]] = []
        self._drawn: dict[str, Tensor] = {}

    def parts(self) -> Iterator[Step]:
        """The batch, some texts at a time; the losses of the parts add up to those of the batch."""
        if self.at_once is None or self.at_once >= len(self.batch.ids):
            yield self
            return
        for first in range(0, len(self.batch.ids), self.at_once):
            part = Step(self.classifier, self.batch.texts(first, first + self.at_once))
            part.whole, part.first = self, first
            yield part

    def drawn(self, name: str, draw: Callable[[Step], Tensor]) -> Tensor:
        """A number or a tensor of texts that is drawn for the whole batch, whatever its parts."""
        if self.whole is None:
            return draw(self)
        known = self.whole._drawn
        if name not in known:
            known[name] = draw(self.whole)
        found = known[name]
        return found[self.first : self.first + len(self.batch.ids)] if found.ndim else found

    @property
    def mask(self) -> Tensor:
        """[batch, token]: 1 for real tokens (specials included), 0 for padding."""
        return self.batch.inputs["attention_mask"]

    def forward(
        self, inputs: dict[str, Tensor] | None = None, gate: Tensor | None = None
    ) -> Output:
        """The model's output, computed once for the same argument objects within this step."""
        arguments = (inputs, gate)
        for seen, output in self._passes:
            if all(a is b for a, b in zip(seen, arguments, strict=True)):
                return output
        output = self.classifier.forward(self.batch.inputs if inputs is None else inputs, gate=gate)
        self._passes.append((arguments, output))
        return output

    @cached_property
    def explanation(self) -> Explanation:
        """What the classifier's learned attention says of the plain pass, computed once."""
        return explain(self.classifier, self.forward(), self.mask)


class Objective(Protocol):
    """Named losses of one step; each is a scalar in the graph."""

    version: ClassVar[int]

    def loss(self, step: Step) -> dict[str, Tensor]:
        """The unweighted losses by name."""
        ...


@runtime_checkable
class Fitted(Protocol):
    """An objective that must know the training texts before the first step (word statistics)."""

    def fit(self, texts: Sequence[Encoded]) -> None:
        """Called once, with the encoded training texts."""
        ...


@runtime_checkable
class Refreshed(Protocol):
    """An objective that looks at all training texts with the weights each epoch begins with."""

    def refresh(self, classifier: Classifier, texts: Sequence[Encoded]) -> None:
        """Called before the first step of every epoch; must not draw random numbers."""
        ...


@runtime_checkable
class Guided(Protocol):
    """An objective that follows an attribution: its name in `erlib.attribute`."""

    guide: str


OBJECTIVES: dict[str, type[Objective]] = {}
Loss = TypeVar("Loss", bound=Objective)


def objective(name: str, *, version: int) -> Callable[[type[Loss]], type[Loss]]:
    """Register a loss under `name`; raise `version` whenever its numbers change."""

    def add(cls: type[Loss]) -> type[Loss]:
        cls.version = version
        OBJECTIVES[name] = cls
        return cls

    return add


def build(term: Term) -> Objective:
    """The registered loss of a term, made with the term's options."""
    if term.name not in OBJECTIVES:
        raise unknown("objective", term.name, OBJECTIVES)
    make, options = OBJECTIVES[term.name], dict(term.options)
    checks.options_of(f"objective '{term.name}'", make, options)
    return make(**options)


class Weighted:
    """L = Σ_i w_i L_i over the terms of a run; `loss` also returns every L_i unweighted."""

    def __init__(self, terms: Sequence[Term]) -> None:
        self.parts = [(t.weight, build(t)) for t in terms]

    def fit(self, texts: Sequence[Encoded]) -> None:
        """Show the training texts to the terms that ask for them."""
        for _, part in self.parts:
            if isinstance(part, Fitted):
                part.fit(texts)

    def refresh(self, classifier: Classifier, texts: Sequence[Encoded]) -> None:
        """Let the terms that ask for it look at the training texts before an epoch."""
        for _, part in self.parts:
            if isinstance(part, Refreshed):
                part.refresh(classifier, texts)

    def loss(self, step: Step) -> dict[str, Tensor]:
        """All unweighted losses, and their weighted sum under the name `loss`."""
        losses: dict[str, Tensor] = {}
        total = torch.zeros((), device=step.classifier.device)
        for name, weight, value in self.each(step):
            if name in losses:
                raise ValueError(f"two terms of the objective have a loss named '{name}'")
            losses[name] = value
            total = total + weight * value
        return {**losses, "loss": total}

    def each(self, step: Step) -> Iterator[tuple[str, float, Tensor]]:
        """Name, weight and value of every loss.

        A term with `only_in_training` (it costs many passes and says nothing about held-out texts)
        is left out for a model in evaluation mode.
        """
        for weight, part in self.parts:
            if getattr(part, "only_in_training", False) and not step.classifier.model.training:
                continue
            for name, value in part.loss(step).items():
                yield name, weight, value if step.whole is None else value * share(part, step)


def counted_texts(step: Step) -> Tensor:
    """How many texts a step has: over what most losses are means."""
    return torch.tensor(float(len(step.batch.ids)))


def share(loss: Objective, part: Step) -> Tensor:
    """How much of a loss over a batch is that of one of its parts.

    A loss is a mean over what it has `counted`, texts unless it says otherwise; one that compares
    the texts of a batch with each other is no sum over parts and cannot be taken so.
    """
    assert part.whole is not None
    if getattr(loss, "of_whole_batch", False):
        raise ValueError(
            f"{type(loss).__name__} compares the texts of a batch, so that all of them must fit in "
            "memory at once: take a smaller batch or shorter texts"
        )
    counted = getattr(loss, "counted", counted_texts)
    return counted(part) / counted(part.whole).clamp(min=1)
