"""Has a Baseline learnt more from its texts than a linear model can read off the frozen encoder?

Where it has not, a system that scores lower may not have learnt in so few steps, and the
difference is no cost of guidance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.task import accuracy, f1_binary, f1_macro
from erlib.papers.holes import failed
from erlib.parameters import Settings
from erlib.training.evaluating import evaluate, per_text

SCORES: Mapping[str, tuple[str, Callable[..., float]]] = {
    "f1_macro": ("F1-macro", f1_macro),
    "f1_binary": ("F1", f1_binary),
    "accuracy": ("accuracy", accuracy),
}
CAPTION = (
    "What the encoder knows before training: {score} (%) on test texts of logistic regression "
    "(scikit-learn's defaults) on the frozen encoder's last hidden states, averaged over the "
    "tokens, fitted to the Baseline's own training texts; of the Baseline (mean over seeds); and "
    "of the best that one answer for all texts can do. Span tasks have none."
)
LINEAR, TUNED, CONSTANT = "logistic regression", "Baseline", "one answer"


def encoder_table(
    settings: Settings, baselines: Mapping[str, Sequence[EvalSpec]], metric: str
) -> tuple[pd.DataFrame, list[str]]:
    """One row per set, and the hashes of the evaluations behind them.

    `baselines`: by the paper's name of a set, the answers of its Baselines, one of each seed. All
    learn from the same texts, so that one regression stands beside them. Of a Baseline that goes on
    from another run these are that run's texts, of which its own few are a part.
    """
    probes = {
        name: replace(specs[0], run=_first(specs[0]), kind="frozen_probe")
        for name, specs in baselines.items()
    }
    asked = [*(spec for specs in baselines.values() for spec in specs), *probes.values()]
    found = evaluate(asked, **settings.where)
    values = dict(zip(asked, 100 * found[metric], strict=True))
    holes, rows = failed([found]), []
    for name, all_seeds in baselines.items():
        specs = [spec for spec in all_seeds if spec not in holes]
        if not specs:
            continue
        gold = per_text(specs[0], store=settings.store, device=settings.device)["label"]
        linear, tuned = values[probes[name]], float(np.mean([values[s] for s in specs]))
        rows.append(
            {
                "set": name,
                "corpus": specs[0].data.corpus,
                "test texts": len(gold),
                CONSTANT: 100 * constant_score(gold, metric),
                LINEAR: linear,
                TUNED: tuned,
                "difference": tuned - linear,
                "seeds": len(specs),
            }
        )
    return pd.DataFrame(rows), found["eval"].tolist()


def _first(answers: EvalSpec) -> RunSpec | None:
    """The run that was trained from the pretrained encoder."""
    return answers.run and (answers.run.start or answers.run)


def constant_score(gold: pd.Series, metric: str) -> float:
    """The best that one class for all texts can reach."""
    return max(SCORES[metric][1](gold, np.full(len(gold), c)) for c in gold.unique())


def caption(metric: str) -> str:
    """What the table shows."""
    return CAPTION.format(score=SCORES[metric][0])


def about_encoder(table: pd.DataFrame) -> str:
    """Where the Baseline is below what was there before training, or what one answer reaches."""
    below = table.loc[table["difference"] < 0, "set"]
    text = "Every Baseline is at least as good as logistic regression on the frozen encoder."
    if len(below):
        text = (
            f"Below logistic regression on the frozen encoder: the Baseline of {', '.join(below)}. "
            "There the models have learnt less than the encoder offers, and a lower score of "
            "another system is not what its guidance costs."
        )
    idle = table.loc[table[TUNED] <= table[CONSTANT] + 1e-9, "set"]
    if len(idle):
        text += f" No better than one answer for all texts: the Baseline of {', '.join(idle)}."
    return text
