"""Which texts does a page quote, and how much of each?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

STRETCH = 8  # as many words of a text in a row are a quotation, or all of a shorter text
SHORTEST = 4


def words(text: str) -> list[str]:
    """Without case and punctuation: "It's (really) fun!" has three."""
    bare = (re.sub(r"[^\w']", "", word) for word in text.lower().split())
    return [word for word in bare if word.strip("'")]


def quoted(pages: Iterable[str], texts: Mapping[str, str]) -> dict[str, int]:
    """Text id → the most words of it that stand in a row somewhere; the same text counts once."""
    said: set[tuple[str, ...]] = set()
    for page in pages:
        all_words = words(page)
        for length in range(SHORTEST, STRETCH + 1):
            said.update(zip(*(all_words[i:] for i in range(length)), strict=False))
    found, seen = {}, set()
    for name, text in texts.items():
        own = words(text)
        if len(own) < SHORTEST or not (longest := _longest(own, said)) or tuple(own) in seen:
            continue
        seen.add(tuple(own))
        found[name] = longest
    return found


def _longest(own: list[str], said: set[tuple[str, ...]]) -> int:
    length = min(len(own), STRETCH)
    longest = run = 0
    for stretch in zip(*(own[i:] for i in range(length)), strict=False):
        run = run + 1 if stretch in said else 0
        longest = max(longest, run)
    return longest + length - 1 if longest else 0
