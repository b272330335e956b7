"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data import corpus_report
from erlib.papers.ivra import measurements
from erlib.papers.ivra.costs import ratios
from erlib.papers.ivra.study import Study, chosen
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
    FLOOR,
    MODULES,
    SPARSEMAX,
    core_task,
    recipe,
    tasks,
    transfer_target,
)
from erlib.papers.ivra.tables import floor_table, model_name
from erlib.parameters import Settings
from erlib.training.stages import Results

RATIONALES = {
    "human": "marked by annotators",
    "lexicon": (
        "lexicon rationales: words whose human-rated valence agrees with the label, after "
        "negation; nobody marked them in these texts"
    ),
}


def reduced(settings: Settings) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is."""
    options = settings.grid
    if "short" not in options:
        return ""
    core, short = recipe(settings, core_task(settings)), options["short"]
    models = "; ".join(f"{model_name(settings, base)} for {base}" for base in BASES)
    cut = {t: sizes["layers"] for t, sizes in options["tasks"].items() if "layers" in sizes}
    steps = -(-core["train_rows"] // core["batch_size"]) * core["epochs"]
    brief = -(-short["train_rows"] // core["batch_size"])
    return "; ".join(
        [
            models,
            *(f"its first {layers} layers on {task}" for task, layers in cut.items()),
            f"{len(settings.seeds)} of the paper's 5 seeds and {steps} steps for the rows of IMDb "
            f"that decide claims, one seed elsewhere (n=1)",
            f"other tasks, models and sets of criteria trained for {brief} steps from the Baseline",
            f"{options['explained_rows']} explained texts",
            *(f"{name} with {variant.split('_')[1]} {what}" for name, what in (
                ("Integrated Gradients", "points"), ("LIME", "samples"))
              if (variant := options["variants"].get(name))),
        ]
    )  # fmt: skip


def about_data(settings: Settings) -> str:
    """Which corpus stands for which set, where rationales come from, what rules dropped."""
    every = tasks(settings, "ELECTRA")
    others = [t for t in (transfer_target(settings, x) for x in every) if t]
    stands = "; ".join(f"{t.corpus} for {t.paper}" for t in (*every, *others))
    plausible = settings.roles["plausibility"]
    kind = corpus_report(plausible, settings.source).rationale or ""
    lines = [
        f"In the paper's places: {stands}.",
        f"Plausibility (for MovieReviews): {plausible}, {RATIONALES.get(kind, kind)}.",
    ]
    missing = [t.paper for t in every if not t.spans and transfer_target(settings, t) is None]
    if missing:
        lines.append(f"No second set of the kind of {', '.join(missing)}: no transfer there.")
    for corpus in dict.fromkeys(t.corpus for t in (*every, *others)):
        report = corpus_report(corpus, settings.source)
        if report.dropped:
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            lines.append(f"Left out of {corpus} by rule: {dropped}.")
    return "\n\n".join(lines)


def about_training(study: Study, results: Results) -> str:
    """How many models there are, and which Baselines did not learn their task."""
    counts = f"{len(results['models'])} models and {len(results['students'])} students."
    weak = []
    for cell in measurements.base_answers(study.settings):
        row = study.rows[cell.spec]
        if not cell.task.spans and row["accuracy"] <= row["majority"]:
            weak.append(f"{model_name(study.settings, cell.base)} on {cell.task.paper}, "
                        f"seed {cell.seed}")  # fmt: skip
    if not weak:
        return f"{counts} Every Baseline is above the majority class."
    return (
        f"{counts} Not trained (not above the majority class), so that nothing follows from "
        f"them: {'; '.join(weak)}."
    )


def about_simulatability(study: Study) -> str:
    """What the best method is, and what explanations add to a student that has none."""
    table = floor_table(study)
    lines = []
    for task in tasks(study.settings, "ELECTRA"):
        rows = table[(table["base"] == "ELECTRA") & (table["task"] == task.paper)]
        if rows.empty:
            continue
        best = rows.loc[rows["above the floor"].idxmax()]
        helped = int((rows["above the floor"] > 0).sum())
        lines.append(
            f"{task.paper}: without explanations {best['floor']:.1f} %; {helped} of {len(rows)} "
            f"methods are above that, most {best['method']} ({_signed(best['above the floor'])})"
        )
    return f"Students by task, in points of agreement. {'; '.join(lines)}."


def about_criterion(study: Study, criterion: str) -> str:
    """Which method is best by a criterion on each task, and where the learned modules stand."""
    lines = []
    low = criterion == "SUFF"
    for task in tasks(study.settings, "ELECTRA"):
        cells = chosen(study.by_explainer, base="ELECTRA", task=task.paper, criterion=criterion)
        means = study.frame([c for c in cells if c.row != FLOOR]).groupby("row")["value"].mean()
        best = means.idxmin() if low else means.idxmax()
        modules = ", ".join(f"{m} {means[m]:.3f}" for m in MODULES if m in means)
        lines.append(f"{task.paper}: {best} ({means[best]:.3f}); {modules}")
    return f"Best by task: {'. '.join(lines)}."


def about_gains(study: Study) -> str:
    """How many cells of Figure 5 are negative, and which sets lose most."""
    gains = study.subset_gains
    others = gains[gains["row"] != gains["criterion"]]
    cells = others.groupby(["criterion", "row"])["gain"].mean()
    worst = cells.groupby("row").mean().idxmin()
    return (
        f"{int((cells < 0).sum())} of {len(cells)} gains are negative (the paper: all); the set "
        f"with the largest mean loss is {worst}. Gains are relative: where a criterion alone is "
        f"near 0 they are large and mean little; the differences are in the table's file."
    )


def about_levels(study: Study) -> str:
    """Which level of selection ends with the lowest loss, by criterion."""
    curves = study.curves
    last = curves[curves["epoch"] == curves["epoch"].max()]
    means = last.groupby(["criterion", "level"])["loss"].mean()
    best = ", ".join(f"{c} {means[c].idxmin()} ({means[c].min():.3f})" for c in CRITERIA)
    return f"Lowest loss of the last epoch: {best}."


def about_transfer(study: Study) -> str:
    """The gains behind Figure 8, and over which sets they are means."""
    means = study.transfer_gains.groupby("criterion")["gain"].mean()
    plain = study.transfer_gains.groupby("criterion")["difference"].mean()
    targets = dict.fromkeys(c.task.corpus for c in measurements.transferred(study.settings))
    said = ", ".join(
        f"{c} {_signed(means[c])} % (difference {_signed(plain[c], 3)})" for c in CRITERIA
    )
    return f"Measured on {', '.join(targets)}: {said}."


def about_training_times(times: pd.DataFrame) -> str:
    """How many times the Baseline's training time each criterion takes."""
    found = ratios(times, "system", "Baseline")
    said = ", ".join(f"{c} {np.median(found[c]):.1f}" for c in CRITERIA)
    return (
        f"Times the Baseline at {times['texts'].max():,} texts: {said}. Pairs are made within a "
        f"batch, so that the cost of consistency grows with the texts and not with their square."
    )


def about_explaining_times(times: pd.DataFrame) -> str:
    """How many times IvRA's explaining time the other methods take."""
    found = ratios(times, "method", SPARSEMAX)
    said = ", ".join(f"{name} {np.median(r):.1f}" for name, r in found.items())
    return f"Times {SPARSEMAX} at {times['texts'].max():,} texts: {said}."


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")
