"""What is measured in a notebook itself, not by the store: how is it kept with what the store has?

Timings, lengths of texts, checks on one batch: they are made once and kept in `notes/` of the
store, from where an archive takes them. They are made anew when erlib's source, the device, a
library or a result of the study has changed; where only results are read they are what was kept.
Notes are tables, numbers and words of ours, never texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd

from erlib.config import digest
from erlib.data.known import NeedsCorpus, results_only
from erlib.provenance import source_hash, surroundings
from erlib.training.store import Results, open_store

Given = ParamSpec("Given")
Made = TypeVar("Made")
FRAME = "frame"


def noted(make: Callable[Given, Made]) -> Callable[Given, Made]:
    """Keep what this function of a paper makes; its first argument is, or has, the settings."""

    @wraps(make)
    def made(*args: Given.args, **options: Given.kwargs) -> Made:
        first, *others = args
        settings: Any = getattr(first, "settings", first)
        where = [settings.paper, settings.profile, settings.source, settings.seeds, settings.grid]
        name = digest([where, make.__module__, make.__qualname__, repr(others), repr(options)])
        store = open_store(settings.store)
        file = store.root / "notes" / f"{name}.json"
        if results_only():
            if not file.exists():
                raise NeedsCorpus("texts that were not here when the results were collected")
            if isinstance(store, Results):
                store.asked.add(("notes", name))
            return _kept(file)[1]  # type: ignore[no-any-return]
        made_with = _made_with(first, settings)
        if file.exists():
            then, kept = _kept(file)
            if then == made_with:
                return kept  # type: ignore[no-any-return]
        found = make(*args, **options)
        note = json.dumps({"made_with": made_with, "note": to_plain(found)})
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".tmp").write_text(note + "\n", encoding="utf-8")
        file.with_suffix(".tmp").rename(file)
        return found

    return made


def _made_with(first: Any, settings: Any) -> str:
    """A hash of what the note depends on beside its name."""
    results = [
        [row["run"], row.get("eval"), row.get("status")]
        for row in getattr(first, "rows", {}).values()
    ]
    return digest([source_hash(), surroundings(settings.device), sorted(map(str, results))])


def _kept(file: Path) -> tuple[str | None, Any]:
    """What a note was made with, None of those from before that was kept, and the note."""
    said = json.loads(file.read_text(encoding="utf-8"))
    if isinstance(said, dict) and "note" in said:
        return said["made_with"], from_plain(said["note"])
    return None, from_plain(said)


def to_plain(value: Any) -> Any:
    """A value as JSON has it, every digit kept."""
    if isinstance(value, pd.DataFrame):
        index = None if isinstance(value.index, pd.RangeIndex) else to_plain(value.index.tolist())
        columns = [[name, str(value[name].dtype), to_plain(value[name].tolist())] for name in value]
        return {FRAME: columns, "index": index}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"a note is made of tables, lists, numbers and words, not of {type(value)}")


def from_plain(said: Any) -> Any:
    """The value again; what was a tuple is a list."""
    if isinstance(said, list):
        return [from_plain(each) for each in said]
    if isinstance(said, dict):
        index = said["index"]
        columns = {n: pd.Series(values, index, dtype) for n, dtype, values in said[FRAME]}
        return pd.DataFrame(columns, index)
    return said
