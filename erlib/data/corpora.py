"""Which corpora exist, where can each be had, and what do the papers expect of it?

The registry is data: `corpora.toml` beside this file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from erlib.data.schema import TASKS
from erlib.data.splits import SPLITS
from erlib.errors import unknown

SOURCES = ("packaged", "local", "hub")
RATIONALES = (None, "human", "phrase labels", "lexicon")
_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class HubEntry:
    """How a corpus is read from the hub: parquet files only, never a loading script."""

    id: str  # a hub id, or a local directory of the same layout
    verified: str  # where the id was seen
    splits: Mapping[str, str]  # our split ← the parquet files that hold it
    columns: Mapping[str, str]  # our field ← their column
    config: str | None = None
    revision: str | None = None
    dev_share: float = 0.0  # cut from train, by hash, where the hub has no dev split
    unlabelled: int | None = None  # their label of rows that nobody agreed on
    label_order: tuple[str, ...] | None = None  # their classes, where ours are in another order


@dataclass(frozen=True)
class CorpusInfo:
    """One entry of the registry."""

    name: str
    task: str  # classify | pair | span
    sources: tuple[str, ...]
    labels: tuple[str, ...] = ()
    words: int = 30  # of a text, on the average
    rationale: str | None = None  # human | phrase labels | lexicon
    lowercase: bool = False
    licence: str = ""
    home: str = ""
    note: str = ""
    expected: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: _EMPTY)
    standing: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: _EMPTY)
    hub: HubEntry | None = None


@lru_cache(maxsize=1)
def _registry() -> Mapping[str, CorpusInfo]:
    tables = tomllib.loads(files("erlib.data").joinpath("corpora.toml").read_text("utf-8"))
    return MappingProxyType({name: _corpus(name, table) for name, table in tables.items()})


def _corpus(name: str, table: dict[str, Any]) -> CorpusInfo:
    hub = table.pop("hub", None)
    if hub is not None and "label_order" in hub:
        hub["label_order"] = tuple(hub["label_order"])
    table["labels"] = tuple(table.get("labels", ()))
    table["sources"] = tuple(table["sources"])
    info = CorpusInfo(name=name, hub=None if hub is None else HubEntry(**hub), **table)
    sizes = [split for paper in info.expected.values() for split in paper]
    sound = (
        info.task in TASKS
        and info.rationale in RATIONALES
        and set(info.sources) <= set(SOURCES)
        and set(sizes) <= set(SPLITS)
        and set(info.standing) <= set(info.sources)
        and ("hub" in info.sources) == (info.hub is not None)
        and (info.task == "span") == (not info.labels)
    )
    if not sound:
        raise ValueError(f"corpora.toml: the entry [{name}] contradicts itself")
    return info


def corpora() -> dict[str, CorpusInfo]:
    """Every known corpus by name."""
    return dict(_registry())


def corpus(name: str) -> CorpusInfo:
    """The entry of one corpus, or an error that lists them."""
    if name not in _registry():
        raise unknown("corpus", name, _registry())
    return _registry()[name]
