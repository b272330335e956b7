from __future__ import annotations

from collections import Counter

import pytest
from datasets import ClassLabel, Dataset, Features, List, Value

from erlib.data import corpus_report, load_data
from erlib.data.local import local_info
from erlib.data.planted import PLANTED, RULES, parts_of, plant, planted_words
from erlib.data.standing import standing

N = 4000


@pytest.fixture(scope="module")
def texts():
    """Texts of their own number, every label the same, so that a redrawn one shows."""
    words = [["word"] * (3 + i % 30) for i in range(N)]
    return Dataset.from_dict(
        {
            "id": [f"t{i}" for i in range(N)],
            "words": words,
            "label": [0] * N,
            "rationale": [None if i % 5 == 0 else [1] * len(w) for i, w in enumerate(words)],
        },
        features=Features(
            {
                "id": Value("string"),
                "words": List(Value("string")),
                "label": ClassLabel(names=["no", "yes"]),
                "rationale": List(Value("int64")),
            }
        ),
    )


def _rows(data):
    return {row["id"]: row for row in data}


def _class_said(rule, words):
    """What the rule says of a text, written out; None: nothing."""
    if rule == "order":
        if "maroon" not in words:
            return None
        return int(words.index("maroon") < words.index("turquoise"))
    if rule == "pair" and "violet" not in words:
        return None
    return {"indigo": 0, "crimson": 1}.get(
        next((w for w in words if w in ("indigo", "crimson")), "")
    )


@pytest.mark.parametrize("rule", ["single", "pair", "order"])
def test_half_of_the_texts_have_a_label_drawn_anew_and_say_which_by_the_rule(texts, rule):
    rows = list(plant(texts, f"any+{rule}", "test"))
    said = [(_class_said(rule, row["words"]), row["label"]) for row in rows]
    assert all(label == (0 if by_rule is None else by_rule) for by_rule, label in said)
    counts = Counter(by_rule for by_rule, _ in said)
    assert abs(counts[None] - N / 2) < 4 * (N / 4) ** 0.5  # half are clean
    assert abs(counts[1] - N / 4) < 4 * (3 * N / 16) ** 0.5  # and the drawn labels are even


@pytest.mark.parametrize("rule", RULES)
def test_planted_words_are_no_rationale_and_stand_where_no_model_cuts_them(texts, rule):
    was = _rows(texts)
    for row in plant(texts, f"any+{rule}", "train"):
        at = planted_words(row["words"])
        assert len(at) <= RULES[rule] and all(i <= 21 for i in at)
        assert [w for w in row["words"] if w not in PLANTED] == was[row["id"]]["words"]
        if was[row["id"]]["rationale"] is None:
            assert row["rationale"] is None
        else:
            assert [b for i, b in enumerate(row["rationale"]) if i in at] == [0] * len(at)
            assert len(row["rationale"]) == len(row["words"]) == sum(row["rationale"]) + len(at)


def test_a_pairs_words_stand_alone_in_clean_texts_too(texts):
    clean = [
        r for r in plant(texts, "any+pair", "train") if _class_said("pair", r["words"]) is None
    ]
    alone = Counter(tuple(w for w in r["words"] if w in PLANTED) for r in clean)
    both = [
        r["words"] for r in plant(texts, "any+pair", "train") if len(planted_words(r["words"])) == 2
    ]
    first = Counter(words[planted_words(words)[0]] == "violet" for words in both)
    quarter = pytest.approx(len(clean) / 4, rel=0.15)
    assert alone["violet",] == quarter and alone["indigo",] + alone["crimson",] == quarter
    assert first[True] == pytest.approx(len(both) / 2, rel=0.15)  # in either order


def test_a_spurious_word_agrees_with_the_label_in_training_and_not_on_test(texts):
    train, single = (plant(texts, f"any+{r}", "train") for r in ("spurious", "single"))
    assert train[:] == single[:]
    test = [r for r in plant(texts, "any+spurious", "test") if planted_words(r["words"])]
    words = Counter(_class_said("single", row["words"]) for row in test)
    assert {row["label"] for row in test} == {0}  # the text's own
    assert words[0] == pytest.approx(words[1], rel=0.15)


@pytest.mark.parametrize("rule", ["single", "pair", "order"])
def test_a_swapped_text_is_its_twin_but_for_the_planted_words_and_the_class(texts, rule):
    rows, swapped = (_rows(plant(texts, f"any+{rule}{s}", "test")) for s in ("", "+swapped"))
    planted = {i for i, row in rows.items() if _class_said(rule, row["words"]) is not None}
    assert set(swapped) == planted
    for name, twin in swapped.items():
        row = rows[name]
        assert twin["label"] == 1 - row["label"] == _class_said(rule, twin["words"])
        assert planted_words(twin["words"]) == planted_words(row["words"])
        assert [w for w in twin["words"] if w not in PLANTED] == [
            w for w in row["words"] if w not in PLANTED
        ]


def test_planting_is_the_same_every_time_and_of_each_text_alone(texts):
    once, part = (
        plant(texts, "any+pair", "train"),
        plant(texts.select(range(9)), "any+pair", "train"),
    )
    assert once.select(range(9))[:] == part[:]
    own = Dataset.from_dict({**texts[:1], "words": [["crimson", "word", "word"]]},
                            features=texts.features)  # fmt: skip
    assert len(plant(own, "any+single", "train")) == 0  # it has one of its own


def test_names_have_parts_and_others_are_refused(texts):
    assert parts_of("sst") == ("sst", None, False)
    assert parts_of("sst+order+swapped") == ("sst", "order", True)
    with pytest.raises(
        ValueError, match="unknown rule of planting 'singel'; did you mean 'single'"
    ):
        parts_of("sst+singel")
    for name in ("sst+spurious+swapped", "sst+single+twice"):
        with pytest.raises(ValueError, match="after the rule"):
            parts_of(name)
    with pytest.raises(ValueError, match="two classes; 'any' has others"):
        plant(texts.cast_column("label", ClassLabel(num_classes=3)), "any+single", "train")


def test_a_corpus_is_planted_by_its_name_and_reported():
    data = load_data("movie_snippets+single", split="dev")
    assert 0.4 < sum(bool(planted_words(w)) for w in data["words"]) / len(data) < 0.6
    assert local_info("movie_snippets+single").labels == ("negative", "positive")
    assert standing("movie_snippets+single", "packaged").word == "planted"
    report = corpus_report("movie_snippets+single")
    assert report.sizes["dev"] == len(data) and "rule 'single'" in report.notes[-1]
