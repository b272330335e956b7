"""What is known of corpora where a report is made from results alone, and none is read?

With `ERLIB_RESULTS_ONLY` set nothing is trained or measured. Where the store came out of an archive
it has a file of facts: the fingerprint and ids of the rows of every description, and what the
corpora hold. The names of runs and evaluations follow from these, without a text.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from erlib.config import store_root

VARIABLE = "ERLIB_RESULTS_ONLY"
FACTS_FILE = "facts.json"


class NeedsCorpus(RuntimeError):
    """This cannot be said without the texts, and only results are read."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this needs {what}, and only results are read here")


def results_only() -> bool:
    """Is nothing to be trained or measured?"""
    return os.environ.get(VARIABLE) == "1"


def facts() -> dict[str, Any] | None:
    """`contents` and `reports` of an archive; None where corpora may be asked."""
    file = store_root(None) / FACTS_FILE
    return _read(file) if results_only() and file.exists() else None


@lru_cache(maxsize=1)
def _read(file: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return said
