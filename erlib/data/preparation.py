"""Which texts and which words of a corpus does a paper read?

A paper's own preprocessing, applied to rows of any source before they are counted or chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from erlib.errors import unknown

if TYPE_CHECKING:
    from datasets import Dataset

MIN_WORDS = 3  # of a text that was stripped: two words always agree fully or not at all


def prepared(data: Dataset, *, words: str = "all", classes: Sequence[str] = ()) -> Dataset:
    """The rows as a paper reads them.

    words="alphanumeric" (Agreement): lower case, words without a letter or digit dropped, and texts
    that are then shorter than three words. `classes` keeps the texts of these classes alone, which
    become 0, 1, … in the order given (TREC: ENTY, HUM).
    """
    return _prepared(data, words, tuple(classes))


@lru_cache(maxsize=16)  # splits: a corpus of long texts takes seconds, and many runs ask for it
def _prepared(data: Dataset, words: str, classes: tuple[str, ...]) -> Dataset:
    if classes:
        data = _of_classes(data, classes)
    return _alphanumeric(data) if words == "alphanumeric" else data


def _of_classes(data: Dataset, classes: Sequence[str]) -> Dataset:
    from datasets import ClassLabel

    label = data.features["label"]
    for name in classes:
        if name not in label.names:
            raise unknown("class", name, label.names)
    numbers = {label.str2int(name): i for i, name in enumerate(classes)}
    kept = data.select([i for i, y in enumerate(data["label"][:]) if y in numbers])
    renumbered = [numbers[y] for y in kept["label"][:]]
    place = data.column_names.index("label")
    kept = kept.remove_columns("label").add_column("label", renumbered)
    names = [n for n in kept.column_names if n != "label"]
    names.insert(place, "label")
    return kept.select_columns(names).cast_column("label", ClassLabel(names=list(classes)))


def _alphanumeric(data: Dataset) -> Dataset:
    from datasets import Dataset

    if "words" not in data.column_names:
        raise ValueError(
            "only single texts can be stripped of words; this corpus has pairs or spans"
        )
    words = data["words"][:]
    kept = [[w.isalnum() or any(map(str.isalnum, w)) for w in row] for row in words]
    columns: dict[str, list[Any]] = {
        "words": [
            [w.lower() for w, keep in zip(row, bits, strict=True) if keep]
            for row, bits in zip(words, kept, strict=True)
        ]
    }
    if "rationale" in data.column_names:
        columns["rationale"] = [
            None if row is None else [b for b, keep in zip(row, bits, strict=True) if keep]
            for row, bits in zip(data["rationale"][:], kept, strict=True)
        ]
    rows = {name: columns.get(name, data[name][:]) for name in data.column_names}
    stripped = Dataset.from_dict(rows, features=data.features)
    return stripped.select([i for i, w in enumerate(columns["words"]) if len(w) >= MIN_WORDS])
