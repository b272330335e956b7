"""What does "Enjoy the Salience" train?

Five tasks; on each a Baseline, SaLoss with TextRank at the paper's own λ, and again at the λ that
development texts choose; SaLoss with three other salience functions at the paper's λ; a FRESH
classifier on the rationales of three of them; and on one task the departures of the paper's code,
one at a time.

SaLoss is the one at the paper's λ wherever one is meant: its loss is that of the paper's code and
its batches are as large, so λ has the paper's meaning, and no choice among few texts is in it.

A *core* task is trained from scratch with every seed. The systems of a *wide* task, the
Baseline among them, go on for a few steps from one run of the first seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from erlib.config import (
    CheckpointRule,
    DataSpec,
    Extraction,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Term,
    term,
)
from erlib.errors import unknown
from erlib.parameters import Settings
from erlib.reports.paper_numbers import paper_table

# role → the paper's name of its set, and the share of words in a rationale, in per cent
ROLES = {
    "sentences": ("SST", 20),
    "topics": ("AG", 20),
    "document_query": ("Ev.Inf", 10),
    "long_documents": ("M.RC", 20),
    "tweets": ("SEMEVAL", 20),
}
TAGGED = ("sentences", "topics", "document_query")  # Figure 1
AUDITED = "sentences"  # where the departures of the paper's code are measured

BASELINE, SALOSS, EQ3 = "Baseline", "TextRank", "eq. 3"
CHOSEN = "TextRank, chosen λ"  # SaLoss where development texts chose another λ than the paper's
# system → options of the salience term; SaLoss is "TextRank", with the loss of the paper's code
SALIENCE: dict[str, dict[str, Any]] = {
    SALOSS: {"salience_of": "textrank"},
    "ChiSquared": {"salience_of": "chi_squared"},
    "TFIDF": {"salience_of": "tfidf"},
    "Uniform": {"salience_of": "uniform"},
}
# Which of the profile's lists names the tasks of a salience function
MEASURED_ON = {"ChiSquared": "salience_sets", "TFIDF": "salience_sets", "Uniform": "fresh_sets"}
# Each changes SaLoss in one thing; the first two are on the scale of eq. 3 and take its λ.
AUDIT: dict[str, dict[str, Any]] = {
    EQ3: {"kl": "paper"},
    "second softmax": {"kl": "second_softmax"},
    "squared sum": {"kl": "squared_sum"},
    "CE on probabilities": {"task": "task_on_probabilities"},
    "code's TextRank": {"window": 8, "steps": 2},
    "unweighted TextRank": {"two_way": 1},
    "TF-IDF of every piece": {"salience_of": "tfidf", "every_piece": True},
}
PER_TEXT = (EQ3, "second softmax")

# The paper's signs for the attributions, and ours.
ATTRIBUTIONS = {
    "a": "attention",
    "xGx": "input_x_gradient",
    "aGa": "scaled_attention",
    "IG": "integrated_gradients",
}
SHOWN = {"a": "α", "xGx": "x∇x", "aGa": "α∇α", "IG": "IG"}  # as a reader knows them
SUPPORTS = (BASELINE, SALOSS, "Uniform")  # whose rationales FRESH classifiers are trained on
FRESH_WARMUP = 0.1  # of the first epoch; the paper's other models have none


@dataclass(frozen=True)
class Task:
    """A corpus in the place of one of the paper's sets."""

    role: str
    paper: str
    corpus: str
    source: str
    percent: int  # of the words, in a rationale
    weight: float  # the paper's λ
    core: bool

    @property
    def label(self) -> str:
        """As sentences name it: the paper's set, and the corpus in its place."""
        return f"{self.paper} ({self.corpus})"

    @property
    def heading(self) -> str:
        """As rows and columns of tables name it, on two lines."""
        return f"{self.paper}\n{self.corpus}"


def tasks(settings: Settings) -> list[Task]:
    """The five tasks in the paper's order."""
    found = []
    for role, (paper, percent) in ROLES.items():
        corpus = settings.roles[role]
        source = settings.source_of(corpus)
        core = role in settings.grid["core"]
        found.append(Task(role, paper, corpus, source, percent, paper_weights()[paper], core))
    return found


@cache
def paper_weights() -> dict[str, float]:
    """The paper's name of a set → its λ there (Table 1)."""
    printed = paper_table("saloss", "table1").query("metric == 'lambda'")
    return dict(zip(printed["row"], printed["mean"].astype(float), strict=True))


def seeds_of(settings: Settings, task: Task) -> tuple[int, ...]:
    """Every seed for a core task, the first one for a wide task."""
    return settings.seeds if task.core else settings.seeds[:1]


def objective(system: str, weight: float) -> tuple[Term, ...]:
    """The losses of a system; `weight` is λ."""
    if system == BASELINE:
        return (term("task"),)
    if system not in SALIENCE and system not in AUDIT:
        raise unknown("system", system, [BASELINE, *SALIENCE, *AUDIT])
    options = {"kl": "reference", "salience_of": "textrank"}
    options |= SALIENCE.get(system, {}) | AUDIT.get(system, {})
    loss = options.pop("task", "task")
    return (term(loss), term("salience", weight, **options))


def system_of(spec: RunSpec) -> str:
    """The system that a run belongs to, whatever its λ; a FRESH classifier's is its support's."""
    if spec.data.extract is not None:
        return system_of(spec.data.extract.run)
    weight = spec.objective[-1].weight
    names = (BASELINE, *SALIENCE, *AUDIT)
    return next(name for name in names if objective(name, weight) == spec.objective)


def named(settings: Settings, spec: RunSpec) -> str:
    """What a reader calls a run: its system and its set."""
    task = task_of(settings, spec)
    if spec.data.extract:
        return f"FRESH on {task.paper}"
    system = system_of(spec)
    if system == SALOSS and spec.objective[-1].weight != task.weight:
        system = CHOSEN
    return f"{system} on {task.paper}"


def power(weight: float) -> str:
    """A power of ten as the paper writes it: 1e-3."""
    return f"{weight:.0e}".replace("e-0", "e-").replace("e+00", "")


def run_spec(
    settings: Settings, task: Task, system: str, seed: int, weight: float = 0.0
) -> RunSpec:
    """One support model: trained from scratch, or on from a first Baseline on a wide task.

    There the Baseline goes on too: it is trained as long as the systems that it is compared with.
    """
    losses, first = objective(system, weight), _run(settings, recipe_of(settings, task), task, seed)
    if task.core:
        return replace(first, objective=losses)
    briefly = recipe_of(settings, task) | settings.grid["continued"]
    return replace(_run(settings, briefly, task, seed), objective=losses, start=first)


def fresh_spec(
    settings: Settings, task: Task, support: RunSpec, shape: str, order: str = "document"
) -> RunSpec:
    """A new classifier that sees nothing but the rationales (by attention) of a support model."""
    recipe = recipe_of(settings, task)
    recipe["train_rows"] = recipe.get("fresh_rows", recipe.get("train_rows"))
    recipe["warmup"] = FRESH_WARMUP / recipe["epochs"]
    extract = Extraction(support, task.percent, "attention", "saloss", shape, order)
    run = _run(settings, recipe, task, support.seed)
    return replace(run, data=replace(run.data, extract=extract))


def recipe_of(settings: Settings, task: Task) -> dict[str, Any]:
    """The profile's settings for a task: those of its own over those of all."""
    grid = settings.grid
    return {"model": grid["model"], **grid["training"], **grid["sets"][task.role]}


def _run(settings: Settings, recipe: Mapping[str, Any], task: Task, seed: int) -> RunSpec:
    """A classifier of the task by a recipe, with cross-entropy alone."""
    train, dev = recipe.get("train_rows"), recipe.get("dev_rows")
    sizes = {name: recipe[name] for name in ("lr", "head_lr", "epochs", "batch_size", "warmup")}
    return RunSpec(
        DataSpec(task.corpus, task.source, recipe["max_length"], train, dev),
        ModelSpec(recipe["model"], head="pooled", layers=settings.grid.get("layers")),
        optimiser=OptimiserSpec(
            **sizes,
            betas=(0.9, 0.999),
            clip=1.0,
            checkpoint=CheckpointRule(patience=None),  # all epochs, the best by dev loss kept
            precision=recipe.get("precision", "fp32"),
        ),
        seed=seed,
    )


def task_of(settings: Settings, spec: RunSpec) -> Task:
    """The task that a run was trained for."""
    return next(t for t in tasks(settings) if t.corpus == spec.data.corpus)
