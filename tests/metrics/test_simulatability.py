from __future__ import annotations

import numpy as np
import pytest

from erlib.metrics.simulatability import simulatability, simulated

IDS = ["a", "b", "c", "d"]


def test_sim_is_the_share_of_equal_predictions_whatever_the_gold_label():
    student, teacher = np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1])
    assert simulatability(student, teacher, ids=IDS, seen=[]) == 0.75


def test_a_span_counts_only_when_both_ends_are_the_same():
    student = np.array([[1, 4], [2, 2], [0, 3], [5, 6]])
    teacher = np.array([[1, 4], [2, 3], [1, 3], [5, 6]])
    assert simulated(student, teacher).tolist() == [True, False, False, True]
    assert simulatability(student, teacher, ids=IDS, seen={"x"}) == 0.5


def test_texts_the_student_learnt_from_are_refused():
    with pytest.raises(ValueError, match="seen 2 of the test texts, e.g. 'b'"):
        simulatability(np.zeros(4), np.zeros(4), ids=IDS, seen=["d", "b", "x"])


def test_predictions_must_be_of_the_same_texts():
    with pytest.raises(ValueError, match="shape"):
        simulatability(np.zeros(4), np.zeros(3), ids=IDS, seen=[])
    with pytest.raises(ValueError, match="4 ids for 3"):
        simulatability(np.zeros(3), np.zeros(3), ids=IDS, seen=[])
