"""What is a failure, and what is kept of it?

A run or an evaluation that raises is sealed like a finished one, with the status `failed` and
`failure.json` in the place of a result. What rests on it is failed too, without being tried, and
the rest goes on. A failed result is not tried again until it is forgotten (`--retry-failed`).
"""

from __future__ import annotations

import json
import math
import re
import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from erlib.data.absent import MissingCorpus
from erlib.data.known import NeedsCorpus
from erlib.disk import out_of_room
from erlib.training.store import Sealed

FAILED = "failed"
FAILURE_FILE = "failure.json"
PACKAGE = Path(__file__).parents[1]
_ENDED = {"failed": "failed", "lost": "was lost and has no model"}
RETRY = "then start again with --retry-failed"


class Diverged(FloatingPointError):
    """A loss is no longer a number."""


class RestsOnFailure(RuntimeError):
    """What this needs has failed or was lost."""

    def __init__(self, sealed: Sealed) -> None:
        self.name, self.status = sealed.name, sealed.status
        kind = sealed.path.parent.name.removesuffix("s").replace("eval", "evaluation")
        said = sealed.read(FAILURE_FILE)["message"] if self.status == FAILED else ""
        reason = f" ({said.splitlines()[0]})" if said.strip() else ""
        ended = f"{_ENDED[self.status]}{reason}"
        if is_lacking(sealed):
            ended = "is not among these results"
        super().__init__(f"it needs {kind} {self.name}, which {ended}")


def is_lacking(sealed: Sealed) -> bool:
    """Did it only fail because nothing is trained or measured here?"""
    return sealed.status == FAILED and sealed.read(FAILURE_FILE)["type"] == NeedsCorpus.__name__


class WorkerKilled(RuntimeError):
    """The process that worked on this was ended from outside, twice."""

    def __init__(self) -> None:
        super().__init__("its worker process was ended from outside, twice")


@dataclass
class LastStep:
    """How far a run came: the last optimiser step that was done, and its losses."""

    step: int = 0
    terms: Mapping[str, float] | None = None


def sealing_failures(
    work: Callable[[Path], str], last: LastStep | None = None
) -> Callable[[Path], str]:
    """`work` as `Store.make` takes it, ending as failed instead of raising.

    Interruptions pass, and so does a disk without room, which stops everything alike.
    """

    def attempt(folder: Path) -> str:
        try:
            return work(folder)
        except Exception as error:
            if out_of_room(error):
                raise
            return record_failure(folder, error, last)

    return attempt


def record_failure(folder: Path, error: Exception, last: LastStep | None = None) -> str:
    """Leave in `folder` its description and why it failed, and nothing of the way there."""
    terms = last.terms if last else None
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "spec.json":
            path.unlink()
    failure = {
        "type": type(error).__name__,
        "message": without_paths(str(error)),
        "advice": advice(error),
        "rests_on": error.name if isinstance(error, RestsOnFailure) else None,
        **({"absent": True} if isinstance(error, MissingCorpus) else {}),
        "step": last.step if last else None,
        "terms": None if terms is None else {name: _json(x) for name, x in terms.items()},
        "traceback": without_paths("".join(traceback.format_exception(error))),
    }
    text = json.dumps(failure, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / FAILURE_FILE).write_text(text + "\n", encoding="utf-8")
    return FAILED


def _json(value: float) -> float | str:
    """JSON has no word for what is not finite."""
    return value if math.isfinite(value) else str(value)


def advice(error: Exception) -> str:
    """What its owner can do."""
    if isinstance(error, RestsOnFailure):
        if error.status == FAILED:
            return f"see {error.name}"
        return "no epoch of that run met its checkpoint rule: change the rule, or leave this out"
    if isinstance(error, MissingCorpus):
        return "start again when it is there"
    if isinstance(error, Diverged):
        return "lower the learning rate or the weight of a term"
    if isinstance(error, WorkerKilled) or _out_of_memory(error):
        return f"perhaps for lack of memory: set ERLIB_WORKERS=1, or take a smaller batch; {RETRY}"
    return f"mend what {FAILURE_FILE} says (its traceback is there), {RETRY}"


def _out_of_memory(error: Exception) -> bool:
    """Of Python, of a GPU, or of torch's allocator on a CPU, which has no class of its own."""
    return isinstance(error, MemoryError) or bool(
        re.search("out of memory|can't allocate memory|not enough memory", str(error))
    )


def without_paths(text: str) -> str:
    """Paths of our own files as they stand in the repository, of libraries from their package."""
    text = text.replace(f"{PACKAGE.parent}/", "")
    return re.sub(r"/[^\s'\"]*/(?:site-packages|lib/python[\d.]+)/", "", text)


def why(sealed: Sealed) -> str:
    """`Diverged: the loss became nan …; lower the learning rate …`, of a failed result."""
    failure = sealed.read(FAILURE_FILE)
    said = failure["message"].strip().splitlines()[0] if failure["message"].strip() else ""
    return f"{failure['type']}: {said}; {failure['advice']}" if said else failure["advice"]
