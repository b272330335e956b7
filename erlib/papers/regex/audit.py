"""What do the paper's open choices change, and what does its training cost?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from erlib.config import RunSpec, Term, term
from erlib.data.encoding import Encoded
from erlib.losses import Step, Weighted
from erlib.losses.guided import ExplanationGuided
from erlib.losses.robustness import VirtualAdversarial, kl
from erlib.metrics.ranking import at_least_one
from erlib.models import Classifier
from erlib.papers.holes import as_table, or_hole
from erlib.papers.regex.grid import (
    BEST,
    MAIN,
    OTHER_DEEPLIFTS,
    SHORT,
    Cell,
    audited,
    deeplifts,
    faithful,
    fresh,
    fresh_with_source_ratio,
    main_run,
)
from erlib.papers.regex.study import METRICS, WORDS, Study, trained
from erlib.papers.regex.systems import GUIDED, PERCENT, SYSTEMS, objective, run_spec
from erlib.parameters import Settings
from erlib.training.notes import noted
from erlib.training.rows import rows_of
from erlib.training.updates import make_update

BATCHES = 10  # on which the remembered guide is compared with a fresh one
TIMED, ENOUGH = 5, 1.5  # steps that are timed at the most, and seconds after which fewer will do
PRINTED_COST = 2.1  # REGEX §3.4


def choices(study: Study) -> pd.DataFrame:
    """Each open choice with the numbers of both readings; AOPC in SST's domain."""
    rows = [
        *_divisor(study),
        *_deeplifts(study),
        *_variants(study),
        *_ratio(study),
        *_same_columns(study),
    ]
    return pd.DataFrame(rows, columns=["choice", "what", "ours", "the other reading"])


def _divisor(study: Study) -> list[tuple]:
    """Σ over bins / 6 or / 5: the mean over seeds of both, which differ by exactly 6/5."""
    cells = [c for c in faithful(study.settings) if (c.source, c.target) == ("SST", "SST")]
    rows = []
    for system in ("Baseline", "REGEX"):
        for a in BEST:
            of = [c.spec for c in cells if (c.system, c.attribution) == (system, a)]
            sixth, fifth = (
                np.mean([study.value(s, METRICS["norm_suff"] + end) for s in of])
                for end in ("", "_mean")
            )
            rows.append(("AOPC: sum / 6 or / 5", f"{system}, {a}, sufficiency", sixth, fifth))
    return rows


def _deeplifts(study: Study) -> list[tuple]:
    """DeepLift of the protocol's code beside two other ways to it, and beside random."""
    cells = deeplifts(study.settings)
    rows = []
    for variant, way in {**OTHER_DEEPLIFTS, "random": "random in its place"}.items():
        for system in MAIN:
            specs = [cells[system, v].spec for v in ("regex", variant)]
            texts = study.value(specs[0], "texts")
            for m, name in METRICS.items():
                what = f"{system}, {WORDS[m]}, {texts:.0f} texts"
                values = [study.value(s, name) for s in specs]
                rows.append((f"DeepLift straight into the encoder, or {way}", what, *values))
    return rows


def _variants(study: Study) -> list[tuple]:
    cells = {(c.system, c.attribution): c for c in audited(study.settings)}
    which = SHORT if "short" in study.settings.grid else "REGEX"
    rows = []
    for label in dict.fromkeys(c.system for c in cells.values() if c.system != SHORT):
        for a in BEST:
            for m, name in METRICS.items():
                values = [study.value(cells[s, a].spec, name) for s in (SHORT, label)]
                rows.append((label, f"{which}, {a}, {WORDS[m]}", *values))
    return rows


def _ratio(study: Study) -> list[tuple]:
    """FRESH from SST to IMDB with the target's ratio or the source's."""
    wanted = ("SST", "IMDB", study.settings.seeds[0])
    ours = {(c.system, c.attribution): c for c in fresh(study.settings)
            if (c.source, c.target, c.seed) == wanted}  # fmt: skip
    return [
        (
            "FRESH ratio: the target's or the source's",
            f"{c.system}, {c.attribution}, SST->IMDB, F1-macro",
            _f1(study, ours[c.system, c.attribution]),
            _f1(study, c),
        )
        for c in fresh_with_source_ratio(study.settings)
        if (c.system, c.attribution) in ours
    ]


def _f1(study: Study, cell: Cell) -> float:
    return 100 * study.value(cell.spec, "f1_macro")


def _same_columns(study: Study) -> list[tuple]:
    """InputXGrad and IG print equal FRESH numbers in the paper: how alike are they in ours?"""
    cells = {c.attribution: c.spec for c in faithful(study.settings)
             if (c.system, c.source, c.target, c.seed)
             == ("REGEX", "SST", "SST", study.settings.seeds[0])}  # fmt: skip
    if not study.has(cells["xGx"], cells["IG"]):
        return []
    x, ig = (study.texts(replace(cells[a], kind="attributions")) for a in ("xGx", "IG"))
    ranks = [
        _rank_correlation(np.asarray(a), np.asarray(b), ~np.asarray(special))
        for a, b, special in zip(x["scores"], ig["scores"], x["special"], strict=True)
    ]
    f1 = {(c.target, c.attribution): _f1(study, c)
          for c in fresh(study.settings) if c.system == "REGEX" and c.source == "SST"}  # fmt: skip
    equal = [f1[t, "xGx"] == f1[t, "IG"] for t, a in f1 if a == "IG"]
    return [
        (
            "FRESH: xGx and IG printed equal",
            "REGEX, rank correlation of the two in a text (1 if equal)",
            float(np.nanmean(ranks)),
            1.0,
        ),
        ("FRESH: xGx and IG printed equal", "share of REGEX's SST rows", np.mean(equal), 1.0),
    ]


def _rank_correlation(a: np.ndarray, b: np.ndarray, counted: np.ndarray) -> float:
    a, b = a[counted], b[counted]
    if len(a) < 3 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(spearmanr(a, b).statistic)


@or_hole(as_table)
@noted
def guide_check(settings: Settings) -> pd.DataFrame:
    """The guide as it is remembered in this profile beside one of 50 points made for the batch.

    Ten batches of REGEX training that begin from the first seed's Baseline; the remembered guide is
    of the weights before the first of them. One row per batch: mean over its texts of Spearman's ρ,
    and of the share of masked tokens that both would mask.
    """
    spec = run_spec(settings, "REGEX", "SST", settings.seeds[0], wide=True)
    classifier = trained(settings, run_spec(settings, "Baseline", "SST", settings.seeds[0]))
    size = settings.grid["checked_texts"]
    texts = _training_texts(classifier, spec, BATCHES * size)
    terms = Weighted(objective(settings, replace(SYSTEMS["REGEX"], refreshed="epoch")))
    terms.refresh(classifier, texts)
    (_, remembered), now = terms.parts[-1], ExplanationGuided()
    assert isinstance(remembered, ExplanationGuided)
    update = make_update(spec, classifier, BATCHES)
    rows = []
    torch.manual_seed(0)
    for number in range(BATCHES):
        step = Step(
            classifier.train(), classifier.batch(texts[number * size : (number + 1) * size])
        )
        counted = (step.mask.bool() & ~step.batch.special).cpu().numpy()
        before = remembered.scores(step).cpu().numpy()
        fresh_one = now.explain(classifier, step.batch).cpu().numpy()
        ranks = [_rank_correlation(*r) for r in zip(before, fresh_one, counted, strict=True)]
        shared = [_same_lowest(*r) for r in zip(before, fresh_one, counted, strict=True)]
        rows.append(
            {"batch": number + 1, "rank correlation": np.nanmean(ranks),
             "masked by both": np.mean(shared)}
        )  # fmt: skip
        update.apply(terms, step, number)
    return pd.DataFrame(rows)


def _same_lowest(a: np.ndarray, b: np.ndarray, counted: np.ndarray) -> float:
    a, b = a[counted], b[counted]
    m = at_least_one(PERCENT, len(a))
    lowest = [set(np.argsort(s, kind="stable")[:m].tolist()) for s in (a, b)]
    return len(lowest[0] & lowest[1]) / m


@or_hole(as_table)
@noted
def perturbation_check(settings: Settings) -> pd.DataFrame:
    """How far does SMART's ascent move δ, and how much more does the result change predictions?

    On texts of the first seed's Baseline, without dropout: the cosine of δ with its random start,
    and the divergence that it causes over that of the start scaled to the same norms.
    """
    spec = main_run(settings, "Baseline", "SST", settings.seeds[0])
    classifier = trained(settings, spec).eval()
    step = Step(classifier, classifier.batch(_training_texts(classifier, spec, 8)))
    clean = step.forward()
    rows = []
    for eta in (1e-3, 1.0, 1e3):
        torch.manual_seed(0)
        found = VirtualAdversarial(eta=eta).perturbation(step)
        torch.manual_seed(0)
        start = torch.randn_like(found)
        start = start / start.norm(dim=-1, keepdim=True) * found.norm(dim=-1, keepdim=True)
        with torch.no_grad():
            raised = [
                kl(
                    clean.logits,
                    classifier.forward(step.batch.inputs, entry=clean.entry + delta).logits,
                ).mean()
                for delta in (found, start)
            ]
        real = step.mask.bool()
        cosine = torch.nn.functional.cosine_similarity(found[real], start[real], dim=-1)
        rows.append(
            {
                "step size η": eta,
                "cosine with the random start": cosine.mean().item(),
                "divergence": raised[0].item(),
                "of a random δ": raised[1].item(),
                "times": (raised[0] / raised[1]).item(),
            }
        )
    return pd.DataFrame(rows)


@or_hole(as_table)
@noted
def costs(settings: Settings) -> pd.DataFrame:
    """Seconds of a training step on the same batch, the guide's share in it, and times Baseline.

    The batch is as large as REGEX's. A guide that is remembered for an epoch is charged to the
    steps of that epoch.
    """
    baseline, spec = (main_run(settings, s, "SST", settings.seeds[0]) for s in MAIN)
    classifier = trained(settings, baseline)
    texts = _training_texts(classifier, spec, spec.optimiser.batch_size)
    paper = term("guided", GUIDED, points=50)
    systems = {
        "Baseline": objective(settings, SYSTEMS["Baseline"]),
        "with robustness terms": objective(
            settings, SYSTEMS["w/o explanation guided training"]
        ),
        "with guidance": objective(settings, SYSTEMS["w/o robustness improvement"]),
        "REGEX": objective(settings, SYSTEMS["REGEX"]),
        "REGEX, 50 points per batch": (*objective(settings, SYSTEMS["REGEX"])[:-1], paper),
    }  # fmt: skip
    rows = [
        {"system": name, "texts": len(texts), **_timed(classifier, texts, spec, terms)}
        for name, terms in systems.items()
    ]
    table = pd.DataFrame(rows)
    table["times Baseline"] = table["seconds per step"] / table["seconds per step"].iloc[0]
    table["paper"] = [PRINTED_COST if name.startswith("REGEX") else np.nan for name in systems]
    return table


def _timed(
    classifier: Classifier, texts: Sequence[Encoded], spec: RunSpec, terms: Sequence[Term]
) -> dict[str, float]:
    weighted, update = Weighted(terms), make_update(spec, classifier, TIMED + 1)

    def now() -> float:
        if classifier.device.type == "cuda":
            torch.cuda.synchronize()
        return perf_counter()

    def train(losses: Weighted, number: int) -> None:
        update.apply(losses, Step(classifier.train(), classifier.batch(texts)), number)

    train(Weighted((term("task"),)), 0)  # warms up
    started = now()
    weighted.refresh(classifier, texts)
    guide, started, number = now() - started, now(), 0
    while number < TIMED and now() - started < ENOUGH:
        number += 1
        train(weighted, number)
    own = (now() - started) / number
    return {"seconds per step": own + guide, "of it the epoch's guide": guide}


def _training_texts(classifier: Classifier, spec: RunSpec, count: int) -> list[Encoded]:
    rows = rows_of(spec.data, "train", count)
    return classifier.encode(rows, max_length=spec.data.max_length)
