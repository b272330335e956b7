from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from threading import Event
from types import SimpleNamespace

import pytest
import torch
from bs4 import BeautifulSoup

import erlib
from erlib.attributions import METHODS
from erlib.attributions.registry import Scores
from erlib.explorer.texts import EXAMPLE
from tests import tiny

SENTENCE = "the funny film is and the plot"


@pytest.fixture
def explorer(here):
    return erlib.explore(text=SENTENCE)


def until(condition):
    """Wait for what another thread does."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def settle(explorer):
    """Wait until the worker has done what was asked of it before."""
    assert explorer._worker.do(lambda: None).wait(60)


def click(explorer, **content):
    explorer.page._handle_custom_msg({"generation": explorer.page.generation, **content}, [])
    settle(explorer)


@pytest.fixture
def endless(explorer, monkeypatch):
    """LIME, chosen, that goes on until it is told otherwise."""
    told = SimpleNamespace(begun=Event(), enough=Event())

    def lime(request):
        """Never ready."""
        while not told.enough.is_set():
            request.progress(1, 2)
            told.begun.set()
            time.sleep(0.005)
        return Scores(torch.ones(request.mask.shape))

    monkeypatch.setitem(METHODS, "lime", replace(METHODS["lime"], function=lime))
    explorer.controls.methods["lime"].value = True
    yield told
    told.enough.set()
    explorer.explain()  # the one under way, or one more


def bars(explorer, column):
    html = BeautifulSoup(explorer.page.predictions, "html.parser")
    cell = html.select("tbody td")[column]
    return {b.select_one(".name").text: float(b.select_one(".p").text) for b in cell.select(".bar")}


def test_the_first_run_of_the_store_is_chosen_and_explained(explorer):
    explorer.controls.go.click()
    until(lambda: not explorer.controls.go.disabled)
    settle(explorer)
    page = explorer.page
    assert page.message == "" and page.progress == {} and explorer.controls.halt.disabled
    assert all([page.text, page.predictions, page.heatmaps, page.agreement, page.curves])
    assert list(explorer.readings[0].explained) == [
        "attention", "input_x_gradient", "integrated_gradients", "rollout",
    ]  # fmt: skip


def test_a_class_is_explained_on_all_models_and_an_unknown_one_is_refused(explorer):
    explorer.controls.names.value = str(tiny.directory("bert"))
    explorer.controls.target.value = "negative"
    explorer.explain()
    run, other = explorer.readings
    assert run.target == "negative" and other.target in other.model.classes
    assert {"negative", "positive"} <= set(explorer.controls.target.options)
    explorer.controls.target.value = "negativ"
    explorer.explain()
    assert explorer.page.message.startswith("unknown class 'negativ'; did you mean 'negative'?")


def test_scores_are_offered_as_files_until_another_text_is_opened(explorer, monkeypatch):
    explorer.explain()
    made = explorer.page.scores
    assert set(made) == {"scores.csv", "scores.json", "scores.tex"}
    explorer.controls.level.value = "token"
    settle(explorer)
    assert "[CLS]" in explorer.page.scores["scores.csv"] and "[CLS]" not in made["scores.csv"]
    explorer._open(explorer.readings, [])
    assert explorer.page.scores == {}


def test_a_corpus_is_looked_through_and_its_texts_are_opened(explorer):
    explorer.controls.corpus.value = ("movies", "local")
    settle(explorer)
    assert not explorer.controls.look.disabled
    explorer.controls.look.click()
    until(lambda: not explorer.controls.go.disabled)
    settle(explorer)
    assert explorer.page.message == ""
    page = BeautifulSoup(explorer.page.survey, "html.parser")
    rows = page.select(".texts tbody tr")
    assert len(rows) == 16 == len(explorer._surveyed)  # the test split
    values = [float(row["data-disagreement"]) for row in rows]
    assert values == sorted(values, reverse=True)
    number = int(rows[3].button["data-row"])
    click(explorer, row=number)
    until(lambda: explorer._explained.is_set())
    settle(explorer)
    assert explorer.readings[0].text == explorer._surveyed[number]
    assert explorer.readings[0].text.rationale is not None
    assert " | ".join(filter(None, explorer._surveyed[number].strings())) == rows[3].button.text


def test_an_example_stands_in_the_box_unless_a_text_is_given(here):
    assert erlib.explore().controls.first.value == EXAMPLE
    assert erlib.explore(text="dull").controls.first.value == "dull"


def test_clicking_a_word_predicts_without_it_and_clicking_again_brings_it_back(explorer):
    explorer.explain()
    whole = bars(explorer, 0)
    click(explorer, place="0:1")
    assert explorer.page.removed == ["0:1"]
    without = bars(explorer, 1)
    explorer.controls.first.value = "the film is and the plot"
    explorer.explain()
    assert bars(explorer, 0) == without != whole
    click(explorer, place="0:1")
    click(explorer, place="0:2")
    click(explorer, place="0:1")
    assert explorer.page.removed == ["0:2"]
    click(explorer, restore=True)
    assert explorer.page.removed == [] and bars(explorer, 1) == {}


def test_the_last_word_stays_and_the_page_says_why(explorer):
    explorer.controls.first.value = "great"
    explorer.explain()
    click(explorer, place="0:0")
    assert "last word" in explorer.page.message and explorer.page.removed == []


def test_mistakes_become_sentences(explorer, tmp_path):
    def said():
        explorer.explain()
        assert not explorer.controls.go.disabled
        return explorer.page.message

    explorer.controls.first.value = " "
    assert said().startswith("no text: type one")
    explorer.controls.first.value = SENTENCE
    explorer.controls.names.value = "minlim"
    assert said().startswith("unknown model 'minlim'; did you mean 'minilm'?")
    explorer.controls.names.value = f"{tmp_path},"
    assert str(tmp_path) in said()
    explorer.controls.runs.value, explorer.controls.names.value = (), ""
    assert said().startswith("no model: choose runs")
    explorer.controls.runs.index = (0,)
    for box in explorer.controls.methods.values():
        box.value = False
    assert said() == "no method: tick at least one"
    explorer.controls.methods["attention"].value = True
    assert said() == "" and explorer.page.heatmaps


def test_an_error_that_nobody_foresaw_is_still_a_sentence(explorer, monkeypatch):
    monkeypatch.setattr("erlib.explorer.controls.typed", lambda *boxes: 1 / 0)
    explorer.explain()
    assert explorer.page.message == "ZeroDivisionError: division by zero"


def test_stop_leaves_what_was_ready(explorer, endless):
    explorer.controls.go.click()
    assert endless.begun.wait(60) and not explorer.controls.halt.disabled
    explorer.controls.halt.click()
    until(lambda: not explorer.controls.go.disabled)
    settle(explorer)
    assert explorer.page.message.startswith("Stopped") and explorer.page.progress == {}
    assert (
        "…" in explorer.page.heatmaps and explorer.page.curves and explorer.controls.halt.disabled
    )
    assert list(explorer.readings[0].explained) == [
        "attention", "input_x_gradient", "integrated_gradients", "rollout",
    ]  # fmt: skip


def test_an_interrupt_of_the_kernel_stops_what_a_cell_waits_for(explorer, endless):
    def interrupt():
        endless.begun.wait(60)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    # as in a kernel; a test run that was started in the background ignores interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt).start()
        explorer.explain()
    finally:
        signal.signal(signal.SIGINT, before)
    assert explorer.page.message.startswith("Stopped") and explorer.page.progress == {}
    assert "…" in explorer.page.heatmaps and explorer.page.curves


def test_what_is_clicked_while_a_method_runs_is_done_and_disturbs_nothing(explorer, endless):
    def busy():
        doing = explorer.page.progress["doing"]
        return (
            doing.startswith("lime")
            and explorer.controls.go.disabled
            and not explorer.controls.halt.disabled
        )

    explorer.controls.go.click()
    assert endless.begun.wait(60)
    explorer.controls.level.value = "token"
    until(lambda: "[CLS]" in explorer.page.heatmaps)
    assert busy() and explorer.page.progress["done"] % 1 == 0.5
    explorer.controls.corpus.value = ("movies", "local")
    until(lambda: not explorer.controls.row.disabled)
    settle(explorer)
    assert busy()
    click(explorer, place="0:1")
    assert explorer.page.removed == ["0:1"] and busy()
    explorer.controls.go.click()
    settle(explorer)
    assert explorer.page.generation == 1 and busy()
    endless.enough.set()
    explorer.explain()
    assert explorer.page.message == "" and "lime" in explorer.readings[0].explained
    assert explorer.page.removed == ["0:1"] and explorer.page.generation == 1


def test_a_click_on_a_word_of_an_older_text_is_ignored(explorer):
    explorer.explain()
    explorer.controls.first.value = "dull"
    explorer.explain()
    click(explorer, place="0:6", generation=1)
    assert explorer.page.removed == [] and explorer.page.message == ""
    click(explorer, place="0:0", generation=2)
    assert "last word" in explorer.page.message


def test_one_thread_does_everything_and_shows_heat_maps_before_it_measures(explorer):
    seen = []
    explorer.page.observe(
        lambda change: seen.append((threading.current_thread().name, change["name"], change["new"]))
    )
    explorer.explain()
    explorer.controls.level.value = "token"
    click(explorer, place="0:1")
    assert {thread for thread, *_ in seen} == {"erlib explorer"}
    shown = [name for _, name, new in seen if new and name != "progress"]
    assert shown.index("predictions") < shown.index("heatmaps") < shown.index("agreement")
    assert shown.index("agreement") < shown.index("curves")
    first = next(i for i, (_, name, new) in enumerate(seen) if name == "heatmaps" and new)
    doing = [new["doing"] for _, name, new in seen[:first] if name == "progress" and new]
    assert not any(what.startswith("faithfulness") for what in doing)


def test_slow_methods_come_last_and_say_how_far_they_are(explorer):
    told = []
    explorer.page.observe(lambda change: told.append(change["new"]), "progress")
    for name in ("alti", "decompx", "decompx_classifier", "lime"):
        explorer.controls.methods[name].value = True
    explorer.explain()
    # Eight methods, and what the fast ones and each slow one are worth.
    steps = [p for p in told if p.get("total") == 8 + 1 + 4]
    doing = {p["done"]: p["doing"].partition(",")[0] for p in steps}
    assert [doing[done] for done in range(4, 13)] == [
        "faithfulness", "alti", "faithfulness", "decompx", "faithfulness",
        "decompx_classifier", "faithfulness", "lime", "faithfulness",
    ]  # fmt: skip
    assert doing[5.5] == "alti" and told[-1] == {}  # after one of two layers
    done = [p["done"] for p in steps]
    assert done == sorted(done) and explorer.readings[0].refused == {}


def test_an_empty_store_says_what_to_do(tmp_path):
    explorer = erlib.explore(store=str(tmp_path))
    assert "run_all.sh" in explorer.page.message and str(tmp_path) in explorer.page.message


def test_named_models_stand_beside_runs(here):
    folder = str(tiny.directory("bert"))
    explorer = erlib.explore(folder, text=SENTENCE)
    explorer.controls.runs.index = (0,)
    explorer.explain()
    labels = [reading.model.label for reading in explorer.readings]
    assert labels[0].startswith("Baseline · movies") and labels[1] == folder


def test_the_list_of_runs_is_filtered_by_words(explorer):
    explorer.controls.filter.value = "MOVIES baseline"
    assert len(explorer.controls.runs.options) == 1 and len(explorer.controls.runs.value) == 1
    explorer.controls.filter.value = "regex"
    assert (
        len(explorer.controls.runs.options) == 1 and len(explorer.controls.runs.value) == 1
    )  # chosen ones stay
    explorer.controls.runs.value = ()
    explorer.controls.filter.value = "regex seed"
    assert len(explorer.controls.runs.options) == 0 and explorer.controls.runs.value == ()
    explorer.controls.filter.value = ""
    assert len(explorer.controls.runs.options) == 1 and explorer.controls.runs.value == ()


def test_a_picked_text_fills_the_boxes_and_shows_its_rationale_until_it_is_edited(explorer):
    explorer.controls.corpus.value = ("movies", "local")
    settle(explorer)
    assert (
        explorer.controls.first.value == SENTENCE and explorer.controls.row.value is None
    )  # nothing is picked yet
    picked = explorer.controls.row.options[1][1]
    explorer.controls.row.index = 1
    assert explorer.controls.first.value == " ".join(picked.segments[0])
    explorer.explain()
    assert "human rationale" in explorer.page.text
    explorer.controls.first.value += " indeed"
    explorer.explain()
    assert "rationale" not in explorer.page.text


def test_a_corpus_that_cannot_be_had_says_so(explorer):
    told = []
    explorer.page.observe(lambda change: told.append(change["new"].get("doing")), "progress")
    explorer.controls.corpus.value = ("movies", "local")
    settle(explorer)
    assert len(explorer.controls.row.options) > 1 and not explorer.controls.row.disabled
    explorer.controls.corpus.value = ("sst", "local")
    settle(explorer)
    assert "sst" in explorer.page.message
    assert (
        explorer.controls.row.disabled and explorer.controls.row.options == ()
    )  # not the other corpus's texts
    assert told == ["loading movies", None, "loading sst", None]


def test_the_level_changes_what_is_shown_without_computing_again(explorer, monkeypatch):
    explorer.explain()
    assert "[CLS]" not in explorer.page.heatmaps
    monkeypatch.setattr("erlib.explorer.reading.attribute_encoded", None)
    explorer.controls.level.value = "token"
    settle(explorer)
    assert "[CLS]" in explorer.page.heatmaps and explorer.page.message == ""


def test_every_control_has_a_label(explorer):
    names = ["filter", "runs", "names", "corpus", "row", "first", "second", "level", "go", "halt"]
    fields = [getattr(explorer.controls, name) for name in names]
    assert all(field.description for field in [*fields, *explorer.controls.methods.values()])
