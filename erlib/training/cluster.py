"""How are runs trained on many machines? By Ray, with the store on a folder that all of them see.

`RAY_ADDRESS` names the cluster ("auto": the one that this machine belongs to); without it Ray is
started on this machine alone. A task takes one core, and where it computes on a GPU one of these,
or the part of one that `ERLIB_GPU_SHARE` says (`--plan` tells what runs need). Ray only places
tasks and says when a worker is gone: what begins when, and what becomes of a task that was lost, is
decided in `erlib.training.workers` as for processes of this machine.
"""

from __future__ import annotations

import importlib
import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from erlib.data.absent import are_holes, rows_may_be_missing
from erlib.provenance import default_device, source_hash
from erlib.training.workers import (
    Heard,
    Opener,
    Pool,
    Work,
    answer,
    become_worker,
    worker_count,
)

LOCAL = "local"  # one that is started here
STARTS = 3  # attempts to start Ray here
PAUSE = 0.5  # seconds between two messages of a task, and between two questions for them
SEEN_AFTER = 30.0  # seconds until a new file on a shared disk is seen by all


@dataclass(frozen=True)
class Home:
    """What a worker must have in common with the process that it works for."""

    store: Path
    token: str  # of a file in the store
    source: str
    folder: str
    variables: Mapping[str, str]
    modules: tuple[str, ...]
    holes: bool


def cluster(device: str, store: Path) -> Opener:
    """Tasks go to the cluster, each with what it needs to compute on this device."""
    if device not in ("cpu", "cuda"):
        raise ValueError(f"Ray chooses the GPU: the device is 'cuda' or 'cpu', not '{device}'")

    def opened(work: Work, tasks: int) -> Pool | None:
        return Cluster(work, device, store) if tasks else None

    return opened


def address() -> str:
    """Of the cluster."""
    return os.environ.get("RAY_ADDRESS") or LOCAL


def cluster_device() -> str:
    """CUDA where the cluster has a GPU."""
    if address() == LOCAL:
        return default_device()
    return "cuda" if connected().cluster_resources().get("GPU") else "cpu"


def workers(device: str) -> int:
    """How many tasks the cluster does at the same time on this device, as it is now."""
    kind, each = ("GPU", gpu_share()) if device == "cuda" else ("CPU", 1.0)
    most = int(os.environ.get("ERLIB_WORKERS") or sys.maxsize)
    return min(most, int(connected().cluster_resources().get(kind, 0) / each + 1e-9))


def gpu_share() -> float:
    """The part of a GPU that a task takes."""
    asked = os.environ.get("ERLIB_GPU_SHARE") or "1"
    with suppress(ValueError):
        if 0 < float(asked) <= 1:
            return float(asked)
    raise ValueError(f"ERLIB_GPU_SHARE is a part of a GPU, such as 0.5, not '{asked}'")


def connected() -> Any:
    """The library, connected to the cluster, or to one that is started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    quiet = {"log_to_driver": False, "logging_level": "warning"}
    alone = {"num_cpus": worker_count("cpu"), "include_dashboard": False}
    for left in reversed(range(STARTS)):
        if ray.is_initialized():
            break
        try:
            ray.init(address(), **quiet, **(alone if address() == LOCAL else {}))
        except Exception as error:
            if address() == LOCAL and left:  # too slow for it, beside other work
                ray.shutdown()
                continue
            raise ConnectionError(f"Ray at '{address()}': {error}") from error
    return ray


class Cluster:
    """The cluster's workers, as many as it has room for; and one task more, which waits, so that
    none is idle and a cluster that can grow knows of it."""

    def __init__(self, work: Work, device: str, store: Path) -> None:
        self.ray, self.store, self.token = connected(), store, f"cluster-{uuid4().hex}"
        self.device = device
        (store / "locks").mkdir(parents=True, exist_ok=True)
        self._token_file.touch()
        needs = {"num_cpus": 1, "num_gpus": gpu_share() if device == "cuda" else 0}
        self.serve = self.ray.remote(**needs, max_retries=0)(_serve)
        self.post = self.ray.remote(num_cpus=0, max_restarts=-1)(Post).remote()
        self.work = self.ray.put(work)
        self.home = self.ray.put(home_of(store, self.token))
        self.busy: dict[Any, int] = {}  # task by what will be its answer
        self.told_to_wait = False

    @property
    def _token_file(self) -> Path:
        return self.store / "locks" / self.token

    def takes(self) -> bool:
        """Are there fewer tasks than workers, or as many?"""
        return len(self.busy) <= workers(self.device)

    def give(self, index: int, task: Any) -> None:
        """Queue it."""
        answered = self.serve.remote(self.work, index, task, self.home, self.post)
        self.busy[answered] = index
        if not workers(self.device) and not self.told_to_wait:
            self.told_to_wait = True
            print("erlib: the cluster has no machine for this yet: waiting", file=sys.stderr)

    def hear(self) -> list[Heard]:
        """What tasks say, and those that are done."""
        done, _ = self.ray.wait(list(self.busy), num_returns=1, timeout=PAUSE)
        heard: list[Heard] = []
        with suppress(self.ray.exceptions.RayError):  # no one reads what a lost post had
            heard += [(i, "told", said) for i, said in self.ray.get(self.post.take.remote())]
        for answered in done:
            index = self.busy.pop(answered)
            try:
                what, said, last = self.ray.get(answered)
            except self.ray.exceptions.RayTaskError as error:  # of what is around the task
                what, said, last = "raised", error, []
            except self.ray.exceptions.RayError:  # its process, its machine, or its memory
                what, said, last = "dead", None, []
            heard += [(index, "told", words) for words in last]
            heard.append((index, what, said))
        return heard

    def close(self) -> None:
        """End the tasks that still go on."""
        for answered in self.busy:
            self.ray.cancel(answered, force=True)
        self.ray.kill(self.post)
        self._token_file.unlink(missing_ok=True)


class Post:
    """Keeps what tasks tell until it is asked for."""

    def __init__(self) -> None:
        self.letters: list[tuple[int, tuple[Any, ...]]] = []

    def add(self, index: int, said: list[tuple[Any, ...]]) -> None:
        """Of a task."""
        self.letters += [(index, words) for words in said]

    def take(self) -> list[tuple[int, tuple[Any, ...]]]:
        """All that is new."""
        taken, self.letters = self.letters, []
        return taken


def home_of(store: Path, token: str) -> Home:
    """What this process is like."""
    ours = (name for name in sys.modules if name.startswith("erlib.papers."))
    return Home(
        store,
        token,
        source_hash(),
        os.getcwd(),
        {name: value for name, value in os.environ.items() if name.startswith("ERLIB_")},
        tuple(ours),
        are_holes(),
    )


def _serve(work: Work, index: int, task: Any, home: Home, post: Any) -> tuple[str, Any, list[Any]]:
    """A task in a worker of the cluster: done or raised, what, and what was told last."""
    import ray

    _move_in(home)
    unsent: list[tuple[Any, ...]] = []
    sent = time.monotonic()

    def tell(*said: Any) -> None:
        nonlocal unsent, sent
        unsent.append(said)
        if time.monotonic() - sent > PAUSE:
            with suppress(ray.exceptions.RayError):
                ray.get(post.add.remote(index, unsent))
            unsent, sent = [], time.monotonic()

    what, said = answer(work, task, tell)
    return what, said, unsent


@cache
def _prepare() -> None:
    become_worker()


def _move_in(home: Home) -> None:
    """Make of this process one like the other."""
    _prepare()
    os.environ.update(home.variables)
    with suppress(OSError):  # relative paths mean what they mean there
        os.chdir(home.folder)
    for name in home.modules:  # which registers what a paper has of its own
        importlib.import_module(name)
    rows_may_be_missing(home.holes)
    compare(home)


def compare(home: Home) -> None:
    """An error where erlib is another, or the store is not there."""
    if source_hash() != home.source:
        raise RuntimeError(f"{platform.node()} has another version of erlib than the command")
    waited = time.monotonic() + SEEN_AFTER
    while not (home.store / "locks" / home.token).exists():
        if time.monotonic() > waited:
            raise RuntimeError(
                f"{platform.node()} does not see the store in {home.store}: set ERLIB_STORE to a "
                "folder that all machines of the cluster share"
            )
        time.sleep(PAUSE)
