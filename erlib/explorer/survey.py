"""Which texts of a corpus are worth opening, and which words do the methods mark most?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from erlib.attributions import Attribution, attribute_encoded
from erlib.explorer.models import Model
from erlib.explorer.reading import FASTER
from erlib.explorer.texts import Text
from erlib.metrics.agreement import kendall

MOST_TEXTS = 200
FEWEST = 3  # texts that a word must stand in to be listed
TOP = 10  # words listed for a class

Watch = Callable[[int, int, str], None]  # steps done, of how many, and what is being done


@dataclass(frozen=True)
class Survey:
    """`table` has a row per text: `text, label`, each model's prediction and its probability,
    `error` (1 − p of the corpus's label), `confidence` (p of the prediction) and `disagreement`
    (1 − mean τ between methods of a model and between models by a method), means over models.

    `words`: model, method, class (that is predicted), word, its mean share of the text's largest
    score, and in how many texts; the words marked most.
    """

    texts: Sequence[Text]
    table: pd.DataFrame
    words: pd.DataFrame


def survey(
    models: Sequence[Model], texts: Sequence[Text], methods: Sequence[str], watch: Watch
) -> Survey:
    """Read the texts with every model and explain them with every method, at the level of words.

    A method that cannot explain a model is passed over.
    """
    if any(not model.classes for model in models):
        raise ValueError("a corpus is looked through with classifiers; one of these gives spans")
    found: dict[tuple[int, str], list[Attribution]] = {}
    columns: dict[str, list[object]] = {
        "text": [" | ".join(filter(None, text.strings())) for text in texts],
        "label": [text.label for text in texts],
    }
    errors, sure = [], []
    steps = len(models) * (1 + len(methods))
    for m, model in enumerate(models):
        done = m * (1 + len(methods))
        watch(done, steps, f"predictions, {model.label}")
        inputs = [text.input_for(model.classifier) for text in texts]
        p = model.classifier.predict(inputs).iloc[:, 1:].to_numpy(dtype=np.float64)
        columns[f"{model.label}: prediction"] = [model.classes[c] for c in p.argmax(axis=1)]
        columns[f"{model.label}: probability"] = p.max(axis=1).tolist()
        sure.append(p.max(axis=1))
        places = [model.classes.index(t.label) if t.label in model.classes else -1 for t in texts]
        right = [row[place] if place >= 0 else np.nan for row, place in zip(p, places, strict=True)]
        errors.append(1 - np.array(right))
        encoded = model.classifier.encode(inputs)
        for k, method in enumerate(methods):
            watch(done + 1 + k, steps, f"{method}, {model.label}")
            try:
                found[m, method] = attribute_encoded(
                    model.classifier, encoded, method, options=FASTER.get(method)
                )
            except ValueError:  # it cannot explain this model: the heat maps of a text say why
                continue
    table = pd.DataFrame(columns).assign(
        error=np.mean(errors, axis=0), confidence=np.mean(sure, axis=0), disagreement=np.nan
    )
    if pairs := [(a, b) for a, b in combinations(found, 2) if a[0] == b[0] or a[1] == b[1]]:
        taus = [_tau(found[a], found[b]) for a, b in pairs]
        defined = np.isfinite(taus)
        total = np.where(defined, taus, 0.0).sum(axis=0)
        table["disagreement"] = 1 - total / np.where(
            defined.any(axis=0), defined.sum(axis=0), np.nan
        )
    return Survey(texts, table, _words(models, found))


def _tau(one: Sequence[Attribution], other: Sequence[Attribution]) -> np.ndarray:
    """[text] Kendall's τ of the sizes of scores, of the words that both models have read."""
    shared = [min(len(a.scores), len(b.scores)) for a, b in zip(one, other, strict=True)]
    sides = [
        [np.abs(text.scores[:n]) for text, n in zip(each, shared, strict=True)]
        for each in (one, other)
    ]
    return kendall(*sides)


def _words(
    models: Sequence[Model], found: dict[tuple[int, str], list[Attribution]]
) -> pd.DataFrame:
    """The `TOP` words by mean share, of those in `FEWEST` texts of the class or more."""
    rows = [
        {"model": models[m].label, "method": method, "class": models[m].classes[int(one.target)],
         "text": i, "word": word.lower(), "share": float(score)}
        for (m, method), each in found.items()
        for i, one in enumerate(each)
        if not isinstance(one.target, tuple)
        for word, score in zip(one.tokens, _shares(one), strict=True)
    ]  # fmt: skip
    keys = ["model", "method", "class"]
    if not rows:
        return pd.DataFrame(columns=[*keys, "word", "share", "texts"])
    each = pd.DataFrame(rows).groupby([*keys, "word"], sort=False)
    table = each.agg(share=("share", "mean"), texts=("text", "nunique")).reset_index()
    table = table[table["texts"] >= FEWEST].sort_values("share", ascending=False, kind="stable")
    return table.groupby(keys, sort=False).head(TOP).reset_index(drop=True)


def _shares(one: Attribution) -> np.ndarray:
    """Scores as shares of the text's largest."""
    return one.scores / (np.abs(one.scores).max(initial=0.0) or 1.0)
