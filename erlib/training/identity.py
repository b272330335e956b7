"""What does the name of a run or an evaluation cover?

The hash covers the description, the content of the rows it resolves to (so a corrected corpus or
another source makes another run) and the `version` of every head, objective, attribution and
evaluation involved. The device and the number of threads are recorded in `provenance.json`.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

from datasets import Dataset

from erlib.attributions import method
from erlib.config import DataSpec, EvalSpec, RunSpec, digest
from erlib.data import fingerprint, load_data, select_rows
from erlib.errors import unknown
from erlib.losses import OBJECTIVES
from erlib.models.heads import HEADS
from erlib.training.evaluations import kind


@lru_cache(maxsize=64)
def rows_of(data: DataSpec, split: str, rows: int | None) -> Dataset:
    """The rows that a description resolves to."""
    return select_rows(load_data(data.corpus, split=split, source=data.source), rows)


@lru_cache(maxsize=256)
def content_of(data: DataSpec, split: str, rows: int | None) -> str:
    """The fingerprint of those rows."""
    return fingerprint(rows_of(data, split, rows))


@lru_cache(maxsize=4096)
def run_hash(spec: RunSpec) -> str:
    """The name of a run in the store."""
    return digest(run_identity(spec))


@lru_cache(maxsize=4096)
def eval_hash(spec: EvalSpec) -> str:
    """The name of an evaluation in the store; `spec.run` may be None (an each-epoch one)."""
    identity = {
        "spec": asdict(replace(spec, run=None)),
        "run": run_hash(spec.run) if spec.run else None,
        "rows": content_of(spec.data, spec.split, spec.rows),
        "versions": _eval_versions(spec),
    }
    return digest(identity)


def run_identity(spec: RunSpec) -> dict[str, Any]:
    """Everything that the hash of a run is taken of."""
    for part in spec.objective:
        if part.name not in OBJECTIVES:
            raise unknown("objective", part.name, OBJECTIVES)
    if spec.model.head not in HEADS:
        raise unknown("head", spec.model.head, HEADS)
    return {
        "spec": asdict(spec),
        "train": content_of(spec.data, "train", spec.data.train_rows),
        "dev": content_of(spec.data, "dev", spec.data.dev_rows),
        "each_epoch": [eval_hash(e) for e in spec.each_epoch],
        "versions": {
            "objectives": {t.name: OBJECTIVES[t.name].version for t in spec.objective},
            "head": HEADS[spec.model.head].version,
        },
    }


def _eval_versions(spec: EvalSpec) -> dict[str, int]:
    versions = {spec.kind: kind(spec.kind).version}
    if used := kind(spec.kind).uses:
        versions[used] = kind(used).version
    if spec.method:
        versions[spec.method] = method(spec.method).version
    return versions
