from __future__ import annotations

import pytest

import erlib
from tests.explorer import tiny_run


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A folder with `data/` and with a `store/` that holds one trained run."""
    home = tmp_path_factory.mktemp("explorer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ERLIB_DATA", str(home / "data"))
        erlib.run([tiny_run.spec(home / "data")], store=home / "store")
    return home


@pytest.fixture
def here(trained, monkeypatch):
    """The same folder, which ERLIB_DATA and ERLIB_STORE name."""
    monkeypatch.setenv("ERLIB_DATA", str(trained / "data"))
    monkeypatch.setenv("ERLIB_STORE", str(trained / "store"))
    return trained
