"""What is a run, and what is an evaluation? Frozen descriptions with a canonical form.

A description says everything that decides the numbers of a run and nothing else; its hash
(`erlib.training.identity`) is the name under which the run is stored and shared by all notebooks.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from erlib.errors import unknown

SOURCES = ("packaged", "local", "hub")
PROFILES = ("quick", "cpu", "paper")
EXECUTORS = ("local",)
WORDS = ("all", "alphanumeric")
SCHEDULES = ("linear", "constant")
PRECISIONS = ("fp32", "tf32", "bf16")


def later(default: Any) -> Any:
    """A field that the canonical form leaves out at its default: a new option renames no run."""
    return field(default=default, metadata={"later": True})


@dataclass(frozen=True)
class DataSpec:
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
        if self.source not in SOURCES:
            raise unknown("source", self.source, SOURCES)
        if self.words not in WORDS:
            raise unknown("choice of words", self.words, WORDS)


@dataclass(frozen=True)
class Extraction:
    """The rationales of FRESH: the best `percent` of the words that `run` has scored.

    `method` and `variant` are those of `erlib.attribute`, for the predicted class. `shape` is
    "top_k" (words in the text's order, or best first with order="score") or "contiguous". Of a
    pair only the first text is cut down; the second is a query and stays whole.
    """

    run: RunSpec
    percent: int
    method: str = "attention"
    variant: str | None = None
    shape: str = "top_k"
    order: str = "document"


@dataclass(frozen=True)
class Teaching:
    """A finished run as teacher: its predictions and, with a `method`, its explanations.

    `method` and `variant` are those of `erlib.attribute`, for the predicted class.
    """

    run: RunSpec
    method: str | None = None
    variant: str | None = None


@dataclass(frozen=True)
class ModelSpec:
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


@dataclass(frozen=True)
class Term:
    """One weighted term of an objective: a registered loss and its options (see `term`)."""

    name: str
    weight: float = 1.0
    options: tuple[tuple[str, Any], ...] = ()


def term(name: str, weight: float = 1.0, **options: Any) -> Term:
    """`term("explanation", 0.6, guide="attention")`: options in a fixed order, so hashes agree."""
    return Term(name, float(weight), tuple(sorted(options.items())))


@dataclass(frozen=True)
class UpdateSpec:
    """How a step's losses change the weights: a registered strategy and its options."""

    name: str = "plain"
    options: tuple[tuple[str, Any], ...] = ()


def update(name: str, **options: Any) -> UpdateSpec:
    """`update("constrained", term="explanation", bound=0.03, lr=0.05)`, in a fixed order."""
    return UpdateSpec(name, tuple(sorted(options.items())))


@dataclass(frozen=True)
class CheckpointRule:
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
        if self.mode not in ("min", "max"):
            raise unknown("checkpoint mode", self.mode, ("min", "max"))


@dataclass(frozen=True)
class OptimiserSpec:
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
        if self.schedule not in SCHEDULES:
            raise unknown("schedule", self.schedule, SCHEDULES)
        if self.precision not in PRECISIONS:
            raise unknown("precision", self.precision, PRECISIONS)


@dataclass(frozen=True)
class EvalSpec:
    """One evaluation of one run on one split. `run=None` inside `RunSpec.each_epoch`.

    `kind` names a registered evaluation (`predictions`, `attributions`, `plausibility`, …);
    `method`, `variant`, `target` and `level` are those of `erlib.attribute`; `protocol` is the
    kind's own option. `rows` is a count (see `select_rows`) or None for all.
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


@dataclass(frozen=True)
class RunSpec:
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

    def with_seed(self, seed: int) -> RunSpec:
        """The same run from another seed."""
        return replace(self, seed=seed)


def as_plain(value: Any) -> Any:
    """Dataclasses as dictionaries, without `later` fields at their default, at any depth."""
    if is_dataclass(value) and not isinstance(value, type):
        values = [(f, getattr(value, f.name)) for f in fields(value)]
        return {f.name: as_plain(v) for f, v in values if not f.metadata or v != f.default}
    if isinstance(value, dict):
        return {name: as_plain(v) for name, v in value.items()}
    return [as_plain(v) for v in value] if isinstance(value, list | tuple) else value


def canonical(value: Any) -> str:
    """One JSON text for one value: sorted keys, no white space, dataclasses as dictionaries."""
    return json.dumps(as_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """The first 16 hex digits of the sha256 of the canonical form."""
    return sha256(canonical(value).encode()).hexdigest()[:16]


def run_spec_from_dict(plain: dict[str, Any]) -> RunSpec:
    """The inverse of `json.loads(canonical(spec))`."""
    optimiser = dict(plain["optimiser"])
    rule = dict(optimiser.pop("checkpoint"))
    rule["bound"] = tuple(rule["bound"]) if rule["bound"] else None
    optimiser["betas"] = tuple(optimiser["betas"])
    return RunSpec(
        data=_data(plain["data"]),
        model=ModelSpec(**{**plain["model"], "quirks": tuple(plain["model"]["quirks"])}),
        objective=tuple(
            Term(t["name"], t["weight"], _options(t["options"])) for t in plain["objective"]
        ),
        optimiser=OptimiserSpec(**optimiser, checkpoint=CheckpointRule(**rule)),
        seed=plain["seed"],
        each_epoch=tuple(EvalSpec(**{**e, "data": _data(e["data"])}) for e in plain["each_epoch"]),
        update=UpdateSpec(plain["update"]["name"], _options(plain["update"]["options"])),
        start=run_spec_from_dict(plain["start"]) if plain["start"] else None,
    )


def _data(plain: dict[str, Any]) -> DataSpec:
    extract = plain.get("extract")
    if extract:
        extract = Extraction(**{**extract, "run": run_spec_from_dict(extract["run"])})
    taught = plain.get("taught")
    if taught:
        taught = Teaching(**{**taught, "run": run_spec_from_dict(taught["run"])})
    return DataSpec(
        **{**plain, "extract": extract, "classes": tuple(plain["classes"]), "taught": taught}
    )


def _options(plain: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in plain)


def load_profile(name: str) -> dict[str, Any]:
    """The profile's file: for each paper its grid, its roles and its sizes, as data."""
    if name not in PROFILES:
        raise unknown("profile", name, PROFILES)
    text = (files("erlib") / "profiles" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


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
