"""Fixtures that all tests of papers share."""

import pytest


@pytest.fixture(autouse=True)
def own_store(tmp_path, monkeypatch):
    """What a paper measures in its notebook is kept in a store: never in the user's own."""
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
