"""Where do finished runs and evaluations live, and can they be trusted?

A result is made in `<kind>/<hash>.partial`, sealed with `DONE` (its status and the sha256 of every
file) and moved to `<kind>/<hash>` in one rename. A lock per hash keeps two processes from making
the same thing; it goes with its process. A result whose files do not match `DONE` is made again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

KINDS = ("runs", "evals")


@dataclass(frozen=True)
class Sealed:
    """A finished result: its folder and the status in its `DONE`."""

    path: Path
    status: str

    @property
    def name(self) -> str:
        """The hash."""
        return self.path.name

    def read(self, file: str) -> Any:
        """One of its JSON files."""
        return json.loads((self.path / file).read_text(encoding="utf-8"))


class Store:
    """Runs and evaluations under one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._checked: set[Path] = set()

    def get(self, kind: str, name: str) -> Sealed | None:
        """The intact result, or None if it is missing or damaged.

        Checksums are compared once per process and result.
        """
        path = self.root / kind / name
        if not (path / "DONE").exists() or (path not in self._checked and damage(path)):
            return None
        self._checked.add(path)
        return Sealed(path, json.loads((path / "DONE").read_text(encoding="utf-8"))["status"])

    def make(self, kind: str, name: str, work: Callable[[Path], str]) -> Sealed:
        """The result, made by `work(folder) -> status` unless it is there already.

        `work` finds in its folder what an interrupted attempt left, and may go on from it.
        """
        with self._lock(kind, name):
            if found := self.get(kind, name):
                return found
            path = self.root / kind / name
            partial = path.with_name(f"{name}.partial")
            shutil.rmtree(path, ignore_errors=True)  # damaged, or get would have found it
            partial.mkdir(parents=True, exist_ok=True)
            status = work(partial)
            sums = {str(f.relative_to(partial)): checksum(f) for f in files_of(partial)}
            sealed = {"status": status, "sha256": sums}
            (partial / "DONE").write_text(json.dumps(sealed, indent=1) + "\n", encoding="utf-8")
            partial.rename(path)
            self._checked.add(path)
            return Sealed(path, status)

    def _lock(self, kind: str, name: str) -> FileLock:
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{kind}-{name}.lock")

    def sealed(self, kind: str) -> Iterator[Sealed]:
        """Every result that has a `DONE`, without comparing checksums."""
        for done in sorted((self.root / kind).glob("*/DONE")):
            if done.parent.suffix != ".partial":
                status = json.loads(done.read_text(encoding="utf-8"))["status"]
                yield Sealed(done.parent, status)

    def find(self, kind: str, prefix: str) -> Sealed:
        """The one result whose hash begins with `prefix`."""
        matches = [s for s in self.sealed(kind) if s.name.startswith(prefix)]
        if len(matches) != 1:
            raise ValueError(
                f"{len(matches)} {kind} in {self.root} begin with '{prefix}'; "
                f"`python -m erlib runs ls` lists them"
            )
        return matches[0]

    def verify(self) -> dict[Path, list[str]]:
        """Every sealed result with what is wrong with it (an empty list: nothing)."""
        return {s.path: damage(s.path) for kind in KINDS for s in self.sealed(kind)}

    def collect_garbage(self) -> list[Path]:
        """Remove unfinished folders that no process works on, and damaged results."""
        doomed = [p for kind in KINDS for p in sorted((self.root / kind).glob("*.partial"))]
        doomed += [path for path, faults in self.verify().items() if faults]
        return [path for path in doomed if self._remove_idle(path)]

    def _remove_idle(self, path: Path) -> bool:
        try:
            with self._lock(path.parent.name, path.stem).acquire(blocking=False):
                shutil.rmtree(path)
                return True
        except Timeout:  # somebody is making it right now
            return False


def damage(path: Path) -> list[str]:
    """What differs between a sealed folder and its `DONE`."""
    try:
        expected = json.loads((path / "DONE").read_text(encoding="utf-8"))["sha256"]
    except (OSError, ValueError, KeyError) as error:
        return [f"DONE cannot be read ({error})"]
    present = {str(f.relative_to(path)): f for f in files_of(path) if f.name != "DONE"}
    missing = [f"{name} is missing" for name in expected if name not in present]
    changed = [
        f"{name} has changed"
        for name, sha in expected.items()
        if name in present and checksum(present[name]) != sha
    ]
    return missing + changed


def files_of(folder: Path) -> list[Path]:
    """All files below a folder, in order."""
    return sorted(f for f in folder.rglob("*") if f.is_file())


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
