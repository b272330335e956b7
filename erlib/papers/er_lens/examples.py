"""How do the systems differ on a single text?"""

from __future__ import annotations

from erlib.attributions import attribute
from erlib.papers.er_lens.cells import placed
from erlib.papers.er_lens.evaluations import HOME, annotated, data_of
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
    settings, runs = study.settings, placed(study)
    data = data_of(settings, annotated(settings)[HOME])
    rows = rows_of(data, "test", settings.grid.get("test_rows"))
    fit = [i for i, row in enumerate(rows)
           if any(row["rationale"]) and WORDS[0] <= len(row["words"]) <= WORDS[1]]  # fmt: skip
    chosen = rows.select(fit[:count])
    first = [runs.get((system, settings.seeds[0])) for system in SYSTEMS_SHOWN]
    models = {s: study.model(run) for s, run in zip(SYSTEMS_SHOWN, first, strict=True) if run}
    scores = {
        x: [attribute(model, chosen, method, variant=SIGNED.get(x, "er_lens"), target="gold")
            for model in models.values()]
        for x, method in TECHNIQUES.items()
    }  # fmt: skip
    names = chosen.features["label"].names
    return Html("").join(
        heatmap_grid(
            {x: [of_system[i] for of_system in scores[x]] for x in TECHNIQUES},
            columns=list(models),
            title=f"{i + 1}. gold: {names[row['label']]}",
            rationale=row["rationale"],
            legend=i == 0,
        )
        for i, row in enumerate(chosen)
    )
