"""What does the paper's figure show?"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from erlib.config import EvalSpec
from erlib.data.parts_of_speech import TAGGER_NAMES, TAGS, installed_tagger
from erlib.papers.saloss.systems import BASELINE, SALOSS, TAGGED, tasks
from erlib.papers.saloss.tables import measured
from erlib.parameters import Settings
from erlib.reports.style import figure_style, new_figure, palette
from erlib.training.evaluating import per_text
from erlib.training.stages import Results

MOST = 0.8  # words in more than this share of the texts are left out


def figure_1(settings: Settings, results: Results) -> tuple[Figure, pd.DataFrame]:
    """Mean importance of a word by its part of speech (α∇α), Baseline beside SaLoss.

    Importance is a share: that of all words of a text sums to 1.
    """
    data = importance(settings, results)
    panels = [task for task in tasks(settings) if task.role in TAGGED]
    figure, axes = new_figure(len(panels), 1, height=2.6 * len(panels) + 0.5)
    colours = palette(["Baseline", "SaLoss"])
    with figure_style():
        for axis, task in zip((row[0] for row in axes), panels, strict=True):
            mine = data[data["set"] == task.paper]
            means = mine.pivot_table(index="tag", columns="system", values="importance")
            means = means.reindex(columns=["Baseline", "SaLoss"])  # one may have failed
            words = mine.groupby("tag")["words"].first()
            present = [tag for tag in TAGS if tag in means.index]
            for place, system in enumerate(("Baseline", "SaLoss")):
                axis.bar(
                    np.arange(len(present)) + 0.4 * place - 0.2,
                    means.loc[present, system],
                    width=0.38,
                    color=colours[system],
                    label=system,
                )
            ticks = [f"{tag}\n{words[tag]}" for tag in present]
            axis.set_xticks(range(len(present)), ticks, fontsize=7)
            weak = "" if mine["trained"].all() else ", not trained"
            axis.set(ylabel="importance of a word", title=f"{task.label}{weak}")
            axis.grid(axis="x", visible=False)
        axes[-1][0].set_xlabel(
            f"part of speech by {TAGGER_NAMES[installed_tagger()]}, and number of words"
        )
        figure.legend(*axes[0][0].get_legend_handles_labels(), ncols=2, loc="outside upper right")
    return figure, data.assign(tagger=TAGGER_NAMES[installed_tagger()])


def importance(settings: Settings, results: Results) -> pd.DataFrame:
    """One row per set, system, seed and tag: mean importance, and how many words it is of.

    `trained`: has the model learnt its task?
    """
    found = measured(settings, results).query("kind == 'parts_of_speech'")
    rows = []
    for row in found.itertuples():
        totals = tag_totals(settings, row.spec)
        sums, counts = totals[:, :, 0].sum(axis=0), totals[:, :, 1].sum(axis=0)
        rows += [
            {
                "set": row.set,
                "system": {BASELINE: "Baseline", SALOSS: "SaLoss"}[row.system],
                "seed": row.seed,
                "tag": tag,
                "importance": sums[i] / counts[i],
                "words": int(counts[i]),
                "trained": row.trained,
            }
            for i, tag in enumerate(TAGS)
            if counts[i]
        ]
    return pd.DataFrame(rows)


def tag_totals(settings: Settings, spec: EvalSpec) -> NDArray[np.float64]:
    """[text, tag, (sum of the scores of its words, how many they are)].

    Words in fewer than `least_documents` texts or in more than 80 % of them are left out. The
    reference drops stop words as well; they stay here, since most pronouns, auxiliaries and
    conjunctions, of which the paper speaks, are stop words.
    """
    table = per_text(spec, store=settings.store)
    documents = Counter(w for words in table["words"] for w in {word.lower() for word in words})
    least, most = settings.grid["least_documents"], MOST * len(table)
    totals = np.zeros((len(table), len(TAGS), 2))
    for i, row in enumerate(table.itertuples()):
        for word, tag, score in zip(row.words, row.tags, row.scores, strict=True):
            if least <= documents[word.lower()] <= most:
                totals[i, TAGS.index(tag)] += (score, 1)
    return totals
