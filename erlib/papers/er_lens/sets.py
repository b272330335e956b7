"""On which texts are the systems measured, and in the place of which of the paper's?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from erlib.config import DataSpec
from erlib.parameters import Settings

HOME, LONG, YELP_50 = "SST-Dev", "Movies", "Yelp-50"  # the paper's annotated sets, in its order


@dataclass(frozen=True)
class TestSet:
    """A split, the paper's column of F1 it stands in, and, if annotated, its column of AUC."""

    corpus: str
    split: str
    paper: str | None
    plausibility: str | None
    in_domain: bool

    @property
    def name(self) -> str:
        """What our tables and figures call it."""
        return f"{self.corpus} {self.split}" if self.in_domain else self.corpus

    @property
    def column(self) -> str:
        """Its column in the paper's Table 2."""
        return self.paper or self.name


def test_sets(settings: Settings) -> list[TestSet]:
    """Dev and test of the training corpus, then the test split of every out-of-domain corpus."""
    home = settings.roles["in_domain"]
    away = [
        TestSet(role["corpus"], "test", role.get("paper"), role.get("plausibility"), False)
        for role in settings.roles["out_of_domain"]
    ]
    return [
        TestSet(home, "dev", HOME, HOME, True),
        TestSet(home, "test", "SST-Test", None, True),
        *away,
    ]


def in_table_2(settings: Settings) -> list[TestSet]:
    """All but Yelp-50, which the paper measures apart: Tables 4 and 7."""
    return [t for t in test_sets(settings) if t.paper != YELP_50]


def annotated(settings: Settings) -> dict[str, TestSet]:
    """The sets whose rationales decide plausibility, by the paper's name, in its order."""
    sets = {t.plausibility: t for t in test_sets(settings)}
    return {name: sets[name] for name in (HOME, LONG, YELP_50) if name in sets}


def shown(settings: Settings) -> str:
    """The set of Figure 3: short reviews from another domain, or what there is of those."""
    return list(annotated(settings))[-1]


def headings(settings: Settings, techniques: Iterable[str]) -> dict[str, str]:
    """The paper's column of F1, or of a technique's AUC → our set's name above it."""
    found = {t.column: t.name for t in in_table_2(settings)}
    for where, test in annotated(settings).items():
        found.setdefault(where, test.name)
        found |= {f"{where}/{x}": f"{test.name}/{x}" for x in techniques}
    return {column: f"{name}\nfor {column}" for column, name in found.items() if name != column}


def data_of(settings: Settings, test: TestSet, max_length: int | None = None) -> DataSpec:
    """The texts of a set, cut to the profile's length or to another."""
    source = settings.source_of(test.corpus)
    return DataSpec(test.corpus, source, max_length or settings.grid["max_length"])


def rows_used(settings: Settings, test: TestSet) -> int | None:
    """How many texts of a set are classified; None: all."""
    return settings.grid.get("dev_rows" if test.split == "dev" else "test_rows")


def rows_attributed(settings: Settings, test: TestSet, technique: str) -> int | None:
    """How many texts of an annotated set a technique is taken of; None: all."""
    return settings.grid.get("attributed", {}).get(test.plausibility, {}).get(technique)
