"""What is every run and evaluation of a profile called?

The lists in `tests/names` hold the name of each, as far as it is known before anything is trained:
where a stage reads results, it is given some in which every score is a half. `rows.csv` has the
fingerprints of the rows, so that names can be compared without reading a corpus. After a change
that was meant to rename something:

    python -m tests.naming        # write the lists anew, reading the corpora
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

import pandas as pd

import erlib.training.kinds  # noqa: F401  (registers the evaluations)
from erlib.catalogue import paper as paper_named
from erlib.config import EvalSpec, RunSpec, as_plain, load_profile
from erlib.papers.saloss import cells
from erlib.parameters import check_parameters
from erlib.training import identity
from erlib.training.identity import eval_hash, run_hash
from erlib.training.listing import objective_text
from erlib.training.rows import Place, content_at, place_of

PROFILES = ("quick", "cpu", "night")  # a new one is a word here, and the command above
FOLDER = Path(__file__).parent / "names"
ROWS = FOLDER / "rows.csv"
HALF = 0.5  # every score of a result that has not been computed

Spec = RunSpec | EvalSpec
Content = Callable[[Place], str]


@cache
def specs_of(profile: str) -> list[tuple[str, Spec]]:
    """(paper, spec) of all that the notebooks of a profile ask for in their grids.

    On every machine the same: without GloVe vectors of one's own and with the packaged tagger.
    """
    with patch.dict(os.environ), patch.object(cells, "installed_tagger", lambda: "pattern"):
        os.environ.pop("ERLIB_GLOVE", None)
        return list(_asked_for(profile))


def _asked_for(profile: str) -> Iterator[tuple[str, Spec]]:
    papers = [name for name, entry in load_profile(profile).items() if isinstance(entry, dict)]
    for paper in papers:
        settings = check_parameters(paper, {"profile": profile, "executor": "local"})
        results: dict[str, pd.DataFrame] = {}
        for stage in paper_named(paper).module("cells").grid(settings):
            specs = list(stage.specs(results))
            results[stage.name] = _planted(specs)
            yield from ((paper, spec) for spec in specs)


def _planted(specs: Sequence[Spec]) -> pd.DataFrame:
    """What `run` or `evaluate` would say, as far as the next stages read it."""
    read = ("dev_f1_binary", "lowest_train_explanation_min", "lowest_dev_explanation", "fraction")
    said = {"status": "done", "replaces": None, **dict.fromkeys(read, HALF)}
    return pd.DataFrame({"spec": s, "seed": s.seed, "corpus": s.data.corpus, **said} for s in specs)


def names(profile: str, content: Content) -> pd.DataFrame:
    """paper, name and a few words of every spec; `content` knows the rows' fingerprints."""

    def content_of(*description: object) -> str:
        return content(place_of(*description))

    forget()
    with patch.object(identity, "content_of", content_of):
        rows = [(p, name_of(s), words_of(s)) for p, s in specs_of(profile)]
    forget()
    return pd.DataFrame(rows, columns=["paper", "name", "what"]).drop_duplicates()


def forget() -> None:
    """Names are remembered, and other rows give others."""
    run_hash.cache_clear()
    eval_hash.cache_clear()


def name_of(spec: Spec) -> str:
    """The hash under which the store knows it."""
    return run_hash(spec) if isinstance(spec, RunSpec) else eval_hash(spec)


def words_of(spec: Spec) -> str:
    """Enough for a reader to find the spec that a line stands for."""
    if isinstance(spec, RunSpec):
        parts = [spec.data.corpus, spec.model.name, objective_text(as_plain(spec))]
        return " · ".join([*parts, f"seed {spec.seed}"])
    method = "/".join(part for part in (spec.method, spec.variant) if part)
    parts = [spec.kind, spec.data.corpus, method, *(f"{name} {n}" for name, n in spec.options)]
    run = "+".join(term.name for term in spec.run.objective)
    return " · ".join(part for part in [*parts, f"of {run}, seed {spec.run.seed}"] if part)


def listed(profile: str) -> pd.DataFrame:
    """The committed list."""
    return pd.read_csv(FOLDER / f"{profile}.csv", dtype=str, keep_default_na=False)


def listed_rows() -> dict[Place, str]:
    """The committed fingerprints."""
    table = pd.read_csv(ROWS, dtype=str, keep_default_na=False)
    return {
        (r.corpus, r.source, r.words, tuple(r.classes.split()), r.split,
         int(r.rows) if r.rows else None): r.content
        for r in table.itertuples(index=False)
    }  # fmt: skip


def differences(was: pd.DataFrame, now: pd.DataFrame) -> list[str]:
    """One line for each spec that has another name, has come, or has gone.

    Renamed specs of a paper with the same words are paired in their order.
    """
    before, after = _by_words(was), _by_words(now)
    lines = []
    for key in dict.fromkeys([*before, *after]):
        old = [name for name in before[key] if name not in after[key]]
        new = [name for name in after[key] if name not in before[key]]
        for a, b in zip_longest(old, new):
            verb = "changed" if a and b else "gone" if a else "new"
            lines.append(f"{verb}: {' · '.join(key)} ({' → '.join(n for n in (a, b) if n)})")
    return lines


def _by_words(table: pd.DataFrame) -> defaultdict[tuple[str, ...], list[str]]:
    found = defaultdict(list)
    for row in table.itertuples(index=False):
        found[row.paper, row.what].append(row.name)
    return found


def write() -> None:
    """All lists anew, with the rows as they are, or as they are listed where there is no corpus."""
    known = listed_rows() if ROWS.exists() else {}
    found: dict[Place, str] = {}

    def content(place: Place) -> str:
        try:
            found[place] = content_at(place)
        except FileNotFoundError:
            if place not in known:
                raise
            found[place] = known[place]
        return found[place]

    FOLDER.mkdir(exist_ok=True)
    for profile in PROFILES:
        table = names(profile, content)
        for line in differences(listed(profile), table) if _file(profile).exists() else ():
            print(f"{profile}: {line}")
        table.to_csv(_file(profile), index=False)
    rows = [(*p[:3], " ".join(p[3]), *p[4:], value) for p, value in found.items()]
    columns = ["corpus", "source", "words", "classes", "split", "rows", "content"]
    table = pd.DataFrame(rows, columns=columns).astype({"rows": "Int64"})
    table.sort_values(columns).to_csv(ROWS, index=False)


def _file(profile: str) -> Path:
    return FOLDER / f"{profile}.csv"


if __name__ == "__main__":
    write()
