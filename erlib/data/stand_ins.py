"""Which span task can be made from human ratings alone?

No question-answering corpus is packaged. A task built from mean ratings stands in for one, and is
called what it is. It is built within a split of the movie snippets, by hash: no chance, no order of
files, the same everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from erlib.data.schema import Row
from erlib.data.snippets import Snippet
from erlib.data.splits import hash_fraction

CLEAR_MARGIN = 0.5  # the answer's distance from the runner-up, whose standard error is near 0.3
ROUNDS = 4  # how often each snippet is used
REVIEWS_PER_PASSAGE = (3, 4, 5)

FIND_NOTE = (
    "stand-in span task: passages of 3 to 5 movie snippets of one split, answer = the one with "
    f"the highest or lowest mean rating, at least {CLEAR_MARGIN} beyond the next"
)

Pool = dict[str, list[Snippet]]
Made = tuple[dict[str, list[Row]], dict[str, int]]


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
