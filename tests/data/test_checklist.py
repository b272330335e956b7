"""Every change is the one that a person would make, and nothing else of the text moves."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from erlib.data.checklist import changes


def made(text):
    words = text.split()
    return [(c.kind, " ".join(c.applied(words))) for c in changes(words)]


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("It is dull .", "contraction", "It's dull ."),
        ("i do not care", "contraction", "i don't care"),
        ("(we are here)", "contraction", "(we're here)"),
        ("don’t go!", "extension", "do not go!"),
        ("IT'S bad", "extension", "IT IS bad"),
        ('"Won\'t" he said', "extension", '"Will not" he said'),
    ],
)
def test_a_contraction_and_its_way_back(before, kind, after):
    assert made(before) == [(kind, after)]


def test_a_name_becomes_the_next_names_of_its_list_in_the_same_letters_and_punctuation():
    assert made("and zoe, too") == [
        ("name", "and alice, too"),
        ("name", "and amanda, too"),
        ("name", "and amy, too"),
    ]
    assert made("(John's)") == []  # a word that is not in the list as it stands


def test_places_are_exchanged_for_places_of_their_own_kind():
    assert [text for _, text in made("Paris!")] == ["Philadelphia!", "Prague!", "Rome!"]
    assert made("WALES")[0] == ("location", "AFGHANISTAN")


def test_numbers_move_by_a_tenth_or_to_the_next_words():
    assert [text for _, text in made("in 1990")] == ["in 1791", "in 2189", "in 2388"]
    assert [text for _, text in made("0 stars")] == ["1 stars", "2 stars"]
    assert [text for _, text in made("Seven men")] == ["Eight men", "Nine men", "Ten men"]
    assert made("10/10 for this one") == []


def test_words_apart_by_punctuation_do_not_contract():
    assert made("It, is it is.") == [("contraction", "It, is it's.")]


def test_a_text_without_listed_words_has_no_changes_and_several_come_from_left_to_right():
    assert made("a gripping and funny film") == []
    found = changes(["I", "am", "in", "Rome", "with", "Tom"])
    assert [(c.kind, c.start) for c in found] == [("contraction", 0), *[("location", 3)] * 3,
                                                  *[("name", 5)] * 3]  # fmt: skip


def test_no_word_is_in_two_lists_and_each_list_has_a_word_once():
    raw = tomllib.loads((files("erlib.data") / "checklist.toml").read_text(encoding="utf-8"))
    groups = [*raw["names"].values(), *raw["places"].values(), raw["numbers"]]
    words = [word.lower() for group in groups for word in group]
    assert len(words) == len(set(words)) > 300
    assert all(len(long.split()) == 2 and "'" in short
               for long, short in raw["contractions"].items())  # fmt: skip
