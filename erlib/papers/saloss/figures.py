"""What does the paper's figure show?"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.data.parts_of_speech import TAGGER_NAMES, TAGS, installed_tagger
from erlib.papers.saloss.systems import TAGGED, tasks
from erlib.papers.study import Study
from erlib.reports.panels import Drawn
from erlib.reports.style import figure_style, new_figure, palette

SYSTEMS = ("Baseline", "SaLoss")


def figure_1(study: Study) -> Drawn:
    """Mean importance of a word by its part of speech (α∇α), Baseline beside SaLoss.

    Importance is a share: that of all words of a text sums to 1.
    """
    data, tagger = importance(study), TAGGER_NAMES[installed_tagger()]
    panels = [task for task in tasks(study.settings) if task.role in TAGGED]
    figure, axes = new_figure(len(panels), 1, height=2.6 * len(panels) + 0.5)
    colours = palette(SYSTEMS)
    with figure_style():
        for axis, task in zip((row[0] for row in axes), panels, strict=True):
            mine = data[data["set"] == task.paper]
            means = mine.pivot_table(index="tag", columns="system", values="importance")
            means = means.reindex(columns=list(SYSTEMS))  # one may have failed
            words = mine.groupby("tag")["words"].first()
            present = [tag for tag in TAGS if tag in means.index]
            for place, system in enumerate(SYSTEMS):
                at = np.arange(len(present)) + 0.4 * place - 0.2
                heights = means.loc[present, system]
                axis.bar(at, heights, width=0.38, color=colours[system], label=system)
            ticks = [f"{tag}\n{words[tag]}" for tag in present]
            axis.set_xticks(range(len(present)), ticks, fontsize=7)
            weak = "" if mine["trained"].all() else ", not trained"
            axis.set(ylabel="importance of a word", title=f"{task.label}{weak}")
            axis.grid(axis="x", visible=False)
        axes[-1][0].set_xlabel(f"part of speech by {tagger}, and number of words")
        figure.legend(*axes[0][0].get_legend_handles_labels(), ncols=2, loc="outside upper right")
    return figure, data.assign(tagger=tagger)


def importance(study: Study) -> pd.DataFrame:
    """set, system, seed, tag, importance, words (how many it is of), trained."""
    rows = []
    for cell in study.of("figure-1"):
        found = study.reading(cell, "mean_importance")
        if found and np.isfinite(found.value):
            assert isinstance(found.texts, pd.DataFrame)
            name, tag = cell.row.rsplit(" ", 1)
            words = int(found.texts["words"].sum())
            rows.append((name, cell.column, cell.seed, tag, found.value, words, found.trained))
    columns = ["set", "system", "seed", "tag", "importance", "words", "trained"]
    return pd.DataFrame(rows, columns=columns)
