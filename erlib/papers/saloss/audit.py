"""How much does it matter where the paper's code departs from the paper? (saloss.md §4)

Each row changes one thing on the audited task, or the two that it names. Losses and the order of a
rationale's words are compared between models of the first seed; the ranking, the removal and the
choice of a seed between measurements of the same models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
from scipy import stats

from erlib.data.salience import Tokens, salience
from erlib.models import load_classifier
from erlib.papers.holes import or_hole
from erlib.papers.saloss.cells import baseline_runs
from erlib.papers.saloss.systems import (
    AUDITED,
    BASELINE,
    EQ3,
    SALOSS,
    SHOWN,
    Task,
    recipe_of,
    tasks,
)
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.notes import noted
from erlib.training.rows import rows_of

Place = tuple[str, str]  # of a cell: row and column
Compared = tuple[str, str, str, Place, Place]  # departure, measure, system; without it, with it
Effect = tuple[str, str, str, float, float]
NAMES = {BASELINE: "Baseline", SALOSS: "SaLoss"}
MEASURES = {"f1": "test F1-macro", "a": "fraction, α"}
LOSSES = {  # departure → the system without it and the one with it
    "second softmax and squared sum": (EQ3, SALOSS),
    "second softmax, alone": (EQ3, "second softmax"),
    "squared sum, alone": (EQ3, "squared sum"),
    "CE on probabilities": (SALOSS, "CE on probabilities"),
    "TextRank with window 8, two steps": (SALOSS, "code's TextRank"),
    "two-way neighbours count 2": ("unweighted TextRank", SALOSS),
    "TF-IDF of scikit-learn's words": ("TF-IDF of every piece", "TFIDF"),
}
# departure → the salience function, its options without the departure and with it
SALIENCES: dict[str, tuple[str, dict[str, int], dict[str, int]]] = {
    "two-way neighbours count 2": ("textrank", {"two_way": 1}, {}),
    "TextRank with window 8": ("textrank", {}, {"window": 8}),
    "TextRank after two steps": ("textrank", {}, {"steps": 2}),
    "TF-IDF of scikit-learn's words": ("tfidf", {"every_piece": True}, {}),
    "χ² of scikit-learn's words": ("chi_squared", {"every_piece": True}, {}),
}
TEXTS = 200  # dev texts on which saliences are compared
WAYS = {  # departure → the protocol that has it, and by which attributions
    "tokens deleted, not padded": ("delete", ("a",)),
    "gradients of the embedding matrix": ("matrix", ("xGx", "IG")),
}


def audit_table(study: Study) -> pd.DataFrame:
    """departure, measure, system, without it, with it, change; NaN where a model failed."""
    task = next(t for t in tasks(study.settings) if t.role == AUDITED)
    values = study.numbers(study.of("audit")).set_index(["row", "column", "seed"])["value"]
    first = values.sort_index().xs(study.settings.seeds[0], level="seed")
    rows = [
        *_of_cells(first, _losses()),
        *_salience(study.settings, task),
        *_of_cells(first, _measurements()),
        *_seed_choice(values.sort_index()),
    ]
    table = pd.DataFrame(rows, columns=["departure", "measure", "system", "without", "with"])
    return table.assign(change=table["with"] - table["without"])


def _of_cells(first: pd.Series, compared: Iterable[Compared]) -> Iterator[Effect]:
    for *named, plain, changed in compared:
        yield *named, first.get(plain, np.nan), first.get(changed, np.nan)


def _losses() -> Iterator[Compared]:
    """saloss.md §4.1, 4.2, 4.4, 4.19 and 4.21: what is trained."""
    for departure, (plain, changed) in LOSSES.items():
        name = "SaLoss, TF-IDF" if changed == "TFIDF" else "SaLoss"
        for measure, said in MEASURES.items():
            yield departure, said, name, (plain, measure), (changed, measure)


def _measurements() -> Iterator[Compared]:
    """saloss.md §4.6 and 4.8: how tokens are ranked and removed; metrics.md §5: the words of a
    rationale in the order of their scores."""
    for departure, (protocol, signs) in WAYS.items():
        for sign in signs:
            for system, name in NAMES.items():
                changed = f"{sign}, {protocol}"
                yield departure, f"fraction, {SHOWN[sign]}", name, (system, sign), (system, changed)
    orders = (BASELINE, "fresh, document"), (BASELINE, "fresh, score")
    yield "rationales in order of score", "FRESH F1-macro, top-k", "Baseline", *orders


@or_hole(lambda why: list[Effect]())
@noted
def _salience(settings: Settings, task: Task) -> list[Effect]:
    """saloss.md §4.2, 4.19 and 4.21: the salience itself on dev texts, before any model.

    ρ is Spearman's within a text, mean over the texts in which neither salience is constant.
    """
    data = baseline_runs(settings, task)[0].data
    classifier = load_classifier(recipe_of(settings, task)["model"])
    train, dev = (
        classifier.encode(rows_of(data, split, rows), max_length=data.max_length)
        for split, rows in (("train", data.train_rows), ("dev", TEXTS))
    )
    labels = [text.label or 0 for text in train]
    effects: list[Effect] = []
    for departure, (name, *both) in SALIENCES.items():
        scores = []
        for options in both:
            function = salience(name, **options)
            function.fit([Tokens.of(text) for text in train], labels)
            scores.append([function.score(Tokens.of(t))[~np.array(t.special)] for t in dev])
        pairs = list(zip(*scores, strict=True))
        differ = float(np.mean([not np.allclose(a, b) for a, b in pairs]))
        rho = [stats.spearmanr(a, b).statistic for a, b in pairs if np.ptp(a) and np.ptp(b)]
        plain, changed = (float(np.mean(np.concatenate(s) == 0)) for s in scores)
        effects += [
            (departure, "texts whose salience differs", "–", 0.0, differ),
            (departure, "ρ of the two saliences", "–", 1.0, float(np.mean(rho))),
        ]
        if plain or changed:
            effects.append((departure, "tokens of salience 0", "–", plain, changed))
    return effects


def _seed_choice(values: pd.Series) -> list[Effect]:
    """saloss.md §4.5: the mean over seeds, and of several the seed with the highest test F1."""
    effects: list[Effect] = []
    for system, name in NAMES.items():
        f1 = values[system, "f1"].dropna()
        for measure, said in MEASURES.items():
            by_seed = values[system, measure]
            best = by_seed.get(f1.idxmax(), np.nan) if len(f1) > 1 else np.nan
            effects.append(("best seed by test F1", said, name, by_seed.mean(), best))
    return effects
