"""What is a paper's loss, on four texts that fit on a screen? And what do a few steps change?

The texts and the encoder are the packaged ones in every profile, so that the section costs the same
everywhere and can be followed without a corpus of one's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from markupsafe import Markup
from torch import Tensor

from erlib.attributions import attribute_encoded
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, Term
from erlib.data import select_rows
from erlib.data.encoding import Encoded
from erlib.data.loading import read_split
from erlib.losses import Step
from erlib.models import Classifier, load_classifier
from erlib.models.learned_attention import calibrate
from erlib.papers.grid import stage
from erlib.papers.holes import as_text, or_hole
from erlib.parameters import Settings
from erlib.reports.heatmap import heatmap
from erlib.reports.markup import Html
from erlib.training.evaluating import per_text
from erlib.training.loop import label_count
from erlib.training.stages import carry_out, listed_in, no_model

DATA = DataSpec("movie_snippets", "packaged", max_length=24)
TEXTS, SPLIT = 4, "dev"
STEPS, BATCH = 12, 4  # of the short training, and texts in each


@dataclass
class OneBatch:
    """Four texts as the packaged encoder sees them, under a new head.

    `model` says what is not MiniLM under the head "er"; `step` is what a training step sees.
    """

    settings: Settings
    model: ModelSpec = field(default_factory=lambda: ModelSpec("minilm", head="er"))

    @cached_property
    def rows(self) -> Dataset:
        """The four texts, with their labels and rationales; also where only results are read."""
        return select_rows(read_split(DATA.corpus, SPLIT, DATA.source), TEXTS)

    @cached_property
    def classifier(self) -> Classifier:
        """Not trained: the encoder's weights, and a head drawn with seed 0."""
        made = load_classifier(
            self.model.name,
            num_labels=label_count(self.rows, self.model),
            head=self.model.head,
            specials=self.model.specials,
            layers=self.model.layers,
            explainer=self.model.explainer,
            seed=0,
        )
        made.model.eval()
        return made

    @cached_property
    def texts(self) -> list[Encoded]:
        """The four, encoded."""
        return self.classifier.encode(self.rows, max_length=DATA.max_length)

    @cached_property
    def step(self) -> Step:
        """One step of training on the four."""
        batch = self.classifier.batch(self.texts)
        calibrate(self.classifier, batch.inputs)  # of learned attention
        return Step(self.classifier, batch)

    def table(self, columns: Mapping[str, Tensor | np.ndarray], text: int = 0) -> pd.DataFrame:
        """Quantities by token, [batch, token] each, of one text: a row per token."""
        ids = self.texts[text].input_ids
        tokens = self.classifier.tokenizer.convert_ids_to_tokens(ids)
        rows = {
            name: np.asarray(torch.as_tensor(values).detach())[text, : len(ids)]
            for name, values in columns.items()
        }
        return pd.DataFrame(rows, index=pd.Index(tokens, name="token")).round(3)

    def numbers(self, **named: Tensor | float) -> pd.DataFrame:
        """Quantities of the whole batch, by name."""
        values = [float(torch.as_tensor(value).detach()) for value in named.values()]
        return pd.DataFrame({"quantity": list(named), "value": values}).round(4)

    @or_hole(as_text)
    def before_and_after(
        self, objective: Sequence[Term], method: str, *, variant: str | None = None, **options: Any
    ) -> Html:
        """Heat maps of the gold class: by the untrained model, and after twelve steps of this
        objective on other texts, which are taken from the store once they are there.

        `options` are the optimiser's.
        """
        data = DataSpec(DATA.corpus, DATA.source, DATA.max_length, STEPS * BATCH, TEXTS)
        optimiser = OptimiserSpec(**{"lr": 1e-4, "epochs": 1, "batch_size": BATCH, **options})
        run = RunSpec(data, self.model, tuple(objective), optimiser)
        after = EvalSpec(run, DATA, SPLIT, "attributions", TEXTS, method, variant, target="gold")
        stages = [stage("run", [run], asked=listed_in([after]), keeps=no_model),
                  stage("scores", [after])]  # fmt: skip
        carry_out(stages, **self.settings.where)
        table = per_text(after, store=self.settings.store, device=self.settings.device)
        before = attribute_encoded(
            self.step.classifier, self.texts, method, variant=variant, target="gold", level="token"
        )
        parts, rationales = [], [text.rationale for text in self.texts]
        for name, scores in (
            ("before", [a.scores for a in before]),
            (f"after {STEPS} steps", [np.asarray(s) for s in table["scores"]]),
        ):
            shown = [  # −∞, which is ranked last, has no colour
                replace(a, scores=np.where(np.isfinite(s), s, np.nan))
                for a, s in zip(before, scores, strict=True)
            ]
            drawn = heatmap(shown, rationales=rationales)
            parts.append(Markup("<h4>{}</h4>{}").format(name.capitalize(), drawn))
        return Html(Markup("").join(parts))
