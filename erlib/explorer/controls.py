"""What can be chosen, typed and ticked, and what has been?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ipywidgets

from erlib.attributions import METHODS
from erlib.config import SOURCES
from erlib.data.loading import corpora_of
from erlib.explorer.models import UNTRAINED
from erlib.explorer.reading import is_slow, label
from erlib.explorer.texts import EXAMPLE, Text, typed

DEFAULT_METHODS = ("attention", "rollout", "input_x_gradient", "integrated_gradients")
PREVIEW = 90  # characters of a text in the list to pick from


class Controls(ipywidgets.VBox):
    """The fields and buttons above the results.

    runs: label → folder of each trained run; names: of other models to begin with; text: to begin
    with.
    """

    def __init__(self, runs: Mapping[str, str], names: Sequence[str], text: str) -> None:
        self._runs = runs
        self._picked: Text | None = None
        self.filter = _field(
            ipywidgets.Text, "Filter", placeholder="show only runs with these words: movie seed 1"
        )
        self.runs = _field(ipywidgets.SelectMultiple, "Runs", options=runs.items(), rows=6)
        self.names = _field(
            ipywidgets.Text,
            "Others",
            value=", ".join(names),
            placeholder="other models, with commas: minilm, run:1a2b, a folder, a hub id",
        )
        corpora = [(f"{name} ({s})", (name, s)) for s in SOURCES for name in corpora_of(s)]
        self.corpus = _field(
            ipywidgets.Dropdown,
            "Corpus",
            options=[("type a text, or pick one from …", ()), *corpora],
        )
        self.look = ipywidgets.Button(
            description="Look through it",
            tooltip="the corpus's held-out texts, sorted by disagreement, error or confidence",
            disabled=True,
        )
        self.row = _field(ipywidgets.Dropdown, "Its texts", options=[], disabled=True)
        self.first = _field(
            ipywidgets.Textarea, "Text", value=text or EXAMPLE, placeholder="a text", rows=4
        )
        self.second = _field(
            ipywidgets.Textarea,
            "Second text",
            placeholder="second text of a pair; or the passage, if the text is a question",
            rows=4,
        )
        self.methods = {
            name: ipywidgets.Checkbox(
                value=name in DEFAULT_METHODS,
                description=f"{label(name)} (slow)" if is_slow(name) else label(name),
                tooltip=METHODS[name].summary,
                indent=False,
                layout=ipywidgets.Layout(width="auto"),
            )
            for name in sorted(METHODS)
        }
        self.target = _field(
            ipywidgets.Combobox,
            "Class",
            placeholder="the class to explain; empty: the one that the first model predicts",
            ensure_option=False,
        )
        self.level = ipywidgets.ToggleButtons(
            options=["word", "token"],
            description="One score per",
            tooltips=["", ""],
            style={"description_width": "initial"},
        )
        self.go = ipywidgets.Button(description="Explain", button_style="primary")
        self.halt = ipywidgets.Button(
            description="Stop", tooltip="what is ready stays", disabled=True
        )
        super().__init__(self._laid_out())
        if runs and not names:
            trained = [i for i, name in enumerate(runs) if not name.endswith(UNTRAINED)]
            self.runs.index = (trained[0] if trained else 0,)
        self.filter.observe(self._on_filter, "value")
        self.row.observe(self._on_row, "value")

    def _laid_out(self) -> list[ipywidgets.Widget]:
        side = ipywidgets.Layout(flex_flow="row wrap", grid_gap="0 1em", width="100%")
        for box in (self.corpus, self.row, self.first, self.second, self.target):
            box.layout = ipywidgets.Layout(flex="1 1 20em", width="auto", min_width="0")
        return [
            ipywidgets.HTML("<b>Models</b>"),
            self.filter,
            self.runs,
            self.names,
            ipywidgets.HTML("<b>Text</b>"),
            ipywidgets.HBox([self.corpus, self.row, self.look], layout=side),
            ipywidgets.HBox([self.first, self.second], layout=side),
            ipywidgets.HTML("<b>Methods</b>"),
            ipywidgets.HBox([*self.methods.values()], layout=side),
            ipywidgets.HBox([self.target], layout=side),
            ipywidgets.HBox([self.go, self.halt, self.level], layout=side),
        ]

    def chosen_text(self) -> Text:
        """What stands in the boxes; with its rationale, if it was picked and not edited since."""
        boxes = (self.first.value, self.second.value)
        if self._picked is not None and self._picked.strings() == boxes:
            return self._picked
        return typed(*boxes)

    def chosen_models(self) -> list[str]:
        """Folders of runs, then names."""
        names = [*self.runs.value, *(n.strip() for n in self.names.value.split(",") if n.strip())]
        if not names:
            raise ValueError("no model: choose runs from the list, or name a classifier below it")
        return list(dict.fromkeys(names))

    def chosen_methods(self) -> list[str]:
        """The methods that are ticked."""
        chosen = [name for name, box in self.methods.items() if box.value]
        if not chosen:
            raise ValueError("no method: tick at least one")
        return chosen

    def offer_classes(self, names: Sequence[str]) -> None:
        """Suggest these classes to explain."""
        self.target.options = list(dict.fromkeys(names))

    def offer(self, texts: Sequence[Text]) -> None:
        """Texts to pick from. Nothing is picked at first: what was typed stays."""
        rows = [(_preview(text), text) for text in texts]
        self.row.options = [("pick a text …", None), *rows] if rows else []
        self.row.disabled = self.look.disabled = not rows

    def allow(self, *, explain: bool) -> None:
        """Which button can be pressed: Explain, or else Stop."""
        self.go.disabled, self.halt.disabled = not explain, explain
        self.look.disabled = not (explain and self.row.options)

    def _on_filter(self, _: Any) -> None:
        words, chosen = self.filter.value.lower().split(), self.runs.value
        self.runs.options = [
            (label, path)
            for label, path in self._runs.items()
            if path in chosen or all(word in label.lower() for word in words)
        ]
        self.runs.value = chosen

    def pick(self, text: Text) -> None:
        """Put a corpus's text into the boxes."""
        self._picked = text
        self.first.value, self.second.value = text.strings()

    def _on_row(self, _: Any) -> None:
        if self.row.value is not None:
            self.pick(self.row.value)


def _field(kind: type[ipywidgets.Widget], label: str, **options: Any) -> ipywidgets.Widget:
    """A control as wide as the page, with a label that is also read aloud."""
    return kind(
        description=label,
        layout=ipywidgets.Layout(width="auto"),
        style={"description_width": "6em"},
        **options,
    )


def _preview(text: Text) -> str:
    line = " | ".join(filter(None, text.strings()))
    return line if len(line) <= PREVIEW else f"{line[:PREVIEW]}…"
