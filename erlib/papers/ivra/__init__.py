""" "IvRA: A Framework to Enhance Attention-Based Explanations for Language Models with
Interpretability-Driven Training" (Xie, Vosoughi, Hassanpour)."""

from erlib.papers.ivra import prose
from erlib.papers.ivra.claims import CORE_CLAIMS, measure_claims, notes
from erlib.papers.ivra.costs import explaining_times, training_times
from erlib.papers.ivra.examples import examples, figure_3, figure_4
from erlib.papers.ivra.figures import figure_5, figure_6, figure_7, figure_8, figure_9, figure_10
from erlib.papers.ivra.measurements import baselines, grid
from erlib.papers.ivra.schematics import figure_1, figure_2
from erlib.papers.ivra.study import Study
from erlib.papers.ivra.tables import (
    base_table,
    by_criterion,
    collusion_table,
    floor_table,
    model_name,
    table_5,
    table_6,
    table_7,
)

__all__ = [
    "CORE_CLAIMS",
    "Study",
    "base_table",
    "baselines",
    "by_criterion",
    "collusion_table",
    "examples",
    "explaining_times",
    "figure_1",
    "figure_10",
    "figure_2",
    "figure_3",
    "figure_4",
    "figure_5",
    "figure_6",
    "figure_7",
    "figure_8",
    "figure_9",
    "floor_table",
    "grid",
    "measure_claims",
    "model_name",
    "notes",
    "prose",
    "table_5",
    "table_6",
    "table_7",
    "training_times",
]
