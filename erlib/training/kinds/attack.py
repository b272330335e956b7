"""How many predictions does an attack with harmless changes flip? (REGEX, Table 6)"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from erlib.data.checklist import changes
from erlib.metrics.robustness import attack as counted
from erlib.training.evaluations import Evaluation, evaluation
from erlib.training.kinds.predictions import predict

Ask = Callable[[Sequence[Sequence[str]]], np.ndarray]  # texts as words → [text, class]


@dataclass(frozen=True)
class Attacked:
    """What became of a text: its last form, how many of its words were changed, and the cost."""

    words: list[str]
    predicted: int
    changed: int
    kinds: tuple[str, ...]
    queries: int


def greedy(ask: Ask, words: Sequence[str], label: int) -> Attacked:
    """Make the change that lowers p(label) most, then the next, until the prediction flips.

    As TextAttack's recipe does: a word is changed once at the most, and the search goes on, with
    the best of the new texts, as long as there is anything left to change.
    """
    text, touched = list(words), [False] * len(words)
    before = int(ask([text])[0].argmax())
    state = Attacked(text, before, 0, (), 1)
    while state.predicted == label:
        possible = [c for c in changes(state.words) if not any(touched[c.start : c.stop])]
        if not possible:
            break
        answers = ask([c.applied(state.words) for c in possible])
        best = int(answers[:, label].argmin())
        chosen = possible[best]
        touched[chosen.start : chosen.stop] = [True] * len(chosen.words)
        state = Attacked(
            chosen.applied(state.words),
            int(answers[best].argmax()),
            state.changed + chosen.stop - chosen.start,
            (*state.kinds, chosen.kind),
            state.queries + len(possible),
        )
    return state


def _summary(table: pd.DataFrame) -> dict[str, float]:
    """The seven statistics of Table 6; shares in [0, 1], words changed only where it succeeded."""
    result = counted(table["label"], table["before"], table["after"])
    correct = table[table["before"] == table["label"]]
    flipped = correct[correct["after"] != correct["label"]]
    return {
        "successes": float(result.successes),
        "accuracy": result.original_accuracy,
        "accuracy_under_attack": result.accuracy_under_attack,
        "success_rate": result.success_rate,
        "changed": float((flipped["changed"] / flipped["words"]).mean()),
        "words": float(table["words"].mean()),
        "queries": float(correct["queries"].mean()),
        "texts": float(result.texts),
        "correct": float(result.correct),
    }


@evaluation("attack", version=1, summarise=_summary)
def attack(this: Evaluation) -> pd.DataFrame:
    """One row per text. Only words that the model sees are changed; wrong texts are left alone."""
    seen = [_seen(text.words[0], text.word_ids) for text in this.texts]
    labels = [int(text.label) for text in this.texts if text.label is not None]
    before = _ask(this)(seen).argmax(axis=1)
    rows = []
    for text, words, label, answer in zip(this.texts, seen, labels, before, strict=True):
        row = {"id": text.id, "label": label, "before": int(answer), "words": len(words)}
        found = Attacked(words, int(answer), 0, (), 0)
        if answer == label:
            found = greedy(_ask(this), words, label)
        rows.append(
            row
            | {
                "after": found.predicted,
                "changed": found.changed,
                "queries": found.queries,
                "kinds": " ".join(found.kinds),
            }
        )
    return pd.DataFrame(rows)


def _seen(words: list[str], word_ids: list[int]) -> list[str]:
    return words[: max(word_ids) + 1]


def _ask(this: Evaluation) -> Ask:
    def ask(texts: Sequence[Sequence[str]]) -> np.ndarray:
        words = [list(text) for text in texts]
        encoded = this.classifier.encode(words, max_length=this.spec.data.max_length)
        return predict(this.classifier, encoded).filter(regex=r"^p\d+$").to_numpy()

    return ask
