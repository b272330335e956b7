"""What do the paper's figures show?"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from erlib.papers.er_lens.systems import TECHNIQUES, annotated, system_of, test_sets
from erlib.papers.er_lens.tables import scores
from erlib.parameters import Settings
from erlib.reports.style import SIZED, figure_style, new_figure, palette
from erlib.training.executors import per_text
from erlib.training.stages import Results


def figure_2(settings: Settings, results: Results) -> tuple[Figure, pd.DataFrame]:
    """F1 of every seed, by system and set: boxes over the seeds, a dot for each."""
    data = scores(settings, results, "predictions", "f1_macro")
    sets = [t.name for t in test_sets(settings)]
    columns = min(3, len(sets))
    figure, axes = new_figure(-(-len(sets) // columns), columns)
    with figure_style():
        flat = [axis for row in axes for axis in row]
        for axis, name in zip(flat, sets, strict=False):
            panel = data[data["column"] == name]
            options = {
                "data": panel,
                "x": "row",
                "y": "value",
                "hue": "row",
                "palette": palette(panel["row"]),
                "ax": axis,
                "legend": False,
            }
            sns.boxplot(**options, width=0.5, fliersize=0, boxprops={"alpha": 0.35})
            sns.stripplot(**options, size=6, jitter=0.08)
            axis.set(title=name, xlabel="", ylabel="F1-macro (%)")
        for axis in flat[len(sets) :]:
            axis.set_axis_off()
    return figure, data


def figure_4(settings: Settings, results: Results) -> tuple[Figure, pd.DataFrame]:
    """Plausibility of each layer's attention on in-domain dev texts, mean over texts and seeds."""
    home = next(t for t in annotated(settings) if t.in_domain)
    table = results["measurements"].query(
        "kind == 'plausibility' and corpus == @home.corpus and split == @home.split"
        f" and method == '{TECHNIQUES['ATT']}'"
    )
    rows = []
    for spec in table["spec"]:
        layers = np.stack(per_text(spec, store=settings.store)["layer_auc"].to_numpy())
        for layer, value in enumerate(np.nanmean(layers, axis=0)):
            rows.append(
                {
                    "system": system_of(spec.run),
                    "seed": spec.run.seed,
                    "layer": layer,
                    "auc": 100 * value,
                }
            )
    data = pd.DataFrame(rows)
    means = data.pivot_table(index="system", columns="layer", values="auc", sort=False)
    figure, [[axis]] = new_figure(height=0.6 * len(means) + 1.6)
    with figure_style():
        sns.heatmap(
            means,
            ax=axis,
            annot=True,
            fmt=".1f",
            cmap=SIZED,
            vmin=0,
            vmax=100,
            cbar_kws={"label": "AUC x 100"},
        )
        axis.set(xlabel="layer", ylabel="", title=f"attention of the [CLS] row, {home.name}")
        axis.tick_params(axis="y", rotation=0)
    return figure, data
