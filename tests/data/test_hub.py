"""Is a parquet repository read as the registry's column map says?

The repositories here are folders with the layout of the hub's, in place of a hub id.
"""

from dataclasses import replace

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from erlib.data.corpora import corpora
from erlib.data.hub import hub_rows


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Lay out rows as a corpus's hub entry expects them, and point the entry there."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def make(name, **splits):
        info = corpora()[name]
        for split, columns in splits.items():
            file = info.hub.splits[split].replace("-*", "-00000-of-00001").replace("*", "0000")
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), path)
        return replace(info, hub=replace(info.hub, id=str(tmp_path / name)))

    return make


def test_sst_trees_become_words_labels_and_rationales(repository):
    trees = ["(3 (2 A) (3 Gem))", "(2 (2 A) (2 film))", "(0 (1 so) (1 dull))"]
    info = repository("sst", dev={"ptb_tree": trees})
    rows, dropped = hub_rows(info, "dev")
    assert [row["words"] for row in rows] == [["a", "gem"], ["so", "dull"]]
    assert [row["label"] for row in rows] == [1, 0]
    assert [row["rationale"] for row in rows] == [[0, 1], [1, 1]]
    assert [row["id"] for row in rows] == ["sst-dev-0", "sst-dev-2"]
    assert dropped == {"neutral root": 1}


def test_movie_evidence_is_marked_at_every_occurrence(repository):
    columns = {"review": ["fine film\na fine film"], "label": [1], "evidences": [["fine film"]]}
    [row], dropped = hub_rows(repository("movies", test=columns), "test")
    assert row["rationale"] == [1, 1, 0, 1, 1]
    assert dropped.get("evidence spans not found in their text", 0) == 0


def test_a_missing_dev_split_is_cut_from_train_by_hash(repository):
    columns = {"text": [f"text {i}" for i in range(400)], "label": [0, 1] * 200}
    info = repository("yelp", train=columns, test={"text": ["only test"], "label": [1]})
    train, dev = hub_rows(info, "train")[0], hub_rows(info, "dev")[0]
    assert {r["id"] for r in train} | {r["id"] for r in dev} == {
        f"yelp-train-{i}" for i in range(400)
    }
    assert not {r["id"] for r in train} & {r["id"] for r in dev}
    assert len(dev) == pytest.approx(60, abs=25)  # a share of 0.15
    assert [r["words"] for r in hub_rows(info, "test")[0]] == [["only", "test"]]


def test_pairs_without_an_agreed_label_are_counted(repository):
    columns = {"premise": ["a b", "c"], "hypothesis": ["d", "e"], "label": [2, -1]}
    rows, dropped = hub_rows(repository("snli", test=columns), "test")
    assert [(r["words_a"], r["words_b"], r["label"]) for r in rows] == [(["a", "b"], ["d"], 2)]
    assert dropped == {"no agreed label": 1}


def test_classes_in_another_order_are_mapped_by_name(repository):
    columns = {"text": ["who ?", "what is it ?"], "coarse_label": [3, 2]}  # HUM, DESC over there
    rows, _ = hub_rows(repository("trec", test=columns), "test")
    assert [corpora()["trec"].labels[row["label"]] for row in rows] == ["HUM", "DESC"]


def test_squad_answers_become_a_list(repository):
    answers = [{"text": ["sat"], "answer_start": [4]}]
    columns = {"context": ["cat sat"], "question": ["what?"], "answers": answers}
    [row], _ = hub_rows(repository("squad", test=columns), "test")
    assert row["answers"] == [{"text": "sat", "answer_start": 4}]


def test_bad_hub_data_names_the_row(repository):
    info = repository("imdb", test={"text": ["fine", " "], "label": [1, 1]})
    with pytest.raises(ValueError, match=r"row 'imdb-test-1': field 'text' is empty"):
        hub_rows(info, "test")


def test_a_repository_that_is_not_there_names_the_id_and_the_remedy(repository):
    info = repository("imdb", test={"text": ["fine"], "label": [1]})
    with pytest.raises(
        FileNotFoundError, match=r"tried hub: .*imdb .*to fix: run `python -m erlib"
    ):
        hub_rows(info, "train")  # its files are missing


def test_a_split_the_hub_never_has_is_refused():
    with pytest.raises(FileNotFoundError, match="no split 'test' on the hub; it has: train, dev"):
        hub_rows(corpora()["sst2_glue"], "test")


def test_a_repository_with_a_loading_script_is_refused_and_the_script_not_run(repository):
    info = repository("imdb", test={"text": ["fine"], "label": [1]})
    with open(f"{info.hub.id}/imdb.py", "w") as script:
        script.write("raise SystemExit('ran')")
    with pytest.raises(FileNotFoundError, match="scripts are no longer supported"):
        hub_rows(info, "test")
