"""How are the results of a profile packed, checked, and made into reports without their corpora?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib.pyplot as plt
import nbformat

from erlib.catalogue import paper as paper_named
from erlib.data import loading
from erlib.data.known import FACTS_FILE, VARIABLE
from erlib.parameters import PARAMETERS, Settings, check_parameters
from erlib.reports.staging import staged
from erlib.training import identity, rows
from erlib.training.archive import Archive, archive_file, pack, unpack
from erlib.training.stages import carry_out
from erlib.training.store import Results, Store, open_store


def export(paper: str, profile: str, root: Path) -> tuple[Path, list[str]]:
    """Pack what the paper's report is made of; the archive, and what the store lacks of it.

    The notebook is executed from results alone, and what it shows is thrown away.
    """
    settings = _settings(paper, profile)
    with _switched(VARIABLE, "1"):
        identity.forget_names()
        loading.reports.clear()
        store = open_store()
        assert isinstance(store, Results)
        store.begin()
        _follow(paper, profile, root)
        facts = {"contents": rows.contents_as_json(), "reports": loading.reports_as_json()}
        lacking = store.lacking()
        identity.forget_names()
    about = {
        "paper": paper,
        "profile": profile,
        "source": settings.source,
        "seeds": list(settings.seeds),
    }
    file = archive_file(paper, profile, root)
    pack(file, store, facts, about)
    return file, lacking


def _follow(paper: str, profile: str, root: Path) -> None:
    """Execute the code of the paper's notebook in this process."""
    name = paper_named(paper).notebook
    notebook = nbformat.read(root / "notebooks" / f"{name}.ipynb", as_version=4)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    namespace: dict[str, Any] = {}
    with staged(), open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
        for number, source in enumerate(cells, start=1):
            exec(compile(source, f"{name}, cell {number}", "exec"), namespace)
            if number == 1:
                namespace |= _parameters(profile)
    plt.close("all")


@contextmanager
def from_archives(files: Sequence[Path]) -> Iterator[None]:
    """While open, reports are made from these archives alone: from a store of their results, in
    which nothing is trained or measured."""
    with TemporaryDirectory() as folder:
        store = Store(Path(folder))
        facts: dict[str, dict[str, Any]] = {"contents": {}, "reports": {}}
        for file in files:
            archive = Archive(file)
            unpack(archive, store)
            for what, known in archive.json(FACTS_FILE).items():
                facts[what] |= known
        (store.root / FACTS_FILE).write_text(json.dumps(facts), encoding="utf-8")
        identity.forget_names()
        with _switched(VARIABLE, "1"), _switched("ERLIB_STORE", folder):
            yield
        identity.forget_names()


def check(file: Path) -> tuple[int, list[str]]:
    """Of an archive that is intact: how many results the profile's grid has, and which of them are
    not in it. What would follow from a result that is not there cannot be known."""
    index = Archive(file).index
    settings = _settings(index["paper"], index["profile"])
    with from_archives([file]):
        stages = paper_named(settings.paper).module("cells").grid(settings)
        results = carry_out(stages, **settings.where)
        store = open_store()
        assert isinstance(store, Results)
        return sum(map(len, results.values())), store.lacking()


def _settings(paper: str, profile: str) -> Settings:
    return check_parameters(paper, _parameters(profile))


def _parameters(profile: str) -> dict[str, Any]:
    return {**dict.fromkeys(PARAMETERS), "profile": profile, "executor": "local"}


@contextmanager
def _switched(variable: str, value: str) -> Iterator[None]:
    before = os.environ.get(variable)
    os.environ[variable] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before
