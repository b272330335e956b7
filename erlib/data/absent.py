"""What becomes of a set that cannot be had?

For who calls erlib it is an error, which names the one thing that mends it. A paper's report loses
the rows of that set and nothing else: there its content is called `ABSENT`, so that its runs and
evaluations have names, fail without being tried, and leave holes.
"""

from __future__ import annotations

import os

ABSENT = "absent"
Part = tuple[str, str, str]  # corpus, split, source

_in_report = False
_found: dict[tuple[Part, str | None], str] = {}


class MissingCorpus(FileNotFoundError):
    """A corpus, or a split of it, that cannot be had; says what was tried and what mends it."""


def rows_may_be_missing(allowed: bool = True) -> None:
    """From now on this process makes a report, in which what is missing is a hole."""
    global _in_report
    _in_report = allowed
    if not allowed:
        _found.clear()


def are_holes() -> bool:
    """Does what is missing leave holes here?"""
    return _in_report


def remember(part: Part, error: MissingCorpus) -> None:
    """In a report a set is looked for once: without a network each look takes half a minute."""
    if _in_report:
        _found[part, os.environ.get("ERLIB_DATA")] = str(error)


def refuse(part: Part) -> None:
    """The same error again, for what was not there before."""
    if said := _found.get((part, os.environ.get("ERLIB_DATA"))):
        raise MissingCorpus(said)
