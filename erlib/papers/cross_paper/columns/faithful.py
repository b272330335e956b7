"""Does the model rely on what its explanations call important?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from erlib.metrics.agreement import kendall
from erlib.metrics.normalised_aopc import normalised
from erlib.papers.cells import Spec, mean_over, text_aopc, text_mean
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.study import Study

# protocol → what it calls its two measures, in the table of the evaluation and in the registry
PROTOCOLS = {
    "er_lens": ("normalised_sufficiency", "normalised_comprehensiveness"),
    "regex": ("normalised_sufficiency", "normalised_comprehensiveness"),
    "ivra": ("sufficiency", "comprehensiveness"),
}
SHOWN = {"er_lens": "ER lens", "regex": "REGEX", "ivra": "IvRA"}
LEFT_OUT = "occlusion"  # what a word's absence changes


def _erased(subject: Subject, method: str, protocol: str) -> Specs:
    return subject.ask("faithfulness", "erased", method, protocol=protocol)


for _protocol, _measures in PROTOCOLS.items():
    for _measure, _short in zip(_measures, ("suff.", "comp."), strict=True):
        column(
            f"{_protocol}_{_measure}",
            metric=f"ivra_{_measure}" if _protocol == "ivra" else _measure,
            group="Faithful",
            title=f"{_short} {SHOWN[_protocol]}",
            read=text_aopc(_measure),
            by="erased",
        )(partial(_erased, protocol=_protocol))


def _orders(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """Of each short text, where the explanation's order of words stands among all orders."""
    removed, scored = (study.texts(spec).set_index("id") for spec in specs)
    return pd.Series(
        {
            name: normalised(np.asarray(drop), np.asarray(scored["scores"][name]))[0]
            for name, drop in removed["drops"].items()
        },
        dtype=float,
    )


@column(
    "normalised_aopc", group="Faithful", title="norm. AOPC", read=mean_over(_orders), by="method"
)
def normalised_aopc(subject: Subject, method: str) -> Specs:
    """Texts of at most ten words, against the best and the worst of all their orders."""
    return (*subject.ask("removals", "explained"), *subject.words(method))


def _soft(subject: Subject, method: str) -> Specs:
    return subject.ask("soft_faithfulness", "erased", method)


SOFT = {"soft_sufficiency": "soft suff.", "soft_comprehensiveness": "soft comp."}
for _name, _title in SOFT.items():
    column(_name, group="Faithful", title=_title, read=text_mean(_name), by="erased")(_soft)


@column("decision_flip", group="Faithful", title="flip", read=text_mean("fraction"), by="erased")
def decision_flip(subject: Subject, method: str) -> Specs:
    """The share of the best words that must go before the decision flips."""
    return subject.ask("flips", "erased", method)


def _beside_absence(study: Study, specs: Sequence[Spec]) -> pd.Series:
    first, second = (study.texts(spec).set_index("id")["scores"] for spec in specs)
    sizes = [[np.abs(np.asarray(s)) for s in scores] for scores in (first, second)]
    return pd.Series(kendall(*sizes), index=first.index)


@column(
    "leave_one_out", group="Faithful", title="τ, one out", read=mean_over(_beside_absence),
    by="method",
)  # fmt: skip
def leave_one_out(subject: Subject, method: str) -> Specs:
    """Kendall's τ of the sizes of scores with what the absence of each word changes."""
    return () if method == LEFT_OUT else (*subject.words(method), *subject.words(LEFT_OUT))
