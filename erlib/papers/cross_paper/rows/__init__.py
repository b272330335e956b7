"""Which ways of training are compared? Each file here registers its own: yours is one file more.

@row("Peaked attention", family="mine")
def peaked(ground: Ground) -> RunSpec:
    terms = (term("task"), term("attention_entropy", 0.1))
    return replace(ground.baseline, objective=terms)
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from erlib.config import RunSpec
from erlib.papers.cross_paper.ground import Ground

Make = Callable[[Ground], RunSpec]


@dataclass(frozen=True)
class Row:
    """A way of training. `guide`: the technique whose bounds it is trained under; `own`: the
    attribution that it was trained to be explained by, which others do not have."""

    name: str
    family: str
    make: Make
    guide: str = ""
    own: str = ""


ROWS: dict[str, Row] = {}


def row(name: str, *, family: str, guide: str = "", own: str = "") -> Callable[[Make], Make]:
    """Register how a row's run is made of the ground that it stands on."""

    def add(make: Make) -> Make:
        ROWS[name] = Row(name, family, make, guide, own)
        return make

    return add


for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    import_module(f"{__name__}.{_module.name}")
