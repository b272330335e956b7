"""The command line refuses what it does not know, and looks after the store."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

from erlib.cli import main
from erlib.training.store import Store


def said(capsys):
    out, err = capsys.readouterr()
    return out + err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--only", "er_lense"], "unknown paper 'er_lense'; did you mean 'er_lens'"),
        (["run", "--profile", "fast"], "unknown profile 'fast'"),
        (["run", "--seeds", "1;2"], "--seeds takes whole numbers with commas"),
        (["run", "--data", "net"], "unknown data source 'net'; did you mean"),
        (["run", "--executor", "slurm"], "unknown executor 'slurm'"),
        (["data", "ls", "--source", "net"], "unknown source 'net'"),
        (["runs", "show"], "which run?"),
        (["run", "--from-results", "--seeds", "1"], "leave out --seeds"),
        (["run", "--from-results", "--profile", "paper"], "there is no"),
        (["results", "export", "--only", "er_lense"], "unknown paper 'er_lense'"),
        (["results", "import", "--profile", "paper"], "there is no"),
    ],
)
def test_bad_input_is_refused_by_name_with_exit_code_2(
    arguments, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    assert main(arguments) == 2
    assert message.split("; did")[0] in said(capsys)


def test_an_unknown_option_is_refused(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["run", "--prof", "quick"])  # no abbreviations: they would change meaning later
    assert stop.value.code == 2 and "--prof" in said(capsys)


def test_the_plan_names_every_stage_and_its_cost_and_makes_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    assert main(["run", "--plan", "--profile", "paper"]) == 0
    text = said(capsys)
    # the Baseline and three joint systems, 15 seeds, 25 epochs (ER+AttR: 15) of 217 batches
    assert str(15 * (25 + 25 + 15 + 25) * 217) in text and "GB" in text
    assert not (tmp_path / "store").exists()


def test_the_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0 and said(capsys) == f"erlib {version('erlib')}\n"


def test_an_empty_store_has_no_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    assert main(["runs", "ls"]) == 0
    assert said(capsys) == f"no runs in {tmp_path / 'store'} yet\n"
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("command", [["run"], ["reports", "check"]])
def test_what_needs_a_checkout_says_so_in_a_line(command, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert main(command) == 2
    told = said(capsys)
    assert f"erlib {command[0]}" in told and "needs a checkout" in told and told.count("\n") == 1


def test_corpora_that_are_all_missing_are_an_error(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    assert main(["data", "check", "--source", "local"]) == 1
    assert "missing" in said(capsys)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))

    def work(folder):
        spec = {
            "data": {"corpus": "sst", "source": "local"}, "model": {"name": "minilm"}, "seed": 4,
            "objective": [
                {"name": "explanation", "weight": 1, "options": [["guide", "attention"]]}
            ],
        }  # fmt: skip
        metrics = {"train_texts": 32, "best": {"dev_f1_macro": 0.75}}
        for name, content in (
            ("spec", spec),
            ("metrics", metrics),
            ("provenance", {"seconds": 2.5}),
        ):
            (folder / f"{name}.json").write_text(json.dumps(content))
        return "done"

    store = Store(tmp_path)
    store.make("runs", "00ab", work)
    return store


def test_runs_are_listed_and_shown(store, capsys):
    assert main(["runs", "ls"]) == 0
    listed = said(capsys)
    assert all(word in listed for word in ("00ab", "done", "sst", "explanation/attention", "0.75"))
    assert main(["runs", "show", "00"]) == 0
    assert '"seconds": 2.5' in said(capsys)


def test_damage_is_reported_and_collected(store, capsys):
    assert main(["runs", "verify"]) == 0
    (store.root / "runs" / "00ab" / "metrics.json").write_text("{}")
    assert main(["runs", "verify"]) == 1
    assert "metrics.json has changed" in said(capsys)
    assert main(["runs", "gc"]) == 0
    assert not (store.root / "runs" / "00ab").exists()


def test_the_corpora_are_listed_with_their_sources(capsys):
    assert main(["data", "ls"]) == 0
    text = said(capsys)
    assert "movie_snippets" in text and "squad" in text
