"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

import pandas as pd

from erlib.data import corpus_report
from erlib.papers.er_lens.sets import test_sets
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    seeds_of,
    system_of,
)
from erlib.parameters import Settings

KINDS = {
    "human": "marked by annotators",
    "phrase labels": "derived from the human sentiment labels of phrases",
    "lexicon": (
        "lexicon rationales: words whose human-rated valence agrees with the label, "
        "after negation; nobody marked them in these texts"
    ),
}


def reduced(settings: Settings) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is."""
    grid = settings.grid
    splits = {"train": "training texts", "dev": "dev texts", "test": "texts of each test set"}
    parts = [
        f"{grid[f'{split}_rows']:,} {what}"
        for split, what in splits.items()
        if f"{split}_rows" in grid
    ]
    if len(settings.seeds) < 15:
        parts.append(f"{len(settings.seeds)} seeds of the paper's 15")
        wide = [s for s in SYSTEMS if len(seeds_of(settings, s)) < len(settings.seeds)]
        if wide:
            parts.append(f"one seed of {', '.join(wide)}")
    if started := grid.get("started"):
        everything = len(started) == len(SYSTEMS) - 1
        which = "all systems but the Baseline" if everything else " and ".join(started)
        parts.append(f"{which} trained on from the Baseline's weights")
    if grid["model"] != "google/bigbird-roberta-base":
        layers = f"the first {grid['layers']} layers of " if "layers" in grid else ""
        parts.append(f"{layers}{grid['model']} in place of BigBird-base")
    return ", ".join(parts)


def about_data(study: Study) -> str:
    """Where the rationales come from, what stands in for what, and what rules dropped."""
    settings = study.settings
    names = list(dict.fromkeys(t.corpus for t in test_sets(settings)))
    reports = {name: corpus_report(name, settings.source) for name in names}
    kinds = {name: r.rationale for name, r in reports.items() if r.rationale}
    lines = [
        f"Rationales of {', '.join(n for n, k in kinds.items() if k == kind)} are {KINDS[kind]}."
        for kind in dict.fromkeys(kinds.values())
    ]
    if settings.source == "packaged":
        places = ", ".join(f"{t.name} in that of {t.paper}" for t in study.sets if not t.in_domain)
        marked = ", ".join(f"{t.name} for {t.plausibility}" for t in study.annotated[1:])
        lines.append(
            f"Stand-ins take the places of the paper's sets outside the domain: {places}; for "
            f"plausibility {marked}. They are other kinds of text than the training data, as the "
            "paper's are, and nothing more is claimed of them."
        )
    for name, report in reports.items():
        if report.dropped:
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            lines.append(f"Left out of {name} by rule: {dropped}.")
    return "\n\n".join(lines)


def about_training(study: Study) -> str:
    """How many runs there are, which were lost, and which did not learn the task."""
    stages = [study.results[name] for name in ("systems", "constrained", "explanation_only")]
    runs = pd.concat(stages, ignore_index=True)
    lost = runs.query("status == 'lost'")
    text = f"{len(runs) - len(lost)} runs, {len(lost)} lost"
    if len(lost):
        names = ", ".join(f"{system_of(s)} seed {s.seed}" for s in lost["spec"])
        text += f" (no epoch met the bound: {names})"
    done = study.runs[study.runs["system"].isin(CLASSIFIERS)]
    weak = done[done["dev_accuracy"] <= done["dev_majority"]]
    accuracy, majority = 100 * done["dev_accuracy"], 100 * done["dev_majority"].iloc[0]
    if len(weak):
        names = ", ".join(f"{r.system} seed {r.seed}" for r in weak.itertuples())
        return (
            f"{text}. Not trained (not above the majority class, {majority:.1f} % on dev), so that "
            f"nothing follows from them: {names}."
        )
    return (
        f"{text}. Every classifier is above the majority class on dev ({majority:.1f} %): "
        f"accuracy {accuracy.min():.1f} to {accuracy.max():.1f} %."
    )


def about_bounds(study: Study) -> str:
    """The bounds, and the losses that they were made from."""
    runs, parts = study.results["explanation_only"], []
    for guide in GUIDES:
        these = runs[[SYSTEMS[system_of(s)].guide == guide for s in runs["spec"]]]
        bounds = study.bounds(guide)
        parts.append(
            f"| {guide} | {len(these)} | {these['lowest_train_explanation_min'].mean():.4f} | "
            f"{these['lowest_dev_explanation'].mean():.4f} | {bounds.train:g} | {bounds.dev:g} | "
            f"{1.1 * bounds.dev:.4f} |"
        )
    head = (
        "| technique | runs | lowest batch loss | lowest dev loss | b_train | b_val | to be met |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(parts)


def about_guidance(study: Study) -> str:
    """What joint guidance did to the guided technique, and how many texts that rests on."""
    scores = study.plausibility_scores
    auc = scores[(scores["measure"] == "auc_x100") & (scores["technique"] == "ATT")]
    parts, skipped = [], []
    for test in study.annotated:
        means = auc[auc["set"] == test].groupby("system")["value"].mean()
        parts.append(f"{test.name} {means['Baseline']:.1f} to {means['ER+Att']:.1f}")
        table = study.plausibility("Baseline", study.places("Baseline")[0], test, "ATT")
        skipped.append(f"{test.name} {int(table['auc'].isna().sum())} of {len(table)}")
    return (
        f"Attention's AUC x 100, Baseline to ER+Att: {'; '.join(parts)}.\n\n"
        f"Texts without a rationale word have no AUC and are left out: {'; '.join(skipped)}."
    )


def about_attention_type(study: Study) -> str:
    """What the audit can say of the attention that depends on the order of texts."""
    if "bigbird" in study.settings.grid["model"]:
        return ""
    return (
        "The third departure, an attention that depends on the order of texts, is BigBird's and "
        f"starts at 705 tokens: it cannot arise with {study.settings.grid['model']} on texts of at "
        f"most {study.settings.grid['max_length']} tokens. "
        '`load_classifier(..., quirks=("attention_by_order",))` reproduces it for BigBird.'
    )
