"""How important is an average word of each part of speech? (Figure 1)"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.config import EvalSpec
from erlib.data.parts_of_speech import TAGS
from erlib.papers.cells import Read, Reading, Spec
from erlib.papers.study import Study, made_once

MOST = 0.8  # words in more than this share of the texts are left out


def importance_of(tag: str) -> Read:
    """Mean score of the words of a tag. Scores of a text sum to 1."""

    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        (spec,) = specs
        assert isinstance(spec, EvalSpec)
        texts = tag_totals(study, spec)[tag]
        return Reading(mean_score(texts), texts, mean_score)

    return read


def mean_score(texts: pd.DataFrame) -> float:
    """Σ of scores / how many words; NaN without any."""
    words = texts["words"].sum()
    return float(texts["score"].sum() / words) if words else float("nan")


@made_once
def tag_totals(study: Study, spec: EvalSpec) -> dict[str, pd.DataFrame]:
    """Tag → by text the sum of its words' scores and how many they are.

    Words in fewer than `least_documents` texts or in more than 80 % of them are left out. The
    reference drops stop words as well; they stay here, since most pronouns, auxiliaries and
    conjunctions, of which the paper speaks, are stop words.
    """
    table = study.texts(spec)
    documents = Counter(w for words in table["words"] for w in {word.lower() for word in words})
    least, most = study.settings.grid["least_documents"], MOST * len(table)
    totals = np.zeros((len(TAGS), len(table), 2))
    for i, row in enumerate(table.itertuples()):
        for word, tag, score in zip(row.words, row.tags, row.scores, strict=True):
            if least <= documents[word.lower()] <= most:
                totals[TAGS.index(tag), i] += (score, 1)
    return {
        tag: pd.DataFrame(of, index=table["id"], columns=["score", "words"])
        for tag, of in zip(TAGS, totals, strict=True)
    }
