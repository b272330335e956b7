""" "Explanation Regularisation through the Lens of Attributions" (Ferreira, Titov, Aziz)."""

from erlib.papers.er_lens.claims import measure_claims
from erlib.papers.er_lens.examples import examples
from erlib.papers.er_lens.figures import figure_2, figure_4
from erlib.papers.er_lens.prose import about_data, about_guidance, about_training, reduced
from erlib.papers.er_lens.systems import grid
from erlib.papers.er_lens.tables import table_2, table_3, table_4, table_6

__all__ = [
    "about_data",
    "about_guidance",
    "about_training",
    "examples",
    "figure_2",
    "figure_4",
    "grid",
    "measure_claims",
    "reduced",
    "table_2",
    "table_3",
    "table_4",
    "table_6",
]
