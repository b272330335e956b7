"""A committed archive makes the committed tables again, number for number, without a corpus."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest

from erlib.cli import main
from tests.test_committed_reports import published

ROOT = Path(__file__).parents[1]
ARCHIVES = sorted(ROOT.glob("reports/*/results/*.zip"))

pytestmark = [
    pytest.mark.report,
    pytest.mark.skipif(not ARCHIVES, reason="no archive is committed"),
]


def rebuilt(archive: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of reports that are made in a project that has this archive and no store."""
    profile = archive.parents[1].name
    here = root / "reports" / profile
    (here / "results").mkdir(parents=True)
    shutil.copy(archive, here / "results")
    (root / "notebooks").symlink_to(ROOT / "notebooks")
    monkeypatch.chdir(root)
    monkeypatch.delenv("ERLIB_DATA", raising=False)
    monkeypatch.setenv("ERLIB_STORE", str(root / "store"))
    assert main(["run", "--profile", profile, "--only", archive.stem, "--from-results"]) == 0
    return here


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(file, id=file.stem, marks=[pytest.mark.full] * (file != smallest))
        for smallest in [min(ARCHIVES, key=lambda file: file.stat().st_size, default=None)]
        for file in ARCHIVES
    ],
)
def test_every_committed_table_comes_out_of_the_archive(archive, tmp_path, monkeypatch):
    kept, paper = archive.parents[1], archive.stem
    made = rebuilt(archive, tmp_path, monkeypatch)
    committed = [f for f in published() if f.match(f"{kept}/tables/{paper}-*.csv")]
    assert len(committed) > 3
    differ = [
        file.name for file in committed
        if file.read_bytes() != (made / "tables" / file.name).read_bytes()
    ]  # fmt: skip
    assert differ == []
    for name in ("claims.csv", "claims_parts.csv"):
        of_paper = [
            table[table["paper"] == paper].reset_index(drop=True)
            for table in (pd.read_csv(folder / name, dtype=str) for folder in (kept, made))
        ]
        pd.testing.assert_frame_equal(*of_paper)
    assert not (tmp_path / "store").exists()
