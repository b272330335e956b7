"""A report can be made from an archive alone, number for number, and no word of a text is in it."""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from erlib.config import CheckpointRule, DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, term
from erlib.data.known import VARIABLE, NeedsCorpus
from erlib.data.loading import load_data
from erlib.results import from_archives
from erlib.training import identity, making, rows
from erlib.training.archive import Archive, _write, narrow, pack, unpack, widen, wordless
from erlib.training.evaluating import evaluate, per_epoch, per_text
from erlib.training.runs import run, trained_folder
from erlib.training.store import Store, open_store
from tests import tiny

ABOUT = {"paper": "tiny", "profile": "quick"}
TABLES = ("attributions", "plausibility", "predictions", "attack", "parts_of_speech")
KEPT = Path(__file__).parents[2] / "reports"


def evaluations(spec, rows=8):
    named = {"attributions": "saliency", "plausibility": "saliency", "parts_of_speech": "saliency"}
    return [
        EvalSpec(
            spec, spec.data, "test", kind, rows, method=named.get(kind), level="token",
            protocol="pattern" if kind == "parts_of_speech" else None,
        )
        for kind in TABLES
    ]  # fmt: skip


def collected(file, runs, evals):
    """An archive of these results: what a report that reads them would be made of."""
    run(runs)
    evaluate(evals)
    with pytest.MonkeyPatch.context() as here:
        here.setenv(VARIABLE, "1")
        identity.forget_names()
        store = open_store()
        store.begin()
        run(runs)
        for spec in evaluate(evals)["spec"] if evals else []:
            per_text(spec)
        for spec in runs:
            for each in spec.each_epoch:
                per_epoch(spec, each)
        contents = rows.contents_as_json()
        pack(file, store, {"contents": contents, "reports": {}}, ABOUT)
    return Archive(file)


@pytest.fixture
def short(spec, tmp_path, monkeypatch):
    """A run of one epoch that logs its predictions, in a store of its own."""
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    logged = EvalSpec(None, spec.data, "dev", "predictions")
    return replace(spec, optimiser=replace(spec.optimiser, epochs=2), each_epoch=(logged,))


@pytest.fixture
def packed(short, tmp_path):
    return short, collected(tmp_path / "tiny.zip", [short], evaluations(short))


@pytest.fixture
def nothing_to_read(monkeypatch):
    """No corpus, once it is called."""

    def hide():
        monkeypatch.delenv("ERLIB_DATA")
        rows._rows_at.cache_clear()

    return hide


def shown(spec, evals):
    """All numbers that a report could show of a run and its evaluations, digit for digit."""
    runs, means = run([spec]), evaluate(evals)
    texts = {e.kind: per_text(e) for e in evals}
    for name in ("tokens", "words", "text"):
        texts = {kind: t.drop(columns=name, errors="ignore") for kind, t in texts.items()}
    texts["predictions"] = pd.concat([texts["predictions"], per_epoch(spec, spec.each_epoch[0])])
    history = (Path(open_store().root) / "runs" / runs["run"][0] / "history.csv").read_text()
    return [runs.to_json(), means.drop(columns="spec").to_json(), history] + [
        repr(table.to_dict("records")) + repr(table.dtypes.to_dict()) for table in texts.values()
    ]


def test_what_a_report_shows_is_the_same_from_the_archive_without_a_corpus(packed, nothing_to_read):
    spec, archive = packed
    expected = shown(spec, evaluations(spec))
    nothing_to_read()
    with from_archives([archive.file]):
        assert shown(spec, evaluations(spec)) == expected


def test_only_results_are_read_from_an_archive(packed, nothing_to_read):
    spec, archive = packed
    nothing_to_read()
    with from_archives([archive.file]):
        with pytest.raises(NeedsCorpus, match="the corpus movies"):
            load_data("movies", split="test", source="local")
        with pytest.raises(NeedsCorpus, match="the model of run"):
            trained_folder(spec)


@pytest.mark.filterwarnings("ignore:.*failed:UserWarning")
def test_what_an_archive_lacks_is_failed_and_named(packed):
    spec, archive = packed
    more = replace(evaluations(spec)[0], method="attention")
    with from_archives([archive.file]):
        found = evaluate([evaluations(spec)[0], more])
        assert found["status"].tolist() == ["done", "failed"]
        assert open_store().lacking() == [f"evals/{found['eval'][1]}"]


@pytest.mark.filterwarnings("ignore:.*failed:UserWarning")
def test_failed_and_lost_runs_travel_with_their_status(short, tmp_path):
    wild = replace(short, optimiser=replace(short.optimiser, lr=1e30))
    never = CheckpointRule(metric="dev_loss", mode="min", bound=("dev_loss", -1.0))
    lost = replace(short, optimiser=replace(short.optimiser, checkpoint=never), each_epoch=())
    archive = collected(tmp_path / "ends.zip", [replace(wild, each_epoch=()), lost], [])
    expected = run([lost])["status"].tolist()
    with from_archives([archive.file]):
        assert run([replace(wild, each_epoch=())])["status"].tolist() == ["failed"]
        assert run([lost])["status"].tolist() == expected == ["lost"] * 3
        assert open_store().lacking() == []


def test_a_table_that_no_report_reads_is_left_out_and_made_again_when_needed(
    packed, tmp_path, monkeypatch
):
    spec, _ = packed
    first, *_ = evaluations(spec)
    expected = per_text(first)
    with pytest.MonkeyPatch.context() as here:
        here.setenv(VARIABLE, "1")
        store = open_store()
        store.begin()
        run([spec])
        evaluate([first])
        pack(tmp_path / "means.zip", store, {"contents": {}, "reports": {}}, ABOUT)
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "other"))
    archive = Archive(tmp_path / "means.zip")
    unpack(archive, open_store())
    assert archive.json("evals.json")[identity.eval_hash(first)]["tables"] == {}
    assert evaluate([first])["texts"].tolist() == [len(expected)]
    pd.testing.assert_frame_equal(per_text(first), expected)


def test_the_same_store_makes_the_same_bytes(packed, tmp_path):
    spec, archive = packed
    again = collected(tmp_path / "again.zip", [spec], evaluations(spec))
    assert again.file.read_bytes() == archive.file.read_bytes()


def test_no_weight_is_in_an_archive(packed):
    spec, archive = packed
    assert (
        archive.file.stat().st_size
        < trained_folder(spec).joinpath("model.safetensors").stat().st_size
    )
    with zipfile.ZipFile(archive.file) as members:
        assert {Path(name).suffix for name in members.namelist()} == {".json", ".parquet"}


def test_a_run_from_an_archive_is_trained_again_to_the_same_model(packed, tmp_path, monkeypatch):
    spec, archive = packed
    first = (trained_folder(spec) / "model.safetensors").read_bytes()
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "other"))
    assert unpack(archive, open_store()) == 1 + len(archive.json("evals.json")) > 1 + len(TABLES)
    assert (trained_folder(spec) / "model.safetensors").read_bytes() == first
    assert open_store().verify() and not any(open_store().verify().values())


def test_an_unfinished_grid_goes_on_from_its_archive_on_another_machine(
    short, tmp_path, monkeypatch
):
    finished, begun, missing = (short.with_seed(seed) for seed in (0, 1, 2))
    there = [*evaluations(finished), evaluations(begun)[0]]
    wanted = [e for run in (finished, begun, missing) for e in evaluations(run)]
    archive = collected(tmp_path / "half.zip", [finished, begun], there)
    trained, train = [], making.train
    monkeypatch.setattr(
        making, "train", lambda spec, *more: trained.append(spec.seed) or train(spec, *more)
    )
    with from_archives([archive.file]):
        found = evaluate(wanted)
        assert (found["status"] == "done").tolist() == [e in there for e in wanted]
        assert trained == []
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "other"))
    unpack(archive, open_store())
    again = collected(tmp_path / "again.zip", [finished, begun], there)
    assert again.file.read_bytes() == archive.file.read_bytes() and trained == []
    run([finished, begun, missing])
    assert trained == [missing.seed]
    evaluate(wanted)
    assert trained == [missing.seed, begun.seed]
    assert not any(open_store().verify().values())


def test_a_changed_byte_and_another_version_are_refused(packed):
    _, archive = packed
    data = archive.file.read_bytes()
    for place in np.linspace(100, len(data) - 100, 12).astype(int):
        changed = bytearray(data)
        changed[place] ^= 1
        archive.file.write_bytes(bytes(changed))
        try:
            same = Archive(archive.file)._members == archive._members
        except ValueError as error:
            assert str(archive.file) in str(error)
        else:
            assert same  # a byte of the container that says nothing
    archive.file.write_bytes(data[:-1000])
    with pytest.raises(ValueError, match="damaged"):
        Archive(archive.file)


def test_an_archive_that_was_made_to_write_elsewhere_is_refused(packed):
    """Whoever makes one can seal it, too."""
    archive, made = packed[1], packed[1].file.with_name("made.zip")
    for where, name in product(
        ["results", "files", "tables", "notes"], ["../../outside", "/outside", "", ".", "a/../../b"]
    ):
        members = {n: json.loads(d) for n, d in archive._members.items() if n.endswith(".json")}
        entry = next(iter(members["evals.json"].values()))
        places = {**entry, "results": members["runs.json"], "notes": members["notes.json"]}
        places[where][name] = {"files": {}, "left": {}, "tables": {}}
        data = {n: json.dumps(d).encode() for n, d in members.items()}
        _write(made, archive.index, {**archive._members, **data})
        with pytest.raises(ValueError, match="is no name of a result or file"):
            Archive(made)


def test_what_is_there_stays_and_a_conflict_names_both(packed, tmp_path):
    spec, archive = packed
    store = Store(tmp_path / "store")
    assert unpack(archive, store) == 0
    other = Store(tmp_path / "other")
    unpack(archive, other)
    done = next((tmp_path / "other" / "evals").glob("*/summary.json")).parent
    (done / "summary.json").write_text('{"texts": 7}')
    seal = json.loads((done / "DONE").read_text())
    del seal["sha256"]["summary.json"]
    (done / "DONE").write_text(json.dumps(seal))
    with pytest.raises(ValueError, match=f"{done} and evals/{done.name} of {archive.file}"):
        unpack(archive, other)
    assert (done / "summary.json").read_text() == '{"texts": 7}'


# --- columns --------------------------------------------------------------------------------------


def test_a_column_is_halved_only_where_no_value_changes():
    exact, more = [0.5, float(np.float32(0.1)), float("nan"), float("-inf")], [0.1, 1.0, 2.0, 3.0]
    table = pa.table(
        {"exact": exact, "more": more, "lists": [[x] for x in exact], "n": [1, 2, 3, 4]}
    )
    half, names = narrow(table)
    assert names == ["exact", "lists"]
    assert half.schema.field("exact").type == pa.float32()
    back = widen(half, names)
    assert repr(back.to_pydict()) == repr(table.to_pydict())


def test_words_become_numbers_that_tell_which_are_the_same():
    table = wordless(pa.table({"id": ["a"], "words": [["The", "film", "the"]], "tokens": [["x"]]}))
    assert table.to_pydict() == {"id": ["a"], "words": [["0", "1", "0"]]}


def test_a_column_of_unknown_words_is_refused():
    with pytest.raises(ValueError, match="said may have words"):
        wordless(pa.table({"id": ["a"], "said": ["a fine film"]}))


# --- words ----------------------------------------------------------------------------------------


def grams(text):
    """Every five words in a row."""
    words = re.findall(r"[^\W_]+", text.lower())
    return zip(*(words[i:] for i in range(5)), strict=False)


def said_in(archive):
    """Five words in a row, of which at least three are different and made of letters."""
    every = {five for text in archive.texts() for five in grams(text)}
    return {five for five in every if len({word for word in five if word.isalpha()}) > 2}


def quoted(archive, texts):
    said = said_in(archive)
    return [five for text in texts for five in said.intersection(grams(text))]


def packaged_texts():
    return [
        " ".join(row.get(name) or [])
        for corpus in ("movie_snippets", "snli")
        for row in load_data(corpus, split="test")
        for name in ("words", "words_a", "words_b")
    ]


def test_no_five_words_of_a_packaged_corpus_are_in_an_archive_of_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("ERLIB_WORKERS", "1")
    spec = RunSpec(
        data=DataSpec("movie_snippets", "packaged", 32, train_rows=16, dev_rows=16),
        model=ModelSpec(str(tiny.directory("bert"))),
        objective=(term("task"),),
        optimiser=OptimiserSpec(lr=5e-3, epochs=1, batch_size=8),
        seed=0,
    )
    archive = collected(tmp_path / "tiny.zip", [spec], evaluations(spec))
    texts = packaged_texts()
    assert quoted(archive, texts) == []
    ids = set(archive.json("facts.json")["contents"].popitem()[1]["ids"])
    assert len(ids) == 16 or len(ids) == 8  # there was something to find words of


def committed():
    return sorted(KEPT.glob("*/results/*.zip"))


@pytest.mark.skipif(not committed(), reason="no archive is committed")
def test_no_five_words_of_a_packaged_corpus_are_in_a_committed_archive():
    texts = packaged_texts()
    for file in committed():
        assert quoted(Archive(file), texts) == [], file


@pytest.mark.skipif("ERLIB_DATA" not in os.environ, reason="needs the local corpora")
@pytest.mark.skipif(not committed(), reason="no archive is committed")
def test_no_five_words_of_a_local_corpus_are_in_a_committed_archive():
    said = {five for file in committed() for five in said_in(Archive(file))}
    for corpus in sorted(Path(os.environ["ERLIB_DATA"]).glob("*/*.jsonl.gz")):
        with gzip.open(corpus, "rt", encoding="utf-8") as rows:
            for row in rows:
                for text in _strings(json.loads(row)):
                    assert not said.intersection(grams(text)), corpus


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and value and all(isinstance(x, str) for x in value):
        yield " ".join(value)
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)
