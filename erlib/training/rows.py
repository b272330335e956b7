"""Which rows of a corpus does a description mean?"""

from __future__ import annotations

from functools import lru_cache

from datasets import Dataset

from erlib.config import DataSpec
from erlib.data import fingerprint, load_data, select_rows
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
    return _rows_at(place_of(data, split, rows))


def content_of(data: DataSpec, split: str, rows: int | None) -> str:
    """The fingerprint of those rows."""
    return content_at(place_of(data, split, rows))


@lru_cache(maxsize=64)
def _rows_at(place: Place) -> Dataset:
    corpus, source, words, classes, split, rows = place
    part = split in OWN.values()
    texts = load_data(corpus, split="test" if part else split, source=source)
    texts = prepared(texts, words=words, classes=classes)
    return select_rows(part_of(texts, split) if part else texts, rows)


@lru_cache(maxsize=1024)
def content_at(place: Place) -> str:
    """The fingerprint of the rows of this place."""
    return fingerprint(_rows_at(place))
