""" "Explanation Regularisation through the Lens of Attributions" (Ferreira, Titov, Aziz)."""

from erlib.papers.er_lens import prose
from erlib.papers.er_lens.audit import audit_table
from erlib.papers.er_lens.claims import CORE_CLAIMS, claim_note, lost_seeds, measure_claims
from erlib.papers.er_lens.examples import examples
from erlib.papers.er_lens.figures import (
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
)
from erlib.papers.er_lens.schematics import figure_1, figure_7
from erlib.papers.er_lens.stages import baselines, grid
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.tables import (
    effects,
    table_1,
    table_2,
    table_3,
    table_4,
    table_5,
    table_6,
    table_7,
    table_8,
    table_9,
)

__all__ = [
    "CORE_CLAIMS",
    "Study",
    "audit_table",
    "baselines",
    "claim_note",
    "effects",
    "examples",
    "figure_1",
    "figure_10",
    "figure_11",
    "figure_12",
    "figure_13",
    "figure_14",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "figure_8",
    "figure_9",
    "grid",
    "lost_seeds",
    "measure_claims",
    "prose",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "table_5",
    "table_6",
    "table_7",
    "table_8",
    "table_9",
]
