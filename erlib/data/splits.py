"""To which split does a text belong, and does it stand anywhere twice?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
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
