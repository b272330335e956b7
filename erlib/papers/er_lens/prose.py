"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from erlib.config import RunSpec
from erlib.data import corpus_report
from erlib.papers.er_lens.sets import YELP_50, TestSet, test_sets
from erlib.papers.er_lens.stages import sweep_specs
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    seeds_of,
    system_of,
)
from erlib.papers.trained import RULE, why_untrained
from erlib.parameters import Settings
from erlib.reports.markup import counted

KINDS = {
    "human": "marked by annotators",
    "phrase labels": "derived from the human sentiment labels of phrases",
    "lexicon": (
        "lexicon rationales: words whose human-rated valence agrees with the label, "
        "after negation; nobody marked them in these texts"
    ),
}

# The corpora that are the paper's own, by the column that it has for them. The local Yelp is
# another sample of reviews than the hub's.
OWN = {"movies": "Movies", "imdb": "IMDB", "amazon_mtv": "Amazon-M-TV"}
OWN_OF_HUB = {**OWN, "yelp": "Yelp"}
PAPER_SEEDS, PAPER_TEXTS = 15, 5000  # of a system; of a test set, at most


def reduced(settings: Settings) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is."""
    grid = settings.grid
    splits = {"train": "training texts", "dev": "dev texts", "test": "texts of each test set"}
    parts = [
        f"{grid[f'{split}_rows']:,} {what}"
        for split, what in splits.items()
        if grid.get(f"{split}_rows", PAPER_TEXTS) < PAPER_TEXTS
    ]
    if len(settings.seeds) < PAPER_SEEDS:
        parts.append(f"{counted(len(settings.seeds), 'seed')} of the paper's {PAPER_SEEDS}")
        wide: dict[int, list[str]] = {}
        for system in SYSTEMS:
            if (seeds := len(seeds_of(settings, system))) < len(settings.seeds):
                wide.setdefault(seeds, []).append(system)
        parts += [f"{counted(n, 'seed')} of {', '.join(names)}" for n, names in wide.items()]
    if started := grid.get("started"):
        everything = len(started) == len(SYSTEMS)
        which = "all systems, the Baseline too," if everything else " and ".join(started)
        rows = grid["short"].get("train_rows")
        fewer = f" with {rows:,} texts" if rows else ""
        parts.append(f"{which} trained on{fewer} from a model that knows the task alone")
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
    own = OWN_OF_HUB if settings.source == "hub" else OWN
    others = [t for t in study.sets if t.paper and not t.in_domain]
    places = [f"{t.name} in that of {t.paper}" for t in others if t.paper != own.get(t.corpus)]
    marked = [
        f"{t.name} for {t.plausibility}"
        for t in study.annotated[1:]
        if t.plausibility != own.get(t.corpus)
    ]
    if places:
        also = f"; for plausibility {', '.join(marked)}" if marked else ""
        lines.append(
            "Stand-ins take the places of the paper's sets outside the domain: "
            f"{', '.join(places)}{also}. They are other kinds of text than the training data, as "
            "the paper's are, and nothing more is claimed of them."
        )
    if study.set_for(YELP_50) is None:
        lines.append(
            f"The paper's annotations of {YELP_50} are not published: Table 7 and the parts of "
            "Table 4 and of Figures 6, 9, 10 and 13 that rest on them are left out; Figure 3 is "
            "drawn of another set."
        )
    long, length = study.set_for("Movies"), settings.grid["long"]["max_length"]
    if long and length > settings.grid["max_length"]:
        lines.append(f"For plausibility {long.name} is read up to {length} tokens, not as above.")
    if "movies" in names:
        lines.append("Of Movies the test texts are used; the paper adds the validation texts.")
    for name, report in reports.items():
        if report.dropped:
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            lines.append(f"Left out of {name} by rule: {dropped}.")
    return "\n\n".join(lines)


def about_training(study: Study) -> str:
    """How many runs there are, which were lost, and which did not learn the task."""
    stages = [study.results[name] for name in ("systems", "constrained", "explanation_only")]
    runs = pd.concat(stages, ignore_index=True)
    lost, failed = (runs[runs["status"] == status] for status in ("lost", "failed"))
    kept = len(runs) - len(lost) - len(failed)
    text = f"{_as_long(study.settings)}{kept} runs, {len(lost)} lost"
    if len(lost):
        text += f" (no epoch met the bound: {_seeds_of(lost['spec'])})"
    if len(failed):
        text += f", {len(failed)} failed ({_seeds_of(failed['spec'])}; why, see the end)"
    done, weak = study.runs[study.runs["system"].isin(CLASSIFIERS)], study.untrained
    accuracy, majority = 100 * done["dev_accuracy"], 100 * done["dev_majority"].iloc[0]
    dev = (
        f"Accuracy on dev: {accuracy.min():.1f} to {accuracy.max():.1f} % "
        f"(majority class {majority:.1f} %)."
    )
    if len(weak):
        why = why_untrained(list(weak["spec"]), _seeds_of)
        return (
            f"{text}. {why} They are left out of Table 1, of the effects and of the verdicts. {dev}"
        )
    return f"{text}. Every classifier has learnt the task ({RULE}). {dev}"


def _seeds_of(specs: Iterable[RunSpec]) -> str:
    return ", ".join(f"{system_of(s)} seed {s.seed}" for s in specs)


def _as_long(settings: Settings) -> str:
    """What stands beside systems that were not trained in one go: a Baseline with as many steps."""
    started = settings.grid.get("started")
    if not started:
        return ""
    which = "Every system" if len(started) == len(SYSTEMS) else " and ".join(started)
    goes = "goes" if len(started) in (1, len(SYSTEMS)) else "go"
    return (
        f"{which} {goes} on from a model trained on the task alone. The Baseline is trained as "
        "long as the systems beside it. "
    )


def about_bounds(study: Study) -> str:
    """The bounds, the losses that they were made from, and what they ask of an unguided model."""
    runs, parts, idle = study.results["explanation_only"], [], []
    unguided = study.sweep[study.sweep["weight"] == 0].groupby("guide")["explanation"].mean()
    for guide in GUIDES:
        these = runs[[SYSTEMS[system_of(s)].guide == guide for s in runs["spec"]]]
        bounds = study.bounds(guide)
        parts.append(
            f"| {guide} | {len(these)} | {these['lowest_train_explanation_min'].mean():.4f} | "
            f"{these['lowest_dev_explanation'].mean():.4f} | {bounds.train:g} | {bounds.dev:g} | "
            f"{1.1 * bounds.dev:.4f} | {unguided[guide]:.4f} |"
        )
        if unguided[guide] < 1.1 * bounds.dev:
            idle.append(guide)
    table = (
        "| technique | runs | lowest batch loss | lowest dev loss | b_train | b_val | to be met | "
        "dev loss at λ = 0 |\n|---|---|---|---|---|---|---|---|\n" + "\n".join(parts)
    )
    if not idle:
        return table
    return (
        f"{table}\n\nThe dev loss of {', '.join(idle)} is below what is to be met without guidance "
        "(λ = 0): there the constraint asks for next to nothing."
    )


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


def about_texts(study: Study, sets: list[TestSet]) -> str:
    """Of how many texts each technique's plausibility is the mean, and how long documents were cut.

    Only texts with a rationale are counted: the others have no AUC.
    """
    scores, parts = study.plausibility_scores, []
    for test in sets:
        counts = scores[scores["set"] == test].groupby("technique")["texts"].max()
        alike: dict[int, list[str]] = {}
        for technique in TECHNIQUES:
            if technique in counts:
                alike.setdefault(counts[technique], []).append(technique)
        said = "; ".join(f"{', '.join(names)} of {n}" for n, names in alike.items())
        length = study.settings.grid["long"]["max_length"]
        cut = f", cut to {length} tokens" if test.plausibility == "Movies" else ""
        parts.append(f"{test.name}{cut}: {said}")
    return f"Texts with a rationale that each technique was taken of. {'. '.join(parts)}."


def about_sweep(study: Study) -> str:
    """Which runs the λ sweep consists of; the paper has six λ, five seeds and whole runs."""
    specs = sweep_specs(study.settings)
    weights = ", ".join(f"{w:g}" for w in study.settings.grid["sweep"]["lambda"])
    seeds, first = len({s.seed for s in specs}), specs[0]
    text = (
        f"λ of {weights}, {counted(seeds, 'seed')}; the paper's: 0, 0.5, 1, 5, 10, 100, 5 seeds. "
        "λ = 0 is one run for all guides."
    )
    if first.start is None:
        return text
    rows = "all" if first.data.train_rows is None else f"{first.data.train_rows:,}"
    return (
        f"{text} Each run goes on from the seed's start for "
        f"{counted(first.optimiser.epochs, 'epoch')} with {rows} training texts; the bounds are "
        "those of the constrained systems."
    )


def about_erasure(study: Study) -> str:
    """What the curves of Figure 8 are means of."""
    places = study.places("Baseline")
    texts = study.erasure(places[0], "ATT")["id"].nunique()
    shares = [100 * len(study.left_out[place]) / texts for place in places]
    each = ", ".join(f"{x:.1f} % (seed {p})" for x, p in zip(shares, places, strict=True))
    return (
        f"Means over the texts of {study.annotated[0].name}, {texts:,} of them, and "
        f"{counted(len(places), 'Baseline')}. Texts that a Baseline is no surer of than of the "
        "empty input have nothing to normalise by, and are left out: "
        f"{each}. With all tokens kept, sufficiency is then 1."
    )


def about_attention_type(study: Study) -> str:
    """What the audit can say of the attention that depends on the order of texts."""
    if "bigbird" in study.settings.grid["model"]:
        return ""
    grid = study.settings.grid
    longest = max(grid["max_length"], grid["long"]["max_length"])
    return (
        "The third departure, an attention that depends on the order of texts, is BigBird's and "
        f"starts at 705 tokens: it cannot arise with {grid['model']} on texts of at most {longest} "
        "tokens. "
        '`load_classifier(..., quirks=("attention_by_order",))` reproduces it for BigBird.'
    )
