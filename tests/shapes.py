"""The runs and evaluations of the GPU profiles in miniature: everything but their size.

`models(folder)` saves, for every model of the hub that a profile names, a tiny random one of its
architecture with the same kind of tokenizer and files; `sets(folder)` lays out every corpus as the
hub, or a local folder, has it, with a few made-up texts. `signature(spec)` is what is left of a
description without its size, and `shrunk(spec)` the same description with two steps on them.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.data.corpora import CorpusInfo, corpora
from tests import naming, tiny

PROFILES = ("gpu", "paper")
# the hub's name → the family of tests.tiny
MODELS = {
    "google/bigbird-roberta-base": "big_bird",
    "google-bert/bert-base-uncased": "bert",
    "FacebookAI/roberta-base": "roberta",
    "FacebookAI/roberta-large": "roberta",
    "google/electra-base-discriminator": "electra",
    "openai-community/gpt2-medium": "gpt2",
    "meta-llama/Llama-2-7b-hf": "llama",
    "allenai/scibert_scivocab_uncased": "bert",
    "distilbert-base-uncased": "distilbert",
}
VOCABULARY_ONLY = ("allenai/scibert_scivocab_uncased",)  # which has no tokenizer.json
LLAMA = "meta-llama/Llama-2-7b-hf"
ALIKE = {"smollm2": LLAMA}  # the packaged decoder is one of Llama's architecture, and large
STEPS, BATCH, LENGTH = 2, 4, 40
ROWS = {"train": 60, "dev": 24, "test": 60}  # before a dev set is cut from train
SMALL_OPTIONS = {"steps": 2, "samples": 4}
Spec = RunSpec | EvalSpec


# --- signatures -----------------------------------------------------------------------------------


def specs(profile: str) -> list[Spec]:
    """Every description of a profile, and those that it rests on."""
    found: dict[Spec, None] = {}
    for _, spec in naming.specs_of(profile):
        found |= dict.fromkeys(with_all(spec))
    return list(found)


def with_all(spec: Spec) -> Iterator[Spec]:
    """A description and all that is inside of it."""
    if isinstance(spec, EvalSpec):
        if spec.run:
            yield from with_all(spec.run)
        yield spec
        return
    extract, taught = spec.data.extract, spec.data.taught
    for origin in (spec.start, extract and extract.run, taught and taught.run):
        if origin:
            yield from with_all(origin)
    yield spec


def signature(spec: Spec) -> tuple[Any, ...]:
    """What decides which code a description runs: equal for descriptions that differ in size."""
    if isinstance(spec, EvalSpec):
        own = (spec.kind, spec.method, spec.variant, spec.target, spec.level, spec.protocol)
        names = tuple(name for name, _ in spec.options)
        return (*own, names, spec.split, role(spec.data), model(spec.run) if spec.run else ())
    optimiser = spec.optimiser
    return (
        model(spec),
        tuple((t.name, t.weight == 0, choices(t.options)) for t in spec.objective),
        (spec.update.name, choices(spec.update.options)),
        role(spec.data),
        (optimiser.precision, optimiser.mixed, optimiser.schedule, optimiser.clip is None),
        (optimiser.checkpoint.metric, optimiser.checkpoint.bound is None),
        tuple(signature(each) for each in spec.each_epoch),
        () if spec.start is None else (model(spec.start), len(spec.start.objective)),
    )


def model(run: RunSpec) -> tuple[Any, ...]:
    """Architecture and head."""
    m, name = run.model, ALIKE.get(run.model.name, run.model.name)
    kind = (MODELS.get(name, name), name in VOCABULARY_ONLY)
    return kind, m.task, m.head, m.specials, m.quirks, m.explainer, m.frozen > 0


def role(data: DataSpec) -> tuple[Any, ...]:
    """What kind of texts, and what is made of them."""
    info, extract, taught = corpora()[data.corpus], data.extract, data.taught
    return (
        info.task, len(info.labels), info.rationale is not None, data.words, bool(data.classes),
        extract and (extract.method, extract.variant, extract.shape, extract.order),
        taught and (taught.method, taught.variant),
    )  # fmt: skip


def choices(options: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    """Options: their words, and of numbers only that they are there."""
    return tuple((name, value if isinstance(value, str | bool) else "n") for name, value in options)


# --- descriptions in miniature --------------------------------------------------------------------


@cache
def shrunk(spec: Spec) -> Spec:
    """The same description of two steps on a few texts."""
    if isinstance(spec, EvalSpec):
        return replace(
            spec,
            run=shrunk(spec.run) if spec.run else None,
            data=small_data(spec.data),
            rows=4,
            options=small_options(spec.options),
        )
    small = {"epochs": 1, "batch_size": BATCH}
    if spec.optimiser.checkpoint.bound:  # a run that is lost would measure nothing
        rule = replace(spec.optimiser.checkpoint, bound=(spec.optimiser.checkpoint.bound[0], 1e9))
        small["checkpoint"] = rule
    terms = tuple(replace(t, options=small_options(t.options)) for t in spec.objective)
    frozen = min(spec.model.frozen, 1)
    layers = None if spec.model.layers is None else 2
    return replace(
        spec,
        data=small_data(spec.data),
        model=replace(
            spec.model,
            name=ALIKE.get(spec.model.name, spec.model.name),
            frozen=frozen,
            layers=layers,
        ),
        objective=terms,
        optimiser=replace(spec.optimiser, **small),
        each_epoch=tuple(shrunk(each) for each in spec.each_epoch),
        start=shrunk(spec.start) if spec.start else None,
        seed=0,
    )


def small_data(data: DataSpec) -> DataSpec:
    extract, taught = data.extract, data.taught
    if extract:
        options = small_options(extract.options)
        extract = replace(extract, run=shrunk(extract.run), options=options, percent=30)
    if taught:
        options = small_options(taught.options)
        taught = replace(taught, run=shrunk(taught.run), options=options)
    return replace(
        data, max_length=LENGTH, train_rows=STEPS * BATCH, dev_rows=BATCH, extract=extract,
        taught=taught,
    )  # fmt: skip


def small_options(options: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    known = {**SMALL_OPTIONS, "points": 2}
    return tuple((name, known.get(name, value)) for name, value in options)


def representatives(profiles: tuple[str, ...] = PROFILES) -> dict[tuple[Any, ...], Spec]:
    """Signature → one description in miniature, of all that the profiles ask for."""
    found: dict[tuple[Any, ...], Spec] = {}
    for profile in profiles:
        for spec in specs(profile):
            found.setdefault(signature(spec), shrunk(spec))
    return found


# --- models and sets ------------------------------------------------------------------------------


def models(folder: Path) -> None:
    """Tiny models under the names of the hub's, for ERLIB_MODELS."""
    for name, family in MODELS.items():
        place = folder / name
        shutil.copytree(tiny.directory(family), place)
        if name in VOCABULARY_ONLY:
            vocabulary = json.loads((place / "tokenizer.json").read_text())["model"]["vocab"]
            (place / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)))
            for file in ("tokenizer.json", "tokenizer_config.json"):
                (place / file).unlink()


def sets(folder: Path) -> Mapping[str, CorpusInfo]:
    """The registry, its hub entries pointing to folders here; sets that are local alone are laid
    out under `folder/local`, for ERLIB_DATA."""
    known = dict(corpora())
    for info in corpora().values():
        if info.hub is None:
            if "local" in info.sources and info.name != "esnli":
                _write_local(info, folder / "local" / info.name)
            continue
        place = folder / info.hub.id
        for split, pattern in info.hub.splits.items():
            file = place / pattern.replace("-*", "-00000-of-00001").replace("*", "0000")
            file.parent.mkdir(parents=True, exist_ok=True)
            rows = [_as_hub(info, record) for record in records(info, split)]
            pq.write_table(pa.Table.from_pylist(rows), file)
        known[info.name] = replace(info, hub=replace(info.hub, id=str(place), revision=None))
    return known


def records(info: CorpusInfo, split: str) -> list[dict[str, Any]]:
    """Made-up texts in the format of ERLIB_DATA; the same in every process."""
    draw = random.Random(f"{info.name} {split}")
    every = sorted({word for text in tiny.CORPUS for word in text.split()})
    return [_record(info, f"{info.name}-{split}-{i}", i, draw, every) for i in range(ROWS[split])]


def _record(
    info: CorpusInfo, name: str, number: int, draw: random.Random, words: list[str]
) -> dict[str, Any]:
    def text(length: int) -> list[str]:
        return draw.choices(words, k=length)

    body = [*text(draw.randint(6, 14)), f"no{number}"]
    if info.task == "span":
        start = draw.randrange(len(body))
        at = len(" ".join(body[:start])) + bool(start)
        answers = [{"text": body[start], "answer_start": at}]
        asked = {"context": " ".join(body), "question": "which film ?"}
        return {"id": name, **asked, "answers": answers}
    record: dict[str, Any] = {"id": name, "label": number % len(info.labels)}
    marked = [int(draw.random() < 0.3) for _ in body]
    marked[0] = 1
    if info.task == "pair":
        record |= {"text_a": " ".join(body), "text_b": " ".join(text(4))}
        return record | ({"rationale": marked, "tokens": body} if info.rationale else {})
    return record | {"text": " ".join(body), "tokens": body, "rationale": marked}


def _write_local(info: CorpusInfo, place: Path) -> None:
    place.mkdir(parents=True)
    for split in ROWS:
        lines = [json.dumps(record) for record in records(info, split)]
        (place / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _as_hub(info: CorpusInfo, record: dict[str, Any]) -> dict[str, Any]:
    """A record under the columns that the hub has for it."""
    assert info.hub is not None
    ours: dict[str, Any] = dict(record)
    if "label" in ours and info.hub.label_order:
        ours["label"] = info.hub.label_order.index(info.labels[record["label"]])
    if "tokens" in record:
        ours["evidences"] = [record["tokens"][0]]
        root = 4 if record["label"] else 0
        leaves = " ".join(f"({4 if m else 2} {t})" for t, m in
                          zip(record["tokens"], record["rationale"], strict=True))  # fmt: skip
        ours["tree"] = f"({root} {leaves})"
    if "answers" in ours:
        ours["answers"] = {name: [a[name] for a in ours["answers"]] for name in
                           ("text", "answer_start")}  # fmt: skip
    return {theirs: ours[name] for name, theirs in info.hub.columns.items()}



# --- what is run ----------------------------------------------------------------------------------


def few(found: Mapping[tuple[Any, ...], Spec]) -> list[Spec]:
    """Some of them, in which every architecture, head and explainer meets every loss, update, kind
    of text, evaluation and attribution that it meets anywhere."""
    seen: set[tuple[Any, ...]] = set()
    chosen = []
    for key, spec in found.items():
        if meets := set(pairs(key, spec)) - seen:
            seen |= meets
            chosen.append(spec)
    return chosen


def pairs(key: tuple[Any, ...], spec: Spec) -> Iterator[tuple[Any, ...]]:
    """(architecture, what it meets)"""
    if isinstance(spec, EvalSpec):
        kind, method, variant = key[:3]
        yield key[-1], kind, method, variant
        return
    m, objective, (update, *_), data, (precision, *_), *_ = key
    yield from ((m, name, options) for name, _, options in objective)
    yield from ((m, update), (m, data), (m, precision), (m, spec.start is None))
