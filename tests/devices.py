"""A GPU that is none: the same arithmetic on the CPU, and an error where CUDA would raise one.

While `pretended()` is open the device "pretend" exists. A tensor on it carries one of the CPU;
where it meets a tensor of the CPU (but for 0-dim ones, indices, and lengths of packed sequences,
which CUDA takes from there), or is asked for NumPy, there is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._device import _device_constructors
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import (
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

NAME = "pretend"
aten = torch.ops.aten
# which take an argument from the CPU, as CUDA's do
TAKES_INDICES = (aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_)
TAKES_LENGTHS = (aten._pack_padded_sequence, aten._pack_padded_sequence_backward)
COPIES = (aten._to_copy, aten.copy_)


class MixedDevices(RuntimeError):
    """Tensors of two devices met."""


class Pretended(Tensor):
    """A tensor on the device; `held` is what it is on the CPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> Pretended:
        made = Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=torch.device(NAME, 0),
        )  # fmt: skip
        made.held = held
        return made

    def tolist(self) -> Any:
        return self.held.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy; use Tensor.cpu()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy()

    def __getitem__(self, index: Any) -> Tensor:
        """A list is an index on the CPU, which torch would make where nobody can see it."""
        parts = index if isinstance(index, tuple) else (index,)
        made = tuple(torch.tensor(part) if isinstance(part, list) else part for part in parts)
        return super().__getitem__(made)

    def untyped_storage(self) -> Any:  # what tells shared weights apart when they are saved
        return self.held.untyped_storage()

    def data_ptr(self) -> int:
        return self.held.data_ptr()

    def storage(self) -> Any:
        return self.held.storage()

    def __repr__(self) -> str:
        return f"Pretended({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(op, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl


class Device(TorchDispatchMode):
    """Sees the operations in which no tensor of the device takes part yet: `zeros(device=…)`."""

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return dispatched(op, args, kwargs or {})


def dispatched(op: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Carry an operation out on the CPU; what comes out is on the device where CUDA's would be."""
    tensors = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    asked = kwargs.get("device")
    here = any(isinstance(t, Pretended) for t in tensors)
    packet = op.overloadpacket
    if here and packet not in COPIES:
        refuse_mixture(op, packet, args, tensors)
    goes = torch.device(asked).type == NAME if asked is not None else here
    if asked is not None and goes:  # "meta" stays what it is
        kwargs = {**kwargs, "device": torch.device("cpu")}
    inner, options = pytree.tree_map_only(Pretended, lambda t: t.held, (args, kwargs))
    made = LSTM_CELLS.get(packet, op)(*inner, **options)
    if packet is aten.copy_:
        return args[0]
    if not goes:
        return made
    if packet is aten._pack_padded_sequence:  # whose second part is for the CPU
        return Pretended(made[0]), made[1]
    own = {id(t.held): t for t in tensors if isinstance(t, Pretended)}  # changed in place
    return pytree.tree_map_only(Tensor, lambda t: or_new(t, own), made)


def lstm_cell(x: Tensor, h: Tensor, cx: Tensor, *biases: Tensor | None) -> tuple[Tensor, ...]:
    """CUDA's fused cell, which the CPU has not: h, c, and the gates for the way back."""
    gates = (x + h + sum(b for b in biases if b is not None)).chunk(4, dim=1)
    i, f, o = (gates[n].sigmoid() for n in (0, 1, 3))
    g = gates[2].tanh()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], dim=1)


def lstm_cell_back(
    grad_h: Tensor | None, grad_c: Tensor | None, cx: Tensor, cy: Tensor, gates: Tensor, bias: bool
) -> tuple[Tensor | None, ...]:
    """The gradients of the gates, of c, and of the biases."""
    i, f, g, o = gates.chunk(4, dim=1)
    zero, t = torch.zeros_like(cy), cy.tanh()
    grad_h = zero if grad_h is None else grad_h
    c = (zero if grad_c is None else grad_c) + grad_h * o * (1 - t * t)
    of_o = grad_h * t * o * (1 - o)
    made = torch.cat((c * g * i * (1 - i), c * cx * f * (1 - f), c * i * (1 - g * g), of_o), dim=1)
    return made, c * f, made.sum(dim=0) if bias else None


LSTM_CELLS = {
    aten._thnn_fused_lstm_cell: lstm_cell,
    aten._thnn_fused_lstm_cell_backward_impl: lstm_cell_back,
}


def or_new(made: Tensor, own: dict[int, Pretended]) -> Tensor:
    """The tensor itself where an operation gave it back, or a new one on the device."""
    found = own.get(id(made))
    return Pretended(made) if found is None else found


def refuse_mixture(op: Any, packet: Any, args: Any, tensors: list[Tensor]) -> None:
    """An error for a tensor of the CPU among those of the device."""
    strangers = [t for t in tensors if not isinstance(t, Pretended) and t.ndim]
    if packet in TAKES_INDICES and isinstance(args[0], Pretended):
        indices = pytree.tree_leaves(args[1])
        strangers = [t for t in strangers if not any(t is index for index in indices)]
    if packet in TAKES_LENGTHS:
        strangers = strangers[1:]
    if strangers:
        shapes = ", ".join(str(tuple(t.shape)) for t in strangers)
        raise MixedDevices(f"{op}: tensors of the CPU, {shapes}, meet tensors of the device")


def made_of(tensor: Any, data: Any, *, device: Any = None, **options: Any) -> Tensor:
    """`torch.tensor`, which would move what it has made where nobody can see it."""
    made = tensor(data, **options)
    return made if device is None else made.to(device)


class Backend(_DummyBackendModule):
    """Random numbers are the CPU's: there is no state of the device's own to be kept."""

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.zeros(1, dtype=torch.uint8)

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        pass


# When this is imported, and not later: with its first backward pass, torch counts its devices.
_setup_privateuseone_for_python_backend(NAME, backend_module=Backend())
_device_constructors()  # torch remembers which functions take a device: the true `torch.tensor` too


@contextmanager
def pretended() -> Iterator[str]:
    """While open there is the device; its name."""
    before = torch.__future__.get_overwrite_module_params_on_conversion()
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    try:
        with Device(), patch.object(torch, "tensor", partial(made_of, torch.tensor)):
            yield NAME
    finally:
        torch.__future__.set_overwrite_module_params_on_conversion(before)
