"""How is a corpus read from the folder that ERLIB_DATA names?

`<ERLIB_DATA>/<name>/<split>.jsonl.gz`, or `.jsonl`: UTF-8, one JSON object per line, with `id`,
`label`, and `text` (`text_a` and `text_b` for pairs; `context`, `question`, `answers` for
questions), optionally `tokens`, `rationale`, `tokens_b`, `rationale_b`, or an SST `tree`. e-SNLI
may also be there as its original `esnli_<split>*.csv`. A corpus the registry does not know is read
all the same: its task and its number of classes are taken from the files. No id and no text may be
in two splits.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from erlib.checks import folder_name
from erlib.data.absent import MissingCorpus
from erlib.data.corpora import CorpusInfo, corpora
from erlib.data.planted import parts_of
from erlib.data.rationales import indexed_rationale, majority, starred_rationale
from erlib.data.schema import MOST_CLASSES, Row, read_record
from erlib.data.splits import SPLITS, Shared, shared_by_splits
from erlib.errors import unknown


def data_dir() -> Path | None:
    """`$ERLIB_DATA`, where local data are."""
    return Path(os.environ["ERLIB_DATA"]) if os.environ.get("ERLIB_DATA") else None


def local_splits(name: str) -> list[str]:
    """The splits that exist for a corpus."""
    return [split for split in SPLITS if _files(name, split)]


def local_info(name: str) -> CorpusInfo:
    """The registry's entry, or one made from the files of a corpus of your own; of one with planted
    reasons that of the corpus they are planted in."""
    name = parts_of(name).base
    if name in corpora():
        return corpora()[name]
    if not local_splits(name):
        raise unknown("corpus", name, corpora())
    labels: list[int] = []
    task = ""
    for split in local_splits(name):
        for path in _files(name, split):
            for number, record in _json_lines(path):
                if "question" in record:
                    found = "span"
                else:
                    found = "pair" if "text_a" in record else "classify"
                if task not in ("", found):
                    raise _bad(path, number, f"a {found} record in a {task} corpus")
                task = found
                label = record.get("label")
                if type(label) is int:
                    if label >= MOST_CLASSES:
                        raise _bad(path, number, f"label {label}: number the classes from 0 on")
                    labels.append(label)
    names = tuple(str(i) for i in range(max(labels, default=-1) + 1)) if task != "span" else ()
    return CorpusInfo(name=name, task=task, sources=("local",), labels=names, note="your own data")


def local_rows(info: CorpusInfo, split: str) -> list[Row]:
    """The rows of one split, every record checked."""
    paths = _files(info.name, split)
    if not paths:
        raise _missing(info, split)
    rows: list[Row] = []
    seen: dict[str, str] = {}
    for path in paths:
        lines, read = (
            (_csv_lines(path), read_esnli) if path.suffix == ".csv" else (_json_lines(path), None)
        )
        before = len(rows)
        for number, record in lines:
            row = _checked(path, number, record, read, info)
            if row["id"] in seen:
                raise _bad(path, number, f"id '{row['id']}' was used in {seen[row['id']]}")
            seen[row["id"]] = f"{path.name}, line {number}"
            rows.append(row)
        if len(rows) == before:
            raise _bad(path, 1, "the file has no record; remove it, or give it some")
    return rows


@lru_cache(maxsize=64)
def refuse_shared(name: str, where: str) -> int:
    """An error if two splits of a corpus share ids or texts; how many texts, where they may.

    They may in e-SNLI's original files, which are read as they were published. `where`
    (ERLIB_DATA) only keeps one folder's corpora apart from another's.
    """
    info, splits = local_info(name), local_splits(name)
    shared = shared_by_splits({split: local_rows(info, split) for split in splits})
    published = any(path.suffix == ".csv" for split in splits for path in _files(name, split))
    for what, found in (("id", shared.ids), ("text", [] if published else shared.texts)):
        if found:
            raise ValueError(_in_two_splits(name, what, found))
    return len(shared.texts)


def _in_two_splits(name: str, what: str, found: list[Shared]) -> str:
    """How many, and the first two."""
    examples = ", ".join(f"{one.shown!r} ({' and '.join(one.splits)})" for one in found[:2])
    count = f"{len(found)} {what}{'s' * (len(found) > 1)}"
    return (
        f"corpus '{name}': {count} in two splits, such as {examples}; what a model is tested on "
        "it may not be trained on: leave each in one of them"
    )


def _checked(
    path: Path,
    number: int,
    record: dict[str, Any],
    read: Callable[[dict[str, Any]], dict[str, Any]] | None,
    info: CorpusInfo,
) -> Row:
    try:
        record = read(record) if read else record
        classes = len(info.labels)
        return read_record(record, task=info.task, classes=classes, lowercase=info.lowercase)
    except ValueError as error:
        raise _bad(path, number, str(error)) from None


def read_esnli(record: dict[str, Any]) -> dict[str, Any]:
    """A line of the e-SNLI CSV. A word is in the rationale if most annotators starred it (train
    has one annotator, dev and test three)."""
    names = {"entailment": 0, "neutral": 1, "contradiction": 2}
    if record.get("gold_label") not in names:
        raise ValueError(f"gold_label {record.get('gold_label')!r} is none of {', '.join(names)}")
    made = {"id": record.get("pairID"), "label": names[record["gold_label"]]}
    for side, text, bits in (("1", "text_a", "rationale"), ("2", "text_b", "rationale_b")):
        sentence = record.get(f"Sentence{side}") or ""
        made[text] = sentence
        annotators = []
        for person in ("1", "2", "3"):
            starred = record.get(f"Sentence{side}_marked_{person}")
            indices = record.get(f"Sentence{side}_Highlighted_{person}")
            if starred:
                annotators.append(starred_rationale(sentence, starred))
            elif indices:
                annotators.append(indexed_rationale(sentence, indices))
        if annotators:
            made[bits] = majority(annotators)
    return made


def _files(name: str, split: str) -> list[Path]:
    folder_name("corpus", name)
    root = data_dir()
    if root is None:
        return []
    found = [p for end in (".jsonl.gz", ".jsonl") if (p := root / name / f"{split}{end}").exists()]
    if len(found) > 1:
        raise ValueError(f"{found[0]} and {found[1].name} are both there; remove one of them")
    if found:
        return found
    return sorted((root / name).glob(f"esnli_{split}*.csv")) if name == "esnli" else []


def _json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in _lines(path):
        try:
            yield number, _record(line)
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 ({error.reason}); save the file as UTF-8"
            raise _bad(path, number, problem) from None
        except json.JSONDecodeError as error:
            problem = f"malformed JSON ({error.msg}); write one complete object per line"
            raise _bad(path, number, problem) from None
        except (ValueError, RecursionError) as error:
            raise _bad(path, number, str(error)) from None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise _bad(path, number + 1, f"not a whole gzip file ({error}); pack it again") from None
    except OSError as error:
        raise _bad(path, number + 1, f"it cannot be read ({error.strerror or error})") from None


def _record(line: bytes) -> dict[str, Any]:
    text = line.decode("utf-8")
    if not text.strip():
        raise ValueError("the line is empty; remove it")
    record = json.loads(text)
    if not isinstance(record, dict):
        raise ValueError("not a JSON object; write one {…} per line")
    if "\\ud" in text.lower():  # one half of a surrogate pair is no character
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("an escaped surrogate (\\ud…) has no other half; mend it") from None
    return record


def _csv_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            for record in reader:
                yield reader.line_num, dict(record)
    except UnicodeDecodeError as error:
        raise _bad(path, 0, f"not UTF-8 ({error.reason}); save the file as UTF-8") from None
    except csv.Error as error:
        raise _bad(path, reader.line_num, f"malformed CSV ({error})") from None


def _bad(path: Path, number: int, problem: str) -> ValueError:
    return ValueError(f"{path}, line {number}: {problem}")


def _missing(info: CorpusInfo, split: str) -> MissingCorpus:
    root = data_dir()
    wanted = f"{info.name}/{split}.jsonl.gz"
    if root is None:
        tried, fix = "ERLIB_DATA is not set", f"set ERLIB_DATA to the folder that holds {wanted}"
    else:
        here = ", ".join(local_splits(info.name)) or "none"
        tried = f"{root / wanted} does not exist (splits there: {here})"
        fix = f"put it there; original home: {info.home}" if info.home else "put it there"
    return MissingCorpus(
        f"corpus '{info.name}', split '{split}', cannot be had; tried local: {tried}; to fix: {fix}"
    )
