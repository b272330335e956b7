"""Which words of a text explain its label, according to people?

Four kinds of evidence, one result: a 0/1 bit per word. Trees with a sentiment label on every
phrase (SST), marked evidence spans (ERASER), starred words (e-SNLI), and a lexicon of words
rated by ten people each.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from erlib.data.packages import member

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
LEXICON = "vaderSentiment-3.3.2/vaderSentiment/vader_lexicon.txt"
NEGATION_WINDOW = 3
HIGHEST, DEEPEST = 4, 200  # label and depth of a tree
NEGATORS = frozenset([
    "not", "no", "never", "neither", "nor", "none", "nobody", "nothing", "nowhere", "without",
    "hardly", "scarcely", "barely", "rarely", "seldom", "cannot", "cant", "wont", "dont", "doesnt",
    "didnt", "isnt", "arent", "wasnt", "werent", "hasnt", "havent", "hadnt", "couldnt", "shouldnt",
    "wouldnt", "aint",
])  # fmt: skip


# --- SST: labels on phrases ---------------------------------------------------------------------


@dataclass
class Node:
    """A phrase of a PTB tree, with its sentiment label 0–4."""

    label: int
    word: str | None = None  # of a leaf
    children: list[Node] = field(default_factory=list)
    lowest: int = 4  # label of any proper descendant
    highest: int = 0

    def leaves(self) -> list[Node]:
        return [self] if self.word is not None else [x for c in self.children for x in c.leaves()]

    def adopt(self, child: Node) -> None:
        self.children.append(child)
        self.lowest = min(self.lowest, child.label, child.lowest if child.children else 4)
        self.highest = max(self.highest, child.label, child.highest if child.children else 0)


def parse_tree(tree: str) -> Node:
    """Read a PTB string such as `(3 (2 a) (4 delight))`; escapes in leaves are undone."""
    stack: list[Node] = [Node(label=-1)]  # a root above the root
    sound = True
    # A leaf may contain a no-break space: only ASCII blanks separate.
    for opening, label, closing, word in re.findall(r"(\()(\d+)|(\))|([^() ]+)", tree.strip()):
        if opening:
            if len(label) > 1 or int(label) > HIGHEST:
                raise ValueError(f"tree label {label[:9]}: labels of phrases are 0 to {HIGHEST}")
            if len(stack) > DEEPEST:
                raise ValueError(f"a tree of more than {DEEPEST} levels")
            stack.append(Node(int(label)))
        elif not closing:
            sound = sound and stack[-1].word is None
            plain = word.replace("\\/", "/").replace("\\*", "*")
            stack[-1].word = BRACKETS.get(plain.upper(), plain)
        elif len(stack) > 1:
            node = stack.pop()
            sound = sound and bool(node.children) != bool(node.word)
            stack[-1].adopt(node)
        else:
            sound = False
    if not sound or len(stack) != 1 or stack[0].word or len(stack[0].children) != 1:
        raise ValueError(f"not a labelled tree: {tree[:80]!r}")
    return stack[0].children[0]


def phrase_rationale(root: Node) -> list[int]:
    """The phrase-label heuristic (er_lens.md §3), one bit per leaf.

    Top-down, a phrase is explanatory if it is a leaf, or if its |s| is strictly larger than |s| of
    both its highest- and its lowest-labelled proper descendant; otherwise its children are
    asked. Every leaf of an explanatory phrase gets the phrase's |s|; the bit is |s| ≥ 0.5.
    """

    def strength(label: int) -> float:
        return abs((label - 2) / 2)  # |s|

    below = max(strength(root.highest), strength(root.lowest))
    if root.word is None and not strength(root.label) > below:
        return [bit for child in root.children for bit in phrase_rationale(child)]
    return [int(strength(root.label) >= 0.5)] * len(root.leaves())


# --- ERASER: evidence spans ---------------------------------------------------------------------


def evidence_rationale(words: Sequence[str], evidences: Sequence[str]) -> tuple[list[int], int]:
    """Mark every occurrence of every evidence span; also how many spans occur nowhere."""
    bits, missing = [0] * len(words), 0
    for evidence in evidences:
        span = evidence.split()
        places = range(len(words) - len(span) + 1) if span else range(0)
        starts = [i for i in places if list(words[i : i + len(span)]) == span]
        for i in starts:
            bits[i : i + len(span)] = [1] * len(span)
        missing += not starts
    return bits, missing


# --- e-SNLI: starred words ----------------------------------------------------------------------


def starred_rationale(sentence: str, marked: str) -> list[int]:
    """`A *dog* runs.` marks `dog`: a word is in the rationale if any part of it is starred."""
    inside, letters = False, []
    for letter in marked:
        if letter == "*":
            inside = not inside
        else:
            letters.append((letter, inside))
    if inside or "".join(x for x, _ in letters).split() != sentence.split():
        raise ValueError(f"the starred sentence {marked!r} is not {sentence!r} with words starred")
    bits, in_word = [], False
    for letter, starred in letters:
        if letter.isspace():
            in_word = False
            continue
        if not in_word:
            bits.append(0)
        in_word = True
        bits[-1] |= int(starred)
    return bits


def indexed_rationale(sentence: str, indices: str) -> list[int]:
    """The other e-SNLI notation: word positions such as `0,3`, or `{}` for none."""
    words = sentence.split()
    marked = [int(i) for i in indices.strip("{} ").split(",") if i.strip()]
    if any(not 0 <= i < len(words) for i in marked):
        raise ValueError(f"highlight {indices!r} points outside of {sentence!r}")
    return [int(i in marked) for i in range(len(words))]


def majority(rationales: Sequence[Sequence[int]]) -> list[int]:
    """One bit per word from several people: marked by more than half of them."""
    return [int(2 * sum(bits) > len(bits)) for bits in zip(*rationales, strict=True)]


# --- Lexicon ------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def valences() -> dict[str, float]:
    """Mean human valence of 7,500 words and emoticons, −4 to 4, each rated by ten people."""
    lines = member("vader", LEXICON).decode("utf-8").splitlines()
    return {word: float(mean) for word, mean, *_ in (x.split("\t") for x in lines if x.strip())}


@lru_cache(maxsize=1 << 17)
def _reading(word: str) -> tuple[float, bool, bool]:
    """A word's valence, whether it negates, and whether it ends a clause."""
    lower = word.lower()
    bare = lower.strip(string.punctuation)
    valence = valences().get(lower, valences().get(bare, 0.0))
    negates = bare in NEGATORS or bare.endswith(("n't", "n’t"))
    return valence, negates, word[-1] in ".,;:!?"


def lexicon_rationale(words: Sequence[str], sign: int) -> list[int]:
    """A word is in the rationale iff its human valence agrees in sign with the label (`sign` ±1).

    A negator among the three words before it, with no punctuation in between, turns the valence
    round: in a negative text "not a good film" gives `good`.
    """
    bits, reach = [], 0  # reach: how many of the next words a negator still governs
    for word in words:
        valence, negates, ends_clause = _reading(word)
        bits.append(int(valence * (-sign if reach else sign) > 0))
        reach = 0 if ends_clause else NEGATION_WINDOW if negates else max(reach - 1, 0)
    return bits
