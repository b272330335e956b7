from __future__ import annotations

import gzip
import json

import pytest

from erlib.explorer.texts import Text, offered, typed
from tests import corpus, tiny


def write(folder, name, record):
    (folder / name).mkdir()
    with gzip.open(folder / name / "dev.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def test_what_is_typed_becomes_words_and_two_boxes_a_pair():
    assert typed(" a  great\nfilm ").segments == (("a", "great", "film"),)
    assert typed("one", "two three").segments == (("one",), ("two", "three"))
    assert typed("a b", "c").strings() == ("a b", "c") and typed("a b").strings() == ("a b", "")


def test_half_a_character_is_replaced_and_nothing_at_all_is_refused():
    assert typed("a\ud83d b").segments == (("a?", "b"),)
    with pytest.raises(ValueError, match="no text"):
        typed(" \n ", "second")


def test_removed_words_are_gone_but_the_last_one_stays():
    text = typed("not a bad film", "dull plot")
    assert text.without({(0, 0), (1, 1)}).segments == (("a", "bad", "film"), ("dull",))
    with pytest.raises(ValueError, match="last word"):
        text.without({(1, 0), (1, 1)})


def test_each_task_gets_its_kind_of_input():
    classifier, span = tiny.classifier(), tiny.classifier(task="span")
    assert typed("a film").input_for(classifier) == ["a", "film"]
    assert typed("a", "b c").input_for(classifier) == (["a"], ["b", "c"])
    assert typed("a", "b c").input_for(span) == {"question": ["a"], "context": ["b", "c"]}
    with pytest.raises(ValueError, match="answers questions"):
        typed("a").input_for(span)


def test_texts_of_a_corpus_come_with_their_class_and_rationale(here):
    texts = offered("movies", "local")
    assert len(texts) == corpus.SIZES["test"]
    for text in texts:
        [words], [bits] = text.segments, text.rationale
        [marked] = [word for word, bit in zip(words, bits, strict=True) if bit]
        assert marked in corpus.WORDS[["negative", "positive"].index(text.label)]
        assert text.rationale_kind == "human"


def test_dev_is_offered_only_where_there_is_no_test_split(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    write(tmp_path, "own", {"id": "1", "label": 1, "text": "a great film"})
    assert [text.segments for text in offered("own", "local")] == [(("a", "great", "film"),)]
    (tmp_path / "own" / "test.jsonl.gz").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="not a whole gzip file"):
        offered("own", "local")
    with pytest.raises(FileNotFoundError, match="sst"):
        offered("sst", "local")


def test_pairs_and_questions_can_be_picked_too(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    pair = {
        "id": "1",
        "label": 1,
        "text_a": "a great film",
        "text_b": "dull",
        "rationale": [0, 1, 0],
    }
    write(tmp_path, "two", pair)
    assert offered("two", "local") == [
        Text((("a", "great", "film"), ("dull",)), ((0, 1, 0), (0,)), "human", "1")
    ]
    answers = [{"text": "the plot", "answer_start": 0}]
    question = {"id": "1", "question": "which ?", "context": "the plot is bad", "answers": answers}
    write(tmp_path, "ask", question)
    [text] = offered("ask", "local")
    assert text.segments == (("which", "?"), ("the", "plot", "is", "bad"))
    assert text.label == "the plot" and text.rationale is None
