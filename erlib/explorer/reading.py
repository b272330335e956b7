"""What does a classifier make of a text, and what do the methods say of it?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pandas as pd

from erlib.attributions import METHODS, Attribution, attribute_encoded, equal_by_construction
from erlib.attributions.attribute import by_word
from erlib.attributions.registry import Progress, unwatched
from erlib.data import Encoded
from erlib.explorer.models import Model
from erlib.explorer.texts import Text
from erlib.metrics.agreement import agreement
from erlib.metrics.erasure import Witness, predicted, probability, whole
from erlib.metrics.faithfulness import faithfulness

# Deleting tokens is what clicking a word does too, but moves the answer of a span model.
PROTOCOLS = {"classify": "er_lens", "span": "regex"}

# The library's 50 points take more than a second for a sentence on MiniLM; the scores of 20 differ
# little from those of 300 (r ≥ 0.999), those of 10 by a third of the largest.
FASTER = {"integrated_gradients": {"steps": 20}}


def label(method: str) -> str:
    """The method's name, and how it departs from the library's default."""
    if method not in FASTER:
        return method
    return f"{method} ({FASTER[method]['steps']} points)"


def is_slow(method: str) -> bool:
    """Whether a sentence may take more than a second: LIME, ALTI and DecompX."""
    return bool({"predictions", "hidden_states"} & set(METHODS[method].needs))


@dataclass(frozen=True)
class Prediction:
    """Classes, or the answer to a question, each with its probability; the likeliest first."""

    answers: tuple[tuple[str, float], ...]


def predict(model: Model, text: Text) -> Prediction:
    """What the model predicts for the text as it is."""
    encoded = encode(model, text)
    [distribution] = Witness(model.classifier).ask([whole(encoded)])
    if distribution.ndim == 1:
        order = distribution.argsort()[::-1]
        return Prediction(tuple((model.classes[i], float(distribution[i])) for i in order))
    start, end = span = predicted(distribution)
    tokens = range(start, end + 1)
    words = dict.fromkeys((encoded.segment[t], encoded.word_ids[t]) for t in tokens)
    answer = " ".join(encoded.words[s][w] for s, w in words if s >= 0) or "no answer"
    return Prediction(((answer, probability(distribution, span)),))


def encode(model: Model, text: Text) -> Encoded:
    """The text as the model reads it, cut to its length."""
    [encoded] = model.classifier.encode([text.input_for(model.classifier)])
    return encoded


@dataclass
class Reading:
    """One model, one text, and the methods that have explained the one's prediction of the other.

    A method that cannot explain this model has its reason in `refused`. The mappings are replaced,
    never changed, so that a cell of the notebook may look at them while the explorer computes.
    """

    model: Model
    text: Text
    wanted: str = ""  # the class to explain, by its name; of a model without it, the predicted one
    explained: Mapping[str, Attribution] = field(default_factory=dict)  # token level
    refused: Mapping[str, str] = field(default_factory=dict)
    measured: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # rows of `curves`

    def __post_init__(self) -> None:
        self.encoded = encode(self.model, self.text)
        self.prediction = predict(self.model, self.text)

    @property
    def target(self) -> str:
        """The class that is explained, by its name; the answer, of a model that gives spans."""
        return self.wanted if self.wanted in self.model.classes else self.prediction.answers[0][0]

    @property
    def _target(self) -> tuple[int, ...] | None:
        """The same as the metrics take it; None: what is predicted."""
        return (self.model.classes.index(self.target),) if self.model.classes else None

    @property
    def words_read(self) -> int:
        """How many words of the text the model has seen at least a piece of."""
        pairs = zip(self.encoded.segment, self.encoded.word_ids, strict=True)
        return len({place for place in pairs if place[0] >= 0})

    def explain(self, method: str, progress: Progress = unwatched) -> None:
        """Score every token for the target, or note why that cannot be done."""
        try:
            [scores] = attribute_encoded(
                self.model.classifier,
                [self.encoded],
                method,
                target="predicted" if self._target is None else self._target[0],
                level="token",
                progress=progress,
                options=FASTER.get(method),
            )
            self.explained = {**self.explained, method: scores}
        except Exception as error:  # one method's failure is no reason to lose the others
            self.refused = {**self.refused, method: str(error) or type(error).__name__}

    def measure(self, methods: Sequence[str]) -> None:
        """Ask the model what is left without the best tokens of each method, and with them alone.

        Methods together ask less than one by one. Those that were refused are passed over.
        """
        scores = {m: [self.explained[m].scores] for m in methods if m in self.explained}
        if not scores:
            return
        classifier = self.model.classifier
        frame = faithfulness(
            classifier,
            [self.encoded],
            scores,
            protocol=PROTOCOLS[classifier.task],
            targets=None if self._target is None else [self._target],
        )
        frame = frame[["method", "bin", "p_full", "p_kept", "p_removed"]]
        rows = {str(method): rows for method, rows in frame.groupby("method", sort=False)}
        self.measured = {**self.measured, **rows}

    def at(self, level: str) -> Mapping[str, Attribution]:
        """The explanations with one score per word or per token."""
        if level == "token":
            return self.explained
        return {method: by_word(one, self.encoded) for method, one in self.explained.items()}

    def agreement(self, level: str) -> pd.DataFrame:
        """[method, method]: Pearson's r of |scores| above the diagonal, Kendall's τ-b below it.

        Specials do not count. NaN where a text is too short or an explanation is constant.
        """
        shown = self.at(level)
        methods = list(shown)
        table = pd.DataFrame(float("nan"), index=methods, columns=methods)
        if len(methods) < 2:
            return table
        scores = {
            method: [one.scores[[not special for special in one.special]]]
            for method, one in shown.items()
        }
        for row in agreement(scores).itertuples():
            table.loc[row.method_a, row.method_b] = row.pearson
            table.loc[row.method_b, row.method_a] = row.kendall
        return table

    def identical(self, methods: Sequence[str]) -> Mapping[tuple[str, str], str]:
        """Pairs of these methods that score every text alike on this model, with the reason."""
        named = [(method, None) for method in methods if method in self.explained]
        reasons = {
            (a[0], b[0]): equal_by_construction(a, b, self.model.classifier)
            for a, b in combinations(named, 2)
        }
        return {pair: reason for pair, reason in reasons.items() if reason}

    def curves(self) -> pd.DataFrame:
        """The probability of the target when the best tokens are all that is kept, or removed.

        Of the methods that have been measured.
        Columns: `method, bin` (per cent of the tokens), `p_full, p_kept, p_removed`.
        """
        return pd.concat(self.measured.values())

    def faithfulness(self) -> pd.DataFrame:
        """Means over the bins of `curves`: comprehensiveness (p lost without the best tokens),
        sufficiency (p lost with them alone), and their difference, which should be large."""
        p = self.curves().groupby("method", sort=False)[["p_full", "p_kept", "p_removed"]].mean()
        return pd.DataFrame(
            {
                "comprehensiveness": p["p_full"] - p["p_removed"],
                "sufficiency": p["p_full"] - p["p_kept"],
                "difference": p["p_kept"] - p["p_removed"],
            }
        )

    def rows(self, level: str) -> list[dict[str, object]]:
        """Every score that is shown, one row each, for a file."""
        return [
            {
                "model": self.model.label,
                "method": label(method),
                "target": self.target,
                "segment": segment,
                "place": place,
                level: token,
                "score": float(score),
            }
            for method, one in self.at(level).items()
            for place, (segment, token, score) in enumerate(
                zip(one.segment, one.tokens, one.scores, strict=True)
            )
        ]


def places(one: Attribution) -> Sequence[str]:
    """For each token or word `segment:word`, by which a click is known; "" for specials."""
    return [
        f"{segment}:{word}" if segment >= 0 else ""
        for segment, word in zip(one.segment, one.word_ids, strict=True)
    ]
