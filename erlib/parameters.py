"""With which settings does a notebook run? The six parameters that all notebooks share, checked.

Papermill only warns of a parameter that a notebook does not have, and checks no types. A typo must
not silently run the default, so both are refused here.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from erlib import checks
from erlib.catalogue import paper as paper_named
from erlib.config import SOURCES, check_executor, load_profile
from erlib.errors import unknown
from erlib.sizes import check_sizes

PARAMETERS = ("profile", "data", "seeds", "executor", "store", "device")
INJECTED = "# Parameters"  # the first line of the cell that papermill adds


@dataclass(frozen=True)
class Settings:
    """Checked parameters, and the profile's entry for the paper as `grid`."""

    paper: str
    profile: str
    source: str
    seeds: tuple[int, ...]
    executor: str
    store: str | None
    device: str | None  # None: CUDA where there is one
    grid: Mapping[str, Any]

    @property
    def roles(self) -> Mapping[str, Any]:
        """Which corpus plays which part, for this source of data."""
        return self.grid["roles"][self.source]

    def source_of(self, corpus: str) -> str:
        """Where a corpus is read: where the settings say, or locally if the hub cannot give it."""
        from erlib.data.loading import source_for  # which takes a second: only when it is asked

        return source_for(corpus, self.source)

    @property
    def where(self) -> dict[str, Any]:
        """Where the work happens and is kept: what `carry_out` takes."""
        return {"executor": self.executor, "store": self.store, "device": self.device}


def settings(paper: str, namespace: Mapping[str, Any]) -> Settings:
    """The settings of a notebook: call it with `globals()` right after the parameters cell."""
    refuse_unknown(injected_names(namespace.get("In", [])))
    missing = [name for name in PARAMETERS if name not in namespace]
    if missing:
        raise ValueError(f"the parameters cell does not set {', '.join(missing)}")
    return check_parameters(paper, {name: namespace[name] for name in PARAMETERS})


def check_parameters(paper: str, given: Mapping[str, Any]) -> Settings:
    """Settings from parameter values; refuses unknown names, wrong types and unknown values."""
    refuse_unknown(given)
    for name in ("profile", "executor"):
        checks.of_type(f"parameter '{name}'", given.get(name), str)
    for name in ("data", "store", "device"):
        checks.of_type(f"parameter '{name}'", given.get(name), str | None)
    profile = load_profile(given["profile"])
    if paper not in profile:
        papers = [key for key, value in profile.items() if isinstance(value, dict)]
        raise unknown("paper", paper, papers)
    grid = profile[paper]
    if not isinstance(grid, Mapping):
        raise ValueError(
            f"profile '{given['profile']}': [{paper}] is a table of settings, not "
            f"{checks.shown(grid)}"
        )
    check_sizes(paper_named(paper), grid, f"profile '{given['profile']}'")
    source = given.get("data") or profile.get("source")
    if source not in SOURCES:
        raise unknown("data source", source, SOURCES)
    if source not in grid["roles"]:
        raise ValueError(
            f"profile '{given['profile']}' gives {paper} no corpora from source '{source}'; "
            f"it has: {', '.join(grid['roles'])}"
        )
    check_executor(given["executor"])
    return Settings(
        paper=paper,
        profile=given["profile"],
        source=source,
        seeds=_seeds(given.get("seeds"), grid["seeds"]),
        executor=given["executor"],
        store=given.get("store"),
        device=given.get("device"),
        grid=grid,
    )


def injected_names(executed: Sequence[str]) -> list[str]:
    """The variables set by cells that papermill injected, from IPython's list of inputs."""
    cells = [ast.parse(cell) for cell in executed if cell.startswith(INJECTED)]
    return [
        target.id
        for cell in cells
        for statement in cell.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    ]


def refuse_unknown(names: Mapping[str, Any] | Sequence[str]) -> None:
    """An error for the first name that is not a parameter."""
    for name in names:
        if name not in PARAMETERS:
            raise unknown("notebook parameter", name, PARAMETERS)


def _seeds(given: Any, default: Sequence[int]) -> tuple[int, ...]:
    seeds = default if given is None else given
    if not isinstance(seeds, list | tuple) or not seeds or not all(type(s) is int for s in seeds):
        raise ValueError(f"seeds must be a list of whole numbers or None, not {given!r}")
    if len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError(f"seeds must be different and not negative: {given!r}")
    return tuple(seeds)
