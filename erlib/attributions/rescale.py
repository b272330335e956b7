"""What is DeepLIFT where every non-linear step has a rule of its own?

DeepLIFT propagates multipliers m with Σ m Δx = Δy from the output to the input. Captum knows the
rule for a few activation modules and falls back to the gradient elsewhere, on Transformers almost
everywhere. Here an input and its reference run through the model as one batch (first half, second
half), and while `RescaleRule` is open, each step has the multiplier that makes its sum exact:

    y = g(x), elementwise     m = Δy / Δx, the rescale rule; g'(x) where Δx = 0
    y = a · b, also matrices  Δy = b̄ Δa + ā Δb, bars for the mean of input and reference: both
                              orders of change averaged
    norms, y = c / σ          Δy = Δc / σ + c' Δ(1/σ), primes for the reference: of the two orders
                              the one that stays bounded if x' is zero and 1/σ' is 1/√eps
    y = softmax(x)            the gradient, averaged along the line from x' to x

Sums, means, linear maps and shapes need no rule. A fused LSTM is the one step without.
The obvious rules for softmax, Δy_i / Δx_i or a rule each for exp and division, are exact as well,
but their multipliers are not bounded: over the six layers of MiniLM they grow to 10^22.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

ELEMENTWISE = {
    "tanh", "sigmoid", "relu", "gelu", "silu", "elu", "leaky_relu", "softplus",
    "exp", "erf", "sqrt", "rsqrt", "reciprocal", "square", "pow", "__pow__",
}  # fmt: skip
PRODUCTS = {"mul", "__mul__", "__rmul__", "matmul", "__matmul__", "bmm"}
QUOTIENTS = {"div", "__truediv__", "true_divide"}
POINTS = 8  # of the line, for softmax
SAME = 1e-9  # |Δx| below which input and reference are taken to be equal


class RescaleRule(TorchFunctionMode):
    """While open, steps on tensors that require gradients get DeepLIFT's multipliers as gradients.

    Such tensors hold the input in the first half of their first dimension and the reference in
    the second.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inverse_scales: list[Tensor] = []  # Llama's norm is x * rsqrt(mean of squares)

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        active = [isinstance(a, Tensor) and a.requires_grad for a in args[:2]]
        if not any(active):
            return func(*args, **kwargs)
        if name in ELEMENTWISE:
            y = elementwise(args[0], lambda t: func(t, *args[1:], **kwargs))
            if name == "rsqrt":
                self.inverse_scales.append(y)
            return y
        if name in PRODUCTS and all(active):
            if any(args[1] is scale for scale in self.inverse_scales):
                return scaled(args[0], args[1])
            return product(args[0], args[1], func)
        if name in QUOTIENTS and len(active) > 1 and active[1]:
            inverse = elementwise(args[1], torch.reciprocal)
            return product(args[0], inverse, torch.mul) if active[0] else args[0] * inverse
        if name == "softmax":
            return softmax(args[0], kwargs["dim"] if "dim" in kwargs else args[1])
        if name == "layer_norm":
            return layer_norm(*args, **kwargs)
        return func(*args, **kwargs)


RULED = (nn.ReLU, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.Softplus)  # by Captum


class ModuleRule:
    """DeepLIFT as Captum has it: the rescale rule at activations that are modules, and no other.

    f is first asked `at_reference`, then, while this is open, at the input; or, in `halves`, at
    both in one batch, the input first.
    """

    def __init__(self, f: nn.Module, *, halves: bool = False) -> None:
        self.halves = halves
        self.modules = [module for module in f.modules() if type(module) in RULED]
        self.inputs: list[Tensor] = []  # of the modules, in the order of their calls
        self._hooks: list[Any] = []

    def at_reference(self, f: Callable[[], Tensor]) -> Tensor:
        """f(x'), with what each activation is given there."""
        hooks = [m.register_forward_pre_hook(self._keep) for m in self.modules]
        try:
            with torch.no_grad():
                return f()
        finally:
            for hook in hooks:
                hook.remove()

    def _keep(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self.inputs.append(args[0].detach())

    def __enter__(self) -> None:
        self._hooks = [m.register_forward_hook(self._replace) for m in self.modules]

    def __exit__(self, *error: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _replace(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if not self.halves:
            return _Rescaled.apply(args[0], self.inputs.pop(0), module.forward)
        x, reference = args[0].chunk(2)
        y = _Rescaled.apply(x, reference.detach(), module.forward)
        return torch.cat([y, output[len(x) :]])


class _Rescaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, reference: Tensor, g: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(x, reference)
        ctx.g = g
        return g(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        x, reference = ctx.saved_tensors
        return (gradients[0] * secant(x, reference, ctx.g)).to(x.dtype), None, None


def secant(x: Tensor, reference: Tensor, g: Callable[[Tensor], Tensor]) -> Tensor:
    """Δy / Δx, or g'(x) where Δx = 0; in double: both are differences of close numbers."""
    with torch.enable_grad():
        wide = x.double().requires_grad_()
        y = g(wide)
        (slope,) = torch.autograd.grad(y.sum(), wide)
    dx, dy = wide.detach() - reference.double(), y.detach() - g(reference.double())
    return torch.where(dx.abs() < SAME, slope, dy / dx)


def elementwise(x: Tensor, g: Callable[[Tensor], Tensor]) -> Tensor:
    """g(x) with the rescale rule."""
    return _Elementwise.apply(x, g)


def product(a: Tensor, b: Tensor, bilinear: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """bilinear(a, b) with the change shared between both factors."""
    return _Product.apply(a, b, bilinear, _mean, _mean)


def scaled(centred: Tensor, inverse_scale: Tensor) -> Tensor:
    """centred · inverse_scale, the step in a norm: first the state changes, then the scale."""
    return _Product.apply(centred, inverse_scale, torch.mul, _reference, _input)


def softmax(x: Tensor, dim: int) -> Tensor:
    """softmax(x) with the gradient averaged along the line from reference to input."""
    return _Softmax.apply(x, dim)


def layer_norm(
    x: Tensor,
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """γ · (x − x̄) · 1/σ + β over the last dimension."""
    centred = x - x.mean(-1, keepdim=True)
    variance = product(centred, centred, torch.mul).mean(-1, keepdim=True)
    y = scaled(centred, elementwise(variance + eps, torch.rsqrt))
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


class _Elementwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, g: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.save_for_backward(x)
        ctx.g = g
        return g(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        at_input, at_reference = x.chunk(2)
        multiplier = torch.cat([secant(at_input, at_reference, ctx.g),
                                secant(at_reference, at_input, ctx.g)])  # fmt: skip
        return (gradients[0] * multiplier).to(x.dtype), None


class _Product(torch.autograd.Function):
    """The gradient of a bilinear map, taken where `at_a` and `at_b` put its factors."""

    @staticmethod
    def forward(
        ctx: Any,
        a: Tensor,
        b: Tensor,
        bilinear: Callable[[Tensor, Tensor], Tensor],
        at_a: Callable[[Tensor], Tensor],
        at_b: Callable[[Tensor], Tensor],
    ) -> Tensor:
        ctx.save_for_backward(a, b)
        ctx.bilinear, ctx.at = bilinear, (at_a, at_b)
        return bilinear(a, b)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        with torch.enable_grad():
            points = zip(ctx.at, ctx.saved_tensors, strict=True)
            a, b = (at(both).requires_grad_() for at, both in points)
            to_a, to_b = torch.autograd.grad(ctx.bilinear(a, b), (a, b), gradients[0])
        return to_a, to_b, None, None, None


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dim: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.dim = dim
        return x.softmax(dim)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (x,), dim = ctx.saved_tensors, ctx.dim
        g, dx = gradients[0], _difference(x)
        total = torch.zeros_like(x)
        nodes, weights = np.polynomial.legendre.leggauss(POINTS)
        for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
            y = (_reference(x) + float(node) * dx).softmax(dim)
            total += float(weight) * y * (g - (g * y).sum(dim, keepdim=True))
        # What the few points miss of Σ g Δy, spread as evenly as it can be
        missing = (g * _difference(x.softmax(dim)) - total * dx).sum(dim, keepdim=True)
        length = dx.square().sum(dim, keepdim=True)
        return total + missing * dx / length.clamp(min=torch.finfo(x.dtype).tiny), None


def _difference(both: Tensor) -> Tensor:
    """Input minus reference, for both halves."""
    at_input, at_reference = both.chunk(2)
    return torch.cat(2 * [at_input - at_reference])


def _mean(both: Tensor) -> Tensor:
    """(input + reference) / 2, for both halves."""
    at_input, at_reference = both.chunk(2)
    return torch.cat(2 * [(at_input + at_reference) / 2])


def _input(both: Tensor) -> Tensor:
    """The input, in both halves."""
    return torch.cat(2 * [both.chunk(2)[0]])


def _reference(both: Tensor) -> Tensor:
    """The reference, in both halves."""
    return torch.cat(2 * [both.chunk(2)[1]])
