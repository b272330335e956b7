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
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

import psutil
import torch

MOST = 8
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
) -> list[Result]:
    """`work(task, tell)` for every task, `workers` at a time; the results in the order of `tasks`.

    `after`: for each task, the earlier ones (their indices) that must be finished before it begins.
    What a task tells is handed to `listen` in this process. The first error ends all: what the
    others have not finished is in the store up to their last epoch.
    """
    if min(workers, len(tasks)) <= 1:
        return [work(task, listen) for task in tasks]
    results: dict[int, Result] = {}
    waiting = list(range(len(tasks)))
    context = get_context("fork")
    processes = []
    idle: list[Connection] = []
    try:
        for _ in range(min(workers, len(tasks))):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=_serve, args=(work, theirs, [*idle, ours]), daemon=True
            )
            with warnings.catch_warnings():  # of threads: a worker needs none of ours
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()  # so that a worker's end is the end of its pipe
            processes.append(process)
            idle.append(ours)
        busy: list[Connection] = []
        while len(results) < len(tasks):
            ready = [i for i in waiting if after is None or results.keys() >= set(after[i])]
            for index in ready[: len(idle)]:
                waiting.remove(index)
                busy.append(idle.pop())
                busy[-1].send((index, tasks[index]))
            for pipe in wait(busy):
                assert isinstance(pipe, Connection)
                what, *said = _receive(pipe)
                if what == "told":
                    listen(*said)
                elif what == "failed":
                    raise said[0]
                else:
                    results[said[0]] = said[1]
                    busy.remove(pipe)
                    idle.append(pipe)
    finally:
        for process in processes:
            process.terminate()
            process.join()
    return [results[i] for i in range(len(tasks))]


def _receive(pipe: Connection) -> Any:
    try:
        return pipe.recv()
    except EOFError:
        raise RuntimeError(
            "a worker process was ended from outside, perhaps for lack of memory; start again to "
            "go on where it was, with ERLIB_WORKERS=1 to use less"
        ) from None


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
    while True:
        try:
            index, task = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("done", index, work(task, lambda *said: pipe.send(("told", *said)))))
        except BrokenPipeError:  # the parent is gone
            return
        except Exception as error:
            error.add_note(f"in a worker process:\n{traceback.format_exc()}")
            pipe.send(("failed", error))


def _keep_freed_memory() -> None:
    """Large tensors come and go with every step, and the system clears memory that it hands out
    again: keeping it saves up to a sixth of a step (glibc alone)."""
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        trim_threshold, mmap_max = -1, -4
        mallopt(trim_threshold, 2**31 - 1)
        mallopt(mmap_max, 0)
