"""What do tests over texts say? They stand beside the verdicts, which are made from seeds.

A text belongs to a cartography group by how often the run itself classified it correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations, product

import numpy as np
import pandas as pd
from scipy.stats import combine_pvalues, mannwhitneyu

from erlib.metrics.cartography import GROUPS
from erlib.metrics.correlations import fisher_mean, fisher_test
from erlib.metrics.stats import holm, signed_rank_p
from erlib.papers.agreement.agreements import METRICS
from erlib.papers.agreement.systems import COMPARED, MODELS, VARIANTS, tasks
from erlib.papers.cells import Reading
from erlib.papers.holes import as_table
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place

FEWEST = 3  # texts on each side of a test
SIGNS = {"kendall_tau": "τ", "pearson_r": "r"}
R = "pearson_r"
Test = Callable[[Reading, Reading], float | None]  # its p; None of too few texts
BySeed = list[tuple[Reading, ...]]  # of each seed, the readings that a test compares


def shared(study: Study, *places: Place) -> BySeed:
    """What the tables show at these places, of the seeds that all of them have."""
    found = [study.shown(place) for place in places]
    seeds = sorted(set.intersection(*map(set, found)))
    return [tuple(by_seed[seed] for by_seed in found) for seed in seeds]


def all_trained(readings: BySeed) -> str:
    """ "yes" or "no": have all the models that a test compares learnt their task?"""
    return "yes" if all(r.trained for of_seed in readings for r in of_seed) else "no"


def table_2_tests(study: Study) -> pd.DataFrame:
    """The paper's test: is a variant above each of the other two? Signed-rank over texts, Holm.

    A text's agreement is its mean over pairs and seeds (agreement.md §4.15); a text that one of the
    three variants has no agreement on is left out. Cells are Holm's p of "row above column"; the
    dagger is for a variant that is above both others, of trained models only.
    """
    rows = []
    for model, task, metric in product(MODELS, tasks(study.settings), METRICS):
        row = f"{model}|{task.paper}"
        seeds = shared(study, *(Place("table2", row, v, metric) for v in VARIANTS))
        if not seeds:  # of one of them every run failed
            continue
        means = {
            variant: pd.concat([r.texts for r in of_seeds], axis=1).mean(axis=1)
            for variant, of_seeds in zip(VARIANTS, zip(*seeds, strict=True), strict=True)
        }
        texts = pd.DataFrame(means).dropna()
        rows += [
            {
                "model": model,
                "set": task.paper,
                "of": SIGNS[metric],
                "seeds": len(seeds),
                "texts": len(texts),
                "trained": all_trained(seeds),
                "variant": one,
                "above": other,
                "p": signed_rank_p(texts[one] - texts[other], "greater"),
            }
            for one, other in permutations(VARIANTS, 2)
        ]
    if not rows:
        return as_table("no set has all three variants")
    table = pd.DataFrame(rows)
    table["p"] = holm(table["p"])
    index = ["model", "set", "of", "seeds", "texts", "trained", "variant"]
    wide = table.pivot(index=index, columns="above", values="p").reindex(columns=list(VARIANTS))
    wide.columns = [f"p, above {name}" for name in VARIANTS]
    trained = wide.index.get_level_values("trained") == "yes"
    wide["†"] = np.where((wide.max(axis=1) < 0.05) & trained, "†", "")
    order = table[index].drop_duplicates()
    return wide.reindex(pd.MultiIndex.from_frame(order)).reset_index()


def group_tests(study: Study) -> pd.DataFrame:
    """DBERT, each set: Amb over Easy within a variant, Tying over Base within a group; p by Holm.

    Mann-Whitney for the first (other texts), the signed-rank test for the second (the texts of
    Base's group under both models); one-sided, per seed, combined by Stouffer's method. A seed with
    fewer than three texts on a side has no test. `trained`: are all models of the test?
    """
    rows = []
    for task in tasks(study.settings):
        for name, test, places in _compared(task.paper):
            seeds = shared(study, *places)
            ps = [p for pair in seeds if (p := test(*pair)) is not None]
            found = {"trained": all_trained(seeds), **combined(ps)}
            rows.append({"set": task.paper, "test": name, **found})
    table = pd.DataFrame(rows)
    tested = table["p"].notna()
    table.loc[tested, "p (Holm)"] = holm(table.loc[tested, "p"]) if tested.any() else []
    return table


def _compared(paper: str) -> Iterator[tuple[str, Test, list[Place]]]:
    """The tests of a set by name, and what each compares."""
    of_group = {group: f"{paper}|{group}" for group in GROUPS}
    for variant in COMPARED:
        both = [Place("table4", of_group[group], variant, R) for group in ("Amb", "Easy")]
        yield f"Amb > Easy, {variant}", above, both
    tying = Place("table2", f"DBERT|{paper}", "Tying", R)
    for group, row in of_group.items():
        yield f"Tying > Base, {group}", raised, [tying, Place("table4", row, "Base", R)]


def above(amb: Reading, easy: Reading) -> float | None:
    """p of one group over another, other texts; None with too few in either."""
    if min(len(_texts(amb)), len(_texts(easy))) < FEWEST:
        return None
    return float(mannwhitneyu(_texts(amb), _texts(easy), alternative="greater").pvalue)


def raised(tying: Reading, group: Reading) -> float | None:
    """p of Tying over Base on the texts of Base's group; None with too few."""
    gain = (_texts(tying).reindex(_texts(group).index) - _texts(group)).dropna()
    return signed_rank_p(gain, "greater") if len(gain) >= FEWEST else None


def _texts(reading: Reading) -> pd.Series:
    assert isinstance(reading.texts, pd.Series)
    return reading.texts


def combined(ps: list[float]) -> dict[str, float]:
    """How many seeds were tested, and Stouffer's combination of their p; NaN of none."""
    bounded = np.clip(ps, 1e-300, 1 - 1e-16)
    p = combine_pvalues(bounded, method="stouffer").pvalue if ps else np.nan
    return {"seeds": len(ps), "p": float(p)}


def correlation_tests(study: Study) -> pd.DataFrame:
    """r of each cell of Table 11 (mean over seeds by Fisher's z), its interval and p over texts.

    Seeds share their texts, so the interval is as wide as one seed's: agreement.md §4.10.
    """
    numbers = study.numbers(study.of("table11")).query("texts > 0")
    rows = []
    for (row, variant), cell in numbers.groupby(["row", "column"], sort=False):
        r, texts = fisher_mean(cell["value"]), int(cell["texts"].min())
        place = dict(zip(("statistic", "set", "attribute"), row.split("|"), strict=True))
        counts = {"variant": variant, "seeds": len(cell), "texts": texts}
        test = dict(zip(("low", "high", "p"), fisher_test(r, texts), strict=True))
        rows.append({**place, **counts, "r": r, **test})
    return pd.DataFrame(rows)
