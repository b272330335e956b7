"""Which two methods give the same scores, whatever the text?

What agrees by construction is no evidence of agreement: reports, claims and the explorer ask here.
"""

from __future__ import annotations

from dataclasses import replace

from torch import nn

from erlib.attributions.rescale import RULED
from erlib.attributions.variants import options_of
from erlib.models.classifier import Classifier

ONE_BASELINE = "all baselines of DeepSHAP are equal, and their mean is DeepLIFT"
NO_RULE = "from a zero baseline, and where DeepLIFT has no rule to apply, it is input × gradient"
EQUAL = {
    frozenset({"deeplift", "deepshap"}): ONE_BASELINE,
    frozenset({"deeplift", "input_x_gradient"}): NO_RULE,
    frozenset({"deepshap", "input_x_gradient"}): NO_RULE,
}

Named = tuple[str, str | None]  # a method and its variant


def equal_by_construction(
    one: Named, other: Named, classifier: Classifier | None = None
) -> str | None:
    """Why two methods score every text alike, but for rounding, or None.

    With a classifier what holds for this model, without one what holds for all.
    """
    reason = EQUAL.get(frozenset({one[0], other[0]}))
    family = "" if classifier is None else classifier.family
    options, others = (replace(options_of(*m, family), baselines=1) for m in (one, other))
    if reason is None or options != others or options.dropout:  # which draws anew in every pass
        return None
    if reason == NO_RULE and (
        (options.baseline, options.rule) != ("zero", "captum")
        or classifier is None
        or has_rule(classifier.model)
    ):
        return None
    return reason


def has_rule(model: nn.Module) -> bool:
    """Whether Captum's DeepLift replaces the gradient of any of the model's modules."""
    return any(type(module) in RULED for module in model.modules())
