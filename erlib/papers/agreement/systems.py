"""What does "Easy to Decide, Hard to Agree" train, and what is measured of a run?

Two models on four binary tasks, each as Base and with either regulariser; `search` has the λ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from erlib.config import (
    CheckpointRule,
    DataSpec,
    EvalSpec,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Term,
    term,
)
from erlib.papers.agreement.vectors import word_vectors
from erlib.parameters import Settings

MODELS = ("JWA", "DBERT")
SETS = ("SUBJ", "SST", "TREC", "IMDB")
VARIANTS = ("Base", "Conicity", "Tying")
# The same regularisers as the paper's code or its equations have them; agreement.md §4.2 to 4.4.
AUDITED: dict[str, dict[str, object]] = {
    "Conicity, batch axis": {"axis": "batch"},
    "Conicity, pads counted": {"mask": False},
    "Tying, squared": {"squared": True},
    "Tying, pads counted": {"mask": False},
}
COMPARED = ("Base", "Tying")  # of the maps, the groups and the correlations


@dataclass(frozen=True)
class Task:
    """A binary task: our corpus, and the set of the paper that it is or stands in for."""

    paper: str
    corpus: str
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class System:
    """One cell of the grid: a model on a task in a variant."""

    model: str
    task: Task
    variant: str


def tasks(settings: Settings) -> list[Task]:
    """The four tasks, in the paper's order."""
    listed = {
        role["paper"]: Task(role["paper"], role["corpus"], tuple(role.get("classes", ())))
        for role in settings.roles["tasks"]
    }
    return [listed[paper] for paper in SETS if paper in listed]


def task_named(settings: Settings, paper: str) -> Task:
    """The task that is or stands in for this set of the paper."""
    return next(t for t in tasks(settings) if t.paper == paper)


def core_tasks(settings: Settings, model: str) -> list[Task]:
    """The tasks on which a model has every seed and all its training texts: claims rest on them."""
    core = settings.grid["models"][model]["core"]
    return [t for t in tasks(settings) if t.paper in core]


def seeds_of(settings: Settings, system: System) -> tuple[int, ...]:
    """All seeds for core cells, the first one for wide cells."""
    core = system.task in core_tasks(settings, system.model)
    many = core and system.variant in settings.grid["core_variants"]
    return settings.seeds if many else settings.seeds[:1]


def systems(settings: Settings, variants: Sequence[str] = VARIANTS) -> list[System]:
    """Every cell of these variants; audited variants only where the profile audits."""
    return [
        System(model, task, variant)
        for model in MODELS
        for task in tasks(settings)
        for variant in variants
        if variant in VARIANTS or (model == "DBERT" and _audited(settings, task))
    ]


def data_spec(settings: Settings, model: str, task: Task) -> DataSpec:
    """The texts as the paper reads them: lower-case words with a letter or digit in them."""
    return DataSpec(
        task.corpus,
        settings.source_of(task.corpus),
        settings.grid["max_length"],
        count_of(settings, model, task, "train_rows"),
        settings.grid.get("dev_rows"),
        words="alphanumeric",
        classes=task.classes,
    )


def count_of(settings: Settings, model: str, task: Task, what: str) -> int | None:
    """How many rows of a kind a model has on a task: `wide_…` off its core tasks, None for all."""
    tier = "" if task in core_tasks(settings, model) else "wide_"
    return settings.grid["models"][model].get(tier + what)


def objective(variant: str, weight: float) -> tuple[Term, ...]:
    """Cross-entropy, and the variant's regulariser with this weight."""
    if variant == "Base":
        return (term("task"),)
    name = variant.split(",")[0].lower()
    return (term("task"), term(name, weight, **AUDITED.get(variant, {})))


def run_spec(settings: Settings, system: System, seed: int, weight: float = 0.0) -> RunSpec:
    """One training run, with predictions and agreement on test texts after every epoch."""
    grid, model = settings.grid, settings.grid["models"][system.model]
    data = data_spec(settings, system.model, system.task)
    test = replace(data, train_rows=None, dev_rows=None)
    count = partial(count_of, settings, system.model, system.task)
    predictions = EvalSpec(None, test, "test", "predictions", count("test_rows"))
    # Test texts are predicted with dropout too, as the paper's maps were (agreement.md §4.11).
    both = system.model == "DBERT" and system.variant == "Base" and _audited(settings, system.task)
    with_dropout = [replace(predictions, protocol="dropout")] if both else []
    name = word_vectors(settings, data, seed) if model["name"] == "jwa" else model["name"]
    return RunSpec(
        data=data,
        model=ModelSpec(name, head="agreement", specials=False, layers=model.get("layers")),
        objective=objective(system.variant, weight),
        optimiser=OptimiserSpec(
            lr=model["lr"],
            epochs=grid["epochs"],
            batch_size=grid["batch_size"],
            betas=(0.9, 0.999),
            clip=1.0,
            checkpoint=CheckpointRule("dev_f1_binary", "max", patience=None),
            schedule="constant",
            precision=model.get("precision", "fp32"),
        ),
        seed=seed,
        each_epoch=(
            predictions, explanation(settings, test, count("explained_rows")), *with_dropout
        ),
    )  # fmt: skip


def _audited(settings: Settings, task: Task) -> bool:
    return task.paper in settings.grid["audit"]


def explanation(settings: Settings, data: DataSpec, rows: int | None) -> EvalSpec:
    """Agreement of the four methods on test texts, of whatever run it is asked of."""
    points = settings.grid.get("points")  # of integrated gradients; as many as the paper has: 50
    return EvalSpec(
        None, data, "test", "agreement", rows, variant="agreement", target="gold", level="token",
        options=(("steps", points),) if points else (),
    )  # fmt: skip


def system_of(settings: Settings, run: RunSpec) -> System:
    """The cell that a run belongs to."""
    model = "DBERT" if run.model.name == settings.grid["models"]["DBERT"]["name"] else "JWA"
    task = next(t for t in tasks(settings) if t.corpus == run.data.corpus)
    weight = run.objective[-1].weight
    known = (v for v in (*VARIANTS, *AUDITED) if objective(v, weight) == run.objective)
    return System(model, task, next(known))


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run; one of the search is not explained."""
    system = system_of(settings, run)
    name = f"{system.model} {system.task.paper} {system.variant}"
    return name if run.each_epoch else f"{name} (search, λ {run.objective[-1].weight:g})"


def measures(settings: Settings, system: System, run: RunSpec) -> list[EvalSpec]:
    """Of the kept model: curvature for Base and Tying; for the Transformer agreement under dropout.

    JWA has no dropout.
    """
    curved = [curvature_spec(settings, run, system.model)] if system.variant in COMPARED else []
    return [*curved, *([dropout_spec(run)] if system.model == "DBERT" else [])]


def curvature_spec(settings: Settings, spec: RunSpec, model: str) -> EvalSpec:
    """Curvature of the kept model on test texts."""
    options, data = settings.grid["models"][model], spec.each_epoch[0].data
    rows = options.get("curvature_rows")
    return EvalSpec(spec, data, "test", "curvature", rows, protocol=options["norm"])


def dropout_spec(spec: RunSpec) -> EvalSpec:
    """Agreement of the kept model as the paper's code measured it, with dropout on; of a quarter of
    the explained texts, where a profile counts them: each costs many times more."""
    explained = spec.each_epoch[1]
    rows = explained.rows and -(-explained.rows // 4)
    return replace(explained, run=spec, rows=rows, variant="agreement_dropout", options=())
