"""How much does it matter where the authors' code departs from the paper, or the paper errs?

Each cell of the table "audit" changes one thing: the row is what is measured, the column the
departure (er_lens.md §4 has the list); `here` and `changed` are the values without and with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.task import f1_macro
from erlib.papers.cells import F1_MACRO, Cell, Read, Reading, Spec, of_spec, text_mean
from erlib.papers.er_lens import evaluations
from erlib.papers.er_lens.evaluations import HOME, LONG, annotated, test_sets
from erlib.papers.er_lens.kendall import attributed
from erlib.papers.er_lens.reads import MEASURES, areas, erased
from erlib.papers.er_lens.systems import GUIDES, audited
from erlib.papers.holes import or_hole
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.kinds.predictions import predict
from erlib.training.notes import noted
from erlib.training.rows import rows_of

EPSILON = 1e-4  # what keeps the normalisation from dividing by zero
NO_SURER = "texts no surer than the empty input kept, with ε as what is normalised by"
RANKED = {"IXG": "er_lens", "DX-C": "er_lens_absolute"}  # the variants that rank by |score|
Altered = Callable[[pd.DataFrame], pd.DataFrame]


def table(study: Study) -> pd.DataFrame:
    """departure, what is measured, here, changed, difference; means over the seeds of a row."""
    numbers = study.numbers(study.of("audit"))
    means = numbers.groupby(["column", "row", "metric"], sort=False)["value"].mean().unstack()
    found = means[["here", "changed"]].dropna(how="all")
    found = found.rename_axis(["departure", "measured"]).reset_index()
    blocks = "bigbird" in study.settings.grid["model"]
    alone = [*_spread(study), *(_longest_first(study) if blocks else [])]
    rows = pd.concat([found, pd.DataFrame(alone, columns=found.columns)], ignore_index=True)
    return rows.assign(difference=rows["changed"] - rows["here"])


def cells(settings: Settings, runs: Mapping[tuple[str, int], RunSpec]) -> Iterator[Cell]:
    """One departure at a time, on the first seed; texts that are left out on all."""
    first = settings.seeds[0]
    for system, doubled in audited(settings).items():
        if plain := runs.get((system, first)):
            yield from _double_embedding(settings, system, (plain, doubled))
    for (system, seed), run in runs.items():
        if system == "Baseline":
            yield from _erasure(settings, seed, run, first=seed == first)


def _double_embedding(
    settings: Settings, system: str, both: tuple[RunSpec, RunSpec]
) -> Iterator[Cell]:
    """er_lens.md §4.4: the embedding block is applied twice, in training and evaluation."""

    def cell(said: str, read: Read, specs: Iterable[EvalSpec]) -> Cell:
        row, column = f"{system}: {said}", "embedding block applied twice"
        reads = {"here": of_spec(0, read), "changed": of_spec(1, read)}
        return Cell("audit", row, column, settings.seeds[0], tuple(specs), reads)

    for test in test_sets(settings)[:2]:
        answers = (evaluations.prediction_spec(settings, run, test) for run in both)
        yield cell(f"F1 on {test.name}", F1_MACRO, answers)
    home, auc = annotated(settings)[HOME], text_mean("auc", 100)
    for x in GUIDES:
        ranks = (evaluations.plausibility_spec(settings, run, home, x) for run in both)
        yield cell(f"AUC of {x} on {home.name}", auc, ranks)


def _erasure(settings: Settings, seed: int, run: RunSpec, *, first: bool) -> Iterator[Cell]:
    """er_lens.md §4.1, 4.8, 4.9 and 4.16: the misprint of eq. 5, the sign of scores, ε subtracted
    twice; and texts that are no surer than the empty input, which the authors' code keeps."""
    every = evaluations.erasure_specs(settings, run)

    def cell(
        departure: str, technique: str, measure: str, altered: Altered | None = None,
        said: str = "", other: EvalSpec | None = None,
    ) -> Cell:  # fmt: skip
        own = every[technique]
        read = {"here": _area(measure, 0), "changed": _area(measure, 1, altered)}
        row = f"area under {measure} of {technique} x 100{said}"
        return Cell("audit", row, departure, seed, (own, other or own, *every.values()), read)

    for technique in ("ATT", "DX"):
        if first:
            yield cell("eq. 5 as printed", technique, "sufficiency", _printed)
            yield cell("ε subtracted twice", technique, "comprehensiveness", _twice)
        for measure in MEASURES:
            altered = partial(_all_kept, measure=measure)
            yield cell(NO_SURER, technique, measure, altered, ", all Baselines")
    for technique, variant in RANKED.items() if first else ():
        other = evaluations.erasure_spec(settings, run, technique, variant)
        for measure in MEASURES:
            yield cell("ours: tokens ranked by |score|", technique, measure, other=other)


def _area(measure: str, index: int, altered: Altered | None = None) -> Read:
    def read(study: Study, specs: Sequence[Spec]) -> Reading:
        table = erased(study, [specs[index], *specs[2:]])
        return Reading(100 * float(areas(altered(table) if altered else table, measure).mean()))

    return read


def _printed(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(normalised_sufficiency=misprinted_sufficiency(table))


def _twice(table: pd.DataFrame) -> pd.DataFrame:
    twice = normalised("comprehensiveness", table, 2 * EPSILON)
    return table.assign(normalised_comprehensiveness=twice)


def _all_kept(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    every = table.assign(undefined=False)
    return every.assign(**{f"normalised_{measure}": normalised(measure, every)})


def misprinted_sufficiency(table: pd.DataFrame) -> pd.Series:
    """Eq. 5 as the paper prints it: (S(α) − S(0)) / (1 − S(α)), clipped like the right one."""
    s, s0 = table["sufficiency"], _empty(table, EPSILON)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((s - s0) / (1 - s)).clip(0, 1).fillna(0).mask(table["undefined"])


def normalised(measure: str, table: pd.DataFrame, epsilon: float = EPSILON) -> pd.Series:
    """Eq. 5 as it is meant, or eq. 6; with another ε."""
    s0 = _empty(table, epsilon)
    found = table[measure] - s0 if measure == "sufficiency" else table[measure]
    return (found / (1 - s0)).clip(0, 1).mask(table["undefined"])


def _empty(table: pd.DataFrame, epsilon: float) -> pd.Series:
    """S(0): the sufficiency of the empty rationale, with ε subtracted."""
    return 1 - (table["p_full"] - table["p_empty"]).clip(lower=0) - epsilon


Row = tuple[str, str, float, float]


def _spread(study: Study) -> list[Row]:
    """er_lens.md §4.11: Table 2 has the population's standard deviation, Table 9 the sample's."""
    numbers = study.numbers(study.of("table2")).query("row == 'Baseline' and column == 'SST-Test'")
    values, name = numbers["value"].dropna(), test_sets(study.settings)[1].name
    here, there = values.std(ddof=1), values.std(ddof=0)
    return [("population's standard deviation", f"Baseline: F1 on {name}", here, there)]


@or_hole(lambda why: list[Row]())
@noted
def _longest_first(study: Study) -> list[Row]:
    """er_lens.md §4.6: BigBird attends in blocks until it has met a text of at most 704 tokens."""
    settings, test = study.settings, annotated(study.settings).get(LONG)
    run = next((e.run for e in attributed(study, "Baseline", f"{LONG}/ATT").values()), None)
    if test is None or run is None:
        return []
    full, data = study.model(run), evaluations.data_of(settings, test)
    rows = rows_of(data, test.split, evaluations.rows_used(settings, test))
    texts = full.encode(rows, max_length=data.max_length)
    longest_first = sorted(texts, key=lambda t: -len(t.input_ids))
    answers = (
        pd.concat([predict(model, [text]) for text in longest_first])
        for model in (full, study.model(run, quirks=("attention_by_order",)))
    )
    here, there = (100 * f1_macro(a["label"], a["predicted"]) for a in answers)
    where = f"Baseline: F1 on {test.name}, longest first"
    return [("attention by the order of texts", where, here, there)]
