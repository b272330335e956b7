"""On which texts are the systems measured, and in the place of which of the paper's?"""

from __future__ import annotations

from dataclasses import dataclass

from erlib.config import DataSpec
from erlib.parameters import Settings

YELP_50 = "Yelp-50"  # measured apart: Tables 4 and 7, never Table 2


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


def test_sets(settings: Settings) -> list[TestSet]:
    """Dev and test of the training corpus, then the test split of every out-of-domain corpus."""
    home = settings.roles["in_domain"]
    outside = [
        TestSet(role["corpus"], "test", role.get("paper"), role.get("plausibility"), False)
        for role in settings.roles["out_of_domain"]
    ]
    return [
        TestSet(home, "dev", "SST-Dev", "SST-Dev", True),
        TestSet(home, "test", "SST-Test", None, True),
        *outside,
    ]


def annotated(settings: Settings) -> list[TestSet]:
    """The sets whose rationales decide plausibility, in the paper's order."""
    order = ("SST-Dev", "Movies", YELP_50)
    sets = {t.plausibility: t for t in test_sets(settings)}
    return [sets[name] for name in order if name in sets]


def outside(settings: Settings) -> list[TestSet]:
    """The sets of Table 2 that are not of the training corpus."""
    return [t for t in test_sets(settings) if not t.in_domain and t.paper != YELP_50]


def data_of(settings: Settings, test: TestSet, max_length: int | None = None) -> DataSpec:
    """The texts of a set, cut to the profile's length or to another."""
    return DataSpec(test.corpus, settings.source, max_length or settings.grid["max_length"])


def rows_used(settings: Settings, test: TestSet) -> int | None:
    """How many texts of a set are classified; None: all."""
    return settings.grid.get("dev_rows" if test.split == "dev" else "test_rows")


def rows_attributed(settings: Settings, test: TestSet, technique: str) -> int | None:
    """How many texts of an annotated set a technique is taken of; None: all."""
    return settings.grid.get("attributed", {}).get(test.plausibility, {}).get(technique)
