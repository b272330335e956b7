"""Wherever a run, an evaluation or a publication is stopped: the same command ends as undisturbed.

Every file operation of each is disturbed once (`tests/faults.py`): the process is killed before it,
or in the midst of writing a file, or the disk is full. Without ./run_tests.sh --full it is only
killed, and not before operations that change rights and times, or what is temporary.
"""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from unittest.mock import patch

import nbformat
import pandas as pd
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec
from erlib.notebooks import execute
from erlib.papers.evidence import decide_claims
from erlib.reports import artefact, build_index, footer
from erlib.reports.ledger import figures_folder, write_whole
from erlib.reports.recorded import record
from erlib.training.evaluating import evaluate
from erlib.training.runs import run
from erlib.training.store import Store
from tests import corpus, tiny
from tests.faults import disturbed, operations

WAYS = pytest.mark.parametrize(
    "how",
    ["killed", *(pytest.param(how, marks=pytest.mark.full) for how in ("kill", "torn", "full"))],
)
TOLD = ("provenance.json", "DONE")  # of when and how fast something was made


def disturbances(done, how):
    """Which operations to disturb: their numbers, and what they are."""
    for at, operation in enumerate(done):
        event, path = operation.split(" ", 1)
        slight = event in ("os.chmod", "os.utime") or path.startswith("tmp/")
        if not (how == "killed" and slight) and not (how == "torn" and event != "open"):
            yield at, operation


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """One evaluation of one run, of a tiny model on a handful of texts."""
    monkeypatch.setattr(corpus, "SIZES", {"train": 8, "dev": 4, "test": 4})
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    data, model = DataSpec("movies", "local", 8), ModelSpec(str(tiny.directory("bert")))
    spec = RunSpec(data, model, optimiser=OptimiserSpec(lr=5e-3, epochs=2, batch_size=8))
    return EvalSpec(spec, data, "test", "predictions")


def results(store):
    files = (f for kind in ("runs", "evals") for f in (store / kind).rglob("*"))
    return {
        str(f.relative_to(store)): f.read_bytes()
        for f in files
        if f.is_file() and f.name not in TOLD
    }


def make(asked, store):
    run([asked.run], store=store)
    evaluate([asked], store=store)


@WAYS
def test_a_run_and_its_evaluation_end_with_the_bytes_of_undisturbed_ones(asked, tmp_path, how):
    undisturbed = tmp_path / "undisturbed"
    done = operations(lambda: make(asked, undisturbed), undisturbed)
    assert len(done) > 60
    for at, operation in disturbances(done, how):
        store = tmp_path / f"{at}"
        ended = disturbed(partial(make, asked, store), store, at, how)
        if how == "full":
            assert not ended.killed and told_of(ended.error, store), (operation, ended.error)
        else:
            assert ended.killed, operation
        again = disturbed(partial(make, asked, store), store)
        assert not again.error and not again.killed, (operation, again.error)
        assert results(store) == results(undisturbed), operation
        assert not any(Store(store).verify().values()), operation


def told_of(error, folder):
    """Is it no error, since nothing was lost, or one that says where there is no room?"""
    return not error or (
        error.startswith("DiskFull") and str(folder) in error and "Free some" in error
    )


class AtNoon(datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 1, 1, 12, tzinfo=UTC)


PARAMETERS = dict.fromkeys(("profile", "data", "seeds", "executor", "store", "device"))
GIVEN = {**PARAMETERS, "profile": "quick", "executor": "local"}


def notebook(root):
    cells = [new_code_cell("1", id="one", metadata={"tags": ["parameters"]})]
    (root / "notebooks").mkdir(parents=True)
    nbformat.write(new_notebook(cells=cells), root / "notebooks/01_er_lens.ipynb")


@cache
def verdicts():
    """Those of a paper of which nothing was measured."""
    return decide_claims("er_lens", lambda cell: None, profile="quick")


def executed(value, source, made, **_):
    """What papermill and the notebook's kernel would do, in this process."""
    tables = {1.0: ("table-2", "table-3"), 2.0: ("table-2", "table-4")}[value]
    for name in tables:
        frame = pd.DataFrame({"F1": [value]})
        artefact("er_lens", name, frame, caption="F1.", profile="quick", seeds=[0])
    write_whole(figures_folder("quick") / "er_lens-figure-4.png", f"a picture of {value}")
    claims = {1.0: ("ER-C1", "ER-C2"), 2.0: ("ER-C2",)}[value]
    record("er_lens", {claim: verdicts()[claim] for claim in claims}, profile="quick")
    footer("er_lens", profile="quick")
    nbformat.write(new_notebook(cells=[new_markdown_cell(f"# {value}", id="one")]), made)


def publish(root, value):
    """`python -m erlib run --only er_lens`, with the notebook's numbers given."""
    with (
        patch.object(papermill, "execute_notebook", partial(executed, value)),
        patch("erlib.reports.footer.datetime", AtNoon),
    ):
        execute("er_lens", GIVEN, root)
        build_index("quick", root)


def site(root):
    paths = (f for kind in ("reports", "figures") for f in (root / kind).rglob("*"))
    files = {str(f.relative_to(root)): f.read_bytes() for f in paths if f.is_file()}
    return {name: content for name, content in files.items() if "/." not in name}


@WAYS
def test_a_report_is_the_old_one_or_the_new_one_and_the_next_time_the_new_one(
    tmp_path, monkeypatch, how
):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    undisturbed, before = tmp_path / "undisturbed", tmp_path / "before"
    (before / "tmp").mkdir(parents=True)
    notebook(before)
    publish(before, 1.0)
    shutil.copytree(before, undisturbed)
    done = operations(partial(within, undisturbed, 2.0), undisturbed)
    old, new = site(before), site(undisturbed)
    assert old.keys() - new.keys() == {"reports/quick/tables/er_lens-table-3.csv"}
    seen = set()
    for at, operation in disturbances(done, how):
        root = tmp_path / f"{at}"
        shutil.copytree(before, root)
        ended = disturbed(partial(within, root, 2.0), root, at, how)
        assert ended.killed == (how != "full"), operation
        build_index("quick", root)
        now = site(root)
        assert now in (old, new), operation
        seen.add(now == new)
        if ended.error:  # why, said by whatever first met it
            assert "No space left on device" in ended.error, (operation, ended.error)
        assert not disturbed(partial(within, root, 2.0), root).error, operation
        assert site(root) == new, operation
        assert not list(root.glob("reports/quick/.publishing*[!k]")), operation
    assert seen == {True, False}


def within(root: Path, value: float) -> None:
    """Publish with what is temporary in the same place, so that it is disturbed, too."""
    with patch.object(tempfile, "tempdir", str(root / "tmp")):
        publish(root, value)
