"""Do explanations stay under another seed and for like texts, and answers under attack?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.metrics.robustness import jaccard as shared
from erlib.papers.cells import Spec, mean_over, summary
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study


def _shared_words(study: Study, specs: Sequence[Spec]) -> pd.Series:
    first, second = (study.texts(spec).set_index("id")["scores"] for spec in specs)
    scores = [[np.abs(np.asarray(s)) for s in each] for each in (first, second)]
    return pd.Series(shared(*scores), index=first.index)


@column("jaccard", group="Stable", title="Jaccard", read=mean_over(_shared_words), by="method")
def jaccard(subject: Subject, method: str) -> Specs:
    """The best quarter of words in this seed's model and in the next one's."""
    nexts = [Subject(subject.settings, run) for run in subject.others[:1]]
    return tuple(s for one in (subject, *nexts) for s in one.words(method)) if nexts else ()


@column(
    "consistency", group="Stable", title="consistency", read=summary("consistency"), by="erased"
)
def consistency(subject: Subject, method: str) -> Specs:
    """Do texts that are alike to the model have explanations that are alike?"""
    return subject.ask("consistency", "explained", method)


def _flipped(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """Of each text that was answered rightly, whether it is not any more."""
    table = study.texts(specs[0]).set_index("id")
    correct = table[table["before"] == table["label"]]
    return (correct["after"] != correct["label"]).astype(float)


@column("attack_success_rate", group="Stable", title="attack", read=mean_over(_flipped))
def attack(subject: Subject) -> Specs:
    """How many right answers harmless changes turn wrong."""
    return subject.ask("attack", "attacked")
