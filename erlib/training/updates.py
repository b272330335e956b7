"""How does a step's loss change the parameters?

A strategy owns its optimiser and schedule and can be saved and restored as tensors, so that the
loop knows nothing of either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import torch
from torch import Tensor

from erlib import checks
from erlib.config import OptimiserSpec, RunSpec, UpdateSpec
from erlib.errors import unknown
from erlib.losses import Step, Weighted
from erlib.models.classifier import Classifier


class Update(Protocol):
    """A strategy: computes the losses of a step, changes the parameters, and returns the losses."""

    version: ClassVar[int]

    def apply(self, objective: Weighted, step: Step, number: int) -> dict[str, Tensor]:
        """Carry out step `number`, counted from 0 over the whole run; losses as `Weighted.loss`."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """The strategy's state as named tensors."""
        ...

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        ...


UPDATES: dict[str, type[Update]] = {}
GIVEN = ("classifier", "spec", "total_steps", "seed")  # by `make_update`, not by the options
Strategy = TypeVar("Strategy", bound=Update)


def strategy(name: str, *, version: int) -> Callable[[type[Strategy]], type[Strategy]]:
    """Register an update strategy; raise `version` whenever its numbers change."""

    def add(cls: type[Strategy]) -> type[Strategy]:
        cls.version = version
        UPDATES[name] = cls
        return cls

    return add


def update_class(spec: UpdateSpec) -> type[Update]:
    """The registered strategy of this name, which must take the options."""
    import erlib.training.pilot  # noqa: F401  (registers its strategy)

    if spec.name not in UPDATES:
        raise unknown("update strategy", spec.name, UPDATES)
    make = UPDATES[spec.name]
    checks.options_of(f"update '{spec.name}'", make, dict(spec.options), but=GIVEN)
    return make


def make_update(spec: RunSpec, classifier: Classifier, total_steps: int) -> Update:
    """The run's strategy for a run of `total_steps`; one that is `seeded` gets the run's seed."""
    make: Callable[..., Update] = update_class(spec.update)
    options = dict(spec.update.options)
    if getattr(make, "seeded", False):
        options["seed"] = spec.seed
    return make(classifier, spec.optimiser, total_steps, **options)


def linear_schedule(step: int, total: int, warmup: float) -> float:
    """The factor on the learning rate at `step` of `total`: linear up, then linear down to 0."""
    rising = round(warmup * total)
    if step < rising:
        return step / rising
    return max(0.0, (total - step) / max(1, total - rising))


def summed(step: Step, losses_of: Callable[[Step], dict[str, Tensor]]) -> dict[str, Tensor]:
    """The losses of a step, part by part, and the gradients of their `loss` added up."""
    found: dict[str, Tensor] = {}
    for part in step.parts():
        losses = losses_of(part)
        losses["loss"].backward()
        for name, value in losses.items():
            found[name] = found[name] + value.detach() if name in found else value.detach()
    return found


@strategy("plain", version=2)
class PlainUpdate:
    """AdamW on the weighted sum of all losses, with one learning rate per parameter group.

    explainer_lr: of the learned attention, if not the run's.
    decay: the learning rate is multiplied by this every second epoch, in place of the run's
        schedule (IvRA, §H).
    """

    version: ClassVar[int]

    def __init__(
        self,
        classifier: Classifier,
        spec: OptimiserSpec,
        total_steps: int,
        *,
        explainer_lr: float | None = None,
        decay: float | None = None,
    ) -> None:
        self.spec = spec
        self.total_steps = total_steps
        self.decay = decay
        rates = (spec.lr, spec.head_lr, explainer_lr)
        self.rates = tuple(spec.lr if rate is None else rate for rate in rates)
        groups = (
            classifier.encoder_parameters(),
            classifier.head_parameters(),
            classifier.explainer_parameters(),
        )
        self.optimiser = self.optimiser_of(
            [{"params": group, "lr": lr} for group, lr in zip(groups, self.rates, strict=True)]
        )

    def optimiser_of(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """AdamW over parameter groups."""
        return torch.optim.AdamW(
            groups, betas=self.spec.betas, weight_decay=self.spec.weight_decay, fused=True
        )

    def apply(self, objective: Weighted, step: Step, number: int) -> dict[str, Tensor]:
        """One descent step on the weighted sum."""
        self.optimiser.zero_grad(set_to_none=True)
        losses = summed(step, objective.loss)
        self.move(number)
        return losses

    def descend(self, loss: Tensor, number: int) -> None:
        """One AdamW step on `loss`, at the schedule's learning rate."""
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.move(number)

    def move(self, number: int) -> None:
        """One AdamW step by the gradients that are there."""
        if self.spec.clip is not None:
            torch.nn.utils.clip_grad_norm_(self._parameters(), self.spec.clip)
        for group, lr in zip(self.optimiser.param_groups, self.rates, strict=True):
            group["lr"] = lr * self.factor(number)
        self.optimiser.step()

    def factor(self, number: int) -> float:
        """What the run's schedule makes of the learning rate at step `number`."""
        if self.decay is not None:
            epoch = number * self.spec.epochs // self.total_steps
            return self.decay ** (epoch // 2)
        if self.spec.schedule == "constant":
            return 1.0
        return linear_schedule(number, self.total_steps, self.spec.warmup)

    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimiser.param_groups for p in group["params"]]

    def tensors(self) -> dict[str, Tensor]:
        """The optimiser's state as named tensors."""
        state = self.optimiser.state_dict()["state"]
        return {f"{i}.{key}": value for i, slot in state.items() for key, value in slot.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            index, key = name.split(".", 1)
            state.setdefault(int(index), {})[key] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})


@strategy("sgd", version=2)
class PlainDescent(PlainUpdate):
    """The same by plain gradient descent, without momentum or state: students of IvRA §H."""

    version: ClassVar[int]

    def optimiser_of(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """SGD over parameter groups."""
        return torch.optim.SGD(groups, weight_decay=self.spec.weight_decay)

    def tensors(self) -> dict[str, Tensor]:
        """None: the learning rate follows from the step."""
        return {}


@strategy("constrained", version=2)
class ConstrainedUpdate(PlainUpdate):
    """min over θ, max over α ≥ 0 of L + α (L_term − bound), with one Lagrange multiplier.

    The objective holds the other terms; `term` enters it with weight 0, so that it is measured.
    α starts at 1, is clamped before each step, and climbs by RMSprop with the same schedule.
    """

    version: ClassVar[int]

    def __init__(
        self,
        classifier: Classifier,
        spec: OptimiserSpec,
        total_steps: int,
        *,
        term: str,
        bound: float,
        lr: float,
    ) -> None:
        super().__init__(classifier, spec, total_steps)
        self.term, self.bound, self.lr = term, bound, lr
        self.multiplier = torch.ones((), device=classifier.device, requires_grad=True)
        self.ascent = torch.optim.RMSprop([self.multiplier], lr=lr, maximize=True)

    def apply(self, objective: Weighted, step: Step, number: int) -> dict[str, Tensor]:
        """Descend in θ, ascend in α; the α that was used is logged as `multiplier`."""
        with torch.no_grad():
            self.multiplier.clamp_(min=0)
        used = self.multiplier.detach().clone()
        self.ascent.zero_grad(set_to_none=True)
        self.optimiser.zero_grad(set_to_none=True)

        def lagrangian(part: Step) -> dict[str, Tensor]:
            losses = objective.loss(part)
            bound = self.bound if part.first == 0 else 0.0  # once for the whole batch
            violated = losses[self.term] - bound
            return {**losses, "loss": losses["loss"] + self.multiplier * violated}

        losses = summed(step, lagrangian)
        self.move(number)
        for group in self.ascent.param_groups:
            group["lr"] = self.lr * self.factor(number)
        self.ascent.step()
        return {**losses, "multiplier": used}

    def tensors(self) -> dict[str, Tensor]:
        """The state of both optimisers, and α."""
        slots = self.ascent.state_dict()["state"].get(0, {})
        ascent = {f"ascent.{key}": value for key, value in slots.items()}
        return {**super().tensors(), **ascent, "multiplier": self.multiplier.detach()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`."""
        own = {k.removeprefix("ascent."): v for k, v in tensors.items() if k.startswith("ascent.")}
        with torch.no_grad():
            self.multiplier.copy_(tensors["multiplier"])
        groups = self.ascent.state_dict()["param_groups"]
        self.ascent.load_state_dict({"state": {0: own}, "param_groups": groups})
        super().restore({k: v for k, v in tensors.items() if k.split(".")[0].isdigit()})
