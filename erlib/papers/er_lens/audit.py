"""How much does it matter where the authors' code departs from the paper, or the paper errs?

Each row changes one thing on one seed: er_lens.md §4 has the list.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from erlib.metrics.faithfulness import area
from erlib.metrics.task import f1_macro
from erlib.papers.er_lens.sets import data_of, rows_used
from erlib.papers.er_lens.stages import (
    AUDITED,
    audit_specs,
    erasure_spec,
    plausibility_spec,
    prediction_spec,
)
from erlib.papers.er_lens.study import Study
from erlib.papers.er_lens.systems import GUIDES
from erlib.papers.holes import or_hole
from erlib.training.evaluating import per_text
from erlib.training.kinds.predictions import predict
from erlib.training.notes import noted
from erlib.training.rows import rows_of

EPSILON = 1e-4  # what keeps the normalisation from dividing by zero
NO_SURER = "texts no surer than the empty input kept, with ε as what is normalised by"


def audit_table(study: Study) -> pd.DataFrame:
    """departure, what is measured, here, changed, difference."""
    rows = [
        *_double_embedding(study),
        *_erasure(study),
        *_spread(study),
        *_attention_by_order(study),
    ]
    table = pd.DataFrame(rows, columns=["departure", "measured", "here", "changed"])
    return table.assign(difference=table["changed"] - table["here"])


Row = tuple[str, str, float, float]


def _double_embedding(study: Study) -> list[Row]:
    """er_lens.md §4.4: the embedding block is applied twice, in training and evaluation."""
    settings, rows = study.settings, []
    place, home = settings.seeds[0], study.annotated[0]
    inside = [t for t in study.sets if t.in_domain]
    for system, doubled in zip(AUDITED, audit_specs(settings), strict=True):
        lacking = doubled in {spec.run for spec in study.holes}
        if lacking or place not in study.places(system):
            continue
        plain = study.spec(system, place)
        measured = [
            (f"F1 on {t.name}", [prediction_spec(settings, s, t) for s in (plain, doubled)])
            for t in inside
        ]
        values = [
            (name, [_f1(per_text(s, store=settings.store)) for s in specs])
            for name, specs in measured
        ]
        for x in GUIDES:
            specs = [plausibility_spec(settings, s, home, x) for s in (plain, doubled)]
            tables = [per_text(s, store=settings.store) for s in specs]
            values.append((f"AUC of {x} on {home.name}", [100 * t["auc"].mean() for t in tables]))
        rows += [
            ("embedding block applied twice", f"{system}: {name}", pair[0], pair[1])
            for name, pair in values
        ]
    return rows


def _f1(table: pd.DataFrame) -> float:
    return 100 * f1_macro(table["label"], table["predicted"])


def _erasure(study: Study) -> list[Row]:
    """er_lens.md §4.1, 4.8, 4.9 and 4.16: the misprint of eq. 5, the sign of scores, ε subtracted
    twice; and texts that are no surer than the empty input, which the authors' code keeps."""
    place, rows = study.settings.seeds[0], list[Row]()
    if place not in study.places("Baseline"):
        return rows
    for technique in ("ATT", "DX"):
        table = study.erasure(place, technique)
        printed = table.assign(normalised_sufficiency=misprinted_sufficiency(table))
        rows.append(_areas("eq. 5 as printed", technique, "sufficiency", table, printed))
        twice = table.assign(normalised_comprehensiveness=comprehensiveness(table, 2 * EPSILON))
        rows.append(_areas("ε subtracted twice", technique, "comprehensiveness", table, twice))
        rows += _with_texts_no_surer(study, technique)
    for technique, variant in (("IXG", "er_lens"), ("DX-C", "er_lens_absolute")):
        spec = erasure_spec(study.settings, study.spec("Baseline", place), technique, variant)
        if spec in study.holes:
            continue
        absolute = study.erasure(place, technique, variant)
        for measure in ("sufficiency", "comprehensiveness"):
            signed = study.erasure(place, technique)
            rows.append(
                _areas("ours: tokens ranked by |score|", technique, measure, signed, absolute)
            )
    return rows


def _with_texts_no_surer(study: Study, technique: str) -> list[Row]:
    """Nothing left out; means over all Baselines, for some leave nothing out."""
    rows = []
    for measure, normalised in NORMALISED.items():
        pairs = []
        for place in study.places("Baseline"):
            table = study.erasure(place, technique)
            every = table.assign(undefined=False)
            kept = every.assign(**{f"normalised_{measure}": normalised(every, EPSILON)})
            *what, here, changed = _areas(NO_SURER, technique, measure, table, kept)
            pairs.append((here, changed))
        here, changed = np.nanmean(pairs, axis=0)
        rows.append((what[0], f"{what[1]}, all Baselines", float(here), float(changed)))
    return rows


def _areas(departure: str, technique: str, measure: str, a: pd.DataFrame, b: pd.DataFrame) -> Row:
    values = [100 * area(t, f"normalised_{measure}").mean() for t in (a, b)]
    return departure, f"area under {measure} of {technique} x 100", values[0], values[1]


def misprinted_sufficiency(table: pd.DataFrame) -> pd.Series:
    """Eq. 5 as the paper prints it: (S(α) − S(0)) / (1 − S(α)), clipped like the right one."""
    s, s0 = table["sufficiency"], _empty(table, EPSILON)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((s - s0) / (1 - s)).clip(0, 1).fillna(0).mask(table["undefined"])


def sufficiency(table: pd.DataFrame, epsilon: float) -> pd.Series:
    """Eq. 5 as it is meant, with another ε."""
    s, s0 = table["sufficiency"], _empty(table, epsilon)
    return ((s - s0) / (1 - s0)).clip(0, 1).mask(table["undefined"])


def comprehensiveness(table: pd.DataFrame, epsilon: float) -> pd.Series:
    """Eq. 6 with another ε."""
    share = table["comprehensiveness"] / (1 - _empty(table, epsilon))
    return share.clip(0, 1).mask(table["undefined"])


NORMALISED = {"sufficiency": sufficiency, "comprehensiveness": comprehensiveness}


def _empty(table: pd.DataFrame, epsilon: float) -> pd.Series:
    """S(0): the sufficiency of the empty rationale, with ε subtracted."""
    return 1 - (table["p_full"] - table["p_empty"]).clip(lower=0) - epsilon


def _spread(study: Study) -> list[Row]:
    """er_lens.md §4.11: Table 2 has the population's standard deviation, Table 9 the sample's."""
    test = next(t for t in study.sets if t.paper == "SST-Test")
    values = [study.f1("Baseline", p, test) for p in study.places("Baseline")]
    here, there = (float(np.std(values, ddof=d)) for d in (1, 0))
    return [("population's standard deviation", f"Baseline: F1 on {test.name}", here, there)]


@or_hole(lambda why: list[Row]())
@noted
def _attention_by_order(study: Study) -> list[Row]:
    """er_lens.md §4.6: BigBird attends in blocks until it has met a text of at most 704 tokens."""
    settings, test = study.settings, study.set_for("Movies")
    if settings.seeds[0] not in study.places("Baseline"):
        return []
    full = study.classifier("Baseline", settings.seeds[0])
    if full.family != "big_bird" or test is None:
        return []
    rows = rows_of(data_of(settings, test), test.split, rows_used(settings, test))
    texts = full.encode(rows, max_length=settings.grid["max_length"])
    longest_first = sorted(texts, key=lambda t: -len(t.input_ids))
    blocks = study.classifier("Baseline", settings.seeds[0], quirks=("attention_by_order",))
    here, there = (
        _f1(pd.concat([predict(model, [text]) for text in longest_first]))
        for model in (full, blocks)
    )
    where = f"Baseline: F1 on {test.name}, longest first"
    return [("attention by the order of texts", where, here, there)]
