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
Sizes = dict[str, Any]  # a recipe: how much, at which rates
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


@dataclass(frozen=True)
class Learner:
    """A base model on a task, in one profile: of it, runs are made and measured."""

    settings: Settings
    base: str
    task: Task

    def on(self, task: Task) -> Learner:
        """The same base model on another task."""
        return replace(self, task=task)

    @property
    def is_core(self) -> bool:
        """Is this trained at full length? All is, unless the profile has short runs."""
        grid = self.settings.grid
        return "short" not in grid or (self.base == "ELECTRA" and self.task.paper in grid["core"])

    @property
    def stage(self) -> str:
        """How its models are trained."""
        return "full" if self.is_core else "short"

    @property
    def pupil(self) -> str:
        """How its students are taught."""
        return "student" if self.is_core else "short_student"

    @property
    def seeds(self) -> tuple[int, ...]:
        """Every seed of what is trained in full, else the first."""
        return self.settings.seeds if self.is_core else self.settings.seeds[:1]


def learners(settings: Settings, base: str) -> list[Learner]:
    """A base model on each of the tasks that the profile has for it, in the paper's order."""
    has = settings.grid["bases"][base]["tasks"]
    return [Learner(settings, base, task_named(settings, name)) for name in ROLES if name in has]


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
    every = [learner.task for learner in learners(settings, "ELECTRA")]
    return [*every, *filter(None, (transfer_target(settings, task) for task in every))]


def core(settings: Settings) -> Learner:
    """Where claims are decided: every seed, at full length."""
    return Learner(settings, "ELECTRA", task_named(settings, "IMDb"))


def seeds_of(learner: Learner, row: str, criterion: str) -> tuple[int, ...]:
    """Every seed for the rows of the core task that decide claims, the first for the others."""
    settings, many = learner.settings, learner.settings.grid.get("every_seed")
    decides = many is None or (learner.is_core and UNTRAINED.get(row, row) in many[criterion])
    return settings.seeds if decides else settings.seeds[:1]


def recipe(learner: Learner, stage: str = "full") -> Sizes:
    """The profile's sizes and rates: those of full runs and of the task, under those of a stage."""
    grid = learner.settings.grid
    found = {**grid["full"], **grid["tasks"][learner.task.kind]}
    return found if stage == "full" else {**found, **grid.get(stage, {})}


def source_of(settings: Settings, task: Task) -> str:
    """Where a task's corpus is read: where its role says, or where the settings find it."""
    return task.source or settings.source_of(task.corpus)


def data_spec(learner: Learner, sizes: Sizes, taught: Teaching | None = None) -> DataSpec:
    """The texts of a run; with `taught`, a student's."""
    return DataSpec(
        learner.task.corpus,
        source_of(learner.settings, learner.task),
        sizes["max_length"],
        sizes.get("train_rows"),
        sizes.get("dev_rows"),
        taught=taught,
    )


def model_spec(learner: Learner, explainer: str | None) -> ModelSpec:
    """The base model with the head of the task."""
    grid, task = learner.settings.grid, learner.task
    options = grid["bases"][learner.base]
    return ModelSpec(
        options["name"],
        task="span" if task.spans else "classify",
        layers=options.get("layers", grid["tasks"][task.kind].get("layers")),
        explainer=explainer,
        frozen=options.get("frozen", 0),
    )


def baseline(learner: Learner, seed: int) -> RunSpec:
    """The base model, fine-tuned with cross-entropy alone."""
    own = learner.settings.grid["bases"][learner.base].get("baseline", {})
    return _fine_tuned(learner, {**recipe(learner), **own}, seed, None)


def continued(learner: Learner, seed: int, stage: str = "full") -> RunSpec:
    """The Baseline, trained on as long as a model of this stage that begins from it."""
    return _fine_tuned(learner, recipe(learner, stage), seed, baseline(learner, seed))


def _fine_tuned(learner: Learner, sizes: Sizes, seed: int, start: RunSpec | None) -> RunSpec:
    return RunSpec(
        data_spec(learner, sizes),
        model_spec(learner, None),
        optimiser=optimiser_of(sizes),
        seed=seed,
        update=update("plain", **decay_of(sizes)),
        start=start,
    )


def follows(settings: Settings, stage: str) -> bool:
    """Do models of this stage begin from the Baseline? Short ones do, and all where it is said."""
    short = stage != "full" and stage in settings.grid
    return short or settings.grid.get("from_baseline", False)


def trained(learner: Learner, system: System, seed: int, stage: str = "full") -> RunSpec:
    """A model trained for criteria.

    Cross-entropy is always a part (Table 5), except for SIM alone: it trains ω, λ and η of a
    fine-tuned model, whose answers stay what they are. Sets with SIM and short runs begin from the
    Baseline, and where the profile says so all others do.
    """
    grid, criteria = learner.settings.grid, system.criteria
    alone = criteria == ("SIM",)
    sizes = {**recipe(learner, stage), **_rates(learner, system)}
    options = {"explainer_lr": sizes["lr"] * grid["explainer_factor"], **decay_of(sizes)}
    learns = update("plain", **options)
    if "SIM" in criteria:
        learns = update("pilot", **grid["pilot"], outer=system.outer, **options)
    goes_on = "SIM" in criteria or follows(learner.settings, stage)
    losses = (term(LOSSES[criterion]) for criterion in criteria if criterion != "SIM")
    return RunSpec(
        data_spec(learner, sizes),
        model_spec(learner, system.module),
        objective=(term("task", 0.0 if alone else 1.0), *losses),
        optimiser=optimiser_of(sizes, "train_student_ce" if alone else "dev_loss"),
        seed=seed,
        update=learns,
        start=baseline(learner, seed) if goes_on else None,
    )


def _rates(learner: Learner, system: System) -> Sizes:
    """The system's own learning rate and decay, or the criterion's; of several criteria, those with
    the smallest rate."""
    rates = learner.settings.grid["bases"][learner.base].get("tuned", {})
    of_each: list[Sizes] = [rates.get(criterion, {}) for criterion in system.criteria]
    smallest = min(of_each, key=lambda options: options.get("lr", float("inf")))
    own = {"lr": system.lr, "decay": system.decay}
    return {**smallest, **{name: rate for name, rate in own.items() if rate is not None}}


def untrained(learner: Learner, explainer: str, seed: int) -> RunSpec:
    """The Baseline beside a new module: its scales are measured on the texts that the module of
    `trained` measures them on, and one step with learning rate 0 leaves all as it is."""
    spec = trained(learner, System(("COMP",), explainer), seed, learner.stage)
    return replace(
        spec,
        data=replace(spec.data, train_rows=spec.optimiser.batch_size),
        objective=(term("task"),),
        optimiser=replace(spec.optimiser, lr=0.0, epochs=1),
        update=update("plain"),
        start=baseline(learner, seed),
    )


def decay_of(sizes: Sizes) -> dict[str, float]:
    """γ, where a recipe has one; else the rate warms up and falls linearly."""
    return {"decay": sizes["decay"]} if "decay" in sizes else {}


def optimiser_of(sizes: Sizes, metric: str = "dev_loss") -> OptimiserSpec:
    """A recipe's optimiser; the best epoch is the one with the lowest `metric`."""
    return OptimiserSpec(
        lr=sizes["lr"],
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
    where = [Learner(settings, base, task)] if task else learners(settings, base)
    layers = {one.task.paper: model_spec(one, None).layers for one in where}
    changed = []
    for count in sorted({n for n in layers.values() if n}):
        on = [name for name, n in layers.items() if n == count]
        only = f" on {' and '.join(on)}" if len(on) < len(where) else ""
        changed.append(f"{counted(count, 'layer')}{only}")
    options = settings.grid["bases"][base]
    changed += [f"lowest {counted(n, 'layer')} frozen"] if (n := options.get("frozen")) else []
    return short_name(options["name"]) + (f" ({', '.join(changed)})" if changed else "")


def short_name(model: str) -> str:
    """A model's name as a reader says it: without the hub's owner."""
    return OURS.get(model, model.split("/")[-1])


def corpora(settings: Settings) -> dict[str, str]:
    """Our corpus → the paper's set that it is or stands in for."""
    return {one.task.corpus: one.task.paper for one in learners(settings, "ELECTRA")}


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
