"""What do the paper's figures show?

Each function returns the figure and the numbers behind it.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.metrics.verdicts import MIN_SEEDS, decide_corr
from erlib.papers.er_lens import kendall
from erlib.papers.er_lens.sets import YELP_50, TestSet
from erlib.papers.er_lens.stages import RANDOM
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import (
    CLASSIFIERS,
    DECOMPOSITIONS,
    GUIDES,
    SYSTEMS,
    TECHNIQUES,
    system_named,
)
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

CONSTRAINED = ["Baseline", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
LAYERED = ("ATT", "ATTR", "ALTI", "DX")
CHANCE = 50  # AUC x 100 of scores that know nothing of the rationale
Drawn = tuple[Figure, pd.DataFrame]


def figure_2(study: Study) -> Drawn:
    """F1 of every seed, by system and set; ER-C+IxG, whose spread hides the others, is apart."""
    return _f1_boxes(study, [s for s in CLASSIFIERS if s != "ER-C+IxG"])


def figure_11(study: Study) -> Drawn:
    """Figure 2 with ER-C+IxG."""
    return _f1_boxes(study, CLASSIFIERS)


def _f1_boxes(study: Study, systems: list[str]) -> Drawn:
    scores = study.f1_scores
    scores = scores[scores["system"].isin(systems)]
    data = scores.assign(set=[t.name for t in scores["set"]])
    sets = [t for t in study.sets if t.paper != YELP_50]
    columns = 3
    colours = palette(systems)
    figure, axes = new_figure(-(-len(sets) // columns), columns, width=9.6, height=5.6)
    with figure_style():
        flat = [axis for row in axes for axis in row]
        for i, (axis, test) in enumerate(zip(flat, sets, strict=False)):
            panel = data[data["set"] == test.name]
            boxes = axis.boxplot(
                [panel.loc[panel["system"] == system, "value"] for system in systems],
                orientation="horizontal",
                positions=range(len(systems)),
                widths=0.6,
                showfliers=False,
                manage_ticks=False,
                patch_artist=True,
                medianprops={"color": "0.25"},
            )
            for row, (box, system) in enumerate(zip(boxes["boxes"], systems, strict=True)):
                box.set(facecolor=colours[system], alpha=0.35)
                values = panel.loc[panel["system"] == system, "value"]
                apart = np.resize([-0.14, 0.14, 0] if len(values) > 1 else [0], len(values))
                axis.scatter(values, row + apart, s=25, color=colours[system], zorder=3)
            axis.set_yticks(range(len(systems)), [] if i % columns else systems)
            axis.invert_yaxis()
            axis.grid(False, axis="y")
            axis.set(title=_titled(test), xlabel="F1-macro (%)")
        for axis in flat[len(sets) :]:
            axis.set_axis_off()
    return figure, data.drop(columns="place").assign(seed=data["place"])


def _titled(test: TestSet) -> str:
    return test.name if test.paper in (None, test.name) else f"{test.name}\n(for {test.paper})"


def figure_3(study: Study) -> Drawn:
    """Kendall's τ of a technique between systems on the short reviews from another domain."""
    return _histograms(study, study.shown, ["ER+Att", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"])


def figure_9(study: Study, plausibility: str) -> Drawn | None:
    """As Figure 3 for all systems, on one of the annotated sets; None where it is missing."""
    test = study.set_for(plausibility)
    return None if test is None else _histograms(study, test, CLASSIFIERS[1:])


def _histograms(study: Study, test: TestSet, systems: list[str]) -> Drawn:
    data = kendall.histogram_table(study, test)
    data = data[data["system"].isin(systems)]
    techniques = [x for x in TECHNIQUES if x in set(data["technique"])] or list(GUIDES)
    figure, axes = new_figure(
        len(systems), len(techniques), width=10.5, height=1.15 * len(systems) + 0.9
    )
    colours = {"BS-BS": GREY, "BS-ER": VERMILION}
    bins = np.linspace(-1, 1, 41)
    left = bins[bins <= min([-0.2, *data["tau"].dropna()])][-1]
    with figure_style():
        for row, system in enumerate(systems):
            for column, technique in enumerate(techniques):
                axis = axes[row][column]
                cell = data[(data["system"] == system) & (data["technique"] == technique)]
                said = []
                for pair, colour in colours.items():
                    taus = cell.loc[cell["pair"] == pair, "tau"].dropna()
                    if len(taus):
                        share = np.full(len(taus), 1 / len(taus))
                        axis.hist(
                            taus, bins.tolist(), weights=share, histtype="stepfilled",
                            color=colour, alpha=0.55, label=_PAIRS[pair],
                        )  # fmt: skip
                        axis.axvline(taus.mean(), color=colour, linewidth=1.4)
                        said.append(f"{taus.mean():.2f}")
                axis.set_title(
                    (f"{technique}\n" if row == 0 else "") + " | ".join(said), fontsize=8.5
                )
                axis.set(xlim=(left, 1), xticks=[0, 0.5, 1], yticks=[])
                axis.grid(False)
                if row < len(systems) - 1:
                    axis.set_xticklabels([])
                else:
                    axis.set_xlabel("Kendall's τ", fontsize=9)
                if column == 0:
                    axis.set_ylabel(system, rotation=0, ha="right", va="center")
                if "BS-ER" not in set(cell["pair"]):
                    _note(axis, "not\nmeasured")
        _legend_below(figure, axes[0][0])
    return figure, data


_PAIRS = {"BS-BS": "two Baselines", "BS-ER": "Baseline and the system"}


def figure_4(study: Study) -> Drawn:
    """Plausibility by layer of attention and DecompX on in-domain dev texts."""
    systems = ["Baseline", "ER+Att", "ER-C+Att", "ER-C+AttR", "ER-C+IxG"]
    data = study.layer_scores(study.annotated[0])
    data = data[data["system"].isin(systems) & data["technique"].isin(["ATT", "DX"])]
    return _layer_maps(data, ["ATT", "DX"], systems)


def figure_13(study: Study, plausibility: str) -> Drawn | None:
    """Plausibility by layer of every technique that has layers, for all systems, on one set."""
    test = study.set_for(plausibility)
    if test is None:
        return None
    data = study.layer_scores(test)
    techniques = [x for x in LAYERED if x in set(data["technique"])]
    new = DECOMPOSITIONS if plausibility == "Movies" else ()
    return _layer_maps(data, techniques, list(SYSTEMS), new)


def _layer_maps(
    data: pd.DataFrame, techniques: list[str], systems: list[str], new: tuple[str, ...] = ()
) -> Drawn:
    """A map [system, layer] for each technique; `new`: those that the paper does not have."""
    if data.empty:
        figure, axes = new_figure(height=1.2)
        axes[0][0].set_axis_off()
        _note(axes[0][0], "no text has an AUC")
        return figure, data
    columns = 2
    rows = -(-len(techniques) // columns)
    figure, axes = new_figure(
        rows, columns, width=10.5, height=rows * (0.33 * len(systems) + 1.0) + 0.3
    )
    flat = [axis for row in axes for axis in row]
    reach = (data["value"] - CHANCE).abs().max()
    with figure_style():
        for i, (axis, technique) in enumerate(zip(flat, techniques, strict=False)):
            cells = data[data["technique"] == technique]
            if cells.empty:
                axis.set(title=f"{technique}: undefined", xticks=[], yticks=[])
                continue
            means = cells.pivot_table(index="system", columns="layer", values="value")
            sns.heatmap(
                means.reindex(systems),  # a row stays empty where a system was not measured
                ax=axis,
                annot=True,
                fmt=".0f",
                annot_kws={"fontsize": 8.5},
                cmap=SIGNED,
                vmin=CHANCE - reach,
                vmax=CHANCE + reach,
                cbar=i % columns == columns - 1,
                cbar_kws={"label": f"AUC x 100 (white: {CHANCE}, chance)"},
            )
            title = f"{technique} (new)" if technique in new else technique
            axis.set(xlabel="layer", ylabel="", title=title)
            axis.grid(False)
            axis.tick_params(axis="y", rotation=0)
        for axis in flat[len(techniques) :]:
            axis.set_axis_off()
    return figure, data


def figure_5(study: Study) -> Drawn:
    """Cross-entropy against explanation loss on dev as λ rises, for ER+Att and ER+AttR."""
    return _sweep(study, ["ATT", "ATTR"])


def figure_12(study: Study) -> Drawn:
    """Figure 5 for ER+IxG."""
    return _sweep(study, ["IXG"])


def _sweep(study: Study, guides: list[str]) -> Drawn:
    data = study.sweep[study.sweep["guide"].isin(guides)]
    figure, axes = new_figure(1, len(guides), width=4.4 * len(guides), height=3.8)
    with figure_style():
        for axis, guide in zip(axes[0], guides, strict=True):
            if axis is not axes[0][0]:
                axis.sharey(axes[0][0])
            system = system_named("joint", guide)
            runs = data[data["guide"] == guide]
            means = runs.groupby("weight")[["explanation", "task"]].mean()
            colour = palette([system])[system]
            axis.scatter(runs["explanation"], runs["task"], color=colour, alpha=0.5, s=18)
            axis.plot(means["explanation"], means["task"], marker="o", color=colour)
            ranked = means.sort_values("task", ascending=False)
            for rank, (weight, row) in enumerate(ranked.iterrows()):
                # neighbours may lie on each other, but not their labels: above, beside, below
                place = "top" if rank == len(ranked) - 1 else "center" if rank else "bottom"
                axis.annotate(
                    f"λ={weight:g}",
                    (row["explanation"], row["task"]),
                    textcoords="offset points",
                    xytext={"bottom": (0, 6), "center": (9, 0), "top": (0, -6)}[place],
                    ha="left" if place == "center" else "center",
                    va=place,
                    fontsize=8.5,
                    bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0},
                )
            bounds = study.bounds(guide)
            for value, style, name in (
                (bounds.dev, "--", "b_val"),
                (1.1 * bounds.dev, ":", "1.1 b_val"),
            ):
                axis.axvline(value, color=BLACK, linestyle=style, linewidth=1, label=name)
            axis.margins(x=0.18, y=0.15)
            axis.locator_params(axis="x", nbins=5)
            axis.set(title=system, xlabel="explanation loss on dev", ylabel="cross-entropy on dev")
        _legend_below(figure, axes[0][0])
    return figure, data


def figure_8(study: Study) -> Drawn:
    """Normalised sufficiency and comprehensiveness against the share of tokens kept."""
    data = study.erasure_curves.replace({"technique": {RANDOM: "RAND"}})
    figure, axes = new_figure(1, 2, width=9.2, height=3.8)
    names = [*TECHNIQUES, "RAND"]
    with figure_style():
        for axis, measure in zip(axes[0], ("sufficiency", "comprehensiveness"), strict=True):
            for name in names:
                curves = data[data["technique"] == name].groupby("kept")[measure]
                mean, low, high = curves.mean(), curves.min(), curves.max()
                colour = palette([name])[name]
                line = "--" if name == "RAND" else "-"
                axis.plot(mean.index, mean, line, marker="o", color=colour, label=name)
                axis.fill_between(mean.index, low, high, color=colour, alpha=0.12)
            axis.set(
                xlabel="tokens in the rationale (%)",
                ylabel=f"normalised {measure}",
                xticks=sorted(data["kept"].unique()),
            )
        axes[0][1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure, data


def figure_10(study: Study, plausibility: str) -> Drawn | None:
    """Mean τ between the techniques of each system, on one of the annotated sets."""
    test = study.set_for(plausibility)
    if test is None:
        return None
    figure, axes = new_figure(2, 4, width=10.8, height=5.6)
    flat, rows = [axis for row in axes for axis in row], []
    names = kendall.measured_techniques(study, test, "Baseline")
    with figure_style():
        for axis, system in zip(flat, CLASSIFIERS, strict=False):
            measured = kendall.measured_techniques(study, test, system)
            found = kendall.matrix(study, test, system, measured)
            rows += [
                {"set": test.name, "system": system, "a": a, "b": b, "tau": found.tau.loc[a, b],
                 "one_seed": found.one_seed.loc[a, b]}
                for a, b in combinations(names, 2)
                if {a, b} <= set(measured)
            ]  # fmt: skip
            values = found.tau.reindex(index=names, columns=names)  # empty where not measured
            marks = found.one_seed.reindex(index=names, columns=names).map(
                lambda alone: "*" if alone is True else ""
            )
            sns.heatmap(
                values,
                ax=axis,
                annot=values.map(lambda tau: f"{tau:.2f}".replace("-", "−")) + marks,
                fmt="",
                annot_kws={"fontsize": 7},
                cmap=SIZED,
                vmin=-0.2,
                vmax=1,
                cbar=False,
                square=True,
                mask=np.triu(np.ones(values.shape, dtype=bool), 1),
            )
            axis.set_title(system)
            axis.grid(False)
            axis.tick_params(axis="y", rotation=0, labelsize=8)
            axis.tick_params(axis="x", rotation=90, labelsize=8)
        flat[-1].set_axis_off()
    return figure, pd.DataFrame(rows)


def figure_6(study: Study) -> Drawn:
    """Does F1 or plausibility predict F1 elsewhere? Baseline and constrained systems."""
    long, short = study.set_for("Movies"), study.set_for(YELP_50)
    home = study.annotated[0]
    wanted = [
        (predictor, where, test)
        for predictor, where, test in (
            ("F1", home, long),
            ("AUC-DX-C", home, long),
            ("AUC-IXG", long, long),
            ("AUC-IXG", short, short),
        )
        if where is not None and test is not None
    ]
    panels = [predicted(study, *one) for one in wanted]
    panels = [data[data["system"].isin(CONSTRAINED)] for data in panels]
    figure, axes = new_figure(1, len(panels), width=3.1 * len(panels), height=3.7)
    with figure_style():
        for axis, (predictor, where, test), data in zip(axes[0], wanted, panels, strict=True):
            _scatter(axis, data, size=28)
            axis.set_xlabel(f"{_PREDICTOR[predictor]},\n{where.name}")
            axis.set_ylabel(f"F1 (%) on {test.name}")
        _legend_below(figure, axes[0][0])
    return figure, pd.concat(panels, ignore_index=True)


PREDICTORS = ("F1", "AUC-ATT", "AUC-ATTR", "AUC-DX-C", "AP-DX-C", "recall@k-DX-C")
_PREDICTOR = {  # as an axis calls it
    "F1": "F1 (%)",
    **{
        f"{measure}-{technique}": f"{measure} of {technique} x 100"
        for measure in ("AUC", "AP", "recall@k")
        for technique in TECHNIQUES
    },
}


def figure_14(study: Study) -> Drawn:
    """Six predictors measured in domain against F1 on every other set, all systems."""
    home = study.annotated[0]
    others = [t for t in study.sets if t != home]
    figure, axes = new_figure(
        len(PREDICTORS), len(others), width=2.1 * len(others) + 0.8, height=11.5
    )
    tables = []
    with figure_style():
        for row, predictor in enumerate(PREDICTORS):
            for column, test in enumerate(others):
                axis = axes[row][column]
                data = predicted(study, predictor, home, test)
                tables.append(data)
                _scatter(axis, data, size=12)
                axis.tick_params(labelsize=7.5)
                axis.locator_params(nbins=4)
                axis.set_xlabel(_PREDICTOR[predictor], fontsize=8.5)
                axis.set_ylabel("F1 (%)" if column == 0 else "", fontsize=8.5)
                if row == 0:
                    axis.set_title(f"{_titled(test)}\n{axis.get_title()}", fontsize=8.5)
        _legend_below(figure, axes[0][0])
    return figure, pd.concat(tables, ignore_index=True)


def predicted(study: Study, predictor: str, where: TestSet, test: TestSet) -> pd.DataFrame:
    """One row per trained run: `x`, a predictor measured on `where`, and `y`, its F1 on `test`."""
    measures = {"AUC": "auc_x100", "AP": "average_precision", "recall@k": "recall_at_k"}
    f1 = study.f1_scores
    y = f1[f1["set"] == test].set_index(["system", "place"])["value"]
    if predictor == "F1":
        x = f1[f1["set"] == where].set_index(["system", "place"])["value"]
    else:
        measure, technique = predictor.split("-", 1)
        scores = study.plausibility_scores
        chosen = (
            (scores["set"] == where)
            & (scores["technique"] == technique)
            & (scores["measure"] == measures[measure])
        )
        x = scores[chosen].set_index(["system", "place"])["value"]
    both = pd.DataFrame({"x": x, "y": y}).dropna()
    untrained = study.untrained.set_index(["system", "place"]).index
    both = both[~both.index.isin(untrained)].reset_index()
    both["system"] = pd.Categorical(both["system"], CLASSIFIERS, ordered=True)
    both = both.sort_values(["system", "place"]).assign(system=lambda d: d["system"].astype(str))
    return both.assign(predictor=predictor, measured_on=where.name, predicted=test.name)


def enough_seeds(data: pd.DataFrame) -> pd.DataFrame:
    """The rows of systems with three seeds or more; all rows where no system has as many."""
    counts = data["system"].value_counts()
    enough = data[data["system"].isin(counts[counts >= MIN_SEEDS].index)]
    return data if enough.empty else enough


def _scatter(axis: Axes, data: pd.DataFrame, size: float) -> None:
    for system, points in data.groupby("system", sort=False):
        colour = palette([system])[system]
        axis.scatter(points["x"], points["y"], s=size, color=colour, label=system)
    if data.empty:
        _note(axis, "no\ntrained\nmodel")
        return
    told = enough_seeds(data)
    if told["system"].value_counts().min() < MIN_SEEDS:
        axis.set_title("too few seeds for ρ", fontsize=8)
        return
    found = decide_corr(
        told["x"], told["y"], system=list(told["system"]), seeds=list(told["place"])
    )
    said = f"ρ = {found.estimate:.2f} [{found.ci_low:.2f}, {found.ci_high:.2f}]".replace("-", "−")
    known = np.isfinite(found.estimate)
    axis.set_title(said if known else "no ρ: one side is constant", fontsize=8)


def _note(axis: Axes, said: str) -> None:
    """What stands in the middle of a panel that shows nothing."""
    axis.text(0.5, 0.5, said, transform=axis.transAxes,
              ha="center", va="center", fontsize=7.5, color="#666666")  # fmt: skip


def _legend_below(figure: Figure, axis: Axes) -> None:
    """One legend for all panels, made of what the first one shows; none where that is nothing."""
    handles, labels = axis.get_legend_handles_labels()
    if not handles:
        return
    figure.legend(handles, labels, loc="outside lower center", ncols=min(7, len(labels)))
