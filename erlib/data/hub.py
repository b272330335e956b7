"""How is a corpus read from the hub?

By `datasets.load_dataset` on parquet files alone: no loading script is run and no remote code is
trusted. Sets that only have a script are read from their `refs/convert/parquet` branch. A
directory with parquet files in the same layout works in place of a hub id.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from erlib.data.absent import MissingCorpus
from erlib.data.corpora import CorpusInfo, HubEntry
from erlib.data.rationales import evidence_rationale
from erlib.data.schema import Row, read_record
from erlib.data.splits import split_of
from erlib.hub import reachable

if TYPE_CHECKING:
    from datasets import Dataset


def hub_splits(entry: HubEntry) -> list[str]:
    """The splits that the hub can give, dev included where it is cut from train."""
    known = {*entry.splits, *(["dev"] if entry.dev_share else [])}
    return [split for split in ("train", "dev", "test") if split in known]


def hub_rows(info: CorpusInfo, split: str) -> tuple[list[Row], dict[str, int]]:
    """The rows of one split, and how many were left out by which rule."""
    entry = _entry(info)
    if split not in hub_splits(entry):
        raise MissingCorpus(
            f"corpus '{info.name}' has no split '{split}' on the hub; it has: "
            f"{', '.join(hub_splits(entry))}"
        )
    theirs = split if split in entry.splits else "train"
    shares = {"train": 1 - entry.dev_share, "dev": entry.dev_share}
    dropped: Counter[str] = Counter()
    rows = []
    found = _load(info, entry, theirs)
    _check_columns(info, entry, found.column_names)
    for number, raw in enumerate(found):
        row_id = f"{info.name}-{theirs}-{number}"
        if entry.dev_share and split != "test" and split_of(row_id, shares) != split:
            continue
        record = {ours: raw[column] for ours, column in entry.columns.items()}
        row = _row(info, entry, {"id": row_id, **record}, dropped)
        if row is not None:
            rows.append(row)
    return rows, dict(dropped)


def _check_columns(info: CorpusInfo, entry: HubEntry, found: list[str]) -> None:
    if lacking := [column for column in entry.columns.values() if column not in found]:
        raise MissingCorpus(
            f"corpus '{info.name}' cannot be had; tried hub: {entry.id} has no column "
            f"{', '.join(lacking)}, but {', '.join(found)}; to fix: give its revision in "
            f"corpora.toml, or put {info.name}/<split>.jsonl.gz under ERLIB_DATA"
        )


def hub_columns(info: CorpusInfo, split: str) -> None:
    """An error if this split's files or columns are not those of the registry; reads no row."""
    entry = _entry(info)
    theirs = split if split in entry.splits else "train"
    if split not in hub_splits(entry):
        hub_rows(info, split)  # raises
    found = _load(info, entry, theirs, streaming=True)
    _check_columns(info, entry, found.column_names or list(next(iter(found))))


def _row(
    info: CorpusInfo, entry: HubEntry, record: dict[str, Any], dropped: Counter[str]
) -> Row | None:
    if "tree" in record:  # SST: the root's label, 0 to 4, 2 neutral
        root = int(record["tree"].lstrip("( ")[0])
        if root == 2:
            dropped["neutral root"] += 1
            return None
        record["label"] = int(root > 2)
    if entry.unlabelled is not None and record["label"] == entry.unlabelled:
        dropped["no agreed label"] += 1
        return None
    if entry.label_order is not None:
        record["label"] = info.labels.index(entry.label_order[record["label"]])
    if isinstance(record.get("answers"), dict):  # the hub keeps lists inside one record
        texts, starts = record["answers"]["text"], record["answers"]["answer_start"]
        pairs = zip(texts, starts, strict=True)
        record["answers"] = [{"text": t, "answer_start": s} for t, s in pairs]
    evidences = record.pop("evidences", None)
    try:
        classes = len(info.labels)
        row = read_record(record, task=info.task, classes=classes, lowercase=info.lowercase)
    except ValueError as error:
        raise ValueError(f"{entry.id}, row '{record['id']}': {error}") from None
    if evidences is not None:
        words = row["words"] if info.task == "classify" else row["words_a"]
        spans = [e.lower() for e in evidences] if info.lowercase else evidences
        row["rationale"], missing = evidence_rationale(words, spans)
        dropped["evidence spans not found in their text"] += missing
    return row


def _entry(info: CorpusInfo) -> HubEntry:
    if info.hub is None:
        raise MissingCorpus(
            f"corpus '{info.name}' has no verified id on the hub; put it under ERLIB_DATA as "
            f"{info.name}/<split>.jsonl.gz and use the local source; original home: {info.home}"
        )
    return info.hub


def _load(
    info: CorpusInfo, entry: HubEntry, split: str, *, streaming: bool = False
) -> Dataset:
    import datasets

    # Naming the files keeps every other loader out, and fetches no other split. The card's sizes
    # are of all splits together, so they are not compared; `data check` shows ours.
    there = Path(entry.id).is_dir() or reachable()
    files = {split: entry.splits[split]}
    options = {"verification_mode": "no_checks", "streaming": streaming and there}
    try:
        return datasets.load_dataset(
            entry.id, data_files=files, split=split, revision=entry.revision, **options
        )
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MissingCorpus(
            f"corpus '{info.name}' cannot be had; tried hub: {entry.id} ({reason}); to fix: run "
            f"`python -m erlib data check --source hub` with access to the hub, or put "
            f"{info.name}/<split>.jsonl.gz under ERLIB_DATA and use the local source"
        ) from error
