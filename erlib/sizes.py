"""What may a profile set for a paper, and what does it leave out of the paper?

`[sizes]` of a `paper.toml` has one entry per setting, under its path with dots; * stands for any
name. An entry says the kind of its values and, where the setting makes a study smaller than the
paper's, what it counts (`says`) and how much of that the paper has (`paper`):

    "train_rows" = { kind = "count", says = "training texts", paper = "all" }
    "attributed.*.*" = { kind = "count" }

A profile is checked against it when it is read, before anything is computed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from erlib.catalogue import Paper
from erlib.errors import unknown


def _whole(value: Any) -> bool:
    return type(value) is int


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


# kind → what a value of it is, in words, and whether this is one
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "count": ("a whole number of at least 1", lambda v: _whole(v) and v >= 1),
    "index": ("a whole number of at least 0", lambda v: _whole(v) and v >= 0),
    "number": ("a finite number", _number),
    "rate": ("a positive number", lambda v: _number(v) and v > 0),
    "weight": ("a number of at least 0", lambda v: _number(v) and v >= 0),
    "share": ("a number from 0 to 1", lambda v: _number(v) and 0 <= v <= 1),
    "pair": ("two numbers", lambda v: isinstance(v, list) and list(map(_number, v)) == [True] * 2),
    "flag": ("true or false", lambda v: type(v) is bool),
    "name": ("a name in quotes", lambda v: isinstance(v, str) and bool(v)),
}
FIELDS = ("kind", "list", "one_of", "required", "says", "paper")


def check_sizes(paper: Paper, grid: Mapping[str, Any], where: str) -> None:
    """An error for the first setting of `grid` that the paper does not know or that is no value
    of its kind, and for a required one that is missing; `where` names the file."""
    for path, value in settings_in(paper, grid):
        size = _size(paper, path)
        if size is None:
            raise unknown(f"setting of [{paper.name}] in {where}", path, paper.sizes)
        values = value if size.get("list") else [value]
        if not isinstance(values, list):
            raise ValueError(f"{where}: {paper.name}.{path} is a list, not {value!r}")
        for one in values:
            _check(size, one, f"{where}: {paper.name}.{path}")
    given = [path for path, _ in settings_in(paper, grid)]
    for path, size in paper.sizes.items():
        if size.get("required") and not any(_fits(path, one) for one in given):
            raise ValueError(f"{where}: {paper.name}.{path} is missing; it is {_words(size)}")


def settings_in(
    paper: Paper, grid: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """(path, value) of every setting, those of tables by their own names."""
    for name, value in grid.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from settings_in(paper, value, f"{path}.")
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            for entry in value:
                yield from settings_in(paper, entry, f"{path}.")
        else:
            yield path, value


def against_the_paper(paper: Paper, grid: Mapping[str, Any]) -> pd.DataFrame:
    """What this profile has less of than the paper: what, here, in the paper.

    What is set for several (the path has a *) is one row, with their names.
    """
    found: dict[str, list[str]] = {}
    for path, value in settings_in(paper, grid):
        for pattern, size in paper.sizes.items():
            if fits := re.fullmatch(_pattern(pattern), path):
                if "says" in size and value != size["paper"]:
                    found.setdefault(pattern, []).append(" ".join([*fits.groups(), _shown(value)]))
                break
    return pd.DataFrame(
        {
            "what": paper.sizes[pattern]["says"],
            "here": ", ".join(values),
            "paper": _shown(paper.sizes[pattern]["paper"]),
        }
        for pattern, values in found.items()
    )


def _size(paper: Paper, path: str) -> Mapping[str, Any] | None:
    fitting = (size for pattern, size in paper.sizes.items() if _fits(pattern, path))
    return next(fitting, None)


def _pattern(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", "(.+?)")


def _fits(pattern: str, path: str) -> bool:
    return re.fullmatch(_pattern(pattern), path) is not None


def _check(size: Mapping[str, Any], value: Any, place: str) -> None:
    if "one_of" in size and value not in size["one_of"]:
        raise ValueError(f"{place}: {value!r} is none of {', '.join(map(str, size['one_of']))}")
    if not KINDS[size["kind"]][1](value):
        raise ValueError(f"{place} is {_words(size)}, not {value!r}")


def _words(size: Mapping[str, Any]) -> str:
    words = KINDS[size["kind"]][0]
    return f"a list, each {words}" if size.get("list") else words


def _shown(value: Any) -> str:
    if isinstance(value, list):
        parts = (f"({_shown(v)})" if isinstance(v, list) else _shown(v) for v in value)
        return ", ".join(parts) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
