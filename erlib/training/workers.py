"""How do several runs go on at the same time?

On a CPU a run or an evaluation computes on one thread, and as many go on side by side as there are
cores: small batches gain little from a second thread, and the numbers depend neither on how many
cores there are nor on what else is being trained.
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
from typing import Any, TypeVar

import psutil
import torch

MOST = 8
ATTEMPTS = 2  # at a task whose worker is killed from outside
BYTES_EACH = 3 << 30  # what training a small encoder takes, generously
Task = TypeVar("Task")
Result = TypeVar("Result")
Tell = Callable[..., None]


def worker_count(device: str) -> int:
    """`ERLIB_WORKERS`, or one per core that has memory to work in; one for a GPU.

    Workers are forked, to know what this process has loaded and registered: Linux only.
    """
    if device != "cpu" or sys.platform != "linux" or parent_process() is not None:
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
    workers: int,
    listen: Tell,
    after: Sequence[Collection[int]] | None = None,
    *,
    killed: Callable[[Task], Result],
) -> list[Result]:
    """`work(task, tell)` for every task, `workers` at a time; the results in the order of `tasks`.

    `after`: for each task, the earlier ones (their indices) that must be finished before it begins.
    What a task tells is handed to `listen` in this process. A task whose worker was killed is tried
    once more in a new one; if that is killed too, its result is `killed(task)`. The first error
    ends all: what the others have not finished is in the store up to their last epoch.
    """
    if min(workers, len(tasks)) <= 1:
        return [work(task, listen) for task in tasks]
    results: dict[int, Result] = {}
    waiting = list(range(len(tasks)))
    deaths: Counter[int] = Counter()
    pool: dict[Connection, BaseProcess] = {}  # every worker, by our end of its pipe
    busy: dict[Connection, int] = {}  # what it works on
    try:
        while len(results) < len(tasks):
            ready = [i for i in waiting if after is None or results.keys() >= set(after[i])]
            for index in ready[: workers - len(busy)]:
                waiting.remove(index)
                pipe = next((p for p in pool if p not in busy), None) or _start(work, pool)
                busy[pipe] = index
                with suppress(OSError):  # killed while it was idle: below, its pipe is at its end
                    pipe.send(tasks[index])
            for end in wait(list(busy)):
                assert isinstance(end, Connection)
                what, said = _receive(end)
                if what == "told":
                    listen(*said)
                    continue
                if what == "raised":
                    raise said
                index = busy.pop(end)
                if what == "done":
                    results[index] = said
                    continue
                pool.pop(end).join()
                deaths[index] += 1
                if deaths[index] < ATTEMPTS:
                    waiting.insert(0, index)
                else:
                    results[index] = killed(tasks[index])
    finally:
        for process in pool.values():
            process.terminate()
            process.join()
    return [results[i] for i in range(len(tasks))]


def _start(work: Callable[[Any, Tell], Any], pool: dict[Connection, BaseProcess]) -> Connection:
    """A new worker in the pool; our end of its pipe."""
    context = get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, theirs, [*pool, ours]), daemon=True)
    with warnings.catch_warnings():  # of threads: a worker needs none of ours
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    theirs.close()  # so that a worker's end is the end of its pipe
    pool[ours] = process
    return ours


def _receive(pipe: Connection) -> tuple[str, Any]:
    """What a worker says: told, done or raised, and what; or that it is dead."""
    try:
        return pipe.recv()
    except (EOFError, OSError):
        return "dead", None


def _serve(
    work: Callable[[Any, Tell], Any], pipe: Connection, inherited: Sequence[Connection]
) -> None:
    """Work on what comes through the pipe until it is closed.

    `inherited`: the parent's ends, of which a fork has copies; while one is open, the parent's
    death does not close the pipe.
    """
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interruption is for the parent to handle
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)
    _keep_freed_memory()

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
            pipe.send(("done", work(task, tell)))
        except ConnectionError:
            return
        except Exception as error:
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
            pipe.send(("raised", portable(error)))


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
