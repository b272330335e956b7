from __future__ import annotations

import math
import subprocess
import sys
import time

import torch

from erlib.timing import Timing, matmul_rate, timed_in_turn


def test_peak_memory_is_what_was_held_at_once_and_not_what_is_left():
    """In a process of its own: what others have left to the allocator would be counted, or not."""
    script = (
        "import torch; from erlib.timing import peak_memory\n"
        "with peak_memory() as peak:\n"
        "    for _ in range(3): torch.zeros(50_000_000).add_(1)\n"  # 200 MB, three times over
        "print(peak[0])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 195 < float(done.stdout) < 260


def test_calls_take_turns():
    order = []
    timed_in_turn([lambda: order.append("a"), lambda: order.append("b")], repeat=3)
    assert order == ["a", "b"] * 3


def test_no_round_begins_that_would_pass_the_limit():
    (slow,) = timed_in_turn([lambda: time.sleep(0.05)], repeat=50, limit=0.13)
    assert 1 <= len(slow.runs) <= 2


def test_memory_is_watched_unless_it_is_not_asked_for():
    call = [lambda: torch.zeros(10_000_000)]
    assert timed_in_turn(call, repeat=1)[0].peak_mb > 30
    (timing,) = timed_in_turn(call, repeat=2, watched=False)
    assert math.isnan(timing.peak_mb) and len(timing.runs) == 2


def test_seconds_are_the_median_without_the_run_that_warms_up():
    assert Timing(lambda: None, runs=[9.0, 1.0, 2.0, 4.0]).seconds == 2.0
    assert Timing(lambda: None, runs=[9.0]).seconds == 9.0


def test_the_matmul_rate_is_that_of_products_timed_here():
    a = torch.ones(1024, 1024)
    start = time.perf_counter()
    torch.mm(a, a)
    slower = 2 * 1024**3 / (time.perf_counter() - start)
    assert slower / 5 < matmul_rate() < slower * 50
