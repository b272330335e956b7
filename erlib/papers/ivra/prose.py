"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.config import RunSpec
from erlib.data import corpus_report
from erlib.papers.holes import NOTHING, failed, remark_of
from erlib.papers.ivra import measurements
from erlib.papers.ivra.costs import ratios
from erlib.papers.ivra.study import Study, chosen
from erlib.papers.ivra.systems import (
    BASES,
    CRITERIA,
    EXPLAINERS,
    FLOOR,
    MODULES,
    ROLES,
    SIZES,
    SPARSEMAX,
    UNTRAINED,
    System,
    Task,
    answers_as,
    baseline,
    core_task,
    criteria_of,
    pupil_recipe,
    recipe,
    tasks,
    trained,
    transfer_target,
)
from erlib.papers.ivra.tables import floor_table, model_name, short_name
from erlib.papers.trained import RULE, why_untrained
from erlib.parameters import Settings
from erlib.training.stages import Results

PUPILS = ("student", "short_student")
LEFT_OUT = " Models that are not trained are left out."
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
    cut = [f"{sizes['max_length']} ({task})" for task, sizes in options["tasks"].items()]
    return "; ".join(
        [
            *(f"{model_name(settings, base)} for {base}" for base in BASES),
            f"texts cut at {', '.join(cut)} sub-words",
            *_lengths(settings),
            *_left_out(settings),
            f"students trained by AdamW; ω, λ and η at {options['explainer_factor']} times the "
            "model's learning rate",
            f"at most {options['test_rows']} test texts for accuracy, students examined on "
            f"{', elsewhere on '.join(_examined(settings))}",
            f"{options['explained_rows']} explained texts",
            *([f"{options['wide_rows']} for sets of criteria, transfer and settings"]
              if "wide_rows" in options else []),
            *(f"{name} with {options[size]} {size}" for name, (_, size) in SIZES.items()
              if size in options),
        ]
    )  # fmt: skip


def _examined(settings: Settings) -> list[str]:
    """On how many texts students are examined: those of the core task, and the others."""
    pupils = [recipe(settings, core_task(settings), pupil_recipe(settings, s)) for s in PUPILS]
    return list(dict.fromkeys(str(pupil["examined_rows"]) for pupil in pupils))


def _lengths(settings: Settings) -> list[str]:
    """How many seeds and steps the full and the short runs have."""
    grid, task, seed = settings.grid, core_task(settings), settings.seeds[0]
    steps = _steps(baseline(settings, "ELECTRA", task, seed))
    brief = _steps(trained(settings, "ELECTRA", task, System(("COMP",)), seed, "short"))
    if not grid["core"]:
        return [
            f"{len(settings.seeds)} of the paper's 5 seeds",
            f"Baselines trained for {steps} steps or fewer, all else for {brief} from there",
        ]
    further = " more from the Baseline's weights" if grid.get("from_baseline") else ""
    curve = _steps(trained(settings, "ELECTRA", task, System(("COMP",)), seed, "curves"))
    decoders = _steps(baseline(settings, "GPT-2", task, seed))
    taught, briefly = (recipe(settings, task, pupil_recipe(settings, s)) for s in PUPILS)
    return [
        f"{len(settings.seeds)} of the paper's 5 seeds and {steps} steps{further} for the rows of "
        f"{', '.join(grid['core'])} that decide claims, one seed elsewhere (n=1)",
        f"other tasks, models and sets of criteria trained for {brief} steps from the Baseline "
        f"({curve} in Table 7, Figure 6 and for collusion), decoders for {decoders} before "
        "that",
        f"students of {taught['train_rows']} texts and {taught['epochs']} epochs, elsewhere of "
        f"{briefly['train_rows']} texts and {briefly['epochs']}",
        "learning rates warm up and fall linearly where a setting names no γ",
    ]


def _left_out(settings: Settings) -> list[str]:
    """Methods, tasks, sets of criteria and settings that the profile does not have."""
    grid, said = settings.grid, []
    for base in BASES:
        found = tasks(settings, base)
        if len(found) < len(ROLES):
            said.append(f"{base} on {', '.join(t.paper for t in found)} only")
        for task in found:
            rows = measurements.explainers(settings, base, task)
            if len(rows) < len(EXPLAINERS):
                said.append(f"{len(rows)} of {len(EXPLAINERS)} methods for {base} on {task.paper}")
    sets = [f"{task} up to {most}" for task, most in grid["subsets"].items()]
    return [
        *said,
        f"criteria trained together: {', '.join(sets)}, elsewhere one",
        f"{len(grid['settings'])} of 16 settings of learning rate and γ",
    ]


def _steps(spec: RunSpec) -> int:
    rows = spec.data.train_rows
    assert rows is not None
    return -(-rows // spec.optimiser.batch_size) * spec.optimiser.epochs


def about_data(settings: Settings) -> str:
    """Which corpus stands for which set, where rationales come from, what rules dropped."""
    every, sets = tasks(settings, "ELECTRA"), _sets(settings)
    stands = "; ".join(f"{t.corpus} for {t.paper}" for t in sets)
    plausible = settings.roles["plausibility"]
    kind = corpus_report(plausible, settings.source).rationale or ""
    lines = [
        f"In the paper's places: {stands}.",
        f"Plausibility (for MovieReviews): {plausible}, {RATIONALES.get(kind, kind)}.",
    ]
    missing = [t.paper for t in every if not t.spans and transfer_target(settings, t) is None]
    if missing:
        lines.append(f"No second set of the kind of {', '.join(missing)}: no transfer there.")
    for corpus, source in {t.corpus: t.source or settings.source for t in sets}.items():
        report = corpus_report(corpus, source)
        if report.dropped:
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in report.dropped.items())
            lines.append(f"Left out of {corpus} by rule: {dropped}.")
    return "\n\n".join(lines)


def _sets(settings: Settings) -> list[Task]:
    """The tasks, and the sets that models are transferred to."""
    every = tasks(settings, "ELECTRA")
    return [*every, *(t for t in (transfer_target(settings, x) for x in every) if t)]


def about_training(study: Study, results: Results) -> str:
    """How many models there are, and which did not learn their task, by what they are trained for.

    Of models that answer as the Baseline that they begin from nothing is said.
    """
    counts = f"{len(results['models'])} models and {len(results['students'])} students."
    own = [s for s in results["models"]["spec"] if answers_as(s) == s]
    weak = [s for s in own if s in study.untrained - failed([results["models"]])]
    tested = _below_on_test(study)
    if not weak:
        return (
            f"{counts} Every Baseline and every model trained for COMP, SUFF or CONS has learnt "
            f"its task ({RULE}).{tested}"
        )
    why = why_untrained(weak, lambda specs: _by_model(study.settings, own, specs))
    return (
        f"{counts} {why} Nothing follows from them but what they cost in accuracy.{tested}"
    )


def _below_on_test(study: Study) -> str:
    """The Baselines that Table bases shows no better than the majority class."""
    weak = [
        f"{model_name(study.settings, c.base, c.task)} on {c.task.paper}, seed {c.seed}"
        for c in measurements.base_answers(study.settings)
        if not c.task.spans and study.rows[c.spec]["accuracy"] <= study.rows[c.spec]["majority"]
    ]
    said = "Baselines that are not above the majority class on test texts"
    return f" {said}: {'; '.join(weak)}." if weak else ""


def _by_model(settings: Settings, made: Sequence[RunSpec], weak: Sequence[RunSpec]) -> str:
    """ "MiniLM on SNLI: COMP 1 of 3, CONS 2 of 3": how many of the models that were made."""
    papers = {task.corpus: task.paper for task in _sets(settings)}
    total, found = (
        Counter((f"{short_name(s.model.name)} on {papers[s.data.corpus]}",
                 "+".join(criteria_of(s)) or "Baseline") for s in specs)
        for specs in (made, weak)
    )  # fmt: skip
    listed: dict[str, list[str]] = {}
    for (where, name), n in found.items():
        listed.setdefault(where, []).append(f"{name} {n} of {total[where, name]}")
    return "; ".join(f"{where}: {', '.join(names)}" for where, names in listed.items())


def about_simulatability(study: Study) -> str:
    """What the best method is, and what explanations add to a student that has none."""
    table = floor_table(study, trained=True)
    lines = []
    for task in tasks(study.settings, "ELECTRA"):
        rows = table[(table["base"] == "ELECTRA") & (table["task"] == task.paper)]
        if rows.empty:
            lines.append(f"{task.paper}: no teacher is trained")
            continue
        cells = chosen(study.by_explainer, base="ELECTRA", task=task.paper, row=FLOOR)
        floor = 100 * np.mean([study.value(c) for c in cells if study.is_trained(c)])
        best = rows.loc[rows["above the floor"].idxmax()]
        helped = int((rows["above the floor"] > 0).sum())
        most = f", most {best['method']} ({_signed(best['above the floor'])})" if helped else ""
        if (rows["above the floor"] == 0).all():
            most = " or below it: all students score the same"
        lines.append(
            f"{task.paper}: without explanations {floor:.1f} %; seed by seed, {helped} of "
            f"{len(rows)} methods are above that{most}"
        )
    weak = not all(map(study.is_trained, chosen(study.by_explainer, base="ELECTRA", row=FLOOR)))
    return f"Students by task, in points of agreement. {'; '.join(lines)}.{LEFT_OUT * weak}"


def about_criterion(study: Study, criterion: str) -> str:
    """Which method is best by a criterion on each task, and where the learned modules stand, as
    they are and as they began."""
    cells = chosen(study.by_explainer, base="ELECTRA", criterion=criterion)
    frame = study.frame([c for c in cells if c.row != FLOOR])
    lines = []
    for task, rows in frame.groupby("task", sort=False):
        means = _means(rows)
        best = _best(means[~means.index.isin(UNTRAINED)], criterion)
        learned = (*MODULES, *UNTRAINED)
        others = [f"{m} {_number(means[m])}" for m in learned if m in means and m != best]
        value = f" {_number(means[best])}" if best in means else ""
        lines.append(", ".join([f"{task}: {best}{value}", *others]))
    return (
        "The best method of each task, then the learned modules, trained and not. "
        f"{'; '.join(lines)}."
        f"{LEFT_OUT * (not frame['trained'].all())}"
    )


def _means(rows: pd.DataFrame) -> pd.Series:
    """Row → its mean over seeds, of trained models and where there is a number."""
    return rows[rows["trained"]].groupby("row", sort=False)["value"].mean().dropna()


def _best(means: pd.Series, criterion: str) -> str:
    """The best row by a criterion; "none" where no trained model has a number."""
    if means.empty:
        return "none"
    return str(means.idxmin() if criterion == "SUFF" else means.idxmax())


def _tied(means: pd.Series, best: str) -> str:
    """What is said where another row is as good."""
    return " (tied)" if best in means and (means == means[best]).sum() > 1 else ""


def about_collusion(table: pd.DataFrame) -> str:
    """Does the divergence fall by more than what a student that was not there gains?"""
    if table.empty:
        return NOTHING
    lines = []
    for name, rows in table.groupby("outer loss", sort=False):
        first, last = (rows[f"KL, {when} epoch"].mean() for when in ("first", "last"))
        gain = (rows["SIM of a fresh student"] - rows["SIM without explanations"]).mean()
        lines.append(
            f"{name}: the KL goes from {first:.3f} to {last:.3f}, and a fresh student is "
            f"{_signed(gain)} points from one without explanations"
        )
    return f"By outer loss. {'; '.join(lines)}."


def about_words(numbers: pd.DataFrame) -> str:
    """On how many words of the drawn text half of the weight lies, and how many have none."""
    if remark_of(numbers):
        return ""
    words = numbers[numbers["what"] == "score"]
    lines = []
    for name, rows in words.groupby("explainer", sort=False):
        size = np.sort(rows["value"].abs().to_numpy())[::-1]
        half = int(np.searchsorted(np.cumsum(size), size.sum() / 2)) + 1
        lines.append(f"{name} {half} of {len(size)} words ({int((size == 0).sum())} have none)")
    return f"Half of the weight lies on: {'; '.join(lines)}."


def about_questions(numbers: pd.DataFrame) -> str:
    """How alike the words of the passage are scored under both questions, by method."""
    if remark_of(numbers):
        return ""
    passage = numbers[numbers["segment"] == 1]
    names = passage["explainer"].str.partition(": ")
    lines = []
    for name, rows in passage.groupby(names[0], sort=False):
        first, second = (part["value"] for _, part in rows.groupby(names[2], sort=False))
        lines.append(f"{name} {np.corrcoef(first, second)[0, 1]:.2f}")
    return f"Correlation of the passage's scores under the two questions: {', '.join(lines)}."


def about_costs(study: Study) -> str:
    """What each single criterion costs, by task."""
    lines = []
    for task in tasks(study.settings, "ELECTRA"):
        costs = {c: study.cost(task.paper, c) for c in CRITERIA}
        said = ", ".join(
            f"{c} {_signed(float(np.mean(found['differences'])))}"
            for c, found in costs.items()
            if found
        )
        lines.append(f"{task.paper}: {said}")
    return f"Points against {compared_with(study.settings)}. {'; '.join(lines)}."


def compared_with(settings: Settings) -> str:
    """What a model's accuracy is compared with in Table 5."""
    longer = measurements.continued_answers(settings)
    where = "; but for SIM alone, it is trained on for as many steps" if longer else ""
    return f"the Baseline of the same seeds{where}"


def about_important(study: Study) -> str:
    """Who marks the most and the fewest tokens, by task."""
    frame = study.frame(measurements.important_tokens(study.settings))
    lines = []
    for task, rows in frame.groupby("task", sort=False):
        means = rows.groupby(["row", "criterion"])["value"].mean().groupby("row").mean().dropna()
        if means.empty:
            continue
        least = f"{means.idxmin()} ({means.min():.2f})"
        most = f", most {means.idxmax()} ({means.max():.2f})"
        lines.append(f"{task}: {f'fewest {least}{most}' if len(means) > 1 else f'only {least}'}")
    said = f"Share of tokens marked, mean over both models. {'; '.join(lines)}."
    return said if lines else NOTHING


def about_plausible(study: Study) -> str:
    """The most and the least plausible rows of Table 6."""
    frame = study.frame(measurements.plausible(study.settings))
    means = frame.groupby("row")["value"].mean().sort_values(ascending=False)
    first, second, *_, last = (f"{row} ({value:.2f})" for row, value in means.items())
    return f"Most plausible: {first}, then {second}; least: {last}. Chance is .50."


def about_settings(study: Study) -> str:
    """The best setting of each criterion among those that were tried."""
    frame = study.frame(measurements.tuned(study.settings))
    lines = []
    for criterion in CRITERIA:
        rows = frame[frame["criterion"] == criterion]
        means = rows.groupby("row", sort=False)["value"].mean().dropna()
        best = _best(means, criterion)
        named = best.replace("|", ", ").replace("gamma", "γ")
        lines.append(f"{criterion} {named}{_tied(means, best)}")
    return f"Best of {frame['row'].nunique()} settings: {'; '.join(lines)}."


def about_other_bases(study: Study) -> str:
    """Which row is best by each criterion on the other base models."""
    cells = [c for c in study.by_explainer if c.base != BASES[0] and c.row != FLOOR]
    frame, lines = study.frame(cells), []
    for (base, task), rows in frame.groupby(["base", "task"], sort=False):
        best = []
        for criterion in CRITERIA:
            means = _means(rows[rows["criterion"] == criterion])
            name = _best(means, criterion)
            best.append(f"{criterion} {name}{_tied(means, name)}")
        lines.append(f"{model_name(study.settings, str(base))}, {task}: {', '.join(best)}")
    left_out = LEFT_OUT * (not frame["trained"].all())
    return f"Best by criterion. {'; '.join(lines)}.{left_out}"


def about_gains(study: Study) -> str:
    """How many cells of Figure 5 are negative, and which sets lose most."""
    gains = study.subset_gains
    others = gains[gains["row"] != gains["criterion"]]
    cells = others.groupby(["criterion", "row"])["gain"].mean().dropna()
    if cells.empty:
        return NOTHING
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
    means = last.groupby(["criterion", "level"])["loss"].mean().dropna()
    best = ", ".join(
        f"{c} {means[c].idxmin()} ({means[c].min():.4f}; the highest is {means[c].max():.4f})"
        for c in CRITERIA
        if c in means
    )
    return f"Lowest loss of the last epoch: {best}." if best else NOTHING


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
    if remark_of(times):
        return ""
    found = ratios(times, "system", "Baseline")
    said = ", ".join(f"{c} {np.median(found[c]):.1f}" for c in CRITERIA)
    return (
        f"Times the Baseline at {times['texts'].max():,} texts: {said}. Pairs are made within a "
        f"batch, so that the cost of consistency grows with the texts and not with their square."
    )


def about_explaining_times(times: pd.DataFrame) -> str:
    """How many times IvRA's explaining time the other methods take."""
    if remark_of(times):
        return ""
    found = ratios(times, "method", SPARSEMAX)
    said = ", ".join(f"{name} {np.median(r):.1f}" for name, r in found.items())
    return f"Times {SPARSEMAX} at {times['texts'].max():,} texts: {said}."


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")
