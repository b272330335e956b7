"""What does "Explanation Regularisation through the Lens of Attributions" train and measure?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, Term, term
from erlib.data import corpora
from erlib.errors import unknown
from erlib.parameters import Settings
from erlib.training.stages import Results, Stage

SYSTEMS: dict[str, tuple[Term, ...]] = {
    "Baseline": (term("task"),),
    "ER+Att": (term("task"), term("explanation", 1.0, guide="attention")),
}
TECHNIQUES = {"ATT": "attention"}
ANNOTATED = ("SST-Dev", "Movies", "Yelp-50")  # the sets on which the paper measures plausibility


@dataclass(frozen=True)
class TestSet:
    """A split that the systems are measured on, and the column of the paper it stands beside."""

    name: str
    corpus: str
    split: str
    paper: str | None
    in_domain: bool


def test_sets(settings: Settings) -> list[TestSet]:
    """Dev and test of the training corpus, then the test split of every out-of-domain corpus."""
    home = settings.roles["in_domain"]
    inside = [
        TestSet(f"{home} {split}", home, split, f"SST-{split.capitalize()}", True)
        for split in ("dev", "test")
    ]
    outside = [
        TestSet(role["corpus"], role["corpus"], "test", role.get("paper"), False)
        for role in settings.roles["out_of_domain"]
    ]
    return inside + outside


def annotated(settings: Settings) -> list[TestSet]:
    """The sets whose rationales decide plausibility: in-domain dev, and annotated ones outside."""
    return [
        t
        for t in test_sets(settings)
        if corpora()[t.corpus].rationale and (t.split == "dev" or not t.in_domain)
    ]


def run_spec(settings: Settings, system: str, seed: int) -> RunSpec:
    """One training run of the grid."""
    if system not in SYSTEMS:
        raise unknown("system", system, SYSTEMS)
    grid = settings.grid
    options = {**grid["optimiser"], **grid.get("overrides", {}).get(system, {})}
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    return RunSpec(
        data=DataSpec(
            settings.roles["in_domain"],
            settings.source,
            grid["max_length"],
            grid.get("train_rows"),
            grid.get("dev_rows"),
        ),
        model=ModelSpec(grid["model"], head="er"),
        objective=SYSTEMS[system],
        optimiser=OptimiserSpec(**options),
        seed=seed,
    )


def system_of(spec: RunSpec) -> str:
    """The name of the system that a run belongs to."""
    return next(name for name, objective in SYSTEMS.items() if objective == spec.objective)


def eval_specs(settings: Settings, runs: Sequence[RunSpec]) -> list[EvalSpec]:
    """Predictions on every set, plausibility of every technique on the annotated ones."""
    grid, specs = settings.grid, []
    for spec in runs:
        for test in test_sets(settings):
            data = DataSpec(test.corpus, settings.source, grid["max_length"])
            rows = grid.get("dev_rows" if test.split == "dev" else "test_rows")
            specs.append(EvalSpec(spec, data, test.split, "predictions", rows))
            if test in annotated(settings):
                specs += [
                    EvalSpec(
                        spec,
                        data,
                        test.split,
                        "plausibility",
                        rows,
                        method=method,
                        variant="er_lens",
                        target="gold",
                        protocol="layers",
                    )
                    for method in TECHNIQUES.values()
                ]
    return specs


def grid(settings: Settings) -> list[Stage]:
    """Train every system with every seed; then measure every run that was not lost."""
    runs = [
        run_spec(settings, system, seed)
        for system in settings.grid["systems"]
        for seed in settings.seeds
    ]
    measured = eval_specs(settings, runs)

    def measure(results: Results) -> list[EvalSpec]:
        kept = results["runs"].query("status == 'done'")["spec"]
        return eval_specs(settings, list(kept))

    return [
        Stage("runs", lambda results: runs, len(runs), runs[0]),
        Stage("measurements", measure, len(measured), measured[0]),
    ]
