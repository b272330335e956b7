"""To which split does a text belong, and does it stand anywhere twice?"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SPLITS = ("train", "dev", "test")
SHARES = {"train": 0.6, "dev": 0.2, "test": 0.2}  # of a corpus that comes in one piece


def hash_fraction(key: str) -> float:
    """A number in [0, 1) that depends on `key` alone: same on every machine, in every order."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") / 2**64


def split_of(document: str, shares: Mapping[str, float] = SHARES) -> str:
    """The split of a document, by the hash of its id: sentences of one document stay together."""
    place, reached = hash_fraction(document), 0.0
    for split, share in shares.items():
        reached += share
        if place < reached:
            return split
    return list(shares)[-1]  # place just below 1.0 and shares summing to 0.999…


def normal_form(text: str) -> str:
    """What counts as the same text: lower-cased, white space collapsed."""
    return " ".join(text.lower().split())


@dataclass(frozen=True)
class Shared:
    """What stands in two splits."""

    shown: str
    splits: tuple[str, str]


@dataclass(frozen=True)
class SharedBySplits:
    """The ids and the texts that stand in two splits."""

    ids: list[Shared]
    texts: list[Shared]


def shared_by_splits(splits: Mapping[str, Iterable[Mapping[str, Any]]]) -> SharedBySplits:
    """What two splits of a corpus (rows of `load_data`) have in common; a pair is one text."""
    ids: dict[str, str] = {}
    texts: dict[str, str] = {}
    found = SharedBySplits([], [])
    for split, rows in splits.items():
        for row in rows:
            form = normal_form(_text(row))
            if ids.setdefault(row["id"], split) != split:
                found.ids.append(Shared(row["id"], (ids[row["id"]], split)))
            if texts.setdefault(form, split) != split:
                found.texts.append(Shared(_text(row)[:60], (texts[form], split)))
    return found


def _text(row: Mapping[str, Any]) -> str:
    """All that is read of a row."""
    parts = ("words", "words_a", "words_b", "context", "question")
    found = [row[part] for part in parts if part in row]
    return " | ".join(part if isinstance(part, str) else " ".join(part) for part in found)


def drop_repeats(
    splits: Mapping[str, list[dict[str, Any]]],
) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """Let every `row["text"]` stand once: a copy in train yields to dev, one in dev to test."""
    seen: set[str] = set()
    kept: dict[str, list[dict[str, Any]]] = {}
    dropped = 0
    for split in ("test", "dev", "train"):
        kept[split] = []
        for row in splits.get(split, []):
            form = normal_form(row["text"])
            if form in seen:
                dropped += 1
            else:
                seen.add(form)
                kept[split].append(row)
    return {split: kept[split] for split in SPLITS}, dropped
