"""Attribution methods behind one verb, `attribute`; a new one is one registered function."""

from erlib.attributions import (
    alti,
    attention,
    attn_lrp,
    decompx,
    gradients,
    learned,
    occlusion,
    perturbation,
    shapley,
    value_zeroing,
)
from erlib.attributions.attribute import Attribution, attribute, attribute_encoded
from erlib.attributions.equal import equal_by_construction
from erlib.attributions.registry import METHODS, attribution_table, described, method, register

__all__ = [
    "METHODS",
    "Attribution",
    "alti",
    "attention",
    "attn_lrp",
    "attribute",
    "attribute_encoded",
    "attribution_table",
    "decompx",
    "equal_by_construction",
    "gradients",
    "learned",
    "method",
    "occlusion",
    "perturbation",
    "register",
    "shapley",
    "value_zeroing",
]

attribute.__doc__ = f"{attribute.__doc__}\n{described()}\n    "
