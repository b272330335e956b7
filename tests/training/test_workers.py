"""Runs that go on side by side give the numbers that each would have given alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from erlib.config import DataSpec, EvalSpec
from erlib.training.evaluating import evaluate
from erlib.training.identity import run_hash
from erlib.training.runs import run
from erlib.training.workers import one_thread, portable, side_by_side, worker_count


def fail(task):
    pytest.fail(f"the worker of {task} was killed twice")


def test_results_come_in_the_order_of_tasks_from_other_processes():
    def work(task, tell):
        time.sleep(0.05 * (3 - task))  # the first ends last
        tell(task)
        return task**2, os.getpid()

    heard = []
    results = side_by_side(work, [1, 2, 3], 2, heard.append, killed=fail)
    assert [value for value, _ in results] == [1, 4, 9]
    assert len({pid for _, pid in results}) == 2 and os.getpid() not in {p for _, p in results}
    assert sorted(heard) == [1, 2, 3]


def test_a_task_begins_when_those_that_it_rests_on_are_finished_and_not_later():
    def work(task, tell):
        begun = time.monotonic()
        time.sleep({"root": 0.1, "slow": 0.6}.get(task, 0.0))
        return begun, time.monotonic()

    tasks = ["root", "slow", "leaf", "leaf of the leaf"]
    after = [(), (), {0}, {2}]
    results = side_by_side(work, tasks, 2, print, after, killed=fail)
    times = dict(zip(tasks, results, strict=True))
    for earlier, later in (("root", "leaf"), ("leaf", "leaf of the leaf")):
        assert times[earlier][1] <= times[later][0]
    assert times["leaf of the leaf"][1] < times["slow"][1]  # no waiting for the whole level


def test_workers_do_not_outlive_a_parent_that_was_killed():
    script = """
import os, time
from erlib.training.workers import side_by_side

def work(task, tell):
    while task == "busy":
        tell(os.getpid())
        time.sleep(0.05)
    tell(os.getpid())

side_by_side(work, ["busy", "soon idle"], 2, lambda pid: print(pid, flush=True), killed=print)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers: set[int] = set()
    while len(workers) < 2:
        workers.add(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(
        [psutil.Process(pid) for pid in workers if psutil.pid_exists(pid)], timeout=10
    )
    assert not alive


def test_the_first_error_is_raised_as_what_it_was_and_ends_the_others(tmp_path):
    def work(task, tell):
        if task == "bad":
            raise FloatingPointError("the loss became nan")
        time.sleep(5)
        (tmp_path / task).touch()

    with pytest.raises(FloatingPointError, match="the loss became nan") as caught:
        side_by_side(work, ["slow", "bad"], 2, print, killed=fail)
    assert 'raise FloatingPointError("the loss became nan")' in caught.value.__notes__[0]
    assert not (tmp_path / "slow").exists()


def test_a_task_whose_worker_is_killed_is_tried_once_more_in_a_new_one(tmp_path):
    def work(task, tell):
        tell(os.getpid())
        if task == "hopeless" or (task == "unlucky" and not (tmp_path / "once").exists()):
            (tmp_path / "once").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return f"{task}: done"

    tasks, pids = ["fine", "hopeless", "unlucky", "fine too"], []
    results = side_by_side(work, tasks, 2, pids.append, killed="{}: given up".format)
    assert results == [
        "fine: done", "hopeless: given up", "unlucky: done", "fine too: done"
    ]  # fmt: skip
    assert len(pids) >= len(tasks) + 1


def test_a_worker_that_is_killed_while_idle_costs_no_task(tmp_path):
    def work(task, tell):
        if task == "ends the idle one":
            while not (tmp_path / "pid").exists():
                time.sleep(0.01)
            time.sleep(0.1)  # until it has told its result
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        elif task == "soon idle":
            (tmp_path / "half").write_text(str(os.getpid()))
            (tmp_path / "half").rename(tmp_path / "pid")
        return task

    tasks = ["ends the idle one", "soon idle", "later", "last"]
    after = [(), (), {0}, {0}]
    assert side_by_side(work, tasks, 2, print, after, killed=fail) == tasks


def test_side_by_side_and_alone_give_the_same_bytes(spec, tmp_path, monkeypatch):
    """Three runs, of which two start from the first; and an evaluation of each."""
    specs = [spec, *(replace(spec, seed=seed, start=spec) for seed in (4, 5))]
    evals = [EvalSpec(s, DataSpec("movies", "local", 32), "dev", "predictions") for s in specs]
    tables = {}
    for workers in ("1", "2"):
        monkeypatch.setenv("ERLIB_WORKERS", workers)
        run(specs[1:], store=tmp_path / workers)  # the first is trained because they start from it
        tables[workers] = evaluate(evals, store=tmp_path / workers)
    for name in map(run_hash, specs):
        for file in ("model.safetensors", "metrics.json", "history.csv"):
            one, two = (tmp_path / w / "runs" / name / file for w in ("1", "2"))
            assert one.read_bytes() == two.read_bytes(), (name, file)
    assert tables["1"].equals(tables["2"])
    assert {Path(p).name for p in (tmp_path / "2" / "runs").iterdir()} == set(map(run_hash, specs))


def test_a_run_computes_on_one_thread_of_the_cpu_and_leaves_the_rest_as_it_was():
    before = torch.get_num_threads()
    with one_thread("cpu"):
        assert torch.get_num_threads() == 1
    with one_thread("cuda"):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


def test_the_number_of_workers_is_asked_for_or_found(monkeypatch):
    monkeypatch.setenv("ERLIB_WORKERS", "3")
    assert (worker_count("cpu"), worker_count("cuda")) == (3, 1)
    monkeypatch.setenv("ERLIB_WORKERS", "none")
    with pytest.raises(ValueError, match="whole number from 1 on, not 'none'"):
        worker_count("cpu")
    monkeypatch.delenv("ERLIB_WORKERS")
    assert 1 <= worker_count("cpu") <= len(os.sched_getaffinity(0))


class Odd(RuntimeError):
    """An error that is made of something else than its words."""

    def __init__(self, sealed: object) -> None:
        super().__init__(f"it needs {sealed.name}")


def test_an_error_that_another_process_cannot_make_again_keeps_its_class_and_words():
    error = Odd(Path("abc"))
    error.add_note("in a worker process: …")
    told = portable(error)
    assert type(told) is RuntimeError and str(told) == "Odd: it needs abc"
    assert told.__notes__ == ["in a worker process: …"]
    for same in (ValueError("x"), OSError(28, "full"), KeyError("x")):
        assert portable(same) is same


def test_the_words_of_such_an_error_come_out_of_a_worker():
    def work(task, tell):
        raise Odd(Path(task))

    with pytest.raises(RuntimeError, match="Odd: it needs a"):
        side_by_side(work, ["a", "b"], 2, print, killed=lambda task: None)
