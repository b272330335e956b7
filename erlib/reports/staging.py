"""How does what a notebook makes reach the site: all of it, or nothing?

A notebook writes its tables, figures and verdicts cell by cell. While it is executed they are kept
in a folder apart, laid out as the project is; a notebook that fails or is interrupted leaves the
site as it was, and one that no longer makes a table takes the old one away.

Whole, they are first written beside the site, with the ledgers as they will be, to
`reports/<profile>/.publishing.partial`. That folder's new name, `.publishing`, decides: before it
nothing has changed, and after it nothing more has to be written, only moved. Who publishes, lists
or checks reports after a kill in between moves the rest first.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from erlib.disk import megabytes, naming_a_full_disk
from erlib.reports.ledger import STAGE, figures_folder, merged, read_rows, reports_folder

LEDGERS = ("artefacts.csv", "claims.csv", "claims_parts.csv")  # the files that papers share
GONE = "gone.json"  # in `.publishing`: what the site no longer has; the rest are files for it


@contextmanager
def staged() -> Iterator[Path]:
    """The folder to which reports and figures go meanwhile, from kernels started inside too."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[STAGE] = folder
        try:
            yield Path(folder)
        finally:
            del os.environ[STAGE]


def publish(paper: str, profile: str, stage: Path, root: Path) -> None:
    """Put what was staged in place of all that the site had of the paper."""
    decided = _decided(profile, root)
    partial = decided.with_suffix(".partial")
    size = sum(file.stat().st_size for file in stage.rglob("*") if file.is_file())
    room = naming_a_full_disk(
        f"the report of {paper}",
        decided.parent,
        lambda: f"it takes {megabytes(size)}",
        "The report that was there is as it was. Free some",
    )
    with room, _alone(decided):
        _move_in(decided, root)
        shutil.rmtree(partial, ignore_errors=True)
        try:
            _write(partial, paper, profile, stage, root)
            partial.rename(decided)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        _move_in(decided, root)


def finish(profile: str, root: Path) -> None:
    """Move in what was decided when its process was killed, and remove what was not."""
    decided = _decided(profile, root)
    partial = decided.with_suffix(".partial")
    if decided.exists() or partial.exists():
        with _alone(decided):
            _move_in(decided, root)
            shutil.rmtree(partial, ignore_errors=True)


def _decided(profile: str, root: Path) -> Path:
    return reports_folder(profile, root) / ".publishing"


def _alone(decided: Path) -> FileLock:
    """One paper of a profile is published at a time: they share the ledgers."""
    decided.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(decided.with_suffix(".lock"))


def _write(partial: Path, paper: str, profile: str, stage: Path, root: Path) -> None:
    """All that the site will have of the paper, laid out as the project is, and what is gone."""
    gone = own_files(paper, profile, root) - own_files(paper, profile, stage)
    partial.mkdir(parents=True)
    for file in stage.rglob("[!.]*"):
        if file.is_file() and file.name not in LEDGERS:
            there = partial / file.relative_to(stage)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, there)
    for name in LEDGERS:
        ledger = (reports_folder(profile, stage) / name).relative_to(stage)
        text = merged(root / ledger, paper, read_rows(stage / ledger))
        if text:
            (partial / ledger).parent.mkdir(parents=True, exist_ok=True)
            (partial / ledger).write_text(text, encoding="utf-8", newline="")
        else:
            gone.add(ledger)
    (partial / GONE).write_text(json.dumps(sorted(map(str, gone))), encoding="utf-8")


def _move_in(decided: Path, root: Path) -> None:
    """Move what is there to its place, remove what is gone; done again, it does the rest."""
    if not decided.exists():
        return
    if (decided / GONE).exists():
        for file in sorted(decided.glob("*/**/*")):
            if file.is_file():
                place = root / file.relative_to(decided)
                place.parent.mkdir(parents=True, exist_ok=True)
                file.replace(place)
        for name in json.loads((decided / GONE).read_text(encoding="utf-8")):
            (root / name).unlink(missing_ok=True)
        (decided / GONE).unlink()
    shutil.rmtree(decided)


def own_files(paper: str, profile: str, root: Path) -> set[Path]:
    """Tables, figures and facts of a paper, and its notebook that failed, relative to the root."""
    reports = reports_folder(profile, root)
    found = (
        *figures_folder(profile, root).glob(f"{paper}-*"),
        *(reports / "tables").glob(f"{paper}-*"),
        *reports.glob(f"{paper}.*.json"),
        *reports.glob(f"*_{paper}.failed.ipynb"),
    )
    return {file.relative_to(root) for file in found}
