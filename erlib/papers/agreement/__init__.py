""" "Easy to Decide, Hard to Agree" (Jukić, Tutek, Šnajder)."""

from erlib.papers.agreement import prose
from erlib.papers.agreement.audit import audit
from erlib.papers.agreement.claims import CORE_CLAIMS, claim_note, measure_claims
from erlib.papers.agreement.correlations import correlation_tests
from erlib.papers.agreement.figures import CURVES, curve, figure_1, figure_3, maps
from erlib.papers.agreement.groups import group_tests
from erlib.papers.agreement.study import Study
from erlib.papers.agreement.systems import baselines, grid
from erlib.papers.agreement.tables import (
    table_1,
    table_1b_dropout,
    table_2,
    table_2_tests,
    table_3,
    table_4,
    table_5,
    table_6,
    table_7,
    table_8,
    table_10,
    table_11,
)

__all__ = [
    "CORE_CLAIMS",
    "CURVES",
    "Study",
    "audit",
    "baselines",
    "claim_note",
    "correlation_tests",
    "curve",
    "figure_1",
    "figure_3",
    "grid",
    "group_tests",
    "maps",
    "measure_claims",
    "prose",
    "table_1",
    "table_10",
    "table_11",
    "table_1b_dropout",
    "table_2",
    "table_2_tests",
    "table_3",
    "table_4",
    "table_5",
    "table_6",
    "table_7",
    "table_8",
]
