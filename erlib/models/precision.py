"""In what precision does a model compute while it is trained?

fp32   float32 throughout.
tf32   float32 tensors whose matrix products a GPU takes with 10 bits of mantissa, forward and back.
bf16   bfloat16 matrix products inside each pass, forward and back, by autocast. What leaves a pass
       is float32 again, so that every loss, norm and divergence sees float32.

Weights and optimiser are float32 in all of them, and a pass outside of `training_in` (dev scores,
evaluations, attributions) is plain float32: precision is a matter of training, not of a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from functools import cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
from torch import Tensor

Arguments = ParamSpec("Arguments")
Model = TypeVar("Model", bound=Any)  # with a `device`
Passed = TypeVar("Passed", bound=Any)  # a dataclass of tensors, and tuples of them
_in_bf16: ContextVar[bool] = ContextVar("in_bf16", default=False)


@contextmanager
def training_in(precision: str, device: str) -> Iterator[None]:
    """While open, passes of every model and their gradients are computed in this precision."""
    refuse(precision, device)
    products = torch.backends.cuda.matmul
    before, token = products.fp32_precision, _in_bf16.set(precision == "bf16")
    try:
        if precision == "tf32":
            products.fp32_precision = "tf32"
        yield
    finally:
        products.fp32_precision = before
        _in_bf16.reset(token)


def one_pass(
    forward: Callable[Concatenate[Model, Arguments], Passed],
) -> Callable[Concatenate[Model, Arguments], Passed]:
    """A model's forward pass in the precision that is open; its output, a dataclass of tensors, is
    float32. Gradients follow the pass: there is nothing to open around a backward."""

    @wraps(forward)
    def passed(model: Model, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Passed:
        if not in_bf16():
            return forward(model, *args, **kwargs)
        with torch.autocast(torch.device(model.device).type, torch.bfloat16):
            output = forward(model, *args, **kwargs)
        for part in fields(output):
            setattr(output, part.name, _in_float32(getattr(output, part.name)))
        return output

    return passed


def in_bf16() -> bool:
    """Is a pass that begins now one in bfloat16?"""
    return _in_bf16.get()


def _in_float32(part: Any) -> Any:
    if isinstance(part, tuple):
        return tuple(_in_float32(tensor) for tensor in part)
    return part.float() if isinstance(part, Tensor) else part


def refuse(precision: str, device: str) -> None:
    """An error for a precision that the device does not have."""
    if precision == "tf32" and not device.startswith("cuda"):
        raise ValueError(
            f"tf32 is how NVIDIA's GPUs multiply, and the device is '{device}': take "
            "precision='fp32' or 'bf16', or a GPU"
        )


@cache
def warn_if_slow(precision: str, device: str) -> None:
    """A warning, once, where bfloat16 is only imitated, which takes longer than float32."""
    if precision == "bf16" and not multiplies_bf16(device):
        warnings.warn(
            f"this {device} has no instructions for bfloat16 (on a CPU: avx512_bf16 or amx_bf16): "
            "precision='bf16' works, and is slower than 'fp32'",
            stacklevel=4,  # who called `erlib.run`
        )


def multiplies_bf16(device: str) -> bool:
    """Has the device instructions for products of bfloat16?"""
    if device.startswith("cuda"):
        return torch.cuda.is_bf16_supported(including_emulation=False)
    has = torch.cpu.get_capabilities()
    return any(has.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # the last: ARM
