"""Which of our numbers go into which claim of the paper?

What a claim says and how it is decided are data (`erlib/claims/regex.toml`); here are the
measurements of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from erlib.config import EvalSpec
from erlib.metrics.task import f1_difference
from erlib.papers.regex.grid import (
    BEST,
    MAIN,
    PAPERS_BEST,
    UNTRAINED,
    Cell,
    ablated,
    attacked,
    faithful,
    fresh,
    full_text,
    initialisations,
    short_run,
    swept,
)
from erlib.papers.regex.study import WORDS, Study
from erlib.papers.regex.systems import ATTRIBUTIONS, GUIDES, is_long
from erlib.papers.regex.tables import similarities
from erlib.reports.claims import claims, decidable

CORE_CLAIMS = ("RX-C1", "RX-C2", "RX-C3", "RX-C6", "RX-C8", "RX-C11")
OF_PAIRS = ("RX-C1", "RX-C2", "RX-C3", "RX-C6")  # their statements are about every pair of sets
Measured = dict[str, dict[str, Any]]
OTHERS = [a for a in ATTRIBUTIONS if a not in (*BEST, "RAND")]


def measure_claims(study: Study) -> dict[str, Measured]:
    """Claim id → part → what its rule takes."""
    table = _Faithfulness(study, faithful(study.settings))
    variants = _Faithfulness(study, ablated(study.settings))
    measured = {
        "RX-C1": table.gains("DeepLift", "norm_suff"),
        "RX-C2": table.gains("aGa", "norm_suff"),
        "RX-C3": {
            f"{pair} {attribution}": given
            for attribution in BEST
            for pair, given in table.gains(attribution, "norm_comp").items()
        },
        "RX-C4": {p: g for p, g in table.gains("a", "norm_comp").items() if p.startswith("Amaz")},
        "RX-C5": {WORDS[m]: table.best_two(m) for m in WORDS},
        "RX-C6": _f1_gains(study),
        "RX-C7": _fresh_gains(study),
        "RX-C8": {"pairs of initialisations": _between(study, small=False)},
        "RX-C9": {"with the untrained model": _with_untrained(study)},
        "RX-C10": {"pairs of initialisations": _between(study, small=True)},
        "RX-C11": {
            f"{a} {WORDS[m]}": variants.change(
                a, m, "w/o robustness improvement", "w/o explanation guided training"
            )
            for m in WORDS
            for a in BEST
        },
        "RX-C12": {
            f"{guide} {a} {WORDS[m]}": variants.change(
                a, m, f"{guide} (Mean)", _with_norm(variants, guide)
            )
            for guide in GUIDES
            for m in WORDS
            for a in BEST
        },
        "RX-C13": {
            f"{system} {a}": variants.change(
                a, "norm_suff", variants.as_long_as(system, "w/o robustness improvement"), system
            )
            for system in ("w/o virtual adversarial training", "w/o input gradient regularization")
            for a in BEST
        },
        "RX-C14": {"success rate": _attack(study)},
        "RX-C15": {
            f"{'λ4' if name == 'lambda' else 'K'} {WORDS[m]}": _best_of_sweep(study, name, m)
            for name, m in PAPERS_BEST
        },
        "RX-C16": {
            f"{a} {WORDS[m]}": table.over_random(a, m)
            for m in WORDS
            for a in ATTRIBUTIONS
            if a != "RAND"
        },
    }
    found = {
        claim: {name: part for name, part in parts.items() if len(part["differences"])}
        for claim, parts in measured.items()
    }
    return {claim: decidable(parts) for claim, parts in found.items() if parts}


def remark(claim: str, measured: Measured) -> str:
    """What a reader has to know of a verdict: what it lacks, and what it counts."""
    said, parts = [], [part.name for part in claims("regex")[claim].parts]
    if len(measured) < len(parts) and claim in OF_PAIRS:
        k, n = (len({name.split()[0] for name in names}) for names in (measured, parts))
        said.append(f"Decided on {k} of {n} pairs; it says nothing of the others.")
    elif len(measured) < len(parts):
        said.append("Parts not measured have fewer than three seeds in this profile, or none.")
    if claim in ("RX-C8", "RX-C10"):
        said.append("n counts pairs of models, which are not independent of each other.")
    return " ".join(said)


class _Faithfulness:
    """AOPC per text of the cells of a table, by pair, system, attribution and seed."""

    def __init__(self, study: Study, cells: Sequence[Cell]) -> None:
        self.study = study
        self.aopc = cache(study.aopc)  # claims share many of the same tables
        self.cells = {
            (f"{c.source}->{c.target}", c.system, c.attribution, c.seed): c.spec
            for c in cells
            if study.has(c.spec)
        }

    def systems(self) -> set[str]:
        """Those that were measured."""
        return {key[1] for key in self.cells}

    def as_long_as(self, variant: str, system: str) -> str:
        """The row of a system whose runs are as long as the variant's."""
        short = short_run(system)
        brief = not is_long(self.study.settings, variant)
        return short if brief and short in self.systems() else system

    def pairs(self) -> list[str]:
        """In the paper's order."""
        return list(dict.fromkeys(key[0] for key in self.cells))

    def seeds(self, *wanted: tuple[str, str, str]) -> list[int]:
        """Those that decide, of which all wanted (pair, system, attribution) were measured."""
        each = [{k[3] for k in self.cells if k[:3] == w} for w in wanted]
        shared = sorted(set.intersection(*each))
        return self.study.deciding({s: [self.cells[*w, s] for w in wanted] for s in shared})

    def texts(self, pair: str, system: str, attribution: str, seed: int, m: str) -> pd.Series:
        """AOPC by the text's id."""
        return self.aopc(self.cells[pair, system, attribution, seed], m)

    def change(self, a: str, m: str, before: str, after: str, pair: str = "SST->SST") -> dict:
        """after − before, per seed and text; a wide system is measured on fewer texts."""
        rows = []
        for seed in self.seeds((pair, before, a), (pair, after, a)):
            new, old = (self.texts(pair, system, a, seed, m) for system in (after, before))
            shared = new.index.intersection(old.index, sort=False)
            rows.append((new[shared] - old[shared]).to_numpy())
        return _paired(rows)

    def gains(self, a: str, m: str) -> Measured:
        """REGEX − Baseline in every pair."""
        return {pair: self.change(a, m, "Baseline", "REGEX", pair) for pair in self.pairs()}

    def over_random(self, a: str, m: str) -> dict:
        """Attribution − random under REGEX, the mean over the pairs."""

        def difference(pair: str, seed: int) -> pd.Series:
            return self.texts(pair, "REGEX", a, seed, m) - self.texts(
                pair, "REGEX", "RAND", seed, m
            )

        return self._over_pairs([a, "RAND"], difference)

    def best_two(self, m: str) -> dict:
        """Mean of α∇α and DeepLift − the best of the others, under REGEX; mean over the pairs."""

        def difference(pair: str, seed: int) -> pd.Series:
            values = {a: self.texts(pair, "REGEX", a, seed, m) for a in ATTRIBUTIONS if a != "RAND"}
            best = max(OTHERS, key=lambda a: float(values[a].mean()))
            return np.mean([values[a] for a in BEST], axis=0) - values[best]

        return self._over_pairs([*BEST, *OTHERS], difference)

    def _over_pairs(self, needed: list[str], difference: Callable[[str, int], pd.Series]) -> dict:
        """One number per seed that has every pair: the mean over pairs, each counting the same."""
        wanted = [(pair, "REGEX", a) for pair in self.pairs() for a in needed]
        return {
            "differences": [
                float(np.mean([difference(pair, seed).mean() for pair in self.pairs()]))
                for seed in self.seeds(*wanted)
            ]
        }


def _paired(rows: list[NDArray]) -> dict[str, Any]:
    return {"differences": [float(np.nanmean(r)) for r in rows], "per_text": rows}


def _with_norm(variants: _Faithfulness, guide: str) -> str:
    """The ℓ2 variant of a guide, trained as long as the one with the mean."""
    return variants.as_long_as("IG (Mean)", "REGEX") if guide == "IG" else f"{guide} (l2)"


def _f1_gains(study: Study) -> Measured:
    cells = {(f"{c.source}->{c.target}", c.system, c.seed): c for c in full_text(study.settings)}
    found: dict[str, dict[int, tuple[Cell, Cell]]] = {}
    for (pair, system, seed), cell in cells.items():
        if system == "Baseline" and (pair, "REGEX", seed) in cells:
            found.setdefault(pair, {})[seed] = (cell, cells[pair, "REGEX", seed])
    return {pair: _f1_paired(study, by_seed) for pair, by_seed in found.items()}


def _fresh_gains(study: Study) -> Measured:
    """FRESH from REGEX − FRESH from the Baseline, and − the Baseline on the full text."""
    cells = {(f"{c.source}->{c.target}", c.system, c.attribution, c.seed): c
             for c in [*fresh(study.settings), *full_text(study.settings)]}  # fmt: skip
    wanted = {
        **{
            f"{pair} {a}": (pair, ("Baseline", a), ("REGEX", a))
            for pair, a in (("SST->SST", "aGa"), ("SST->SST", "DeepLift"), ("SST->IMDB", "aGa"),
                            ("SST->Yelp", "aGa"), ("Yelp->Yelp", "DeepLift"), ("Yelp->SST", "aGa"))
        },
        **{
            f"{pair} {a} against full text": (pair, ("Baseline", "Full-text"), ("REGEX", a))
            for pair, a in (("SST->SST", "aGa"), ("Yelp->Yelp", "DeepLift"))
        },
    }  # fmt: skip
    measured = {}
    for part, (pair, before, after) in wanted.items():
        by_seed = {
            k[3]: (cells[k], cells[pair, *after, k[3]])
            for k in cells
            if k[:3] == (pair, *before) and (pair, *after, k[3]) in cells
        }
        if by_seed:
            measured[part] = _f1_paired(study, by_seed)
    return measured


def _two_answers(study: Study, before: Cell, after: Cell) -> NDArray:
    """[text, (gold, before's, after's)] of the texts that both saw."""
    a, b = (study.texts(c.spec).set_index("id") for c in (before, after))
    shared = [i for i in a.index if i in b.index]
    columns = [a.loc[shared, "label"], a.loc[shared, "predicted"], b.loc[shared, "predicted"]]
    return np.stack(columns, axis=1).astype(float)


def _f1_paired(study: Study, by_seed: Mapping[int, tuple[Cell, Cell]]) -> dict[str, Any]:
    """after − before of the seeds that decide."""
    seeds = study.deciding({s: [cell.spec for cell in both] for s, both in by_seed.items()})
    rows = [_two_answers(study, *by_seed[seed]) for seed in seeds]
    differences = [f1_difference(r) for r in rows]
    return {"differences": differences, "per_text": rows, "statistic": f1_difference}


def _between(study: Study, *, small: bool) -> dict[str, Any]:
    """REGEX − Baseline for every pair of initialisations, per text."""
    names = [n for n in initialisations(study.settings, small=small)["REGEX"] if n != UNTRAINED]
    return _agreement(study, list(combinations(sorted(names), 2)), small=small)


def _with_untrained(study: Study) -> dict[str, Any]:
    """REGEX − Baseline for every initialisation beside the model that is meant to be untrained."""
    names = [n for n in initialisations(study.settings, small=False)["REGEX"] if n != UNTRAINED]
    return _agreement(study, [(UNTRAINED, name) for name in sorted(names)], small=False)


def _agreement(study: Study, pairs: list[tuple[str, str]], *, small: bool) -> dict[str, Any]:
    """REGEX − Baseline in the similarity of these pairs of initialisations, where they decide."""
    specs = initialisations(study.settings, small=small)
    by_system = {system: similarities(study, system, small=small) for system in MAIN}
    pairs = [p for p in pairs if all(p in found for found in by_system.values())]
    deciding = study.deciding(
        {p: [specs[s][name] for s in MAIN for name in p if name != UNTRAINED] for p in pairs}
    )
    return _paired([by_system["REGEX"][p] - by_system["Baseline"][p] for p in deciding])


def _attack(study: Study) -> dict[str, Any]:
    specs = {(c.system, c.seed): c.spec for c in attacked(study.settings)}
    rates = {key: 100 * study.value(spec, "success_rate") for key, spec in specs.items()}
    seeds = [seed for system, seed in specs if system == "REGEX" and ("Baseline", seed) in specs]
    deciding = study.deciding({s: [specs[system, s] for system in MAIN] for s in seeds})
    return {"differences": [rates["REGEX", s] - rates["Baseline", s] for s in deciding]}


def _best_of_sweep(study: Study, name: str, m: str) -> dict[str, Any]:
    """Per seed, the best mean over attributions at the paper's values minus that at the others."""
    specs: dict[int, dict[float, list[EvalSpec]]] = {}
    for value, cells in swept(study.settings, name).items():
        for cell in cells:
            specs.setdefault(cell.seed, {}).setdefault(value, []).append(cell.spec)
    differences = []
    for seed in study.deciding({s: chain(*of_seed.values()) for s, of_seed in specs.items()}):
        named, others = (
            max(float(np.mean([study.aopc(spec, m).mean() for spec in found]))
                for value, found in specs[seed].items()
                if (value in PAPERS_BEST[name, m]) == papers)
            for papers in (True, False)
        )  # fmt: skip
        differences.append(named - others)
    return {"differences": differences}
