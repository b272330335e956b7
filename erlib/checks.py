"""Is a value one that a description, an argument or a name can have? If not: what would be."""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable, Collection, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from erlib.errors import unknown

LARGEST_SEED = 2**63 - 1


def refuse_types(description: Any) -> None:
    """Refuse a dataclass whose fields are not what their annotations say."""
    name = type(description).__name__
    for field, annotation in _annotations(type(description)).items():  # type: ignore[arg-type]
        value = getattr(description, field)
        if field == "options" and isinstance(value, tuple):
            for option in value:
                if isinstance(option, tuple) and len(option) == 2 and not is_plain(option[1]):
                    field, annotation, value = f"the option '{option[0]}'", Any, option[1]
        of_type(f"{name}: {field}", value, annotation)


@cache
def _annotations(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def of_type(name: str, value: Any, annotation: Any) -> None:
    """Refuse an argument that is not of this type."""
    if not fits(value, annotation):
        raise ValueError(f"{name} must be {_said(annotation)}, not {shown(value)}")


def fits(value: Any, annotation: Any) -> bool:
    """Is it of this type? NumPy's numbers are numbers; a truth value is none, nor is NaN."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return is_plain(value)
    if origin in (Union, types.UnionType):
        return any(fits(value, part) for part in parts)
    if origin is tuple:
        if parts[-1] is Ellipsis:
            parts = (parts[0],) * len(value) if isinstance(value, tuple) else ()
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
        )
    if annotation in (int, float):
        return is_number(value, whole=annotation is int)
    return isinstance(value, annotation)


def is_number(value: Any, *, whole: bool = False) -> bool:
    """A finite number; True and False are none."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral if whole else Real):
        return False
    return isinstance(value, Integral) or math.isfinite(value)


def is_plain(value: Any) -> bool:
    """May it be an option? What JSON has: None, truth values, finite numbers, text, and tuples."""
    if isinstance(value, tuple):
        return all(map(is_plain, value))
    return value is None or isinstance(value, bool | np.bool_ | str) or is_number(value)


def _said(annotation: Any) -> str:
    """The type in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return "a finite number, a text, True, False, None or a list of such"
    if origin in (Union, types.UnionType):
        return " or ".join(map(_said, parts))
    if origin is tuple and parts[-1] is Ellipsis:
        return f"a list, each of it {_said(parts[0])}"
    if origin is tuple:
        return f"({', '.join(map(_said, parts))})"
    return _WORDS.get(annotation) or f"a {annotation.__name__}"


_WORDS = {
    int: "a whole number",
    float: "a finite number",
    str: "a text",
    bool: "True or False",
    type(None): "None",
}


def shown(value: Any) -> str:
    """The value as a message can hold it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def whole(name: str, value: Any, least: int = 0, most: float = math.inf) -> None:
    """Refuse what is no whole number in this range."""
    if not is_number(value, whole=True) or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number {_between(least, most)}, {_not(value)}")


def number(name: str, value: Any, least: float = 0, most: float = math.inf) -> None:
    """Refuse what is no finite number in this range."""
    if not is_number(value) or not least <= value <= most:
        raise ValueError(f"{name} must be a finite number {_between(least, most)}, {_not(value)}")


def _between(least: float, most: float) -> str:
    return f"from {least:,} on" if most == math.inf else f"from {least:,} to {most:,}"


def _not(value: Any) -> str:
    return f"not {shown(value)}"


def seed(value: Any) -> None:
    """Refuse what no generator can be seeded with."""
    whole("seed", value, 0, LARGEST_SEED)


def rate(name: str, value: Any) -> None:
    """Refuse what is no learning rate (None: another's is used). None is too high: a run that
    diverges is a run, and is told of as failed. Of 0, no weight moves: an untrained model."""
    if value is not None:
        number(name, value)


def folder_name(kind: str, name: Any) -> None:
    """Refuse a name that would lead out of the folder in which it is looked up."""
    if not isinstance(name, str) or name in ("", ".", "..") or set(name) & set("/\\\0"):
        raise ValueError(
            f"{shown(name)} is no name of a {kind}: it is looked up in one folder, and has no "
            "'/' and no '\\'"
        )


def options_of(
    kind: str, make: Callable[..., Any], options: Mapping[str, Any], *, but: Collection[str] = ()
) -> None:
    """Refuse options that the class or function `make` does not take, or needs and has not got.

    `but`: what it takes that is no option.
    """
    signature = inspect.signature(make).parameters
    takes = {
        name: parameter
        for name, parameter in signature.items()
        if name not in but
        and parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }
    any_other = any(p.kind is p.VAR_KEYWORD for p in signature.values())  # it looks itself
    for name in options:
        if name not in takes and not any_other:
            raise unknown(f"option of {kind}", name, takes)
    needed = [n for n, p in takes.items() if p.default is p.empty and n not in options]
    if needed:
        raise ValueError(f"{kind} needs the option{'s' * (len(needed) > 1)} {', '.join(needed)}")
