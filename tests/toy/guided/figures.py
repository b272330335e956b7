"""What does the paper's figure show?"""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from erlib.papers.study import Study
from erlib.reports.style import figure_style, new_figure


def figure_1(study: Study) -> tuple[Figure, pd.DataFrame]:
    """AUC by system, a point for each seed."""
    numbers = study.numbers(cell for cell in study.of("table1") if "auc" in cell.read)
    figure, [[axis]] = new_figure(height=2.0)
    with figure_style():
        sns.stripplot(numbers, x="row", y="value", ax=axis)
        axis.set(xlabel="", ylabel="AUC (%)")
    return figure, numbers
