"""How much does it matter where the paper's code departs from the paper? (saloss.md §4)

Each row changes one thing on the audited task, or the two that it names. Losses and the order of a
rationale's words are compared between models of the first seed; the ranking, the removal and the
choice of a seed between measurements of the same models.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from erlib.data.salience import textrank
from erlib.models import load_classifier
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
from erlib.training.identity import rows_of
from erlib.training.stages import Results

Effect = tuple[str, str, str, float, float]
LOSSES = {  # departure → the system without it and the one with it
    "second softmax and squared sum": (EQ3, SALOSS),
    "second softmax, alone": (EQ3, "second softmax"),
    "squared sum, alone": (EQ3, "squared sum"),
    "CE on probabilities": (SALOSS, "CE on probabilities"),
    "TextRank with window 8, two steps": (SALOSS, "code's TextRank"),
}
MEASURES = {  # departure → the protocol that has it, and by which attributions
    "tokens deleted, not padded": ("delete", ("a",)),
    "gradients of the embedding matrix": ("matrix", ("xGx", "IG")),
}


def audit_table(settings: Settings, results: Results) -> pd.DataFrame:
    """departure, measure, system, without it, with it, change."""
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
    """§4.1, 4.2, 4.4 and 4.19: what is trained."""
    measures = {
        "test F1-macro": first.query("kind == 'predictions' and shape == ''"),
        "fraction, α": first.query("kind == 'flips' and protocol == '' and sign == 'a'"),
    }
    column = {"test F1-macro": "f1_macro", "fraction, α": "fraction"}
    effects: list[Effect] = []
    for departure, (plain, changed) in LOSSES.items():
        for measure, rows in measures.items():
            value = rows.set_index("system")[column[measure]]
            effects.append(
                (departure, measure, "SaLoss", float(value[plain]), float(value[changed]))
            )
    return effects


def _salience(settings: Settings, task: Task) -> list[Effect]:
    """§4.2 and 4.19: Spearman's ρ of a text's TextRank with the paper's, mean over dev texts."""
    data = run_spec(settings, task, BASELINE, settings.seeds[0]).data
    classifier = load_classifier(recipe_of(settings, task)["model"])
    texts = classifier.encode(rows_of(data, "dev", data.dev_rows), max_length=data.max_length)
    pieces = [
        [piece for piece, special in zip(t.input_ids, t.special, strict=True) if not special]
        for t in texts
    ]

    def agreement(**options: int) -> float:
        pairs = [(textrank(p), textrank(p, **options)) for p in pieces]
        rho = [stats.spearmanr(a, b).statistic for a, b in pairs if np.ptp(a) and np.ptp(b)]
        return float(np.mean(rho))

    return [
        ("TextRank with window 8", "ρ with window 4", "–", 1.0, agreement(window=8)),
        ("TextRank after two steps", "ρ with ten steps", "–", 1.0, agreement(steps=2)),
    ]


def _flips(first: pd.DataFrame) -> list[Effect]:
    """§4.6 and 4.8: how tokens are ranked and removed."""
    flips = first[first["kind"] == "flips"].set_index(["system", "sign", "protocol"])["fraction"]
    return [
        (
            departure,
            f"fraction, {SHOWN[sign]}",
            name,
            float(flips[system, sign, ""]),
            float(flips[system, sign, protocol]),
        )
        for departure, (protocol, signs) in MEASURES.items()
        for sign in signs
        for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss"))
    ]


def _order(first: pd.DataFrame) -> list[Effect]:
    """metrics.md §5: FRESH's words in the order of their scores."""
    f1 = first[first["shape"] == "top_k"].set_index(["system", "order"])["f1_macro"]
    plain, changed = float(f1[BASELINE, "document"]), float(f1[BASELINE, "score"])
    name = "rationales in order of score"
    return [(name, "FRESH F1-macro, top-k", "Baseline", plain, changed)]


def _seed_choice(found: pd.DataFrame) -> list[Effect]:
    """§4.5: the mean over seeds, and the seed with the highest test F1 where there are several."""
    effects: list[Effect] = []
    for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss")):
        mine = found[found["system"] == system]
        f1 = mine.query("kind == 'predictions' and shape == ''").set_index("seed")["f1_macro"]
        alpha = mine.query("kind == 'flips' and protocol == '' and sign == 'a'")
        by_seed = alpha.set_index("seed")["fraction"]
        for measure, values in (("test F1-macro", f1), ("fraction, α", by_seed)):
            best = float(values[f1.idxmax()]) if len(f1) > 1 else np.nan
            effects.append(("best seed by test F1", measure, name, float(values.mean()), best))
    return effects
