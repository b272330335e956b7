"""By what are models judged? Each file here registers its own columns: yours is one file more.

    @column("gini", group="Faithful", title="Gini", read=mean_over(gini_of_texts), by="method")
    def gini(subject: Subject, method: str) -> Specs:
        return (subject.words(method),)

A column's function says which evaluations it is read from; nothing where the profile does not
measure it. `by="method"`: once for each attribution, and its number is their mean. The metric that
it names is declared in `erlib.metrics.directions`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from erlib.config import RunSpec
from erlib.metrics.directions import metric as declared
from erlib.papers.cells import Read, Reading, Spec, mean_reading
from erlib.papers.cross_paper import ground
from erlib.papers.er_lens.evaluations import TestSet
from erlib.papers.study import Study
from erlib.parameters import Settings

Specs = tuple[Spec, ...]
GROUPS = ("Task", "Plausible", "Faithful", "Stable", "Agreeing", "Useful", "Cost")


@dataclass(frozen=True)
class Subject:
    """A run that is judged; `others`: the same row's runs of the seeds after it, in a circle."""

    settings: Settings
    run: RunSpec
    others: tuple[RunSpec, ...] = ()

    @property
    def grid(self) -> Mapping[str, Any]:
        return self.settings.grid

    @property
    def methods(self) -> list[str]:
        """Attributions, for what is cheap."""
        return list(self.grid["methods"])

    @property
    def erased(self) -> list[str]:
        """Attributions by which tokens are removed again and again."""
        return list(self.grid["erased_methods"])

    def ask(
        self, kind: str, texts: str, method: str | None = None, *, on: TestSet | None = None,
        **options: Any,
    ) -> Specs:  # fmt: skip
        """An evaluation on as many texts as the profile says under `texts`, or nothing."""
        rows = self.grid["texts"].get(texts)
        if rows is None:
            return ()
        spent = _spent(self.grid, method)
        return (
            ground.measured(
                self.settings, self.run, kind, rows, on=on, method=method, options=spent, **options
            ),
        )

    def words(self, method: str) -> Specs:
        """What an attribution gives to each word."""
        return self.ask("word_scores", "explained", method, level="word")


def _spent(grid: Mapping[str, Any], method: str | None) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(grid.get("spends", {}).get(method, {}).items()))


@dataclass(frozen=True)
class Column:
    """A way of judging. `of`: the evaluations of a subject, by attribution or (under "") all."""

    name: str
    metric: str
    group: str
    title: str
    read: Read
    of: Callable[[Subject], dict[str, Specs]]

    @property
    def side(self) -> int:
        """1 where more is better, −1 where less is; 0 where neither end is good as such."""
        better = declared(self.metric).higher_is_better
        return 0 if better is None else 1 if better else -1

    @property
    def scale(self) -> str:
        return declared(self.metric).scale


COLUMNS: dict[str, Column] = {}


def column(
    name: str, *, group: str, title: str, read: Read, metric: str | None = None,
    by: Literal["model", "method", "erased"] = "model",
) -> Callable[[Callable[..., Specs]], Callable[..., Specs]]:  # fmt: skip
    """Register a column; `metric`: its name in the registry, where that is another."""

    def add(specs: Callable[..., Specs]) -> Callable[..., Specs]:
        def of(subject: Subject) -> dict[str, Specs]:
            if by == "model":
                found = {"": specs(subject)}
            else:
                methods = subject.methods if by == "method" else subject.erased
                found = {method: specs(subject, method) for method in methods}
            return {method: each for method, each in found.items() if each}

        COLUMNS[name] = Column(name, metric or name, group, title, read, of)
        return specs

    return add


def in_order() -> list[Column]:
    """All columns, group by group."""
    return sorted(COLUMNS.values(), key=lambda c: GROUPS.index(c.group))


def mean_of(read: Read, groups: Sequence[Specs]) -> Read:
    """The mean over attributions of what is read of each."""

    def both(study: Study, specs: Sequence[Spec]) -> Reading:
        return mean_reading([read(study, group) for group in groups])

    return both if len(groups) > 1 else read


for _module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
    import_module(f"{__name__}.{_module.name}")
