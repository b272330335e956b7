"""Conicity and tying: regularisers of hidden states, meant to make attributions agree."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from erlib.config import RunSpec
from erlib.papers.agreement.systems import objective
from erlib.papers.cross_paper.ground import Ground
from erlib.papers.cross_paper.rows import row
from erlib.reports.paper_numbers import paper_table


def _made(ground: Ground, variant: str) -> RunSpec:
    """With the paper's λ for its Transformer on SST."""
    printed = paper_table("agreement", "table8").query("row == 'DBERT|SST' and metric == 'lambda'")
    weight = float(printed.set_index("column").at[variant, "mean"])
    return replace(ground.baseline, objective=objective(variant, weight))


for _variant in ("Conicity", "Tying"):
    row(_variant, family="Agreement")(partial(_made, variant=_variant))
