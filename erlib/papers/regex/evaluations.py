"""What is measured of REGEX's models, and how is a number read from it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, Extraction, RunSpec
from erlib.metrics.robustness import jaccard
from erlib.papers.cells import Read, Reading, Spec, mean_over, mean_reading, summary, text_aopc
from erlib.papers.regex import systems
from erlib.papers.regex.systems import ATTRIBUTIONS, Set, main_run
from erlib.papers.study import Study
from erlib.parameters import Settings
from erlib.training.identity import as_measured

MEASURES = {
    "norm_suff": "normalised_sufficiency",
    "norm_comp": "normalised_comprehensiveness",
}
WORDS = {"norm_suff": "sufficiency", "norm_comp": "comprehensiveness"}
FIVE = [name for name in ATTRIBUTIONS if name != "RAND"]
UNTRAINED = "#Untrained"  # the row of Tables 3 and 8 that is meant to have learnt nothing


def read_of(spec: EvalSpec, read: Read) -> Read:
    """The same number of another evaluation than the cell's; NaN where that was not made."""

    def other(study: Study, specs: Sequence[Spec]) -> Reading:
        if spec not in study.rows or not study.has(spec):
            return Reading(float("nan"))
        return replace(read(study, [spec]), trained=study.is_trained(spec))

    return other


def _mean_of_all(read: Read) -> Read:
    """The mean over several evaluations, text by text."""
    return lambda study, specs: mean_reading([read(study, [spec]) for spec in specs])


def _shared_words(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """Jaccard@25 % of the best tokens of two models (of one with itself: 1)."""
    first, last = (study.texts(spec).set_index("id") for spec in (specs[0], specs[-1]))
    a, b = (
        [np.asarray(s)[~np.asarray(x)] for s, x in zip(t["scores"], t["special"], strict=True)]
        for t in (first, last)
    )
    return pd.Series(jaccard(a, b), index=first.index)


def _flipped(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """The attack's success, in % of the texts that were classified correctly before it."""
    table = study.texts(specs[0]).set_index("id")
    correct = table[table["before"] == table["label"]]
    return 100.0 * (correct["after"] != correct["label"])


FAITHFULNESS = {metric: text_aopc(column) for metric, column in MEASURES.items()}
MEAN_OF_FIVE = {metric: _mean_of_all(read) for metric, read in FAITHFULNESS.items()}
JACCARD = {"jaccard@25%": mean_over(_shared_words)}
ATTACK = {  # Table 6
    "Number of successful attacks": summary("successes"),
    "Original accuracy(%)": summary("accuracy", 100),
    "Accuracy under attack(%)": summary("accuracy_under_attack", 100),
    "Attack success rate(%)": mean_over(_flipped),
    "Average perturbed word(%)": summary("changed", 100),
    "Average num. words per input": summary("words"),
    "Avg num queries": summary("queries"),
}


def fresh(
    settings: Settings, system: str, source: Set, target: Set, attribution: str, seed: int,
    percent: int | None = None,
) -> EvalSpec:  # fmt: skip
    """Answers of a classifier that reads rationales: `percent` of a text's words, or the target's
    ratio."""
    support = main_run(settings, system, source.paper, seed)
    classifier = systems.fresh_spec(settings, support, source, attribution, seed)
    ratio = percent or systems.RATIO[target.paper]
    rationales = systems.extraction(settings, support, attribution, ratio)
    rows = settings.grid["fresh"].get("test_rows")
    return _eval(settings, classifier, target, "predictions", rows, rationales)


def faithfulness(
    settings: Settings, system: str, source: Set, target: Set, attribution: str, run: RunSpec
) -> EvalSpec:
    """Sufficiency and comprehensiveness by the paper's protocol."""
    rows = _rows(settings, "erased_rows", system, source, target)
    return replace(
        _eval(settings, run, target, "faithfulness", rows),
        method=ATTRIBUTIONS[attribution],
        variant="regex",
        protocol="regex",
        options=systems.options_of(settings, attribution),
    )


def predictions(
    settings: Settings, system: str, source: Set, target: Set, run: RunSpec
) -> EvalSpec:
    """Answers to the full texts."""
    rows = _rows(settings, "test_rows", system, source, target)
    return _eval(settings, run, target, "predictions", rows)


def initialisations(settings: Settings, system: str, *, small: bool) -> dict[str, EvalSpec]:
    """Initialisation → its scores by α∇α of SST's test texts."""
    count = settings.grid["small_initialisations" if small else "initialisations"]
    home, rows = systems.sets(settings)["SST"], settings.grid.get("erased_rows", {}).get("core")
    runs = {
        f"Init#{i}": systems.run_spec(settings, system, "SST", seed, small=True, wide=True)
        if small
        else main_run(settings, system, "SST", seed)
        for i, seed in enumerate(settings.seeds[:count], start=1)
    }
    runs[UNTRAINED] = systems.untrained(settings, small=small)
    return {
        name: replace(
            faithfulness(settings, system, home, home, "aGa", run), kind="attributions", rows=rows
        )
        for name, run in runs.items()
    }


def attacked(settings: Settings, system: str, seed: int) -> EvalSpec:
    """What the attack makes of texts of IMDB."""
    run, imdb = main_run(settings, system, "IMDB", seed), systems.sets(settings)["IMDB"]
    return _eval(settings, run, imdb, "attack", settings.grid["attack_rows"])


def _rows(settings: Settings, name: str, system: str, source: Set, target: Set) -> int | None:
    """How many test texts: more where claims are decided."""
    core = systems.is_core(settings, system) and source.paper == target.paper == "SST"
    return settings.grid.get(name, {}).get("core" if core else "wide")


def _eval(
    settings: Settings, run: RunSpec, target: Set, kind: str, rows: int | None,
    rationales: Extraction | None = None,
) -> EvalSpec:  # fmt: skip
    data = systems.data_spec(settings, target, rationales)
    return EvalSpec(run, as_measured(data), "test", kind, rows)
