"""What do the paper's figures show?

Each function returns the figure and the numbers behind it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from erlib.papers.er_lens import kendall
from erlib.papers.er_lens.evaluations import LONG, in_table_2
from erlib.papers.er_lens.reads import MEASURES, erasure_curves, layer_scores
from erlib.papers.er_lens.recipe import bounds
from erlib.papers.er_lens.scatter import titled
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    DECOMPOSITIONS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    system_named,
)
from erlib.papers.study import Study
from erlib.reports.panels import Drawn, band, boxes, heat_map, legend_below, note, nothing, panels
from erlib.reports.style import (
    BLACK,
    GREY,
    SIGNED,
    SIZED,
    VERMILION,
    figure_style,
    new_figure,
    palette,
)

CHANCE = 50  # AUC x 100 of scores that know nothing of the rationale
PAIRS = {  # of Figures 3 and 9
    "BS-BS": ("two Baselines", GREY),
    "BS-ER": ("Baseline and the system", VERMILION),
}
# Where the labels of a sweep stand, so that those of neighbours do not lie on each other: the
# highest point's, the others', the lowest's.
ABOVE, BESIDE = ("center", "bottom", (0, 6)), ("left", "center", (9, 0))
BELOW = ("center", "top", (0, -6))


def f1_boxes(study: Study, without: Sequence[str] = ()) -> Drawn:
    """Figures 2 and 11: F1 of every seed, by system and set."""
    systems = [system for system in CLASSIFIERS if system not in without]
    sets, columns = in_table_2(study.settings), 3
    numbers = study.numbers(study.of("table2")).dropna(subset="value")
    data = numbers.rename(columns={"row": "system"}).query("system in @systems")
    data = data.assign(set=data["column"].map({test.column: test.name for test in sets}))
    data = data[["system", "set", "value", "seed"]]
    figure, axes = panels(len(sets), columns, width=9.6, height=5.6)
    with figure_style():
        for i, (axis, test) in enumerate(zip(axes, sets, strict=True)):
            found = data[data["set"] == test.name]
            boxes(axis, {s: found.loc[found["system"] == s, "value"] for s in systems})
            axis.set_yticks(range(len(systems)), [] if i % columns else systems)
            axis.set(title=titled(test), xlabel="F1-macro (%)")
    return figure, data.reset_index(drop=True)


def histograms(study: Study, where: str, systems: Sequence[str] = CLASSIFIERS[1:]) -> Drawn:
    """Figures 3 and 9: Kendall's τ of a technique between systems, on one of the annotated sets."""
    data = kendall.histogram_table(study, where, systems)
    techniques = [x for x in TECHNIQUES if x in set(data["technique"])] or list(GUIDES)
    rows, columns = len(systems), len(techniques)
    figure, axes = new_figure(rows, columns, width=10.5, height=1.15 * rows + 0.9)
    bins = np.linspace(-1, 1, 41)
    left = bins[bins <= min([-0.2, *data["tau"].dropna()])][-1]
    with figure_style():
        for row, system in zip(axes, systems, strict=True):
            row[0].set_ylabel(system, rotation=0, ha="right", va="center")
            for axis, technique in zip(row, techniques, strict=True):
                cell = data[(data["system"] == system) & (data["technique"] == technique)]
                means = _histogram(axis, cell, bins)
                above = f"{technique}\n" if row is axes[0] else ""
                axis.set_title(above + means, fontsize=8.5)
                axis.set(xlim=(left, 1), xticks=[0, 0.5, 1], yticks=[])
                axis.grid(False)
                if row is axes[-1]:
                    axis.set_xlabel("Kendall's τ", fontsize=9)
                else:
                    axis.set_xticklabels([])
        legend_below(figure, axes[0][0])
    return figure, data


def _histogram(axis: Axes, cell: pd.DataFrame, bins: np.ndarray) -> str:
    """τ of both pairs of models; their means as text."""
    said = []
    for pair, (label, colour) in PAIRS.items():
        taus = cell.loc[cell["pair"] == pair, "tau"].dropna()
        if len(taus):
            axis.hist(
                taus, bins.tolist(), weights=np.full(len(taus), 1 / len(taus)),
                histtype="stepfilled", color=colour, alpha=0.55, label=label,
            )  # fmt: skip
            axis.axvline(taus.mean(), color=colour, linewidth=1.4)
            said.append(f"{taus.mean():.2f}")
    if "BS-ER" not in set(cell["pair"]):
        note(axis, "not\nmeasured")
    return " | ".join(said)


def layer_maps(
    study: Study, where: str, systems: Sequence[str] = (*SYSTEMS,), techniques: Sequence[str] = ()
) -> Drawn:
    """Figures 4 and 13: plausibility by layer on one of the annotated sets, a map [system, layer]
    of each technique, or of all that have layers."""
    data = layer_scores(study, where)
    techniques = techniques or [x for x in TECHNIQUES if x in set(data["technique"])]
    data = data[data["system"].isin(systems) & data["technique"].isin(techniques)]
    if data.empty:
        return nothing("no text has an AUC"), data
    columns, tall = 2, 0.33 * len(systems) + 1.0
    height = -(-len(techniques) // columns) * tall + 0.3
    figure, axes = panels(len(techniques), columns, width=10.5, height=height)
    reach = (data["value"] - CHANCE).abs().max()
    scale = {"cmap": SIGNED, "vmin": CHANCE - reach, "vmax": CHANCE + reach,
             "cbar_kws": {"label": f"AUC x 100 (white: {CHANCE}, chance)"}}  # fmt: skip
    with figure_style():
        for i, (axis, technique) in enumerate(zip(axes, techniques, strict=True)):
            cells = data[data["technique"] == technique]
            if cells.empty:
                axis.set(title=f"{technique}: undefined", xticks=[], yticks=[])
                continue
            means = cells.pivot_table(index="system", columns="layer", values="value")
            means = means.reindex(systems)  # a row stays empty where a system was not measured
            heat_map(axis, means, ".0f", size=8.5, cbar=i % columns == columns - 1, **scale)
            new = " (new)" if where == LONG and technique in DECOMPOSITIONS else ""
            axis.set(xlabel="layer", ylabel="", title=f"{technique}{new}")
    return figure, data


def sweep(study: Study) -> pd.DataFrame:
    """Of every λ, guide and seed both losses on dev: guide, weight, seed, task, explanation."""
    numbers = study.numbers(c for c in study.of("figure-5") if " at λ=" in c.row)
    split, losses = numbers["row"].str.split(" at λ="), ["task", "explanation"]
    numbers["guide"] = [SYSTEMS[name].guide for name in split.str[0]]
    numbers["weight"] = split.str[1].astype(float)
    keys = ["weight", "guide", "seed"]
    wide = numbers.pivot(index=keys, columns="metric", values="value").dropna()
    wide = wide.rename(columns={"cross_entropy": "task", "expl_loss": "explanation"})
    return wide.rename_axis(columns=None).reset_index()[["guide", "weight", "seed", *losses]]


def loss_curves(study: Study, *guides: str) -> Drawn:
    """Figures 5 and 12: cross-entropy against explanation loss on dev as λ rises."""
    data = sweep(study)
    data = data[data["guide"].isin(guides)].reset_index(drop=True)
    figure, axes = panels(len(guides), len(guides), width=4.4 * len(guides), height=3.8)
    with figure_style():
        for axis, guide in zip(axes, guides, strict=True):
            if axis is not axes[0]:
                axis.sharey(axes[0])
            system = system_named("joint", guide)
            _by_weight(axis, data[data["guide"] == guide], palette([system])[system])
            bound = bounds(study, guide).dev
            for value, style, name in ((bound, "--", "b_val"), (1.1 * bound, ":", "1.1 b_val")):
                axis.axvline(value, color=BLACK, linestyle=style, linewidth=1, label=name)
            axis.margins(x=0.18, y=0.15)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=system, xlabel="explanation loss on dev", ylabel="cross-entropy on dev")
        legend_below(figure, axes[0])
    return figure, data


def _by_weight(axis: Axes, runs: pd.DataFrame, colour: str) -> None:
    """Runs as dots, their mean over seeds as a line whose points say their λ."""
    means = runs.groupby("weight")[["explanation", "task"]].mean()
    axis.scatter(runs["explanation"], runs["task"], color=colour, alpha=0.5, s=18)
    axis.plot(means["explanation"], means["task"], marker="o", color=colour)
    white = {"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0}
    ranked = means.sort_values("task", ascending=False)
    for rank, (weight, point) in enumerate(ranked.iterrows()):
        ha, va, shift = BELOW if rank == len(ranked) - 1 else BESIDE if rank else ABOVE
        axis.annotate(
            f"λ={weight:g}", tuple(point), xytext=shift, textcoords="offset points",
            ha=ha, va=va, fontsize=8.5, bbox=white,
        )  # fmt: skip


def erasure(study: Study) -> Drawn:
    """Figure 8: normalised sufficiency and comprehensiveness against the share of tokens kept."""
    data = erasure_curves(study)
    figure, axes = panels(2, 2, width=9.2, height=3.8)
    with figure_style():
        for axis, measure in zip(axes, MEASURES, strict=True):
            for name, colour in palette([*TECHNIQUES, "RAND"]).items():
                of = data[data["technique"] == name].groupby("kept")[measure]
                line = "--" if name == "RAND" else "-"
                band(axis, of.mean(), of.min(), of.max(), colour=colour, label=name, line=line)
            axis.set(xlabel="tokens in the rationale (%)", ylabel=f"normalised {measure}")
            axis.set_xticks(sorted(data["kept"].unique()))
        axes[1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure, data


def technique_maps(study: Study, where: str) -> Drawn:
    """Figure 10: mean τ between the techniques of each system, on one of the annotated sets."""
    data = kendall.pairs_of_techniques(study, where)
    if data.empty:
        return nothing("not measured"), data
    figure, axes = panels(len(CLASSIFIERS), 4, width=10.8, height=5.6)
    with figure_style():
        for axis, system in zip(axes, CLASSIFIERS, strict=True):
            tau, said = _triangle(data, system)
            heat_map(
                axis, tau, said, size=7, cmap=SIZED, vmin=-0.2, vmax=1, cbar=False, square=True
            )
            axis.set(title=system, xlabel="", ylabel="")
            axis.tick_params(axis="y", labelsize=8)
            axis.tick_params(axis="x", rotation=90, labelsize=8)
    return figure, data


def _triangle(data: pd.DataFrame, system: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """τ below a diagonal of 1, empty where it was not measured; and what is written there."""
    pairs = data[data["system"] == system]
    names = [x for x in TECHNIQUES if x in {*data["a"], *data["b"]}]
    tau, alone = (
        pairs.pivot(index="b", columns="a", values=value).reindex(index=names, columns=names)
        for value in ("tau", "one_seed")
    )
    for measured in {*pairs["a"], *pairs["b"]}:
        tau.loc[measured, measured] = 1.0
    said = tau.map(lambda number: f"{number:.2f}".replace("-", "−"))
    return tau, said + alone.eq(True).map({True: "*", False: ""}.__getitem__)
