"""What is kept of a run while it goes on, and what remains of it at the end?"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from safetensors.torch import load_file, load_model, save_file, save_model

from erlib.config import CheckpointRule
from erlib.data.encoding import Encoded, truncated_share
from erlib.models import Classifier
from erlib.models.classifier import SETTINGS_FILE
from erlib.training.updates import Update

VANISHED = "vanished"  # of an epoch: the losses that moved no weight (see `vanishing`)


@dataclass
class Progress:
    """Where a run stands; with the tensors of model and optimiser, all that resuming needs."""

    epoch: int = 0
    best_epoch: int | None = None
    best: float | None = None
    waited: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


def begin_from(classifier: Classifier, start: Path) -> None:
    """Load the weights of a finished run; only an explainer may be new, or left behind."""
    missing, unexpected = load_model(classifier.model, start / "model.safetensors", strict=False)
    foreign = [key for key in (*missing, *unexpected) if not key.startswith("explainer.")]
    if foreign:
        raise ValueError(f"the run in {start} is of another model: {', '.join(foreign[:3])}")
    settings = json.loads((start / SETTINGS_FILE).read_text(encoding="utf-8"))
    if classifier.explainer is not None and settings.get("explainer") != classifier.explainer.name:
        classifier.explainer.reset()


def resume(folder: Path, classifier: Classifier, update: Update) -> Progress:
    """Restore the last complete epoch found in `folder`, or start at the beginning."""
    states = sorted(folder.glob("state-*"), key=lambda p: int(p.name.split("-")[1]))
    complete = [s for s in states if (s / "progress.json").exists()]
    if not complete:
        return Progress()
    state = complete[-1]
    load_model(classifier.model, state / "model.safetensors")
    update.restore(load_file(state / "optimiser.safetensors"))
    return Progress(**json.loads((state / "progress.json").read_text(encoding="utf-8")))


def save_state(folder: Path, classifier: Classifier, update: Update, progress: Progress) -> None:
    """Write the state after an epoch; its `progress.json` comes last and makes it complete."""
    state = folder / f"state-{progress.epoch}"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    save_model(classifier.model, str(state / "model.safetensors"))
    save_file(update.tensors(), state / "optimiser.safetensors")
    partial = state / "progress.json.tmp"
    partial.write_text(json.dumps(asdict(progress)), encoding="utf-8")
    partial.rename(state / "progress.json")
    for older in folder.glob("state-*"):
        if older != state:
            shutil.rmtree(older)


def keep_if_best(
    progress: Progress,
    row: dict[str, Any],
    rule: CheckpointRule,
    classifier: Classifier,
    folder: Path,
) -> None:
    """Count the epoch, and keep its model in `folder/best` if the rule prefers it."""
    for name in (rule.metric, rule.bound[0] if rule.bound else rule.metric):
        if name not in row:
            raise ValueError(f"checkpoint rule names '{name}'; an epoch has: {', '.join(row)}")
    progress.epoch += 1
    progress.history.append(row)
    value = row[rule.metric] if rule.mode == "min" else -row[rule.metric]
    qualifies = rule.bound is None or row[rule.bound[0]] < rule.bound[1]
    if qualifies and (progress.best is None or value < progress.best - rule.min_delta):
        progress.best, progress.best_epoch, progress.waited = value, progress.epoch, 0
        partial, best = folder / "best.tmp", folder / "best"
        shutil.rmtree(partial, ignore_errors=True)
        classifier.save_pretrained(partial)
        shutil.rmtree(best, ignore_errors=True)
        partial.rename(best)
    else:
        progress.waited += 1


def out_of_patience(progress: Progress, rule: CheckpointRule) -> bool:
    """Has the run waited too long for a better epoch (or for a first one that counts)?"""
    patience = rule.patience_unmet if progress.best is None else rule.patience
    return patience is not None and progress.waited >= patience


def finish(progress: Progress, folder: Path, texts: list[Encoded], held_out: list[Encoded]) -> str:
    """Leave in `folder` what a finished run holds, and nothing of the way there.

    `metrics.json` has no time and no path in it: it is the same, byte for byte, for every
    repetition of the run.
    """
    best = None if progress.best_epoch is None else progress.history[progress.best_epoch - 1]
    metrics = {
        "status": "lost" if best is None else "done",
        "best_epoch": progress.best_epoch,
        "epochs": progress.epoch,
        "train_texts": len(texts),
        "dev_texts": len(held_out),
        "truncated_train": truncated_share(texts),
        "truncated_dev": truncated_share(held_out),
        "best": best,
        "lowest": {
            name: min(row[name] for row in progress.history)
            for name in progress.history[0]
            if name != VANISHED
        },
        "last": progress.history[-1],
        VANISHED: vanished_epochs(progress.history),
    }
    (folder / "metrics.json").write_text(
        json.dumps(metrics, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    pd.DataFrame(progress.history).to_csv(folder / "history.csv", index=False)
    if best is not None:
        for file in (folder / "best").iterdir():
            file.rename(folder / file.name)
    for scrap in (*folder.glob("state-*"), *folder.glob("best*")):
        shutil.rmtree(scrap)
    return str(metrics["status"])


def vanished_epochs(history: list[dict[str, Any]]) -> dict[str, list[int]]:
    """For every loss that moved no weight in an epoch, those epochs."""
    found: dict[str, list[int]] = {}
    for row in history:
        for name in row[VANISHED].split(", ") if VANISHED in row else ():
            found.setdefault(name, []).append(row["epoch"])
    return found
