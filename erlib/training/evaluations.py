"""What can be measured of a trained model, text by text?

A kind of evaluation is one function from an `Evaluation` to a table with one row per text, and
one from that table to a few numbers. Kinds that start from another kind's table (plausibility
from attributions) say so in `uses`, and the store then makes that one first and shares it.
The kinds themselves are in `erlib.training.kinds`, one file each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd
from datasets import Dataset

from erlib.config import EvalSpec
from erlib.data.encoding import Encoded
from erlib.errors import unknown
from erlib.models import Classifier


@dataclass
class Evaluation:
    """What a kind works on: the rows, a way to the model, and the table of the kind it uses."""

    spec: EvalSpec
    rows: Dataset
    load: Callable[[], Classifier]
    used: pd.DataFrame | None = None
    device: str = "cpu"

    @cached_property
    def classifier(self) -> Classifier:
        """The trained model in eval mode; loaded only by kinds that need it."""
        return self.load()

    @cached_property
    def texts(self) -> list[Encoded]:
        """The rows as the model sees them."""
        return self.classifier.encode(self.rows, max_length=self.spec.data.max_length)


@dataclass(frozen=True)
class Kind:
    """A registered kind of evaluation; `version` rises whenever its numbers change.

    `methods` are those that it explains with, where the description does not say which;
    `protocols` are those that it can be asked for.
    """

    name: str
    per_text: Callable[[Evaluation], pd.DataFrame]
    summarise: Callable[[pd.DataFrame], dict[str, float]]
    version: int
    uses: str | None = None
    methods: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()


KINDS: dict[str, Kind] = {}


def evaluation(
    name: str,
    *,
    version: int,
    summarise: Callable[[pd.DataFrame], dict[str, float]],
    uses: str | None = None,
    methods: tuple[str, ...] = (),
    protocols: tuple[str, ...] = (),
) -> Callable[[Callable[[Evaluation], pd.DataFrame]], Callable[[Evaluation], pd.DataFrame]]:
    """Register a kind under `name`."""

    def add(function: Callable[[Evaluation], pd.DataFrame]) -> Callable[[Evaluation], pd.DataFrame]:
        KINDS[name] = Kind(name, function, summarise, version, uses, methods, protocols)
        return function

    return add


def kind(name: str) -> Kind:
    """The registered kind of this name."""
    import erlib.training.kinds  # noqa: F401  (registers them)

    if name not in KINDS:
        raise unknown("kind of evaluation", name, KINDS)
    return KINDS[name]


def check_protocol(spec: EvalSpec) -> None:
    """Refuse a protocol that neither the kind knows nor another that is made of the same table,
    which one may want to share."""
    if spec.protocol is None:
        return
    table = kind(spec.kind).uses or spec.kind
    known = {p for k in KINDS.values() if table in (k.name, k.uses) for p in k.protocols}
    if not known:
        raise ValueError(f"{spec.kind} has no protocols, so not '{spec.protocol}' either")
    if spec.protocol not in known:
        raise unknown(f"protocol of {spec.kind}", spec.protocol, known)
