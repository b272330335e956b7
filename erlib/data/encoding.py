"""Which tokens does a model see, and to which word, segment and rationale does each belong?

One rule aligns sub-words with words for every tokenizer family. The words are joined by single
blanks and tokenised as ordinary text; a blank belongs to the word after it. A token then belongs
to the word of its first character: true of WordPiece (`play ##ing`), byte-level BPE (`Ġplaying`),
SentencePiece (`▁playing`, or a lone `▁` before a byte fallback) and word-level vocabularies.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from erlib import checks

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

# Shuffled training batches are sorted by length within pools of this many batches: padding
# shrinks, and which texts meet in a batch still changes with the seed.
POOL_BATCHES = 50
NO_ANSWER = -100  # torch's ignore_index: the answer was cut off with the end of the context


@dataclass(frozen=True)
class Encoded:
    """One input as the model sees it; every list has one entry per token."""

    id: str
    input_ids: list[int]
    token_type_ids: list[int] | None
    tokens: list[str]
    word_ids: list[int]  # index into the words of its segment; -1 for specials
    segment: list[int]  # 0 only or first text (QA: question), 1 second (QA: context), -1 specials
    special: list[bool]
    label: int | None = None
    rationale: list[int] | None = None  # every piece of a rationale word 1, specials 0
    answer: tuple[int, int] | None = None  # its first and last token; NO_ANSWER: cut off
    truncated: bool = False
    words: list[list[str]] = field(default_factory=list)  # of each segment, as given
    explanation: list[float] | None = None  # a teacher's, for its student

    @property
    def words_cut(self) -> int:
        """How many words have no token, in a text whose end was cut."""
        seen = {(s, w) for s, w in zip(self.segment, self.word_ids, strict=True) if s >= 0}
        return sum(map(len, self.words)) - len(seen) if self.truncated else 0


@dataclass
class Batch:
    """Encoded inputs padded on the right to the longest of them."""

    inputs: dict[str, Tensor]  # input_ids, attention_mask[, token_type_ids]: [batch, token]
    special: Tensor  # [batch, token] bool, pads False
    segment: Tensor  # [batch, token], pads -1
    word_ids: Tensor  # [batch, token], pads -1
    labels: Tensor | None  # [batch]; spans: [batch, 2], NO_ANSWER where the answer was cut off
    rationale: Tensor | None  # [batch, token] float, pads 0
    has_rationale: Tensor | None  # [batch] bool: at least one rationale token
    ids: list[str]
    explanation: Tensor | None = None  # [batch, token], pads 0: what a student is taught

    def to(self, device: torch.device | str) -> Batch:
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        return replace(
            self,
            inputs={name: tensor.to(device) for name, tensor in self.inputs.items()},
            special=self.special.to(device),
            segment=self.segment.to(device),
            word_ids=self.word_ids.to(device),
            labels=moved(self.labels),
            rationale=moved(self.rationale),
            has_rationale=moved(self.has_rationale),
            explanation=moved(self.explanation),
        )

    def texts(self, first: int, last: int) -> Batch:
        """Those from `first` to before `last`, padded as they are."""

        def some(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor[first:last]

        return replace(
            self,
            inputs={name: tensor[first:last] for name, tensor in self.inputs.items()},
            special=self.special[first:last],
            segment=self.segment[first:last],
            word_ids=self.word_ids[first:last],
            labels=some(self.labels),
            rationale=some(self.rationale),
            has_rationale=some(self.has_rationale),
            ids=self.ids[first:last],
            explanation=some(self.explanation),
        )


@dataclass(frozen=True)
class _Example:
    """An input in its one normal form: the words of each segment and what is known of them."""

    id: str
    segments: list[list[str]]
    label: int | None = None
    rationales: list[list[int] | None] | None = None  # one per segment
    answer: tuple[int, int] | None = None  # characters [from, to) of the context's joined words
    is_question: bool = False
    taught: tuple[int, ...] | None = None  # a teacher's class, or first and last token of its span
    explanation: list[float] | None = None


def encode(
    inputs: Sequence[Any] | Dataset,
    tokenizer: PreTrainedTokenizerFast,
    *,
    max_length: int,
    specials: bool = True,
    labels: Sequence[int] | None = None,
) -> list[Encoded]:
    """Tokenise and align.

    `inputs`: strings (split on white space), word lists, `(a, b)` tuples of either,
    `{"question": …, "context": …}` mappings, or a `Dataset` from `load_data`, which brings ids,
    labels, rationales and answers. At most `max_length` tokens are kept, specials included; of a
    question and its context only the context is cut.
    """
    examples = list(_examples(inputs))
    if labels is not None:
        if not isinstance(labels, Iterable) or isinstance(labels, str | Mapping):
            raise ValueError(f"labels are a list of whole numbers, not {checks.shown(labels)}")
        labels = list(labels)
        if len(labels) != len(examples):
            raise ValueError(f"{len(labels)} labels for {len(examples)} inputs")
        for y in labels:
            checks.whole("a label", y)
        examples = [replace(e, label=int(y)) for e, y in zip(examples, labels, strict=True)]
    prefix = " " if _is_byte_level(tokenizer) else ""
    checks.whole("max_length", max_length, 1)
    if specials and any(
        tokenizer.num_special_tokens_to_add(len(e.segments) == 2) >= max_length for e in examples
    ):
        raise ValueError(f"max_length={max_length} leaves no room beside the special tokens")

    encoded: list[Encoded | None] = [None] * len(examples)
    shapes = {(len(e.segments), e.is_question) for e in examples}
    for shape in sorted(shapes):  # one tokenizer call for each: single texts, pairs, questions
        rows = [i for i, e in enumerate(examples) if (len(e.segments), e.is_question) == shape]
        texts = [[prefix + " ".join(words) for words in examples[i].segments] for i in rows]
        first, second = [t[0] for t in texts], [t[1] for t in texts] if shape[0] == 2 else None
        if examples[rows[0]].is_question:
            _refuse_long_questions([examples[i] for i in rows], first, tokenizer, max_length)
        output = tokenizer(
            first,
            second,
            add_special_tokens=specials,
            truncation="only_second" if shape[1] else "longest_first",
            max_length=max_length,
            padding=False,
            return_attention_mask=False,
        )
        types = output.get("token_type_ids")
        for k, i in enumerate(rows):
            row_types = None if types is None else list(types[k])
            encoded[i] = _align(examples[i], output.encodings[k], row_types, len(prefix))
    return [e for e in encoded if e is not None]


def _align(example: _Example, encoding: Any, types: list[int] | None, prefix: int) -> Encoded:
    """`encoding`: a `tokenizers.Encoding`, whose offsets count characters of the joined words."""
    word_at = [_word_of_characters(words, prefix) for words in example.segments]
    segment = [-1 if s is None else s for s in encoding.sequence_ids]
    word_ids = [
        -1 if s < 0 else word_at[s][min(start, len(word_at[s]) - 1)]
        for s, (start, _) in zip(segment, encoding.offsets, strict=True)
    ]
    if not any(s >= 0 for s in segment):
        raise ValueError(f"input '{example.id}' has no token left; its words: {example.segments}")

    rationale = None
    if example.rationales is not None and any(r is not None for r in example.rationales):
        pairs = zip(example.rationales, example.segments, strict=True)
        bits = [given or [0] * len(words) for given, words in pairs]
        rationale = [0 if s < 0 else bits[s][w] for s, w in zip(segment, word_ids, strict=True)]

    answer = None
    if example.answer is not None:
        begin, end = (c + prefix for c in example.answer)
        context = [(t, *encoding.offsets[t]) for t in range(len(segment)) if segment[t] == 1]
        inside = [t for t, start, stop in context if start < end and stop > begin]
        whole = bool(inside) and context[-1][2] >= end
        answer = (inside[0], inside[-1]) if whole else (NO_ANSWER, NO_ANSWER)
    label, given = example.label, example.explanation
    if example.taught is not None and answer is None:
        label = example.taught[0]
    elif example.taught is not None:
        answer = example.taught[0], example.taught[1]
    if given is not None and len(given) != len(segment):
        raise ValueError(
            f"input '{example.id}' has {len(segment)} tokens and an explanation of {len(given)}; "
            "teacher and student must read a text alike"
        )

    return Encoded(
        id=example.id,
        input_ids=list(encoding.ids),
        token_type_ids=types,
        tokens=list(encoding.tokens),
        word_ids=word_ids,
        segment=segment,
        special=[s < 0 for s in segment],
        label=label,
        rationale=rationale,
        answer=answer,
        truncated=len(encoding.overflowing) > 0,
        words=example.segments,
        explanation=given,
    )


def _word_of_characters(words: list[str], prefix: int) -> list[int]:
    """For each character of the joined words, its word; a blank belongs to the word after it."""
    owner = [0] * prefix
    for i, word in enumerate(words):
        owner += [i] * (len(word) + (i > 0))
    return owner


def _is_byte_level(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Byte-level BPE writes a blank as `Ġ`. Its first word then needs one too, or it would be
    spelt differently from the same word later in the text."""
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    if pre_tokenizer is None:
        return False
    return any("Ġ" in piece for piece, _ in pre_tokenizer.pre_tokenize_str(" a"))


def _refuse_long_questions(
    examples: list[_Example], questions: list[str], tokenizer: Any, max_length: int
) -> None:
    ids = tokenizer(questions, add_special_tokens=False, return_attention_mask=False).input_ids
    room = max_length - tokenizer.num_special_tokens_to_add(pair=True)
    for example, tokens in zip(examples, ids, strict=True):
        if len(tokens) >= room:
            raise ValueError(
                f"the question of '{example.id}' has {len(tokens)} tokens and leaves no room for "
                f"its context in max_length={max_length}; raise max_length"
            )


def _examples(inputs: Sequence[Any] | Dataset) -> Iterable[_Example]:
    from datasets import Dataset

    if isinstance(inputs, str | Mapping):
        raise ValueError("encode takes a list of inputs; put a single text in a list")
    if not isinstance(inputs, Dataset) and not isinstance(inputs, Iterable):
        raise ValueError(f"inputs are a list of texts or a Dataset, not {checks.shown(inputs)}")
    if isinstance(inputs, Dataset):
        columns = inputs[:]  # one read: far faster than row by row
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            lesson = row.get("taught")
            yield replace(
                _from_row(row),
                taught=None if lesson is None else tuple(lesson),
                explanation=row.get("explanation"),
            )
        return
    for i, item in enumerate(inputs):
        if isinstance(item, Mapping):
            yield _from_row({"id": str(i), **item})
        elif isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(f"input {i} is a tuple of {len(item)}: a pair has two texts")
            yield _Example(str(i), [_words(text, i) for text in item])
        else:
            yield _Example(str(i), [_words(item, i)])


def _from_row(row: Mapping[str, Any]) -> _Example:
    """A row of `load_data`, or a mapping of the same fields."""
    if "question" in row and "context" in row:
        segments = [_words(row["question"], row["id"]), _words(row["context"], row["id"])]
        answer = _joined_answer(row) if row.get("answers") else None
        return _Example(row["id"], segments, answer=answer, is_question=True)
    if "words_a" in row:
        segments = [_words(row["words_a"], row["id"]), _words(row["words_b"], row["id"])]
        rationales = [row.get("rationale"), row.get("rationale_b")]
    elif "words" in row:
        segments, rationales = [_words(row["words"], row["id"])], [row.get("rationale")]
    else:
        raise ValueError(
            f"input '{row.get('id')}' has the fields {', '.join(row)}; "
            "need words, words_a and words_b, or question and context"
        )
    for bits, words in zip(rationales, segments, strict=True):
        if bits is not None and len(bits) != len(words):
            sizes = f"{len(bits)} rationale bits for {len(words)} words"
            raise ValueError(f"input '{row['id']}' has {sizes}")
    return _Example(row["id"], segments, row.get("label"), rationales)


def _words(text: Any, name: object) -> list[str]:
    if not isinstance(text, Iterable):
        raise ValueError(f"input '{name}': a text or a list of words, not {checks.shown(text)}")
    words = text.split() if isinstance(text, str) else list(text)
    if not all(isinstance(word, str) for word in words):
        raise ValueError(f"input '{name}': words must be strings; a pair is a tuple (a, b)")
    if not words or not all(words):
        raise ValueError(f"input '{name}' has no words, or an empty one: {words!r}")
    return words


def _joined_answer(row: Mapping[str, Any]) -> tuple[int, int]:
    """The first answer's place [from, to) in the context once its white space is single blanks."""
    context, answer = row["context"], row["answers"][0]
    start, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
    if context[start:end] != answer["text"] or not answer["text"].strip():
        raise ValueError(
            f"question '{row['id']}': the context has {context[start:end]!r} at {start}, "
            f"not the answer {answer['text']!r}"
        )
    start += len(answer["text"]) - len(answer["text"].lstrip())

    def joined(position: int) -> int:
        # Words and their single blanks before `position`, then the part of the word it is in.
        before = context[:position].split()
        opens_word = position == 0 or context[position - 1].isspace()
        return len(" ".join(before)) + (1 if before and opens_word else 0)

    return joined(start), joined(start) + len(" ".join(context[start:end].split()))


def collate(encoded: Sequence[Encoded], pad_id: int) -> Batch:
    """Pad on the right to the longest input and stack."""
    import torch

    if not encoded:
        raise ValueError("cannot make a batch of no inputs")
    width = max(len(e.input_ids) for e in encoded)

    def padded(rows: Sequence[Sequence[float]], fill: float, dtype: torch.dtype) -> Tensor:
        return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=dtype)

    inputs = {
        "input_ids": padded([e.input_ids for e in encoded], pad_id, torch.long),
        "attention_mask": padded([[1] * len(e.input_ids) for e in encoded], 0, torch.long),
    }
    types = [e.token_type_ids for e in encoded if e.token_type_ids is not None]
    if types:
        inputs["token_type_ids"] = padded(types, 0, torch.long)

    rationale = has_rationale = None
    if any(e.rationale is not None for e in encoded):
        rationale = padded([e.rationale or [] for e in encoded], 0, torch.float)
        has_rationale = rationale.sum(1) > 0

    return Batch(
        inputs=inputs,
        special=padded([e.special for e in encoded], False, torch.bool),
        segment=padded([e.segment for e in encoded], -1, torch.long),
        word_ids=padded([e.word_ids for e in encoded], -1, torch.long),
        labels=_labels(encoded),
        rationale=rationale,
        has_rationale=has_rationale,
        ids=[e.id for e in encoded],
        explanation=None
        if any(e.explanation is None for e in encoded)
        else padded([e.explanation or [] for e in encoded], 0, torch.float),
    )


def _labels(encoded: Sequence[Encoded]) -> Tensor | None:
    import torch

    if any(e.answer is not None for e in encoded):
        return torch.tensor([e.answer or (NO_ANSWER, NO_ANSWER) for e in encoded])
    known = [e.label for e in encoded if e.label is not None]
    if not known:
        return None
    if len(known) < len(encoded):
        missing = [e.id for e in encoded if e.label is None]
        raise ValueError(f"inputs without label in a labelled batch: {', '.join(missing)}")
    return torch.tensor(known)


def batch_indices(
    lengths: Sequence[int], batch_size: int, *, seed: int | None = None, mixed: bool = False
) -> list[list[int]]:
    """Every index once, in batches of texts of similar length, or of any length if `mixed`.

    Without a seed: sorted by length, for evaluation. With one: shuffled for training, sorted by
    length only within pools of `POOL_BATCHES` batches, and the batches shuffled again. Mixed ones
    are cut from the given order, or from the shuffled one.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size must be at least 1, not {batch_size}")
    order = list(range(len(lengths)))
    if seed is None:
        return _cut(order if mixed else sorted(order, key=lambda i: lengths[i]), batch_size)
    rng = random.Random(seed)
    rng.shuffle(order)
    if mixed:
        return _cut(order, batch_size)
    batches = []
    for pool in _cut(order, batch_size * POOL_BATCHES):
        batches += _cut(sorted(pool, key=lambda i: lengths[i]), batch_size)
    rng.shuffle(batches)
    return batches


def _cut(order: list[int], size: int) -> list[list[int]]:
    return [order[i : i + size] for i in range(0, len(order), size)]


def truncated_share(encoded: Sequence[Encoded]) -> float:
    """Which share of the texts lost its end to `max_length`."""
    return sum(e.truncated for e in encoded) / len(encoded) if encoded else 0.0
