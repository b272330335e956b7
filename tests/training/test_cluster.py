"""A cluster gives the numbers that one machine gives, also when a worker is lost.

Ray is started for real, on this machine, with two workers.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from erlib import config
from erlib.cli import main
from erlib.config import DataSpec, EvalSpec, as_plain
from erlib.provenance import source_hash
from erlib.training import cluster
from erlib.training.identity import run_hash
from erlib.training.stages import Stage, carry_out

ROOT = Path(__file__).parents[2]


class Killer(threading.Thread):
    """Kills the process that makes this run when its second epoch is saved, and watches which
    epochs are saved, by the times of their files."""

    def __init__(self, store: Path, name: str) -> None:
        super().__init__(daemon=True)
        self.partial = store / "runs" / f"{name}.partial"
        self.lock = store / "locks" / f"runs-{name}.lock"
        self.saved: dict[str, set[int]] = {}
        self.killed = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.005):
            for file in self.partial.glob("state-*/sums.json"):
                try:
                    self.saved.setdefault(file.parent.name, set()).add(file.stat().st_mtime_ns)
                except FileNotFoundError:  # an older one, which has just been removed
                    continue
            if "state-2" in self.saved and not self.killed:
                self.killed = int(self.lock.read_text().removeprefix("process "))
                os.kill(self.killed, signal.SIGKILL)


def stages(runs):
    """Two runs, and an evaluation of each."""
    evals = [EvalSpec(r, DataSpec("movies", "local", 32), "dev", "predictions") for r in runs]
    return [Stage("runs", lambda _: runs, 2, runs), Stage("evals", lambda _: evals, 2, evals)]


# In a process of its own, since Ray leaves threads behind, which forks of other tests cannot bear.
ON_RAY = """
import json, sys
from erlib.config import run_spec_from_dict
from erlib.training.stages import carry_out
from tests.training.test_cluster import stages

runs = [run_spec_from_dict(plain) for plain in json.loads(sys.argv[1])]
carry_out(stages(runs), executor="ray", store=sys.argv[2], device=None)
"""


def test_a_grid_on_two_workers_of_which_one_is_killed_gives_the_same_bytes(
    spec, tmp_path, monkeypatch
):
    monkeypatch.setenv("ERLIB_WORKERS", "2")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    runs = [replace(spec, seed=s, optimiser=replace(spec.optimiser, epochs=6)) for s in (3, 4)]
    here, there = tmp_path / "here", tmp_path / "there"
    expected = carry_out(stages(runs), executor="local", store=here, device="cpu")

    killer = Killer(there, run_hash(runs[0]))
    killer.start()
    described = json.dumps([as_plain(run) for run in runs])
    command = [sys.executable, "-c", ON_RAY, described, str(there)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=500)
    killer.over.set()
    results = carry_out(stages(runs), executor="local", store=there, device="cpu")  # reads them

    for name in map(run_hash, runs):
        for file in ("metrics.json", "history.csv", "model.safetensors"):
            one, two = (store / "runs" / name / file for store in (here, there))
            assert one.read_bytes() == two.read_bytes(), (name, file)
    for stage, table in expected.items():
        assert table.equals(results[stage])
    assert killer.killed not in (0, os.getpid())
    assert all(len(times) == 1 for times in killer.saved.values()), "an epoch was trained twice"
    resumed = [(there / "runs" / run_hash(r) / "provenance.json").read_text() for r in runs]
    assert ['"resumed": true' in said for said in resumed] == [True, False]
    assert not list((there / "locks").glob("cluster-*"))


def test_what_a_task_tells_arrives_in_order_and_before_its_answer():
    post = cluster.Post()
    post.add(1, [("a",), ("b",)])
    post.add(0, [("c",)])
    assert post.take() == [(1, ("a",)), (1, ("b",)), (0, ("c",))]
    assert post.take() == []


def test_a_machine_with_another_version_or_without_the_store_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SEEN_AFTER", 0.0)
    (tmp_path / "locks").mkdir()
    home = cluster.home_of(tmp_path, "token")
    with pytest.raises(RuntimeError, match="does not see the store .* ERLIB_STORE"):
        cluster.compare(home)
    (tmp_path / "locks" / "token").touch()
    cluster.compare(home)
    assert home.source == source_hash()
    with pytest.raises(RuntimeError, match="another version of erlib"):
        cluster.compare(replace(home, source="0" * 16))


def test_as_many_tasks_go_on_as_there_are_cores_or_gpus_or_parts_of_these(monkeypatch):
    there = SimpleNamespace(cluster_resources=lambda: {"CPU": 16.0, "GPU": 2.0})
    monkeypatch.setattr(cluster, "connected", lambda: there)
    monkeypatch.delenv("ERLIB_WORKERS", raising=False)
    assert (cluster.workers("cpu"), cluster.workers("cuda")) == (16, 2)
    monkeypatch.setenv("ERLIB_GPU_SHARE", "0.2")
    assert (cluster.workers("cpu"), cluster.workers("cuda")) == (16, 10)
    monkeypatch.setenv("ERLIB_WORKERS", "3")
    assert cluster.workers("cuda") == 3
    for wrong in ("2", "0", "half"):
        monkeypatch.setenv("ERLIB_GPU_SHARE", wrong)
        with pytest.raises(ValueError, match="a part of a GPU, such as 0.5, not"):
            cluster.workers("cuda")


def test_a_device_of_one_machine_cannot_be_asked_for(tmp_path):
    with pytest.raises(ValueError, match="'cuda' or 'cpu', not 'cuda:1'"):
        cluster.cluster("cuda:1", tmp_path)


def test_without_ray_one_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(config, "find_spec", lambda name: None)
    assert main(["run", "--executor", "ray", "--plan"]) == 2
    said = capsys.readouterr().err
    assert re.fullmatch(r"erlib: this needs the library ray: pip install 'erlib\[ray\]'\n", said)
