""" "Enjoy the Salience: Towards Better Transformer-based Faithful Explanations with Word Salience"
(Chrysostomou, Aletras)."""

from erlib.papers.saloss import prose
from erlib.papers.saloss.audit import audit_table
from erlib.papers.saloss.claims import CORE_CLAIMS, claim_note, measure_claims
from erlib.papers.saloss.examples import table_4
from erlib.papers.saloss.figures import figure_1
from erlib.papers.saloss.stages import baselines, grid
from erlib.papers.saloss.tables import (
    flip_tests,
    fresh_tests,
    table_1,
    table_2,
    table_3,
    table_5,
    table_6,
    table_7,
    table_8,
)

__all__ = [
    "CORE_CLAIMS",
    "audit_table",
    "baselines",
    "claim_note",
    "figure_1",
    "flip_tests",
    "fresh_tests",
    "grid",
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
]
