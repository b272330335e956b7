"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range

from erlib.config import ModelSpec, RunSpec
from erlib.papers.holes import failed, remark_of
from erlib.papers.regex.grid import (
    BEST,
    MAIN,
    OTHER_DEEPLIFTS,
    SHORT,
    UNTRAINED,
    ablated,
    attacked,
    deeplifts,
    faithful,
    fresh,
    full_text,
    swept,
)
from erlib.papers.regex.study import METRICS, WORDS, Study, not_trained
from erlib.papers.regex.systems import (
    ABLATIONS,
    ATTRIBUTIONS,
    SYSTEMS,
    is_long,
    run_spec,
)
from erlib.papers.regex.tables import similarities
from erlib.papers.trained import why_untrained
from erlib.parameters import Settings
from erlib.reports.markup import counted
from erlib.training.stages import Results, planned_steps


def reduced(settings: Settings) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is."""
    grid = settings.grid
    if grid["core"] == "all":
        return ""
    model, second, erased = grid["model"], grid["second_model"], grid["erased_rows"]
    layers = f", {_lowest(model)}," if "layers" in model else ""
    short = run_spec(settings, "REGEX", "SST", settings.seeds[0], wide=True)
    core = run_spec(settings, "Baseline", "SST", settings.seeds[0])
    brief = f"{planned_steps(short)} steps on from the Baseline's weights"
    long = [name for name in SYSTEMS if is_long(settings, name)]
    but = f" but {', '.join(long)} of SST" if long else ""
    seeds = len(settings.seeds)
    models, second_models = (min(grid[f"{size}initialisations"], seeds) for size in ("", "small_"))
    parts = [
        f"MiniLM{layers} in place of BERT-base, {_lowest(second)} in place of RoBERTa-large",
        f"at most {grid['train_rows']} training texts",
        f"{counted(seeds, 'seed')} of 5 and {erased['core']} erased texts for "
        f"{', '.join(grid['core'])} in SST's domain"
        + (f" (of attributions but {' and '.join(BEST)} the first seed)" if seeds > 1 else ""),
        f"elsewhere one seed (n=1) and {erased['wide']} erased texts",
        f"{brief} for all systems{but}, with a Baseline trained on for as many beside them",
        f"{models} of 4 initialisations, {second_models} of the second model, with {brief}",
        f"{_tokens(grid)} of 256 tokens",
        f"{core.optimiser.epochs} of 10 epochs",
        f"at most {grid['test_rows']['core']} test texts, {grid['test_rows']['wide']} elsewhere",
        f"{len(grid['lambdas'])} values of λ4, {len(grid['percents'])} of K and "
        f"{len(grid['swept'])} of 6 attributions in Figures 3 and 4",
        f"IG with {grid['points']} points, as a guide once per epoch",
        f"FRESH from {', '.join(grid['fresh']['sources'])}, {grid['fresh']['train_rows']} training "
        f"and {grid['fresh']['test_rows']} test texts, rationales within {grid['max_length']} "
        "tokens",
        f"{grid['attack_rows']} of 400 texts attacked",
    ]
    return "; ".join(parts)


def _lowest(model: Mapping[str, Any]) -> str:
    return "its first layer" if model["layers"] == 1 else f"its first {model['layers']} layers"


def _tokens(grid: Mapping[str, Any]) -> str:
    """ "32 (IMDB 64)": how much of a text is read."""
    longer = ", ".join(f"{name} {n}" for name, n in grid.get("max_length_of", {}).items())
    return f"{grid['max_length']}{f' ({longer})' if longer else ''}"


def about_training(settings: Settings, results: Results) -> str:
    """How far the runs are ahead of the majority class, and which did not learn their task."""
    runs = results["runs"]
    runs = runs[[s.optimiser.lr > 0 for s in runs["spec"]]]  # without the untrained models
    ahead = 100 * (runs["dev_accuracy"] - runs["dev_majority"])
    core = [run_spec(settings, "Baseline", "SST", seed) for seed in settings.seeds]
    decisive = ", ".join(f"{x:+.0f}" for x in ahead[runs["spec"].isin(core)])
    text = (
        f"{len(runs)} runs and {len(results['classifiers'])} classifiers of rationales. Points of "
        f"dev accuracy over the majority class: {decisive} for the Baselines of SST's domain, "
        f"{ahead.min():+.0f} to {ahead.max():+.0f} for all runs."
    ).replace("-", "−")
    every = [*runs["spec"], *results["classifiers"]["spec"]]
    counts, untrained = Counter(_what(settings, spec) for spec in every), not_trained(results)
    untrained -= failed([results["runs"], results["classifiers"]])
    weak = [spec for spec in every if spec in untrained]
    if not weak:
        return text

    def named(specs: Sequence[RunSpec]) -> str:
        found = Counter(_what(settings, spec) for spec in specs)
        return ", ".join(f"{n} of {counts[name]} on {name}" for name, n in found.items())

    why = why_untrained(weak, named)
    return f"{text} {why} Nothing follows from them."


def _what(settings: Settings, spec: RunSpec) -> str:
    """On what a run was trained, and what sets it apart from the others there."""
    if spec.data.extract:
        return f"{spec.data.corpus}'s rationales"
    second = spec.model == ModelSpec(**settings.grid["second_model"])
    return spec.data.corpus + (" with the second model" if second else "")


def about_faithfulness(study: Study) -> str:
    """In how many pairs REGEX is ahead, and attributions of random; and how they rank.

    Only of models that are trained: seeds of which one of the two systems is not are left out.
    """
    whole = _wide(study)
    table = whole[whole["trained"]]
    compared = set(table.loc[table["attribution"] == "RAND", "pair"])  # all attributions were taken
    if not compared:
        return f"No pair has trained models, so that none is compared.\n\n{_undefined(study)}"
    table = table[table["pair"].isin(compared)]
    which, lines = "" if len(table) == len(whole) else " with trained models", []
    for m, word in WORDS.items():
        means = table[table["metric"] == m].pivot_table(
            index="pair", columns=["system", "attribution"], values="value"
        )
        gains = (means["REGEX"] > means["Baseline"]).sum()
        useful = means["REGEX"].gt(means["REGEX", "RAND"], axis=0).sum()
        lines.append(
            f"Of {counted(len(means), 'pair')}{which}, REGEX is ahead in {word} in "
            f"{_counts(gains)}; under REGEX, attributions are ahead of RAND in "
            f"{_counts(useful.drop('RAND'))}."
        )
    return "\n\n".join([*lines, *(_ranking(table, m) for m in WORDS), _undefined(study)])


def _counts(found: pd.Series) -> str:
    return ", ".join(f"{int(found[a])} ({a})" for a in ATTRIBUTIONS if a in found)


def _undefined(study: Study) -> str:
    """Whose values are 0 by definition, as metrics.md §2 asks for."""
    parts = []
    for system in MAIN:
        shares: dict[bool, list[float]] = {True: [], False: []}
        for c in faithful(study.settings):
            if c.system == system and c.attribution == BEST[0]:  # a model's texts, once
                shares[c.source == c.target == "SST"].append(study.value(c.spec, "undefined"))
        home, away = (100 * np.nanmean(shares[where]) for where in (True, False))
        parts.append(f"{system} {home:.0f} % in SST's domain, {away:.0f} % elsewhere")
    return f"Texts that a model is no surer of than of an empty one count as 0: {'; '.join(parts)}."


def _wide(study: Study) -> pd.DataFrame:
    """Table 1 as long rows; `trained`: both systems of the pair and seed are."""
    cells = faithful(study.settings)
    weak = {(c.source, c.seed) for c in cells if not study.is_trained(c.spec)}
    return pd.DataFrame(
        {
            "pair": f"{c.source}->{c.target}",
            "system": c.system,
            "attribution": c.attribution,
            "seed": c.seed,
            "metric": m,
            "value": study.value(c.spec, name),
            "trained": (c.source, c.seed) not in weak,
        }
        for c in cells
        for m, name in METRICS.items()
    )


def _ranking(table: pd.DataFrame, m: str) -> str:
    """Friedman's test over pairs and seeds, and Nemenyi's critical difference of mean ranks."""
    chosen = table[(table["metric"] == m) & (table["system"] == "REGEX")]
    blocks = chosen.pivot_table(index=["pair", "seed"], columns="attribution", values="value")
    blocks = blocks[[a for a in ATTRIBUTIONS if a != "RAND"]].dropna()
    if len(blocks) < 2:
        return f"Too few pairs have trained models for a ranking in {WORDS[m]}."
    ranks = rankdata(-blocks.to_numpy(), axis=1).mean(axis=0)
    n, k = blocks.shape
    p = friedmanchisquare(*blocks.to_numpy().T).pvalue
    critical = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
    order = sorted(zip(ranks, blocks.columns, strict=True))
    named = ", ".join(f"{name} {rank:.1f}" for rank, name in order)
    return (
        f"Mean ranks of the five attributions in {WORDS[m]} under REGEX over {n} pairs and seeds: "
        f"{named}; Friedman p = {p:.2g}, Nemenyi's critical difference {critical:.1f}."
    )


def about_attack(study: Study) -> str:
    """Both systems' flips, and McNemar's view of the texts that both classified correctly."""
    cells = attacked(study.settings)
    first = {c.system: c for c in cells if c.seed == study.settings.seeds[0]}
    if not study.has(*(c.spec for c in first.values())):
        return "The first seed's models cannot be compared: see what failed, at the end."
    tables = {s: study.texts(c.spec).set_index("id") for s, c in first.items()}
    flipped = {s: (t["before"] == t["label"]) & (t["after"] != t["label"])
               for s, t in tables.items()}  # fmt: skip
    both = np.logical_and.reduce([t["before"] == t["label"] for t in tables.values()])
    only = {s: int((flipped[s] & ~flipped[o] & both).sum())
            for s, o in (("REGEX", "Baseline"), ("Baseline", "REGEX"))}  # fmt: skip
    differ = sum(only.values())
    p = binomtest(only["REGEX"], differ).pvalue if differ else 1.0  # McNemar's exact test
    kinds = " ".join(" ".join(t["kinds"]) for t in tables.values()).split()
    counts = ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or "none"
    rates = ", ".join(
        f"{s} {study.value(c.spec, 'successes'):.0f} of {study.value(c.spec, 'correct'):.0f}"
        for s, c in first.items()
    )
    seed = "First seed. " if len(cells) > len(first) else ""
    return (
        f"{seed}Flipped, of the texts classified correctly before: {rates}. Of the "
        f"{int(both.sum())} texts that both classify correctly, {only['Baseline']} flip for the "
        f"Baseline alone and {only['REGEX']} for REGEX alone (McNemar p = {p:.2g}). Changes made: "
        f"{counts}."
    )


def about_sweep(study: Study, name: str) -> str:
    """Where the sweep is best, by the mean over its attributions."""
    said = []
    for m, column in METRICS.items():
        means = {
            value: np.mean([study.value(c.spec, column) for c in cells])
            for value, cells in swept(study.settings, name).items()
            if study.has(*(c.spec for c in cells))
        }
        if not means:
            continue
        best = max(means, key=means.__getitem__)
        spread = max(means.values()) - min(means.values())
        said.append(f"{WORDS[m]} is best at {best:g} (largest difference {spread:.3f})")
    return f"In our runs {'; '.join(said)}."


def about_guide(check: pd.DataFrame, settings: Settings) -> str:
    """What remembering the guide changes."""
    if remark_of(check):
        return ""
    rho, shared = check["rank correlation"], check["masked by both"]
    return (
        f"Rank correlation of the guide with {settings.grid['points']} points, made before the "
        f"first batch, with one of 50 points made for each batch: {rho.mean():.2f} on average over "
        f"{len(check)} batches ({rho.iloc[0]:.2f} in the first, {rho.iloc[-1]:.2f} in the last); "
        f"{100 * shared.mean():.0f} % of the masked tokens are the same."
    )


def about_cost(table: pd.DataFrame) -> str:
    """What REGEX costs here, beside what the paper prints."""
    if remark_of(table):
        return ""
    times = table.set_index("system")["times Baseline"]
    return (
        f"A step of REGEX costs {times['REGEX']:.1f} times one of the Baseline, and "
        f"{times['REGEX, 50 points per batch']:.0f} times with a guide of 50 points for every "
        f"batch; the paper prints 2.1. The robustness terms alone cost "
        f"{times['with robustness terms']:.1f} times."
    )


def about_perturbation(check: pd.DataFrame) -> str:
    """What the ascent is worth, at the paper's step size and at larger ones."""
    if remark_of(check):
        return ""
    paper, *larger = check.to_dict("records")
    others = ", ".join(f"{r['times']:.1f} at η = {r['step size η']:g}" for r in larger)
    return (
        f"At the paper's step size δ has cosine {paper['cosine with the random start']:.2f} with "
        f"its random start and changes predictions {paper['times']:.2f} times as much as a random "
        f"δ of the same size; {others}."
    )


def about_deeplifts(study: Study) -> str:
    """What each way to DeepLift gains over random order, text by text."""
    cells = deeplifts(study.settings)
    ways = {"regex": "straight into the encoder", **OTHER_DEEPLIFTS}
    said = []
    for system in MAIN:
        gains = [f"{way} {_over_random(study, system, v)}" for v, way in ways.items()]
        said.append(f"{system}: {'; '.join(gains)}.")
    texts = study.value(cells["REGEX", "random"].spec, "texts")
    return (
        f"DeepLift minus random in sufficiency and comprehensiveness, mean and standard error over "
        f"{texts:.0f} texts of the first seed's models. {' '.join(said)}"
    )


def _over_random(study: Study, system: str, variant: str) -> str:
    """ "+0.21 ± 0.03 and +0.12 ± 0.02": one after the other in both metrics."""
    cells = deeplifts(study.settings)
    parts = []
    if not study.has(*(cells[system, v].spec for v in (variant, "random"))):
        return "failed"
    for m in WORDS:
        ours, drawn = (study.aopc(cells[system, v].spec, m) for v in (variant, "random"))
        gain = ours - drawn
        parts.append(f"{gain.mean():+.3f} ± {gain.sem():.3f}".replace("-", "−"))
    return " and ".join(parts)


def about_core(study: Study) -> str:
    """How much the Baseline and REGEX differ where claims are decided."""
    table = _wide(study)
    home = table[table["pair"] == "SST->SST"]
    means = home.pivot_table(index=["attribution", "metric"], columns="system", values="value")
    parts = [
        f"{a} {WORDS[m]} {means.loc[(a, m), 'Baseline']:.2f} to {means.loc[(a, m), 'REGEX']:.2f}"
        for m in WORDS
        for a in BEST
    ]
    weak = "" if home["trained"].all() else " (models that are not trained are included)"
    return f"In SST's domain, Baseline to REGEX{weak}: {'; '.join(parts)}."


def about_fresh(study: Study) -> str:
    """What reading nothing but rationales costs, by attribution and support."""
    cells = [c for c in full_text(study.settings) if c.source in _fresh_sources(study)]
    table = pd.DataFrame(
        {
            "system": c.system,
            "attribution": c.attribution,
            "pair": f"{c.source}->{c.target}",
            "f1": 100 * study.value(c.spec, "f1_macro"),
        }
        for c in [*cells, *fresh(study.settings)]
    )
    by_pair = table.groupby(["system", "attribution", "pair"])["f1"].mean()  # seeds first
    means = by_pair.groupby(["system", "attribution"]).mean()
    parts = [
        f"{system} " + ", ".join(f"{a} {means[system, a]:.1f}"
                                 for a in ("Full-text", *ATTRIBUTIONS) if (system, a) in means)
        for system in MAIN
    ]  # fmt: skip
    sources = " and ".join(_fresh_sources(study))
    return f"Mean F1-macro (%) of the pairs from {sources}: {'; '.join(parts)}."


def _fresh_sources(study: Study) -> list[str]:
    return list(study.settings.grid["fresh"]["sources"])


def about_agreement(study: Study, *, small: bool) -> str:
    """Mean similarity between trained models, and with the untrained one."""
    parts = []
    for system in MAIN:
        by_pair = similarities(study, system, small=small)
        means = {pair: per_text.mean() for pair, per_text in by_pair.items()}
        trained = [v for pair, v in means.items() if UNTRAINED not in pair]
        untrained = [v for pair, v in means.items() if UNTRAINED in pair]
        between = (
            f"{np.mean(trained):.2f} between {len(trained)} pair"
            f"{'s' if len(trained) > 1 else ''} of trained models, "
            if trained
            else ""  # of a single model
        )
        if untrained:
            between += f"{np.mean(untrained):.2f} with the untrained one"
        parts.append(f"{system} {between}" if between else f"{system} nothing: its models failed")
    return f"Mean Jaccard@25 %: {'; '.join(parts)}."


def about_ablation(study: Study) -> str:
    """What each part is worth in sufficiency, each variant against REGEX trained as long."""
    found: dict[str, list[float]] = {}
    for c in ablated(study.settings):
        if c.attribution in BEST:
            found.setdefault(c.system, []).append(study.value(c.spec, METRICS["norm_suff"]))
    means = {system: np.mean(values) for system, values in found.items()}
    parts: dict[str, list[str]] = {}
    for system in (name for name in ABLATIONS if name.startswith("w/o")):
        against = "REGEX" if is_long(study.settings, system) else SHORT
        difference = f"{system} {means[system] - means[against]:+.3f}".replace("-", "−")
        parts.setdefault(against, []).append(difference)
    said = ". ".join(f"Against {name}: {'; '.join(each)}" for name, each in parts.items())
    return f"Sufficiency, mean of {' and '.join(BEST)}. {said}."
