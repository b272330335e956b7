"""A study of which nothing came gives a report with holes, and never an exception."""

from __future__ import annotations

import pytest

from erlib.catalogue import papers
from erlib.training import making
from tests.executing import raised


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project with nothing in it, whose runs fail at once."""

    def fail(*arguments):
        raise RuntimeError("this never works")

    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    monkeypatch.setattr(making, "train", fail)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::UserWarning")  # of every run that failed
@pytest.mark.parametrize("name", papers())
def test_every_run_failed(name, here):
    errors = raised(name, "quick")
    assert not errors, "\n\n".join(errors)
