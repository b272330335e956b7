"""What happens in JupyterLab when somebody asks for it? `erlib.explore()`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from itertools import count, product
from threading import Event, Lock
from typing import Any

import anywidget
import ipywidgets
import traitlets

from erlib.attributions.decompx import decompositions_remembered
from erlib.errors import unknown
from erlib.explorer import page as html
from erlib.explorer.controls import Controls
from erlib.explorer.models import Model, open_model, trained_runs
from erlib.explorer.reading import Reading, is_slow, predict
from erlib.explorer.survey import MOST_TEXTS, survey
from erlib.explorer.texts import Place, Text, offered
from erlib.explorer.worker import Stopped, Worker
from erlib.training.store import open_store


def _own(name: str) -> str:
    return (files("erlib.explorer") / name).read_text(encoding="utf-8")


class Page(anywidget.AnyWidget):
    """The results: sections of HTML made by erlib, in which words can be clicked."""

    _esm = _own("page.js")
    css = traitlets.Unicode(_own("page.css")).tag(sync=True)
    generation = traitlets.Int().tag(sync=True)  # counts texts; a click says which it was made on
    text = traitlets.Unicode().tag(sync=True)
    predictions = traitlets.Unicode().tag(sync=True)
    heatmaps = traitlets.Unicode().tag(sync=True)
    agreement = traitlets.Unicode().tag(sync=True)
    curves = traitlets.Unicode().tag(sync=True)
    survey = traitlets.Unicode().tag(sync=True)
    scores = traitlets.Dict().tag(sync=True)  # name of a file → its content, of what is shown
    removed = traitlets.List(traitlets.Unicode()).tag(sync=True)  # places of clicked words
    message = traitlets.Unicode().tag(sync=True)  # plain text
    progress = traitlets.Dict().tag(sync=True)  # done, total, doing; empty: nothing to wait for


class Explorer(ipywidgets.VBox):
    """Controls above, a `Page` of results below.

    `readings` holds what was computed last, one `Reading` per model, for use in other cells. Only
    the worker's thread changes it or the page, or uses a model; callbacks leave jobs to it.
    """

    def __init__(self, models: Sequence[str], text: str, store: str | None) -> None:
        kept = open_store(store)
        runs = trained_runs(kept)
        self.readings: list[Reading] = []
        self._surveyed: Sequence[Text] = ()  # the texts of the corpus that was looked through
        self._asked: list[str] = []  # the methods of the last explanation
        self._worker = Worker()
        self._starting = Lock()  # held while it is found out whether an explanation is under way
        self._explained = Event()  # not set: one is
        self._explained.set()
        self._stop = Event()
        self.controls = Controls(runs, models, text)
        self.page = Page()
        super().__init__([self.controls, self.page])

        if not runs and not models:
            self.page.message = (
                f"No trained run in {kept.root} yet: ./run_all.sh trains some. "
                "Any other classifier can be named beside the list."
            )
        self.controls.corpus.observe(lambda _: self._do(self._list_texts), "value")
        self.controls.level.observe(lambda _: self._do(self._show), "value")
        self.controls.go.on_click(lambda _: self._begin(self._explain))
        self.controls.look.on_click(lambda _: self._begin(self._look))
        self.controls.halt.on_click(lambda _: self._stop.set())
        self.page.on_msg(lambda _, content, __: self._do(partial(self._click, content)))

    # --- what is asked for, in any thread ---------------------------------------------------------

    def explain(self) -> None:
        """Do what the button does, and return when it is done.

        An interrupt of the kernel stops it, as Stop does. While an explanation is under way no
        other begins: this waits for it.
        """
        done = self._begin(self._explain)
        try:
            done.wait()
        except KeyboardInterrupt:
            self._stop.set()
            done.wait()

    def _begin(self, job: Callable[[], None]) -> Event:
        """Have the worker explain, or look through a corpus, unless it does one already."""
        with self._starting:
            if self._explained.is_set():
                self._stop.clear()
                self.controls.allow(explain=False)
                self._explained = self._do(job)
            return self._explained

    def _do(self, job: Callable[[], None]) -> Event:
        """Have the worker do a job, whose errors become a message on the page."""
        return self._worker.do(partial(self._reported, job))

    # --- what the worker does ---------------------------------------------------------------------

    def _reported(self, job: Callable[[], None]) -> None:
        """Do a job; progress is then again that of the job in whose midst it was done, if any."""
        around = self.page.progress
        self.page.message = ""
        try:
            job()
        except Exception as error:  # the one place where any error becomes a sentence
            known = isinstance(error, ValueError | FileNotFoundError)
            self.page.message = str(error) if known else f"{type(error).__name__}: {error}"
        finally:
            self.page.progress = around

    def _tell(self, done: int, total: int, doing: str, part: int = 0, parts: int = 1) -> None:
        """Say how far an explanation is; do what was clicked meanwhile, and end it after Stop."""
        self.page.progress = {"done": done + part / parts, "total": total, "doing": doing}
        self._worker.let_others()
        if self._stop.is_set():
            raise Stopped

    def _explain(self) -> None:
        """Read the controls, compute, and show results as they are ready."""
        try:
            text, names = self.controls.chosen_text(), self.controls.chosen_models()
            methods = self.controls.chosen_methods()
            self._open(self._read(text, self._load(names)), methods)
            self._compute()
        except Stopped:
            self.page.message = "Stopped. What was ready is shown."
            self._show()
        finally:
            self.controls.allow(explain=True)

    def _look(self) -> None:
        """Read the held-out texts of the chosen corpus, and list them."""
        try:
            models = self._load(self.controls.chosen_models())
            methods = [m for m in self.controls.chosen_methods() if not is_slow(m)]
            corpus, source = self.controls.corpus.value
            texts = offered(corpus, source, MOST_TEXTS)
            found = survey(models, texts, methods, self._tell)
            self._surveyed = found.texts
            self.page.survey = html.survey_html(found)
        except Stopped:
            self.page.message = "Stopped."
        finally:
            self.controls.allow(explain=True)

    def _load(self, names: Sequence[str]) -> list[Model]:
        models = []
        for done, name in enumerate(names):
            self._tell(done, len(names), f"loading {os.path.basename(name)}")
            models.append(open_model(name))
        classes = [name for model in models for name in model.classes]
        self.controls.offer_classes(classes)
        wanted = self.controls.target.value.strip()
        if wanted and wanted not in classes:
            raise unknown("class", wanted, classes)
        return models

    def _read(self, text: Text, models: Sequence[Model]) -> list[Reading]:
        readings: list[Reading] = []
        for done, model in enumerate(models):
            self._tell(done, len(models), f"reading the text, {model.label}")
            first = readings[0].target if readings else ""
            readings.append(Reading(model, text, self.controls.target.value.strip() or first))
        return readings

    def _open(self, readings: list[Reading], methods: list[str]) -> None:
        """Turn to another text: its words and predictions, and nothing that was of the last."""
        with self.page.hold_sync():  # in one message, so that no word has another text's number
            self.readings, self._asked = readings, methods
            self.page.generation += 1
            self.page.text = html.text_html(readings[0].text)
            self.page.heatmaps = self.page.agreement = self.page.curves = ""
            self.page.scores = {}
            self._remove(set())

    def _compute(self) -> None:
        """Fast methods of all models, then slow ones one by one; what they say, then its worth."""
        fast = [method for method in self._asked if not is_slow(method)]
        slow = [method for method in self._asked if is_slow(method)]
        stages = [[(reading, fast) for reading in self.readings]] if fast else []
        stages += [[(reading, [method])] for reading, method in product(self.readings, slow)]
        total = sum(len(methods) + 1 for stage in stages for _, methods in stage)
        steps = count()
        with decompositions_remembered():
            for stage in stages:
                for reading, methods in stage:
                    for method in methods:
                        doing = f"{method}, {reading.model.label}"
                        tell = partial(self._tell, next(steps), total, doing)
                        tell(0, 1)
                        reading.explain(method, tell)
                self._show()
                for reading, methods in stage:
                    self._tell(next(steps), total, f"faithfulness, {reading.model.label}")
                    reading.measure(methods)
                self.page.curves = html.curves_html(self.readings)

    def _show(self) -> None:
        """Heat maps and agreement of what is ready, at the chosen level."""
        if self.readings:
            level = self.controls.level.value
            self.page.heatmaps = html.heatmaps_html(self.readings, self._asked, level)
            self.page.agreement = html.agreement_html(self.readings, level)
            self.page.scores = html.files(self.readings, level)

    def _click(self, content: Mapping[str, Any]) -> None:
        """A word was clicked (`place`), all are to come back (`restore`), or a text of the corpus
        is to be opened (`row`)."""
        if "row" in content:
            self.controls.pick(self._surveyed[content["row"]])
            self._begin(self._explain)
            return
        if content["generation"] != self.page.generation:
            return  # on a text that is gone
        removed = {_place(name) for name in self.page.removed}
        self._remove(removed ^ {_place(content["place"])} if "place" in content else set())

    def _remove(self, removed: set[Place]) -> None:
        """Predict again without these words, and strike them out."""
        after = None
        if removed:
            left = self.readings[0].text.without(removed)
            after = [predict(reading.model, left) for reading in self.readings]
        self.page.predictions = html.predictions_html(self.readings, after, len(removed))
        self.page.removed = [f"{segment}:{word}" for segment, word in sorted(removed)]

    def _list_texts(self) -> None:
        """Offer texts of the chosen corpus; none of another's, should it fail."""
        self.controls.offer([])
        if self.controls.corpus.value:
            corpus, source = self.controls.corpus.value
            self.page.progress = {"done": 0, "total": 1, "doing": f"loading {corpus}"}
            self.controls.offer(offered(corpus, source))


def _place(name: str) -> Place:
    segment, word = name.split(":")
    return int(segment), int(word)


def explore(*models: str, text: str = "", store: str | None = None) -> Explorer:
    """The explorer, for a cell of a JupyterLab notebook.

    models: classifiers to begin with, by any name that `load_classifier` knows; those of the store
        are in the list anyway.
    text: the text to begin with.
    store: folder of trained runs; None: `ERLIB_STORE`, or `store/` in the repository.
    """
    return Explorer(models, text, store)
