from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from erlib.attributions import attribute
from erlib.explorer.models import Model
from erlib.explorer.survey import FEWEST, survey
from erlib.explorer.texts import Text
from tests import tiny

LINES = [*tiny.CORPUS, "a film", "dull", "the film and the plot"]
TEXTS = [
    Text((tuple(line.split()),), label="yes" if i % 2 else "no") for i, line in enumerate(LINES)
]
METHODS = ["attention", "input_x_gradient"]


@pytest.fixture(scope="module")
def models():
    return [Model(f"m{seed}", tiny.classifier(seed=seed), ("no", "yes")) for seed in (0, 1)]


def unwatched(*_):
    pass


@pytest.fixture(scope="module")
def found(models):
    for model in models:
        model.classifier.model.config.id2label = {0: "no", 1: "yes"}
    return survey(models, TEXTS, METHODS, unwatched)


def test_error_and_confidence_are_those_of_the_models_own_probabilities(found, models):
    p = np.mean(
        [m.classifier.predict(LINES)[["no", "yes"]].to_numpy(float) for m in models], axis=0
    )
    gold = [p[i, i % 2] for i in range(len(LINES))]
    assert found.table["error"].to_numpy() == pytest.approx(1 - np.array(gold))
    best = [m.classifier.predict(LINES)[["no", "yes"]].to_numpy(float).max(1) for m in models]
    assert found.table["confidence"].to_numpy() == pytest.approx(np.mean(best, axis=0))


def test_disagreement_is_of_methods_within_a_model_and_of_models_by_a_method(found, models):
    scores = {
        (m, method): np.abs(attribute(model.classifier, [LINES[0]], method)[0].scores)
        for m, model in enumerate(models)
        for method in METHODS
    }
    a, g = METHODS
    pairs = [((0, a), (0, g)), ((1, a), (1, g)), ((0, a), (1, a)), ((0, g), (1, g))]
    tau = np.mean([scipy.stats.kendalltau(scores[x], scores[y])[0] for x, y in pairs])
    assert found.table.loc[0, "disagreement"] == pytest.approx(1 - tau, abs=1e-6)
    short = LINES.index("dull")
    assert np.isnan(found.table.loc[short, "disagreement"])


def test_the_words_marked_most_stand_in_several_texts_of_the_class(found, models):
    words = found.words
    assert (words["texts"] >= FEWEST).all() and len(words)
    row = words.iloc[0]
    model = next(m for m in models if m.label == row["model"])
    shares = [
        np.mean([s / np.abs(one.scores).max() for t, s in zip(one.tokens, one.scores, strict=True)
                 if t == row["word"]])
        * sum(t == row["word"] for t in one.tokens)
        for one in attribute(model.classifier, LINES, row["method"])
        if row["word"] in one.tokens and model.classes[one.target] == row["class"]
    ]  # fmt: skip
    counts = [
        sum(t == row["word"] for t in one.tokens)
        for one in attribute(model.classifier, LINES, row["method"])
        if row["word"] in one.tokens and model.classes[one.target] == row["class"]
    ]
    assert row["texts"] == len(shares)
    assert row["share"] == pytest.approx(sum(shares) / sum(counts), abs=1e-5)


def test_a_method_that_does_not_apply_is_passed_over_and_spans_are_refused(models):
    one = survey(models[:1], TEXTS[:3], ["attention", "ivra"], unwatched)
    assert one.table["disagreement"].isna().all() and set(one.words["method"]) <= {"attention"}
    spans = Model("s", tiny.classifier(task="span"), ())
    with pytest.raises(ValueError, match="gives spans"):
        survey([spans], TEXTS, METHODS, unwatched)
