"""How do several runs go on at the same time?

On a CPU a run or an evaluation computes on one thread, and as many go on side by side as there are
cores: small batches gain little from a second thread, and the numbers depend neither on how many
cores there are nor on what else is being trained.

`side_by_side` decides what begins when; a `Pool` is where it is worked on: processes of this
machine here, a cluster in `erlib.training.cluster`. Here the processes are forks, and neither
joblib's nor Ray's: those start afresh, and each would load torch and its corpora once more.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
import torch

from erlib.provenance import default_device

MOST = 8
ATTEMPTS = 2  # at a task whose worker is killed from outside
BYTES_EACH = 3 << 30  # what training a small encoder takes, generously
Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[..., None]
Work = Callable[[Any, Tell], Any]
Heard = tuple[int, str, Any]  # of which task: told, done or raised, and what; or that it is dead

_working = False  # is this process one of a pool's?


class Pool(Protocol):
    """Workers, each of which takes one task at a time."""

    def takes(self) -> bool:
        """Is there room for another task?"""

    def give(self, index: int, task: Any) -> None:
        """Begin a task."""

    def hear(self) -> list[Heard]:
        """Wait until something is said of one."""

    def close(self) -> None:
        """End all that still goes on."""


Opener = Callable[[Work, int], Pool | None]  # for so many tasks; None: they are done right here


def at_work() -> bool:
    """Is this process a worker, which starts none of its own and shows nothing?"""
    return _working or parent_process() is not None


def worker_count(device: str) -> int:
    """`ERLIB_WORKERS`, or one per core that has memory to work in; one for a GPU.

    Workers are forked, to know what this process has loaded and registered: Linux only.
    """
    if device != "cpu" or sys.platform != "linux" or at_work():
        return 1
    if asked := os.environ.get("ERLIB_WORKERS"):
        if not asked.isdigit() or int(asked) < 1:
            raise ValueError(f"ERLIB_WORKERS is a whole number from 1 on, not '{asked}'")
        return int(asked)
    room = psutil.virtual_memory().available // BYTES_EACH
    return max(1, min(len(os.sched_getaffinity(0)), room, MOST))


@contextmanager
def one_thread(device: str) -> Iterator[None]:
    """While open, torch computes on one thread of the CPU; nothing changes for another device."""
    before = torch.get_num_threads()
    if device == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(
    work: Callable[[Task, Tell], Result],
    tasks: Sequence[Task],
    opener: Opener,
    listen: Tell,
    after: Sequence[Collection[int]] | None = None,
    *,
    killed: Callable[[Task], Result],
) -> list[Result]:
    """`work(task, tell)` for every task in the pool that `opener` opens; the results in the order
    of `tasks`.

    `after`: for each task, the earlier ones (their indices) that must be finished before it begins.
    What a task tells is handed to `listen` in this process. A task whose worker was killed is tried
    once more in a new one; if that is killed too, its result is `killed(task)`. The first error
    ends all: what the others have not finished is in the store up to their last epoch.
    """
    pool = opener(work, len(tasks))
    if pool is None:
        return [work(task, listen) for task in tasks]
    results: dict[int, Result] = {}
    waiting = list(range(len(tasks)))
    deaths: Counter[int] = Counter()

    def may_begin(index: int) -> bool:
        return after is None or results.keys() >= set(after[index])

    try:
        while len(results) < len(tasks):
            while pool.takes() and (index := next(filter(may_begin, waiting), None)) is not None:
                waiting.remove(index)
                pool.give(index, tasks[index])
            for index, what, said in pool.hear():
                if what == "told":
                    listen(*said)
                elif what == "raised":
                    raise said
                elif what == "done":
                    results[index] = said
                else:
                    deaths[index] += 1
                    if deaths[index] < ATTEMPTS:
                        waiting.insert(0, index)
                    else:
                        results[index] = killed(tasks[index])
    finally:
        pool.close()
    return [results[i] for i in range(len(tasks))]


def opener_of(executor: str, device: str, store: Path) -> Opener:
    """Where an executor's tasks are done, which all write into this store."""
    if executor == "ray":
        from erlib.training.cluster import cluster

        return cluster(device, store)
    return forks(worker_count(device))


def at_once(executor: str, device: str) -> int:
    """How many tasks go on at the same time."""
    if executor == "ray":
        from erlib.training.cluster import workers

        return workers(device)
    return worker_count(device)


def device_of(executor: str, device: str | None) -> str:
    """The device that is asked for, or a GPU where the tasks are done, if there is one."""
    if device is None and executor == "ray":
        from erlib.training.cluster import cluster_device

        return cluster_device()
    return device or default_device()


def forks(workers: int) -> Opener:
    """So many processes of this machine; none for a single task."""
    return lambda work, tasks: Forks(work, workers) if min(workers, tasks) > 1 else None


class Forks:
    """Forks of this process, each started when it is first needed; one that dies is replaced."""

    def __init__(self, work: Work, workers: int) -> None:
        self.work, self.workers = work, workers
        self.pool: dict[Connection, BaseProcess] = {}  # every worker, by our end of its pipe
        self.busy: dict[Connection, int] = {}  # what it works on

    def takes(self) -> bool:
        """Is a worker idle, or not yet there?"""
        return len(self.busy) < self.workers

    def give(self, index: int, task: Any) -> None:
        """Send it to an idle worker, or to a new one."""
        pipe = next((p for p in self.pool if p not in self.busy), None) or self._start()
        self.busy[pipe] = index
        with suppress(OSError):  # killed while it was idle: `hear` finds its pipe at its end
            pipe.send(task)

    def hear(self) -> list[Heard]:
        """What each of those says that say something."""
        heard = []
        for end in wait(list(self.busy)):
            assert isinstance(end, Connection)
            what, said = _receive(end)
            index = self.busy[end] if what == "told" else self.busy.pop(end)
            if what == "dead":
                self.pool.pop(end).join()
            heard.append((index, what, said))
        return heard

    def close(self) -> None:
        """End all workers."""
        for process in self.pool.values():
            process.terminate()
            process.join()

    def _start(self) -> Connection:
        """A new worker in the pool; our end of its pipe."""
        context = get_context("fork")
        ours, theirs = context.Pipe()
        inherited = [*self.pool, ours]
        process = context.Process(target=_serve, args=(self.work, theirs, inherited), daemon=True)
        with warnings.catch_warnings():  # of threads: a worker needs none of ours
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()  # so that a worker's end is the end of its pipe
        self.pool[ours] = process
        return ours


def _receive(pipe: Connection) -> tuple[str, Any]:
    """What a worker says: told, done or raised, and what; or that it is dead."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return "dead", None


def _serve(work: Work, pipe: Connection, inherited: Sequence[Connection]) -> None:
    """Work on what comes through the pipe until it is closed.

    `inherited`: the parent's ends, of which a fork has copies; while one is open, the parent's
    death does not close the pipe.
    """
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is for the parent to handle
    become_worker()

    def tell(*said: Any) -> None:
        try:
            pipe.send(("told", said))
        except ConnectionError:  # the parent is gone, which is no fault of the task's
            sys.exit()

    while True:
        try:
            task = pipe.recv()
        except (EOFError, ConnectionError):
            return
        try:
            pipe.send(answer(work, task, tell))
        except ConnectionError:
            return


def become_worker() -> None:
    """What a process does first that works for a pool."""
    global _working
    _working = True
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    _keep_freed_memory()


def answer(work: Work, task: Any, tell: Tell) -> tuple[str, Any]:
    """The task done, or the error that it raised."""
    try:
        return "done", work(task, tell)
    except Exception as error:
        error.add_note(f"in a worker process:\n{traceback.format_exc()}")
        return "raised", portable(error)


def portable(error: Exception) -> Exception:
    """The error, or its class and words where another process could not make it of its arguments
    (and would raise another in its place)."""
    try:
        again = type(error)(*error.args)
        ForkingPickler.dumps(error)
        same = str(again) == str(error)
    except Exception:
        same = False
    if same:
        return error
    told = RuntimeError(f"{type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        told.add_note(note)
    return told


def _keep_freed_memory() -> None:
    """Large tensors come and go with every step, and the system clears memory that it hands out
    again: keeping it saves up to a sixth of a step (glibc alone)."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        trim_threshold, mmap_max = -1, -4
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_max, 0)
