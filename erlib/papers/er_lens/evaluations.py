"""On which texts is what measured of a run, and in the place of which of the paper's texts?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from erlib.attributions import method
from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.papers.er_lens.systems import GUIDES, SYSTEMS, TECHNIQUES
from erlib.parameters import Settings

HOME, LONG, YELP_50 = "SST-Dev", "Movies", "Yelp-50"  # the paper's annotated sets, in its order


@dataclass(frozen=True)
class TestSet:
    """A split, the paper's column of F1 it stands in, and, if annotated, its column of AUC."""

    corpus: str
    split: str
    paper: str | None
    plausibility: str | None
    in_domain: bool = False

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
    home, away = settings.roles["in_domain"], settings.roles["out_of_domain"]
    return [
        TestSet(home, "dev", HOME, HOME, in_domain=True),
        TestSet(home, "test", "SST-Test", None, in_domain=True),
        *(TestSet(a["corpus"], "test", a.get("paper"), a.get("plausibility")) for a in away),
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
    """How many texts of a set are read; None: all."""
    return settings.grid.get(f"{test.split}_rows")


def techniques_on(settings: Settings, test: TestSet, system: str, seed: int) -> list[str]:
    """The techniques measured of a run on a set.

    Decompositions are expensive. The profile may keep them to some systems and to the first seeds,
    on every set (`decomposed`) or on the long documents (`long`), which the paper left out.
    """
    limits = [settings.grid.get("decomposed", {})]
    limits += [settings.grid["long"]] if test.plausibility == LONG else []
    for limit in limits:
        wide = system in limit.get("systems", SYSTEMS)
        count = limit.get("seeds") if wide else limit.get("seeds_of_others", 0)
        if seed not in settings.seeds[:count]:
            return list(GUIDES)
    return list(TECHNIQUES)


def prediction_spec(settings: Settings, run: RunSpec, test: TestSet) -> EvalSpec:
    """What a run answers on a set."""
    rows = rows_used(settings, test)
    return EvalSpec(run, data_of(settings, test), test.split, "predictions", rows)


def plausibility_spec(settings: Settings, run: RunSpec, test: TestSet, technique: str) -> EvalSpec:
    """AUC, AP and recall@k of a technique on a set; of every layer where it has layers."""
    long = test.plausibility == LONG  # cut alike for all techniques, to be compared
    data = data_of(settings, test, settings.grid["long"]["max_length"] if long else None)
    rows = settings.grid.get("attributed", {}).get(test.plausibility, {}).get(technique)
    name = TECHNIQUES[technique]
    protocol = "layers" if method(name).per_layer else None
    return EvalSpec(
        run, data, test.split, "plausibility", rows, name, "er_lens", "gold", protocol=protocol
    )


def erasure_spec(
    settings: Settings, run: RunSpec, technique: str, variant: str | None = None
) -> EvalSpec:
    """Sufficiency and comprehensiveness on the dev texts of a technique, or of tokens in a random
    order ("RAND"); signed scores, as in the paper."""
    home, rows = annotated(settings)[HOME], settings.grid.get("erased_rows")
    variant = variant or ("er_lens_signed" if technique == "IXG" else "er_lens")
    name = TECHNIQUES.get(technique, "random")
    return EvalSpec(
        run, data_of(settings, home), home.split, "faithfulness", rows, name, variant, "gold",
        protocol="er_lens",
    )  # fmt: skip


def erasure_specs(settings: Settings, run: RunSpec) -> dict[str, EvalSpec]:
    """Of every technique and in a random order."""
    return {name: erasure_spec(settings, run, name) for name in (*TECHNIQUES, "RAND")}
