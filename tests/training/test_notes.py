"""What a notebook measures itself comes back from the store digit for digit."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from erlib.data.known import VARIABLE, NeedsCorpus
from erlib.training.notes import noted
from erlib.training.store import open_store


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path))
    return SimpleNamespace(
        paper="tiny", profile="quick", source="packaged", seeds=(1,), grid={"rows": 8}, store=None
    )


def test_a_note_is_made_anew_by_every_report_and_kept_for_results_alone(settings, monkeypatch):
    seconds = iter([0.1, 1 / 3])
    timed = noted(lambda settings: pd.DataFrame({"who": ["a"], "seconds": [next(seconds)]}))
    first, second = timed(settings), timed(settings)
    assert first["seconds"][0] == 0.1
    monkeypatch.setenv(VARIABLE, "1")
    pd.testing.assert_frame_equal(timed(settings), second)


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
