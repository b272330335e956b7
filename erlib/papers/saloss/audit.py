"""How much does it matter where the paper's code departs from the paper? (saloss.md §4)

Each row changes one thing on the audited task, or the two that it names. Losses and the order of a
rationale's words are compared between models of the first seed; the ranking, the removal and the
choice of a seed between measurements of the same models.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from erlib.data.salience import Tokens, salience
from erlib.models import load_classifier
from erlib.papers.holes import or_hole
from erlib.papers.saloss.systems import (
    AUDITED,
    BASELINE,
    EQ3,
    SALOSS,
    Task,
    recipe_of,
    run_spec,
    tasks,
)
from erlib.papers.saloss.tables import SHOWN, measured
from erlib.parameters import Settings
from erlib.training.notes import noted
from erlib.training.rows import rows_of
from erlib.training.stages import Results

Effect = tuple[str, str, str, float, float]
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
MEASURES = {  # departure → the protocol that has it, and by which attributions
    "tokens deleted, not padded": ("delete", ("a",)),
    "gradients of the embedding matrix": ("matrix", ("xGx", "IG")),
}


def audit_table(settings: Settings, results: Results) -> pd.DataFrame:
    """departure, measure, system, without it, with it, change; NaN where a model failed."""
    task = next(t for t in tasks(settings) if t.role == AUDITED)
    found = measured(settings, results)
    found = found[found["set"] == task.paper]
    first = found[found["seed"] == settings.seeds[0]]
    rows = [
        *_losses(first),
        *_salience(settings, task),
        *_flips(first),
        *_order(first),
        *_seed_choice(found),
    ]
    table = pd.DataFrame(rows, columns=["departure", "measure", "system", "without", "with"])
    return table.assign(change=table["with"] - table["without"])


def _losses(first: pd.DataFrame) -> list[Effect]:
    """saloss.md §4.1, 4.2, 4.4, 4.19 and 4.21: what is trained."""
    measures = {
        "test F1-macro": first.query("kind == 'predictions' and shape == ''"),
        "fraction, α": first.query("kind == 'flips' and protocol == '' and sign == 'a'"),
    }
    column = {"test F1-macro": "f1_macro", "fraction, α": "fraction"}
    effects: list[Effect] = []
    for departure, (plain, changed) in LOSSES.items():
        name = "SaLoss, TF-IDF" if changed == "TFIDF" else "SaLoss"
        for measure, rows in measures.items():
            value = rows.set_index("system")[column[measure]]
            without, having = (float(value.get(s, np.nan)) for s in (plain, changed))
            effects.append((departure, measure, name, without, having))
    return effects


@or_hole(lambda why: list[Effect]())
@noted
def _salience(settings: Settings, task: Task) -> list[Effect]:
    """saloss.md §4.2, 4.19 and 4.21: the salience itself on dev texts, before any model.

    ρ is Spearman's within a text, mean over the texts in which neither salience is constant.
    """
    data = run_spec(settings, task, BASELINE, settings.seeds[0]).data
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


def _flips(first: pd.DataFrame) -> list[Effect]:
    """saloss.md §4.6 and 4.8: how tokens are ranked and removed."""
    flips = first[first["kind"] == "flips"].set_index(["system", "sign", "protocol"])["fraction"]
    return [
        (
            departure,
            f"fraction, {SHOWN[sign]}",
            name,
            float(flips.get((system, sign, ""), np.nan)),
            float(flips.get((system, sign, protocol), np.nan)),
        )
        for departure, (protocol, signs) in MEASURES.items()
        for sign in signs
        for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss"))
    ]


def _order(first: pd.DataFrame) -> list[Effect]:
    """metrics.md §5: FRESH's words in the order of their scores."""
    f1 = first[first["shape"] == "top_k"].set_index(["system", "order"])["f1_macro"]
    plain, changed = (float(f1.get((BASELINE, o), np.nan)) for o in ("document", "score"))
    name = "rationales in order of score"
    return [(name, "FRESH F1-macro, top-k", "Baseline", plain, changed)]


def _seed_choice(found: pd.DataFrame) -> list[Effect]:
    """saloss.md §4.5: the mean over seeds, and of several the seed with the highest test F1."""
    effects: list[Effect] = []
    for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss")):
        mine = found[found["system"] == system]
        f1 = mine.query("kind == 'predictions' and shape == ''").set_index("seed")["f1_macro"]
        alpha = mine.query("kind == 'flips' and protocol == '' and sign == 'a'")
        by_seed = alpha.set_index("seed")["fraction"]
        for measure, values in (("test F1-macro", f1), ("fraction, α", by_seed)):
            best = float(values.get(f1.idxmax(), np.nan)) if len(f1) > 1 else np.nan
            effects.append(("best seed by test F1", measure, name, float(values.mean()), best))
    return effects
