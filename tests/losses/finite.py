"""Is a loss's gradient the limit of its difference quotient?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from erlib.models import Classifier


def agrees(
    model: Classifier,
    loss: Callable[[], Tensor],
    weight: str,
    *,
    analytic: Tensor | None = None,
    places: int = 3,
) -> None:
    """Compare dL/dw with (L(w + h) − L(w − h)) / 2h where the gradient is largest; in float64.

    `analytic`: the loss to differentiate, where what is held fixed in it is fixed in `loss` too.
    """
    w = next(p for n, p in model.model.named_parameters() if n.endswith(weight))
    (gradient,) = torch.autograd.grad(loss() if analytic is None else analytic, w)
    for place in gradient.abs().flatten().topk(places).indices.tolist():
        values = []
        for h in (1e-5, -1e-5):
            with torch.no_grad():
                w.view(-1)[place] += h
            values.append(loss().item())
            with torch.no_grad():
                w.view(-1)[place] -= h
        quotient = (values[0] - values[1]) / 2e-5
        assert gradient.view(-1)[place].item() == pytest.approx(quotient, rel=1e-5, abs=1e-9)
        assert abs(quotient) > 1e-7
