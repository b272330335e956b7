"""Which numbers do the notebook's sentences tell?

What rests on a model that has not learnt its task is left out, but of costs. Each function returns
nothing, {}, where there is nothing to tell.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data import report_or_none
from erlib.papers.holes import remark_of
from erlib.papers.ivra import systems
from erlib.papers.ivra.audit import collusion_table
from erlib.papers.ivra.cells import BY_CRITERION
from erlib.papers.ivra.costs import at_the_largest, explaining_times, training_times
from erlib.papers.ivra.figures import curves, gains, shares, transfer_gains
from erlib.papers.ivra.systems import BASES, CRITERIA, FLOOR, SPARSEMAX, UNTRAINED, subset_name
from erlib.papers.means import Facts, listed, means
from erlib.papers.study import Study

SINGLE = {subset_name((criterion,)): criterion for criterion in CRITERIA}
RATIONALES = {
    "human": "marked by annotators",
    "lexicon": (
        "lexicon rationales: words whose human-rated valence agrees with the label, after "
        "negation; nobody marked them in these texts"
    ),
}


def data(study: Study) -> Facts:
    """Which corpus stands for which set, whence the rationales, where there is no transfer."""
    settings, every = study.settings, systems.sets(study.settings)
    plausible = settings.roles["plausibility"]
    report = report_or_none(plausible, settings.source_of(plausible))
    kind = (report and report.rationale) or ""
    classes = [x.task for x in systems.learners(settings, BASES[0]) if not x.task.spans]
    alone = [t.paper for t in classes if systems.transfer_target(settings, t) is None]
    return {
        "stands": ", ".join(f"{task.corpus} for {task.paper}" for task in every),
        "sources": {task.corpus: systems.source_of(settings, task) for task in every},
        "plausible": plausible,
        "rationales": RATIONALES.get(kind, kind),
        "alone": ", ".join(alone) or "none",
    }


def simulatability(study: Study) -> Facts:
    """What students reach without explanations, and how many methods lift them above that."""
    above = means(study, "table-floor", "above the floor", start=BASES[0])
    if above.empty:
        return {}
    best = above.stack().idxmax()
    return {
        "floors": listed(100 * means(study, "table1").loc[f"{BASES[0]}|{FLOOR}"], ".1f"),
        "above": int((above > 0).sum().sum()),
        "cells": int(above.notna().sum().sum()),
        "most": float(above.max().max()),
        "best": " on ".join(map(short, best)),
    }


def criterion(study: Study, name: str) -> Facts:
    """Who is best by a criterion on each task, and how often training improves IvRA's module on
    what it was at its start."""
    table, sign = BY_CRITERION[name][0], -1 if name == "SUFF" else 1
    found = sign * means(study, table, start=BASES[0]).rename(index=short)
    begun = [(UNTRAINED[row], row) for row in UNTRAINED if row in found.index]
    if found.empty:
        return {}
    moved = [found.loc[a] - found.loc[b] for a, b in begun if a in found.index]
    changes = pd.concat(moved).dropna() if moved else pd.Series(dtype=float)
    best = found.drop(index=list(UNTRAINED), errors="ignore")
    return {
        "best": "; ".join(
            f"{task} {best[task].idxmax()} ({sign * best[task].max():.3f})"
            for task in best
            if best[task].notna().any()
        ),
        "better": int((changes > 0).sum()),
        "pairs": len(changes),
    }


def collusion(study: Study) -> Facts:
    """Does the divergence fall by more than what a student that was not there gains?"""
    table = collusion_table(study)
    if table.empty:
        return {}
    fresh = table["SIM of a fresh student"] - table["SIM without explanations"]
    found = table.assign(gain=fresh).groupby("outer loss", sort=False)
    return {
        "losses": "; ".join(
            f"{name}: KL from {rows['KL, first epoch'].mean():.3f} to "
            f"{rows['KL, last epoch'].mean():.3f}, fresh students {rows['gain'].mean():+.1f} points"
            for name, rows in found
        )
    }


def words(numbers: pd.DataFrame) -> Facts:
    """On how many words of the drawn text half of the weight lies, and how many have none."""
    if remark_of(numbers):
        return {}
    found = {}
    for name, rows in numbers[numbers["what"] == "score"].groupby("explainer", sort=False):
        size = np.sort(rows["value"].abs().to_numpy())[::-1]
        half = int(np.searchsorted(np.cumsum(size), size.sum() / 2)) + 1
        found[str(name)] = f"{half} of {len(size)} words ({int((size == 0).sum())} have none)"
    return {"half": "; ".join(f"{name} {said}" for name, said in found.items())}


def questions(numbers: pd.DataFrame) -> Facts:
    """How alike the words of the passage are scored under both questions, by method."""
    if remark_of(numbers):
        return {}
    passage = numbers[numbers["segment"] == 1]
    names = passage["explainer"].str.partition(": ")
    found = {}
    for name, rows in passage.groupby(names[0], sort=False):
        first, second = (part["value"] for _, part in rows.groupby(names[2], sort=False))
        found[name] = np.corrcoef(first, second)[0, 1]
    return {"correlations": listed(found, ".2f")}


def costs(study: Study) -> Facts:
    """What each single criterion costs in accuracy, by task; of every model."""
    found = means(study, "table5", "accuracy_delta_vs_baseline", every=True)
    by_task = found[found.index.isin(SINGLE)].rename(index=SINGLE)
    return {"costs": "; ".join(f"{t}: {listed(by_task[t], '+.1f')}" for t in by_task)}


def together(study: Study) -> Facts:
    """How many gains of Figure 5 are negative, and the set with the largest mean loss."""
    found = gains(study)
    found = found[found["row"].map(SINGLE) != found["criterion"]]
    cells = found.groupby(["criterion", "row"])["gain"].mean().dropna()
    if cells.empty:
        return {}
    negative, worst = int((cells < 0).sum()), cells.groupby("row").mean().idxmin()
    return {"negative": negative, "cells": len(cells), "worst": worst}


def levels(study: Study) -> Facts:
    """Which coefficients alone, or all, end with the lowest loss, by criterion."""
    found = curves(study)
    last = found[found["epoch"] == found["epoch"].max()]
    by_level = last.groupby(["criterion", "level"], sort=False)["loss"].mean().dropna()
    lowest = {c: rows.droplevel(0) for c, rows in by_level.groupby(level=0, sort=False)}
    return lowest and {
        "lowest": "; ".join(
            f"{c} {rows.idxmin()} ({rows.min():.4f}; the highest is {rows.max():.4f})"
            for c, rows in lowest.items()
        )
    }


def marked(study: Study) -> Facts:
    """Who marks the fewest and the most tokens, by task; a criterion counts once."""
    by_seed = shares(study).groupby(["task", "row", "criterion"], sort=False)["value"].mean()
    by_row = by_seed.groupby(level=[0, 1], sort=False).mean().dropna()
    said = [
        f"{task}: fewest {rows.idxmin()[1]} ({rows.min():.2f}), most {rows.idxmax()[1]} "
        f"({rows.max():.2f})"
        for task, rows in by_row.groupby(level=0, sort=False)
    ]
    return {"shares": "; ".join(said)} if said else {}


def transfer(study: Study) -> Facts:
    """The gains behind Figure 8, and over which sets they are means."""
    targets = [task.corpus for task in systems.sets(study.settings) if task.paper != task.kind]
    found = transfer_gains(study).groupby("criterion", sort=False)[["gain", "difference"]].mean()
    return {
        "targets": ", ".join(targets),
        "gains": ", ".join(
            f"{c} {row['gain']:+.1f} % (difference {row['difference']:+.3f})"
            for c, row in found.iterrows()
        ),
    }


def plausible(study: Study) -> Facts:
    """The most and the least plausible rows of Table 6; of every model."""
    found = means(study, "table6", every=True)
    if len(found) < 3:
        return {}
    order = found.iloc[:, 0].sort_values(ascending=False)
    first, second, *_, last = (f"{row} ({value:.2f})" for row, value in order.items())
    return {"first": first, "second": second, "last": last}


def tuned(study: Study) -> Facts:
    """The best setting of each criterion among those that were tried; of every model."""
    found = means(study, "table7", every=True)
    best = {c: _best(found[c], c) for c in found}
    said = "; ".join(f"{c} {name}" for c, name in best.items())
    return {"best": said.replace("|gamma=", ", γ "), "tried": len(found)} if best else {}


def other_bases(study: Study) -> Facts:
    """Which row is best by each criterion for the other base models."""
    said = []
    for base in BASES[1:]:
        best: dict[str, list[str]] = {}
        for name, (_, table) in BY_CRITERION.items():
            found = means(study, table, start=base).drop(f"{base}|{FLOOR}", errors="ignore")
            for task in found:
                best.setdefault(task, []).append(f"{name} {short(_best(found[task], name))}")
        model = systems.model_name(study.settings, base)
        said += [f"{model}, {task}: {', '.join(rows)}" for task, rows in best.items()]
    return {"best": "; ".join(said)} if said else {}


def training(study: Study) -> Facts:
    """How many times the Baseline's training time each criterion takes."""
    return _times(training_times(study), "Baseline")


def explaining(study: Study) -> Facts:
    """How many times IvRA's explaining time the other methods take."""
    return _times(explaining_times(study), SPARSEMAX)


def _times(times: pd.DataFrame, reference: str) -> Facts:
    if remark_of(times):
        return {}
    wide = at_the_largest(times)
    ratios = wide.div(wide[reference], axis=0).drop(columns=reference).median()
    return {"texts": times["texts"].max(), "times": listed(ratios, ".1f")}


def short(row: str) -> str:
    """A row without its base model."""
    return row.partition("|")[2] or row


def _best(values: pd.Series, criterion: str) -> str:
    """The best row by a criterion; ties are said."""
    values = values.dropna()
    best = values.idxmin() if criterion == "SUFF" else values.idxmax()
    tied = " (tied)" if (values == values[best]).sum() > 1 else ""
    return f"{best}{tied}"
