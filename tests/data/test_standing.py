"""A reader is told what a corpus is to the paper's: official, a sample, or in its place."""

from __future__ import annotations

import os

import pytest

from erlib.config import load_profile
from erlib.data.corpora import corpora
from erlib.data.standing import OFFICIAL, OWN, SAMPLE, STAND_IN, standing
from tests import corpus


def test_what_a_package_has_is_a_stand_in_unless_the_registry_says_more():
    assert standing("movie_snippets", "packaged").word == STAND_IN
    assert standing("snli", "packaged").word == SAMPLE
    assert standing("sst", "hub").word == OFFICIAL


def test_every_entry_has_one_of_the_words_and_a_reason():
    for info in corpora().values():
        for source, said in info.standing.items():
            assert said["is"] in (OFFICIAL, SAMPLE, STAND_IN) and said["why"], info.name
            assert ("sizes" in said) == (source == "local"), info.name


def test_local_files_of_other_sizes_are_of_their_owner_s_making(tmp_path, monkeypatch):
    corpus.write(tmp_path)
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    found = standing(next(p.name for p in tmp_path.iterdir()), "local")
    assert found.word == OWN and "train" in found.why


@pytest.mark.skipif("ERLIB_DATA" not in os.environ, reason="needs local data")
def test_the_local_corpora_that_night_reads_are_those_that_the_registry_speaks_of():
    names = set(_names(load_profile("night"))) & set(corpora())
    local = [name for name in names if corpora()[name].standing.get("local")]
    assert len(local) >= 15
    assert {name: standing(name, "local").word for name in local} == {
        name: corpora()[name].standing["local"]["is"] for name in local
    }


def _names(value):
    if isinstance(value, dict):
        return [name for one in value.values() for name in _names(one)]
    if isinstance(value, list):
        return [name for one in value for name in _names(one)]
    return [value] if isinstance(value, str) else []
