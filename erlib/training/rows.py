"""Which rows of a corpus does a description mean?"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from datasets import Dataset

from erlib.config import DataSpec
from erlib.data import fingerprint, select_rows
from erlib.data.absent import ABSENT, MissingCorpus, are_holes
from erlib.data.known import NeedsCorpus, facts, results_only
from erlib.data.loading import read_split
from erlib.data.preparation import prepared
from erlib.training.students import OWN, part_of

Place = tuple[str, str, str, tuple[str, ...], str, int | None]


def place_of(data: DataSpec, split: str, rows: int | None) -> Place:
    """All that decides which rows a description means: corpus, source, words, classes, split, rows.

    A student's splits are those that its teacher's corpus has of them.
    """
    split = split if data.taught is None else OWN.get(split, split)
    return data.corpus, data.source, data.words, data.classes, split, rows


def rows_of(data: DataSpec, split: str, rows: int | None) -> Dataset:
    """The rows that a description resolves to; for rationales, the texts they are taken from."""
    if results_only():
        raise NeedsCorpus(f"the corpus {data.corpus}")
    return _rows_at(place_of(data, split, rows))


def content_of(data: DataSpec, split: str, rows: int | None) -> str:
    """The fingerprint of those rows."""
    return content_at(place_of(data, split, rows))


def size_of(data: DataSpec, split: str, rows: int | None) -> int:
    """How many rows that are; none of a set that is a hole."""
    place = place_of(data, split, rows)
    if facts():
        return len(_said(place)["ids"])
    try:
        return len(_rows_at(place))
    except MissingCorpus:
        if not are_holes():
            raise
        return 0


@lru_cache(maxsize=64)
def _rows_at(place: Place) -> Dataset:
    corpus, source, words, classes, split, rows = place
    part = split in OWN.values()
    texts = read_split(corpus, "test" if part else split, source)
    texts = prepared(texts, words=words, classes=classes)
    return select_rows(part_of(texts, split) if part else texts, rows)


def content_at(place: Place) -> str:
    """The fingerprint of the rows of this place, of the texts or as an archive has it."""
    try:
        contents[place] = fingerprint_at(place)
    except MissingCorpus:
        if not are_holes():
            raise
        contents[place] = ABSENT
    return contents[place]


@lru_cache(maxsize=1024)
def fingerprint_at(place: Place) -> str:
    """The same, where there are rows."""
    return _said(place)["fingerprint"] if facts() else fingerprint(_rows_at(place))


contents: dict[Place, str] = {}  # the places that this process asked for


def contents_as_json() -> dict[str, Any]:
    """As an archive keeps them, with the ids of the rows."""
    return {
        json.dumps(place): {
            "fingerprint": found,
            "ids": [] if found == ABSENT else _rows_at(place)["id"][:],
        }
        for place, found in contents.items()
    }


def _said(place: Place) -> dict[str, Any]:
    said: dict[str, Any] | None = (facts() or {})["contents"].get(json.dumps(place))
    if said is None:
        raise NeedsCorpus(f"the corpus {place[0]}")
    return said
