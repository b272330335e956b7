"""How are the results of the grid read? One object that tables, figures and claims ask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

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
    SYSTEMS,
    TECHNIQUES,
    Bounds,
    bounds_of,
)
from erlib.papers.holes import failed
from erlib.papers.trained import deciding, untrained_models
from erlib.parameters import Settings
from erlib.provenance import default_device
from erlib.training.evaluating import per_text
from erlib.training.runs import trained_folder
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
        """The runs of classifiers that have not learnt the task."""
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
        store, device = self.settings.store, self.settings.device
        path = trained_folder(self.spec(system, place), store=store, device=device)
        return load_classifier(str(path), quirks=quirks).to(device or default_device())

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
        if technique not in techniques_on(self.settings, test, system, place):
            return False
        spec = self.spec(system, place)
        return plausibility_spec(self.settings, spec, test, technique) not in self.holes

    @cached_property
    def holes(self) -> set[EvalSpec]:
        """The evaluations that failed."""
        return failed(t for name, t in self.results.items() if name.endswith("measurements"))

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

    def erased(self, place: int, technique: str, variant: str | None = None) -> pd.DataFrame:
        """Sufficiency and comprehensiveness of a Baseline, one row per text and kept share."""
        spec = self.spec("Baseline", place)
        return self._table(erasure_spec(self.settings, spec, technique, variant))

    def erasure(self, place: int, technique: str, variant: str | None = None) -> pd.DataFrame:
        """As `erased`, with NaN for the texts that are left out: the same for every technique."""
        table = self.erased(place, technique, variant)
        out = table["id"].isin(self.left_out[place])
        return table.assign(undefined=out, **{c: table[c].mask(out) for c in ERASURE})

    @cached_property
    def left_out(self) -> dict[int, set[str]]:
        """Of each Baseline the texts that it is no surer of than of the empty input.

        How long that is depends on the technique, by the two specials: one that says so is enough.
        """
        tables = {
            place: pd.concat(self.erased(place, x) for x in (*TECHNIQUES, RANDOM))
            for place in self.places("Baseline")
        }
        return {place: set(t.loc[t["undefined"], "id"]) for place, t in tables.items()}

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
            layers = pd.DataFrame(self.layer_auc(system, place, test, technique)).mean()
            rows += [
                (system, place, technique, layer, 100 * value)
                for layer, value in layers.dropna().items()
            ]
        return pd.DataFrame(rows, columns=["system", "place", "technique", "layer", "value"])

    def layer_auc(
        self, system: str, place: int, test: TestSet, technique: str
    ) -> NDArray[np.float64]:
        """[text, layer], NaN where a text has no AUC; no column where a technique has no layers."""
        column = self.plausibility(system, place, test, technique)["layer_auc"]
        return np.array([[] if x is None else x for x in column], dtype=np.float64)

    @cached_property
    def erasure_curves(self) -> pd.DataFrame:
        """Of the Baselines: place, technique, kept (%), the means of both measures over the texts
        that are not left out, and how many those are (`texts`, `left_out`)."""
        rows = []
        for place in self.places("Baseline"):
            for technique in (*TECHNIQUES, RANDOM):
                table = self.erasure(place, technique)
                means = table.groupby("bin")[list(ERASURE)].mean().reset_index()
                out = len(self.left_out[place])
                counts = {"texts": table["id"].nunique() - out, "left_out": out}
                rows.append(means.assign(place=place, technique=technique, **counts))
        return pd.concat(rows, ignore_index=True).rename(columns={"bin": "kept", **ERASURE})

    @cached_property
    def sweep(self) -> pd.DataFrame:
        """Of the λ sweeps: guide, weight, seed, and the dev losses `task` and `explanation`."""
        rows = []
        for _, run in self.results["sweep"].iterrows():
            if run.get("status") == "failed":
                continue
            for t in run["spec"].objective[1:]:  # one guide, or at λ = 0 all that are watched
                options = dict(t.options)
                loss = run[f"dev_{options.get('logged', 'explanation')}"]
                rows.append((options["guide"], t.weight, run["seed"], run["dev_task"], loss))
        columns = ["guide", "weight", "seed", "task", "explanation"]
        names = {method: guide for guide, method in TECHNIQUES.items()}
        return pd.DataFrame(rows, columns=columns).replace({"guide": names})

    def _table(self, spec: EvalSpec) -> pd.DataFrame:
        return _read(spec, self.settings.store)


ERASURE = {
    "normalised_sufficiency": "sufficiency",
    "normalised_comprehensiveness": "comprehensiveness",
}


@lru_cache(maxsize=4096)
def _read(spec: EvalSpec, store: str | None) -> pd.DataFrame:
    return per_text(spec, store=store)
