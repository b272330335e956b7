"""How are the results of the grid read? One object that tables, figures and claims ask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.task import f1_macro
from erlib.models import Classifier, load_classifier
from erlib.papers.er_lens.sets import YELP_50, TestSet, annotated, test_sets
from erlib.papers.er_lens.stages import (
    RANDOM,
    erasure_spec,
    plausibility_spec,
    prediction_spec,
    techniques_on,
    trained,
)
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    Bounds,
    bounds_of,
)
from erlib.papers.trained import deciding, untrained_models
from erlib.parameters import Settings
from erlib.training.executors import default_device, open_store, per_text
from erlib.training.identity import run_hash
from erlib.training.stages import Results

MEASURES = {
    "auc": "auc_x100",
    "average_precision": "average_precision",
    "recall_at_k": "recall_at_k",
}


@dataclass(frozen=True)
class Study:
    """A finished grid. A system's runs are told apart by their `place`, the seed that was wanted,
    so that a lost run's replacement is compared with what the lost one would have been."""

    settings: Settings
    results: Results

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Every finished run of the ten systems (see `trained`)."""
        return trained(self.results)

    @cached_property
    def sets(self) -> list[TestSet]:
        """All sets of Table 2, and Yelp-50 where there is one."""
        return test_sets(self.settings)

    @cached_property
    def annotated(self) -> list[TestSet]:
        """The sets with rationales."""
        return annotated(self.settings)

    def set_for(self, plausibility: str) -> TestSet | None:
        """The annotated set in the place of the paper's, if there is one."""
        return next((t for t in self.annotated if t.plausibility == plausibility), None)

    @property
    def shown(self) -> TestSet:
        """The set of Figure 3: short reviews from another domain, or what stands for them."""
        return self.set_for(YELP_50) or self.annotated[-1]

    def places(self, system: str) -> list[int]:
        """Of which seeds there is a finished run."""
        return sorted(self.runs.loc[self.runs["system"] == system, "place"])

    @cached_property
    def untrained(self) -> pd.DataFrame:
        """The runs of classifiers that are not above the majority class on dev."""
        runs = self.runs[self.runs["system"].isin(CLASSIFIERS)]
        weak = untrained_models(runs)
        return runs[[spec in weak for spec in runs["spec"]]]

    def deciding(self, *systems: str) -> list[int]:
        """The seeds of which all these systems have a run that decides (see `trained.deciding`)."""
        both = sorted(set.intersection(*(set(self.places(s)) for s in systems)))
        weak = set(self.untrained.loc[self.untrained["system"].isin(systems), "place"])
        return deciding({place: place not in weak for place in both})

    def spec(self, system: str, place: int) -> RunSpec:
        """The run of a system at a place."""
        return self._specs[system, place]

    @cached_property
    def _specs(self) -> dict[tuple[str, int], RunSpec]:
        runs = self.runs
        return dict(zip(zip(runs["system"], runs["place"], strict=True), runs["spec"], strict=True))

    def classifier(
        self, system: str, place: int, quirks: tuple[str, ...] | None = None
    ) -> Classifier:
        """The trained model of a run, as it was or with other quirks."""
        store = open_store(self.settings.store)
        path = store.root / "runs" / run_hash(self.spec(system, place))
        device = self.settings.device or default_device()
        return load_classifier(str(path), quirks=quirks).to(device)

    def bounds(self, guide: str) -> Bounds:
        """The bounds that the constrained runs of a technique were trained with."""
        return bounds_of(self.results["explanation_only"], guide)

    def predictions(self, system: str, place: int, test: TestSet) -> pd.DataFrame:
        """What a run answered, text by text."""
        return self._table(prediction_spec(self.settings, self.spec(system, place), test))

    def f1(self, system: str, place: int, test: TestSet) -> float:
        """F1-macro x 100 of a run on a set."""
        table = self.predictions(system, place, test)
        return 100 * f1_macro(table["label"], table["predicted"])

    def has(self, system: str, place: int, test: TestSet, technique: str) -> bool:
        """Was the technique taken of this run on this set?"""
        return technique in techniques_on(self.settings, test, system, place)

    def plausibility(self, system: str, place: int, test: TestSet, technique: str) -> pd.DataFrame:
        """AUC, average precision and recall@k of a technique, text by text."""
        spec = self.spec(system, place)
        return self._table(plausibility_spec(self.settings, spec, test, technique))

    def attributions(
        self, system: str, place: int, test: TestSet, technique: str
    ) -> list[np.ndarray]:
        """|scores| of every token, text by text: what plausibility and Kendall's τ look at."""
        spec = plausibility_spec(self.settings, self.spec(system, place), test, technique)
        table = self._table(replace(spec, kind="attributions"))
        return [np.abs(scores) for scores in table["scores"]]

    def erasure(self, place: int, technique: str) -> pd.DataFrame:
        """Sufficiency and comprehensiveness of a Baseline, one row per text and kept share."""
        return self._table(erasure_spec(self.settings, self.spec("Baseline", place), technique))

    @cached_property
    def f1_scores(self) -> pd.DataFrame:
        """One row per run and set: system, place, set, value."""
        rows = [
            {"system": s, "place": p, "set": t, "value": self.f1(s, p, t)}
            for s in CLASSIFIERS
            for p in self.places(s)
            for t in self.sets
        ]
        return pd.DataFrame(rows)

    @cached_property
    def plausibility_scores(self) -> pd.DataFrame:
        """One row per run, annotated set, technique and measure: …, texts, value (x 100)."""
        rows: list[dict[str, Any]] = []
        for system, place, test, technique in self.attributed:
            table = self.plausibility(system, place, test, technique)
            for name, label in MEASURES.items():
                rows.append(
                    {
                        "system": system,
                        "place": place,
                        "set": test,
                        "technique": technique,
                        "measure": label,
                        "texts": int(table["auc"].notna().sum()),
                        "value": 100 * table[name].mean(),
                    }
                )
        return pd.DataFrame(rows)

    @cached_property
    def attributed(self) -> list[tuple[str, int, TestSet, str]]:
        """Every (system, place, annotated set, technique) that was measured."""
        return [
            (s, p, t, x)
            for s in SYSTEMS
            for p in self.places(s)
            for t in self.annotated
            for x in TECHNIQUES
            if self.has(s, p, t, x)
        ]

    def layer_scores(self, test: TestSet) -> pd.DataFrame:
        """AUC x 100 of every layer on a set: system, place, technique, layer, value."""
        rows = []
        for system, place, where, technique in self.attributed:
            if where != test:
                continue
            column = self.plausibility(system, place, test, technique)["layer_auc"]
            if column.notna().all():
                layers = np.nanmean(np.stack(column.to_numpy()), axis=0)
                rows += [
                    {
                        "system": system,
                        "place": place,
                        "technique": technique,
                        "layer": layer,
                        "value": 100 * value,
                    }
                    for layer, value in enumerate(layers)
                ]
        return pd.DataFrame(rows)

    @cached_property
    def erasure_curves(self) -> pd.DataFrame:
        """Of the Baselines: place, technique, kept (%), and the means of both measures."""
        rows = []
        for place in self.places("Baseline"):
            for technique in (*TECHNIQUES, RANDOM):
                table = self.erasure(place, technique)
                means = table.groupby("bin")[list(ERASURE)].mean().reset_index()
                rows.append(means.assign(place=place, technique=technique))
        return pd.concat(rows, ignore_index=True).rename(columns={"bin": "kept", **ERASURE})

    @cached_property
    def sweep(self) -> pd.DataFrame:
        """Of the λ sweeps: guide, weight, seed, and the dev losses `task` and `explanation`."""
        runs = self.results["sweep"]
        names = {TECHNIQUES[guide]: guide for guide in GUIDES}
        terms = [spec.objective[1] for spec in runs["spec"]]
        return pd.DataFrame(
            {
                "guide": [names[dict(t.options)["guide"]] for t in terms],
                "weight": [t.weight for t in terms],
                "seed": runs["seed"],
                "task": runs["dev_task"],
                "explanation": runs["dev_explanation"],
            }
        )

    def _table(self, spec: EvalSpec) -> pd.DataFrame:
        return _read(spec, self.settings.store)


ERASURE = {
    "normalised_sufficiency": "sufficiency",
    "normalised_comprehensiveness": "comprehensiveness",
}


@lru_cache(maxsize=4096)
def _read(spec: EvalSpec, store: str | None) -> pd.DataFrame:
    return per_text(spec, store=store)
