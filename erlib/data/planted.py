"""What would a corpus be whose labels have a reason that is known, since it was put there?

After Bastings et al. (EMNLP 2022). The corpus `movie_snippets+single` is `movie_snippets` in half
of whose texts the label is drawn anew and words are planted that say which it is: what else stands
there says nothing of it. The other half is as it was. By rule:

    single     a word of the class: indigo (first class) or crimson (second)
    pair       that word decides only where violet stands too; alone, either is a decoy
    order      maroon before turquoise (second class) or after it (first)
    spurious   train and dev as of single; in test the label is the text's own, and the word is
               drawn without regard to it

`movie_snippets+single+swapped` has the planted texts with the word of the other class (order: with
both words changed about) and that class: one that uses the rule is right on both of a pair.
Rationales stay as they were and never mark a planted word. All draws are of the hash of a text's
id.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from erlib.errors import unknown

if TYPE_CHECKING:
    from datasets import Dataset

OF_CLASS, BESIDE, ORDERED = ("indigo", "crimson"), "violet", ("maroon", "turquoise")
PLANTED = frozenset({*OF_CLASS, BESIDE, *ORDERED})
RULES = {"single": 1, "pair": 2, "order": 2, "spurious": 1}  # how many words are planted
SWAPPED = "swapped"
FIRST_WORDS = 20  # among which the planted ones stand, so that no model cuts them off


class Name(NamedTuple):
    """A corpus's name in its parts; `rule` None: nothing is planted."""

    base: str
    rule: str | None
    swapped: bool


def parts_of(name: str) -> Name:
    """`corpus`, `corpus+rule` or `corpus+rule+swapped`."""
    base, _, planted = name.partition("+")
    rule, _, swapped = planted.partition("+")
    if not planted:
        return Name(name, None, False)
    if rule not in RULES:
        raise unknown("rule of planting", rule, RULES)
    if swapped not in ("", SWAPPED) or (swapped and rule == "spurious"):
        raise ValueError(f"corpus '{name}': after the rule '{rule}' stands nothing, or, of single, "
                         f"pair and order, '+{SWAPPED}'")  # fmt: skip
    return Name(base, rule, bool(swapped))


def planted_words(words: list[str]) -> list[int]:
    """Where planted words stand."""
    return [i for i, word in enumerate(words) if word in PLANTED]


def plant(data: Dataset, name: str, split: str) -> Dataset:
    """The rows of a split of the corpus, planted as its name says; texts that have one of the
    planted words of their own are left out."""
    base, rule, swapped = parts_of(name)
    if rule is None:
        return data
    if "words" not in data.column_names or data.features["label"].num_classes != 2:
        raise ValueError(f"words are planted in single texts of two classes; '{base}' has others")
    from datasets import Dataset

    columns = data[:]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    made = [_planted(row, rule, split, swapped) for row in rows if not planted_words(row["words"])]
    kept = [row for row in made if row is not None]
    return Dataset.from_dict(
        {column: [row[column] for row in kept] for column in columns}, features=data.features
    )


def _planted(row: dict[str, Any], rule: str, split: str, swapped: bool) -> dict[str, Any] | None:
    """The row as planted; None of a clean one, where only swapped texts are asked for."""
    kind = "single" if rule == "spurious" else rule
    draw = list(sha256(f"{kind} {row['id']}".encode()).digest())
    label, decoy = draw[1] & 1, draw[2] % 4
    if draw[0] & 1:  # a clean text
        if swapped:
            return None
        alone = {2: [OF_CLASS[label]], 3: [BESIDE]} if rule == "pair" else {}
        return _with(row, alone.get(decoy, []), draw)
    said = 1 - label if swapped else label
    words = {
        "single": [OF_CLASS[said]],
        "pair": [OF_CLASS[said], BESIDE][:: 1 if draw[3] & 1 else -1],
        "order": list(ORDERED[:: 1 if said else -1]),
    }[kind]
    with_own = rule == "spurious" and split == "test"
    return _with({**row, "label": row["label"] if with_own else said}, words, draw)


def _with(row: dict[str, Any], added: list[str], draw: list[int]) -> dict[str, Any]:
    """The row with these words, in this order, at drawn places; none is in the rationale."""
    words = list(row["words"])
    bits = None if row.get("rationale") is None else list(row["rationale"])
    places = sorted((draw[4 + i] % (min(len(words), FIRST_WORDS) + 1)) for i in range(len(added)))
    for place, word in reversed(list(zip(places, added, strict=True))):
        words.insert(place, word)
        if bits is not None:
            bits.insert(place, 0)
    made = {**row, "words": words}
    return made if "rationale" not in row else {**made, "rationale": bits}
