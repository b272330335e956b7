"""Which columns does a corpus have, and what makes a row valid?

    classify   id, words, label[, rationale]
    pair       id, words_a, words_b, label[, rationale[, rationale_b]]
    span       id, context, question, answers

Every row of every source passes through `read_record`, so bad data is refused where it enters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from erlib.data.rationales import parse_tree, phrase_rationale

if TYPE_CHECKING:
    from datasets import Dataset

TASKS = ("classify", "pair", "span")
MOST_CLASSES = 10_000  # more are a mistake
Row = dict[str, Any]


def read_record(
    record: Mapping[str, Any], *, task: str, classes: int, lowercase: bool = False
) -> Row:
    """One record of the ERLIB_DATA format as a row of our columns, or a ValueError saying why not.

    A `tree` becomes a phrase-label rationale; `tokens` are the words where they are given,
    otherwise the text is split on white space.
    """
    row: Row = {"id": _string(record, "id")}
    if task == "span":
        row |= {name: _string(record, name) for name in ("context", "question")}
        row["answers"] = _answers(record, row["context"])
        return row
    if task == "pair":
        row["words_a"] = _words(record, "text_a", "tokens", lowercase)
        row["words_b"] = _words(record, "text_b", "tokens_b", lowercase)
        row |= _bits(record, "rationale", row["words_a"])
        row |= _bits(record, "rationale_b", row["words_b"])
    elif "tree" in record:
        leaves = (root := parse_tree(_string(record, "tree"))).leaves()
        row["words"] = [str(leaf.word) for leaf in leaves]
        if record.get("tokens", row["words"]) != row["words"]:
            raise ValueError("tokens are not the leaves of the tree; remove one of the two fields")
        row["words"] = [w.lower() for w in row["words"]] if lowercase else row["words"]
        row["rationale"] = phrase_rationale(root)
    else:
        row["words"] = _words(record, "text", "tokens", lowercase)
        row |= _bits(record, "rationale", row["words"])
    row["label"] = _label(record, classes)
    return row


def to_dataset(rows: Sequence[Row], task: str, labels: Sequence[str]) -> Dataset:
    """Rows as a `Dataset`; a rationale column exists where at least one row has a rationale."""
    import pyarrow as pa
    from datasets import ClassLabel, Dataset, Features, List, Value

    features: dict[str, Any] = {"id": Value("string")}
    if task == "span":
        features |= {"context": Value("string"), "question": Value("string")}
        features["answers"] = List({"text": Value("string"), "answer_start": Value("int64")})
    else:
        names = ["words"] if task == "classify" else ["words_a", "words_b"]
        features |= {name: List(Value("string")) for name in names}
        features["label"] = ClassLabel(names=list(labels))
        for name in ("rationale", "rationale_b"):
            if any(row.get(name) is not None for row in rows):
                features[name] = List(Value("int8"))
    columns = {name: [row.get(name) for row in rows] for name in features}
    return Dataset(pa.table(columns, schema=Features(features).arrow_schema))


def _string(record: Mapping[str, Any], name: str) -> str:
    if name not in record:
        raise ValueError(f"field '{name}' is missing; the record has {', '.join(record)}")
    value = record[name]
    if not isinstance(value, str):
        raise ValueError(f"field '{name}' must be a string, not {type(value).__name__}")
    if not value.strip():
        raise ValueError(f"field '{name}' is empty; remove the record or give it a text")
    return value


def _words(record: Mapping[str, Any], text: str, tokens: str, lowercase: bool) -> list[str]:
    words = record.get(tokens)
    if words is None:
        words = _string(record, text).split()
    elif not isinstance(words, list) or not all(isinstance(w, str) and w.strip() for w in words):
        raise ValueError(f"field '{tokens}' must be a list of non-empty strings")
    if not words:
        raise ValueError(f"field '{tokens}' is empty; remove the record or give it words")
    return [w.lower() for w in words] if lowercase else words


def _bits(record: Mapping[str, Any], name: str, words: list[str]) -> Row:
    bits = record.get(name)
    if bits is None:
        return {}
    if not isinstance(bits, list) or not all(type(b) is int and b in (0, 1) for b in bits):
        raise ValueError(f"field '{name}' must be a list of 0 and 1")
    if len(bits) != len(words):
        raise ValueError(
            f"field '{name}' has {len(bits)} entries for {len(words)} words; "
            "give one 0 or 1 per word"
        )
    return {name: bits}


def _label(record: Mapping[str, Any], classes: int) -> int:
    if "label" not in record:
        raise ValueError(f"field 'label' is missing; the record has {', '.join(record)}")
    label = record["label"]
    if type(label) is not int:
        raise ValueError(f"label {label!r} is no whole number; number the classes from 0 on")
    if not 0 <= label < classes:
        raise ValueError(f"label {label!r} is out of range; use an integer from 0 to {classes - 1}")
    return label


def _answers(record: Mapping[str, Any], context: str) -> list[Row]:
    answers = record.get("answers")
    if not isinstance(answers, list) or not answers:
        raise ValueError("field 'answers' must be a list of {text, answer_start}, not empty")
    for answer in answers:
        if not isinstance(answer, dict) or {"text", "answer_start"} - set(answer):
            raise ValueError("an answer needs 'text' and 'answer_start'")
        text, start = answer["text"], answer["answer_start"]
        if not isinstance(text, str) or not text.strip() or type(start) is not int:
            raise ValueError("an answer has a text, and in answer_start a whole number")
        if start < 0 or context[start : start + len(text)] != text:
            raise ValueError(f"the context does not have the answer {text!r} at character {start}")
    return [{"text": a["text"], "answer_start": a["answer_start"]} for a in answers]
