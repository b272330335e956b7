""" "Towards Faithful Explanations for Text Classification …" (Li, Hu, Chen, He)."""

from erlib.papers.regex.audit import choices, costs, guide_check, perturbation_check
from erlib.papers.regex.claims import CORE_CLAIMS, measure_claims, remark
from erlib.papers.regex.examples import table_5
from erlib.papers.regex.figures import figure_3, figure_4
from erlib.papers.regex.grid import baselines, grid
from erlib.papers.regex.prose import (
    about_ablation,
    about_agreement,
    about_attack,
    about_core,
    about_cost,
    about_deeplifts,
    about_faithfulness,
    about_fresh,
    about_guide,
    about_perturbation,
    about_sweep,
    about_training,
    reduced,
)
from erlib.papers.regex.schematics import figure_1, figure_2
from erlib.papers.regex.study import Study
from erlib.papers.regex.tables import (
    table_1,
    table_2,
    table_3,
    table_4,
    table_6,
    table_7,
    table_8,
    table_9,
    table_10,
)
from erlib.papers.regex.texts import about_data, table_data

__all__ = [
    "CORE_CLAIMS",
    "Study",
    "about_ablation",
    "about_agreement",
    "about_attack",
    "about_core",
    "about_cost",
    "about_data",
    "about_deeplifts",
    "about_faithfulness",
    "about_fresh",
    "about_guide",
    "about_perturbation",
    "about_sweep",
    "about_training",
    "baselines",
    "choices",
    "costs",
    "figure_1",
    "figure_2",
    "figure_3",
    "figure_4",
    "grid",
    "guide_check",
    "measure_claims",
    "perturbation_check",
    "reduced",
    "remark",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "table_5",
    "table_6",
    "table_7",
    "table_8",
    "table_9",
    "table_10",
    "table_data",
]
