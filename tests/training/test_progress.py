from __future__ import annotations

import sys
import time

import pytest

from erlib.notebooks import without_bars
from erlib.training import progress


@pytest.fixture
def log(monkeypatch, capsys):
    """Standard error is a file, and a log's lines follow fast."""
    monkeypatch.setattr(progress, "LOGGED", 0.02)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.delenv("ERLIB_TERMINAL_BAR", raising=False)
    return capsys


def written(log):
    with progress.progress_bar("training and measuring", 5, "step") as bar:
        for _ in range(5):
            time.sleep(0.03)
            bar.update()
    return log.readouterr().err


def test_a_log_gets_lines_and_no_carriage_return(log):
    said = written(log)
    assert "\r" not in said and "\x1b" not in said
    lines = said.splitlines()
    assert len(lines) >= 2 and all(line.startswith("training and measuring: ") for line in lines)


def test_lines_of_a_log_are_left_out_of_a_report_like_any_bar(log):
    warning = "UserWarning: 40% of texts were cut\n"
    assert without_bars(warning + written(log) + warning) == 2 * warning


def test_a_bar_of_a_terminal_is_left_out_too(log, monkeypatch):
    monkeypatch.setenv("ERLIB_TERMINAL_BAR", "1")
    said = written(log)
    assert said.count("\r") > 2 and without_bars(said + "a warning\n") == "a warning\n"


def test_short_work_leaves_no_line(log, monkeypatch):
    monkeypatch.setattr(progress, "LOGGED", 60.0)
    assert written(log) == ""
