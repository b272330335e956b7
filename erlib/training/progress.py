"""How does long work show how far it is?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import Any

from tqdm import tqdm
from tqdm.auto import tqdm as notebook_tqdm

LOGGED = 60.0  # seconds between two lines of a log


class _Lines:
    """What a bar would write over itself, as lines of a log."""

    def write(self, text: str) -> None:
        if said := text.strip("\r\n "):
            sys.stderr.write(f"{said}\n")

    def flush(self) -> None:
        sys.stderr.flush()


@contextmanager
def progress_bar(what: str, total: int, unit: str) -> Iterator[Any]:
    """One bar with rate and time left that vanishes when the work is done.

    A widget in JupyterLab, a line in a terminal, and where there is none a line of the log every
    minute. Under papermill the command line says which (`ERLIB_TERMINAL_BAR`, 1 for a terminal): it
    reaches the terminal or the log and is left out of the report; a bar inside another takes its
    line. A worker process shows none: its parent has one.
    """
    told = os.environ.get("ERLIB_TERMINAL_BAR")
    in_notebook = told is None and "ipykernel" in sys.modules
    terminal = sys.stderr.isatty() if told is None else told == "1"
    options: dict[str, Any] = {"mininterval": 0.5}
    if not (in_notebook or terminal):
        options = {
            "mininterval": LOGGED,
            "maxinterval": 2 * LOGGED,
            "delay": LOGGED,
            "file": _Lines(),
            "ncols": 100,
        }
    make = notebook_tqdm if in_notebook else tqdm
    with make(
        total=total,
        desc=what,
        unit=unit,
        leave=False,
        position=0,
        disable=parent_process() is not None,
        **options,
    ) as bar:
        yield bar
