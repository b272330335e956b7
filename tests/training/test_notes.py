"""What a notebook measures itself comes back from the store digit for digit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from erlib.data.known import VARIABLE, NeedsCorpus
from erlib.training import notes
from erlib.training.notes import noted
from erlib.training.store import open_store


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    return SimpleNamespace(
        paper="tiny", profile="quick", source="packaged", seeds=(1,), grid={"rows": 8}, store=None,
        device="cpu",
    )  # fmt: skip


def counted():
    """A note of how often it was made; it also counts what it has been given."""
    made = iter(range(9))
    return noted(lambda first: next(made))


def test_a_note_is_made_once_and_kept_for_results_alone_to_the_last_digit(settings, monkeypatch):
    seconds = iter([1 / 3, 0.1])
    timed = noted(lambda settings: pd.DataFrame({"who": ["a"], "seconds": [next(seconds)]}))
    first = timed(settings)
    pd.testing.assert_frame_equal(timed(settings), first)
    monkeypatch.setenv(VARIABLE, "1")
    pd.testing.assert_frame_equal(timed(settings), first)


@pytest.mark.parametrize("what", ["source_hash", "surroundings"])
def test_other_source_or_another_machine_makes_a_note_anew(settings, monkeypatch, what):
    made = counted()
    assert [made(settings), made(settings)] == [0, 0]
    monkeypatch.setattr(notes, what, lambda *given: "other")
    assert [made(settings), made(settings)] == [1, 1]


def test_a_note_of_a_study_is_made_anew_when_a_result_of_it_is_another(settings):
    def study(**rows):
        return SimpleNamespace(settings=settings, rows=rows)

    made, run = counted(), {"run": "00ab", "status": "failed"}
    assert [made(study(a=run)), made(study(a=run))] == [0, 0]
    assert made(study(a={**run, "status": "done"})) == 1
    assert made(study(a={**run, "status": "done"}, b={**run, "eval": "00cd"})) == 2


def test_a_note_from_before_it_was_said_what_it_was_made_with_is_read_and_made_anew(
    settings, monkeypatch
):
    made = counted()
    made(settings)
    [file] = (open_store().root / "notes").iterdir()
    file.write_text("7\n")
    with monkeypatch.context() as alone:
        alone.setenv(VARIABLE, "1")
        assert made(settings) == 7
    assert made(settings) == 1


def test_what_was_never_noted_needs_its_corpus(settings, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(NeedsCorpus):
        noted(lambda settings: 1.0)(settings)


def test_a_note_keeps_columns_in_order_their_types_and_an_index(settings, monkeypatch):
    table = pd.DataFrame(
        {
            "z": np.array([1, 2], dtype=np.int64),
            "a": [0.1 + 0.2, float("nan")],
            "mixed": ["6920", 1.5],
            "flag": [True, False],
        }
    )
    named = table.set_axis(["one", "two"])
    kept = noted(lambda settings: (table, named, [("x", 1, None)]))
    kept(settings)
    monkeypatch.setenv(VARIABLE, "1")
    found, also, pairs = kept(settings)
    pd.testing.assert_frame_equal(found, table)
    pd.testing.assert_frame_equal(also, named)
    assert found.to_csv(index=False) == table.to_csv(index=False) and pairs == [["x", 1, None]]


def test_other_settings_and_arguments_have_other_notes(settings):
    value = noted(lambda settings, task: task)
    value(settings, "SST")
    value(settings, "AG")
    value(SimpleNamespace(**{**vars(settings), "seeds": (2,)}), "SST")
    assert len(list((open_store().root / "notes").iterdir())) == 3


def test_a_note_is_of_tables_numbers_and_words(settings):
    with pytest.raises(TypeError, match="not of"):
        noted(lambda settings: object())(settings)
