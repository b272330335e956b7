"""Which pair task and which span task can be made from human ratings alone?

No inference or question-answering corpus is packaged. Two tasks built from mean ratings stand in
for them, and are called what they are. Both are built within a split of the movie snippets, by
hash: no chance, no order of files, the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from erlib.data.schema import Row
from erlib.data.snippets import Snippet
from erlib.data.splits import hash_fraction

# The difference of two mean ratings has a standard error near 0.3.
ABOUT_EQUAL = 0.5  # differ by at most this: about equal
MORE_POSITIVE = 1.0  # differ by more than this: one is more positive; in between: left out
CLEAR_MARGIN = 0.5  # the answer's distance from the runner-up
ROUNDS = 4  # how often each snippet is used
REVIEWS_PER_PASSAGE = (3, 4, 5)

COMPARATIVE_NOTE = (
    f"stand-in pair task: movie snippets compared by mean rating, about equal within {ABOUT_EQUAL},"
    f" more positive beyond {MORE_POSITIVE}; both snippets from one split"
)
FIND_NOTE = (
    "stand-in span task: passages of 3 to 5 movie snippets of one split, answer = the one with "
    f"the highest or lowest mean rating, at least {CLEAR_MARGIN} beyond the next"
)

Pool = dict[str, list[Snippet]]
Made = tuple[dict[str, list[Row]], dict[str, int]]


def comparative_sentiment(pool: Pool) -> Made:
    """Label 0: the first is more positive, 1: about equal, 2: the second is more positive."""
    dropped: Counter[str] = Counter()
    splits: dict[str, list[Row]] = {}
    for split, members in pool.items():
        by_label: dict[int, dict[str, Row]] = {0: {}, 1: {}, 2: {}}
        for turn in range(ROUNDS):
            order = _shuffled(members, f"comparative/{turn}")
            for a, b in zip(order[::2], order[1::2], strict=False):
                difference = a.rating - b.rating
                if ABOUT_EQUAL < abs(difference) <= MORE_POSITIVE:
                    dropped["neither about equal nor clearly different"] += 1
                    continue
                label = 1 if abs(difference) <= ABOUT_EQUAL else 0 if difference > 0 else 2
                row_id = f"comparative-{_number(a)}-{_number(b)}"
                words = {"words_a": a.text.split(), "words_b": b.text.split()}
                by_label[label][row_id] = {"id": row_id, **words, "label": label}
        size = min(len(rows) for rows in by_label.values())
        dropped["to balance the classes"] += sum(len(r) - size for r in by_label.values())
        rows = [row for group in by_label.values() for row in list(group.values())[:size]]
        splits[split] = sorted(rows, key=lambda row: hash_fraction(row["id"]))
    return splits, dict(dropped)


def find_review(pool: Pool) -> Made:
    """Passages of reviews; "find the most positive review" and its opposite, answer = its span."""
    dropped: Counter[str] = Counter()
    splits: dict[str, list[Row]] = {}
    for split, members in pool.items():
        splits[split] = []
        for turn in range(ROUNDS):
            order = _shuffled(members, f"find/{turn}")
            start = 0
            while start + max(REVIEWS_PER_PASSAGE) <= len(order):
                draw = hash_fraction(f"size/{turn}/{order[start].id}")
                size = REVIEWS_PER_PASSAGE[int(draw * len(REVIEWS_PER_PASSAGE))]
                passage = order[start : start + size]
                start += size
                for extreme, sign in (("positive", 1), ("negative", -1)):
                    ranked = sorted(passage, key=lambda s: -sign * s.rating)
                    if sign * (ranked[0].rating - ranked[1].rating) < CLEAR_MARGIN:
                        dropped["no clear winner"] += 1
                    else:
                        splits[split].append(_question(passage, ranked[0], extreme))
    return splits, dict(dropped)


def _question(passage: Sequence[Snippet], answer: Snippet, extreme: str) -> Row:
    before = [s.text for s in passage[: passage.index(answer)]]
    start = len(" ".join(before)) + bool(before)
    return {
        "id": f"find-{'-'.join(_number(s) for s in passage)}-{extreme}",
        "context": " ".join(s.text for s in passage),
        "question": f"find the most {extreme} review",
        "answers": [{"text": answer.text, "answer_start": start}],
    }


def _shuffled(members: Sequence[Snippet], salt: str) -> list[Snippet]:
    return sorted(members, key=lambda s: hash_fraction(f"{salt}/{s.id}"))


def _number(snippet: Snippet) -> str:
    return snippet.id.removeprefix("movie_snippets-")
