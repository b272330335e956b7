"""Threads that wait for each other do not keep other processes, or each other, from the cores."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SHOW = "import os, torch; print(os.environ.get('GOMP_SPINCOUNT'), torch.get_num_threads())"


def shown(before, **environment):
    known = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", f"{before}; {SHOW}"],
        env=known | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.fixture(scope="module")
def usual():
    """As many threads as torch takes by itself."""
    return shown("pass")[1]


def test_threads_sleep_while_they_wait_if_erlib_comes_before_torch(usual):
    assert shown("import erlib") == ["1000", usual]


def test_where_torch_came_first_there_is_one_thread():
    assert shown("import torch, erlib") == ["None", "1"]


def test_what_the_user_says_of_threads_stands(usual):
    assert shown("import erlib", OMP_WAIT_POLICY="active") == ["None", usual]
    assert shown("import torch, erlib", OMP_NUM_THREADS="2") == ["None", "2"]
