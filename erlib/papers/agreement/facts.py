"""Which numbers do the notebook's sentences tell? Of trained models, where they tell of results."""

from __future__ import annotations

import pandas as pd

from erlib.config import RunSpec
from erlib.metrics.cartography import GROUPS
from erlib.metrics.correlations import fisher_mean
from erlib.models.jwa import GLOVE
from erlib.papers.agreement.agreements import NAMES, SAME, agreements, map_of, pairs_of, text_means
from erlib.papers.agreement.audit import audit_table
from erlib.papers.agreement.cells import EXPLAINING, ONE, PREDICTING, SIX, TABLE_1
from erlib.papers.agreement.described import stands_for
from erlib.papers.agreement.systems import MODELS, SETS, VARIANTS, core_tasks
from erlib.papers.agreement.vectors import glove_file
from erlib.papers.means import Facts, listed
from erlib.papers.study import Study
from erlib.parameters import Settings


def data(settings: Settings) -> Facts:
    """Which corpora stand in for which sets, and where JWA's vectors come from."""
    names, file = stands_for(settings), glove_file()
    return {
        "stands": ", ".join(f"{corpus} for {paper}" for corpus, paper in names.items()) or "none",
        "vectors": f"the word vectors of {file.name}"
        if file
        else f"the packaged word vectors ({GLOVE}), since ERLIB_GLOVE names no other file",
    }


def margins(study: Study) -> Facts:
    """By model, points of validation accuracy of Base above the majority class, on core sets."""
    said = []
    for model in MODELS:
        core = [f"{model}|{task.paper}" for task in core_tasks(study.settings, model)]
        runs = [c.run for c in study.finished("table3") if c.row in core and c.column == "Base"]
        rows = study.runs[study.runs["spec"].isin(runs)]
        points = 100 * (rows["dev_accuracy"] - rows["dev_majority"])
        said.append(f"{model} {_span(points, '.0f') if len(points) else 'none'}")
    return {"margins": ", ".join(said)}


def pairs(study: Study, model: str) -> Facts:
    """Of Base: is r above τ, which pair agrees best, is an identity one, do scores add up?"""
    runs = _trained(study, model)
    if not runs:
        return {}
    numbers = study.numbers(study.of(TABLE_1[model])).query("trained")
    wide = numbers.pivot(index=["row", "column", "seed"], columns="metric", values="value")
    others, r = wide.drop(index=SAME, level="row"), [pairs_of(study, run) for run in runs]
    means = others.groupby(level="row")["pearson_r"].mean()
    gaps = pd.concat([agreements(study, run).gaps for run in runs]).median()
    return {
        "above": int((others["pearson_r"] > others["kendall_tau"]).sum()),
        "cells": len(others),
        "same": min(float(table[SAME].min()) for table in r),
        "best": means.idxmax(),
        "r": means.max(),
        "undefined": int(sum(table.isna().sum().sum() for table in r)),
        "correlations": sum(table.size for table in r),
        "gaps": listed(gaps.rename(NAMES)[list(NAMES.values())], ".3f"),
    }


def raised(study: Study) -> Facts:
    """In how many cells each regulariser raises r over Base, of seeds where both are trained."""
    numbers = study.numbers(study.of("table2")).query("metric == 'pearson_r' and trained")
    wide = numbers.pivot(index=["row", "seed"], columns="column", values="value")
    wide = wide.reindex(columns=list(VARIANTS))
    found = {}
    for variant in VARIANTS[1:]:
        gains = (wide[variant] - wide["Base"]).dropna().groupby(level="row").mean()
        gains = gains.sort_index(ascending=False)  # JWA before DBERT, as everywhere
        said = ", ".join(f"{row.replace('|', ' ')} {gain:+.2f}" for row, gain in gains.items())
        found[variant.lower()] = f"{(gains > 0).sum()} of {len(gains)}{f': {said}' if said else ''}"
    return found


def groups(study: Study) -> Facts:
    """How many explained texts are in each group of Base, sets and seeds together, and mean r."""
    runs = _trained(study, "DBERT")
    if not runs:
        return {}
    each = [text_means(study, run).to_frame("r").join(map_of(study, run)["group"]) for run in runs]
    texts = pd.concat(each).dropna(subset="r")
    counts = texts["group"].value_counts().reindex(list(GROUPS), fill_value=0)
    means = texts.groupby("group")["r"].mean()
    return {
        "sizes": ", ".join(f"{counts[group]} {group}" for group in GROUPS),
        "none": len(texts) - int(counts.sum()),
        "means": listed(means.reindex(list(GROUPS)), ".2f"),
    }


def curvature(study: Study) -> Facts:
    """How confidence goes with grad norm and min dist under Base and Tying, mean over the sets
    that have trained models of both."""
    numbers = study.numbers(study.of("table11")).query("trained")
    place = numbers["row"].str.split("|")
    numbers = numbers.assign(statistic=place.str[0], set=place.str[1])
    numbers = numbers[place.str[2] == "confidence"]
    index = ["statistic", "set", "seed"]
    wide = numbers.pivot(index=index, columns="column", values="value")
    wide = wide.reindex(columns=["Base", "Tying"]).dropna()
    if wide.empty:
        return {}
    sets = wide.index.get_level_values("set")
    means = wide.groupby("statistic").agg(fisher_mean)
    return {
        "sets": ", ".join(paper for paper in SETS if paper in sets),
        "texts": _span(numbers["texts"], "d"),
        "norm_base": means.loc["Grad norm", "Base"],
        "norm_tying": means.loc["Grad norm", "Tying"],
        "distance_base": means.loc["Min dist", "Base"],
        "distance_tying": means.loc["Min dist", "Tying"],
    }


def audited(study: Study) -> Facts:
    """What dropout does to DeepLIFT and DeepSHAP and to all pairs, means over sets; and what the
    other switches do."""
    table = audit_table(study, trained=True)
    base = table[(table["switch"] == EXPLAINING) & (table["system"] == "DBERT Base")]
    if base.empty:
        return {}
    means = base.groupby("measure")[["here", "switched", "paper"]].mean()
    facts = {
        f"{short}_{name}": value
        for short, measure in (("one", ONE), ("six", SIX))
        for name, value in means.loc[measure].items()
    }
    mapped = table[table["switch"] == PREDICTING].itertuples()
    other = table[~table["switch"].isin([EXPLAINING, PREDICTING])].itertuples()
    trained = [f"{row.switch} on {row.set} {row.here:.2f} to {row.switched:.2f}" for row in other]
    means_of_maps = [
        f"mean {row.measure} on {row.set} {row.here:.3f} to {row.switched:.3f}" for row in mapped
    ]
    for name, said in (("trained", trained), ("mapped", means_of_maps)):
        facts[name] = "; ".join(said) or "not measured"
    return facts


def _trained(study: Study, model: str) -> list[RunSpec]:
    """The model's trained runs of Base."""
    of_base = (c for c in study.finished("table2") if c.column == "Base")
    runs = [cell.run for cell in of_base if cell.row.startswith(model)]
    return [run for run in runs if study.is_trained(run)]


def _span(values: list[float] | pd.Series, digits: str) -> str:
    low, high = f"{min(values):{digits}}", f"{max(values):{digits}}"
    return low if low == high else f"{low} to {high}"
