"""Does a model lose more by an explanation's best words than by as many words at random?

Comprehensiveness by words, p(x) − p(x∖T_k): the best k words T_k are deleted with all their pieces,
and p is the probability of the class predicted on the full text. Less the same for random words,
text by text: a text that falls apart whatever is deleted speaks for no explanation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded
from erlib.metrics.erasure import Erased, Witness, erase, predicted, probability, whole
from erlib.metrics.ranking import at_least_one, best_first
from erlib.metrics.word_erasure import word_places
from erlib.models.classifier import Classifier


def over_random(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    scores: Mapping[str, Sequence[np.ndarray]],
    *,
    percents: Sequence[int] = (20,),
    draws: int = 20,
) -> pd.DataFrame:
    """Comprehensiveness over that of `draws` random orders: [text, name], the mean over `percents`.

    `scores`: for each name one array per text with one signed score per word, as `attribute` gives
    at level "word". k is `percents` of the words, rounded up.
    """
    witness, rng = Witness(classifier), np.random.default_rng(0)
    targets = [predicted(answer) for answer in witness.ask([whole(text) for text in encoded])]
    places = [word_places(text) for text in encoded]

    def left(orders: Sequence[np.ndarray]) -> np.ndarray:
        """p of each text without the first words of its order, the mean over `percents`."""
        asked: list[Erased] = []
        for text, place, order in zip(encoded, places, orders, strict=True):
            for percent in percents:
                gone = order[: at_least_one(percent, len(order))]
                asked.append(erase(text, ~np.isin(place, gone), "delete", witness.pad_id))
        of = [target for target in targets for _ in percents]
        p = [probability(a, target) for a, target in zip(witness.ask(asked), of, strict=True)]
        return np.reshape(p, (len(encoded), len(percents))).mean(axis=1)

    lengths = [place.max() + 1 for place in places]
    chance = np.mean([left([rng.permutation(n) for n in lengths]) for _ in range(draws)], axis=0)
    gains = {name: chance - left([best_first(s) for s in each]) for name, each in scores.items()}
    return pd.DataFrame(gains, index=pd.Index([text.id for text in encoded], name="id"))
