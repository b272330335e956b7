"""Which sentences do the numbers themselves write?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from erlib.metrics.cartography import GROUPS
from erlib.models.jwa import GLOVE
from erlib.papers.agreement.audit import EXPLAINING, ONE, PREDICTING, SIX, audit
from erlib.papers.agreement.correlations import correlations, of_whole_seeds
from erlib.papers.agreement.groups import grouped
from erlib.papers.agreement.study import NAMES, SAME, Study
from erlib.papers.agreement.systems import (
    MODELS,
    VARIANTS,
    System,
    base_score,
    core_tasks,
    searched,
    seeds_of,
    systems,
    tasks,
    tried,
    within_reach,
)
from erlib.papers.agreement.tables import (
    asked_for,
    base_runs,
    mean_agreement,
    stands_for,
    table_5,
    texts_used,
)
from erlib.papers.agreement.vectors import glove_file
from erlib.papers.trained import why_untrained
from erlib.parameters import Settings

SEEDS, EPOCHS, LENGTH, POINTS = 5, 5, 200, 50  # of the paper


def reduced(settings: Settings, *, dropout: bool = False) -> str:
    """What this profile has less of than the paper, in one line; empty where nothing is.

    `dropout`: of the Transformer's explanations with dropout on: fewer texts, but the whole path.
    """
    grid, models = settings.grid, settings.grid["models"]
    parts = [
        f"{_span(counts, ',')} {what} of a set"
        for rows, split, what in (
            ("dropout_rows" if dropout else "explained_rows", "test", "explained test texts"),
            ("test_rows", "test", "predicted test texts"),
            ("dev_rows", "dev", "validation texts"),
            ("train_rows", "train", "training texts"),
        )
        if (counts := _texts(settings, ("DBERT",) if dropout else MODELS, rows, split))
    ]
    curved = {m: _texts(settings, (m,), "curvature_rows", "test") for m in MODELS}
    if any(curved.values()) and not dropout:
        said = " and ".join(f"{_span(n, ',')} ({m})" for m, n in curved.items() if n)
        parts.append(f"curvature on {said} test texts of a set")
    if grid["max_length"] < LENGTH:
        parts.append(f"{grid['max_length']} tokens of a text")
    if grid["epochs"] < EPOCHS:
        parts.append(f"{grid['epochs']} epochs of {EPOCHS}")
    if len(settings.seeds) < SEEDS:
        parts.append(_seeds(settings))
    if any(len(grid["lambdas"][v]) < 6 for v in VARIANTS[1:]):
        parts.append("fewer λ")
    if models["DBERT"]["name"] == "minilm":
        layers = models["DBERT"].get("layers")
        cut = f" with {layers} layer{'s' if layers > 1 else ''}" if layers else ""
        parts.append(f"MiniLM{cut} in place of DistilBERT")
    if _short_path(settings) and not dropout:
        parts.append(f"{grid['points']} points of integrated gradients' path in place of {POINTS}")
    if models["JWA"]["norm"] != "exact" and not dropout:
        parts.append("Hutchinson's estimate for JWA's grad norm, too")
    return ", ".join(parts)


def _texts(settings: Settings, models: Sequence[str], rows: str, split: str) -> list[int]:
    """Texts that there really are of each model and set, where the profile does not ask for all."""
    asked = {(m, t): asked_for(settings, m, t, rows) for m in models for t in tasks(settings)}
    return [texts_used(settings, t, split, n) for (_, t), n in asked.items() if n is not None]


def _short_path(settings: Settings) -> bool:
    """Has integrated gradients fewer points than the paper's, which it has under dropout?"""
    return settings.grid.get("points", POINTS) < POINTS


def _seeds(settings: Settings) -> str:
    """ "3 seeds of 5 on SST (JWA) and TREC (DBERT), one elsewhere (n=1)"."""
    if len(settings.seeds) == 1:
        return f"one seed of {SEEDS}"
    where = [f"{', '.join(t.paper for t in core_tasks(settings, m))} ({m})" for m in MODELS]
    wide = [
        v
        for v in VARIANTS
        if len(seeds_of(settings, _core_cell(settings, v))) < len(settings.seeds)
    ]
    also = f" and of {', '.join(wide)}" if wide else ""
    return f"{len(settings.seeds)} seeds of {SEEDS} on {' and '.join(where)}, one elsewhere{also}"


def _core_cell(settings: Settings, variant: str) -> System:
    return System("DBERT", core_tasks(settings, "DBERT")[0], variant)


def about_data(settings: Settings) -> str:
    """Which corpora stand in, how texts are read, and where JWA's vectors come from."""
    lines = []
    if names := stands_for(settings):
        said = ", ".join(f"{corpus} for {paper}" for corpus, paper in names.items())
        lines.append(
            f"Stand-ins: {said}. They are binary tasks on single texts, as the paper's are, and "
            "nothing more is claimed of them."
        )
    lines.append(
        "Words without a letter or digit are dropped, the rest lower-cased; texts of fewer than "
        "three words are left out. The Transformer reads no [CLS] or [SEP]: its head sees the "
        "first word-piece."
    )
    file = glove_file()
    start = (
        f"the word vectors of {file.name}"
        if file
        else f"the packaged word vectors ({GLOVE}), since ERLIB_GLOVE names no other file"
    )
    lines.append(
        f"JWA starts from {start}. Its BiLSTM has half of the embedding's size in each direction, "
        "which tying needs; the paper's count of its parameters (1,714,951) fits an LSTM of one "
        "direction, its text does not."
    )
    return "\n\n".join(lines)


def about_training(study: Study) -> str:
    """How many runs there are, which did not learn the task, and how well the core ones did."""
    runs = study.runs
    on_core = [run.set in study.core(run.model) for run in runs.itertuples()]
    core = runs[np.array(on_core) & (runs["variant"] == "Base")]
    margins = [
        f"{model} {_span(100 * group['margin'], '.0f')}"
        for model, group in core.groupby("model", sort=False)
    ]
    text = (
        f"{len(runs)} runs stand behind the tables. Base on core sets is above the majority class "
        f"by so many points of validation accuracy: {', '.join(margins)}."
    )
    weak = runs.loc[~runs["trained"], "spec"]
    if weak.empty:
        return text
    why = why_untrained(list(weak), lambda specs: _untrained(runs[runs["spec"].isin(specs)]))
    return f"{text} {why} Nothing follows from them."


def _untrained(runs: pd.DataFrame) -> str:
    """ "JWA SST Base seed 1, …": those of these runs that are not trained."""
    weak = runs[~runs["trained"]].itertuples()
    return ", ".join(f"{r.model} {r.set} {r.variant} seed {r.seed}" for r in weak)


def _left_out(runs: pd.DataFrame, *, pairs: bool = False) -> str:
    """The sentence on those of these runs that a paragraph leaves out; empty if there are none.

    `pairs`: with the run that they are compared with.
    """
    also = ", with the other run of the pair" if pairs else ""
    names = _untrained(runs)
    return f" Left out{also}, since they are not trained: {names}." if names else ""


def _span(values: Sequence[float] | pd.Series, digits: str) -> str:
    low, high = (f"{v:{digits}}".replace("-", "−") for v in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def about_search(study: Study) -> str:
    """Where λ was searched, what was tried, and where no λ was close enough."""
    settings, results = study.settings, study.results
    lines = []
    for s in searched(settings):
        scores = ", ".join(f"λ {w:g}: {f1:.2f}" for w, f1 in tried(settings, results, s))
        base = base_score(settings, results, s)
        missed = (
            "" if within_reach(settings, results, s) else "; none close enough, the weakest used"
        )
        lines.append(
            f"| {s.model} {s.task.paper} | {s.variant} | {base:.2f} | {scores}{missed} | "
            f"{study.weight(s):g} |"
        )
    head = "| searched on | variant | F1 of Base | F1 tried | chosen |\n|---|---|---|---|---|\n"
    text = head + "\n".join(lines)
    if any(s not in searched(settings) for s in systems(settings, VARIANTS[1:])):
        text += "\n\nThe other cells take the λ of their model's core set."
    return text


def about_pairs(study: Study, model: str) -> str:
    """Is r above τ, which pair agrees best, do DeepLIFT and DeepSHAP differ, what was undefined?"""
    every = base_runs(study, model)
    runs = every[every["trained"]]
    if runs.empty:
        return f"Nothing is concluded from this table.{_left_out(every)}"
    pairs = pd.concat([study.pairs(spec) for spec in runs["spec"]])
    texts = pd.concat([study.by_text(spec) for spec in runs["spec"]])
    same = texts.loc[texts["pair"] == SAME, "pearson"].min()
    means = pairs.groupby("pair", sort=False)[["kendall", "pearson"]].mean().drop(index=SAME)
    others = pairs.drop(index=SAME)
    above = int((others["pearson"] > others["kendall"]).sum())
    best = means["pearson"].idxmax()
    skipped = int(pairs["skipped"].sum())
    return (
        f"r is above τ in {above} of {len(others)} cells of set, seed and pair ({SAME} aside). In "
        "evaluation mode DeepLIFT and DeepSHAP are identical by construction (smallest r of a text "
        f"{same:.6f}). Of the other pairs {best} agrees best (r = "
        f"{means.loc[best, 'pearson']:.2f}). {skipped} of {len(texts):,} correlations are "
        "undefined (a constant explanation) and left out."
        f"{_left_out(every)}\n\n{_gaps(texts)}"
    )


def _gaps(texts: pd.DataFrame) -> str:
    """Do scores add up to what they explain? The signed sums, before absolute values."""
    sides = [texts[[f"method_{s}", f"gap_{s}"]].set_axis(["method", "gap"], axis=1) for s in "ab"]
    sizes = pd.concat(sides)["gap"].abs().groupby(pd.concat(sides)["method"]).median()
    said = ", ".join(f"{name} {sizes[key]:.3f}" for key, name in NAMES.items())
    return f"Median completeness gap |Σ scores − (f(x) − f(baseline))|: {said}."


def about_tying(study: Study) -> str:
    """Where Tying and Conicity raise r, of seeds whose models are both trained."""
    lines = []
    for variant in VARIANTS[1:]:
        changes = {}
        for model in MODELS:
            for task in study.tasks:
                pairs = study.of_trained.paired(model, task.paper, "Base", variant)
                r = [[mean_agreement(study, s)["pearson_r"] for s in pair] for pair in pairs]
                if r:
                    changes[f"{model} {task.paper}"] = float(np.diff(r).mean())
        up = sum(change > 0 for change in changes.values())
        shown = ", ".join(f"{name} {change:+.2f}" for name, change in changes.items())
        said = f": {shown}".replace("-", "−") if shown else ""
        lines.append(f"{variant} raises r in {up} of {len(changes)} cells{said}.")
    return "\n\n".join(lines) + _left_out(study.main, pairs=True)


def about_audit(study: Study) -> str:
    """What leaving dropout on does to DeepLIFT and DeepSHAP, and what the other switches do."""
    runs = study.runs[study.runs["model"] == "DBERT"]
    on_audited = runs["set"].isin(study.settings.grid["audit"])
    left_out = _left_out(runs[(runs["variant"] == "Base") | on_audited], pairs=True)
    if base_runs(study.of_trained, "DBERT").empty:
        return f"Nothing is concluded from this table.{left_out}"
    table = audit(study.of_trained)
    explained = table[(table["switch"] == EXPLAINING) & (table["system"] == "DBERT Base")]
    one, six = (
        explained.loc[explained["measure"] == m, ["here", "switched", "paper"]].mean()
        for m in (ONE, SIX)
    )
    text = (
        f"In evaluation mode DeepLIFT and DeepSHAP are the same function (r = {one['here']:.3f}); "
        f"with dropout left on they agree with r = {one['switched']:.2f}, where the paper prints "
        f"{one['paper']:.2f} (means over sets). Over all six pairs dropout"
        f"{' with a longer path' if _short_path(study.settings) else ''} moves r from "
        f"{six['here']:.2f} to {six['switched']:.2f}; the paper prints {six['paper']:.2f}."
    )
    if one["here"] > 1 - 1e-6 and one["switched"] < 1 - 1e-3:
        text += (
            " That these two disagree in the paper's Table 1b is therefore noise from dropout and "
            "not a property of the methods."
        )
    others = [
        f"{row.switch} on {row.set} {row.here:.2f} to {row.switched:.2f}"
        for row in table[~table["switch"].isin([EXPLAINING, PREDICTING])].itertuples()
    ]
    predicted = [
        f"mean {row.measure} on {row.set} {row.here:.3f} to {row.switched:.3f}"
        for row in table[table["switch"] == PREDICTING].itertuples()
    ]
    moved = [
        f"{what}: {'; '.join(changes)}."
        for what, changes in (
            ("Trained with another regulariser, r moves", others),
            ("Predicted with dropout on", predicted),
        )
        if changes
    ]
    return f"{text}\n\n{' '.join(moved)}{left_out}"


def audit_caption(settings: Settings) -> str:
    """What the audit compares, and what else differs in its first rows."""
    text = (
        "One switch at a time: this notebook, the same with the switch turned, and what the paper "
        "prints. Dropout while explaining: the kept models on the texts of the table above; while "
        "predicting: means of the maps; the rest: last epoch."
    )
    if _short_path(settings):
        text += (
            f" With dropout integrated gradients also has {POINTS} points of its path, without it "
            f"{settings.grid['points']}: in the rows of all six pairs this is a second switch."
        )
    return text


def about_groups(study: Study) -> str:
    """How many texts are in each group, and which agrees most."""
    left_out = _left_out(study.compared("DBERT"), pairs=True)
    if study.of_trained.compared("DBERT").empty:
        return f"Nothing is concluded from this table.{left_out}"
    texts = grouped(study.of_trained, "DBERT")
    base = texts[texts["variant"] == "Base"]
    counts = base["group"].value_counts().reindex(GROUPS, fill_value=0)
    means = base.groupby("group")["pearson"].mean()
    sizes = ", ".join(f"{counts[group]} {group}" for group in GROUPS)
    shown = ", ".join(f"{group} {means[group]:.2f}" for group in GROUPS if group in means)
    return (
        f"Base, its sets and seeds together: {sizes}, and {len(base) - counts.sum()} texts in no "
        f"group. Mean r: {shown}.{left_out}"
    )


def about_curvature(study: Study) -> str:
    """Whether grad norm and min dist go with confidence, and on how many texts that rests."""
    left_out, trained = _left_out(study.compared("DBERT"), pairs=True), study.of_trained
    if trained.compared("DBERT").empty:
        return f"Nothing is concluded from this table.{left_out}"
    found = of_whole_seeds(correlations(trained, "DBERT"))
    if found.empty:
        return f"No seed has both models on every set, so that there is no mean.{left_out}"
    r = table_5(trained, "DBERT").long.set_index(["row", "column"])["ours"]
    parts = [
        f"{name} {r[f'{name}|confidence', 'Base']:+.2f} (Base) and "
        f"{r[f'{name}|confidence', 'Tying']:+.2f} (Tying)"
        for name in ("Grad norm", "Min dist")
    ]
    text = (
        f"Correlation with confidence, mean over {', '.join(found['set'].unique())}, "
        f"{_span(found['texts'], 'd')} texts a set: {'; '.join(parts)}."
    )
    return text.replace("-", "−") + left_out
