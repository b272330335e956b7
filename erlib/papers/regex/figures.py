"""What do the paper's sweeps show? (Figures 3 and 4)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from erlib.papers.regex.evaluations import WORDS
from erlib.papers.regex.systems import SYMBOLS
from erlib.papers.study import Study
from erlib.reports.style import GREY, figure_style, new_figure, palette


def figure_3(study: Study) -> tuple[Figure, pd.DataFrame]:
    """Faithfulness against λ4, the weight of explanation guided training."""
    best = {"norm_suff": (0.01,), "norm_comp": (0.001,)}
    return _sweep(study, "figure-3", best, "λ₄, weight of guided training", scale="log")


def figure_4(study: Study) -> tuple[Figure, pd.DataFrame]:
    """Faithfulness against K, the share of a text that is masked."""
    best = dict.fromkeys(WORDS, (0.15, 0.2))
    return _sweep(study, "figure-4", best, "K, share of masked tokens", scale="linear")


def _sweep(
    study: Study, name: str, best: Mapping[str, Sequence[float]], label: str, *, scale: str
) -> tuple[Figure, pd.DataFrame]:
    """One panel per metric; dotted lines stand where the paper finds the best value."""
    data = swept(study, name)
    figure, [axes] = new_figure(1, 2, height=3.2)
    with figure_style():
        for axis, metric in zip(axes, WORDS, strict=True):
            panel = data[data["metric"] == metric]
            sns.lineplot(
                panel,
                x="value",
                y="AOPC",
                hue="attribution",
                style="attribution",
                palette=palette(panel["attribution"]),
                markers=True,
                dashes=False,
                errorbar=None,
                ax=axis,
            )
            for value in best[metric]:
                axis.axvline(value, color=GREY, linestyle=":", linewidth=1.8, zorder=1)
            values = sorted({*panel["value"], *best[metric]})
            axis.set(title=f"normalised {WORDS[metric]}", xlabel=label, ylim=(0, None))
            axis.set(xscale=scale, xticks=values, xticklabels=[f"{v:g}" for v in values])
            axis.grid(visible=False, axis="x")
            handles, names = axis.get_legend_handles_labels()
            axis.legend().remove()
        names = [SYMBOLS.get(name, name) for name in names]
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure, data


def swept(study: Study, name: str) -> pd.DataFrame:
    """The cells of a sweep's figure by attribution: value, attribution, seed, metric, AOPC."""
    numbers = study.numbers(cell for cell in study.of(name) if cell.column)
    value = numbers["row"].str.split(" = ").str[1].astype(float)
    numbers = numbers.assign(value_of=value)[["value_of", "column", "seed", "metric", "value"]]
    return numbers.set_axis(["value", "attribution", "seed", "metric", "AOPC"], axis=1)
