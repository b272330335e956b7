"""SaLoss: attention drawn towards words that are salient in the text itself, by TextRank."""

from __future__ import annotations

from dataclasses import replace

from erlib.config import RunSpec
from erlib.papers.cross_paper.ground import Ground
from erlib.papers.cross_paper.rows import row
from erlib.papers.saloss.systems import SALOSS, objective, paper_weights


@row("SaLoss", family="SaLoss")
def saloss(ground: Ground) -> RunSpec:
    """With the loss of the paper's code and the paper's λ on SST."""
    return replace(ground.baseline, objective=objective(SALOSS, paper_weights()["SST"]))
