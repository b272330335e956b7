"""What a start will lack is said before it begins, at once; a missing set costs its own rows."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from erlib import hub, preflight
from erlib.cli import main
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec
from erlib.data import absent, corpora, loading
from erlib.data.absent import MissingCorpus
from erlib.models.places import what_is_missing
from erlib.papers.grid import stage
from erlib.parameters import check_parameters
from erlib.training.listing import absent_lines, failed_lines
from erlib.training.stages import carry_out
from erlib.training.store import open_store
from tests import corpus, tiny

HERE = {"executor": "local", "device": "cpu"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """One local set, tiny models, no hub, and a report in which what is missing is a hole."""
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    forget()
    absent.rows_may_be_missing()
    yield tmp_path
    absent.rows_may_be_missing(False)
    forget()


def forget():
    for known in (hub.reachable, preflight.why_not, loading._hub_or_local):
        known.cache_clear()


def run_of(name: str) -> RunSpec:
    model = ModelSpec(str(tiny.directory("bert")))
    data = DataSpec(name, "local", 32, train_rows=16, dev_rows=8)
    return RunSpec(data, model, optimiser=OptimiserSpec(epochs=1, batch_size=8))


def test_a_missing_set_takes_its_own_rows_and_is_named_once(here):
    there, gone = run_of("movies"), run_of("sst")
    resting = replace(gone, start=gone, seed=1)
    evals = [EvalSpec(run, run.data, "test", "predictions") for run in (there, gone, resting)]
    away = EvalSpec(there, gone.data, "test", "predictions")
    runs = [there, gone, resting]
    results = carry_out([stage("runs", runs), stage("evals", [*evals, away])], store=None, **HERE)
    assert list(results["runs"]["status"]) == ["done", "failed", "failed"]
    assert list(results["evals"]["status"]) == ["done", "failed", "failed", "failed"]
    store = open_store(None)
    names = list(results["runs"]["run"]), list(results["evals"]["eval"])
    assert failed_lines(store, *names) == []
    train, test = absent_lines(store, *names)
    assert "corpus 'sst', split 'train', cannot be had" in train and "'test'" in test


def test_elsewhere_a_missing_set_is_an_error_that_says_what_mends_it(here):
    absent.rows_may_be_missing(False)
    with pytest.raises(MissingCorpus, match=r"sst/train.jsonl.gz does not exist .*to fix: put it"):
        carry_out([stage("runs", [run_of("sst")])], store=None, **HERE)


def test_a_set_falls_back_by_itself_from_the_hub_to_the_local_folder(here, monkeypatch):
    """Both have movies; the hub's are read as long as their files and columns are as expected."""
    info = corpora()["movies"]
    place = here / "hub"
    columns = {"review": ["fine"], "label": [1], "evidences": [["fine"]]}
    for file in info.hub.splits.values():
        path = place / file.replace("*", "0000")
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns), path)
    known = {**corpora(), "movies": replace(info, hub=replace(info.hub, id=str(place)))}
    monkeypatch.setattr(sys.modules["erlib.data.corpora"], "_registry", lambda: known)
    assert loading.source_for("movies", "hub") == "hub"
    pq.write_table(pa.table(columns).rename_columns(["text", "label", "evidences"]), path)
    forget()
    assert "has no column review, but text, label" in preflight.why_not("movies", "test", "hub")
    assert loading.source_for("movies", "hub") == "local"
    shutil.rmtree(place)
    forget()
    assert loading.source_for("movies", "hub") == "local"
    assert loading.source_for("imdb", "hub") == "hub"  # which is nowhere: the error names both
    assert loading.source_for("evinf", "hub") == "local"


def test_all_that_is_missing_is_listed_at_once_with_what_mends_it(here, monkeypatch):
    monkeypatch.setenv("ERLIB_MODELS", str(here / "models"))
    place = here / "models/google-bert/bert-base-uncased"
    shutil.copytree(tiny.directory("bert"), place)
    settings = {
        name: check_parameters(name, {"profile": "paper", "executor": "local"})
        for name in ("er_lens", "regex")
    }
    grids, lacks = preflight.grids_of(settings)
    lacks += preflight.preflight(grids, gigabytes=1e9)
    said = {lack.what: lack for lack in lacks}
    assert said["corpus amazon_mtv, test"].papers == ("er_lens",)
    assert "to fix" not in str(said["corpus sst, train and dev and test"])
    assert said["corpus sst, train and dev and test"].papers == ("er_lens", "regex")
    assert "original home: " in said["corpus amaz_pantry, train and dev and test"].mend
    assert "ERLIB_MODELS" in said["model google/bigbird-roberta-base"].mend
    assert said["model FacebookAI/roberta-large"].stops is False
    assert "model google-bert/bert-base-uncased" not in said
    assert said["disk"].stops and "ERLIB_STORE" in said["disk"].mend
    assert said["paper er_lens"].stops  # its training set is nowhere
    assert "corpus movies, test" not in said  # local


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        ("model.safetensors", "it has no model.safetensors, and pickled weights are never opened"),
        ("tokenizer.json", None),
        ("config.json", None),
    ],
)
def test_what_a_saved_model_lacks_is_named(tmp_path, monkeypatch, damage, why):
    place = tmp_path / "owner/model"
    shutil.copytree(tiny.directory("bert"), place)
    assert what_is_missing(str(place)) is None
    (place / damage).unlink()
    missing = what_is_missing(str(place))
    assert missing and (why is None or missing[0] == why)


def test_a_profile_for_a_gpu_wants_the_cpu_to_be_said(capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert main(["run", "--profile", "paper"]) == 2
    assert "say so: --device cpu" in capsys.readouterr().err
    preflight.refuse_without_gpu("paper", "cpu")
    preflight.refuse_without_gpu("quick", None)


def test_a_start_of_which_nothing_is_left_stops_before_a_notebook(here, capsys, monkeypatch):
    monkeypatch.setattr("erlib.notebooks.execute", None)
    arguments = ["run", "--profile", "paper", "--only", "regex", "--device", "cpu"]
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert "things missing" in told and "nothing can be measured before this is mended" in told
