"""Which way is better for each metric, how far can it go, and how much better is one value?

One row per metric; reports, claims and the average relative gain read directions from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from erlib.errors import unknown

INFINITY = float("inf")


@dataclass(frozen=True)
class Metric:
    """What a number means without its paper. Raise `version` when a metric's numbers change."""

    name: str
    higher_is_better: bool | None  # None: neither end is good as such
    low: float
    high: float
    title: str
    version: int = 1


METRICS = {
    metric.name: metric
    for metric in (
        # metrics.md §11
        Metric("f1_macro", True, 0, 1, "F1-macro"),
        Metric("f1_binary", True, 0, 1, "F1 of class 1"),
        Metric("accuracy", True, 0, 1, "accuracy"),
        Metric("span_exact_match", True, 0, 1, "span exact match"),
        Metric("span_f1", True, 0, 1, "span F1"),
        Metric("attack_success_rate", False, 0, 1, "attack success rate"),
        Metric("accuracy_under_attack", True, 0, 1, "accuracy under attack"),
        # metrics.md §1
        Metric("auc", True, 0, 1, "plausibility, AUC"),
        Metric("average_precision", True, 0, 1, "plausibility, AP"),
        Metric("recall_at_k", True, 0, 1, "plausibility, recall@k"),
        # metrics.md §2: er_lens and regex report the normalised pair, ivra the signed differences
        Metric("normalised_sufficiency", True, 0, 1, "normalised sufficiency"),
        Metric("normalised_comprehensiveness", True, 0, 1, "normalised comprehensiveness"),
        Metric("ivra_sufficiency", False, -1, 1, "sufficiency p(x) − p(t)"),
        Metric("ivra_comprehensiveness", True, -1, 1, "comprehensiveness p(x) − p(x∖t)"),
        # metrics.md §14 and 15
        Metric("normalised_aopc", True, 0, 1, "normalised AOPC, best words first"),
        Metric("normalised_aopc_last", False, 0, 1, "normalised AOPC, worst words first"),
        Metric("soft_sufficiency", True, 0, 1, "soft sufficiency"),
        Metric("soft_comprehensiveness", True, 0, 1, "soft comprehensiveness"),
        # metrics.md §16
        Metric("found_at_k", True, 0, 1, "planted words among the k best"),
        Metric("rule_accuracy", True, 0, 1, "accuracy on counterfactual pairs"),
        # metrics.md §3 to 6
        Metric("important_share", None, 0, 1, "share of important tokens"),
        Metric("decision_flip", False, 0, 1, "fraction of tokens to a decision flip"),
        Metric("fresh_f1", True, 0, 1, "FRESH F1-macro"),
        Metric("jaccard", True, 0, 1, "Jaccard@25 % between models"),
        # metrics.md §7 and 8
        Metric("simulatability", True, 0, 1, "simulatability"),
        Metric("consistency", True, -1, 1, "consistency"),
        Metric("arg", True, -INFINITY, INFINITY, "average relative gain, %"),
        # metrics.md §9
        Metric("kendall", True, -1, 1, "Kendall's τ-b"),
        Metric("pearson", True, -1, 1, "Pearson's r"),
        # metrics.md §10
        Metric("confidence", None, 0, 1, "confidence"),
        Metric("variability", None, 0, 0.5, "variability"),
        Metric("correctness", None, 0, INFINITY, "correct epochs"),
        Metric("closeness", None, 0, 0.25, "closeness"),
        Metric("grad_norm", None, 0, INFINITY, "‖∂h/∂E‖"),
        Metric("min_dist", None, 0, INFINITY, "distance to the nearest text"),
    )
}


def metric(name: str) -> Metric:
    """The declared metric of this name."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


@dataclass(frozen=True)
class Gain:
    """`arg` in per cent, and per task the relative gain (per cent) and plain difference behind it.

    Look at the differences too: a gain over a value near 0 (sufficiency .016) says little.
    """

    arg: float
    relative: dict[str, float]
    difference: dict[str, float]


def average_relative_gain(
    name: str, alone: Mapping[str, float], other: Mapping[str, float]
) -> Gain:
    """ARG = 100 · mean over tasks of (m_b − m_a)/|m_a|; (m_a − m_b)/|m_a| where lower is better.

    `alone` (m_a): by task, of models trained for the criterion `name` alone; `other` (m_b): of the
    models compared with them (metrics.md §8).
    """
    direction = metric(name).higher_is_better
    if direction is None:
        raise ValueError(f"metric '{name}' has no better direction, so nothing is gained by it")
    if set(alone) != set(other) or not alone:
        raise ValueError(f"tasks {sorted(alone)} and {sorted(other)} must be the same and not none")
    sign = 1 if direction else -1
    difference = {task: sign * (other[task] - alone[task]) for task in alone}
    # Relative to 0 every gain is infinite; NaN says that there is none to report.
    relative = {
        task: 100 * d / abs(alone[task]) if alone[task] else float("nan")
        for task, d in difference.items()
    }
    return Gain(sum(relative.values()) / len(relative), relative, difference)
