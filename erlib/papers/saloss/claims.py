"""Which of our numbers go into which claim of the paper?

What a claim says, what the paper measured and by which rule it is decided are data
(`erlib/claims/saloss.toml`); here are the measurements of its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from erlib.config import EvalSpec
from erlib.data.parts_of_speech import TAGS
from erlib.metrics.stats import holm
from erlib.metrics.task import f1_difference
from erlib.papers.saloss.figures import tag_totals
from erlib.papers.saloss.stages import not_trained
from erlib.papers.saloss.systems import ATTRIBUTIONS, BASELINE, EQ3, SALOSS, tasks
from erlib.papers.saloss.tables import FUNCTIONS, NAMES, measured
from erlib.papers.trained import deciding
from erlib.parameters import Settings
from erlib.reports.claims import decidable
from erlib.training.evaluating import per_text
from erlib.training.stages import Results

Measured = dict[str, dict[str, Any]]
BEST = {"SST": "a", "M.RC": "a", "SEMEVAL": "a", "AG": "aGa", "Ev.Inf": "aGa"}  # SL-C4
NAMED_TAGS = {  # SL-C10
    "SST": ("PROPN", "AUX", "PRON", "INTJ", "CCONJ", "PUNCT"),
    "AG": ("PROPN", "X"),
    "Ev.Inf": ("SCONJ", "PRON"),
}
COMPARED = (("TextRank", "TFIDF"), ("TextRank", "ChiSquared"), ("TFIDF", "ChiSquared"))  # SL-C9
CORE_CLAIMS = ("SL-C1", "SL-C3", "SL-C7", "SL-C9")  # decided in the cpu profile, on core sets


def claim_note(settings: Settings) -> str:
    """On which sets the verdicts rest, where a profile does not run every seed on all."""
    core = [task.label for task in tasks(settings) if task.core]
    if len(core) in (0, len(tasks(settings))):
        return ""
    return f"Sets with every seed: {', '.join(core)}."


def measure_claims(settings: Settings, results: Results) -> dict[str, Measured]:
    """Claim id → part → what its rule takes.

    A set with fewer than three seeds decides nothing; where others have them, it is left out, so
    that a claim is decided by the sets that can.
    """
    found = _Found(settings, results)
    sets = [task.paper for task in tasks(settings)]
    parts: dict[str, Measured] = {
        "SL-C1": {s: found.f1((s, BASELINE, ""), (s, SALOSS, "")) for s in sets},
        "SL-C2": {
            f"{s} {sign}": found.fractions((s, BASELINE, sign), (s, SALOSS, sign))
            for s in sets
            for sign in ATTRIBUTIONS
        },
        "SL-C3": {
            s: found.fractions((s, BASELINE, "a"), (s, SALOSS, "a"))
            for s in ("SST", "Ev.Inf", "M.RC")
        },
        "SL-C4": {s: found.lead(s, BEST[s]) for s in sets},
        "SL-C5": {
            f"{s} {name} {sign}": found.fractions((s, BASELINE, "random"), (s, system, sign))
            for s in sets
            for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss"))
            for sign in ATTRIBUTIONS
        },
        "SL-C6": {s: found.f1((s, BASELINE, "top_k"), (s, SALOSS, "top_k")) for s in sets},
        "SL-C7": {s: found.f1((s, BASELINE, "top_k"), (s, "Uniform", "top_k")) for s in sets},
        "SL-C8": {
            **{s: found.f1((s, BASELINE, "contiguous"), (s, SALOSS, "contiguous")) for s in sets},
            **{
                f"{s} below top-k": found.f1((s, SALOSS, "top_k"), (s, SALOSS, "contiguous"))
                for s in sets
            },
        },
        "SL-C9": found.salience_functions(sets),
        "SL-C10": {
            f"{s} {tag}": found.tag(s, tag) for s, tags in NAMED_TAGS.items() for tag in tags
        },
    }
    kept = {claim: decidable({n: m for n, m in p.items() if m}) for claim, p in parts.items()}
    # whatever the seeds: of all sets, and what is reported beside the parts that decide
    kept["SL-C2"]["cells that improve"] = found.share_improved(sets)
    kept["SL-C3"]["SST by eq. 3"] = found.fractions(("SST", BASELINE, "a"), ("SST", EQ3, "a"))
    return kept


Key = tuple[str, str, str]  # set, system, and an attribution's sign or the shape of rationales


class _Found:
    """Per-text results by set, system and seed; every difference is second minus first.

    Only seeds whose models are trained decide (see `trained.deciding`).
    """

    def __init__(self, settings: Settings, results: Results) -> None:
        self.settings = settings
        self.weak = not_trained(results)
        self.specs: dict[tuple[str, Key], dict[int, EvalSpec]] = {}
        for row in measured(settings, results).itertuples():
            plain = row.kind != "flips" or row.protocol == ""
            if plain and row.order in ("", "document"):
                key = (row.set, row.system, row.sign or row.shape)
                self.specs.setdefault((row.kind, key), {})[row.seed] = row.spec

    def tables(self, kind: str, *keys: Key) -> list[tuple[pd.DataFrame, ...]]:
        """The per-text results of these measurements, a tuple for each seed that has them all."""
        return [
            tuple(per_text(spec, store=self.settings.store) for spec in specs)
            for specs in self.usable(kind, *keys)
        ]

    def usable(self, kind: str, *keys: Key) -> list[tuple[EvalSpec, ...]]:
        """The measurements themselves; none where a small profile leaves one of them out."""
        found = [self.specs.get((kind, key), {}) for key in keys]
        seeds = sorted(set.intersection(*map(set, found)))
        trained = {s: not any(f[s].run in self.weak for f in found) for s in seeds}
        return [tuple(f[s] for f in found) for s in deciding(trained)]

    def f1(self, before: Key, after: Key) -> dict[str, Any]:
        """Difference in F1-macro between two systems, or two shapes of their rationales."""
        rows = [
            np.stack([a["label"], a["predicted"], b["predicted"]], axis=1).astype(float)
            for a, b in self.tables("predictions", before, after)
        ]
        return _by_statistic(rows, _f1_difference)

    def fractions(self, before: Key, after: Key) -> dict[str, Any]:
        """Difference in the fraction of tokens between two systems or attributions."""
        rows = [
            b["fraction"].to_numpy() - a["fraction"].to_numpy()
            for a, b in self.tables("flips", before, after)
        ]
        return {"differences": [r.mean() for r in rows], "per_text": rows} if rows else {}

    def share_improved(self, sets: Sequence[str]) -> dict[str, Any]:
        """Per seed, the share of all cells that improve after Holm, above 16.5 of 20."""
        cells = [(s, sign) for s in sets for sign in ATTRIBUTIONS]
        keys = [(s, system, sign) for s, sign in cells for system in (BASELINE, SALOSS)]
        shares = []
        for tables in self.tables("flips", *keys):
            values = [table["fraction"] for table in tables]
            pairs = list(zip(values[::2], values[1::2], strict=True))
            p = holm([stats.ranksums(b, a).pvalue for a, b in pairs])
            better = [b.mean() < a.mean() for a, b in pairs]
            shares.append(float(np.mean((p < 0.05) & better)) - 16.5 / 20)
        return {"differences": shares}

    def lead(self, set_: str, best: str) -> dict[str, Any]:
        """How far SaLoss's best attribution by the paper is below the best of the others."""
        others = [sign for sign in ATTRIBUTIONS if sign != best]
        keys = [(set_, SALOSS, sign) for sign in (best, *others)]
        differences = []
        for tables in self.tables("flips", *keys):
            first, *rest = (table["fraction"].mean() for table in tables)
            differences.append(first - min(rest))
        return {"differences": differences} if differences else {}

    def salience_functions(self, sets: Sequence[str]) -> Measured:
        """Each pair of salience functions: share of cells, and mean difference over cells.

        Over the sets that have the most seeds.
        """
        keys = {s: [(s, f, sign) for f in FUNCTIONS for sign in ATTRIBUTIONS] for s in sets}
        seeds = {s: len(self.usable("flips", *keys[s])) for s in sets}
        compared = [s for s in sets if seeds[s] == max(seeds.values())]
        wanted = [key for s in compared for key in keys[s]]
        means = [
            {key: table["fraction"].mean() for key, table in zip(wanted, tables, strict=True)}
            for tables in self.tables("flips", *wanted)
        ]
        parts: Measured = {}
        for a, b in COMPARED:
            cells = [
                np.array(
                    [of[s, a, sign] - of[s, b, sign] for s in compared for sign in ATTRIBUTIONS]
                )
                for of in means
            ]
            shares = [float(np.mean((c < 0) + 0.5 * (c == 0))) - 0.5 for c in cells]
            under, over = (NAMES.get(name, name) for name in (a, b))
            parts[f"{under} under {over}"] = {"differences": shares}
            parts[f"mean {under} − {over}"] = {"differences": [c.mean() for c in cells]}
        return parts

    def tag(self, set_: str, tag: str) -> dict[str, Any]:
        """SaLoss minus Baseline in the mean importance of a tag's words; empty if there is none."""
        keys = [(set_, system, "aGa") for system in (BASELINE, SALOSS)]
        place = TAGS.index(tag)
        rows = [
            np.concatenate([tag_totals(self.settings, s)[:, place] for s in specs], axis=1)
            for specs in self.usable("parts_of_speech", *keys)
        ]
        if any(row[:, 1].sum() == 0 for row in rows):
            return {}
        return _by_statistic(rows, _importance_difference)


Statistic = Callable[[NDArray[np.float64]], float]


def _by_statistic(rows: Sequence[NDArray[np.float64]], statistic: Statistic) -> dict[str, Any]:
    if not rows:
        return {}
    return {
        "differences": [statistic(r) for r in rows],
        "per_text": list(rows),
        "statistic": statistic,
    }


def _f1_difference(rows: NDArray[np.float64]) -> float:
    """In the paper's unit, from rows [text, (gold, a, b)]."""
    return f1_difference(rows) / 100


def _importance_difference(rows: NDArray[np.float64]) -> float:
    """From rows [text, (sum a, words a, sum b, words b)]; NaN where a draw has no such word."""
    sums = rows.sum(axis=0)
    return float(sums[2] / sums[3] - sums[0] / sums[1]) if sums[1] else float("nan")
