"""How do results travel? One file per paper and profile, from which its report can be made again.

`results/<paper>.zip` beside the reports has what a report was made of, and no word of a corpus:

    index.json     which paper, profile, source and seeds; the sha256 of every other member
    runs.json      status, description, metrics, history and provenance of runs, no model
    evals.json     the same of evaluations
    tables/*       the tables of both, those of the same columns one below the other (Parquet)
    notes.json     what notebooks measure themselves (see `notes`)
    facts.json     fingerprints and ids of the rows that names are made from, sizes of corpora

The sha256 of index.json is the archive's comment. Nothing in it depends on when and where it was
packed: the same store makes the same bytes.

What a report needs is found by making it from results alone and noting what it asks for. Tokens
and texts are left out; where words only tell which are the same, each is replaced by a number. A
column is kept in 32 bits where these hold every value exactly, in 64 otherwise: what comes out is
what went in, to the last bit.
"""

from __future__ import annotations

import io
import json
import lzma
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from erlib.checks import folder_name
from erlib.data.known import FACTS_FILE
from erlib.training.store import KINDS, Results, Store, damage, read_seal

VERSION = 1
INDEX = "index.json"
NOTES = "notes"
KEPT = ("spec.json", "metrics.json", "summary.json", "history.csv", "provenance.json", "log.txt")
FAILURE = "failure.json"
COMPARED = ("metrics.json", "summary.json", "history.csv")  # equal wherever the result is the same
WITHHELD = ("tokens", "text")  # columns of texts
NUMBERED = ("words",)  # columns of words of which only matters which are the same
PLAIN = ("id", "method", "method_a", "method_b", "kinds", "tags")  # other columns of strings
DAMAGED = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, lzma.LZMAError)
Tables = dict[str, pa.Table]  # path in its folder → table


def archive_file(paper: str, profile: str, root: Path) -> Path:
    """Where a paper's results are kept among the reports."""
    return root / "reports" / profile / "results" / f"{paper}.zip"


# --- packing --------------------------------------------------------------------------------------


def pack(
    file: Path,
    store: Results,
    facts: Mapping[str, Any],
    about: Mapping[str, Any],
) -> None:
    """Write the results that the store was asked for; `about` goes into the index.

    Tables that nobody read are left out, also those of evaluations from which others were made.
    """
    names = {kind: sorted(n for k, n in store.asked if k == kind) for kind in (*KINDS, NOTES)}
    names["evals"] = sorted({*names["evals"], *_origins(store, names["evals"])})
    results: dict[str, dict[str, Any]] = {}
    tables: dict[str, list[pa.Table]] = {}
    for kind in KINDS:
        results[kind] = {}
        for name in names[kind]:
            entry, found = _entry(store.root / kind / name, None if kind == "runs" else store.read)
            for path, table in found.items():
                member = _member_of(table)
                before = sum(len(t) for t in tables.setdefault(member, []))
                tables[member].append(table)
                entry["tables"][path] |= {"member": member, "first": before, "rows": len(table)}
            results[kind][name] = entry
    notes = {
        name: json.loads((store.root / NOTES / f"{name}.json").read_text(encoding="utf-8"))
        for name in names[NOTES]
    }
    members = {
        "runs.json": _json(results["runs"]),
        "evals.json": _json(results["evals"]),
        "notes.json": _json(notes),
        FACTS_FILE: _json(facts),
        **{member: _parquet(pa.concat_tables(parts)) for member, parts in sorted(tables.items())},
    }
    _write(file, {**about, "version": VERSION}, members)


def _origins(store: Results, names: Iterable[str]) -> Iterator[str]:
    """The evaluations from whose tables these were made, where the store has them."""
    for name in names:
        file = store.root / "evals" / name / "provenance.json"
        if file.exists():
            origin = json.loads(file.read_text(encoding="utf-8")).get("made_from")
            if origin and (store.root / "evals" / origin / "DONE").exists():
                yield origin


def _entry(folder: Path, read: set[Path] | None) -> tuple[dict[str, Any], Tables]:
    """What is kept of a sealed result as text; and of its tables those `read`, without words."""
    seal = read_seal(folder)
    texts = {
        name: (folder / name).read_text(encoding="utf-8") for name in KEPT if name in seal["sha256"]
    }
    if FAILURE in seal["sha256"]:
        failure = json.loads((folder / FAILURE).read_text(encoding="utf-8"))
        texts[FAILURE] = _json({**failure, "traceback": ""}).decode()
    found, described = {}, {}
    for path in seal["sha256"]:
        if path.endswith(".parquet") and (read is None or folder / path in read):
            found[path], widened = narrow(wordless(pq.read_table(folder / path)))
            described[path] = {"widened": widened}
    left = {
        path: digest
        for path, digest in {**seal["sha256"], **seal.get("dropped", {})}.items()
        if path not in texts and path not in found
    }
    return {"status": seal["status"], "files": texts, "tables": described, "left": left}, found


def wordless(table: pa.Table) -> pa.Table:
    """The table without the columns of texts, and with numbers for words."""
    for name in WITHHELD:
        if name in table.column_names:
            table = table.drop_columns([name])
    for place, name in enumerate(table.column_names):
        if name in NUMBERED and pa.types.is_list(table.schema.field(name).type):
            numbers: dict[str, str] = {}
            rows = [
                [numbers.setdefault(word.lower(), str(len(numbers))) for word in row]
                for row in table[name].to_pylist()
            ]
            table = table.set_column(place, name, pa.array(rows, pa.list_(pa.string())))
    strings = [f.name for f in table.schema if _has_strings(f.type) and f.name not in PLAIN]
    if unknown := [name for name in strings if name not in NUMBERED]:
        raise ValueError(
            f"columns {', '.join(unknown)} may have words of a corpus: name them in archive.py"
        )
    return table.replace_schema_metadata(None)


def _has_strings(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _has_strings(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def narrow(table: pa.Table) -> tuple[pa.Table, list[str]]:
    """The table with every column in 32 bits that these hold exactly; the names of those."""
    narrowed = []
    for place, field in enumerate(table.schema):
        half = _retyped(field.type, pa.float64(), pa.float32())
        if half == field.type:
            continue
        column = table[field.name].combine_chunks()
        small = column.cast(half, safe=False)
        if _same(small.cast(field.type), column):
            table = table.set_column(place, field.name, small)
            narrowed.append(field.name)
    return table, narrowed


def widen(table: pa.Table, names: Iterable[str]) -> pa.Table:
    """`narrow` undone."""
    for name in names:
        place = table.schema.get_field_index(name)
        kind = _retyped(table.schema.field(name).type, pa.float32(), pa.float64())
        table = table.set_column(place, name, table[name].cast(kind))
    return table


def _retyped(kind: pa.DataType, old: pa.DataType, new: pa.DataType) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_retyped(kind.value_type, old, new))
    return new if kind == old else kind


def _same(one: pa.Array, other: pa.Array) -> bool:
    while pa.types.is_list(one.type):
        one, other = one.flatten(), other.flatten()
    a, b = one.to_numpy(zero_copy_only=False), other.to_numpy(zero_copy_only=False)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _member_of(table: pa.Table) -> str:
    """Tables of the same columns go into the same member."""
    return f"tables/{sha256(str(table.schema).encode()).hexdigest()[:12]}.parquet"


def _parquet(table: pa.Table) -> bytes:
    names = [(f.name, _has_strings(f.type)) for f in table.schema]
    floats = [f.name for f in table.schema if pa.types.is_floating(f.type)]
    floats += [
        f"{f.name}.list.element"
        for f in table.schema
        if pa.types.is_list(f.type) and pa.types.is_floating(f.type.value_type)
    ]
    out = io.BytesIO()
    pq.write_table(
        table,
        out,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name, strings in names if strings],
        use_byte_stream_split=floats,
        store_schema=True,
    )
    return out.getvalue()


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=0, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _write(file: Path, about: Mapping[str, Any], members: Mapping[str, bytes]) -> None:
    index = {**about, "sha256": {n: sha256(data).hexdigest() for n, data in members.items()}}
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".tmp")
    with zipfile.ZipFile(unfinished, "w") as archive:
        for name, data in {INDEX: _json(index), **members}.items():
            how = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_LZMA
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=how)
        archive.comment = sha256(_json(index)).hexdigest().encode()
    unfinished.replace(file)


# --- reading --------------------------------------------------------------------------------------


class Archive:
    """An archive that was found intact, read member by member."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            with zipfile.ZipFile(file) as archive:
                self._members = {name: archive.read(name) for name in archive.namelist()}
                seal = archive.comment.decode()
        except FileNotFoundError:
            raise ValueError(
                f"there is no {file}; `python -m erlib results export` makes it where its runs are"
            ) from None
        except DAMAGED as error:
            raise ValueError(f"{file} is damaged ({error}): get it again") from None
        index = self._members.pop(INDEX, b"")
        if sha256(index).hexdigest() != seal:
            raise ValueError(f"{file} is damaged (its index has changed): get it again")
        self.index: dict[str, Any] = json.loads(index)
        if self.index["version"] != VERSION:
            raise ValueError(
                f"{file} has version {self.index['version']}, and this is erlib for version "
                f"{VERSION}: export it again"
            )
        found = {name: sha256(data).hexdigest() for name, data in self._members.items()}
        wrong = [
            name
            for name in sorted({*found, *self.index["sha256"]})
            if found.get(name) != self.index["sha256"].get(name)
        ]
        if wrong:
            raise ValueError(f"{file} is damaged ({', '.join(wrong)} changed): get it again")
        for name in self._names():
            folder_name(f"result or file (in {file})", name)

    def _names(self) -> Iterator[str]:
        """Every name of a file or folder that is made of it."""
        yield from self.json("notes.json")
        for kind in KINDS:
            for name, entry in self.json(f"{kind}.json").items():
                yield from (name, *entry["files"], *entry["left"])
                for path in entry["tables"]:
                    yield from path.split("/")

    def json(self, name: str) -> Any:
        """A member that is JSON."""
        return json.loads(self._members[name])

    def results(self) -> Iterator[tuple[str, str, dict[str, Any], Tables]]:
        """Kind, hash, entry and tables of every result."""
        tables = {
            name: pq.read_table(io.BytesIO(data))
            for name, data in self._members.items()
            if name.endswith(".parquet")
        }
        for kind in KINDS:
            for name, entry in self.json(f"{kind}.json").items():
                own = {
                    path: widen(tables[at["member"]].slice(at["first"], at["rows"]), at["widened"])
                    for path, at in entry["tables"].items()
                }
                yield kind, name, entry, own

    def texts(self) -> Iterator[str]:
        """Everything in it that is text, for whoever looks for words."""
        for name, data in self._members.items():
            if name.endswith(".json"):
                yield data.decode()
            else:
                table = pq.read_table(io.BytesIO(data))
                for field in table.schema:
                    if _has_strings(field.type):
                        yield " ".join(_flat(table[field.name].to_pylist()))


def _flat(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        elif value is not None:
            yield str(value)


def unpack(archive: Archive, store: Store) -> int:
    """Bring its results into a store; how many are new.

    What is there already stays. If it is not the same, nothing more is brought in.
    """
    new = 0
    for kind, name, entry, tables in archive.results():
        place = store.root / kind / name
        if (place / "DONE").exists() and not damage(place):
            if differ := _differences(place, entry, tables):
                raise ValueError(
                    f"{place} and {kind}/{name} of {archive.file} are not the same "
                    f"({', '.join(differ)}): import into another store (ERLIB_STORE), or remove one"
                )
            continue
        put = partial(_place, entry, tables)
        store.admit(kind, name, put, entry["status"], entry["left"])
        new += 1
    for name, note in archive.json("notes.json").items():
        file = store.root / NOTES / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(note) + "\n", encoding="utf-8")
    return new


def _place(entry: Mapping[str, Any], tables: Tables, folder: Path) -> None:
    for name, text in entry["files"].items():
        (folder / name).write_text(text, encoding="utf-8")
    for path, table in tables.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / path)


def _differences(folder: Path, entry: Mapping[str, Any], tables: Tables) -> list[str]:
    """In what a sealed result is not the one of an archive; how long it took does not count."""
    differ = [] if read_seal(folder)["status"] == entry["status"] else ["status"]
    for name in COMPARED:
        file = folder / name
        here = file.read_text(encoding="utf-8") if file.exists() else None
        if here != entry["files"].get(name):
            differ.append(name)
    for path, table in tables.items():
        file = folder / path
        if not file.exists() or not _equal(wordless(pq.read_table(file)), table):
            differ.append(path)
    return differ


def _equal(one: pa.Table, other: pa.Table) -> bool:
    return one.column_names == other.column_names and all(
        repr(one[name].to_pylist()) == repr(other[name].to_pylist()) for name in one.column_names
    )
