"""How does a prediction change when whole words are taken away, or are all that is left?

Words go with all their pieces, so that methods, tokenizers and libraries can be compared; p is the
probability of a given class. With T_k the best k words, averaged over shares of the text's words,

    comprehensiveness   p(x) − p(x∖T_k)     high is good
    sufficiency         p(x) − p(T_k)       low is good
    leave-one-out       p(x) − p(x∖w)       of every word w

A span model sees [PAD] where words were, since its answer has a place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded
from erlib.metrics.erasure import Operator, Target, Witness, erase, probability, whole
from erlib.metrics.ranking import at_least_one, best
from erlib.models.classifier import Classifier

PERCENTS = (1, 5, 10, 20, 50)


class WordEraser:
    """One text's answers with some of its words; none is asked for twice."""

    def __init__(self, witness: Witness, text: Encoded, target: Target) -> None:
        self.witness, self.text, self.target = witness, text, target
        self.places = word_places(text)  # [token]
        self.words = int(self.places.max()) + 1
        self.operator: Operator = "pad" if witness.classifier.task == "span" else "delete"
        [answer] = witness.ask([whole(text)])
        self.p_full = probability(answer, target)

    def p(self, kept: Sequence[np.ndarray]) -> np.ndarray:
        """The target's probability with these words alone; each of `kept` is [word] bool."""
        special = self.places < 0
        asked = [
            erase(self.text, special | words[self.places], self.operator, self.witness.pad_id)
            for words in kept
        ]
        answers = self.witness.ask(asked)
        return np.array([probability(answer, self.target) for answer in answers])


def erasers(
    classifier: Classifier, encoded: Sequence[Encoded], targets: Sequence[Target]
) -> list[WordEraser]:
    """One for each text, all asking the same witness."""
    witness = Witness(classifier)
    witness.ask([whole(text) for text in encoded])  # together: in batches
    return [WordEraser(witness, *each) for each in zip(encoded, targets, strict=True)]


def word_faithfulness(
    texts: Sequence[WordEraser], scores: Mapping[str, Sequence[np.ndarray]]
) -> pd.DataFrame:
    """Means over `PERCENTS` of a text's words, rounded up; one row per method and text.

    `scores`: for each method one array per text, [word]. Columns: `method, id, comprehensiveness,
    sufficiency`.
    """
    rows = []
    for method, arrays in scores.items():
        for text, array in zip(texts, arrays, strict=True):
            if len(array) != text.words:
                raise ValueError(
                    f"'{method}' has {len(array)} scores for the {text.words} words that are read "
                    f"of text '{text.text.id}'"
                )
            top = [best(array, at_least_one(percent, text.words)) for percent in PERCENTS]
            p = text.p([*top, *(~words for words in top)])
            rows.append(
                {
                    "method": method,
                    "id": text.text.id,
                    "comprehensiveness": text.p_full - p[len(top) :].mean(),
                    "sufficiency": text.p_full - p[: len(top)].mean(),
                }
            )
    return pd.DataFrame(rows)


def leave_one_out(text: WordEraser) -> np.ndarray:
    """[word]: what the target's probability loses when the word is taken away."""
    return text.p_full - text.p(list(~np.eye(text.words, dtype=bool)))


def word_places(text: Encoded) -> np.ndarray:
    """[token]: which of the text's words it is a piece of, counted over both texts of a pair; −1
    for specials."""
    seen: dict[tuple[int, int], int] = {}
    pieces = zip(text.segment, text.word_ids, strict=True)
    return np.array([seen.setdefault(p, len(seen)) if p[0] >= 0 else -1 for p in pieces])
