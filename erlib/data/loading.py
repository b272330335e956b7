"""How does one get a corpus, know what is in it, and know that it is the same one?"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pandas as pd

from erlib.data import absent
from erlib.data.absent import MissingCorpus
from erlib.data.corpora import SOURCES, CorpusInfo, corpora, corpus
from erlib.data.hub import hub_columns, hub_rows, hub_splits
from erlib.data.known import NeedsCorpus, facts, results_only
from erlib.data.local import data_dir, local_info, local_rows, local_splits, refuse_shared
from erlib.data.packaged import packaged_rows, prepare
from erlib.data.planted import parts_of, plant
from erlib.data.schema import to_dataset
from erlib.data.splits import SPLITS
from erlib.errors import unknown

if TYPE_CHECKING:
    from datasets import Dataset


@dataclass(frozen=True)
class CorpusReport:
    """What a corpus holds, what was left out of it, and on what terms."""

    name: str
    source: str
    sizes: Mapping[str, int]
    dropped: Mapping[str, int]  # rule → how many
    rationale: str | None  # human | phrase labels | lexicon
    rationale_share: float | None  # share of words in a rationale, over all splits that have one
    notes: tuple[str, ...]
    licence: str


def load_data(name: str, *, split: str = "train", source: str = "packaged") -> Dataset:
    """One split of a corpus, with the columns of its task (see `erlib.data.schema`).

    >>> load_data("movie_snippets", split="dev").column_names  # doctest: +SKIP
    ['id', 'words', 'label', 'rationale']
    """
    if results_only():
        raise NeedsCorpus(f"the corpus {name}")
    return read_split(name, split, source)


def read_split(name: str, split: str, source: str) -> Dataset:
    """As `load_data`, also where only results are read."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    if split not in SPLITS:
        raise unknown("split", split, SPLITS)
    absent.refuse((name, split, source))
    try:
        return _load(name, split, source, os.environ.get("ERLIB_DATA"))[0]
    except MissingCorpus as error:
        absent.remember((name, split, source), error)
        raise


@lru_cache(maxsize=64)
def _load(
    name: str, split: str, source: str, where: str | None
) -> tuple[Dataset, Mapping[str, int]]:
    """`where` (ERLIB_DATA) only keeps what was read from one folder apart from another.

    A corpus with planted reasons (`erlib.data.planted`) is made of the one its name begins with.
    """
    if (base := parts_of(name).base) != name:
        data, dropped = _load(base, split, source, where)
        return plant(data, name, split), dropped
    info = _info(name, source)
    dropped = dict[str, int]()
    if source == "packaged":
        rows = packaged_rows(name, split)
    elif source == "local":
        rows = local_rows(info, split)
        refuse_shared(name, where or "")
    else:
        rows, dropped = hub_rows(info, split)
    return to_dataset(rows, info.task, info.labels), dropped


def _info(name: str, source: str) -> CorpusInfo:
    info = local_info(name) if source == "local" else corpus(parts_of(name).base)
    name = info.name
    if source not in info.sources and not (source == "local" and local_splits(name)):
        fixes = {
            "packaged": "use the packaged source (--data packaged)",
            "local": f"put {name}/<split>.jsonl.gz under ERLIB_DATA and use the local source "
            f"(--data local); original home: {info.home}",
            "hub": "use the hub source (--data hub)",
        }
        raise MissingCorpus(
            f"corpus '{name}' cannot be had; tried {source}: it is not there; to fix: "
            + ", or ".join(fixes[other] for other in info.sources)
        )
    return info


def source_for(name: str, wanted: str) -> str:
    """`wanted`, or local for a set that the hub does not have, or cannot give while it is there
    under ERLIB_DATA."""
    if wanted != "hub":
        return wanted
    if known := facts():  # as it was when they were made
        read = {tuple(json.loads(place)[:2]) for place in known["contents"]}
        return "local" if (name, "local") in read else "hub"
    if corpus(name).hub is None:
        return "local"
    return _hub_or_local(name, os.environ.get("ERLIB_DATA"))


@lru_cache(maxsize=64)
def _hub_or_local(name: str, where: str | None) -> str:
    """`where` (ERLIB_DATA) only keeps what was found beside one folder apart from another."""
    info, here = corpus(name), local_splits(name)
    assert info.hub is not None
    if not here:
        return "hub"
    try:
        for split in hub_splits(info.hub):
            hub_columns(info, split)
    except MissingCorpus:
        return "local"
    return "hub"


def splits_of(name: str, source: str) -> list[str]:
    """The splits that a source has of a corpus; nothing is loaded."""
    return _splits(_info(name, source), source)


def _splits(info: CorpusInfo, source: str) -> list[str]:
    if source == "packaged":
        return list(SPLITS)
    if source == "local":
        return local_splits(info.name)
    return [] if info.hub is None else hub_splits(info.hub)


reports: dict[tuple[str, str], CorpusReport] = {}  # that this process asked for


def corpus_report(name: str, source: str = "packaged") -> CorpusReport:
    """What is there: loads every split of the corpus, or reads what an archive says of it."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    if known := facts():
        if (said := known["reports"].get(f"{source} {name}")) is None:
            raise NeedsCorpus(f"the corpus {name}")
        return CorpusReport(**{**said, "notes": tuple(said["notes"])})
    found = reports[name, source] = _counted(name, source)
    return found


def report_or_none(name: str, source: str) -> CorpusReport | None:
    """The same; nothing of a set that is a hole in this report."""
    try:
        return corpus_report(name, source)
    except MissingCorpus:
        if not absent.are_holes():
            raise
        return None


def reports_as_json() -> dict[str, Any]:
    """As an archive keeps them."""
    return {f"{source} {name}": asdict(said) for (name, source), said in reports.items()}


def _counted(name: str, source: str) -> CorpusReport:
    info = _info(name, source)
    splits = _splits(info, source)
    if not splits:
        read_split(name, "train", source)  # raises, and says what would fix it
    import pyarrow.compute as pc

    sizes, dropped, marked, words = {}, dict[str, int](), 0, 0
    base, rule, _ = parts_of(name)
    seen: dict[str, str] = {}
    for split in splits:
        data, left_out = _load(name, split, source, os.environ.get("ERLIB_DATA"))
        sizes[split] = len(data)
        for rule, count in left_out.items():
            dropped[rule] = dropped.get(rule, 0) + count
        for row_id in data["id"][:]:
            if row_id in seen:
                raise ValueError(f"{name}: id '{row_id}' is in {seen[row_id]} and in {split}")
            seen[row_id] = split
        for column in {"rationale", "rationale_b"} & set(data.column_names):
            bits = pc.list_flatten(data.data.column(column))
            marked, words = marked + (pc.sum(bits).as_py() or 0), words + len(bits)
    notes = [info.note] if info.note else []
    if source == "packaged":
        dropped, notes = dict(prepare(base).dropped), [*prepare(base).notes, *notes]
    elif source == "local" and (both := refuse_shared(base, os.environ.get("ERLIB_DATA", ""))):
        notes.append(f"{both} texts are in two splits, as they were published")
    if info.rationale == "lexicon":
        notes.append("rationales are lexicon rationales, not human annotations of these texts")
    if rule is not None:
        notes.append(f"half of the labels are drawn anew and say what is planted: rule '{rule}'")
    kind = (info.rationale or "human") if words else None
    share = marked / words if words else None
    return CorpusReport(name, source, sizes, dropped, kind, share, tuple(notes), info.licence)


def fingerprint(dataset: Dataset) -> str:
    """sha256 (hex) of the content of all columns in order: equal data, equal fingerprint."""
    digest = hashlib.sha256()
    for name in dataset.column_names:
        values = {"column": name, "values": dataset[name][:]}
        digest.update(json.dumps(values, ensure_ascii=False, sort_keys=True).encode())
    return digest.hexdigest()


def select_rows(dataset: Dataset, n: int | None) -> Dataset:
    """The `n` rows with the smallest sha256 of their id, in that order; None: all, as they are.

    A larger `n` only adds rows, and no seed is involved.
    """
    if n is None:
        return dataset
    if n < 1:
        raise ValueError(f"the number of rows must be at least 1, not {n}")
    hashes = [hashlib.sha256(str(row_id).encode()).hexdigest() for row_id in dataset["id"][:]]
    order = sorted(range(len(hashes)), key=hashes.__getitem__)
    return dataset.select(order[:n])


def list_corpora() -> pd.DataFrame:
    """The registry as a table: nothing is loaded."""
    return pd.DataFrame(
        {
            "corpus": info.name,
            "task": info.task,
            "classes": len(info.labels) or None,
            "sources": ", ".join(info.sources),
            "hub id": info.hub.id if info.hub else "",
            "rationale": info.rationale or "",
            "licence": info.licence,
            "note": info.note,
        }
        for info in corpora().values()
    )


def corpora_of(source: str) -> list[str]:
    """The corpora that may be had from a source; your own come last."""
    names = [info.name for info in corpora().values() if source in info.sources]
    root = data_dir()
    if source == "local" and root is not None and root.is_dir():
        own = sorted(path.name for path in root.iterdir() if path.is_dir())
        names += [name for name in own if name not in corpora() and local_splits(name)]
    return names


def check_corpora(source: str) -> pd.DataFrame:
    """Try every corpus of a source; one row each: what came, what the papers expect, what to do."""
    if source not in SOURCES:
        raise unknown("source", source, SOURCES)
    rows: list[dict[str, object]] = []
    for name in corpora_of(source):
        # Without a network every hub corpus would wait half a minute for the same answer.
        offline = source == "hub" and bool(rows) and "Couldn't reach" in str(rows[-1]["note"])
        rows.append(_check(name, source) if not offline else {**rows[-1], "corpus": name})
    return pd.DataFrame(rows)


def _check(name: str, source: str) -> dict[str, object]:
    info = corpora().get(name)
    papers = info.expected.items() if info else ()
    expected = "; ".join(f"{paper} {_sizes(sizes)}" for paper, sizes in papers)
    row: dict[str, object] = {"corpus": name, "source": source, "status": "ok", "sizes": ""}
    row |= {"expected": expected, "rationale": "", "note": ""}
    try:
        report = corpus_report(name, source)
        row |= {"sizes": _sizes(report.sizes), "rationale": report.rationale or ""}
        row["note"] = "; ".join(report.notes)
    except FileNotFoundError as error:
        row |= {"status": "missing", "note": str(error)}
    except ValueError as error:
        row |= {"status": "error", "note": str(error)}
    except Exception as error:  # of a library, on one corpus: the others are to be told of too
        row |= {"status": "error", "note": f"{type(error).__name__}: {error}"}
    return row


def _sizes(sizes: Mapping[str, int]) -> str:
    return " / ".join(f"{sizes[split]:,}" if split in sizes else "–" for split in SPLITS)
