"""What is a run, and what is an evaluation? Frozen descriptions with a canonical form.

A description says everything that decides the numbers of a run and nothing else; its hash
(`erlib.training.identity`) is the name under which the run is stored and shared by all notebooks.
Names stay: what is equal is written alike (`as_plain`), and a new field is `later`. A description
checks itself when it is made, as far as it can without what is registered elsewhere.
"""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from erlib import checks
from erlib.catalogue import papers
from erlib.errors import unknown

SOURCES = ("packaged", "local", "hub")
PROFILES = ("quick", "cpu", "night", "gpu", "paper")
EXECUTORS = ("local",)
WORDS = ("all", "alphanumeric")
SCHEDULES = ("linear", "constant")
PRECISIONS = ("fp32", "tf32", "bf16")
SPLITS = ("train", "dev", "test", "learnt", "unseen")  # the last two are of `training.students`
SHAPES = ("top_k", "contiguous")
ORDERS = ("document", "score")
TASKS = ("classify", "span")
TARGETS = ("predicted", "gold")
LEVELS = ("word", "token")
MODES = ("min", "max")


def later(default: Any) -> Any:
    """A field that the canonical form leaves out at its default: a new option renames no run."""
    return field(default=default, metadata={"later": True})


Choices = tuple[tuple[str, Any], ...]  # options by name


@dataclass(frozen=True)
class Description:
    """What all descriptions share: lists are tuples, and options are in the order of their names.

    So one that was read from a file equals the one that was written. Every field has the type that
    it is declared with.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "options" and isinstance(value, Mapping):
                value = tuple(value.items())
            object.__setattr__(self, f.name, _hashable(value))
        checks.refuse_types(self)
        if options := getattr(self, "options", ()):
            names = [name for name, _ in options]
            if twice := [name for name in names if names.count(name) > 1]:
                raise ValueError(f"{type(self).__name__}: the option '{twice[0]}' is given twice")
            object.__setattr__(self, "options", tuple(sorted(options, key=lambda o: o[0])))


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class DataSpec(Description):
    """A corpus from a source, cut to `max_length` tokens; row counts of None mean all rows.

    With `extract`, only the rationale that a finished run finds in each text is left of it. With
    `taught`, it is what a student learns of a finished run: see `erlib.training.students`.
    `words` and `classes` say what a paper leaves out: see `erlib.data.preparation`.
    """

    corpus: str
    source: str = "packaged"
    max_length: int = 128
    train_rows: int | None = None
    dev_rows: int | None = None
    extract: Extraction | None = None
    words: str = "all"
    classes: tuple[str, ...] = ()
    taught: Teaching | None = later(None)

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.folder_name("corpus", self.corpus)
        checks.whole("max_length", self.max_length, 1)
        _check_rows(train_rows=self.train_rows, dev_rows=self.dev_rows)
        if self.source not in SOURCES:
            raise unknown("source", self.source, SOURCES)
        if self.words not in WORDS:
            raise unknown("choice of words", self.words, WORDS)


@dataclass(frozen=True)
class Extraction(Description):
    """The rationales of FRESH: the best `percent` of the words that `run` has scored.

    `method`, `variant` and `options` are those of `erlib.attribute`, for the predicted class.
    `shape` is "top_k" (words in the text's order, or best first with order="score") or
    "contiguous". Of a pair only the first text is cut down; the second is a query and stays whole.
    """

    run: RunSpec
    percent: int
    method: str = "attention"
    variant: str | None = None
    shape: str = "top_k"
    order: str = "document"
    options: Choices = later(())

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("percent", self.percent, 1, 100)
        if self.shape not in SHAPES:
            raise unknown("shape of rationales", self.shape, SHAPES)
        if self.order not in ORDERS:
            raise unknown("order", self.order, ORDERS)


@dataclass(frozen=True)
class Teaching(Description):
    """A finished run as teacher: its predictions and, with a `method`, its explanations.

    `method`, `variant` and `options` are those of `erlib.attribute`, for the predicted class.
    """

    run: RunSpec
    method: str | None = None
    variant: str | None = None
    options: Choices = later(())


@dataclass(frozen=True)
class ModelSpec(Description):
    """What `load_classifier` is asked for. `layers` keeps only the first layers of the encoder.

    `quirks` are oversights of a paper's code, reproduced to measure what they change. `frozen`:
    how many of the lowest layers, and with them the embeddings, stay as they were pretrained.
    """

    name: str = "minilm"
    head: str = "er"
    task: str = "classify"
    specials: bool = True
    layers: int | None = None
    quirks: tuple[str, ...] = ()
    explainer: str | None = later(None)
    frozen: int = later(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.task not in TASKS:
            raise unknown("task", self.task, TASKS)
        if not self.name:
            raise ValueError("a model has a name: minilm, smollm2, jwa, a directory or a hub id")
        if self.layers is not None:
            checks.whole("layers", self.layers, 1)
        checks.whole("frozen", self.frozen, 0, self.layers or math.inf)


@dataclass(frozen=True)
class Term(Description):
    """One weighted term of an objective: a registered loss and its options (see `term`)."""

    name: str
    weight: float = 1.0
    options: Choices = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number(f"the weight of {self.name}", self.weight)


def term(name: str, weight: float = 1.0, **options: Any) -> Term:
    """`term("explanation", 0.6, guide="attention")`."""
    return Term(name, weight, tuple(options.items()))


@dataclass(frozen=True)
class UpdateSpec(Description):
    """How a step's losses change the weights: a registered strategy and its options."""

    name: str = "plain"
    options: Choices = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in self.options:
            if name == "lr" or name.endswith("_lr"):
                checks.rate(name, value)


def update(name: str, **options: Any) -> UpdateSpec:
    """`update("constrained", term="explanation", bound=0.03, lr=0.05)`."""
    return UpdateSpec(name, tuple(options.items()))


@dataclass(frozen=True)
class CheckpointRule(Description):
    """Which epoch's model is kept, and when training stops early.

    The best epoch by `metric` is kept. With `bound = (metric, value)` only epochs where that
    metric is below the value count, and a run without such an epoch is lost. `patience` counts
    epochs without an improvement larger than `min_delta`; before the first epoch that counts,
    `patience_unmet` is in force.
    """

    metric: str = "dev_loss"
    mode: str = "min"
    bound: tuple[str, float] | None = None
    patience: int | None = 5
    patience_unmet: int | None = None
    min_delta: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in MODES:
            raise unknown("checkpoint mode", self.mode, MODES)
        checks.number("min_delta", self.min_delta)
        for name in ("patience", "patience_unmet"):  # of 0 epochs, a run would not begin
            if (epochs := getattr(self, name)) is not None:
                checks.whole(name, epochs, 1)


@dataclass(frozen=True)
class OptimiserSpec(Description):
    """AdamW; `head_lr` is the head's own learning rate.

    `schedule`: linear warm-up over the share `warmup` of all steps and linear decay, or constant.
    `mixed`: a batch has texts of any length, not of a similar one, at the price of padding.
    `precision`: of training's passes and their gradients alone, see `erlib.models.precision`.
    """

    lr: float = 5e-5
    epochs: int = 3
    batch_size: int = 32
    head_lr: float | None = None
    warmup: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip: float | None = None
    checkpoint: CheckpointRule = CheckpointRule()
    schedule: str = "linear"
    mixed: bool = later(False)
    precision: str = later("fp32")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)
        checks.rate("lr", self.lr)
        checks.rate("head_lr", self.head_lr)
        checks.whole("epochs", self.epochs, 1)
        checks.whole("batch_size", self.batch_size, 1)
        checks.number("warmup, a share of all steps,", self.warmup, 0, 1)
        checks.number("weight_decay", self.weight_decay)
        for beta in self.betas:
            if not 0 <= beta < 1:
                raise ValueError(f"betas must be from 0 to below 1, not {self.betas}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip, the largest norm of a gradient, must be above 0: {self.clip}")


@dataclass(frozen=True)
class EvalSpec(Description):
    """One evaluation of one run on one split. `run=None` inside `RunSpec.each_epoch`.

    `kind` names a registered evaluation (`predictions`, `attributions`, `plausibility`, …);
    `method`, `variant`, `target`, `level` and `options` (how much a method spends: `steps` or
    `samples`) are those of `erlib.attribute`; `protocol` is the kind's own. `rows` is a count (see
    `select_rows`) or None for all.
    """

    run: RunSpec | None
    data: DataSpec
    split: str
    kind: str
    rows: int | None = None
    method: str | None = None
    variant: str | None = None
    target: str = "predicted"
    level: str = "token"
    protocol: str | None = None
    seed: int = 0
    options: Choices = later(())

    def __post_init__(self) -> None:
        super().__post_init__()
        for what, value, known in (
            ("split", self.split, SPLITS),
            ("target", self.target, TARGETS),
            ("level", self.level, LEVELS),
        ):
            if value not in known:
                raise unknown(what, value, known)
        _check_rows(rows=self.rows)
        checks.seed(self.seed)


@dataclass(frozen=True)
class RunSpec(Description):
    """A training run: the same spec on the same machine gives the same model, bit for bit.

    `start` is a finished run whose weights this one begins from.
    """

    data: DataSpec
    model: ModelSpec = ModelSpec()
    objective: tuple[Term, ...] = (Term("task"),)
    optimiser: OptimiserSpec = field(default_factory=OptimiserSpec)
    seed: int = 0
    each_epoch: tuple[EvalSpec, ...] = ()
    update: UpdateSpec = UpdateSpec()
    start: RunSpec | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.seed(self.seed)
        if not self.objective:
            raise ValueError('an objective has at least one term, such as term("task")')
        if any(each.run is not None for each in self.each_epoch):
            raise ValueError("what is measured at each epoch is of this run: leave out its run=")

    def with_seed(self, seed: int) -> RunSpec:
        """The same run from another seed."""
        return replace(self, seed=seed)


def listed(specs: Any, kind: type[Description], call: str) -> list[Any]:
    """The descriptions as a list; one alone, a hash or another kind is refused with what to do."""
    if isinstance(specs, Description):
        raise ValueError(f"{call} takes a list of descriptions: {call}([…]) with [ ] around it")
    each = [specs] if isinstance(specs, str) or not isinstance(specs, Iterable) else list(specs)
    for spec in each:
        if isinstance(spec, str):
            raise ValueError(
                f"{call} takes a list of {kind.__name__}, not the name '{spec}'; a trained run is "
                "loaded with erlib.load_classifier, and `python -m erlib runs ls` lists them all"
            )
        if not isinstance(spec, kind):
            raise ValueError(f"{call} takes a list of {kind.__name__}, not {checks.shown(spec)}")
    return each


def _check_rows(**counts: int | None) -> None:
    for name, count in counts.items():
        if count is not None:
            checks.whole(f"{name} (None: all)", count, 1)


def as_plain(value: Any) -> Any:
    """What JSON can write, with what is equal written alike, at any depth.

    Dataclasses are dictionaries, without `later` fields at their default. 1.0 is 1 and −0.0 is 0,
    as they are for Python, but True is not; NumPy's numbers are Python's, and tuples are lists.
    """
    if is_dataclass(value) and not isinstance(value, type):
        values = [(f, getattr(value, f.name)) for f in fields(value)]
        return {f.name: as_plain(v) for f, v in values if not f.metadata or v != f.default}
    if isinstance(value, dict):
        return {name: as_plain(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not isfinite(value):
            raise ValueError(f"{value} cannot be part of a description; leave it out or use None")
        return int(value) if value.is_integer() else value
    return value


def canonical(value: Any) -> str:
    """One JSON text for one value: sorted keys, no white space, and `as_plain`."""
    return json.dumps(as_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical form."""
    return sha256(canonical(value).encode()).hexdigest()[:16]


def run_spec_from_dict(plain: dict[str, Any]) -> RunSpec:
    """The inverse of `json.loads(canonical(spec))`."""
    optimiser = plain["optimiser"]
    rule = CheckpointRule(**optimiser["checkpoint"])
    epochs = plain["each_epoch"]
    own = {
        "data": _data(plain["data"]),
        "model": ModelSpec(**plain["model"]),
        "objective": tuple(Term(**t) for t in plain["objective"]),
        "optimiser": OptimiserSpec(**{**optimiser, "checkpoint": rule}),
        "each_epoch": tuple(EvalSpec(**{**e, "data": _data(e["data"])}) for e in epochs),
        "update": UpdateSpec(**plain["update"]),
        "start": run_spec_from_dict(plain["start"]) if plain["start"] else None,
    }
    return RunSpec(**{**plain, **own})


def _data(plain: dict[str, Any]) -> DataSpec:
    own: dict[str, Any] = {}
    for name, part in (("extract", Extraction), ("taught", Teaching)):
        if found := plain.get(name):
            own[name] = part(**{**found, "run": run_spec_from_dict(found["run"])})
    return DataSpec(**{**plain, **own})


def load_profile(name: str) -> dict[str, Any]:
    """The profile's file, and what further papers set for it: for each paper its grid, its roles
    and its sizes, as data. A profile that `inherits` another says only what differs.
    """
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES)
    text = (files("erlib") / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    own = tomllib.loads(text)
    parent = own.pop("inherits", None)
    further = {paper.name: grid for paper in papers().values() if (grid := paper.grid(name))}
    return (overlaid(load_profile(parent), own) if parent else own) | further


def overlaid(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`under` with what `over` says differently: tables are merged, anything else is replaced."""
    both = {
        name: overlaid(under[name], over[name])
        for name in under.keys() & over.keys()
        if isinstance(under[name], dict) and isinstance(over[name], dict)
    }
    return {**under, **over, **both}


def run_gigabytes(profile: Mapping[str, Any], run: RunSpec) -> float:
    """What a run's model takes on disk, as the profile estimates it."""
    sizes = {size["model"]: size for size in profile["megabytes"]}
    size = sizes[run.model.name if run.model.name in sizes else "other"]
    return (size["words"] + size["layer"] * (run.model.layers or size["layers"])) / 1000


def check_executor(executor: str) -> None:
    """Refuse an executor that does not exist."""
    if executor not in EXECUTORS:
        raise unknown("executor", executor, EXECUTORS)


def store_root(store: str | os.PathLike[str] | None = None) -> Path:
    """Where runs and evaluations are kept: the argument, `ERLIB_STORE`, or `store/` here."""
    return Path(store or os.environ.get("ERLIB_STORE") or project_root() / "store")


def project_root() -> Path:
    """The nearest folder at or above the working directory that has `notebooks/`."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "notebooks").is_dir():
            return folder
    return here
