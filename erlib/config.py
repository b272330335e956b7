"""What is a run, and what is an evaluation? Frozen descriptions with a canonical form.

A description says everything that decides the numbers of a run and nothing else; its hash
(`erlib.training.identity`) is the name under which the run is stored and shared by all notebooks.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from erlib.errors import unknown

SOURCES = ("packaged", "local", "hub")
PROFILES = ("quick", "cpu", "paper")
EXECUTORS = ("local",)


@dataclass(frozen=True)
class DataSpec:
    """A corpus from a source, cut to `max_length` tokens; row counts of None mean all rows."""

    corpus: str
    source: str = "packaged"
    max_length: int = 128
    train_rows: int | None = None
    dev_rows: int | None = None

    def __post_init__(self) -> None:
        if self.source not in SOURCES:
            raise unknown("source", self.source, SOURCES)


@dataclass(frozen=True)
class ModelSpec:
    """What `load_classifier` is asked for. `layers` keeps only the first layers of the encoder."""

    name: str = "minilm"
    head: str = "er"
    task: str = "classify"
    specials: bool = True
    layers: int | None = None


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
    """AdamW with linear warm-up and decay; `head_lr` is the head's own learning rate."""

    lr: float = 5e-5
    epochs: int = 3
    batch_size: int = 32
    head_lr: float | None = None
    warmup: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = 0.0
    clip: float | None = None
    checkpoint: CheckpointRule = CheckpointRule()


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
    """A training run: the same spec on the same machine gives the same model, bit for bit."""

    data: DataSpec
    model: ModelSpec = ModelSpec()
    objective: tuple[Term, ...] = (Term("task"),)
    optimiser: OptimiserSpec = field(default_factory=OptimiserSpec)
    seed: int = 0
    each_epoch: tuple[EvalSpec, ...] = ()

    def with_seed(self, seed: int) -> RunSpec:
        """The same run from another seed."""
        return replace(self, seed=seed)


def canonical(value: Any) -> str:
    """One JSON text for one value: sorted keys, no white space, dataclasses as dictionaries."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


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
        data=DataSpec(**plain["data"]),
        model=ModelSpec(**plain["model"]),
        objective=tuple(
            Term(t["name"], t["weight"], tuple((k, v) for k, v in t["options"]))
            for t in plain["objective"]
        ),
        optimiser=OptimiserSpec(**optimiser, checkpoint=CheckpointRule(**rule)),
        seed=plain["seed"],
        each_epoch=tuple(
            EvalSpec(**{**e, "data": DataSpec(**e["data"])}) for e in plain["each_epoch"]
        ),
    )


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
