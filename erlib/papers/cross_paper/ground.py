"""On what do all rows stand: which model, texts, steps and seeds do they share?

They are those of the ER-lens notebook, so that its Baselines and guided runs are rows here without
being trained again. Where a reason is planted, the corpus is its planted one, cut as the profile
says, and all else is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from erlib.config import EvalSpec, RunSpec
from erlib.data.planted import SWAPPED
from erlib.papers.er_lens import systems as er
from erlib.papers.er_lens.evaluations import TestSet, data_of, test_sets
from erlib.papers.er_lens.systems import Bounds
from erlib.parameters import Settings, check_parameters

CLEAN = ""  # the rule of the corpus as it is
SIZES = ("train_rows", "dev_rows", "max_length", "layers")  # what a planted corpus has of its own
TRAINED_ON = {"spurious": "single"}  # whose training texts are those of another rule


@dataclass(frozen=True)
class Ground:
    """What a row of one seed is made from."""

    settings: Settings  # of the ER-lens notebook, on this corpus
    seed: int
    bounds: Mapping[str, Bounds] = field(default_factory=dict)  # by guide; see `er.bounds_of`
    started: bool = False  # does the row go on from a start that is trained on the task alone?

    @property
    def baseline(self) -> RunSpec:
        """The task alone, in as many steps as the row is to have."""
        return er.unguided(self.settings, self.seed, started=self.started)

    @property
    def finished(self) -> RunSpec:
        """The row "Baseline" itself, for what begins where it ended."""
        return er.run_spec(self.settings, "Baseline", self.seed)

    def of(self, paper: str) -> Mapping[str, Any]:
        """What the profile sets for a paper."""
        return sister(self.settings, paper).grid


def sister(settings: Settings, paper: str) -> Settings:
    """Another notebook's settings, in the same profile and place."""
    given = {"profile": settings.profile, "data": settings.source, "executor": settings.executor}
    return check_parameters(paper, {**given, "store": settings.store, "device": settings.device})


def lens(settings: Settings, rule: str = CLEAN) -> Settings:
    """The settings of the ER-lens notebook in this profile, on the corpus with a planted rule."""
    found = sister(settings, "er_lens")
    if rule == CLEAN:
        return found
    own = settings.grid["planted"]
    roles = {**found.roles, "in_domain": f"{found.roles['in_domain']}+{rule}", "out_of_domain": []}
    sizes = {name: own[name] for name in SIZES if name in own}
    first = {f"Lexpl({letter})": 1 for letter in "ARI"}
    grid: dict[str, Any] = {
        **found.grid, **sizes, "roles": {found.source: roles},
        "optimiser": {**found.grid["optimiser"], **own.get("optimiser", {})},
        "seeds_of": {**found.grid.get("seeds_of", {}), **first},
    }  # fmt: skip
    return replace(found, grid=grid)


def rules_of(settings: Settings) -> list[str]:
    """The rules that models are trained on here, besides the corpus as it is."""
    wanted = settings.grid["planted"]["rules"]
    return list(dict.fromkeys(TRAINED_ON.get(rule, rule) for rule in wanted))


def home(settings: Settings) -> TestSet:
    """Test texts from where the models learnt."""
    return next(t for t in test_sets(lens(settings)) if t.in_domain and t.split == "test")


def away(settings: Settings) -> list[TestSet]:
    """Test texts from elsewhere, with the labels of the models' task."""
    return [t for t in test_sets(lens(settings)) if not t.in_domain]


def measured(
    settings: Settings, run: RunSpec, kind: str, rows: int | None, *, on: TestSet | None = None,
    **options: Any,
) -> EvalSpec:  # fmt: skip
    """An evaluation of test texts, of those that the run's corpus has where no other is named."""
    data = data_of(lens(settings), on) if on else replace(run.data, train_rows=None, dev_rows=None)
    return EvalSpec(run, data, "test", kind, rows, **options)


def on_rule(spec: EvalSpec, rule: str, *, swapped: bool = False) -> EvalSpec:
    """The same evaluation on texts of another rule, or with the planted words swapped."""
    base = spec.data.corpus.partition("+")[0]
    corpus = f"{base}+{rule}" + (f"+{SWAPPED}" if swapped else "")
    return replace(spec, data=replace(spec.data, corpus=corpus))
