"""How does what a notebook makes reach the site: all of it, or nothing?

A notebook writes its tables, figures and verdicts cell by cell. While it is executed they are kept
in a folder apart, laid out as the project is; a notebook that fails or is interrupted leaves the
site as it was, and one that no longer makes a table takes the old one away.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from erlib.reports.ledger import (
    STAGE,
    figures_folder,
    read_rows,
    replace_rows,
    reports_folder,
    write_whole,
)

LEDGERS = ("artefacts.csv", "claims.csv", "claims_parts.csv")  # the files that papers share


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
    for file in stage.rglob("[!.]*"):
        if file.is_file() and file.name not in LEDGERS:
            write_whole(root / file.relative_to(stage), file.read_bytes())
    for name in LEDGERS:
        rows = read_rows(reports_folder(profile, stage) / name)
        replace_rows(reports_folder(profile, root) / name, paper, rows)
    for gone in own_files(paper, profile, root) - own_files(paper, profile, stage):
        (root / gone).unlink()


def own_files(paper: str, profile: str, root: Path) -> set[Path]:
    """Tables, figures and facts of a paper, relative to the root."""
    reports = reports_folder(profile, root)
    found = (
        *figures_folder(profile, root).glob(f"{paper}-*"),
        *(reports / "tables").glob(f"{paper}-*"),
        *reports.glob(f"{paper}.*.json"),
    )
    return {file.relative_to(root) for file in found}
