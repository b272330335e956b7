from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from erlib.config import project_root
from erlib.reports.ledger import read_rows, reports_folder, upsert, write_whole


def test_project_root_is_the_nearest_folder_with_notebooks(tmp_path, monkeypatch):
    (tmp_path / "notebooks/deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "notebooks/deep")
    assert project_root() == tmp_path
    assert reports_folder("quick") == tmp_path / "reports/quick"


def test_project_root_without_notebooks_is_here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert project_root() == tmp_path


def test_a_row_with_the_same_key_is_replaced_and_rows_keep_the_papers_order(tmp_path):
    path = tmp_path / "rows.csv"
    for paper, id, value in (
        ("saloss", "table-1", 1),
        ("er_lens", "table-10", 2),
        ("er_lens", "table-2", 3),
        ("er_lens", "table-10", 4),
    ):
        upsert(path, {"paper": paper, "id": id, "value": value}, key=("paper", "id"))
    rows = [tuple(row.values()) for row in read_rows(path)]
    assert rows == [
        ("er_lens", "table-2", "3"),
        ("er_lens", "table-10", "4"),
        ("saloss", "table-1", "1"),
    ]


def test_text_with_commas_quotes_and_line_breaks_comes_back(tmp_path):
    text = 'a, "b"\nc 🎬'
    upsert(tmp_path / "rows.csv", {"id": "x", "text": text}, key=("id",))
    assert read_rows(tmp_path / "rows.csv")[0]["text"] == text


def test_many_writers_lose_no_row(tmp_path):
    path = tmp_path / "rows.csv"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: upsert(path, {"id": f"table-{i}"}, key=("id",)), range(40)))
    assert [row["id"] for row in read_rows(path)] == [f"table-{i}" for i in range(40)]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    write_whole(path, "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_whole(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_profile_cannot_leave_its_folder():
    with pytest.raises(ValueError, match="profile"):
        reports_folder("../elsewhere")
