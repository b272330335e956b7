"""What do the paper's figures show?"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from erlib.metrics.agreement import kendall, pearson
from erlib.papers.agreement.agreements import METRICS, map_of, text_means
from erlib.papers.agreement.cells import CURVES
from erlib.papers.agreement.systems import MODELS, SETS, task_named
from erlib.papers.study import Study
from erlib.reports.panels import Drawn, band, heat_map, legend_below
from erlib.reports.style import BLUE, GREY, SIZED, VERMILION, figure_style, new_figure

# Figure 1 of the paper: two explanations of one sentence.
TOY_WORDS = ["The", "old", "Japanese", "movie", "Rashomon", "is", "great."]
TOY = {
    "A": (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 1.0),
    "B": (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.8),
}
VARIANT_COLOURS = {"Base": GREY, "Conicity": BLUE, "Tying": VERMILION}
MARKERS = {"Base": ("o", VERMILION), "Tying": ("x", BLUE)}  # of Figure 3
AXES = {"kendall": "Kendall's τ", "pearson": "Pearson's r"}


def toy_agreement() -> tuple[float, float]:
    """τ and r of the toy example, by the code that all tables use."""
    a, b = ([np.array(scores)] for scores in TOY.values())
    return float(kendall(a, b)[0]), float(pearson(a, b)[0])


def figure_1() -> Drawn:
    """Two explanations that differ only in what does not matter."""
    tau, r = toy_agreement()
    figure, [[axis]] = new_figure(height=1.9)
    shown = pd.DataFrame.from_dict(TOY, orient="index", columns=TOY_WORDS)
    said = shown.map("{:.2f}".format).apply(lambda column: column + f"\n{column.name}")
    title = f"Kendall's τ = {tau:.2f}, Pearson's r = {r:.2f}".replace("-", "−")
    with figure_style():
        heat_map(axis, shown, said, size=10, cmap="Blues", vmin=0, vmax=1.4, cbar=False)
        axis.set(xticks=[], title=title)
    data = pd.DataFrame({"word": TOY_WORDS, **TOY}).assign(kendall=tau, pearson=r)
    return figure, data


def _set_name(study: Study, paper: str) -> str:
    """The paper's set, and our corpus where it stands in for it."""
    corpus = task_named(study.settings, paper).corpus
    return paper if corpus == paper.lower() else f"{paper} ({corpus})"


def maps(study: Study, name: str) -> Drawn:
    """The Transformer's Base on each set, first seed: (a) correctness, (b) agreement."""
    drawn = study.of(name)
    figure, axes = new_figure(len(drawn), 2, height=3.1 * len(drawn) + 0.3)
    tables = []
    for (left, right), cell in zip(axes, drawn, strict=True):
        paper = cell.column.split("|")[1]
        title = _set_name(study, paper)
        if not study.has(cell.run):
            left.set(title=f"{title}\nits run failed")
            continue
        texts = map_of(study, cell.run).join(text_means(study, cell.run).rename("pearson"))
        tables.append(texts.reset_index().assign(set=paper))
        explained, epochs = texts.dropna(subset=["pearson"]), cell.run.optimiser.epochs
        with figure_style():
            _map(left, texts, "correctness", "epochs right", epochs, size=12)
            _map(right, explained, "pearson", "agreement (r)", 1, size=24)
            left.set(title=f"{title}\ncorrectness of {len(texts)} texts")
            right.set(title=f"{title}\nagreement on {len(explained)} texts")
        widest = max(0.05, 1.08 * float(texts["variability"].max()))
        for axis in (left, right):
            axis.set(xlim=(-0.04 * widest, widest))
    return figure, pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _map(
    axis: Axes, texts: pd.DataFrame, colour: str, label: str, most: int, *, size: float
) -> None:
    points = axis.scatter(
        texts["variability"], texts["confidence"], c=texts[colour], cmap=SIZED, vmin=0, vmax=most,
        s=size, linewidths=0.3, edgecolors="white",
    )  # fmt: skip
    bar = axis.figure.colorbar(points, ax=axis, label=label)  # type: ignore[union-attr]
    if colour == "correctness":
        bar.set_ticks(list(range(most + 1)))
    axis.set(xlabel="variability", ylabel="confidence", ylim=(-0.03, 1.03))


def figure_3(study: Study) -> Drawn:
    """r of every text against confidence (a-h) and variability (i-p), Base and Tying."""
    figure, axes = new_figure(4, 4, height=8.8)
    texts = _explained_texts(study)
    lowest = min(0.0, float(texts["pearson"].min()))
    limits = {"confidence": 1.0, "variability": max(0.05, float(texts["variability"].max()))}
    panels = [(*limit, model) for limit in limits.items() for model in MODELS]  # one per row
    letters = iter("abcdefghijklmnop")
    with figure_style():
        for row, (attribute, most, model) in zip(axes, panels, strict=True):
            for axis, paper in zip(row, SETS, strict=True):
                for variant, (marker, colour) in MARKERS.items():
                    shown = texts.query("model == @model and set == @paper and variant == @variant")
                    axis.scatter(shown[attribute], shown["pearson"], s=11, alpha=0.6,
                                 marker=marker, color=colour, label=variant)  # fmt: skip
                last = model == MODELS[-1]
                axis.set_title(f"({next(letters)}) {model} {paper}", size=9)
                axis.set(ylim=(lowest - 0.06, 1.06), xlim=(-0.05 * most, 1.05 * most))
                axis.tick_params(labelsize=7, labelbottom=last, labelleft=axis is row[0])
                axis.set_xlabel(attribute if last else "", size=9)
            row[0].set_ylabel("agreement (r)", size=9)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, markerscale=2)
    return figure, texts


def _explained_texts(study: Study) -> pd.DataFrame:
    """Of the first seed's Base and Tying, in the order of the panels."""
    named = ["model", "set", "variant", "pearson", "confidence", "variability"]
    tables = [pd.DataFrame(columns=named)]
    cells = study.finished("figure-3 points")
    for model, paper in product(MODELS, SETS):
        for cell in (c for c in cells if c.column == f"{model}|{paper}"):
            means = {ours: text_means(study, cell.run, m) for m, ours in METRICS.items()}
            texts = pd.DataFrame(means).join(map_of(study, cell.run)).reset_index()
            tables.append(texts.assign(model=model, set=paper, variant=cell.row))
    return pd.concat(tables[1:] or tables, ignore_index=True)


def curve(study: Study, name: str) -> Drawn:
    """τ and r on test texts after every epoch, mean over seeds with a band of one std."""
    model, paper = CURVES[name]
    numbers = study.numbers(study.of(name)).rename(columns={"row": "variant"})
    numbers["epoch"] = numbers["column"].str.removeprefix("epoch ").astype(int)
    index = ["variant", "seed", "epoch"]
    data = numbers.pivot(index=index, columns="metric", values="value").rename(columns=METRICS)
    data = data.dropna().reset_index()[["epoch", "kendall", "pearson", "variant", "seed"]]
    figure, [axes] = new_figure(1, 2)
    with figure_style():
        for axis, (metric, label) in zip(axes, AXES.items(), strict=True):
            for variant, colour in VARIANT_COLOURS.items():
                by_epoch = data[data["variant"] == variant].groupby("epoch")[metric]
                mean, std = by_epoch.mean(), by_epoch.std(ddof=1).fillna(0)
                band(axis, mean, mean - std, mean + std, colour=colour, label=variant)
            axis.set(xlabel="epoch", ylabel=label, xticks=sorted(data["epoch"].unique()))
        figure.suptitle(f"{model} – {_set_name(study, paper)}", fontsize="medium")
        legend_below(figure, axes[0])
    return figure, data
