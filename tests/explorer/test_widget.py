from __future__ import annotations

import pytest
from bs4 import BeautifulSoup

import erlib
from erlib.attributions import METHODS
from tests import tiny

SENTENCE = "the funny film is and the plot"


@pytest.fixture
def explorer(here):
    return erlib.explore(text=SENTENCE)


def click(explorer, **content):
    explorer.page._handle_custom_msg(content, [])


def bars(explorer, column):
    html = BeautifulSoup(explorer.page.predictions, "html.parser")
    cell = html.select("tbody td")[column]
    return {b.select_one(".name").text: float(b.select_one(".p").text) for b in cell.select(".bar")}


def test_the_first_run_of_the_store_is_chosen_and_explained(explorer):
    explorer.go.click()
    page = explorer.page
    assert page.message == "" and page.progress == {} and not explorer.go.disabled
    assert all([page.text, page.predictions, page.heatmaps, page.agreement, page.curves])
    assert list(explorer.readings[0].explained) == [
        "attention", "input_x_gradient", "integrated_gradients", "rollout",
    ]  # fmt: skip


def test_clicking_a_word_predicts_without_it_and_clicking_again_brings_it_back(explorer):
    explorer.explain()
    whole = bars(explorer, 0)
    click(explorer, place="0:1")
    assert explorer.page.removed == ["0:1"]
    without = bars(explorer, 1)
    explorer.first.value = "the film is and the plot"
    explorer.explain()
    assert bars(explorer, 0) == without != whole
    click(explorer, place="0:1")
    click(explorer, place="0:2")
    click(explorer, place="0:1")
    assert explorer.page.removed == ["0:2"]
    click(explorer, restore=True)
    assert explorer.page.removed == [] and bars(explorer, 1) == {}


def test_the_last_word_stays_and_the_page_says_why(explorer):
    explorer.first.value = "great"
    explorer.explain()
    click(explorer, place="0:0")
    assert "last word" in explorer.page.message and explorer.page.removed == []


def test_mistakes_become_sentences(explorer, tmp_path):
    def said():
        explorer.explain()
        assert not explorer.go.disabled
        return explorer.page.message

    explorer.first.value = " "
    assert said().startswith("no text: type one")
    explorer.first.value = SENTENCE
    explorer.names.value = "minlim"
    assert said().startswith("unknown model 'minlim'; did you mean 'minilm'?")
    explorer.names.value = f"{tmp_path},"
    assert str(tmp_path) in said()
    explorer.runs.value, explorer.names.value = (), ""
    assert said().startswith("no model: choose runs")
    explorer.runs.index = (0,)
    for box in explorer.methods.values():
        box.value = False
    assert said() == "no method: tick at least one"
    explorer.methods["attention"].value = True
    assert said() == "" and explorer.page.heatmaps


def test_an_error_that_nobody_foresaw_is_still_a_sentence(explorer, monkeypatch):
    monkeypatch.setattr("erlib.explorer.widget.typed", lambda *boxes: 1 / 0)
    explorer.explain()
    assert explorer.page.message == "ZeroDivisionError: division by zero"


def test_a_stop_of_the_kernel_leaves_what_was_ready(explorer, monkeypatch):
    def stopped(request):
        """As the kernel is told to stop."""
        raise KeyboardInterrupt

    slow = METHODS["lime"].__class__(
        "lime", stopped, True, "global", False, False, ("predictions",), 1
    )
    monkeypatch.setitem(METHODS, "lime", slow)
    explorer.methods["lime"].value = True
    explorer.explain()
    assert explorer.page.message.startswith("Stopped") and explorer.page.progress == {}
    assert "…" in explorer.page.heatmaps and explorer.page.curves


def test_slow_methods_come_last_and_say_how_far_they_are(explorer):
    told = []
    explorer.page.observe(lambda change: told.append(change["new"]), "progress")
    for name in ("alti", "decompx", "decompx_classifier", "lime"):
        explorer.methods[name].value = True
    explorer.explain()
    steps = [p for p in told if p.get("total") == 9]  # eight methods, then what compares them
    doing = [p["doing"].partition(",")[0] for p in steps]
    assert doing[4:8] == ["alti", "decompx", "decompx_classifier", "lime"]
    assert [p["done"] for p in steps] == list(range(9)) and told[-1] == {}
    assert explorer.readings[0].refused == {}


def test_an_empty_store_says_what_to_do(tmp_path):
    explorer = erlib.explore(store=str(tmp_path))
    assert "run_all.sh" in explorer.page.message and str(tmp_path) in explorer.page.message


def test_named_models_stand_beside_runs(here):
    folder = str(tiny.directory("bert"))
    explorer = erlib.explore(folder, text=SENTENCE)
    explorer.runs.index = (0,)
    explorer.explain()
    labels = [reading.model.label for reading in explorer.readings]
    assert labels[0].startswith("Baseline · movies") and labels[1] == folder


def test_the_list_of_runs_is_filtered_by_words(explorer):
    explorer.filter.value = "MOVIES baseline"
    assert len(explorer.runs.options) == 1 and len(explorer.runs.value) == 1
    explorer.filter.value = "regex"
    assert len(explorer.runs.options) == 0 and explorer.runs.value == ()


def test_a_picked_text_fills_the_boxes_and_shows_its_rationale_until_it_is_edited(explorer):
    explorer.corpus.value = ("movies", "local")
    picked = explorer.row.options[1][1]
    explorer.row.index = 1
    assert explorer.first.value == " ".join(picked.segments[0])
    explorer.explain()
    assert "human rationale" in explorer.page.text
    explorer.first.value += " indeed"
    explorer.explain()
    assert "rationale" not in explorer.page.text


def test_a_corpus_that_cannot_be_had_says_so(explorer):
    explorer.corpus.value = ("sst", "local")
    assert "sst" in explorer.page.message and explorer.row.disabled


def test_the_level_changes_what_is_shown_without_computing_again(explorer, monkeypatch):
    explorer.explain()
    assert "[CLS]" not in explorer.page.heatmaps
    monkeypatch.setattr("erlib.explorer.reading.attribute_encoded", None)
    explorer.level.value = "token"
    assert "[CLS]" in explorer.page.heatmaps and explorer.page.message == ""
