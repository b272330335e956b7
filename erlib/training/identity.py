"""What does the name of a run or an evaluation cover?

The hash covers the description, the content of the rows it resolves to (so a corrected corpus or
another source makes another run) and the `version` of every head, objective, attribution and
evaluation involved. Rationales are named by the texts they are taken from and the run that takes
them, so that a run has its name before the one it rests on is trained. The device and the number
of threads are recorded in `provenance.json`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from datasets import Dataset

from erlib.attributions import method
from erlib.config import DataSpec, EvalSpec, Extraction, RunSpec, as_plain, digest
from erlib.data import fingerprint, load_data, select_rows
from erlib.data.preparation import prepared
from erlib.errors import unknown
from erlib.losses import OBJECTIVES
from erlib.models import jwa
from erlib.models.heads import HEADS
from erlib.models.learned_attention import EXPLAINERS, VERSION
from erlib.training.evaluations import kind
from erlib.training.students import OWN, answers, explanations, part_of
from erlib.training.updates import update_class


@lru_cache(maxsize=64)
def rows_of(data: DataSpec, split: str, rows: int | None) -> Dataset:
    """The rows that a description resolves to; for rationales, the texts they are taken from."""
    split = split if data.taught is None else OWN.get(split, split)
    part = split in OWN.values()
    texts = load_data(data.corpus, split="test" if part else split, source=data.source)
    texts = prepared(texts, words=data.words, classes=data.classes)
    return select_rows(part_of(texts, split) if part else texts, rows)


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
        "spec": as_plain(replace(spec, run=None)),
        "run": run_hash(spec.run) if spec.run else None,
        "rows": content_of(spec.data, spec.split, spec.rows),
        "versions": _eval_versions(spec),
        **_extraction(spec.data),
        **_teaching(spec.data),
    }
    return digest(identity)


def run_identity(spec: RunSpec) -> dict[str, Any]:
    """Everything that the hash of a run is taken of."""
    for part in spec.objective:
        if part.name not in OBJECTIVES:
            raise unknown("objective", part.name, OBJECTIVES)
    if spec.model.head not in HEADS:
        raise unknown("head", spec.model.head, HEADS)
    explainer = spec.model.explainer
    if explainer is not None and explainer not in EXPLAINERS:
        raise unknown("explainer", explainer, EXPLAINERS)
    return {
        "spec": as_plain(replace(spec, start=None)),
        "start": run_hash(spec.start) if spec.start else None,
        "train": content_of(spec.data, "train", spec.data.train_rows),
        "dev": content_of(spec.data, "dev", spec.data.dev_rows),
        "each_epoch": [eval_hash(e) for e in spec.each_epoch],
        "versions": {
            "objectives": {t.name: OBJECTIVES[t.name].version for t in spec.objective},
            "head": HEADS[spec.model.head].version,
            "update": update_class(spec.update).version,
            "scores": kind("predictions").version,  # of its epochs on dev
            **({} if explainer is None else {"explainer": VERSION}),
            **({"jwa": jwa.VERSION} if spec.model.name == "jwa" else {}),
        },
        **_extraction(spec.data),
        **_teaching(spec.data),
    }


def scoring(extract: Extraction, data: DataSpec, split: str, rows: int | None) -> EvalSpec:
    """The evaluation that scores the words from which `extract` takes its rationales."""
    return EvalSpec(
        extract.run,
        replace(
            data,
            max_length=extract.run.data.max_length,
            train_rows=None,
            dev_rows=None,
            extract=None,
        ),
        split,
        "word_scores",
        rows,
        method=extract.method,
        variant=extract.variant,
        level="word",
    )


def _extraction(data: DataSpec) -> dict[str, Any]:
    """What the name covers of the rationales: the run and the versions that they come from."""
    if data.extract is None:
        return {}
    versions = _eval_versions(scoring(data.extract, data, "train", None))
    return {"extract": {"run": run_hash(data.extract.run), "versions": versions}}


def _teaching(data: DataSpec) -> dict[str, Any]:
    """What the name covers of a student's lessons: the teacher and the versions they come from."""
    if data.taught is None:
        return {}
    versions = _eval_versions(answers(data.taught, data, "test", None))
    if data.taught.method:
        versions |= _eval_versions(explanations(data.taught, data, 1))
    return {"taught": {"run": run_hash(data.taught.run), "versions": versions}}


def _eval_versions(spec: EvalSpec) -> dict[str, int]:
    versions = {spec.kind: kind(spec.kind).version}
    if used := kind(spec.kind).uses:
        versions[used] = kind(used).version
    if spec.method:
        versions[spec.method] = method(spec.method).version
    return versions
