"""In what order are models trained and measured, so that few of them are on disk at a time?

A run is followed by what is asked of it and by the runs that rest on it; when all of these are in
the store, its model is dropped, unless it is to be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from erlib.attributions.decompx import decompositions_remembered
from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.training.failures import WorkerKilled
from erlib.training.identity import eval_hash, run_hash
from erlib.training.making import (
    fail,
    make_evaluation,
    make_run,
    origins,
    run_of,
    steps_of,
    with_origins,
)
from erlib.training.progress import progress_bar
from erlib.training.runs import tell_remarks
from erlib.training.store import Store
from erlib.training.workers import side_by_side, worker_count

Order = Callable[[Sequence[RunSpec]], Sequence[RunSpec]]


@dataclass(frozen=True)
class Task:
    """One piece of work: a run to be trained or, with `evals`, measured."""

    run: RunSpec
    evals: tuple[EvalSpec, ...] = ()

    @property
    def reads(self) -> set[RunSpec]:
        """The runs whose models it may load."""
        if not self.evals:
            return set(origins(self.run))
        return {self.run}.union(*(_origins_of(spec.data) for spec in self.evals))


def _origins_of(data: DataSpec) -> list[RunSpec]:
    return origins(RunSpec(data))


@dataclass
class Models:
    """What is asked of which run, and who still reads its model? One that nobody does is dropped.

    `kept` stay; `held` stay until `settle`, since more may be asked of them than is known yet.
    """

    drop: Callable[[RunSpec], object]
    asked: dict[RunSpec, dict[EvalSpec, None]] = field(default_factory=dict)
    kept: set[RunSpec] = field(default_factory=set)
    held: set[RunSpec] = field(default_factory=set)
    _readers: dict[RunSpec, set[Task]] = field(default_factory=dict)

    def expect(self, run: RunSpec, asked: Sequence[EvalSpec] | None, *, keep: bool) -> None:
        """There will be this run; None: what is asked of it cannot be told."""
        self.asked.setdefault(run, {}).update(dict.fromkeys(asked or ()))
        if asked is None:
            self.held.add(run)
        if keep:
            self.kept.add(run)

    def begin(self, tasks: Iterable[Task]) -> None:
        """Note what these will read, and drop what nobody will."""
        for task in tasks:
            for run in task.reads:
                self._readers.setdefault(run, set()).add(task)
        self._drop(self.asked)

    def done(self, task: Task) -> None:
        """Drop what only this task read, and what it made if nobody will read it."""
        for run in task.reads:
            self._readers[run].discard(task)
        self._drop({task.run, *task.reads})

    def settle(self) -> None:
        """Nothing more is asked: drop all but what is kept."""
        self.held.clear()
        self._drop(self.asked)

    def _drop(self, runs: Iterable[RunSpec]) -> None:
        for run in runs:
            stays = run in self.held or run in self.kept or self._readers.get(run)
            if run in self.asked and not stays:
                self.drop(run)


def in_order(runs: Sequence[RunSpec], asked: Mapping[RunSpec, Sequence[EvalSpec]]) -> list[Task]:
    """The tasks, each run before what is asked of it and before the runs that rest on it.

    Depth first, but for one: the next run that rests on none is trained before those that rest on
    the last, so that at the end no core waits for it.
    """
    place: dict[RunSpec, tuple[int, ...]] = {}
    roots = 0
    for position, run in enumerate(with_origins([*runs, *asked])):
        above = [place[origin] for origin in origins(run)]
        if above:
            place[run] = (*max(above), position)
        else:
            roots += 1
            place[run] = (roots,)
    tasks = []
    for run, path in place.items():
        first = path[0] - 1 if len(path) == 1 else path[0]
        tasks.append(((first, *path[1:]), Task(run)))
        if asked.get(run):
            tasks.append(((*path, -1), Task(run, tuple(asked[run]))))
    return [task for _, task in sorted(tasks, key=lambda pair: pair[0])]


def most_at_once(
    models: Models,
    runs: Sequence[RunSpec],
    there: set[RunSpec],
    size: Callable[[RunSpec], float],
) -> float:
    """The most that models take on disk while these runs are made one by one, with what is asked of
    them. `there` are those on disk, which `models.drop` takes from."""
    tasks = in_order(runs, {run: list(models.asked[run]) for run in runs})
    models.begin(tasks)
    most = 0.0
    for task in tasks:
        there.add(task.run)
        most = max(most, sum(map(size, there)))
        models.done(task)
    return most


def make_all(
    store: Store,
    models: Models,
    runs: Sequence[RunSpec],
    evals: Sequence[EvalSpec],
    device: str,
    order: Order = list,
) -> None:
    """Train what is missing of the runs, in this order as far as they allow, and measure what is
    missing of all that is asked of them and of these evaluations, side by side."""
    wanted = {spec: list(models.asked[spec]) for spec in runs}
    for spec in evals:
        wanted.setdefault(run_of(spec), []).append(spec)
    left = {run: specs if _unmeasured(store, specs) else [] for run, specs in wanted.items()}
    missing = _untrained(store, runs)
    tasks = [
        task
        for task in in_order(
            order(missing) if missing else [], {run: e for run, e in left.items() if e}
        )
        if task.evals or _untrained(store, [task.run])
    ]
    models.begin(tasks)
    if not tasks:
        return
    place = {task.run: i for i, task in enumerate(tasks) if not task.evals}
    total = sum(len(task.evals) or steps_of(task.run) for task in tasks)
    with progress_bar("training and measuring", total, "step") as bar:

        def listen(what: str, *said: Any) -> None:
            if what == "done":
                models.done(tasks[said[0]])
                return
            count, loss, name = said
            shown = {} if loss is None else {"loss": f"{loss:.3f}"}
            bar.set_postfix(**shown, run=name[:6], refresh=False)
            bar.update(count)

        def work(index: int, tell: Callable[..., None]) -> None:
            _carry_out(store, tasks[index], device, lambda *said: tell("step", *said))
            tell("done", index)

        def killed(index: int) -> None:
            _fail_at(store, tasks[index])
            models.done(tasks[index])

        side_by_side(
            work,
            range(len(tasks)),
            worker_count(device),
            listen,
            after=[
                {place[r] for r in {task.run, *task.reads} if r in place} - {i}
                for i, task in enumerate(tasks)
            ],
            killed=killed,
        )
    trained = (store.get("runs", run_hash(run)) for run in place)
    tell_remarks(sealed for sealed in trained if sealed)


def _untrained(store: Store, runs: Iterable[RunSpec]) -> list[RunSpec]:
    return [run for run in runs if store.get("runs", run_hash(run)) is None]


def _unmeasured(store: Store, specs: Iterable[EvalSpec]) -> list[EvalSpec]:
    return [spec for spec in specs if store.get("evals", eval_hash(spec)) is None]


def _fail_at(store: Store, task: Task) -> None:
    """Fail what a killed worker was at; what else was asked of the run can be measured later."""
    if not task.evals:
        fail(store, "runs", run_hash(task.run), task.run, WorkerKilled())
        return
    first = _unmeasured(store, task.evals)[0]
    fail(store, "evals", eval_hash(first), first, WorkerKilled())


def _carry_out(store: Store, task: Task, device: str, tell: Callable[..., None]) -> None:
    if not task.evals:
        make_run(store, task.run, device, tell)
        return
    sealed = store.get("runs", run_hash(task.run))
    if sealed is not None and sealed.status != "done":
        return  # nothing can be measured of a run without a model
    missing = _unmeasured(store, task.evals)
    with decompositions_remembered():
        # should the model come out otherwise when it is made again, the others are missing, too
        for spec in [*missing, *(spec for spec in task.evals if spec not in missing)]:
            make_evaluation(store, spec, device)
            tell(1, None, run_hash(task.run))
