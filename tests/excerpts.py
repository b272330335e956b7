"""Which texts does a page quote, and how much of each?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

STRETCH = 8  # as many words of a text in a row are a quotation, or all of a shorter text
SHORTEST = 4  # and so many different words: a column of "no" quotes nobody
Stretch = tuple[str, ...]


def words(text: str) -> list[str]:
    """Without case and punctuation: "It's (really) fun!" has three."""
    bare = (re.sub(r"[^\w']", "", word) for word in text.lower().split())
    return [word for word in bare if word.strip("'")]


def quoted(pages: Iterable[str], texts: Mapping[str, str]) -> dict[str, int]:
    """Text id → the most words of it that stand in a row somewhere.

    Words that several texts have in common (newswire repeats itself, a passage is made of reviews)
    count for that of which more is quoted, or else for the shorter.
    """
    said = {stretch for page in pages for stretch in _stretches(words(page))}
    runs = {}
    for name, text in texts.items():
        if found := _runs(words(text), said):
            runs[name] = sorted(found, key=len, reverse=True)
    counted: set[Stretch] = set()
    longest = {}
    for name in sorted(runs, key=lambda name: (-len(runs[name][0]), len(words(texts[name])))):
        if any(not set(_grams(run, min(len(run), STRETCH))) <= counted for run in runs[name]):
            longest[name] = len(runs[name][0])
            counted.update(stretch for run in runs[name] for stretch in _stretches(run))
    return longest


def _runs(own: Sequence[str], said: set[Stretch]) -> list[list[str]]:
    """The parts of a text that are quoted, each as long as it is."""
    length = min(len(own), STRETCH)
    if length < SHORTEST:
        return []
    found: list[list[str]] = []
    last = -1  # where the last quoted stretch begins
    for i, stretch in enumerate(_grams(own, length)):
        if stretch in said and len(set(stretch)) >= SHORTEST:
            if found and last == i - 1:
                found[-1].append(stretch[-1])
            else:
                found.append([*stretch])
            last = i
    return found


def _stretches(row: Sequence[str]) -> Iterable[Stretch]:
    return (gram for n in range(SHORTEST, STRETCH + 1) for gram in _grams(row, n))


def _grams(row: Sequence[str], length: int) -> Iterable[Stretch]:
    return zip(*(row[i:] for i in range(length)), strict=False)
