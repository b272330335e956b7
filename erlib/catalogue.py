"""Which papers are there? Each is a folder under `erlib/papers`, and what it says is data.

`paper.toml` names the paper, its notebook and the sizes that a profile may set; `claims.toml` its
findings; `tables/*.csv` its printed numbers. Nothing of a paper's Python is imported here.
"""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from erlib.errors import unknown

FIELDS = ("title", "authors", "venue", "short", "notebook", "colours", "sizes")


@dataclass(frozen=True)
class Paper:
    """What a paper's folder says of it. `sizes`: see `erlib.sizes`."""

    name: str
    folder: Path
    title: str
    authors: str
    venue: str
    short: str
    notebook: str
    colours: Mapping[str, str] = field(default_factory=dict)
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def module(self, name: str) -> Any:
        """One of its modules: `cells`, `figures`, `audit`, …"""
        return importlib.import_module(f"erlib.papers.{self.name}.{name}")

    def claims_text(self) -> str:
        """Its claims as they are written; empty where there are none."""
        path = self.folder / "claims.toml"
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def grid(self, profile: str) -> dict[str, Any]:
        """What its own folder sets for a profile (`profiles/quick.toml`); of the papers that are
        part of erlib this stands in `erlib/profiles`."""
        path = self.folder / "profiles" / f"{profile}.toml"
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    def tables(self) -> dict[str, Path]:
        """The files of its printed numbers, by the table's name."""
        return {file.stem: file for file in sorted((self.folder / "tables").glob("*.csv"))}


@cache
def papers() -> dict[str, Paper]:
    """Every paper by name, in the order of their notebooks."""
    places = importlib.import_module("erlib.papers").__path__
    found = [_paper(file) for place in places for file in Path(place).glob("*/paper.toml")]
    return {paper.name: paper for paper in sorted(found, key=lambda p: p.notebook)}


def paper(name: str) -> Paper:
    """The paper of this name."""
    if name not in papers():
        raise unknown("paper", name, papers())
    return papers()[name]


def _paper(file: Path) -> Paper:
    said = tomllib.loads(file.read_text(encoding="utf-8"))
    for name in said:
        if name not in FIELDS:
            raise unknown(f"field of {file.parent.name}/paper.toml", name, FIELDS)
    return Paper(name=file.parent.name, folder=file.parent, **said)
