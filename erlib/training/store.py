"""Where do finished runs and evaluations live, and can they be trusted?

A result is made in `<kind>/<hash>.partial`, sealed with `DONE` (its status and the sha256 of every
file) and moved to `<kind>/<hash>` in one rename. A lock per hash keeps two processes from making
the same thing; it goes with its process. A result whose files do not match `DONE` is made again;
one that was sealed but not yet moved, when its process was killed, only has to be moved.

The files of a run's model (`MODEL`) may be dropped: `DONE` then keeps their sha256 under `dropped`,
and what is trained again in their place has the same, or stands in the place of the whole result,
whose measurements are made anew. Only a process that works on the store
alone drops anything (`in_use`), so that nobody's model goes while it is being read.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any

from filelock import FileLock, Timeout

from erlib.config import store_root
from erlib.data.known import NeedsCorpus, results_only
from erlib.disk import megabytes, naming_a_full_disk

KINDS = ("runs", "evals")
MODEL = ("model.safetensors", "tokenizer.json")  # what takes the room of a run
LOG_FILE = "log.txt"  # of a run: what its owner should know of how it went
VANISHED = "vanished"  # of an epoch: the losses that moved no weight (see `vanishing`)
PATIENCE = 60.0  # seconds between two words on what another process is making
StorePath = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Sealed:
    """A finished result: its folder, and what its `DONE` says: the status, and the sha256 of files
    that were dropped."""

    path: Path
    status: str
    dropped: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """The hash."""
        return self.path.name

    def read(self, file: str) -> Any:
        """One of its JSON files; empty where the result failed before there was one."""
        path = self.path / file
        if self.status == "failed" and not path.exists():
            return {}
        return json.loads(path.read_text(encoding="utf-8"))


class Store:
    """Runs and evaluations under one root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._checked: set[Path] = set()
        self._users = 0  # how often `in_use` is open in this process
        self._use: IO[str] | None = None

    def get(self, kind: str, name: str) -> Sealed | None:
        """The intact result, or None if it is missing or damaged.

        Checksums are compared once per process and result.
        """
        path = self.root / kind / name
        if not (path / "DONE").exists() or (path not in self._checked and damage(path)):
            return None
        self._checked.add(path)
        return sealed_at(path)

    def make(self, kind: str, name: str, work: Callable[[Path], str]) -> Sealed:
        """The result, made by `work(folder) -> status` unless it is there already.

        `work` finds in its folder what an interrupted attempt left, and may go on from it.
        """
        with self._locked(kind, name):
            if found := self.get(kind, name):
                return found
            path = self.root / kind / name
            partial = path.with_name(f"{name}.partial")
            _remove(path)  # damaged, or get would have found it
            if (partial / "DONE").exists() and damage(partial):
                _remove(partial)  # killed while it was being sealed
            if not (partial / "DONE").exists():
                partial.mkdir(parents=True, exist_ok=True)
                (partial / "DONE.tmp").unlink(missing_ok=True)  # killed before it became DONE
                status = work(partial)
                _seal(partial, status, checksums(partial))
            partial.rename(path)
            self._checked.add(path)
            return sealed_at(path)

    def opened(self, sealed: Sealed, file: str) -> Path:
        """One of its files, to be read."""
        return sealed.path / file

    def lacking(self) -> list[str]:
        """What was asked for and is not there, `evals/<hash>`: nothing, where it can be made."""
        return []

    def admit(
        self,
        kind: str,
        name: str,
        place: Callable[[Path], None],
        status: str,
        dropped: Mapping[str, str],
    ) -> None:
        """Seal a result that was made elsewhere: `place` puts its files into a folder, and those
        that are `dropped` stay where they are."""
        with self._locked(kind, name):
            path = self.root / kind / name
            partial = path.with_name(f"{name}.partial")
            for folder in (path, partial):
                shutil.rmtree(folder, ignore_errors=True)
            partial.mkdir(parents=True)
            place(partial)
            _seal(partial, status, checksums(partial), dropped)
            partial.rename(path)

    def forget(self, status: str) -> list[Path]:
        """Remove the results of this status, so that they are made again when next needed."""
        return self.remove(s for kind in KINDS for s in self.sealed(kind) if s.status == status)

    def remove(self, results: Iterable[Sealed]) -> list[Path]:
        """Remove these, but for those that somebody works on right now."""
        return [sealed.path for sealed in list(results) if self._remove_idle(sealed.path)]

    def restore(
        self,
        kind: str,
        name: str,
        work: Callable[[Path], str],
        outdated: Callable[[], None] = lambda: None,
    ) -> Sealed:
        """The result with what was dropped of it, which `work` makes again.

        Where it comes out otherwise, on another machine or with other libraries, the new result
        stands in its place, and what was measured of the old one is `outdated`.
        """
        with self._locked(kind, name):
            found = self.get(kind, name)
            if found is None:
                raise ValueError(f"{name} is not in {self.root}, or damaged: nothing to restore")
            if not found.dropped:
                return found  # another process was faster
            partial = found.path.with_name(f"{name}.partial")
            partial.mkdir(parents=True, exist_ok=True)
            status = work(partial)
            if changes(partial, found.dropped):
                print(
                    f"erlib: {name} came out otherwise than where it was first made, since this "
                    "machine or its libraries compute other numbers; it and what was measured of "
                    "it are made anew",
                    file=sys.stderr,
                )
                outdated()
                _remove(found.path)
                _seal(partial, status, checksums(partial))
                partial.rename(found.path)
                return sealed_at(found.path)
            for file in found.dropped:
                (partial / file).rename(found.path / file)
            _reseal(found.path, dropped={})
            shutil.rmtree(partial)
            return sealed_at(found.path)

    def drop_model(self, name: str) -> int:
        """Drop the model of a run, if it has one that is not kept and nobody else works on the
        store; how many bytes."""
        path = self.root / "runs" / name
        if (self.root / "kept" / name).exists() or not _has_seal(path):
            return 0
        with self.in_use(), self._alone() as alone:
            if not alone:
                return 0
            seal = read_seal(path)
            sums = {**seal["sha256"], **seal.get("dropped", {})}
            files = [path / file for file in MODEL if (path / file).exists()]
            if files:  # sealed first: a kill leaves a file too many, and no damage
                _reseal(path, dropped={file: sums[file] for file in MODEL if file in sums})
            freed = sum(file.stat().st_size for file in files)
            for file in files:
                file.unlink()
            return freed

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """While open, no other process drops anything."""
        if self._use is None:
            folder = self.root / "locks"
            folder.mkdir(parents=True, exist_ok=True)
            self._use = (folder / "in-use.lock").open("a")
            fcntl.flock(self._use, fcntl.LOCK_SH)
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._use.close()
                self._use = None

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """While open, nobody else can begin to use the store; False if somebody does already."""
        assert self._use is not None
        try:
            fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        except BlockingIOError:
            alone = False
        try:
            yield alone
        finally:
            fcntl.flock(self._use, fcntl.LOCK_SH)

    def keep_model(self, name: str) -> None:
        """Note that this run's model is not to be dropped."""
        (self.root / "kept").mkdir(exist_ok=True)
        (self.root / "kept" / name).touch()

    def drop_models(self) -> dict[str, int]:
        """Drop all models that are not kept; run → bytes, where there were any."""
        names = [sealed.name for sealed in self.sealed("runs")]
        return {name: freed for name in names if (freed := self.drop_model(name))}

    def _lock(self, kind: str, name: str) -> FileLock:
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / f"{kind}-{name}.lock")

    @contextmanager
    def _locked(self, kind: str, name: str) -> Iterator[None]:
        """While open, no other process makes this result; who waits long says for whom, and a full
        disk is said to be one."""
        with _naming_a_full_disk(self.root / kind / f"{name}.partial"):
            lock, began = self._lock(kind, name), time.monotonic()
            owner = Path(lock.lock_file)
            while not lock.is_locked:
                try:
                    lock.acquire(timeout=PATIENCE)
                except Timeout:
                    who = owner.read_text(encoding="utf-8", errors="replace") or "another process"
                    waited = round(time.monotonic() - began)
                    print(
                        f"erlib: waiting for {kind.removesuffix('s')} {name}, which {who} makes "
                        f"({waited} s so far)",
                        file=sys.stderr,
                    )
            try:
                owner.write_text(f"process {os.getpid()}", encoding="utf-8")
                yield
            finally:
                lock.release()

    def sealed(self, kind: str) -> Iterator[Sealed]:
        """Every result that has a `DONE`, without comparing checksums."""
        for done in sorted((self.root / kind).glob("*/DONE")):
            if done.parent.suffix != ".partial":
                try:
                    yield sealed_at(done.parent)
                except (OSError, ValueError):
                    yield Sealed(done.parent, "damaged")

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
        """Every result with what is wrong with it (an empty list: nothing)."""
        places = [p for kind in KINDS for p in sorted((self.root / kind).glob("*"))]
        return {path: damage(path) for path in places if path.suffix != ".partial"}

    def collect_garbage(self) -> list[Path]:
        """Remove unfinished folders that no process works on, and damaged results.

        One that was finished and not yet moved, when its process was killed, is left to be moved.
        """
        found = [p for kind in KINDS for p in sorted((self.root / kind).glob("*.partial"))]
        doomed = [path for path in found if damage(path)]
        doomed += [path for path, faults in self.verify().items() if faults]
        return [path for path in doomed if self._remove_idle(path)]

    def _remove_idle(self, path: Path) -> bool:
        try:
            with self._lock(path.parent.name, path.stem).acquire(blocking=False):
                _remove(path)
                return True
        except Timeout:  # somebody is making it right now
            return False


def _remove(path: Path) -> None:
    """A folder with all that is in it, or whatever else lies in its place."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _naming_a_full_disk(partial: Path) -> Iterator[None]:
    """An error for want of room says so of the result that is made in this folder."""

    def needed() -> str:
        written = sum(f.stat().st_size for f in files_of(partial)) if partial.exists() else 0
        return f"{megabytes(written)} of it were written"

    free = (
        "Free some (`python -m erlib runs gc --weights` drops models that no profile keeps), or "
        "name a folder with more in ERLIB_STORE"
    )
    with naming_a_full_disk(partial.name.removesuffix(".partial"), partial.parent, needed, free):
        yield


def _has_seal(path: Path) -> bool:
    try:
        read_seal(path)
    except (OSError, ValueError):
        return False
    return True


class Results(Store):
    """A store that is only read: what it lacks fails, apart from it, for want of a corpus.

    `asked`: the kind and hash of everything that was found; `read`: the files that were opened.
    """

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked: set[tuple[str, str]] = set()
        self.read: set[Path] = set()
        self._folder = tempfile.TemporaryDirectory()
        self._lacking = Store(Path(self._folder.name))

    def get(self, kind: str, name: str) -> Sealed | None:
        """The intact result, or the failure of one that is not there."""
        if found := super().get(kind, name):
            self.asked.add((kind, name))
            return found
        return self._lacking.get(kind, name)

    def make(self, kind: str, name: str, work: Callable[[Path], str]) -> Sealed:
        """The result, or what is left of an attempt at it."""
        return self.get(kind, name) or self._lacking.make(kind, name, work)

    def begin(self) -> None:
        """Forget what was asked for until now."""
        self.asked.clear()
        self.read.clear()
        for kind in KINDS:
            shutil.rmtree(self._lacking.root / kind, ignore_errors=True)

    def lacking(self) -> list[str]:
        """What was asked for and is not there: `evals/<hash>`, …"""
        return [f"{kind}/{s.name}" for kind in KINDS for s in self._lacking.sealed(kind)]

    def restore(
        self,
        kind: str,
        name: str,
        work: Callable[[Path], str],
        outdated: Callable[[], None] = lambda: None,
    ) -> Sealed:
        """Nothing that was dropped is made again."""
        what = "the model of run" if kind == "runs" else "the table of evaluation"
        raise NeedsCorpus(f"{what} {name}")

    def opened(self, sealed: Sealed, file: str) -> Path:
        """One of its files, noted as `read`."""
        self.read.add(sealed.path / file)
        return sealed.path / file

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Nothing is dropped here in any case."""
        yield

    def drop_model(self, name: str) -> int:
        """Models stay as they are."""
        return 0

    def keep_model(self, name: str) -> None:
        """Models stay as they are."""


def sealed_at(path: Path) -> Sealed:
    """What the `DONE` of a folder says."""
    seal = read_seal(path)
    return Sealed(path, seal["status"], seal.get("dropped", {}))


def _reseal(path: Path, dropped: Mapping[str, str]) -> None:
    """Write the `DONE` of a folder again: these files are gone, all others are there."""
    seal = read_seal(path)
    sums = {**seal["sha256"], **seal.get("dropped", {})}
    there = {file: sums[file] for file in sorted(sums, key=Path) if file not in dropped}
    _seal(path, seal["status"], there, dropped)


def _seal(
    path: Path, status: str, sums: Mapping[str, str], dropped: Mapping[str, str] | None = None
) -> None:
    """Write the `DONE` of a folder, whole or not at all."""
    seal = {"status": status, "sha256": sums, **({"dropped": dict(dropped)} if dropped else {})}
    (path / "DONE.tmp").write_text(json.dumps(seal, indent=1) + "\n", encoding="utf-8")
    (path / "DONE.tmp").rename(path / "DONE")


def damage(path: Path) -> list[str]:
    """What differs between a sealed folder and its `DONE`."""
    if not (path / "DONE").exists():
        return ["it has no DONE"]
    try:
        return changes(path, read_seal(path)["sha256"])
    except (OSError, ValueError) as error:
        return [f"DONE cannot be read ({error})"]


def read_seal(path: Path) -> dict[str, Any]:
    """What `DONE` says: the `status`, and the `sha256` of every file and of the `dropped` ones."""
    seal = json.loads((path / "DONE").read_text(encoding="utf-8"))
    match seal:
        case {"status": str(), "sha256": dict(sums)}:
            dropped = seal.get("dropped", {})
            if isinstance(dropped, dict) and all(
                isinstance(sha, str) for sha in (*sums.values(), *dropped.values())
            ):
                return seal
    raise ValueError("it has no status and checksums")


def changes(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """What differs between the files below a folder and their `checksums` of an earlier time."""
    present = {name: folder / name for name in expected if (folder / name).is_file()}
    missing = [f"{name} is missing" for name in expected if name not in present]
    changed = [
        f"{name} has changed" for name, file in present.items() if checksum(file) != expected[name]
    ]
    return missing + changed


def checksums(folder: Path) -> dict[str, str]:
    """The sha256 of every file below a folder, by its path from there."""
    return {str(f.relative_to(folder)): checksum(f) for f in files_of(folder)}


def files_of(folder: Path) -> list[Path]:
    """All files below a folder, in order."""
    return sorted(f for f in folder.rglob("*") if f.is_file())


def checksum(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def open_store(store: StorePath = None) -> Store:
    """The store at this path (see `config.store_root` for the default), one object per path."""
    return _store(store_root(store).resolve(), Results if results_only() else Store)


@lru_cache(maxsize=8)
def _store(root: Path, access: type[Store]) -> Store:
    return access(root)
