"""What is missing from a study because it failed?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from erlib.training.failures import FAILED


def failed(tables: Iterable[pd.DataFrame]) -> set[Any]:
    """The descriptions, of runs or evaluations, that these results have no numbers of."""
    return {
        spec
        for table in tables
        if "status" in table
        for spec, status in zip(table["spec"], table["status"], strict=True)
        if status == FAILED
    }


def measured_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of results that have numbers."""
    return table[table["status"] != FAILED] if "status" in table else table
