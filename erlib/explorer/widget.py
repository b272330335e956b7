"""What can be chosen, typed and clicked in JupyterLab? `erlib.explore()`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from itertools import product
from typing import Any

import anywidget
import ipywidgets
import traitlets

from erlib.attributions import METHODS
from erlib.attributions.decompx import decompositions_remembered
from erlib.config import SOURCES
from erlib.data.loading import corpora_of
from erlib.explorer import page as html
from erlib.explorer.models import Model, open_model, trained_runs
from erlib.explorer.reading import Reading, is_slow, predict
from erlib.explorer.texts import Place, Text, offered, typed
from erlib.training.executors import open_store

DEFAULT_METHODS = ("attention", "rollout", "input_x_gradient", "integrated_gradients")
PREVIEW = 90  # characters of a text in the list to pick from


def _own(name: str) -> str:
    return (files("erlib.explorer") / name).read_text(encoding="utf-8")


class Page(anywidget.AnyWidget):
    """The results: sections of HTML made by erlib, in which words can be clicked."""

    _esm = _own("page.js")
    css = traitlets.Unicode(_own("page.css")).tag(sync=True)
    text = traitlets.Unicode().tag(sync=True)
    predictions = traitlets.Unicode().tag(sync=True)
    heatmaps = traitlets.Unicode().tag(sync=True)
    agreement = traitlets.Unicode().tag(sync=True)
    curves = traitlets.Unicode().tag(sync=True)
    removed = traitlets.List(traitlets.Unicode()).tag(sync=True)  # places of clicked words
    message = traitlets.Unicode().tag(sync=True)  # plain text
    progress = traitlets.Dict().tag(sync=True)  # done, total, doing; empty: nothing to wait for


class Explorer(ipywidgets.VBox):
    """Controls above, a `Page` of results below.

    `readings` holds what was computed last, one `Reading` per model, for use in other cells.
    """

    def __init__(self, models: Sequence[str], text: str, store: str | None) -> None:
        kept = open_store(store)
        self.readings: list[Reading] = []
        self._asked: list[str] = []  # the methods of the last explanation
        self._runs = trained_runs(kept)
        self._picked: Text | None = None
        wide = ipywidgets.Layout(width="auto")

        self.filter = ipywidgets.Text(
            placeholder="show only runs with these words: baseline movie seed 1", layout=wide
        )
        self.runs = ipywidgets.SelectMultiple(options=self._runs.items(), rows=6, layout=wide)
        self.names = ipywidgets.Text(
            value=", ".join(models),
            placeholder="other models, with commas: minilm, run:1a2b, a folder, a hub id",
            layout=wide,
        )
        corpora = [(f"{name} ({s})", (name, s)) for s in SOURCES for name in corpora_of(s)]
        self.corpus = ipywidgets.Dropdown(
            options=[("type a text, or pick one from …", ()), *corpora]
        )
        self.row = ipywidgets.Dropdown(options=[], disabled=True)
        self.first = ipywidgets.Textarea(value=text, placeholder="a text", rows=4)
        self.second = ipywidgets.Textarea(
            placeholder="second text of a pair; or the passage, if the text is a question", rows=4
        )
        self.methods = {
            name: ipywidgets.Checkbox(
                value=name in DEFAULT_METHODS,
                description=f"{name} (slow)" if is_slow(name) else name,
                tooltip=METHODS[name].summary,
                indent=False,
                layout=wide,
            )
            for name in sorted(METHODS)
        }
        self.level = ipywidgets.ToggleButtons(options=["word", "token"], tooltips=["", ""])
        self.go = ipywidgets.Button(description="Explain", button_style="primary")
        self.page = Page()
        super().__init__([self._controls(), self.page])

        if self._runs and not models:
            self.runs.index = (0,)
        elif not models:
            self.page.message = (
                f"No trained run in {kept.root} yet: ./run_all.sh trains some. "
                "Any other classifier can be named beside the list."
            )
        self.filter.observe(self._on_filter, "value")
        self.corpus.observe(self._on_corpus, "value")
        self.row.observe(self._on_row, "value")
        self.level.observe(self._on_level, "value")
        self.go.on_click(lambda _: self.explain())
        self.page.on_msg(self._on_page)

    def _controls(self) -> ipywidgets.Widget:
        side = ipywidgets.Layout(flex_flow="row wrap", grid_gap="0 1em", width="100%")
        for box in (self.corpus, self.row, self.first, self.second):
            box.layout = ipywidgets.Layout(flex="1 1 20em", width="auto", min_width="0")
        return ipywidgets.VBox(
            [
                ipywidgets.HTML("<b>Models</b>"),
                self.filter,
                self.runs,
                self.names,
                ipywidgets.HTML("<b>Text</b>"),
                ipywidgets.HBox([self.corpus, self.row], layout=side),
                ipywidgets.HBox([self.first, self.second], layout=side),
                ipywidgets.HTML("<b>Methods</b>"),
                ipywidgets.HBox([*self.methods.values()], layout=side),
                ipywidgets.HBox([self.go, self.level], layout=side),
            ]
        )

    # --- what the controls do ---------------------------------------------------------------------

    def explain(self) -> None:
        """Read the controls, compute, and show results as they are ready."""
        with self._reporting():
            text, models, methods = self._text(), self._models(), self._methods()
            self._progress(0, 1, "reading the text")
            self.readings = [Reading(model, text) for model in models]
            self.page.text = html.text_html(text)
            self.page.heatmaps = self.page.agreement = self.page.curves = ""
            self._remove(set())
            self._asked = methods
            cells = sorted(product(self.readings, methods), key=lambda cell: is_slow(cell[1]))
            with decompositions_remembered():
                for done, (reading, method) in enumerate(cells):
                    if is_slow(method):  # what is ready need not wait
                        self._show(everything=not is_slow(cells[done - 1][1]))
                    self._progress(done, len(cells) + 1, f"{method}, {reading.model.label}")
                    reading.explain(method)
            self._progress(len(cells), len(cells) + 1, "agreement and faithfulness")
            self._show(everything=True)

    def _show(self, *, everything: bool) -> None:
        """Heat maps of what is ready and, if everything is asked for, agreement and curves."""
        self.page.heatmaps = html.heatmaps_html(self.readings, self._asked, self.level.value)
        if everything:
            self.page.agreement = html.agreement_html(self.readings, self.level.value)
            self.page.curves = html.curves_html(self.readings)

    def _remove(self, removed: set[Place]) -> None:
        """Predict again without these words, and strike them out."""
        after = None
        if removed:
            left = self.readings[0].text.without(removed)
            after = [predict(reading.model, left) for reading in self.readings]
        self.page.predictions = html.predictions_html(self.readings, after, len(removed))
        self.page.removed = [f"{segment}:{word}" for segment, word in sorted(removed)]

    def _on_page(self, _: Any, content: dict[str, str], __: Any) -> None:
        """A word was clicked (`place`), or all are to come back (`restore`)."""
        with self._reporting():
            removed = {_place(name) for name in self.page.removed}
            self._remove(removed ^ {_place(content["place"])} if "place" in content else set())

    def _on_filter(self, _: Any) -> None:
        words, chosen = self.filter.value.lower().split(), self.runs.value
        matching = {k: v for k, v in self._runs.items() if all(w in k.lower() for w in words)}
        self.runs.options = matching.items()
        self.runs.value = [path for path in chosen if path in matching.values()]

    def _on_corpus(self, _: Any) -> None:
        with self._reporting():
            texts = offered(*self.corpus.value) if self.corpus.value else []
            self.row.options = [(_preview(text), text) for text in texts]
            self.row.disabled = not texts

    def _on_row(self, _: Any) -> None:
        self._picked = self.row.value
        if self._picked is not None:
            self.first.value, self.second.value = self._picked.strings()

    def _on_level(self, _: Any) -> None:
        if self.readings:
            with self._reporting():
                self._show(everything=False)
                self.page.agreement = html.agreement_html(self.readings, self.level.value)

    # --- what they say ----------------------------------------------------------------------------

    def _text(self) -> Text:
        boxes = (self.first.value, self.second.value)
        if self._picked is not None and self._picked.strings() == boxes:
            return self._picked  # with its rationale
        return typed(*boxes)

    def _models(self) -> list[Model]:
        names = [*self.runs.value, *(n.strip() for n in self.names.value.split(",") if n.strip())]
        if not names:
            raise ValueError("no model: choose runs from the list, or name a classifier below it")
        opened = []
        for done, name in enumerate(dict.fromkeys(names)):
            self._progress(done, len(names), f"loading {os.path.basename(name)}")
            opened.append(open_model(name))
        return opened

    def _methods(self) -> list[str]:
        chosen = [name for name, box in self.methods.items() if box.value]
        if not chosen:
            raise ValueError("no method: tick at least one")
        return chosen

    def _progress(self, done: int, total: int, doing: str) -> None:
        self.page.progress = {"done": done, "total": total, "doing": doing}

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """While open, the page is busy; an error becomes a message on it."""
        self.page.message, self.go.disabled = "", True
        try:
            yield
        except KeyboardInterrupt:
            self.page.message = "Stopped. What was ready is shown."
        except Exception as error:  # the one place where any error becomes a sentence
            known = isinstance(error, ValueError | FileNotFoundError)
            self.page.message = str(error) if known else f"{type(error).__name__}: {error}"
        finally:
            self.page.progress, self.go.disabled = {}, False


def _place(name: str) -> Place:
    segment, word = name.split(":")
    return int(segment), int(word)


def _preview(text: Text) -> str:
    line = " | ".join(filter(None, text.strings()))
    return line if len(line) <= PREVIEW else f"{line[:PREVIEW]}…"


def explore(*models: str, text: str = "", store: str | None = None) -> Explorer:
    """The explorer, for a cell of a JupyterLab notebook.

    models: classifiers to begin with, by any name that `load_classifier` knows; those of the store
        are in the list anyway.
    text: the text to begin with.
    store: folder of trained runs; None: `ERLIB_STORE`, or `store/` in the repository.
    """
    return Explorer(models, text, store)
