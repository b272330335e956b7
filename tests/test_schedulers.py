"""The files for clusters: a script for Slurm, and a description of machines for Ray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import ray
import yaml

ROOT = Path(__file__).parent.parent

# A scheduler of two nodes that are this machine: `srun` starts the command as a process of its own.
STUBS = {
    "sbatch": 'SLURM_SUBMIT_DIR=$PWD SLURM_JOB_NODELIST="127.0.0.[1-2]" SLURM_JOB_ID=$$ \\\n'
    '    SLURM_CPUS_PER_TASK=1 exec bash "$@"',
    "scontrol": '[[ "$*" == "show hostnames 127.0.0.[1-2]" ]] && printf "127.0.0.1\\n127.0.0.2\\n"',
    "srun": 'while [[ $1 == --* ]]; do export SAID="${SAID:-} $1"; shift; done\nexec "$@"',
}
RAY = r"""
if [[ $1 == status ]]; then exec test -e head; fi
printf '%s\n' "$$ $RAY_AUTH_TOKEN$SAID $*" >>started
if [[ $* == *--head* ]]; then touch head; fi
exec sleep 600
"""
COMMAND = r"""#!/bin/bash
for ((left = 100; left; left--)); do
    if [[ $(wc -l <started) == 2 ]]; then break; fi
    sleep 0.1
done
printf '%s\n' "$*" >asked
exit 3
"""


def program(path: Path, body: str) -> None:
    path.write_text(body if body.startswith("#!") else f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def job(tmp_path):
    """`job()` submits docs/slurm.sh in a folder with a stand-in for run_all.sh."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in STUBS.items():
        program(tools / name, body)

    def submit(command: str) -> subprocess.CompletedProcess[str]:
        program(tmp_path / "run_all.sh", command)
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        return subprocess.run(
            ["sbatch", str(ROOT / "docs/slurm.sh"), "--profile", "gpu"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return submit


def test_a_slurm_job_starts_ray_on_both_nodes_runs_the_command_and_ends_both(job, tmp_path):
    program(tmp_path / "tools" / "ray", RAY)
    done = job(COMMAND)
    assert done.returncode == 3, done.stderr  # that of the command
    (pid, token, *head), (other, same, *worker) = (
        line.split() for line in (tmp_path / "started").read_text().splitlines()
    )
    assert pid != other and not psutil.pid_exists(int(pid)) and not psutil.pid_exists(int(other))
    assert len(token) == 64 and token == same
    assert {"--head", "--nodelist=127.0.0.1", "--num-cpus=1"} <= set(head)
    address = (tmp_path / "asked").read_text().split()[3]
    assert {f"--address={address}", "--nodelist=127.0.0.2", "--num-cpus=1"} <= set(worker)
    assert f"--port={address.removeprefix('127.0.0.1:')}" in head
    asked = f"--executor ray --ray-address {address} --profile gpu\n"
    assert (tmp_path / "asked").read_text() == asked


JOINED = f"""#!{sys.executable}
import socket, sys, time
import ray
ray.init(sys.argv[4], log_to_driver=False)
while ray.cluster_resources().get("CPU") != 2:
    time.sleep(1)
print(len([node for node in ray.nodes() if node["alive"]]), "nodes")
"""


@pytest.mark.full
def test_two_real_nodes_of_ray_join_in_a_slurm_job(job):
    done = job(JOINED)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2 nodes"


def test_the_description_of_machines_is_as_ray_wants_it():
    schema = json.loads((Path(ray.__file__).parent / "autoscaler/ray-schema.json").read_text())
    told = yaml.safe_load((ROOT / "docs/ray.yaml").read_text())
    assert set(schema["required"]) <= told.keys() <= schema["properties"].keys()
    assert told["provider"].keys() <= schema["properties"]["provider"]["properties"].keys()
    assert told["max_workers"] == len(told["provider"]["worker_ips"])
