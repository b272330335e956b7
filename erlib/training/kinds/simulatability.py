"""How often does a student predict what its teacher will say? (IvRA, eq. 6)"""

from __future__ import annotations

import pandas as pd

from erlib.metrics.simulatability import simulated
from erlib.training.evaluations import Evaluation, evaluation


def _mean(table: pd.DataFrame) -> dict[str, float]:
    return {"simulatability": float(table["simulated"].mean()), "texts": float(len(table))}


@evaluation("simulatability", version=1, summarise=_mean, uses="predictions")
def simulatability(this: Evaluation) -> pd.DataFrame:
    """One row per text: did the student give its teacher's answer? Of spans both ends must agree.

    The data are the student's own (`DataSpec.taught`): their right answers are the teacher's, and
    their test split has no text that the student learned from.
    """
    assert this.used is not None
    if this.spec.data.taught is None or this.spec.split not in ("dev", "test"):
        raise ValueError("a student is examined on its own dev or test data, DataSpec(…, taught=…)")
    span = "start" in this.used
    student, teacher = (
        (["start", "end"], ["gold_start", "gold_end"]) if span else ("predicted", "label")
    )
    same = simulated(this.used[student].to_numpy(), this.used[teacher].to_numpy())
    return pd.DataFrame({"id": this.used["id"], "simulated": same})
