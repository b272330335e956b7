"""Which attribution methods are there, and what is true of each?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
import torch
from torch import Tensor

from erlib.attributions.equal import EQUAL
from erlib.attributions.variants import VARIANTS, Options
from erlib.data.encoding import Batch
from erlib.errors import unknown
from erlib.models.classifier import Classifier, Output

Progress = Callable[[int, int], None]  # parts that are done, and how many there are


def unwatched(done: int, total: int) -> None:
    """The progress of a method that nobody waits for."""


@dataclass
class Request:
    """One batch to explain: what every method receives.

    `target` is the explained class, [batch], or the span (start, end), [batch, 2]; `seeds` has one
    seed per text, so that a stochastic method gives a text the same scores in any batch;
    `max_memory` is in bytes, None for a share of what is free. `output` is in the graph for a
    method whose `needs` name "gradients", and only then. A slow method calls `progress` between its
    parts, where the model is as it was and may be asked something else; what it raises ends the
    method.
    """

    classifier: Classifier
    batch: Batch
    target: Tensor
    per_layer: bool
    seeds: list[int]
    max_memory: int | None = None
    options: Options = field(default_factory=Options)
    gradients: bool = False
    maps: bool = True  # does the method look inside the model's layers?
    known_output: Output | None = None  # of the pass in which the predicted class was found
    progress: Progress = unwatched

    @cached_property
    def output(self) -> Output:
        """The model's output on the plain batch, computed at most once."""
        if self.known_output is not None:
            return self.known_output
        with torch.set_grad_enabled(self.gradients):
            return self.classifier.forward(self.batch.inputs, maps=self.maps)

    @property
    def mask(self) -> Tensor:
        """[batch, token]: 1 for real tokens, specials included."""
        return self.batch.inputs["attention_mask"]


@dataclass
class Scores:
    """What a method returns; pads may hold anything, they are cut away."""

    tokens: Tensor  # [batch, token]
    layers: Tensor | None = None  # [batch, layer, token]
    completeness_gap: Tensor | None = None  # [batch]: Σ scores − (f(x) − f(baseline))


@dataclass(frozen=True)
class Method:
    """A registered method. `scope` is the paper's: local looks at one layer, global at all.

    `needs` says what of the model is used: "attentions", "hidden_states", "queries" (and keys, of a
    model with learned attention), "gradients" (of the plain pass, whose graph is then kept),
    "embeddings" (passes with other embeddings put in), or "predictions" (passes with other tokens).
    `spends` names the field of `Options` that says how much is spent on a text.
    """

    name: str
    function: Callable[[Request], Scores]
    signed: bool
    scope: str
    differentiable: bool
    per_layer: bool
    needs: tuple[str, ...]
    version: int
    spends: str | None = None

    @property
    def looks_inside(self) -> bool:
        """Does it read more of a pass than logits and embeddings?"""
        return bool({"attentions", "hidden_states", "queries"} & set(self.needs))

    @property
    def summary(self) -> str:
        """The first line of the method's docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]


METHODS: dict[str, Method] = {}


def register(
    name: str,
    *,
    signed: bool,
    scope: str,
    differentiable: bool,
    needs: tuple[str, ...],
    per_layer: bool = False,
    version: int,
    spends: str | None = None,
) -> Callable[[Callable[[Request], Scores]], Callable[[Request], Scores]]:
    """Make a function a method of `erlib.attribute`; raise `version` when its numbers change."""

    def add(function: Callable[[Request], Scores]) -> Callable[[Request], Scores]:
        METHODS[name] = Method(
            name, function, signed, scope, differentiable, per_layer, needs, version, spends
        )
        return function

    return add


def method(name: str) -> Method:
    """The registered method of this name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def attribution_table() -> pd.DataFrame:
    """One row per registered method: what it is, what is true of it, and its variants.

    `may_equal`: methods with the same scores by construction, in cases that
    `equal_by_construction` tells.
    """
    rows = [
        {
            "method": m.name,
            "summary": m.summary,
            "signed": m.signed,
            "scope": m.scope,
            "differentiable": m.differentiable,
            "per_layer": m.per_layer,
            "needs": ", ".join(m.needs),
            "spends": m.spends or "",
            "variants": ", ".join(VARIANTS.get(m.name, {})),
            "may_equal": ", ".join(o for o in METHODS if frozenset({m.name, o}) in EQUAL),
            "version": m.version,
        }
        for m in METHODS.values()
    ]
    return pd.DataFrame(rows).set_index("method")


def described() -> str:
    """The table as indented text, for a docstring."""
    lines = []
    for name, row in attribution_table().iterrows():
        facts = [
            "signed" if row["signed"] else "unsigned",
            row["scope"],
            *(["per layer"] if row["per_layer"] else []),
            *(["differentiable"] if row["differentiable"] else []),
        ]
        lines += [
            f"    {name:<22}{row['summary']}",
            f"{'':<26}{', '.join(facts)}; needs: {row['needs'] or 'nothing'}",
            f"{'':<26}variants: {row['variants'] or 'none'}",
        ]
        if row["spends"]:
            lines.append(f"{'':<26}option: {row['spends']}")
        if row["may_equal"]:
            lines.append(f"{'':<26}may equal, by construction: {row['may_equal']}")
    return "\n".join(lines)
