"""Do explanations of a trained model find the words that it needs?

A test on tiny random models cannot see a method that is right in every formula and says nothing
about words, as DeepLIFT at the word embedding was. So one real encoder is trained, once: the store
keeps it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

import erlib
from erlib.attributions.attribute import attribute_encoded
from erlib.attributions.decompx import decompositions_remembered
from erlib.attributions.registry import METHODS
from erlib.config import DataSpec, OptimiserSpec, RunSpec
from erlib.data import select_rows
from erlib.metrics.deletion import over_random
from erlib.models import Classifier

DATA = DataSpec("movie_snippets", max_length=64, train_rows=2000, dev_rows=200)
SPEC = RunSpec(DATA, optimiser=OptimiserSpec(epochs=2))
LONGEST, TEXTS, FEWER = 16, 200, 60

# (method, variant): with a target, so that its best words should be those that the class rests on.
FAST = [
    ("input_x_gradient", None),
    ("input_x_gradient", "ivra"),
    ("deeplift", None),
    ("deeplift", "regex"),
    ("gradshap", None),
    ("scaled_attention", None),
    ("deepshap", None),
    ("decompx_classifier", None),
    ("attn_lrp", None),
]
SLOW = [
    ("integrated_gradients", None),
    ("lime", None),
    ("occlusion", None),
    ("shap", None),
]
FEWER_PASSES = {
    "integrated_gradients": {"steps": 10},
    "lime": {"samples": 50},
    "shap": {"samples": 50},
}
SHOWN = {
    "saliency": "a norm: how sensitive the class is to a word, not whether the word speaks for it",
    "attention": "no target",
    "attention_all": "no target",
    "rollout": "no target",
    "alti": "no target",
    "decompx": "no target",
    "value_zeroing": "no target",
    "random": "no explanation",
}
NEEDS_A_MODULE = {"smat", "ivra"}  # learned attention, which this model does not have
BLIND = [("input_x_gradient", "word_embedding"), ("deeplift", "word_embedding")]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    """How far each method is above a random order, over texts, and the one-sided p of a t-test."""
    (trained,) = erlib.run([SPEC])["run"]
    classifier = erlib.load_classifier(f"run:{trained}")
    test = erlib.load_data("movie_snippets", split="test")
    drawn = select_rows(test, len(test))["words"]  # the split is ordered by class
    words = [words for words in drawn if len(words) <= LONGEST][:TEXTS]
    fast, slow = [*FAST, *BLIND], [*SLOW, *((name, None) for name in SHOWN)]
    rows = [*_over(classifier, words, fast), *_over(classifier, words[:FEWER], slow)]
    return pd.DataFrame(rows).set_index(["method", "variant"])


def _over(
    classifier: Classifier, words: list[list[str]], rows: list[tuple[str, str | None]]
) -> list[dict[str, object]]:
    texts = classifier.encode(words)
    scores: dict[tuple[str, str | None], list[np.ndarray]] = {}
    with decompositions_remembered():
        for method, variant in rows:
            options = FEWER_PASSES.get(method)
            found = attribute_encoded(classifier, texts, method, variant=variant, options=options)
            scores[method, variant] = [one.scores for one in found]
    gains = over_random(classifier, texts, scores, percents=(20, 50), draws=5)
    rows_of_table = []
    for method, variant in rows:
        gain = gains[method, variant]
        test = ttest_1samp(gain, 0.0, alternative="greater")
        row = {"method": method, "variant": variant or "", "texts": len(texts)}
        rows_of_table.append(
            {**row, "over random": gain.mean(), "t": test.statistic, "p": test.pvalue}
        )
    return rows_of_table


@pytest.mark.parametrize(("method", "variant"), [*FAST, *SLOW])
def test_a_method_with_a_target_beats_a_random_order(table, method, variant):
    assert table.loc[(method, variant or ""), "p"] < 0.01


@pytest.mark.parametrize(("method", "variant"), BLIND)
def test_a_signed_product_at_the_word_embedding_does_not(table, method, variant):
    assert table.loc[(method, variant), "p"] > 0.01


def test_every_method_is_measured_or_excused(table, capsys):
    measured = {method for method, _ in table.index}
    assert measured | NEEDS_A_MODULE == set(METHODS)
    with capsys.disabled():
        print(f"\n{table.sort_values('t', ascending=False).round(4).to_string()}")
