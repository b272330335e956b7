from __future__ import annotations

import io
import json

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from erlib.explorer import page
from erlib.explorer.chart import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    chart_svg,
    key_html,
)
from erlib.explorer.models import Model
from erlib.explorer.reading import Prediction, Reading
from erlib.explorer.survey import survey
from erlib.explorer.texts import Text
from tests import tiny
from tests.reports.sample import NASTY

WORDS = ("a", "great", NASTY.replace(" ", "_"), "film")
TEXT = Text((WORDS,), ((0, 1, 0, 0),), NASTY, NASTY)


@pytest.fixture(scope="module")
def readings():
    made = []
    for seed in (0, 1):
        model = Model(f"{NASTY} {seed}", tiny.classifier(seed=seed), ("no", NASTY), NASTY)
        made.append(Reading(model, TEXT))
        for method in ("attention", "input_x_gradient"):
            made[-1].explain(method)
        made[-1].measure(["attention", "input_x_gradient"])
    made[1].refused["lime"] = NASTY
    return made


def soup(html):
    return BeautifulSoup(html, "html.parser")


def words(tag):
    return [span.get_text() for span in tag.select("[data-place]")]


def test_no_character_of_a_user_becomes_markup(readings):
    sections = [
        page.text_html(TEXT),
        page.predictions_html(readings, [r.prediction for r in readings], 1),
        page.heatmaps_html(readings, ["attention", "input_x_gradient", "lime"], "word"),
        page.agreement_html(readings, "word"),
        page.curves_html(readings),
        page.survey_html(survey([r.model for r in readings], [TEXT] * 3, ["attention"], print)),
    ]
    assert all(soup(html).find(["script", "img", "b", "iframe"]) is None for html in sections)
    assert all(NASTY in soup(html).get_text() for html in sections)


def test_the_text_shows_every_word_its_place_and_the_rationale():
    html = soup(page.text_html(TEXT))
    assert words(html) == list(WORDS)
    assert [s["data-place"] for s in html.select("[data-place]")] == ["0:0", "0:1", "0:2", "0:3"]
    assert [s.get_text() for s in html.select(".rationale")] == ["great"]
    assert "rationale" not in page.text_html(Text((("plain",),)))
    empty = Text((("plain",),), ((0,),), "lexicon")
    assert "no word is in its lexicon rationale" in page.text_html(empty)


def test_models_stand_side_by_side_and_methods_below_each_other(readings):
    html = soup(page.heatmaps_html(readings, ["attention", "input_x_gradient", "lime"], "word"))
    assert len(html.select("thead th")) == 3
    assert [th.get_text() for th in html.select("tbody th")] == [
        "attention", "input_x_gradient", "lime",
    ]  # fmt: skip
    cells = [tr.select("td") for tr in html.select("tbody tr")]
    assert all(words(td) == list(WORDS) for row in cells[:2] for td in row)
    assert cells[2][0].get_text() == "…" and NASTY in cells[2][1].get_text()  # awaited; refused
    assert "underline" in cells[0][0].select_one('[data-place="0:1"]')["style"]
    assert "against" in html.select_one(".legend").get_text()


def test_methods_that_cannot_but_agree_are_named_with_the_models_where_they_do():
    models = [
        Model("bert", tiny.classifier(), ("no", "yes")),
        Model("gpt2", tiny.classifier("gpt2", head="own"), ("no", "yes")),
    ]
    made = [Reading(model, Text((("a", "great", "film"),))) for model in models]
    methods = ["attention", "input_x_gradient", "deeplift", "deepshap"]
    for reading in made:
        for method in methods:
            reading.explain(method)
    notes = [p.get_text() for p in soup(page.heatmaps_html(made, methods, "word")).select(".hint")]
    assert [note.partition(":")[0] for note in notes[1:]] == [
        "deeplift and deepshap are identical by construction",
        "input_x_gradient and deeplift are identical by construction on gpt2",
        "input_x_gradient and deepshap are identical by construction on gpt2",
    ]
    assert made[0].agreement("word").loc["deeplift", "deepshap"] == pytest.approx(1)


def test_at_token_level_pieces_and_specials_are_shown(readings):
    html = soup(page.heatmaps_html(readings[:1], ["attention"], "token"))
    shown = [span.get_text() for span in html.select("td span")]
    assert shown[0] == "[CLS]" and shown[-1] == "[SEP]" and words(html) == shown[1:-1]


def test_predictions_are_compared_class_by_class():
    model = Model("m", tiny.classifier(), tuple("abcdefg"))
    reading = Reading.__new__(Reading)
    reading.model, reading.text = model, Text((("w",),))
    reading.encoded = model.classifier.encode([["w"]])[0]
    reading.prediction = Prediction(tuple((c, (7 - i) / 28) for i, c in enumerate("abcdefg")))
    after = Prediction(tuple((c, (7 - i) / 28) for i, c in enumerate("gfedcba")))
    html = soup(page.predictions_html([reading], [after], 2))
    whole, without = html.select("tbody td")
    names = [[s.get_text() for s in td.select(".name")] for td in (whole, without)]
    assert names == [list("abcde"), list("abcdg")]  # the winner is always among those shown
    assert [s.get_text() for s in html.select(".winner .name")] == ["a", "g"]
    assert "without 2 words" in html.get_text() and "and 2 other classes" in whole.get_text()
    assert whole.select_one(".track span")["style"] == "width:25.0%"
    assert whole.select_one(".name")["title"] == "a"


def test_a_curve_s_points_are_where_its_numbers_say():
    frame = pd.DataFrame({"method": "<m>", "bin": [0, 100], "p": [1.0, 0.0]})
    html = soup(chart_svg(frame, "p", 0.5, ["<m>"], "title"))
    assert html.polyline["points"] == f"{LEFT}.0,{TOP}.0 {WIDTH - RIGHT}.0,{HEIGHT - BOTTOM}.0"
    assert [t.get_text() for t in html.select("circle title")] == [
        "<m>, 0 %: 1.000", "<m>, 100 %: 0.000",
    ]  # fmt: skip


def test_no_two_of_twenty_methods_have_the_same_line():
    lines = soup(key_html([str(i) for i in range(20)])).select("line")
    assert len({(line["stroke"], line["stroke-dasharray"]) for line in lines}) == 20


def test_one_method_has_no_agreement_and_none_has_no_curves(readings):
    bare = Reading(readings[0].model, TEXT)
    assert page.agreement_html([bare], "word") == page.curves_html([bare]) == ""
    bare.explain("attention")
    assert page.agreement_html([bare], "word") == page.curves_html([bare]) == ""
    bare.measure(["attention"])
    assert "<svg" in page.curves_html([bare])


def test_the_best_of_each_column_is_marked_and_is_the_best(readings):
    tables = soup(page.curves_html(readings)).select("table.numbers")
    assert len(tables) == 2
    for reading, table in zip(readings, tables, strict=True):
        expected = reading.faithfulness()
        bold = [
            [row.th.text for row in table.tbody.select("tr") if row.select("td")[i].strong]
            for i in range(3)
        ]
        best = [
            expected["comprehensiveness"].idxmax(),
            expected["sufficiency"].idxmin(),
            expected["difference"].idxmax(),
        ]
        assert all(name in names for name, names in zip(best, bold, strict=True))


def test_the_colours_say_of_which_class_they_speak():
    model = Model("m", tiny.classifier(), ("no", "yes"))
    wanted = Reading(model, TEXT, "yes")
    wanted.explain("attention")
    other = Reading(model, TEXT, "no")
    said = soup(page.heatmaps_html([wanted], ["attention"], "word")).get_text()
    assert "blue words speak for “yes”, orange ones against it" in said
    both = soup(page.heatmaps_html([wanted, other], ["attention"], "word")).get_text()
    assert "“yes”, m; “no”, m" in both


def test_the_two_texts_of_a_pair_stand_apart():
    model = Model("m", tiny.classifier(), ("no", "yes"))
    reading = Reading(model, Text((("a", "film"), ("the", "plot"))))
    reading.explain("attention")
    [line] = soup(page.heatmaps_html([reading], ["attention"], "word")).select("td .text")
    first, second = str(line).split("<br/>")
    assert "film" in first and "plot" in second and "plot" not in first
    whole = soup(page.heatmaps_html([reading], ["attention"], "token")).select("td .text")
    assert len(str(whole[0]).split("<br/>")) == 2


def test_files_have_every_score_that_is_shown(readings):
    made = page.files(readings, "word")
    rows = json.loads(made["scores.json"])
    assert len(rows) == 2 * 2 * len(WORDS)
    again = pd.read_csv(io.StringIO(made["scores.csv"]))
    shown = readings[1].at("word")["attention"].scores
    part = again[(again["model"] == readings[1].model.label) & (again["method"] == "attention")]
    assert part["score"].to_numpy() == pytest.approx(shown) and list(part["word"]) == list(WORDS)
    assert made["scores.tex"].startswith(r"\begin{tabular}")
    assert page.files([], "word") == {}
