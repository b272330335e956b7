"""`erlib.compare`: many methods on texts of one's own, measured beside each other."""

from __future__ import annotations

import re
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from transformers import AutoModelForSequenceClassification

import erlib
from erlib.attributions import METHODS
from erlib.cli import main
from erlib.data.schema import to_dataset
from erlib.metrics.plausibility import auc
from tests import tiny
from tests.reports.sample import NASTY

TEXTS = [*tiny.TEXTS, "not a bad film", "i liked the music", "the best of the year"]
FAST = ["random", "attention", "deeplift", "deepshap"]


@pytest.fixture(scope="module")
def model():
    return tiny.classifier("bert")


@pytest.fixture(scope="module")
def found(model):
    return erlib.compare(model, TEXTS, FAST)


def perfect(model, texts, target):
    """Leave-one-out scores made without any of erlib's erasing: by encoding shorter texts."""
    made = []
    for text in texts:
        words = text.split()
        p = lambda kept: model.predict([kept]).iloc[0, 1 + target]  # noqa: E731
        made.append([p(words) - p(words[:i] + words[i + 1 :]) for i in range(len(words))])
    return made


def test_scores_made_elsewhere_are_judged_like_any_others(model):
    texts = [text for text in TEXTS if len(text.split()) > 2]
    mine = perfect(model, texts, 1)
    found = erlib.compare(model, texts, ["random"], target=1, scores={"mine": mine})
    table = found.to_pandas()
    assert table.index[0] == "mine"
    signs = [np.sign(np.subtract.outer(np.abs(m), np.abs(m))) for m in mine]
    assert all((sign != 0).sum() == len(sign) * (len(sign) - 1) for sign in signs)  # no ties
    assert table.loc["mine", "leave_one_out"] == pytest.approx(1.0, abs=1e-9)
    first = found.per_text.query("method == 'mine' and text == 0").iloc[0]
    words = texts[0].split()
    best = np.argsort(-np.array(mine[0]))
    without = [
        model.predict([[w for i, w in enumerate(words) if i not in best[:k]]]).iloc[0, 2]
        for k in (1, 1, 1, 2, 3)  # 1, 5, 10, 20 and 50 % of six words
    ]
    p = model.predict([words]).iloc[0, 2]
    assert first["comprehensiveness"] == pytest.approx(p - np.mean(without), abs=1e-6)


def test_the_best_of_all_orders_has_a_normalised_aopc_of_one(model):
    text = ["great", "dull", "film"]
    target = int(model.predict([text]).iloc[0, 1:].astype(float).argmax())

    full = probability_without(model, text, (), target)
    aopc = {
        order: np.mean(
            [full - probability_without(model, text, order[:k], target) for k in (1, 2, 3)]
        )
        for order in permutations(range(3))
    }
    best = max(aopc, key=aopc.get)
    scores = [3.0 - best.index(word) for word in range(3)]
    found = erlib.compare(model, [text], ["random"], scores={"best": [scores]})
    assert found.to_pandas().loc["best", "normalised_aopc"] == pytest.approx(1.0, abs=1e-6)


def probability_without(model, words, gone, target):
    """p of the target with [PAD] for the pieces of these words."""
    [encoded] = model.encode([words])
    inputs = model.batch([encoded]).inputs
    for token, word in enumerate(encoded.word_ids):
        if word in gone:
            inputs["input_ids"][0, token] = model.tokenizer.pad_token_id
    return float(model.forward(inputs).logits[0].detach().double().softmax(0)[target])


def test_there_is_a_row_for_each_method_and_equal_ones_are_named(found):
    table = found.to_pandas()
    assert sorted(table.index) == sorted(FAST)
    assert table["faithfulness"].is_monotonic_decreasing
    assert table.loc["deepshap", "equal_to"] == "deeplift"
    assert table.loc["deepshap", "rank"] == table.loc["deeplift", "rank"]
    assert "plausibility" not in table  # no rationale was given
    assert any("deepshap equals deeplift by construction" in line for line in found.findings())
    assert found.agreement().loc["deeplift", "deepshap"] == pytest.approx(1.0, abs=1e-6)


def test_all_methods_are_tried_and_what_does_not_apply_says_why(model):
    found = erlib.compare(model, ["a great film"], options={"lime": {"samples": 20}})
    assert set(found.attributions) | set(found.refused) == set(METHODS)
    assert set(found.refused) == {"smat", "ivra"} and "explainer=" in found.refused["smat"]


def test_a_class_is_explained_by_its_name_and_predicted_is_the_default(tmp_path):
    names = {0: "sad", 1: "glad"}
    tiny.saved_by_library("bert", AutoModelForSequenceClassification, tmp_path, id2label=names)
    model = erlib.load_classifier(tmp_path)
    named = erlib.compare(model, TEXTS[:1], ["attention"], target="sad")
    assert named.attributions["attention"][0].target == 0
    assert "for and against “sad”" in named._repr_html_()
    predicted = erlib.compare(model, TEXTS[:1], ["attention"]).attributions["attention"][0]
    assert names[predicted.target] == model.predict(TEXTS[:1])["label"].iloc[0]


def test_rationales_given_or_brought_by_the_data_make_plausibility(model):
    words = ["the", "plot", "is", "unfunny"]
    marks = [0, 0, 0, 1]
    rows = [{"id": "a", "words": words, "label": 0, "rationale": marks}]
    given = erlib.compare(model, [words], FAST, rationales=[marks])
    brought = erlib.compare(model, to_dataset(rows, "classify", ["bad", "good"]), FAST)
    for found in (given, brought):
        table = found.to_pandas()
        for method in FAST:
            size = np.abs(found.attributions[method][0].scores)
            assert table.loc[method, "plausibility"] == auc(size, marks)
    gold = erlib.compare(
        model, to_dataset(rows, "classify", ["bad", "good"]), ["attention"], target="gold"
    )
    assert gold.attributions["attention"][0].target == 0


def test_pairs_and_questions_are_compared_too():
    pairs = [("a great film", "the plot is bad"), ("dull", "a film")]
    found = erlib.compare(tiny.classifier("bert"), pairs, FAST)
    assert found.attributions["attention"][0].tokens == [*pairs[0][0].split(), *pairs[0][1].split()]
    question = {"question": "which ?", "context": "a great film"}
    spans = erlib.compare(tiny.classifier("bert", task="span"), [question], FAST)
    assert np.isfinite(spans.to_pandas()["faithfulness"]).all()


def test_few_texts_have_no_intervals_and_the_page_says_so(model):
    few = erlib.compare(model, TEXTS[:2], FAST)
    assert "low" not in few.to_pandas()
    assert any("5 texts or more" in line for line in few.findings())


def test_a_text_that_was_cut_is_said_to_be(model):
    cut = erlib.compare(model, [["film"] * 100], ["random", "attention"])
    assert any("cut to the 64 tokens" in line and line.endswith("1.") for line in cut.findings())


def test_the_table_can_be_typeset_and_the_page_needs_nothing_else(found, tmp_path):
    latex = found.to_latex()
    assert latex.isascii() and r"faithfulness $\uparrow$" in latex and latex.count(r"\\") == 5
    path = found.save(tmp_path / "x.html")
    page = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    assert not page.select("link[href^=http], script[src], img[src^=http]")
    rows = [row.th.get_text() for row in page.select("#comparison-table-1 tbody tr")]
    assert rows == list(found.to_pandas().index)
    assert "leave_one_out" not in page.get_text() and "leave-one-out" in page.get_text()


def test_no_character_of_a_user_becomes_markup(model):
    named = erlib.compare(
        model, [[NASTY.replace(" ", ""), "film"]], ["attention"], scores={NASTY: [[1.0, 2.0]]}
    )
    page = BeautifulSoup(named._repr_html_(), "html.parser")
    assert page.find(["script", "img", "b", "iframe"]) is None and NASTY in page.get_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"methods": ["alt"]}, "unknown method 'alt'; did you mean 'alti'"),
        ({"texts": []}, "no texts"),
        ({"texts": "a film"}, "put a single text in a list"),
        ({"target": "goood"}, "unknown target 'goood'"),
        ({"rationales": [[1]]}, "1 rationales for 6 texts"),
        ({"rationales": [[1]] * 6}, "must be 6 times 0 or 1, one for each word, not"),
        ({"scores": {"mine": [[1.0]]}}, "scores of 'mine': 1 for 6 texts"),
        ({"options": {"lime": {"samples": 5}}}, "options for 'lime', which is not among"),
        ({"classifier": "minilm"}, "takes a classifier, not 'minilm': .*load_classifier"),
    ],
)
def test_bad_input_is_refused_with_what_would_be_right(arguments, said, model):
    asked = {"classifier": model, "texts": TEXTS, "methods": ["attention"], **arguments}
    with pytest.raises(ValueError, match=said):
        erlib.compare(**asked)


def test_a_terminal_shows_words_methods_and_findings(tmp_path, capsys):
    names = {0: "sad", 1: "glad"}
    tiny.saved_by_library("bert", AutoModelForSequenceClassification, tmp_path, id2label=names)
    page = tmp_path / "x.html"
    asked = ["--model", str(tmp_path), "--methods", "attention,saliency", "--target", "glad"]
    assert main(["explain", "a great film", *asked, "--save", str(page)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"label +sad +glad", said) and re.search(r"great +\+\d", said)
    assert "most faithful of 2 methods" in said and page.exists()
    assert main(["explain", "a great film", *asked[:-1], "gladd"]) == 2
    assert "did you mean 'glad'" in capsys.readouterr().err


def test_to_pandas_is_a_plain_table(found):
    table = found.to_pandas()
    assert isinstance(table, pd.DataFrame) and table.index.name == "method"
    assert {"rank", "faithfulness", "low", "high", "comprehensiveness", "sufficiency"} <= set(table)
