"""Which of our numbers go into which claim of the paper?

What a claim says, what the paper measured and by which rule it is decided are data
(`erlib/claims/agreement.toml`); here are the measurements of its parts. Claims rest on the core
tasks of a profile, which have every seed; claims that name the sets are measured on all four.
Nothing is concluded from a model that has not learnt its task: its seed is left out, and a
cell without any trained model keeps its first seed, which decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.config import RunSpec
from erlib.metrics.task import f1_binary_difference
from erlib.metrics.verdicts import Decision, combine
from erlib.papers.agreement.correlations import (
    ATTRIBUTES,
    STATISTICS,
    bent_texts,
    mean_correlation,
)
from erlib.papers.agreement.groups import grouped
from erlib.papers.agreement.study import SAME, Study
from erlib.papers.agreement.systems import MODELS, last_epoch
from erlib.papers.trained import deciding

Measured = dict[str, dict[str, Any]]
CORE_CLAIMS = ("AG-C2", "AG-C3", "AG-C4", "AG-C7")
LOW = 0.54  # AG-C3: the smallest r of the pair that the paper sets apart
EXCEPTION = "G-SHAP vs Int-Grad"
DROPOUT = "with dropout"


def measure_claims(study: Study) -> dict[str, Measured]:
    """Claim id → part → what its rule takes, for the claims that this study can speak to."""
    this = _Parts(study)
    measured = {
        "AG-C1": this.pearson_over_kendall(),
        "AG-C2": this.jwa_pairs(),
        "AG-C3": this.low_agreement(),
        "AG-C4": {
            f"{model} {paper}": this.raised(model, paper, "Tying", "pearson")
            for model in MODELS
            for paper in study.core(model)
        },
        "AG-C5": {
            f"{model} {task.paper}": this.raised(model, task.paper, "Conicity", "pearson")
            for model in MODELS
            for task in study.tasks
        },
        "AG-C6": {
            f"{variant} {model} {task.paper}": this.raised(model, task.paper, variant, "kendall")
            for variant in ("Tying", "Conicity")
            for model in MODELS
            for task in study.tasks
        },
        "AG-C7": this.f1_cost(),
        "AG-C8": this.ambiguous_over_easy(),
        "AG-C9": this.raised_in_groups(),
        "AG-C10": this.curvature("Base"),
        "AG-C11": this.curvature("Tying"),
        "AG-C12": this.dynamics(),
        "AG-C13": this.over_epochs(),
    }
    found = {
        claim: {name: part for name, part in parts.items() if len(part["differences"])}
        for claim, parts in measured.items()
    }
    return {claim: parts for claim, parts in found.items() if parts}


def claim_note(study: Study, claim: str, decision: Decision) -> str:
    """On which sets a verdict rests where not all have every seed; of AG-C3 the other verdict."""
    notes = []
    if any(len(study.core(model)) < len(study.tasks) for model in MODELS):
        corpora = {task.paper: task.corpus for task in study.tasks}
        sets = [
            f"{model} on {', '.join(f'{corpora[p]} for {p}' for p in study.core(model))}"
            for model in MODELS
        ]
        notes.append(f"Sets with all seeds: {'; '.join(sets)}.")
    if claim == "AG-C3":
        noisy = {n: d for n, d in decision.parts.items() if n.startswith(DROPOUT)}
        found = combine(noisy)
        notes.append(f"With dropout on, as in the paper's code: {found.verdict}; {found.reason}.")
    return " ".join(notes)


@dataclass(frozen=True)
class _Parts:
    """What claims compare between the runs of a study."""

    study: Study

    def runs(self, model: str, paper: str, *variants: str) -> list[tuple[RunSpec, ...]]:
        """The runs of these variants by seed, of seeds that decide (see `trained.deciding`)."""
        every = self.study.paired(model, paper, *variants)
        return deciding({specs: all(self.study.trained[s] for s in specs) for specs in every})

    def pairs(self, spec: RunSpec, metric: str) -> pd.DataFrame:
        """[text, pair] in the last epoch."""
        return self.study.by_text(spec).pivot(index="id", columns="pair", values=metric)

    def pearson_over_kendall(self) -> Measured:
        """AG-C1: every pair of methods that is not one and the same."""
        parts: Measured = {}
        for model in MODELS:
            for paper in self.study.core(model):
                gaps = [
                    self.pairs(base, "pearson") - self.pairs(base, "kendall")
                    for (base,) in self.runs(model, paper, "Base")
                ]
                for pair in gaps[0].columns.drop(SAME) if gaps else ():
                    parts[f"cell {model} {paper} {pair}"] = _paired([g[pair] for g in gaps])
        return parts

    def jwa_pairs(self) -> Measured:
        """AG-C2."""
        parts: Measured = {}
        for paper in self.study.core("JWA"):
            tables = [self.pairs(base, "pearson") for (base,) in self.runs("JWA", paper, "Base")]
            if not tables:  # they failed
                continue
            parts[f"DeepLIFT = D-SHAP {paper}"] = _paired([1 - t[SAME] for t in tables])
            others = [t.drop(columns=[SAME, EXCEPTION]) for t in tables]
            rival = pd.concat(others).mean().idxmax()  # the next best pair, over all seeds
            parts[f"G-SHAP vs Int-Grad above the rest {paper}"] = _paired(
                [t[EXCEPTION] - t[rival] for t in tables]
            )
        return parts

    def low_agreement(self) -> Measured:
        """AG-C3: without dropout in the last epoch, of pairs that are not one and the same; with
        dropout, of the kept model."""
        parts: Measured = {}
        for paper in self.study.core("DBERT"):
            runs = [base for (base,) in self.runs("DBERT", paper, "Base")]
            noisy = [
                self.study.with_dropout(spec).pivot(index="id", columns="pair", values="pearson")
                for spec in runs
            ]
            plain = [self.pairs(spec, "pearson").drop(columns=SAME) for spec in runs]
            for name, tables in (("without dropout", plain), (DROPOUT, noisy)):
                for pair in tables[0].columns.drop(EXCEPTION) if tables else ():
                    parts[f"{name} {paper} {pair}"] = _paired([t[pair] - LOW for t in tables])
        return parts

    def raised(self, model: str, paper: str, variant: str, metric: str) -> dict[str, Any]:
        """Variant minus Base, per text, mean over pairs, last epoch (AG-C4 to AG-C6)."""
        return _paired(
            [
                self.study.text_means(treated)[metric] - self.study.text_means(base)[metric]
                for base, treated in self.runs(model, paper, "Base", variant)
            ]
        )

    def f1_cost(self) -> Measured:
        """AG-C7: variant minus Base on test texts, each in its kept epoch."""
        parts: Measured = {}
        for model in MODELS:
            for paper in self.study.core(model):
                for variant in ("Conicity", "Tying"):
                    rows = [
                        self._answers(base, treated)
                        for base, treated in self.runs(model, paper, "Base", variant)
                    ]
                    parts[f"F1 {model} {paper} {variant}"] = {
                        "differences": [f1_binary_difference(r) for r in rows],
                        "per_text": rows,
                        "statistic": f1_binary_difference,
                    }
        return parts

    def _answers(self, base: RunSpec, treated: RunSpec) -> NDArray[np.float64]:
        """[text, (gold, Base's, the variant's)]"""
        tables = [
            table[table["epoch"] == self.study.kept[spec]].set_index("id")
            for spec in (base, treated)
            for table in [self.study.answers(spec)]
        ]
        treated_answers = tables[1]["predicted"].rename("treated")
        both = tables[0][["label", "predicted"]].join(treated_answers)
        return both.to_numpy(dtype=float)

    def _group_gaps(self, over: str, high: str, low: str) -> pd.Series:
        """high − low of the level `over`, in the seeds that have both; on core sets if one has."""
        explained = grouped(self.study, "DBERT").dropna(subset=["pearson"])
        texts = pd.concat([_of_trained(of_set) for _, of_set in explained.groupby("set")])
        means = texts.groupby(["set", "variant", "group", "seed"])["pearson"].mean()
        wide = means.unstack(over).reindex(columns=[high, low])
        gaps = (wide[high] - wide[low]).dropna()
        on_core = gaps[gaps.index.get_level_values("set").isin(self.study.core("DBERT"))]
        return on_core if len(on_core) else gaps

    def ambiguous_over_easy(self) -> Measured:
        """AG-C8."""
        gaps = self._group_gaps("group", "Amb", "Easy")
        return {
            f"{variant} {paper}": {"differences": cell.tolist()}
            for (paper, variant), cell in gaps.groupby(["set", "variant"])
        }

    def raised_in_groups(self) -> Measured:
        """AG-C9: means of each model's own groups."""
        gaps = self._group_gaps("variant", "Tying", "Base")
        return {
            f"group {paper} {group}": {"differences": cell.tolist()}
            for (paper, group), cell in gaps.groupby(["set", "group"])
        }

    def curvature(self, variant: str) -> Measured:
        """AG-C10, AG-C11: each seed's correlation over texts, mean over the core sets."""
        texts = bent_texts(self.study, "DBERT")
        core = self.study.core("DBERT")
        texts = _of_trained(texts[(texts["variant"] == variant) & texts["set"].isin(core)])
        texts = texts.assign(where=texts["set"].map(core.index)).sort_values(["where", "id"])
        parts: Measured = {}
        for statistic in ("Grad norm", "Min dist"):
            for attribute in ATTRIBUTES:
                columns = [STATISTICS[statistic], attribute, "where"]
                rows = [seed[columns].to_numpy(float) for _, seed in texts.groupby("seed")]
                found = [mean_correlation(r) for r in rows]
                if np.isfinite(found).all():  # a model that never changes its mind has none
                    parts[f"{statistic} {attribute}"] = {
                        "differences": found,
                        "per_text": rows,
                        "statistic": mean_correlation,
                    }
        return parts

    def dynamics(self) -> Measured:
        """AG-C12: Tying minus Base, per text."""
        parts: Measured = {}
        for paper in self.study.core("DBERT"):
            maps = [
                (self.study.map_of(base), self.study.map_of(tying))
                for base, tying in self.runs("DBERT", paper, "Base", "Tying")
            ]
            for attribute in ("confidence", "variability"):
                parts[f"{attribute} {paper}"] = _paired(
                    [tying[attribute] - base[attribute] for base, tying in maps]
                )
        return parts

    def over_epochs(self) -> Measured:
        """AG-C13: Tying minus Base in r, in each epoch and over all."""
        parts: Measured = {}
        for model in MODELS:
            for paper in self.study.core(model):
                seeds = [
                    pd.concat([self._gain(base, tying, e) for e in epochs], axis=1, keys=epochs)
                    for base, tying in self.runs(model, paper, "Base", "Tying")
                    for epochs in [range(1, last_epoch(base) + 1)]
                ]
                parts[f"level {model} {paper}"] = _paired([gain.mean(axis=1) for gain in seeds])
                for epoch in seeds[0].columns if seeds else ():
                    parts[f"epoch {epoch} {model} {paper}"] = _paired([g[epoch] for g in seeds])
        return parts

    def _gain(self, base: RunSpec, tying: RunSpec, epoch: int) -> pd.Series:
        r = [self.study.text_means(spec, epoch)["pearson"] for spec in (base, tying)]
        return r[1] - r[0]


def _paired(per_seed: list[pd.Series]) -> dict[str, Any]:
    """What PAIR and NIL take: each seed's mean, and the texts behind it in one order."""
    rows = [values.reindex(per_seed[0].index).to_numpy(dtype=float) for values in per_seed]
    return {"differences": [float(np.nanmean(r)) for r in rows], "per_text": rows}


def _of_trained(texts: pd.DataFrame) -> pd.DataFrame:
    """The texts of seeds whose models are all trained, or of the first seed if there is none."""
    trained = texts.groupby("seed")["trained"].transform("all")
    return texts[trained] if trained.any() else texts[texts["seed"] == texts["seed"].min()]
