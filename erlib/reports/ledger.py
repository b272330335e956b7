"""Where do reports live, and how do rows of their CSVs change while others write?"""

from __future__ import annotations

import csv
import io
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from filelock import FileLock

from erlib.catalogue import paper as paper_named
from erlib.catalogue import papers
from erlib.config import project_root
from erlib.disk import megabytes, naming_a_full_disk

STAGE = "ERLIB_STAGE"  # set while a notebook is executed: the folder to write to (`staging`)


def reports_folder(profile: str, root: Path | str | None = None) -> Path:
    """`reports/<profile>` under the root; not given, it is the stage, or else the project."""
    return _folder("reports", profile, root)


def figures_folder(profile: str, root: Path | str | None = None) -> Path:
    """`figures/<profile>` under the root."""
    return _folder("figures", profile, root)


def _folder(kind: str, profile: str, root: Path | str | None) -> Path:
    if not re.fullmatch(r"[a-z0-9_-]+", profile):
        raise ValueError(f"a profile's name is lower-case letters and digits, got {profile!r}")
    return Path(root or os.environ.get(STAGE) or project_root()) / kind / profile


def known_paper(paper: str) -> str:
    """The paper's name if it is one of ours."""
    return paper_named(paper).name


def read_rows(path: Path) -> list[dict[str, str]]:
    """All rows as text; none where the file is not there yet."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def upsert(path: Path, row: Mapping[str, object], key: Sequence[str]) -> None:
    """Put the row in place of the one with the same key, or add it.

    Rows are kept in the order of the papers and of their numbers, whoever wrote first. Several
    notebooks may write at once: the file is locked while it is read and replaced whole.
    """
    text = {name: "" if value is None else str(value) for name, value in row.items()}
    with _locked(path):
        rows = [r for r in read_rows(path) if any(r.get(k) != text[k] for k in key)]
        rows = sorted([*rows, text], key=lambda r: [_natural(r.get(k, "")) for k in key])
        write_whole(path, _written(rows, columns=list(text)))


def replace_rows(path: Path, paper: str, rows: Sequence[Mapping[str, str]]) -> None:
    """Put these rows, in their order, in place of all that the paper had; no rows, no file."""
    with _locked(path):
        if text := merged(path, paper, rows):
            write_whole(path, text)
        else:
            path.unlink(missing_ok=True)


def merged(path: Path, paper: str, rows: Sequence[Mapping[str, str]]) -> str:
    """What the file says with these rows in place of the paper's; empty without any row."""
    every = [*rows, *(r for r in read_rows(path) if r["paper"] != paper)]
    ordered = sorted(every, key=lambda r: _natural(r["paper"]))
    return _written(ordered, columns=list(every[0])) if every else ""


def _locked(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.parent / f".{path.name}.lock")


def _written(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> str:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, fieldnames=columns, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_whole(path: Path, content: str | bytes) -> None:
    """Write beside the file and move in: a reader sees the old content or the new, never half."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    free = "Free some, or name another folder for what is temporary in TMPDIR"
    with naming_a_full_disk(
        path.name, path.parent, lambda: f"it takes {megabytes(len(data))}", free
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.chmod(beside, 0o644)  # mkstemp makes files that only their owner can read
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Papers in their order, and 2 before 10."""
    if text in papers():
        return [(0, list(papers()).index(text), "")]
    return [(0, int(t), "") if t.isdigit() else (1, 0, t) for t in re.split(r"(\d+)", text) if t]
