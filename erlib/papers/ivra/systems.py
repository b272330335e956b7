"""What does "IvRA" train: which models, for which criteria, with which students?

Three base models on three tasks. Each is fine-tuned (the Baseline), trained once more for every
criterion with an attention module of one of three kinds, and taught to students, whose agreement
with it is simulatability. A profile trains its *core* tasks at full length with every seed; all
else may be *short*: a few steps that begin where the first seed's Baseline ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from erlib.config import (
    CheckpointRule,
    Choices,
    DataSpec,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Teaching,
    UpdateSpec,
    term,
    update,
)
from erlib.errors import unknown
from erlib.parameters import Settings
from erlib.reports.markup import counted

BASES = ("ELECTRA", "GPT-2", "Llama-2")
ROLES = {"IMDb": "classification", "SNLI": "pairs", "SQuAD": "questions"}
TRANSFERS = {"IMDb": "SST2", "SNLI": "MNLI"}  # Figure 8: task → another set of the same kind
CRITERIA = ("SIM", "COMP", "SUFF", "CONS")
SUBSETS = tuple(c for n in range(1, 5) for c in combinations(CRITERIA, n))  # 15, the single first
LOSSES = {"COMP": "comprehensiveness", "SUFF": "sufficiency", "CONS": "consistency"}  # not SIM

# The paper's rows → the attribution.
SOFTMAX, SPARSEMAX, SMAT = "IvRA - Softmax", "IvRA - Sparsemax", "Attention-SMaT"
LAST = "Attention (last layer)"
FIXED = {
    "Attention (Avg. all layers)": "attention_all",
    LAST: "attention",
    "Input X Gradients": "input_x_gradient",
    "Integrated Gradients": "integrated_gradients",
    "LIME": "lime",
}
SIZES = {  # row → the option of its attribution, and what a profile calls it
    "Integrated Gradients": ("steps", "points"),
    "LIME": ("samples", "samples"),
}
MODULES = {SMAT: "smat", SOFTMAX: "ivra-softmax", SPARSEMAX: "ivra-sparsemax"}
EXPLAINERS = (*FIXED, *MODULES)
# IvRA's modules as they begin, on the Baseline: what training for a criterion has to improve on.
UNTRAINED = {f"{row} (untrained)": row for row in (SOFTMAX, SPARSEMAX)}
FLOOR = "No explanation (β = 0)"  # the students that Table 1 of the paper lacks
OURS = {"minilm": "MiniLM", "smollm2": "SmolLM2-135M, 4-bit weights"}
LEVELS = ("feature", "head", "layer")  # Figure 6: only one kind of coefficient is trained


@dataclass(frozen=True)
class Task:
    """A corpus in the place of one of the paper's sets; `kind` is the set whose recipe it takes.

    `source`: where the corpus is read, if its role names another place than the settings.
    """

    paper: str
    corpus: str
    kind: str
    source: str | None = None

    @property
    def spans(self) -> bool:
        """Is the answer a span, not a class?"""
        return self.kind == "SQuAD"


@dataclass(frozen=True)
class System:
    """A model trained for criteria: the module that explains it, and what else may differ."""

    criteria: tuple[str, ...]
    explainer: str = SPARSEMAX
    level: str | None = None
    lr: float | None = None
    decay: float | None = None
    outer: str = "simulation"  # eq. 15, or "smat"

    @property
    def module(self) -> str:
        """As `ModelSpec` calls it."""
        name = MODULES[self.explainer]
        return name if self.level is None else f"{name}-{self.level}"


def tasks(settings: Settings, base: str) -> list[Task]:
    """The tasks of a base model that the profile has, in the paper's order."""
    every = [task_named(settings, name) for name in ROLES]
    return [t for t in every if t.paper in settings.grid["bases"][base]["tasks"]]


def task_named(settings: Settings, paper: str) -> Task:
    """The task that is or stands in for this set of the paper."""
    if paper not in ROLES:
        raise unknown("task", paper, ROLES)
    role = settings.roles[ROLES[paper]]
    named = {"corpus": role} if isinstance(role, str) else role
    return Task(paper, kind=paper, **named)


def transfer_target(settings: Settings, task: Task) -> Task | None:
    """The other set of the same kind, if this source of data has one."""
    found = [role["corpus"] for role in settings.roles["transfer"] if role["task"] == task.paper]
    return Task(TRANSFERS[task.paper], found[0], task.paper) if found else None


def sets(settings: Settings) -> list[Task]:
    """The tasks, and the sets that models are transferred to."""
    every = tasks(settings, "ELECTRA")
    return [*every, *(t for t in (transfer_target(settings, x) for x in every) if t)]


def core_task(settings: Settings) -> Task:
    """Where claims are decided: every seed, at full length."""
    return task_named(settings, "IMDb")


def is_core(settings: Settings, base: str, task: Task) -> bool:
    """Is this trained at full length? All is, unless the profile has short runs."""
    grid = settings.grid
    return "short" not in grid or (base == "ELECTRA" and task.paper in grid["core"])


def seeds_of(settings: Settings, base: str, task: Task, explainer: str, criterion: str
             ) -> tuple[int, ...]:  # fmt: skip
    """Every seed for the rows of the core task that decide claims, the first for the others."""
    many = settings.grid.get("every_seed")
    if many is None:
        return settings.seeds
    named = UNTRAINED.get(explainer, explainer)
    core = is_core(settings, base, task) and named in many[criterion]
    return settings.seeds if core else settings.seeds[:1]


def recipe(settings: Settings, task: Task, stage: str = "full") -> dict[str, Any]:
    """The profile's sizes and rates: those of full runs and of the task, under those of a stage."""
    grid = settings.grid
    found = {**grid["full"], **grid["tasks"][task.kind]}
    return found if stage == "full" else {**found, **grid.get(stage, {})}


def source_of(settings: Settings, task: Task) -> str:
    """Where a task's corpus is read: where its role says, or where the settings find it."""
    return task.source or settings.source_of(task.corpus)


def data_spec(
    settings: Settings, task: Task, sizes: dict[str, Any], taught: Teaching | None = None
) -> DataSpec:
    """The texts of a run; with `taught`, a student's."""
    return DataSpec(
        task.corpus,
        source_of(settings, task),
        sizes["max_length"],
        sizes.get("train_rows"),
        sizes.get("dev_rows"),
        taught=taught,
    )


def model_spec(settings: Settings, base: str, task: Task, explainer: str | None) -> ModelSpec:
    """The base model with the head of the task."""
    options = settings.grid["bases"][base]
    return ModelSpec(
        options["name"],
        task="span" if task.spans else "classify",
        layers=options.get("layers", settings.grid["tasks"][task.kind].get("layers")),
        explainer=explainer,
        frozen=options.get("frozen", 0),
    )


def baseline(settings: Settings, base: str, task: Task, seed: int) -> RunSpec:
    """The base model, fine-tuned with cross-entropy alone."""
    sizes = {**recipe(settings, task), **settings.grid["bases"][base].get("baseline", {})}
    return RunSpec(
        data_spec(settings, task, sizes),
        model_spec(settings, base, task, None),
        optimiser=optimiser_of(sizes, sizes["lr"], "dev_loss"),
        seed=seed,
        update=update("plain", **decay_of(sizes)),
    )


def follows(settings: Settings, stage: str) -> bool:
    """Do models of this stage begin from the Baseline? Short ones do, and all where it is said."""
    short = stage != "full" and stage in settings.grid
    return short or settings.grid.get("from_baseline", False)


def continued(settings: Settings, base: str, task: Task, seed: int, stage: str = "full") -> RunSpec:
    """The Baseline, trained on as long as a model of this stage that begins from it."""
    first, sizes = baseline(settings, base, task, seed), recipe(settings, task, stage)
    return replace(
        first,
        data=data_spec(settings, task, sizes),
        optimiser=optimiser_of(sizes, sizes["lr"], "dev_loss"),
        update=update("plain", **decay_of(sizes)),
        start=first,
    )


def trained(
    settings: Settings, base: str, task: Task, system: System, seed: int, stage: str = "full"
) -> RunSpec:
    """A model trained for criteria.

    Cross-entropy is always a part (Table 5), except for SIM alone: it trains ω, λ and η of a
    fine-tuned model, whose answers stay what they are. Sets with SIM and short runs begin from the
    Baseline, and where the profile says so all others do.
    """
    sizes = recipe(settings, task, stage)
    simulated = "SIM" in system.criteria
    alone = system.criteria == ("SIM",)
    sizes = {**sizes, **_tuned(settings, base, system)}
    lr = sizes["lr"] if system.lr is None else system.lr
    return RunSpec(
        data_spec(settings, task, sizes),
        model_spec(settings, base, task, system.module),
        objective=(
            term("task", 0.0 if alone else 1.0),
            *(term(LOSSES[c]) for c in system.criteria if c != "SIM"),
        ),
        optimiser=optimiser_of(sizes, lr, "train_student_ce" if alone else "dev_loss"),
        seed=seed,
        update=_update(settings, system, sizes, lr),
        start=baseline(settings, base, task, seed)
        if simulated or follows(settings, stage)
        else None,
    )


def untrained(
    settings: Settings, base: str, task: Task, explainer: str, seed: int, stage: str
) -> RunSpec:
    """The Baseline beside a new module: its scales are measured on the texts that the module of
    `trained` measures them on, and one step with learning rate 0 leaves all as it is."""
    spec = trained(settings, base, task, System(("COMP",), explainer), seed, stage)
    return replace(
        spec,
        data=replace(spec.data, train_rows=spec.optimiser.batch_size),
        objective=(term("task"),),
        optimiser=replace(spec.optimiser, lr=0.0, epochs=1),
        update=update("plain"),
        start=baseline(settings, base, task, seed),
    )


def _tuned(settings: Settings, base: str, system: System) -> dict[str, Any]:
    """The learning rate and decay of the criterion; of several, those with the smallest rate."""
    rates: dict[str, dict[str, Any]] = settings.grid["bases"][base].get("tuned", {})
    own = [rates.get(criterion, {}) for criterion in system.criteria]
    found = min(own, key=lambda options: options.get("lr", float("inf")))
    return found if system.decay is None else {**found, "decay": system.decay}


def _update(settings: Settings, system: System, sizes: dict[str, Any], lr: float) -> UpdateSpec:
    options = {"explainer_lr": lr * settings.grid["explainer_factor"], **decay_of(sizes)}
    if "SIM" not in system.criteria:
        return update("plain", **options)
    pilot = settings.grid["pilot"]
    return update("pilot", student_lr=pilot["student_lr"], beta=pilot["beta"],
                  outer=system.outer, **options)  # fmt: skip


def decay_of(sizes: dict[str, Any]) -> dict[str, float]:
    """γ, where a recipe has one; else the rate warms up and falls linearly."""
    return {"decay": sizes["decay"]} if "decay" in sizes else {}


def optimiser_of(sizes: dict[str, Any], lr: float, metric: str) -> OptimiserSpec:
    """A recipe's optimiser; the best epoch is the one with the lowest `metric`."""
    return OptimiserSpec(
        lr=lr,
        epochs=sizes["epochs"],
        batch_size=sizes["batch_size"],
        betas=(0.9, 0.999),
        clip=sizes.get("clip"),
        checkpoint=CheckpointRule(metric, patience=None),
        precision=sizes.get("precision", "fp32"),
    )


def method_of(explainer: str) -> str:
    """The attribution behind a row of the tables."""
    if explainer in MODULES or explainer in UNTRAINED:
        return "smat" if explainer == SMAT else "ivra"
    return FIXED[explainer]


def options_of(settings: Settings, explainer: str) -> Choices:
    """How much is spent on an explanation, where the profile says: else what the paper spends."""
    option, size = SIZES.get(explainer, ("", ""))
    return ((option, settings.grid[size]),) if size in settings.grid else ()


def criteria_of(run: RunSpec) -> tuple[str, ...]:
    """What a model was trained for; nothing, if it is a Baseline."""
    terms = {t.name for t in run.objective}
    simulated = run.update.name == "pilot"
    return tuple(c for c in CRITERIA if (simulated if c == "SIM" else LOSSES[c] in terms))


def subset_name(criteria: Sequence[str]) -> str:
    """As Table 5 writes it: Sim+Comp."""
    return "+".join(c.capitalize() for c in criteria)


def model_name(settings: Settings, base: str, task: Task | None = None) -> str:
    """What plays the part of a base model, on one task or on all; short for the hub's own."""
    options, where = settings.grid["bases"][base], [task] if task else tasks(settings, base)
    layers = {t.paper: model_spec(settings, base, t, None).layers for t in where}
    changed = []
    for count in sorted({n for n in layers.values() if n}):
        on = [name for name, n in layers.items() if n == count]
        only = f" on {' and '.join(on)}" if len(on) < len(where) else ""
        changed.append(f"{counted(count, 'layer')}{only}")
    changed += [f"lowest {counted(n, 'layer')} frozen"] if (n := options.get("frozen")) else []
    return short_name(options["name"]) + (f" ({', '.join(changed)})" if changed else "")


def short_name(model: str) -> str:
    """A model's name as a reader says it: without the hub's owner."""
    return OURS.get(model, model.split("/")[-1])


def corpora(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set that it is or stands in for."""
    return {task.corpus: task.paper for task in tasks(settings, "ELECTRA")}


def row_labels(settings: Settings) -> dict[str, str]:
    """What a reader calls a row of Tables 1 to 4, all of one base model, and 8 to 11."""
    rows = (*EXPLAINERS, "SMaT", *UNTRAINED, FLOOR)
    models = {base: f"\n{model_name(settings, base)} for {base}" for base in BASES}
    models["ELECTRA"] = ""
    return {f"{base}|{row}": f"{row}{model}" for base, model in models.items() for row in rows}


def named(settings: Settings, run: RunSpec) -> str:
    """What a reader calls a run: "MiniLM on IMDb for SIM+COMP", or "for the task alone"."""
    papers = {task.corpus: task.paper for task in sets(settings)}
    aims = "+".join(criteria_of(run)) or "the task alone"
    return f"{short_name(run.model.name)} on {papers[run.data.corpus]} for {aims}"
