"""What is the copy of a corpus to the set whose name it has: official, a sample, or a stand-in?"""

from __future__ import annotations

from dataclasses import dataclass

from erlib.data.corpora import corpora
from erlib.data.loading import corpus_report
from erlib.data.planted import parts_of
from erlib.data.splits import SPLITS

OFFICIAL, SAMPLE, STAND_IN, OWN = "official", "sample", "stand-in", "of your own"
PLANTED = "planted"


@dataclass(frozen=True)
class Standing:
    """One of the words above, and why."""

    word: str
    why: str = ""


def standing(name: str, source: str) -> Standing:
    """What the registry says of this source's copy.

    What stands in a folder can be anything: a local copy is the one that the registry speaks of if
    it has as many texts in each split, and otherwise its owner's.
    """
    base, rule, _ = parts_of(name)
    if rule is not None:
        return Standing(PLANTED, f"reasons by the rule '{rule}' in texts of {base}")
    info = corpora().get(name)
    said = dict(info.standing.get(source, {})) if info else {}
    if source == "local":
        sizes = corpus_report(name, source).sizes
        if list(said.get("sizes", ())) != [sizes.get(split, 0) for split in SPLITS]:
            texts = ", ".join(f"{n:,} {split}" for split, n in sizes.items())
            return Standing(OWN, f"{texts} texts")
    if said:
        return Standing(said["is"], said["why"])
    return Standing(OFFICIAL) if source == "hub" else Standing(STAND_IN, info.home if info else "")
