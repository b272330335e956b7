"""What do the human-rated snippets of the vader archive say, and how do ratings become labels?

Movie-review, Amazon, newspaper and tweet snippets, each with the mean of 15 to 20 ratings (more
for some tweets) between −4 and 4.
"""

from __future__ import annotations

import html
from dataclasses import dataclass
from functools import lru_cache

from erlib.data.packages import member
from erlib.data.splits import split_of

ARCHIVE = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
FILES = {
    "movie_snippets": "movieReviewSnippets_GroundTruth.txt",
    "amazon_snippets": "amazonReviewSnippets_GroundTruth.txt",
    "news_snippets": "nytEditorialSnippets_GroundTruth.txt",
    "tweets": "tweets_GroundTruth.txt",
}

# The ratings of one snippet scatter with a standard deviation of 0.7 to 0.9, so a mean of 15 to
# 20 of them has a standard error near 0.2: beyond ±0.5 the sign does not hang on who was asked.
NEUTRAL = 0.5


@dataclass(frozen=True)
class Snippet:
    """One rated sentence."""

    id: str
    split: str
    rating: float
    text: str


@lru_cache(maxsize=4)
def read_snippets(corpus: str) -> tuple[Snippet, ...]:
    """All snippets of one file. Ids `12_3` are sentence 3 of document 12; a document's sentences
    share a split."""
    data = member("vader", ARCHIVE, f"hutto_ICWSM_2014/{FILES[corpus]}").decode("utf-8-sig")
    snippets = []
    for line in data.splitlines():
        if line.strip():
            number, rating, text = line.split("\t")
            split = split_of(f"{corpus}/{number.split('_')[0]}")
            text = " ".join(html.unescape(text).split())
            snippets.append(Snippet(f"{corpus}-{number}", split, float(rating), text))
    return tuple(snippets)


def two_way(rating: float) -> int | None:
    """0 negative, 1 positive, None neutral."""
    return None if abs(rating) <= NEUTRAL else int(rating > 0)


def three_way(rating: float) -> int:
    """0 negative, 1 neutral, 2 positive, with the same threshold."""
    return 1 if abs(rating) <= NEUTRAL else 2 * int(rating > 0)
