"""Who does the work? One thread, so that no two ever change the page or use a model at once."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread

Job = Callable[[], None]  # raises nothing


class Stopped(BaseException):
    """Somebody wants no more of a long job; as little an error as KeyboardInterrupt."""


class Worker:
    """Does jobs one after the other, in a thread of its own.

    JupyterLab calls a widget from the main thread or from those of subshells, and what computes in
    a callback keeps later clicks waiting, the one on Stop among them: callbacks leave jobs here.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Job, Event]] = SimpleQueue()
        Thread(target=self._work, name="erlib explorer", daemon=True).start()

    def do(self, job: Job) -> Event:
        """Take a job; the event is set when it is done."""
        done = Event()
        self._jobs.put((job, done))
        return done

    def let_others(self) -> None:
        """For a long job to call between its steps: first do what else has been taken."""
        while not self._jobs.empty():  # nobody else takes any out
            self._next()

    def _work(self) -> None:
        while True:
            self._next()

    def _next(self) -> None:
        job, done = self._jobs.get()
        try:
            job()
        finally:
            done.set()
