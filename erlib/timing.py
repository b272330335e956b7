"""How long does a call take and in how much memory, and how fast is this machine right now?"""

from __future__ import annotations

import ctypes
import gc
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil
import torch


@dataclass
class Timing:
    """Runs of one call, its first result, and the memory that the first run took if `watched`."""

    call: Callable[[], Any]
    runs: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # seconds of all threads, for each run
    result: Any = None
    peak_mb: float = math.nan
    watched: bool = True

    def run(self) -> None:
        """Once more; the first time with an eye on memory."""
        began = time.process_time()
        if self.runs:
            self.runs.append(_seconds(self.call)[0])
            self.cpu.append(time.process_time() - began)
            return
        with peak_memory() if self.watched else nullcontext([math.nan]) as peak:
            took, self.result = _seconds(self.call)
        self.runs, self.peak_mb = [took], peak[0]
        self.cpu = [time.process_time() - began]

    @property
    def seconds(self) -> float:
        """The median, without the first run where there are others: it also warms up."""
        return median(self.runs[1:] or self.runs)

    @property
    def cpu_seconds(self) -> float:
        """The least, which what else the machine does has changed the least."""
        return min(self.cpu[1:] or self.cpu)


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def timed_in_turn(
    calls: list[Callable[[], Any]],
    *,
    repeat: int,
    limit: float = math.inf,
    watched: bool = True,
) -> list[Timing]:
    """Run the calls one after the other, `repeat` times or while another round fits in the limit.

    In turn, so that what else the machine does meets all of them alike. `watched`: memory too, for
    which garbage is collected before each call, a third of a second in a notebook.
    """
    timings = [Timing(call, watched=watched) for call in calls]
    began = time.perf_counter()
    for done in range(repeat):
        elapsed = time.perf_counter() - began
        if done and elapsed * (1 + 1 / done) > limit:
            break
        for timing in timings:
            timing.run()
    return timings


@contextmanager
def peak_memory(interval: float = 0.002) -> Iterator[list[float]]:
    """While open, watches this process; afterwards [megabytes above where it began]."""
    gc.collect()
    _return_free_memory()
    process, stop = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    highest = before
    result: list[float] = []

    def watch() -> None:
        nonlocal highest
        while not stop.wait(interval):
            highest = max(highest, process.memory_info().rss)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield result
    finally:
        stop.set()
        watcher.join()
        result.append((max(highest, process.memory_info().rss) - before) / 1e6)


def _return_free_memory() -> None:
    """Give back what earlier cells freed, or it would hide what this one takes (glibc alone)."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


def matmul_rate(size: int = 1024, runs: int = 5) -> float:
    """Operations per second of square float32 products: the best of a few, right now."""
    a, b = torch.ones(size, size), torch.ones(size, size)
    best = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        torch.mm(a, b)
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
