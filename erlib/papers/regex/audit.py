"""What would other readings of the paper change? Each choice with the numbers of both readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.config import EvalSpec
from erlib.metrics.stats import spearman
from erlib.papers.cells import F1_MACRO, Cell, Read, Reading, Spec, mean_over, summary
from erlib.papers.regex import systems
from erlib.papers.regex.evaluations import FAITHFULNESS, MEASURES, WORDS, faithfulness, fresh
from erlib.papers.regex.systems import BEST, MAIN, RATIO, SHORT_RUN, main_run, run_spec
from erlib.papers.study import Study
from erlib.parameters import Settings

TABLE = "audit"
OURS, OTHER = "ours", "the other reading"  # its columns; a row is a choice, a metric what of it
OTHER_DEEPLIFTS = {  # variant → how it differs from the protocol's code
    "regex_hooked": "hooked at the embedding block's output",
    "regex_hooked_word_embedding": "hooked at the word embedding",
    "regex_word_embedding": "through the whole model from the word embedding",
}
EQUAL = "FRESH: xGx and IG printed equal"


def choices(study: Study) -> pd.DataFrame:
    """Choice, what, ours, the other reading: means over seeds."""
    numbers = study.numbers(study.of(TABLE)).rename(columns={"row": "choice", "metric": "what"})
    means = numbers.groupby(["choice", "what", "column"], sort=False)["value"].mean()
    return means.unstack(sort=False).reset_index()[["choice", "what", OURS, OTHER]]


def audited(settings: Settings) -> Iterator[Cell]:
    """The cells of both readings; AOPC in SST's domain."""
    yield from _divisor(settings)
    yield from _deeplifts(settings)
    yield from _short_runs(settings)
    yield from _ratio(settings)
    yield from _equal_columns(settings)


def _both(
    choice: str, seed: int, ours: Spec, other: Spec, read: Mapping[str, Read]
) -> Iterator[Cell]:
    yield Cell(TABLE, choice, OURS, seed, (ours,), read)
    yield Cell(TABLE, choice, OTHER, seed, (other,), read)


def _divisor(settings: Settings) -> Iterator[Cell]:
    """Σ over bins / 6 or / 5: they differ by exactly 6/5."""
    home = systems.sets(settings)["SST"]
    mean = summary(f"{MEASURES['norm_suff']}_mean")
    for system in MAIN:
        for a in BEST:
            what = f"{system}, {a}, {WORDS['norm_suff']}"
            for seed in systems.seeds_of(settings, system):
                run = main_run(settings, system, "SST", seed)
                spec = (faithfulness(settings, system, home, home, a, run),)
                read = FAITHFULNESS["norm_suff"]
                yield Cell(TABLE, "AOPC: sum / 6 or / 5", OURS, seed, spec, {what: read})
                yield Cell(TABLE, "AOPC: sum / 6 or / 5", OTHER, seed, spec, {what: mean})


def _deeplifts(settings: Settings) -> Iterator[Cell]:
    """DeepLift of the protocol's code beside other ways to it, and beside random."""
    found, seed = deeplifts(settings), settings.seeds[0]
    for variant, way in {**OTHER_DEEPLIFTS, "random": "random in its place"}.items():
        choice = f"DeepLift straight into the encoder, or {way}"
        for system in MAIN:
            yield from _both(
                choice, seed, found[system, "regex"], found[system, variant], _measures(system)
            )


def deeplifts(settings: Settings) -> dict[tuple[str, str], EvalSpec]:
    """(system, variant) → DeepLift as the protocol's code has it, the other ways, and random.

    Of the first seed's models in SST's domain, all on the same texts.
    """
    home, seed = systems.sets(settings)["SST"], settings.seeds[0]
    found = {}
    for system in MAIN:
        run = main_run(settings, system, "SST", seed)
        for variant in ("regex", *OTHER_DEEPLIFTS, "random"):
            attribution = "RAND" if variant == "random" else "DeepLift"
            spec = faithfulness(settings, system, home, home, attribution, run)
            spec = replace(spec, rows=settings.grid.get("deeplift_rows"))
            if variant in OTHER_DEEPLIFTS:
                spec = replace(spec, variant=variant)
            found[system, variant] = spec
    return found


def _short_runs(settings: Settings) -> Iterator[Cell]:
    """Choices that need training: each a run as short as the REGEX beside it."""
    home, seed = systems.sets(settings)["SST"], settings.seeds[0]
    name = "REGEX" + (SHORT_RUN if "short" in settings.grid else "")
    for choice, system in systems.other_readings(settings).items():
        for a in BEST:
            ours, other = (
                faithfulness(settings, "", home, home, a,
                             run_spec(settings, s, "SST", seed, wide=True))
                for s in (systems.SYSTEMS["REGEX"], system)
            )  # fmt: skip
            yield from _both(choice, seed, ours, other, _measures(f"{name}, {a}"))


def _ratio(settings: Settings) -> Iterator[Cell]:
    """FRESH from SST to IMDB with the target's ratio, or rationales as long as those of SST."""
    source, target, seed = (
        systems.sets(settings)["SST"],
        systems.sets(settings)["IMDB"],
        settings.seeds[0],
    )
    for system in MAIN:
        for a in BEST:
            ours, other = (
                fresh(settings, system, source, target, a, seed, RATIO[name])
                for name in ("IMDB", "SST")
            )
            read = {f"{system}, {a}, SST->IMDB, F1-macro": F1_MACRO}
            yield from _both("FRESH ratio: the target's or the source's", seed, ours, other, read)


def _equal_columns(settings: Settings) -> Iterator[Cell]:
    """InputXGrad and IG print equal FRESH numbers in the paper: how alike are they in ours?"""
    seed, home = settings.seeds[0], systems.sets(settings)["SST"]
    run = main_run(settings, "REGEX", "SST", seed)
    alike = tuple(faithfulness(settings, "REGEX", home, home, a, run) for a in ("xGx", "IG"))
    answers = tuple(
        fresh(settings, "REGEX", home, target, a, each)
        for source, target in systems.pairs(settings)
        if source == home
        for each in systems.seeds_of(settings, "fresh")
        for a in ("xGx", "IG")
    )
    correlation = mean_over(_rank_correlations)
    for what, specs, read in (
        ("REGEX, rank correlation of the two in a text (1 if equal)", alike, correlation),
        ("share of REGEX's SST rows", answers, _share_equal),
    ):
        yield Cell(TABLE, EQUAL, OURS, seed, specs, {what: read})
        yield Cell(TABLE, EQUAL, OTHER, seed, (), {what: lambda study, specs: Reading(1.0)})


def _rank_correlations(study: Study, specs: Sequence[Spec]) -> pd.Series:
    """Of two attributions' scores in each text."""
    x, ig = (
        study.texts(replace(spec, kind="attributions"))
        for spec in specs
        if isinstance(spec, EvalSpec)
    )
    found = [
        rank_correlation(np.asarray(a), np.asarray(b), ~np.asarray(special))
        for a, b, special in zip(x["scores"], ig["scores"], x["special"], strict=True)
    ]
    return pd.Series(found, index=x["id"])


def rank_correlation(a: np.ndarray, b: np.ndarray, counted: np.ndarray) -> float:
    """Spearman's ρ of the tokens that count; NaN of fewer than three, or where all are equal."""
    return spearman(a[counted], b[counted]) if counted.sum() > 2 else float("nan")


def _share_equal(study: Study, specs: Sequence[Spec]) -> Reading:
    """Of pairs of evaluations, the share with the same F1."""
    f1 = [F1_MACRO(study, [spec]).value for spec in specs]
    return Reading(float(np.mean([a == b for a, b in zip(f1[::2], f1[1::2], strict=True)])))


def _measures(of: str) -> dict[str, Read]:
    return {f"{of}, {WORDS[metric]}": read for metric, read in FAITHFULNESS.items()}
