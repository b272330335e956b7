"""On what were these numbers computed? Versions, revision, device, threads."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "captum",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "matplotlib",
    "seaborn",
)


def environment(device: str | None = None) -> dict[str, Any]:
    """What a run store or a report has to know of the machine; the same on every call.

    `device`: the one used, the default one when not said.
    """
    chosen = device or default_device()
    on_gpu = chosen.startswith("cuda") and torch.cuda.is_available()
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": chosen,
        "device_name": torch.cuda.get_device_name(chosen) if on_gpu else "",
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "revision": revision(),
        "packages": {name: _version(name) for name in PACKAGES},
    }


def default_device() -> str:
    """CUDA where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@contextmanager
def measured(folder: Path, device: str) -> Iterator[dict[str, Any]]:
    """Write `provenance.json` when the work is done; the caller may add facts of its own."""
    started = time.monotonic()
    facts: dict[str, Any] = {}
    yield facts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if device.startswith("cuda"):
        facts["peak_device_bytes"] = torch.cuda.max_memory_allocated()
    facts |= {
        **_environment(),
        "device": device,
        "seconds": round(time.monotonic() - started, 1),
        "peak_process_bytes": peak,
        "spec": json.loads((folder / "spec.json").read_text("utf-8")),
    }
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    (folder / "provenance.json").write_text(text, encoding="utf-8")


@cache
def _environment() -> dict[str, Any]:
    """Asked once per process: it runs Git, and a grid has hundreds of evaluations."""
    return environment()


def revision() -> str | None:
    """The commit erlib's source stands at, with "+" if the source has been changed since.

    None where erlib is not run from a Git checkout of itself.
    """
    source = Path(__file__).resolve().parent
    if _git(source, "ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    commit = _git(source, "rev-parse", "HEAD")
    if commit is None:
        return None
    changed = _git(source, "status", "--porcelain", "--", ".")
    return commit + ("+" if changed else "")


def source_hash(*folders: Path) -> str:
    """One hash of every file of erlib's source, and of these folders beside it."""
    found = sha256()
    for folder in (Path(__file__).resolve().parent, *folders):
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return found.hexdigest()[:16]


def surroundings(device: str | None) -> dict[str, Any]:
    """What numbers may depend on besides erlib: device, libraries, and the files of one's own, each
    with its size and the time of its last change."""
    where = environment(device)
    data, vectors = os.environ.get("ERLIB_DATA"), os.environ.get("ERLIB_GLOVE")
    own = [*(sorted(Path(data).glob("*/*")) if data else []), *([Path(vectors)] if vectors else [])]
    stats = [(str(file), file.stat()) for file in own if file.is_file()]
    return {
        **{name: where[name] for name in ("python", "platform", "device", "device_name")},
        "packages": where["packages"],
        "own": [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats],
    }


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
