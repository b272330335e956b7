"""How do the systems differ on a single text?"""

from __future__ import annotations

from erlib.attributions import attribute
from erlib.papers.er_lens.cells import placed
from erlib.papers.er_lens.sets import HOME, annotated, data_of
from erlib.papers.er_lens.systems import TECHNIQUES
from erlib.papers.holes import as_text, or_hole
from erlib.papers.study import Study
from erlib.reports.heatmap import heatmap_grid
from erlib.reports.markup import Html
from erlib.training.rows import rows_of

SYSTEMS_SHOWN = ("Baseline", "ER+Att", "ER-C+AttR")
SIGNED = {"IXG": "er_lens_signed"}  # a reader wants to see what speaks against the class
WORDS = (6, 18)  # of a quoted text, so that three stand side by side


@or_hole(as_text)
def examples(study: Study, count: int) -> Html:
    """Six techniques of three systems, first seed, on the first test texts with a rationale.

    Other notebooks quote the same: a report gives few texts away.
    """
    settings = study.settings
    data, runs = data_of(settings, annotated(settings)[HOME]), placed(study)
    rows = rows_of(data, "test", settings.grid.get("test_rows"))
    fit = [
        i
        for i, row in enumerate(rows)
        if any(row["rationale"]) and WORDS[0] <= len(row["words"]) <= WORDS[1]
    ]
    chosen = rows.select(fit[:count])
    names = chosen.features["label"].names
    shown = {}
    for system in SYSTEMS_SHOWN:
        if (system, settings.seeds[0]) not in runs:
            continue
        classifier = study.model(runs[system, settings.seeds[0]])
        shown[system] = {
            technique: attribute(
                classifier, chosen, method, variant=SIGNED.get(technique, "er_lens"), target="gold"
            )
            for technique, method in TECHNIQUES.items()
        }
    return Html("").join(
        heatmap_grid(
            {x: [shown[system][x][i] for system in shown] for x in TECHNIQUES},
            columns=list(shown),
            title=f"{i + 1}. gold: {names[row['label']]}",
            rationale=row["rationale"],
            legend=i == 0,
        )
        for i, row in enumerate(chosen)
    )
