"""What do the paper's sweeps show? (Figures 3 and 4)"""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from erlib.papers.regex.grid import PAPERS_BEST, swept
from erlib.papers.regex.study import METRICS, WORDS, Study
from erlib.reports.style import GREY, figure_style, new_figure, palette


def figure_3(study: Study) -> tuple[Figure, pd.DataFrame]:
    """Faithfulness against λ4, the weight of explanation guided training."""
    return _sweep(study, "lambda", "λ₄, weight of guided training", scale="log")


def figure_4(study: Study) -> tuple[Figure, pd.DataFrame]:
    """Faithfulness against K, the share of a text that is masked."""
    return _sweep(study, "percent", "K, masked tokens (%)", scale="linear")


def _sweep(study: Study, name: str, label: str, *, scale: str) -> tuple[Figure, pd.DataFrame]:
    """One panel per metric; dotted lines stand where the paper finds the best value."""
    rows = [
        {
            "value": value,
            "attribution": cell.attribution,
            "seed": cell.seed,
            "metric": metric,
            "AOPC": study.value(cell.spec, column),
        }
        for value, cells in swept(study.settings, name).items()
        for cell in cells
        for metric, column in METRICS.items()
    ]
    data = pd.DataFrame(rows)
    figure, [axes] = new_figure(1, 2, height=3.2)
    with figure_style():
        for axis, metric in zip(axes, METRICS, strict=True):
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
            best = PAPERS_BEST[name, metric]
            for value in best:
                axis.axvline(value, color=GREY, linestyle=":", linewidth=1.8, zorder=1)
            values = sorted({*panel["value"], *best})
            axis.set(title=f"normalised {WORDS[metric]}", xlabel=label, ylim=(0, None))
            axis.set(xscale=scale, xticks=values, xticklabels=[f"{v:g}" for v in values])
            axis.grid(visible=False, axis="x")
            handles, names = axis.get_legend_handles_labels()
            axis.legend().remove()
        figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure, data
