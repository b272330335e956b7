"""On how many threads does torch compute, and how do they wait for each other?

A thread that has done its share of an operation waits for the others. By default it spins, which is
the fastest on an idle machine; where other processes want the cores, the spinning takes them from
the very thread that is waited for: an attribution of a second has been seen to take a minute. So
threads go to sleep after a short spin. OpenMP reads this when torch is loaded: where torch was
there first, one thread is used, which has nobody to wait for.

Runs and evaluations compute on one thread anyway (`training.workers`). This decides for all else:
notebooks, the explorer, the command line.
"""

from __future__ import annotations

import os
import sys

SPIN = "1000"  # turns, a few microseconds; no slower than spinning on, idle or busy
SAID = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # the user's own choice


def be_considerate() -> None:
    """Let threads sleep while they wait, unless the environment says how they are to do it."""
    if any(name in os.environ for name in SAID):
        return
    torch = sys.modules.get("torch")
    if torch is None:
        os.environ["GOMP_SPINCOUNT"] = SPIN
    else:
        torch.set_num_threads(1)
