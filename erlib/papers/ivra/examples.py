"""How do the explanations read on single texts? (Figures 3 and 4, and more of their kind)"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from datasets import Dataset
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm

from erlib.attributions import Attribution, attribute
from erlib.config import RunSpec
from erlib.papers.holes import as_figure, as_text, or_hole
from erlib.papers.ivra import systems
from erlib.papers.ivra.measured import row_run
from erlib.papers.ivra.systems import LAST, SMAT, SOFTMAX, SPARSEMAX, Learner
from erlib.papers.study import Study
from erlib.reports.heatmap import heatmap_grid
from erlib.reports.markup import Html
from erlib.reports.panels import Drawn
from erlib.reports.style import BLUE, ORANGE, SIGNED, figure_style, new_figure
from erlib.training.rows import rows_of

WORDS = (8, 18)  # of a quoted text
LINE = 116  # characters of a drawn line
MONO = 0.602  # width of a character of the drawn font, in its size
PALE = 0.01  # of a coefficient: differences that are all smaller do not reach the full colour
SHADES = LinearSegmentedColormap.from_list("for and against", [ORANGE, "white", BLUE])


def scores(study: Study, where: Learner, rows: Dataset, row: str, criterion: str
           ) -> list[Attribution]:  # fmt: skip
    """What a row of the tables says of the texts, word by word, for the first seed's model."""
    options = dict(systems.options_of(study.settings, row))
    model, method = study.model(_run(where, row, criterion)), systems.method_of(row)
    return attribute(model, rows, method, variant="ivra", level="word", options=options)


def _run(where: Learner, row: str, criterion: str) -> RunSpec:
    return row_run(where, row, criterion, where.settings.seeds[0])


@or_hole(as_figure)
def figure_3(study: Study) -> Drawn:
    """One text by softmax, sparsemax and LIME, and the modules' coefficients ω, λ and η.

    Both modules are trained for simulatability; LIME is taken of the Baseline.
    """
    home = systems.core(study.settings)
    rows, named = _texts(home, 1), (SOFTMAX, SPARSEMAX, "LIME")
    said = {name: scores(study, home, rows, name, "SIM")[0] for name in named}
    figure, axes = new_figure(4, 4, width=10.5, height=6.4)
    tables = []
    with figure_style():
        places = axes[0][0].get_gridspec()
        assert places is not None
        for axis in (*axes[0], *axes[1]):
            axis.remove()
        words = figure.add_subplot(places[:2, :])
        _draw_words(words, said, width=9.6)
        for row, name in zip(axes[2:], (SOFTMAX, SPARSEMAX), strict=True):
            classifier = study.model(_run(home, name, "SIM"))
            assert classifier.explainer is not None
            found = {k: v.cpu().numpy() for k, v in classifier.explainer.coefficients().items()}
            for axis, (symbol, values) in zip(row, found.items(), strict=True):
                _draw_coefficients(axis, symbol, values)
                tables.append(_coefficient_rows(name, symbol, values))
            row[0].set_ylabel(f"{name.split(' - ')[1]}\nlayer")
    return figure, pd.concat([_word_rows(said), *tables], ignore_index=True)


SYMBOLS = {"omega_q": "ω of queries", "omega_k": "ω of keys", "lambda": "λ", "eta": "η"}
ACROSS = {"omega_q": "head and feature", "omega_k": "head and feature", "lambda": "head", "eta": ""}


def _draw_coefficients(axis: Axes, name: str, values: np.ndarray) -> None:
    flat = values.reshape(len(values), -1)
    mean = {"lambda": flat.mean(axis=1, keepdims=True), "eta": flat.mean()}
    relative = flat / mean.get(name, 1.0)
    spread = max(float(np.abs(relative - 1).max()), PALE)
    sns.heatmap(
        relative,
        ax=axis,
        cmap=SIGNED,
        norm=TwoSlopeNorm(1.0, 1 - spread, 1 + spread),
        xticklabels=False,
        yticklabels=list(range(1, len(flat) + 1)),
    )
    axis.set(title=SYMBOLS[name], xlabel=ACROSS[name])
    axis.tick_params(axis="y", rotation=0)
    axis.grid(False)


def _coefficient_rows(explainer: str, name: str, values: np.ndarray) -> pd.DataFrame:
    flat = values.reshape(len(values), -1)
    layers, places = np.indices(flat.shape)
    return pd.DataFrame(
        {"explainer": explainer, "what": SYMBOLS[name], "layer": layers.ravel() + 1,
         "place": places.ravel(), "value": flat.ravel()}
    )  # fmt: skip


@or_hole(as_figure)
def figure_4(study: Study) -> Drawn:
    """Two questions about one passage, by integrated gradients and by IvRA-sparsemax (CONS)."""
    where = systems.core(study.settings).on(systems.task_named(study.settings, "SQuAD"))
    chosen, named = _same_passage(where), ("Integrated Gradients", SPARSEMAX)
    explained = {name: scores(study, where, chosen, name, "CONS") for name in named}
    said = {
        f"{name}: {row['question']}": found[i]
        for i, row in enumerate(chosen)
        for name, found in explained.items()
    }
    lines = sum(_lines(a.tokens) for a in said.values())
    figure, [[axis]] = new_figure(width=10.5, height=0.19 * lines + 1.4)
    with figure_style():
        _draw_words(axis, said, width=10.3)
    return figure, _word_rows(said)


def _same_passage(where: Learner) -> Dataset:
    """The first two questions of the test split that share their passage, the shortest first."""
    rows = rows_of(systems.data_spec(where, systems.recipe(where)), "test", None)
    seen: dict[str, int] = {}
    pairs = []
    for i, context in enumerate(rows["context"]):
        if context in seen:
            pairs.append((len(context), seen[context], i))
        seen.setdefault(context, i)
    if not pairs:
        raise ValueError(f"no two questions of {where.task.corpus} share a passage")
    return rows.select(min(pairs)[1:])


@or_hole(as_text)
def examples(study: Study, count: int) -> Html:
    """Five explainers on the first test texts: LIME of the Baseline, modules trained for SIM."""
    home = systems.core(study.settings)
    rows, names = _texts(home, count), (LAST, "LIME", SMAT, SOFTMAX, SPARSEMAX)
    said = {name: scores(study, home, rows, name, "SIM") for name in names}
    labels = rows.features["label"].names
    return Html("").join(
        heatmap_grid(
            {name: [found[i]] for name, found in said.items()},
            columns=["first seed"],
            title=f"{i + 1}. gold: {labels[row['label']]}",
            legend=i == 0,
        )
        for i, row in enumerate(rows)
    )


def _texts(home: Learner, count: int) -> Dataset:
    """The first short ones, with a rationale where there are any: ER lens quotes them too."""
    data = systems.data_spec(home, systems.recipe(home))
    rows = rows_of(data, "test", home.settings.grid.get("test_rows"))
    fit = [
        i
        for i, row in enumerate(rows)
        if WORDS[0] <= len(row["words"]) <= WORDS[1] and any(row.get("rationale") or [1])
    ]
    return rows.select((fit or list(range(len(rows))))[:count])


def _lines(tokens: list[str]) -> int:
    return max(line for line, _, _ in laid_out(tokens)) + 1


def laid_out(tokens: list[str]) -> list[tuple[int, int, str]]:
    """(line, column, word) of every word, in lines of at most `LINE` characters."""
    placed, line, column = [], 0, 0
    for word in tokens:
        if column and column + len(word) > LINE:
            line, column = line + 1, 0
        placed.append((line, column, word))
        column += len(word) + 1
    return placed


def _draw_words(axis: Axes, said: Mapping[str, Attribution], width: float) -> None:
    """Each explanation as a titled paragraph; the colour is the share of the largest |score|."""
    axis.set_axis_off()
    size, y = 72 * width / (LINE * MONO) * 0.92, 0.0
    for title, found in said.items():
        axis.text(0, y, title, fontsize=9.5, va="center", fontweight="bold")
        largest = float(np.abs(found.scores).max()) or 1.0
        for (line, column, word), score in zip(laid_out(found.tokens), found.scores, strict=True):
            shade = SHADES(0.5 + 0.5 * float(score) / largest)
            dark = abs(float(score)) / largest > 0.75
            axis.text(column, y + 1.15 + line * 1.15, word, fontsize=min(size, 9.5),
                      family="DejaVu Sans Mono", va="center", color="white" if dark else "black",
                      bbox={"facecolor": shade, "edgecolor": "none", "pad": 1.2})  # fmt: skip
        y += 1.15 * _lines(found.tokens) + 1.9
    axis.set(xlim=(0, LINE), ylim=(y - 0.6, -0.8))


def _word_rows(said: Mapping[str, Attribution]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"explainer": title, "what": "score", "place": i, "word": word,
             "segment": found.segment[i], "value": float(found.scores[i])}
            for title, found in said.items()
            for i, word in enumerate(found.tokens)
        ]
    )  # fmt: skip
