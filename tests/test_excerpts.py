from __future__ import annotations

from tests.excerpts import quoted

TEXTS = {
    "long": " ".join(f"word{i}" for i in range(100)),
    "short": "Not a good film.",
    "other": "it is not quoted and stands nowhere on the page at all",
}


def test_a_stretch_of_a_text_is_found_with_its_length_whatever_its_punctuation():
    middle = "“" + ", ".join(f"Word{i}" for i in range(30, 83)) + "!”"
    assert quoted(["before " + middle + " after"], TEXTS) == {"long": 53}


def test_seven_words_of_a_longer_text_are_nothing_and_a_short_text_counts_whole():
    seven = " ".join(f"word{i}" for i in range(7))
    assert quoted([seven, "they say not a good film about it"], TEXTS) == {"short": 4}


def test_a_passage_that_is_quoted_whole_counts_as_one_and_a_part_of_it_as_that_part():
    parts = {"a": "Not a good film.", "b": "Seen it twice, though.", "c": "Never seen it at all."}
    passages = {"a b": f"{parts['a']} {parts['b']}", "c a": f"{parts['c']} {parts['a']}"}
    assert quoted([passages["a b"]], parts | passages) == {"a b": 8}
    assert quoted([parts["a"]], parts | passages) == {"a": 4}


def test_words_that_texts_have_in_common_count_for_the_text_that_is_quoted():
    shared = " ".join(f"word{i}" for i in range(20, 35))
    alike = {**TEXTS, "alike": f"its own beginning {shared} its own end"}
    assert quoted([" ".join(f"word{i}" for i in range(10, 50))], alike) == {"long": 40}
    assert quoted([alike["alike"]], alike) == {"alike": 21}


def test_a_text_of_two_corpora_counts_once():
    twice = {**TEXTS, "again": "not a GOOD film"}
    assert quoted(["not a good film"], twice) == {"short": 4}


def test_one_word_again_and_again_is_no_quotation():
    shouted = {**TEXTS, "shouted": "No no no no no no no no no, not a good start"}
    assert quoted(["no " * 20], shouted) == {}
    assert quoted(["no " * 5 + "not a good start"], shouted) == {"shouted": 9}
