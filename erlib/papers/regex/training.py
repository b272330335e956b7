"""What does REGEX's training do, and what does it cost? Measured on a few batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
import pandas as pd
import torch

from erlib.config import RunSpec, Term, term
from erlib.data.encoding import Encoded
from erlib.losses import Step, Weighted
from erlib.losses.guided import ExplanationGuided
from erlib.losses.robustness import VirtualAdversarial, kl
from erlib.metrics.ranking import at_least_one
from erlib.models import Classifier
from erlib.papers.holes import as_table, or_hole
from erlib.papers.regex.audit import rank_correlation
from erlib.papers.regex.systems import GUIDED, MAIN, PERCENT, SYSTEMS, main_run, objective, run_spec
from erlib.papers.study import Study
from erlib.training.notes import noted
from erlib.training.rows import rows_of
from erlib.training.updates import make_update

BATCHES = 10  # on which the remembered guide is compared with a fresh one
TIMED, ENOUGH = 5, 1.5  # steps that are timed at the most, and seconds after which fewer will do
PRINTED_COST = 2.1  # REGEX §3.4


@or_hole(as_table)
@noted
def guide_check(study: Study) -> pd.DataFrame:
    """The guide as it is remembered in this profile beside one of 50 points made for the batch.

    Ten batches of REGEX training that begin from the first seed's Baseline; the remembered guide is
    of the weights before the first of them. One row per batch: mean over its texts of Spearman's ρ,
    and of the share of masked tokens that both would mask.
    """
    settings = study.settings
    spec = run_spec(settings, "REGEX", "SST", settings.seeds[0], wide=True)
    classifier = study.model(run_spec(settings, "Baseline", "SST", settings.seeds[0]))
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
        ranks = [rank_correlation(*r) for r in zip(before, fresh_one, counted, strict=True)]
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
def perturbation_check(study: Study) -> pd.DataFrame:
    """How far does SMART's ascent move δ, and how much more does the result change predictions?

    On texts of the first seed's Baseline, without dropout: the cosine of δ with its random start,
    and the divergence that it causes over that of the start scaled to the same norms.
    """
    spec = main_run(study.settings, "Baseline", "SST", study.settings.seeds[0])
    classifier = study.model(spec)
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
def costs(study: Study) -> pd.DataFrame:
    """Seconds of a training step on the same batch, the guide's share in it, and times Baseline.

    The batch is as large as REGEX's. A guide that is remembered for an epoch is charged to the
    steps of that epoch.
    """
    settings = study.settings
    baseline, spec = (main_run(settings, s, "SST", settings.seeds[0]) for s in MAIN)
    classifier = study.model(baseline)
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
