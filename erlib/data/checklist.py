"""Which small changes of a text should not change its label?

Contractions and extensions (it is, it's), and other names, numbers and places: the behaviours that
CheckList tests and REGEX's Table 6 attacks with. The word lists (`checklist.toml`) are our own.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

ALTERNATIVES = 3  # for a name, a number or a place
CORE = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)  # punctuation, the word, punctuation


@dataclass(frozen=True)
class Change:
    """`words[start:stop]` of a text become `words`."""

    kind: str
    start: int
    stop: int
    words: tuple[str, ...]

    def applied(self, text: Sequence[str]) -> list[str]:
        """The text with this change made."""
        return [*text[: self.start], *self.words, *text[self.stop :]]


def changes(text: Sequence[str]) -> list[Change]:
    """Every single change that the lists know of, from left to right."""
    cores = [_core(word) for word in text]
    found: list[Change] = []
    for i in range(len(text)):
        found += [*_contracted(cores, i), *_extended(cores, i), *_replaced(cores, i)]
    return found


def _core(word: str) -> tuple[str, str, str]:
    """Punctuation before, the word itself, punctuation after; ’ is read as '."""
    match = CORE.match(word.replace("’", "'"))
    assert match is not None  # the pattern matches everything
    before, core, after = match.groups()
    return before, core, after


def _contracted(cores: Sequence[tuple[str, str, str]], i: int) -> Iterator[Change]:
    if i + 1 == len(cores):
        return
    (before, first, between), (also, second, after) = cores[i], cores[i + 1]
    short = _lists()["contractions"].get(f"{first} {second}".lower())
    if short and not between and not also:
        yield Change("contraction", i, i + 2, (f"{before}{_as_in(first, short)}{after}",))


def _extended(cores: Sequence[tuple[str, str, str]], i: int) -> Iterator[Change]:
    before, core, after = cores[i]
    long = _lists()["extensions"].get(core.lower())
    if long:
        first, second = _as_in(core, long).split()
        yield Change("extension", i, i + 1, (f"{before}{first}", f"{second}{after}"))


def _replaced(cores: Sequence[tuple[str, str, str]], i: int) -> Iterator[Change]:
    before, core, after = cores[i]
    for kind in ("name", "location", "number"):
        for other in _alternatives(kind, core):
            yield Change(kind, i, i + 1, (f"{before}{_as_in(core, other)}{after}",))


def _alternatives(kind: str, word: str) -> list[str]:
    """The words that follow in the list (the first ones after its last), or nearby numbers."""
    if kind == "number" and word.isascii() and word.isdigit():
        n = int(word)
        step = max(1, round(n / 10))
        near = (n - step, n + step, n + 2 * step)
        return [str(m) for m in near if m >= 0]
    group = _lists()[kind].get(word.lower())
    if group is None:
        return []
    at = [w.lower() for w in group].index(word.lower())
    return [group[(at + k) % len(group)] for k in range(1, ALTERNATIVES + 1)]


def _as_in(model: str, word: str) -> str:
    """`word` in capitals or small letters as `model` is."""
    if len(model) > 1 and model.isupper():
        return word.upper()
    return word[0].upper() + word[1:] if model[0].isupper() else word.lower()


@cache
def _lists() -> dict[str, dict]:
    """By kind: the word in small letters → its list, or what it contracts or extends to."""
    raw = tomllib.loads((files("erlib.data") / "checklist.toml").read_text(encoding="utf-8"))
    back = {short: long for long, short in reversed(raw["contractions"].items())}
    return {
        "contractions": raw["contractions"],
        "extensions": back,
        "name": _by_word(raw["names"].values()),
        "location": _by_word(raw["places"].values()),
        "number": _by_word([raw["numbers"]]),
    }


def _by_word(groups: Sequence[list[str]]) -> dict[str, list[str]]:
    return {word.lower(): group for group in groups for word in group}
