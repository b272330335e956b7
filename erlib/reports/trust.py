"""How far can a reader trust what a profile found? From what its reports put down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from erlib.catalogue import papers
from erlib.data.corpora import corpora
from erlib.reports.recorded import Row

MANY = {"sample": "samples", "stand-in": "stand-ins"}
SCORES = ("f1_macro", "f1_binary", "accuracy", "accuracy_pct")
FEWEST_SEEDS = 3


def how_far_to_trust(reports: Path, claims: Sequence[Row], parts: Sequence[Row]) -> list[str]:
    """Sentences on corpora, encoders, rationales, seeds, what was learnt and how the Baselines
    do; only what is known."""
    tables = reports / "tables"
    found = [
        _corpora(_read(tables, "corpora")),
        _encoders(_read(tables, "profile")),
        _rationales(_read(tables, "corpora")),
        _seeds(claims),
        _untrained(parts),
        _baselines(tables),
        _frozen(_read(tables, "encoder")),
    ]
    return [sentence for sentence in found if sentence]


def _read(tables: Path, name: str) -> pd.DataFrame:
    """The table of this name of every paper that has one."""
    files = [tables / f"{paper}-table-{name}.csv" for paper in papers()]
    made = [pd.read_csv(file, dtype=str) for file in files if file.exists()]
    return pd.concat(made, ignore_index=True) if made else pd.DataFrame()


def _corpora(table: pd.DataFrame) -> str:
    if table.empty or "is" not in table:
        return ""
    each = table.drop_duplicates(["corpus", "from"])
    count = Counter(each["is"])
    said = ", ".join(f"{n} {MANY.get(word, word) if n > 1 else word}" for word, n in count.items())
    return f"Of {len(each)} corpora against the sets that the papers name: {said}."


def _encoders(table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    rows = table[table["what"].str.startswith(("encoder", "layers of the encoder"), na=False)]
    differ = rows[rows["here"] != rows["paper"]]
    named = differ[~differ["here"].str.fullmatch(r"[\d, ]+")]
    if named.empty:
        return ""
    pairs = [
        f"{here} for {', '.join(of['paper'].unique())}"
        for here, of in named.groupby("here", sort=False)
    ]
    fewer = ", of some the first layers only" if len(named) < len(differ) else ""
    return f"Encoders that stand for the papers’: {'; '.join(pairs)}{fewer}."


def _rationales(table: pd.DataFrame) -> str:
    if table.empty:
        return ""
    known = corpora()
    kinds = Counter(
        known[name].rationale or "" for name in table["corpus"].unique() if name in known
    )
    kinds.pop("", None)
    if not kinds:
        return ""
    said = ", ".join(f"{kind} ({n} corpora)" if n > 1 else f"{kind} (1 corpus)"
                     for kind, n in kinds.most_common())  # fmt: skip
    lexicon = "; lexicon means words whose rated valence agrees with the label, nobody marked them"
    return f"Rationales are {said}{lexicon if 'lexicon' in kinds else ''}."


def _seeds(claims: Sequence[Row]) -> str:
    counts = sorted(int(r["seeds"]) for r in claims)
    if not counts:
        return ""
    few = sum(n < FEWEST_SEEDS for n in counts)
    span = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    rest = (
        f"; {few} of {len(counts)} claims rest on fewer than {FEWEST_SEEDS}, which decide nothing"
    )
    return f"Seeds behind a claim: {span}{rest if few else ''}."


def _untrained(parts: Sequence[Row]) -> str:
    weak = sum(int(r["untrained"] or 0) > 0 for r in parts)
    if not parts or not weak:
        return ""
    return (
        f"In {weak} of {len(parts)} parts of claims a model had not learnt its task; nothing is "
        "concluded from such a model."
    )


def _baselines(tables: Path) -> str:
    """Task scores of Baselines beside the papers' own, in points."""
    gaps: list[float] = []
    for file in sorted(tables.glob("*-table-*.csv")):
        table = pd.read_csv(file)
        if {"row", "column", "metric", "paper", "difference"} <= set(table):
            is_baseline = (table["row"] == "Baseline") | (table["column"] == "Baseline")
            rows = table[is_baseline & table["metric"].isin(SCORES)].dropna(subset="difference")
            gaps += (rows["difference"] * rows["paper"].le(1).map({True: 100, False: 1})).tolist()
    if not gaps:
        return ""
    middle = pd.Series(gaps).median()
    side = "below" if middle < 0 else "above"
    return (
        f"The Baselines’ task scores are {abs(middle):.0f} points {side} the papers’ "
        f"(median of {len(gaps)} cells)."
    )


def _frozen(table: pd.DataFrame) -> str:
    if table.empty or "difference" not in table:
        return ""
    below = int((table["difference"].astype(float) < 0).sum())
    return (
        f"On {below} of {len(table)} sets the Baseline is below logistic regression on the frozen "
        "encoder: there its training has cost more than it gave."
    )
