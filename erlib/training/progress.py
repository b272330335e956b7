"""How does long work show how far it is?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Any

from tqdm import tqdm
from tqdm.auto import tqdm as notebook_tqdm


@contextmanager
def progress_bar(what: str, total: int, unit: str) -> Iterator[Any]:
    """One bar with rate and time left that vanishes when the work is done.

    A widget in JupyterLab, a line in a terminal. Under papermill (`ERLIB_TERMINAL_BAR=1`, set by
    the command line) it is a line too, which reaches the terminal and is left out of the report;
    a bar inside another takes its line. A worker process shows none: its parent has one.
    """
    make = tqdm if os.environ.get("ERLIB_TERMINAL_BAR") else notebook_tqdm
    with make(
        total=total,
        desc=what,
        unit=unit,
        leave=False,
        mininterval=0.5,
        position=0,
        disable=parent_process() is not None,
    ) as bar:
        yield bar
