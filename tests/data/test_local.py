"""Is ERLIB_DATA read as its format says, and is bad data refused with file, line and remedy?"""

import csv
import gzip
import json
import os
import random

import pytest

from erlib.cli import main
from erlib.data import corpus_report, load_data
from erlib.data.local import read_esnli
from erlib.data.schema import read_record

GOOD = {"id": "a", "label": 1, "text": "a fine film"}
needs_data = pytest.mark.skipif(
    not os.environ.get("ERLIB_DATA"), reason="set ERLIB_DATA to the folder with local corpora"
)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write the lines of a split; a dict becomes a line of JSON."""
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))

    def to(name, lines, split="train"):
        (tmp_path / name).mkdir(exist_ok=True)
        path = tmp_path / name / f"{split}.jsonl.gz"
        packed = [json.dumps(x).encode() if isinstance(x, dict) else x for x in lines]
        path.write_bytes(gzip.compress(b"\n".join(packed)))
        return path

    return to


def test_words_are_tokens_where_given_and_otherwise_the_split_text(write):
    rows = [GOOD, {**GOOD, "id": "b", "text": "do n't", "tokens": ["do", "n't"]}]
    write("yelp", rows)
    data = load_data("yelp", source="local")
    assert data["words"][:] == [["a", "fine", "film"], ["do", "n't"]]
    assert data.features["label"].names == ["negative", "positive"]


def test_a_rationale_column_holds_none_where_a_text_has_no_annotation(write):
    write("movies", [{**GOOD, "rationale": [0, 1, 0]}, {**GOOD, "id": "b"}])
    assert load_data("movies", source="local")["rationale"][:] == [[0, 1, 0], None]


def test_a_tree_gives_lower_case_words_and_a_phrase_rationale(write):
    write("sst", [{"id": "s", "label": 1, "tree": "(3 (2 A) (4 (2 Very) (3 good)))"}])
    [row] = load_data("sst", source="local")
    assert (row["words"], row["rationale"]) == (["a", "very", "good"], [0, 1, 1])


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"id": "b", "label"', r"malformed JSON .* write one complete object per line"),
        (b"[1, 2]", r"not a JSON object; write one"),
        (b"", r"the line is empty; remove it"),
        (b'{"id": "\xff"}', r"not UTF-8 .*; save the file as UTF-8"),
        ({"id": "b", "label": 1}, r"field 'text' is missing; the record has id, label"),
        ({"label": 1, "text": "x"}, r"field 'id' is missing"),
        ({"id": "b", "text": "x"}, r"field 'label' is missing"),
        ({**GOOD, "id": "b", "text": "  "}, r"field 'text' is empty; remove the record"),
        ({**GOOD, "id": "b", "text": 3}, r"field 'text' must be a string, not int"),
        ({**GOOD, "id": "b", "label": 2}, r"label 2 is out of range; use an integer from 0 to 1"),
        ({**GOOD, "id": "b", "label": -1}, r"label -1 is out of range"),
        ({**GOOD, "id": "b", "label": "1"}, r"label '1' is no whole number; number the classes"),
        ({**GOOD, "id": "b", "label": True}, r"label True is no whole number"),
        (b"9" * 5000, r"Exceeds the limit"),
        (b"[" * 100_000, r"recursion"),
        ({**GOOD, "id": "b", "text": "\ud83d"}, r"an escaped surrogate .* has no other half"),
        ({"id": "b", "label": 1, "tree": "(9 (2 a) (3 b))"}, r"tree label 9: .* 0 to 4"),
        ({"id": "b", "label": 1, "tree": "(2 " * 500}, r"a tree of more than 200 levels"),
        ({**GOOD, "id": "b", "rationale": [0, 1]}, r"has 2 entries for 3 words; give one 0 or 1"),
        ({**GOOD, "id": "b", "rationale": [0, 2, 0]}, r"must be a list of 0 and 1"),
        ({**GOOD, "id": "b", "tokens": ["a", ""]}, r"'tokens' must be a list of non-empty strings"),
        ({**GOOD, "id": "b", "tokens": []}, r"field 'tokens' is empty"),
        (GOOD, r"id 'a' was used in train.jsonl.gz, line 1"),
    ],
)
def test_bad_data_is_refused_with_file_line_and_remedy(write, line, problem):
    path = write("yelp", [GOOD, line, {**GOOD, "id": "z"}])
    with pytest.raises(ValueError, match=rf"{path}, line 2: .*{problem}"):
        load_data("yelp", source="local")


def test_a_file_that_is_not_gzip_is_refused(write):
    path = write("yelp", [GOOD])
    path.write_bytes(b'{"id": "a"}')
    with pytest.raises(ValueError, match=r"line 1: not a whole gzip file .*; pack it again"):
        load_data("yelp", source="local")


def test_a_cut_off_gzip_file_is_refused(write):
    path = write("yelp", [{**GOOD, "id": str(i), "text": f"text {i * 7919}"} for i in range(500)])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match="not a whole gzip file"):
        load_data("yelp", source="local")


@pytest.mark.parametrize("seed", range(20))
def test_a_gzip_file_with_a_damaged_byte_is_refused_or_read_as_it_was(write, seed):
    rows = [{**GOOD, "id": str(i), "text": f"text {i * 7919}"} for i in range(200)]
    path = write("yelp", rows)
    packed, rng = bytearray(path.read_bytes()), random.Random(seed)
    packed[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    path.write_bytes(packed)
    try:
        assert len(load_data("yelp", source="local")) == len(rows)
    except ValueError as error:
        assert str(path) in str(error)


def test_a_file_without_records_is_refused(write):
    write("yelp", [])
    with pytest.raises(ValueError, match="line 1: the file has no record"):
        load_data("yelp", source="local")


def test_a_file_that_is_not_packed_is_read_as_well(write):
    packed = write("yelp", [GOOD])
    plain = packed.with_suffix("")
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    with pytest.raises(ValueError, match="are both there; remove one of them"):
        load_data("yelp", source="local")
    packed.unlink()
    assert load_data("yelp", source="local")["id"][:] == ["a"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"text": "other words"}, "2 ids in two splits, such as 'a' (train and dev), 'b' (train"),
        ({"id": "c"}, "1 text in two splits, such as 'A  fine FILM' (train and dev)"),
    ],
)
def test_ids_and_texts_in_two_splits_are_refused_counted_and_named(write, changed, said):
    write("yelp", [GOOD, {**GOOD, "id": "b", "text": "a bad one"}])
    write("yelp", [{**GOOD, "text": "A  fine FILM", **changed}], split="dev")
    if "text" in changed:
        write("yelp", [{**GOOD, **changed}, {**GOOD, "id": "b", "text": "another"}], split="dev")
    for load in (lambda: load_data("yelp", source="local"), lambda: corpus_report("yelp", "local")):
        with pytest.raises(ValueError) as raised:
            load()
        assert said.replace("A  fine", "A fine") in str(raised.value)


@pytest.mark.parametrize("name", ["../yelp", "a/b", "..", "", "a\\b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(write, name):
    write("yelp", [GOOD])
    with pytest.raises(ValueError, match="is no name of a corpus"):
        load_data(name, source="local")


def test_a_corpus_of_ones_own_has_no_billion_classes(write):
    path = write("mine", [GOOD, {**GOOD, "id": "b", "label": 10**9}])
    with pytest.raises(ValueError, match=f"{path}, line 2: label 1000000000: number the classes"):
        load_data("mine", source="local")


def test_a_check_tells_of_every_corpus_and_fails_if_one_is_wrong(write, monkeypatch, capsys):
    write("yelp", [GOOD])
    assert main(["data", "check", "--source", "local"]) == 0
    write("sst", [{**GOOD, "label": 7}])
    (write("mine", [GOOD]).parent / "dev.jsonl").mkdir()
    assert main(["data", "check", "--source", "local"]) == 1
    said = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert " ok " in said["yelp"] and "label 7 is out of range" in said["sst"]
    assert "it cannot be read (Is a directory)" in said["mine"]


def test_a_check_fails_if_nothing_is_there(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    assert main(["data", "check", "--source", "local"]) == 1


def test_pairs_and_questions_have_their_columns(write):
    pair = {"id": "p", "label": 2, "text_a": "a b", "text_b": "c", "rationale_b": [1]}
    write("snli", [pair])
    [row] = load_data("snli", source="local")
    assert (row["words_a"], row["words_b"], row["rationale_b"]) == (["a", "b"], ["c"], [1])
    answers = [{"text": "sat", "answer_start": 4}]
    write("squad", [{"id": "q", "context": "cat sat", "question": "did?", "answers": answers}])
    [row] = load_data("squad", source="local")
    assert row == {"id": "q", "context": "cat sat", "question": "did?", "answers": answers}


@pytest.mark.parametrize(
    "answers",
    [
        [],
        None,
        [{"text": "cat"}],
        [{"text": "x", "answer_start": 0}],
        [{"text": "sat", "answer_start": -3}],
        [{"text": 3, "answer_start": 0}],
        [{"text": " ", "answer_start": 3}],
    ],
)
def test_an_answer_that_is_not_there_is_refused(answers):
    record = {"id": "q", "context": "cat sat", "question": "did?", "answers": answers}
    with pytest.raises(ValueError, match="answer"):
        read_record(record, task="span", classes=0)


def test_a_corpus_of_ones_own_needs_no_registry(write):
    write("mine", [{**GOOD, "label": 2}, {**GOOD, "id": "b", "label": 0}])
    data = load_data("mine", source="local")
    assert data.features["label"].names == ["0", "1", "2"]
    report = corpus_report("mine", "local")
    assert (report.sizes, report.rationale) == ({"train": 2}, None)


def test_a_missing_corpus_names_what_was_tried_and_what_to_set(monkeypatch, tmp_path):
    monkeypatch.delenv("ERLIB_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"tried local: ERLIB_DATA is not set; to fix: set"):
        load_data("sst", source="local")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"sst/dev.jsonl.gz does not exist .*Socher"):
        load_data("sst", split="dev", source="local")


ESNLI = {
    "pairID": "1.jpg#0",
    "gold_label": "contradiction",
    "Sentence1": "A man sleeps.",
    "Sentence2": "A man runs fast.",
    "Sentence1_marked_1": "A man *sleeps.*",
    "Sentence2_marked_1": "A man *runs* fast.",
    "Sentence1_Highlighted_1": "2",
    "Sentence2_Highlighted_1": "2",
}


def test_the_original_esnli_file_is_read_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    (tmp_path / "esnli").mkdir()
    for number in (1, 2):  # the train set comes in two files
        with (tmp_path / "esnli" / f"esnli_train_{number}.csv").open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ESNLI)
            writer.writeheader()
            writer.writerow({**ESNLI, "pairID": f"pair {number}"})
    data = load_data("esnli", source="local")
    assert data["id"][:] == ["pair 1", "pair 2"]
    assert data[0]["label"] == 2
    assert data[0]["rationale"] == [0, 0, 1]
    assert data[0]["rationale_b"] == [0, 0, 1, 0]


def test_three_esnli_annotators_vote_and_indices_do_where_stars_are_missing():
    record = {
        **ESNLI,
        "Sentence1_marked_1": "",
        "Sentence1_Highlighted_1": "0,2",
        "Sentence1_marked_2": "A *man* *sleeps.*",
        "Sentence1_Highlighted_3": "{}",
    }
    assert read_esnli(record)["rationale"] == [0, 0, 1]


def test_a_bad_esnli_line_names_its_file(tmp_path, monkeypatch):
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path))
    (tmp_path / "esnli").mkdir()
    with (tmp_path / "esnli" / "esnli_dev.csv").open("w", newline="") as stream:
        writer = csv.DictWriter(stream, ESNLI)
        writer.writeheader()
        writer.writerow({**ESNLI, "gold_label": "-"})
    with pytest.raises(ValueError, match=r"esnli_dev.csv, line 2: gold_label '-' is none of"):
        load_data("esnli", split="dev", source="local")


@needs_data
def test_real_sst_has_the_papers_sizes_but_for_three_duplicates():
    sizes = {s: len(load_data("sst", split=s, source="local")) for s in ("train", "dev", "test")}
    assert sizes == {"train": 6_917, "dev": 872, "test": 1_821}


@needs_data
def test_a_real_sst_sentence_has_the_rationale_worked_out_by_hand():
    row = load_data("sst", split="dev", source="local")[0]
    assert row["id"] == "sst-dev-0"
    # As worked out in test_rationales.
    assert row["words"][3:5] + row["words"][6:12] == [
        w for w, bit in zip(row["words"], row["rationale"], strict=True) if bit
    ]
    assert " ".join(row["words"][6:12]) == "lovely performances by buy and accorsi"
