"""How is a model trained? The whole loop, from a description to a folder with the result.

Every epoch seeds itself from (seed, epoch) and ends with its state on disk, so a run that was
killed goes on from its last epoch and ends with the numbers of an unbroken one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from datasets import Dataset

from erlib.config import DataSpec, ModelSpec, RunSpec
from erlib.data.encoding import Batch, Encoded, batch_indices
from erlib.losses import Step, Weighted
from erlib.memory import Room
from erlib.models import Classifier, load_classifier
from erlib.models.learned_attention import calibrate
from erlib.models.precision import training_in
from erlib.training.checkpoints import (
    begin_from,
    finish,
    keep_if_best,
    out_of_patience,
    resume,
    save_state,
)
from erlib.training.evaluations import Evaluation, kind
from erlib.training.failures import Diverged
from erlib.training.identity import eval_hash
from erlib.training.kinds.predictions import chance_p, predicted_rows, task_scores
from erlib.training.rows import rows_of
from erlib.training.store import VANISHED
from erlib.training.updates import make_update
from erlib.training.vanishing import Watched

Terms = Mapping[str, torch.Tensor]
Resolve = Callable[[DataSpec, str, int | None], Dataset]  # description, split, how many → rows


def train(
    spec: RunSpec,
    folder: Path,
    device: str,
    on_step: Callable[[Mapping[str, float] | None, int], None],
    start: Path | None = None,
    resolve: Resolve = rows_of,
    room: Room | None = None,
) -> str:
    """Train `spec` into `folder`, resuming what is there; "done", or "lost" without a model.

    `start` is the folder of the finished run that `spec.start` names; `resolve` finds the rows of
    a description (rationales need the store). `room` learns how many texts of a batch fit in memory
    at once. `on_step` is called with a step's losses (None: of an
    earlier attempt) and how many were done. A loss that is no number any more raises `Diverged`.
    """
    room = room or Room()
    rows = {
        "train": resolve(spec.data, "train", spec.data.train_rows),
        "dev": resolve(spec.data, "dev", spec.data.dev_rows),
    }
    classifier = load_classifier(
        spec.model.name,
        num_labels=label_count(rows["train"], spec.model),
        task=spec.model.task,
        head=spec.model.head,
        specials=spec.model.specials,
        layers=spec.model.layers,
        seed=spec.seed,
        quirks=spec.model.quirks,
        explainer=spec.model.explainer,
    ).to(device)
    if start is not None:
        begin_from(classifier, start)
    classifier.freeze(spec.model.frozen)
    texts, held_out = (
        classifier.encode(rows[split], max_length=spec.data.max_length) for split in rows
    )
    lengths, size = [len(t.input_ids) for t in texts], spec.optimiser.batch_size
    mixed = spec.optimiser.mixed
    calibrate(classifier, classifier.batch(texts[:size]).inputs)
    steps_per_epoch = math.ceil(len(texts) / size)
    constrained = dict(spec.update.options).get("term")
    objective, rule = Watched(spec.objective, constrained), spec.optimiser.checkpoint
    objective.fit(texts)
    update = make_update(spec, classifier, steps_per_epoch * spec.optimiser.epochs)
    progress = resume(folder, classifier, update)
    on_step(None, progress.epoch * steps_per_epoch)
    precisely = partial(training_in, spec.optimiser.precision, device)  # training, and only that

    while progress.epoch < spec.optimiser.epochs and not out_of_patience(progress, rule):
        epoch = progress.epoch
        with precisely():
            objective.refresh(classifier, texts)
        torch.manual_seed(epoch_seed(spec.seed, epoch))  # dropout
        classifier.train()
        losses: list[dict[str, float]] = []
        order = batch_indices(lengths, size, seed=epoch_seed(spec.seed, epoch), mixed=mixed)
        for index, chosen in enumerate(order):
            batch, number = classifier.batch([texts[i] for i in chosen]), index
            number += epoch * steps_per_epoch

            def apply(at_once: int | None, batch: Batch = batch, number: int = number) -> Terms:
                return update.apply(objective, Step(classifier, batch, at_once), number)

            with precisely():
                terms = room.fitted(len(chosen), apply)
            losses.append({name: value.item() for name, value in terms.items()})
            on_step(losses[-1], 1)
            refuse_divergence(losses[-1], "loss", f"epoch {epoch + 1}, step {index + 1}")
        classifier.eval()
        scores = dev_scores(classifier, held_out, objective, size, mixed, room)
        refuse_divergence(scores, "dev_loss", f"epoch {epoch + 1}")
        row: dict[str, Any] = {"epoch": epoch + 1, **train_summary(losses), **scores}
        if objective.vanished:
            row[VANISHED] = ", ".join(objective.vanished)
        evaluate_epoch(spec, classifier, folder / "epochs" / str(epoch + 1), resolve)
        keep_if_best(progress, row, rule, classifier, folder)
        if progress.epoch < spec.optimiser.epochs:
            save_state(folder, classifier, update, progress)
    return finish(progress, folder, texts, held_out)


def refuse_divergence(values: Mapping[str, float], name: str, where: str) -> None:
    """An error if this loss is not a number any more."""
    if not math.isfinite(values[name]):
        raise Diverged(f"{name} became {values[name]} in {where}")


def label_count(rows: Dataset, model: ModelSpec) -> int | None:
    """How many logits the head needs: one for a binary logit, none to choose for spans."""
    if model.task == "span":
        return None
    return 1 if model.head == "agreement" else len(rows.features["label"].names)


def epoch_seed(seed: int, epoch: int) -> int:
    """A seed for one epoch of one run, far from those of its neighbours."""
    return int.from_bytes(sha256(f"{seed}/{epoch}".encode()).digest()[:4], "big")


def train_summary(losses: list[dict[str, float]]) -> dict[str, float]:
    """Mean and smallest batch loss of the epoch, by term (bounds are made from the smallest)."""
    names = losses[0]
    means = {f"train_{n}": sum(x[n] for x in losses) / len(losses) for n in names}
    return {**means, **{f"train_{n}_min": min(x[n] for x in losses) for n in names}}


def dev_scores(
    classifier: Classifier,
    texts: list[Encoded],
    objective: Weighted,
    batch_size: int,
    mixed: bool,
    room: Room,
) -> dict[str, float]:
    """Mean of batch means for each term, the task's own scores, and `dev_chance_p`: how likely
    these are for a model that has learnt nothing. On held-out texts.

    Gradients stay on: an objective may need the model's input gradient to be evaluated at all.
    """
    losses: list[dict[str, float]] = []
    answers: list[dict[str, object]] = []
    for chosen in batch_indices([len(t.input_ids) for t in texts], batch_size, mixed=mixed):
        some = [texts[i] for i in chosen]
        measure = partial(_measured, classifier, objective, some)
        terms, answered = room.fitted(len(some), measure)
        losses.append(terms)
        answers += answered
    means = {f"dev_{n}": sum(x[n] for x in losses) / len(losses) for n in losses[0]}
    table = pd.DataFrame(answers)
    scores = {**task_scores(table), "chance_p": chance_p(table)}
    return {**means, **{f"dev_{n}": value for n, value in scores.items()}}


def _measured(
    classifier: Classifier, objective: Weighted, texts: list[Encoded], at_once: int | None
) -> tuple[dict[str, float], list[dict[str, object]]]:
    """The losses of a batch and its answers, in passes of so many texts."""
    losses: dict[str, float] = {}
    answers: list[dict[str, object]] = []
    for part in Step(classifier, classifier.batch(texts), at_once).parts():
        for name, value in objective.loss(part).items():
            losses[name] = losses.get(name, 0.0) + value.item()
        own = texts[part.first : part.first + len(part.batch.ids)]
        answers += predicted_rows(part.forward().logits.detach(), part.mask, own)
    return losses, answers


def evaluate_epoch(spec: RunSpec, classifier: Classifier, folder: Path, resolve: Resolve) -> None:
    """Each of `spec.each_epoch` on the model as it is now, as `folder/<hash>.parquet`."""
    for each in spec.each_epoch:
        rows = resolve(each.data, each.split, each.rows)
        used, this_kind = None, kind(each.kind)
        if this_kind.uses:
            used = kind(this_kind.uses).per_text(Evaluation(each, rows, lambda: classifier))
        table = this_kind.per_text(Evaluation(each, rows, lambda: classifier, used))
        folder.mkdir(parents=True, exist_ok=True)
        table.to_parquet(folder / f"{eval_hash(each)}.parquet", index=False)
