"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from erlib.data import corpus_report
from erlib.papers.er_lens.systems import TECHNIQUES, annotated, system_of, test_sets
from erlib.papers.er_lens.tables import scores
from erlib.parameters import Settings
from erlib.training.stages import Results

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
    splits = {"train": "training texts", "dev": "dev texts", "test": "texts of each test set"}
    parts = [
        f"{settings.grid[f'{split}_rows']:,} {what}"
        for split, what in splits.items()
        if f"{split}_rows" in settings.grid
    ]
    if len(settings.seeds) < 15:
        parts.append(f"{len(settings.seeds)} seeds of the paper's 15")
    if settings.grid["model"] != "google/bigbird-roberta-base":
        parts.append(f"{settings.grid['model']} in place of BigBird-base")
    return ", ".join(parts)


def about_data(settings: Settings) -> str:
    """Where the rationales come from, and what rules dropped before anything was counted."""
    names = list(dict.fromkeys(t.corpus for t in test_sets(settings)))
    reports = {name: corpus_report(name, settings.source) for name in names}
    kinds = {name: r.rationale for name, r in reports.items() if r.rationale}
    lines = [
        f"Rationales of {', '.join(n for n, k in kinds.items() if k == kind)} are {KINDS[kind]}."
        for kind in dict.fromkeys(kinds.values())
    ]
    for name, report in reports.items():
        if report.dropped:
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            lines.append(f"Left out of {name} by rule: {dropped}.")
    return "\n\n".join(lines)


def about_training(settings: Settings, results: Results) -> str:
    """How many runs there are, which were lost, and which did not learn the task."""
    runs = results["runs"]
    done, lost = runs.query("status == 'done'"), runs.query("status == 'lost'")
    text = f"{len(done)} runs, {len(lost)} lost."
    weak = done[done["dev_accuracy"] <= done["dev_majority"]]
    if len(weak):
        names = ", ".join(f"{system_of(s)} seed {s.seed}" for s in weak["spec"])
        return f"{text} Not trained (not above the majority class on dev): {names}."
    accuracy, majority = 100 * done["dev_accuracy"], 100 * done["dev_majority"].iloc[0]
    return (
        f"{text} Every one is above the majority class on dev ({majority:.1f} %): "
        f"accuracy {accuracy.min():.1f} to {accuracy.max():.1f} %."
    )


def about_guidance(settings: Settings, results: Results) -> str:
    """What guidance did to the guided technique, and how many texts that rests on."""
    auc = scores(settings, results, "plausibility", "auc").query(f"method == '{TECHNIQUES['ATT']}'")
    means = auc.pivot_table(index="column", columns="row", values="value", sort=False)
    parts = [
        f"{t.name} {means.loc[t.name, 'Baseline']:.1f} to {means.loc[t.name, 'ER+Att']:.1f}"
        for t in annotated(settings)
    ]
    rows = results["measurements"].query("kind == 'plausibility'")
    first = rows.drop_duplicates(["corpus", "split"])
    skipped = ", ".join(
        f"{r.corpus} {r.split} {r.skipped:.0f} of {r.texts:.0f}" for r in first.itertuples()
    )
    return (
        f"Attention's AUC x 100, Baseline to ER+Att: {'; '.join(parts)}.\n\n"
        f"Texts without a rationale word have no AUC and are left out: {skipped}."
    )
