"""Which text is looked at, and which of its words have people marked?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from erlib.data import load_data, select_rows
from erlib.data.loading import splits_of
from erlib.data.local import local_info
from erlib.models import Classifier

Place = tuple[int, int]  # segment, word
EXAMPLE = "a gripping and funny film , if you can forgive the dull ending ."
OFFERED = 60  # texts of a corpus to pick from


@dataclass(frozen=True)
class Text:
    """One text, a pair of texts, or a question and its passage; each segment is its words."""

    segments: tuple[tuple[str, ...], ...]
    rationale: tuple[tuple[int, ...], ...] | None = None  # one bit per word of each segment
    rationale_kind: str = ""  # human | phrase labels | lexicon
    label: str = ""  # the corpus's own class or answer, if it is known

    @property
    def words(self) -> int:
        """How many words there are in all segments."""
        return sum(len(words) for words in self.segments)

    def strings(self) -> tuple[str, str]:
        """The two boxes from which the text could have been typed."""
        first, second = [*(" ".join(words) for words in self.segments), ""][:2]
        return first, second

    def without(self, removed: Collection[Place]) -> Text:
        """What is left when words are taken out."""
        kept = tuple(
            tuple(word for i, word in enumerate(words) if (segment, i) not in removed)
            for segment, words in enumerate(self.segments)
        )
        if not all(kept):
            raise ValueError("the last word of a text cannot be removed; click another one back")
        return Text(kept)

    def input_for(self, classifier: Classifier) -> Any:
        """What the classifier's `encode` takes."""
        parts = [list(words) for words in self.segments]
        if classifier.task == "span":
            if len(parts) < 2:
                raise ValueError(
                    "this model answers questions: type the question as text and the passage as "
                    "second text"
                )
            return {"question": parts[0], "context": parts[1]}
        return parts[0] if len(parts) == 1 else tuple(parts)


def typed(first: str, second: str = "") -> Text:
    """A text from what somebody typed; a second one makes it a pair."""
    # Half of a surrogate pair can be typed, but is no text that a tokenizer would take.
    boxes = [box.encode("utf-8", "replace").decode().split() for box in (first, second)]
    if not boxes[0]:
        raise ValueError("no text: type one, or pick one from a corpus")
    return Text(tuple(tuple(words) for words in boxes if words))


def offered(corpus: str, source: str, rows: int = OFFERED) -> list[Text]:
    """Texts of a corpus that no model was trained on: of its test split or, without one, of dev."""
    splits = splits_of(corpus, source)
    split = "dev" if "dev" in splits and "test" not in splits else "test"
    data = load_data(corpus, split=split, source=source)
    kind = local_info(corpus).rationale or "human"
    return [_from_row(row, data, kind) for row in select_rows(data, rows)]


def _from_row(row: Mapping[str, Any], data: Dataset, kind: str) -> Text:
    if "question" in row:
        answer = row["answers"][0]["text"] if row["answers"] else ""
        return Text((tuple(row["question"].split()), tuple(row["context"].split())), label=answer)
    label = data.features["label"].int2str(row["label"])
    columns = [name for name in ("words", "words_a", "words_b") if name in row]
    words = tuple(tuple(row[name]) for name in columns)
    marks = [row.get("rationale"), row.get("rationale_b")][: len(words)]
    if all(mark is None for mark in marks):
        return Text(words, label=label)
    bits = [mark or [0] * len(segment) for mark, segment in zip(marks, words, strict=True)]
    return Text(words, tuple(tuple(mark) for mark in bits), kind, label)
