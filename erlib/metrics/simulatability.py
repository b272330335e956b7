"""How often does a student predict what its teacher will say?

SIM = mean 1{argmax S(x) = argmax M(x)} on texts the student has not seen, with no explanation given
at test time (metrics.md §7). For spans both ends must be the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np


def simulated(student: np.ndarray, teacher: np.ndarray) -> np.ndarray:
    """[text] bool: the same prediction. Predictions are [text], or [text, 2] for spans."""
    student, teacher = np.asarray(student), np.asarray(teacher)
    if student.shape != teacher.shape:
        raise ValueError(f"predictions of shape {student.shape} and {teacher.shape}")
    same = student == teacher
    return same if same.ndim == 1 else same.all(axis=1)


def simulatability(
    student: np.ndarray, teacher: np.ndarray, *, ids: Sequence[str], seen: Collection[str]
) -> float:
    """SIM of `student` for `teacher`; `seen` are the ids of the texts the student learnt from."""
    known = sorted(set(ids) & set(seen))
    if known:
        raise ValueError(f"the student has seen {len(known)} of the test texts, e.g. '{known[0]}'")
    if len(ids) != len(student):
        raise ValueError(f"{len(ids)} ids for {len(student)} predictions")
    return float(simulated(student, teacher).mean())
