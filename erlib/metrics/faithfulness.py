"""Does the model rely on the tokens that an explanation ranks first?

Sufficiency keeps the k best tokens T_k, comprehensiveness removes them. Three papers measure both,
each in its own way; what differs between them is a row of `PROTOCOLS` (metrics.md §2), and one
engine runs all three. Throughout, p is the probability of the class predicted on the full text.

    er_lens, regex   S = 1 − max(0, p(x) − p(T_k))          Cmp = max(0, p(x) − p(x∖T_k))
                     NormSuff = (S − S0)/(1 − S0)           NormComp = Cmp/(1 − S0)
                     S0: S of the empty rationale; both clipped to [0, 1]
    ivra             SUFF = p(x) − p(T_k), low is good      COMP = p(x) − p(x∖T_k)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from erlib.data.encoding import Encoded
from erlib.errors import unknown
from erlib.metrics.erasure import (
    Erased,
    Operator,
    Target,
    Witness,
    blank,
    erase,
    predicted,
    probability,
    whole,
)
from erlib.metrics.ranking import best, share
from erlib.models.classifier import Classifier


@dataclass(frozen=True)
class Protocol:
    """One paper's way of measuring: a column of the table in metrics.md §2."""

    name: str
    bins: tuple[int, ...]  # per cent of n
    rounding: Literal["floor", "ceil"]  # k is at least 1 either way
    counted: Literal["all", "not separators", "not specials"]  # which tokens n counts
    ranks_specials: bool  # may specials take places in T_k? They are never erased.
    operator: Operator
    empty: Literal["zero vectors", "pad ids"] | None  # empty rationale; None: not normalised
    guard: float  # subtracted once from S0
    left_out: bool = False  # texts no surer than the empty rationale; else their values are 0

    def k(self, percent: int, text: Encoded) -> int:
        """How many tokens are in T_k."""
        words = len(text.special) - sum(text.special)
        n = {
            "all": len(text.special),
            # The protocol's "length" is the position of [SEP]: the words and the [CLS] before them.
            "not separators": words + int(text.special[0]),
            "not specials": words,
        }[self.counted]
        rankable = len(text.special) if self.ranks_specials else words
        floor, ceil = share(percent, n)
        return min(rankable, max(1, floor if self.rounding == "floor" else ceil))


PROTOCOLS = {
    rules.name: rules
    for rules in (
        Protocol(
            name="er_lens",
            bins=(1, 20, 40, 60, 80, 100),
            rounding="floor",
            counted="all",
            ranks_specials=True,
            operator="delete",
            empty="zero vectors",
            guard=1e-4,
            left_out=True,
        ),
        Protocol(
            name="regex",
            bins=(1, 5, 10, 20, 50),
            rounding="ceil",
            counted="not separators",
            ranks_specials=False,
            operator="pad",
            empty="pad ids",
            guard=1e-4,
        ),
        Protocol(
            name="ivra",
            bins=(1, 5, 10, 20, 50),
            rounding="ceil",
            counted="not specials",
            ranks_specials=False,
            operator="mask",
            empty=None,
            guard=0.0,
        ),
    )
}


def faithfulness(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    scores: Mapping[str, Sequence[np.ndarray]],
    *,
    protocol: str,
    batch_size: int | None = None,
    targets: Sequence[Target] | None = None,
) -> pd.DataFrame:
    """Sufficiency and comprehensiveness, one row per text, method and bin.

    `targets`: whose probability is measured, where it is not that of the class predicted.

    `scores`: for each method one array per text with one signed score per token, specials included.
    Columns: `id, method, bin` (per cent), `k, sufficiency, comprehensiveness,
    normalised_sufficiency, normalised_comprehensiveness, p_full, p_kept, p_removed, p_empty,
    undefined`. `undefined` marks texts that the model likes no better than nothing (1 − S0 not
    above the guard). Their normalised values are 0 by definition (regex), or they are left out:
    NaN in every bin (er_lens), so that with all tokens kept sufficiency is 1. Without an empty
    rationale (ivra) the normalised columns and `p_empty` are NaN, and both metrics keep their sign.
    """
    if protocol not in PROTOCOLS:
        raise unknown("protocol", protocol, PROTOCOLS)
    rules = PROTOCOLS[protocol]
    check_scores(encoded, scores)
    if rules.operator == "delete" and classifier.task == "span":
        raise ValueError(
            f"protocol '{rules.name}' deletes tokens, which moves the answer of a span model; "
            "use 'regex' or 'ivra'"
        )
    witness = Witness(classifier, batch_size=batch_size)

    answers = witness.ask([whole(text) for text in encoded])
    if targets is None:
        targets = [predicted(answer) for answer in answers]  # kept fixed under erasure
    p_full = [probability(a, t) for a, t in zip(answers, targets, strict=True)]

    rows: list[tuple[str, str, int, int, float]] = []
    asked: list[Erased] = []  # three per row: T_k, x∖T_k, the empty rationale
    asked_of: list[int] = []
    for method, arrays in scores.items():
        for i, (text, array) in enumerate(zip(encoded, arrays, strict=True)):
            for percent in rules.bins:
                k = rules.k(percent, text)
                rows.append((text.id, method, percent, k, p_full[i]))
                asked += _three_inputs(text, array, k, rules, witness.pad_id)
                asked_of += [i] * 3
    answers = witness.ask(asked)
    p = [probability(a, targets[i]) for a, i in zip(answers, asked_of, strict=True)]

    frame = pd.DataFrame(rows, columns=["id", "method", "bin", "k", "p_full"])
    frame["p_kept"], frame["p_removed"], frame["p_empty"] = p[0::3], p[1::3], p[2::3]
    return _with_metrics(frame, rules)


def _three_inputs(
    text: Encoded, scores: np.ndarray, k: int, rules: Protocol, pad_id: int
) -> list[Erased]:
    """What sufficiency, comprehensiveness and the normalisation show to the model."""
    special = np.asarray(text.special, dtype=bool)
    ranked = scores if rules.ranks_specials else np.where(special, -np.inf, scores)
    rationale = best(ranked, k)
    kept = erase(text, rationale | special, rules.operator, pad_id)
    removed = erase(text, ~rationale | special, rules.operator, pad_id)
    if rules.empty == "zero vectors":  # as long as the rationale it is compared with
        empty = blank(text, rationale | special, pad_id)
    elif rules.empty == "pad ids":  # specials too
        empty = erase(text, np.zeros_like(special), "pad", pad_id)
    else:
        empty = kept  # not used, and costs nothing: it is asked once
    return [kept, removed, empty]


def _with_metrics(frame: pd.DataFrame, rules: Protocol) -> pd.DataFrame:
    drop_kept = frame["p_full"] - frame["p_kept"]
    drop_removed = frame["p_full"] - frame["p_removed"]
    if rules.empty is None:
        frame = frame.assign(
            p_empty=np.nan,
            sufficiency=drop_kept,
            comprehensiveness=drop_removed,
            normalised_sufficiency=np.nan,
            normalised_comprehensiveness=np.nan,
            undefined=False,
        )
    else:
        null = (frame["p_full"] - frame["p_empty"]).clip(lower=0)  # 1 − S0
        undefined = null <= rules.guard
        if rules.left_out:  # of all bins, even if S0, which depends on k, is too large in one only
            undefined = undefined.groupby([frame["method"], frame["id"]]).transform("any")
        nothing = np.nan if rules.left_out else 0.0
        s0 = 1 - null - rules.guard
        sufficiency = 1 - drop_kept.clip(lower=0)
        comprehensiveness = drop_removed.clip(lower=0)
        frame = frame.assign(
            sufficiency=sufficiency,
            comprehensiveness=comprehensiveness,
            # er_lens eq. 5 with the denominator of REGEX eq. 10 (er_lens.md §4.1)
            normalised_sufficiency=(
                ((sufficiency - s0) / (1 - s0)).clip(0, 1).mask(undefined, nothing)
            ),
            normalised_comprehensiveness=(
                (comprehensiveness / (1 - s0)).clip(0, 1).mask(undefined, nothing)
            ),
            undefined=undefined,
        )
    order = ["id", "method", "bin", "k", "sufficiency", "comprehensiveness"]
    order += ["normalised_sufficiency", "normalised_comprehensiveness"]
    return frame[[*order, "p_full", "p_kept", "p_removed", "p_empty", "undefined"]]


def check_scores(encoded: Sequence[Encoded], scores: Mapping[str, Sequence[np.ndarray]]) -> None:
    """Refuse scores that are not one number per token, finite but for specials put last (−∞)."""
    for method, arrays in scores.items():
        if len(arrays) != len(encoded):
            raise ValueError(f"'{method}' has scores of {len(arrays)} texts, not {len(encoded)}")
        for text, array in zip(encoded, arrays, strict=True):
            if np.shape(array) != (len(text.tokens),):
                raise ValueError(
                    f"'{method}' has scores of shape {np.shape(array)} for text '{text.id}' "
                    f"of {len(text.tokens)} tokens, specials included"
                )
            if not np.isfinite(np.asarray(array)[~np.asarray(text.special)]).all():
                raise ValueError(f"'{method}' has scores that are not finite in text '{text.id}'")


def aopc(frame: pd.DataFrame, column: str) -> pd.Series:
    """Σ over bins / (bins + 1) for each (method, id), as in ERASER: five perfect bins give 5/6.

    NaN of a text that is left out.
    """
    by_text = frame.groupby(["method", "id"], sort=False)[column]
    return by_text.sum(min_count=1) / (by_text.size() + 1)


def bin_mean(frame: pd.DataFrame, column: str) -> pd.Series:
    """The plain mean over bins for each (method, id)."""
    return frame.groupby(["method", "id"], sort=False)[column].mean()


def area(frame: pd.DataFrame, column: str) -> pd.Series:
    """Area under the curve over the kept fraction (trapezoid) for each (method, id)."""
    wide = frame.pivot(index=["method", "id"], columns="bin", values=column).sort_index(axis=1)
    curve = np.trapezoid(wide.to_numpy(), x=wide.columns.to_numpy() / 100, axis=1)
    return pd.Series(curve, index=wide.index, name=column)


def undefined_share(frame: pd.DataFrame) -> pd.Series:
    """The share of a method's texts (and bins) that have nothing to normalise by."""
    return frame.groupby("method", sort=False)["undefined"].mean()


THRESHOLDS = tuple(z / 10 for z in range(1, 10))


def important_share(scores: np.ndarray) -> float:
    """The share of tokens with min-max normalised |score| > z, averaged over z = .1, .2 … .9.

    metrics.md §3. Constant scores mark no token. Times 9/10 it is ERASER's Σ/(9 + 1).
    """
    size = np.abs(np.asarray(scores, dtype=np.float64))
    low, high = size.min(), size.max()
    if low == high:
        return 0.0
    normalised = (size - low) / (high - low)
    return float(np.mean([(normalised > z).mean() for z in THRESHOLDS]))
