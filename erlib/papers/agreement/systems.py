"""What does "Easy to Decide, Hard to Agree" train and measure?

Two models on four binary tasks, each as Base and with either regulariser. The weight λ of a
regulariser is the strongest one whose validation F1 is within three points of Base: the grid is
tried from its strong end, one stage per λ, until one is close enough. Tasks that are not core to
a profile take the λ of the core task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from erlib.papers.agreement.vectors import glove_file, word_vectors
from erlib.papers.holes import failed
from erlib.parameters import Settings
from erlib.training.stages import Results, Stage, no_model

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
OWN_WEIGHT = ("Conicity", "Tying", "Tying, squared")  # another scale needs another λ
CLOSE = 0.03  # F1 that the regularised model may lose on validation texts


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
    listed = [
        Task(role["paper"], role["corpus"], tuple(role.get("classes", ())))
        for role in settings.roles["tasks"]
    ]
    return sorted(listed, key=lambda task: SETS.index(task.paper))


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
        settings.source,
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
    asked, explained = (
        count_of(settings, system.model, system.task, what)
        for what in ("test_rows", "explained_rows")
    )
    predictions = EvalSpec(None, test, "test", "predictions", asked)
    return RunSpec(
        data=data,
        model=ModelSpec(
            word_vectors(settings, data, seed) if model["name"] == "jwa" else model["name"],
            head="agreement",
            specials=False,
            layers=model.get("layers"),
        ),
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
            predictions,
            explanation(settings, test, explained),
            *(
                [replace(predictions, protocol="dropout")]
                if predicts_both(settings, system)
                else []
            ),
        ),
    )


def predicts_both(settings: Settings, system: System) -> bool:
    """Are test texts also predicted with dropout, as the paper's maps were? (agreement.md §4.11)"""
    return system.model == "DBERT" and system.variant == "Base" and _audited(settings, system.task)


def _audited(settings: Settings, task: Task) -> bool:
    return task.paper in settings.grid["audit"]


def explanation(settings: Settings, data: DataSpec, rows: int | None) -> EvalSpec:
    """Agreement of the four methods on test texts, of whatever run it is asked of."""
    points = settings.grid.get("points")  # of integrated gradients; as many as the paper has: 50
    return EvalSpec(
        None, data, "test", "agreement", rows, variant="agreement", target="gold", level="token",
        options=(("steps", points),) if points else (),
    )  # fmt: skip


def last_epoch(spec: RunSpec) -> int:
    """The epoch that the paper's tables read; no run stops early."""
    return spec.optimiser.epochs


def grid(settings: Settings) -> list[Stage]:
    """Base; λ from the strongest down; the other seeds; then what the kept models show."""
    base = [(s, seed) for s in systems(settings, ["Base"]) for seed in seeds_of(settings, s)]

    def base_runs(results: Results) -> list[RunSpec]:
        return [run_spec(settings, s, seed) for s, seed in base]

    def regularised_runs(results: Results) -> list[RunSpec]:
        return [spec for s, spec in final_runs(settings, results) if s.variant != "Base"]

    steps = max(len(weights(settings, s)) for s in searched(settings))
    sample = _sample(settings)
    regularised = systems(settings, [*VARIANTS[1:], *AUDITED])
    most = sum(
        len(measures(settings, s, sample)) * len(seeds_of(settings, s)) for s in systems(settings)
    )
    first = measures(settings, System("DBERT", tasks(settings)[0], "Base"), sample)[0]
    # Runs that need no result are listed beforehand, unless making the list reads word vectors.
    early = glove_file() is None
    run_stage = partial(Stage, asked=partial(_asked, settings), keeps=partial(_kept, settings))
    return [
        run_stage("base", base_runs, len(base), base_runs({}) if early else sample),
        *(_search_stage(settings, step, early=early and step == 0) for step in range(steps)),
        run_stage(
            "regularised",
            regularised_runs,
            sum(len(seeds_of(settings, s)) for s in regularised),
            regularised_runs({}) if early and steps == 1 else sample,
        ),
        Stage("measurements", lambda results: _measurements(settings, results), most, first),
    ]


def baselines(settings: Settings) -> dict[str, list[EvalSpec]]:
    """The answers of DBERT's Base on every task; JWA has no pretrained encoder."""
    found = {}
    for task in tasks(settings):
        system = System("DBERT", task, "Base")
        runs = [run_spec(settings, system, seed) for seed in seeds_of(settings, system)]
        found[task.paper] = [replace(run.each_epoch[0], run=run) for run in runs]
    return found


def weights(settings: Settings, system: System) -> list[float]:
    """The λ to be tried, the strongest first."""
    return sorted(settings.grid["lambdas"][system.variant], reverse=True)


def searched(settings: Settings) -> list[System]:
    """The cells that have a search of their own."""
    found = systems(settings, [*VARIANTS[1:], *AUDITED])
    return list(dict.fromkeys(weight_source(settings, s) for s in found))


def weight_source(settings: Settings, system: System) -> System:
    """The cell whose search chooses this cell's λ."""
    if system.variant not in OWN_WEIGHT:  # only the switch is to differ
        plain = System(system.model, system.task, system.variant.split(",")[0])
        return weight_source(settings, plain)
    core = core_tasks(settings, system.model)
    if system.task in core or system.variant in AUDITED:
        return system
    return System(system.model, core[0], system.variant)


def _search_stage(settings: Settings, step: int, *, early: bool) -> Stage:
    """The λ at this place of the grid, where none before it was close enough."""
    cells = [s for s in searched(settings) if step < len(weights(settings, s))]

    def specs(results: Results) -> list[RunSpec]:
        return [
            search_spec(settings, s, weights(settings, s)[step])
            for s in cells
            if step == 0 or _accepted(settings, results, s) is None
        ]

    sample = specs({}) if early else _sample(settings)
    return Stage(
        f"λ search {step + 1}",
        specs,
        len(cells),
        sample,
        asked=partial(_asked, settings),
        keeps=no_model,
    )


def system_of(settings: Settings, run: RunSpec) -> System:
    """The cell that a run belongs to."""
    model = "DBERT" if run.model.name == settings.grid["models"]["DBERT"]["name"] else "JWA"
    task = next(t for t in tasks(settings) if t.corpus == run.data.corpus)
    weight = run.objective[-1].weight
    known = (v for v in (*VARIANTS, *AUDITED) if objective(v, weight) == run.objective)
    return System(model, task, next(known))


def _asked(settings: Settings, run: RunSpec) -> list[EvalSpec]:
    """What is measured of a finished run; nothing of one that only the search looks at."""
    system = system_of(settings, run)
    if not run.each_epoch or system.variant not in VARIANTS:
        return []
    answers = replace(run.each_epoch[0], run=run)  # beside those of the frozen encoder
    compared = system.model == "DBERT" and system.variant == "Base"
    return [*measures(settings, system, run), *([answers] if compared else [])]


def _kept(settings: Settings, run: RunSpec) -> bool:
    system = system_of(settings, run)
    named = system.task.paper in settings.grid["keep"] and system.variant in ("Base", "Tying")
    return named and run.seed == settings.seeds[0]


def search_spec(settings: Settings, system: System, weight: float) -> RunSpec:
    """A run of the search: the first seed's, without explanations, which cost more than training.

    Where there is one λ only, nothing is searched and the run is the final one.
    """
    spec = run_spec(settings, system, settings.seeds[0], weight)
    return spec if len(weights(settings, system)) == 1 else replace(spec, each_epoch=())


def tried(settings: Settings, results: Results, system: System) -> list[tuple[float, float]]:
    """(λ, validation F1) of the weights that the search has tried so far, the strongest first."""
    found = _scores(results)
    pairs = []
    for weight in weights(settings, system):
        spec = search_spec(settings, system, weight)
        if spec in found:
            pairs.append((weight, found[spec]))
    return pairs


def base_score(settings: Settings, results: Results, system: System) -> float:
    """Validation F1 of the Base run that a search compares with."""
    base = System(system.model, system.task, "Base")
    return _scores(results)[run_spec(settings, base, settings.seeds[0])]


def _accepted(settings: Settings, results: Results, system: System) -> float | None:
    enough = base_score(settings, results, system) - CLOSE
    return next((w for w, f1 in tried(settings, results, system) if f1 >= enough), None)


def chosen_weight(settings: Settings, results: Results, system: System) -> float:
    """The strongest λ within three F1 points; where none is, the weakest of the grid."""
    source = weight_source(settings, system)
    grid = weights(settings, source)
    found = grid[0] if len(grid) == 1 else _accepted(settings, results, source)
    return grid[-1] if found is None else found


def within_reach(settings: Settings, results: Results, system: System) -> bool:
    """Did any λ of the grid stay within three points?"""
    return _accepted(settings, results, weight_source(settings, system)) is not None


def _scores(results: Results) -> dict[RunSpec, float]:
    return {
        row["spec"]: row["dev_f1_binary"]
        for name, table in results.items()
        if "dev_f1_binary" in table and name != "measurements"
        for row in table[["spec", "dev_f1_binary"]].to_dict("records")
    }


def final_runs(settings: Settings, results: Results) -> Iterator[tuple[System, RunSpec]]:
    """The runs that the tables read: Base, and every other variant with its chosen λ."""
    for system in systems(settings, [*VARIANTS, *AUDITED]):
        weight = 0.0
        if system.variant != "Base":
            weight = chosen_weight(settings, results, system)
        for seed in seeds_of(settings, system):
            yield system, run_spec(settings, system, seed, weight)


def _measurements(settings: Settings, results: Results) -> list[EvalSpec]:
    holes = failed(results.values())
    return [
        one
        for system, spec in final_runs(settings, results)
        if system.variant in VARIANTS and spec not in holes
        for one in measures(settings, system, spec)
    ]


def measures(settings: Settings, system: System, spec: RunSpec) -> list[EvalSpec]:
    """Of the kept model: curvature for Base and Tying; for the Transformer agreement under dropout.

    JWA has no dropout.
    """
    specs = []
    if system.variant in ("Base", "Tying"):
        specs.append(curvature_spec(settings, spec, system.model))
    if system.model == "DBERT":
        specs.append(dropout_spec(spec))
    return specs


def curvature_spec(settings: Settings, spec: RunSpec, model: str) -> EvalSpec:
    """Curvature of the kept model on test texts."""
    options = settings.grid["models"][model]
    return EvalSpec(
        spec,
        spec.each_epoch[0].data,
        "test",
        "curvature",
        options.get("curvature_rows"),
        protocol=options["norm"],
    )


def dropout_spec(spec: RunSpec) -> EvalSpec:
    """Agreement of the kept model as the paper's code measured it, with dropout on."""
    explained = spec.each_epoch[1]
    rows = None if explained.rows is None else under_dropout(explained.rows)
    return replace(explained, run=spec, rows=rows, variant="agreement_dropout", options=())


def under_dropout(explained: int) -> int:
    """A quarter of the explained texts, where a profile counts them: each costs many times more."""
    return -(-explained // 4)


def _sample(settings: Settings) -> RunSpec:
    return run_spec(settings, System("DBERT", tasks(settings)[0], "Base"), settings.seeds[0])
