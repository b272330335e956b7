"""What do the paper's figures show?"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.config import RunSpec
from erlib.metrics.agreement import kendall, pearson
from erlib.papers.agreement.agreements import METRICS, map_of, text_means
from erlib.papers.agreement.cells import CURVES
from erlib.papers.agreement.systems import MODELS, SETS, VARIANTS, task_named
from erlib.papers.study import Study
from erlib.reports.style import BLUE, GREY, SIZED, VERMILION, figure_style, new_figure

# Figure 1 of the paper: two explanations of one sentence.
TOY_WORDS = ("The", "old", "Japanese", "movie", "Rashomon", "is", "great.")
TOY = {
    "A": (0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 1.0),
    "B": (0.06, 0.05, 0.04, 0.03, 0.02, 0.01, 0.8),
}
VARIANT_COLOURS = {"Base": GREY, "Conicity": BLUE, "Tying": VERMILION}


def toy_agreement() -> tuple[float, float]:
    """τ and r of the toy example, by the code that all tables use."""
    a, b = ([np.array(scores)] for scores in TOY.values())
    return float(kendall(a, b)[0]), float(pearson(a, b)[0])


def figure_1() -> tuple[Figure, pd.DataFrame]:
    """Two explanations that differ only in what does not matter."""
    tau, r = toy_agreement()
    figure, [[axis]] = new_figure(height=1.9)
    with figure_style():
        axis.imshow(np.array(list(TOY.values())), cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
        for row, scores in enumerate(TOY.values()):
            for column, (word, score) in enumerate(zip(TOY_WORDS, scores, strict=True)):
                ink = "white" if score > 0.5 else "black"
                for shift, text in ((-0.18, f"{score:.2f}"), (0.18, word)):
                    place = (column, row + shift)
                    axis.annotate(text, place, ha="center", va="center", color=ink)
        axis.set(
            xticks=[],
            yticks=[0, 1],
            yticklabels=list(TOY),
            title=f"Kendall's τ = {tau:.2f}, Pearson's r = {r:.2f}".replace("-", "−"),
        )
        axis.grid(visible=False)
        for side in axis.spines.values():
            side.set_visible(False)
    data = pd.DataFrame({"word": TOY_WORDS, **TOY}).assign(kendall=tau, pearson=r)
    return figure, data


def _set_name(study: Study, paper: str) -> str:
    """The paper's set, and our corpus where it stands in for it."""
    corpus = task_named(study.settings, paper).corpus
    return paper if corpus == paper.lower() else f"{paper} ({corpus})"


def maps(study: Study, name: str) -> tuple[Figure, pd.DataFrame]:
    """The Transformer's Base on each set, first seed: (a) correctness, (b) agreement."""
    drawn = study.of(name)
    figure, axes = new_figure(len(drawn), 2, height=3.1 * len(drawn) + 0.3)
    tables = []
    for row, cell in zip(axes, drawn, strict=True):
        run, paper = cell.specs[0], cell.column.split("|")[1]
        if not study.has(run):
            row[0].set(title=f"{_set_name(study, paper)}\nits run failed")
            continue
        assert isinstance(run, RunSpec)
        texts = map_of(study, run).join(text_means(study, run).rename("pearson"))
        tables.append(texts.reset_index().assign(set=paper))
        explained = texts.dropna(subset=["pearson"])
        with figure_style():
            _map(row[0], texts, "correctness", "epochs right", (0, run.optimiser.epochs), s=12)
            _map(row[1], explained, "pearson", "agreement (r)", (0, 1), s=24)
            title = _set_name(study, paper)
            row[0].set(title=f"{title}\ncorrectness of {len(texts)} texts")
            row[1].set(title=f"{title}\nagreement on {len(explained)} texts")
        widest = max(0.05, 1.08 * float(texts["variability"].max()))
        for axis in row:
            axis.set(xlim=(-0.04 * widest, widest))
    return figure, pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def _map(
    axis: Axes, texts: pd.DataFrame, colour: str, label: str, bounds: tuple[int, int], s: float
) -> None:
    low, high = bounds
    points = axis.scatter(
        texts["variability"],
        texts["confidence"],
        c=texts[colour],
        cmap=SIZED,
        vmin=low,
        vmax=high,
        s=s,
        linewidths=0.3,
        edgecolors="white",
    )
    bar = axis.figure.colorbar(points, ax=axis, label=label)  # type: ignore[union-attr]
    if colour == "correctness":
        bar.set_ticks(list(range(low, high + 1)))
    axis.set(xlabel="variability", ylabel="confidence", ylim=(-0.03, 1.03))


def figure_3(study: Study) -> tuple[Figure, pd.DataFrame]:
    """r of every text against confidence (a-h) and variability (i-p), Base and Tying."""
    figure, axes = new_figure(4, 4, height=8.8)
    cells = [(model, paper) for model in MODELS for paper in SETS]
    texts = {cell: _texts_of(study, *cell) for cell in cells}
    every = pd.concat(texts.values(), ignore_index=True)
    lowest = min(0.0, float(every["pearson"].min()))
    limits = {"confidence": 1.0, "variability": max(0.05, float(every["variability"].max()))}
    letters = iter("abcdefghijklmnop")
    for block, (attribute, most) in enumerate(limits.items()):
        for i, (model, paper) in enumerate(cells):
            axis, row, column = axes[2 * block + i // 4][i % 4], i // 4, i % 4
            with figure_style():
                for variant, marker, colour in (("Base", "o", VERMILION), ("Tying", "x", BLUE)):
                    points = texts[model, paper].query("variant == @variant")
                    axis.scatter(
                        points[attribute],
                        points["pearson"],
                        s=11,
                        alpha=0.6,
                        marker=marker,
                        color=colour,
                        label=variant,
                    )
                axis.set_title(f"({next(letters)}) {model} {paper}", size=9)
                axis.set(ylim=(lowest - 0.06, 1.06), xlim=(-0.05 * most, 1.05 * most))
                axis.tick_params(labelsize=7, labelbottom=bool(row), labelleft=column == 0)
                if column == 0:
                    axis.set_ylabel("agreement (r)", size=9)
                if row:
                    axis.set_xlabel(attribute, size=9)
    with figure_style():
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2, markerscale=2)
    return figure, every


def _texts_of(study: Study, model: str, paper: str) -> pd.DataFrame:
    """Explained texts of the first seed's Base and Tying."""
    tables = []
    for cell in study.of("figure-3 points"):
        run = cell.specs[0]
        if cell.column == f"{model}|{paper}" and study.has(run):
            assert isinstance(run, RunSpec)
            means = {ours: text_means(study, run, metric) for metric, ours in METRICS.items()}
            texts = pd.DataFrame(means).join(map_of(study, run)).reset_index()
            tables.append(texts.assign(model=model, set=paper, variant=cell.row))
    none = pd.DataFrame(columns=["variant", "pearson", "confidence", "variability"])
    return pd.concat(tables, ignore_index=True) if tables else none


def curve(study: Study, name: str) -> tuple[Figure, pd.DataFrame]:
    """τ and r on test texts after every epoch, mean over seeds with a band of one std."""
    model, paper = CURVES[name]
    numbers = study.numbers(study.of(name)).rename(columns={"row": "variant"})
    numbers["epoch"] = numbers["column"].str.removeprefix("epoch ").astype(int)
    index = ["variant", "seed", "epoch"]
    data = numbers.pivot(index=index, columns="metric", values="value").rename(columns=METRICS)
    data = data.dropna().reset_index()[["epoch", "kendall", "pearson", "variant", "seed"]]
    figure, [axes] = new_figure(1, 2)
    names = {"kendall": "Kendall's τ", "pearson": "Pearson's r"}
    with figure_style():
        for axis, (metric, name) in zip(axes, names.items(), strict=True):
            for variant, colour in VARIANT_COLOURS.items():
                by_epoch = data[data["variant"] == variant].groupby("epoch")[metric]
                mean, spread = by_epoch.mean(), by_epoch.std(ddof=1).fillna(0)
                axis.plot(mean.index, mean, marker="o", color=colour, label=variant)
                axis.fill_between(
                    mean.index, mean - spread, mean + spread, color=colour, alpha=0.18, lw=0
                )
            axis.set(xlabel="epoch", ylabel=name, xticks=sorted(data["epoch"].unique()))
        figure.suptitle(f"{model} – {_set_name(study, paper)}", fontsize="medium")
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(VARIANTS))
    return figure, data
