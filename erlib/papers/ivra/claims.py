"""Which of our numbers go into which claim of the paper?

What a claim says, what the paper measured and by which rule it is decided are data
(`erlib/claims/ivra.toml`); here are the measurements of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from erlib.data import corpus_report
from erlib.metrics.directions import metric
from erlib.papers.holes import remark_of
from erlib.papers.ivra import measurements
from erlib.papers.ivra.costs import ratios
from erlib.papers.ivra.measurements import setting_name
from erlib.papers.ivra.study import METRICS, Measured, Study, chosen
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
    LAST,
    LEVELS,
    SMAT,
    SOFTMAX,
    SPARSEMAX,
    is_core,
    tasks,
)
from erlib.papers.ivra.tables import model_name
from erlib.papers.trained import deciding
from erlib.reports.claims import decidable

CORE_CLAIMS = ("IV-C1", "IV-C3", "IV-C4", "IV-C5", "IV-C10")  # the paper's central findings
GRADIENTS = {
    "Input x gradient": "Input X Gradients",
    "Integrated gradients": "Integrated Gradients",
    "LIME": "LIME",
}
BEST_SETTINGS = {"SIM": (3e-5, 0.75), "COMP": (3e-4, 0.5), "SUFF": (3e-4, 0.5),
                 "CONS": (1e-4, 0.25)}  # fmt: skip
MANY_TEXTS = 100_000  # from which on the paper finds CONS costly
POST_HOC = ("Input X Gradients", "Integrated Gradients", "LIME")
Parts = Mapping[str, Measured | None]


def measure_claims(
    study: Study, training: pd.DataFrame, explaining: pd.DataFrame
) -> dict[str, dict[str, Measured]]:
    """Claim id → part → what its rule takes, for the claims that this study can speak to.

    `training`, `explaining`: the times of Figures 9 and 10. Of a claim's parts those with three
    seeds or more are given, and all of them where none has as many.
    """
    measured: dict[str, Parts] = {
        "IV-C1": {
            **_compare(study, "over SMaT", "SIM", SPARSEMAX, SMAT),
            **_compare(study, "over attention", "SIM", SPARSEMAX, LAST),
        },
        "IV-C2": {
            name: part
            for label, row in GRADIENTS.items()
            for name, part in _compare(study, label, "SIM", row, LAST).items()
        },
        "IV-C3": _compare(study, "sparsemax over softmax", "SIM", SPARSEMAX, SOFTMAX),
        "IV-C4": {
            **_compare(study, "softmax over SMaT", "COMP", SOFTMAX, SMAT),
            **_compare(study, "softmax over sparsemax", "COMP", SOFTMAX, SPARSEMAX),
        },
        "IV-C5": {
            **_compare(study, "sparsemax under SMaT", "SUFF", SPARSEMAX, SMAT),
            **_compare(study, "sparsemax under softmax", "SUFF", SPARSEMAX, SOFTMAX),
        },
        "IV-C6": _compare(study, "softmax − SMaT", "SUFF", SOFTMAX, SMAT),
        "IV-C7": {
            **_compare(study, "softmax over LIME", "CONS", SOFTMAX, "LIME"),
            **_compare(study, "sparsemax over LIME", "CONS", SPARSEMAX, "LIME"),
            **_compare(study, "sparsemax − softmax", "CONS", SPARSEMAX, SOFTMAX),
        },
        "IV-C8": _gains(study),
        "IV-C9": _compatible(study),
        "IV-C10": _costs(study),
        "IV-C11": _levels(study),
        "IV-C12": _plausible(study),
        "IV-C13": _important(study),
        "IV-C14": _transfer(study),
        "IV-C15": _times(training, explaining),
        "IV-C16": _settings(study),
        "IV-C17": _other_bases(study),
    }
    kept = {
        claim: {name: part for name, part in parts.items() if part is not None}
        for claim, parts in measured.items()
    }
    return {claim: decidable(parts) for claim, parts in kept.items() if parts}


def _compare(
    study: Study, name: str, criterion: str, after: str, before: str, base: str = "ELECTRA"
) -> dict[str, Measured | None]:
    """One explanation method minus another by a criterion, on every task of a base model."""
    found = {}
    for task in tasks(study.settings, base):
        cells = chosen(study.by_explainer, base=base, task=task.paper, criterion=criterion)
        found[f"{name} {task.paper}"] = study.difference(
            chosen(cells, row=after), chosen(cells, row=before)
        )
    return found


def _gains(study: Study) -> dict[str, Measured | None]:
    """The gain of every criterion under every other set of criteria, seed by seed."""
    gains = study.subset_gains
    others = gains[gains["row"] != gains["criterion"]]
    parts = {
        f"cell {criterion} of {row}": _decided(cell.set_index("seed")["gain"], cell)
        for (criterion, row), cell in others.groupby(["criterion", "row"], sort=False)
    }
    return parts | {"mean of all cells": _decided(others.groupby("seed")["gain"].mean(), others)}


def _compatible(study: Study) -> dict[str, Measured | None]:
    """What CONS does to the other criteria, and whether SIM and SUFF bear each other best."""
    gains = study.subset_gains
    gains = gains[gains["row"] != gains["criterion"]]
    own = [c in row.split("+") for c, row in zip(gains["criterion"], gains["row"], strict=True)]
    inside = gains[own]
    others = inside[inside["criterion"] != "CONS"]
    with_cons = ["CONS" in row.split("+") for row in others["row"]]
    pairs = inside[inside["row"].str.count(r"\+") == 1]
    compatible = pairs["row"] == "SIM+SUFF"
    return {
        "sets with CONS − sets without": _by_seed(others, with_cons),
        "SIM with SUFF − other pairs": _by_seed(pairs, compatible.to_list()),
    }


def _by_seed(gains: pd.DataFrame, marked: Sequence[bool]) -> Measured | None:
    """Mean gain of the marked rows minus that of the others, seed by seed."""
    means = gains.assign(marked=marked).pivot_table(index="seed", columns="marked", values="gain")
    if set(means.columns) != {True, False}:
        return None
    return _decided(means[True] - means[False], gains)


def _decided(differences: pd.Series, measured: pd.DataFrame) -> Measured | None:
    """The differences by seed that have a number (explanations that are all alike have no
    consistency), of the seeds that decide: all models `measured` for them are trained."""
    found, weak = differences.dropna(), set(measured.loc[~measured["trained"], "seed"])
    kept = deciding({seed: seed not in weak for seed in found.index})
    return {"differences": found[kept].to_list()} if kept else None


def _costs(study: Study) -> dict[str, Measured | None]:
    """Accuracy of single criteria against the Baseline's, and against the cheaper criterion."""
    parts: dict[str, Measured | None] = {}
    for task in tasks(study.settings, "ELECTRA"):
        cells = chosen(study.accuracies, base="ELECTRA", task=task.paper)
        by_row = {row: chosen(cells, row=row) for row in CRITERIA}
        for criterion in CRITERIA:
            parts[f"{criterion} {task.paper}"] = study.cost(task.paper, criterion)
        for after, before in (("COMP", "SUFF"), ("CONS", "COMP")):
            parts[f"{after} below {before} {task.paper}"] = study.difference(
                by_row[after], by_row[before], every=True
            )
    return parts


def _levels(study: Study) -> dict[str, Measured | None]:
    """Loss of the last epoch, level against level, for every criterion."""
    curves = study.curves
    last = curves[curves["epoch"] == curves.groupby(["criterion", "level", "seed"])["epoch"]
                  .transform("max")]  # fmt: skip
    parts = {}
    for low, high in (*pairwise(LEVELS), ("all levels", LEVELS[0])):
        for criterion in CRITERIA:
            both = last[last["level"].isin((low, high)) & (last["criterion"] == criterion)]
            wide = both.pivot(index="seed", columns="level", values="loss")
            parts[f"{low} below {high} {criterion}"] = _decided(wide[low] - wide[high], both)
    return parts


def _plausible(study: Study) -> dict[str, Measured | None]:
    cells = measurements.plausible(study.settings)
    rows = {c: chosen(cells, row=f"IvRA Sparsemax ({c})") for c in CRITERIA}
    rows["SMaT"] = chosen(cells, row="SMaT")
    return {
        f"{after} over {before}": study.difference(rows[after], rows[before])
        for after, before in (("SIM", "SMaT"), ("SIM", "SUFF"), ("SUFF", "COMP"), ("COMP", "CONS"))
    }


def _important(study: Study) -> dict[str, Measured | None]:
    """Shares of important tokens, method against method on every task."""
    cells, parts = measurements.important_tokens(study.settings), {}
    compared = {
        "sparsemax below softmax": (SPARSEMAX, SOFTMAX),
        "sparsemax below LIME": (SPARSEMAX, "LIME"),
        "Integrated gradients above softmax": ("Integrated Gradients", SOFTMAX),
        "Integrated gradients above LIME": ("Integrated Gradients", "LIME"),
    }
    for task in tasks(study.settings, "ELECTRA"):
        for criterion in ("COMP", "SUFF"):
            found = chosen(cells, task=task.paper, criterion=criterion)
            for name, (after, before) in compared.items():
                parts[f"{name} {task.paper} {criterion}"] = study.difference(
                    chosen(found, row=after), chosen(found, row=before)
                )
        suff, comp = (
            chosen(cells, task=task.paper, row=SPARSEMAX, criterion=c) for c in ("SUFF", "COMP")
        )
        parts[f"sparsemax, SUFF below COMP {task.paper}"] = study.difference(suff, comp)
    return parts


def _transfer(study: Study) -> dict[str, Measured | None]:
    gains = study.transfer_gains
    wide = gains.pivot(index="seed", columns="criterion", values="gain")
    return {
        f"{a} below {b}": _decided(wide[a] - wide[b], gains[gains["criterion"].isin((a, b))])
        for a, b in (("SIM", "SUFF"), ("SUFF", "COMP"), ("COMP", "CONS"))
    }


def _times(training: pd.DataFrame, explaining: pd.DataFrame) -> dict[str, Measured | None]:
    """Ratios of seconds at the largest size, repetition by repetition."""
    parts: dict[str, Measured | None] = {}
    if not remark_of(training):
        parts |= _training_times(training)
    if not remark_of(explaining):
        found = ratios(explaining, "method", SPARSEMAX)
        for name in POST_HOC:
            faster = {"differences": (1 / found[name] - 0.5).tolist()}
            parts[f"explaining, less than half {name}"] = faster
    return parts


def _training_times(times: pd.DataFrame) -> dict[str, Measured | None]:
    found = ratios(times, "system", "Baseline")
    many = times["texts"].max() >= MANY_TEXTS
    parts: dict[str, Measured | None] = {
        f"training, less than twice {c}": {"differences": (found[c] - 2).tolist()}
        for c in CRITERIA
        if c != "CONS" or not many
    }
    if many:
        others = np.max([found[c] for c in CRITERIA if c != "CONS"], axis=0)
        parts["training, CONS above the others"] = {
            "differences": (found["CONS"] - others).tolist()
        }
    return parts


def _settings(study: Study) -> dict[str, Measured | None]:
    """What the paper's best learning rate and decay have over the best other one tried."""
    frame = study.frame(measurements.tuned(study.settings))
    parts: dict[str, Measured | None] = {}
    for criterion, (lr, decay) in BEST_SETTINGS.items():
        sign = 1 if metric(METRICS[criterion]).higher_is_better else -1
        found = frame[frame["criterion"] == criterion]
        wide = sign * found.pivot(index="seed", columns="row", values="value")
        best = setting_name(lr, decay)
        if best in wide and len(wide.columns) > 1:
            others = wide.drop(columns=best).dropna(axis="columns", how="all")
            if len(others.columns):
                parts[criterion] = _decided(wide[best] - others[others.mean().idxmax()], found)
    return parts


def _other_bases(study: Study) -> dict[str, Measured | None]:
    """The central comparisons once more, on GPT-2 and Llama-2 or what stands in for them."""
    pairs = {"SIM": (SPARSEMAX, SMAT), "COMP": (SOFTMAX, SMAT), "SUFF": (SPARSEMAX, SMAT),
             "CONS": (SPARSEMAX, "LIME")}  # fmt: skip
    parts: dict[str, Measured | None] = {}
    for base in BASES[1:]:
        for criterion, (after, before) in pairs.items():
            found = _compare(study, f"{criterion} {base}", criterion, after, before, base)
            parts |= {
                name: _in_per_cent(part) if criterion == "SIM" else part
                for name, part in found.items()
            }
    return parts


def _in_per_cent(part: Measured | None) -> Measured | None:
    """As Table 8, which alone prints simulatability so."""
    if part is None:
        return None
    return {name: list(100 * np.asarray(values)) for name, values in part.items()}


def notes(study: Study, measured: Mapping[str, Mapping[str, Measured]]) -> dict[str, str]:
    """What the reader of a verdict has to know, by claim; `measured`: of `measure_claims`."""
    bases = {study.settings.grid["bases"][base]["name"] for base in BASES[1:]}
    said = {
        "IV-C7": "Where lengths of texts differ, ρ can be below 0 even for random explanations.",
        "IV-C10": "SIM trains only the attention module: accuracy cannot change.",
    }
    every = tasks(study.settings, "ELECTRA")
    core = [t.paper for t in every if is_core(study.settings, "ELECTRA", t)]
    if 0 < len(core) < len(every):
        for claim in ("IV-C1", "IV-C3", "IV-C4", "IV-C5", "IV-C6", "IV-C7", "IV-C10", "IV-C13"):
            if any(len(part["differences"]) > 1 for part in measured.get(claim, {}).values()):
                also = f"Of sets other than {', '.join(core)} there is one seed."
                said[claim] = f"{said.get(claim, '')} {also}".strip()
    plausible = study.settings.roles["plausibility"]
    if corpus_report(plausible, study.settings.source).rationale == "lexicon":
        said["IV-C12"] = "The rationales are a lexicon's: nobody marked them in these texts."
    if bases == {"smollm2"}:
        stands = (f"{model_name(study.settings, b)} for {b}" for b in BASES[1:])
        said["IV-C17"] = f"One decoder, cut twice, is two bases here: {', '.join(stands)}."
    return said
