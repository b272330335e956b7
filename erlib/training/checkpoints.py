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
from erlib.training.store import LOG_FILE, VANISHED, changes, checksums
from erlib.training.updates import Update

STATES = 2  # of a run that goes on: the last, and the one before in case that is damaged
SUMS_FILE = "sums.json"


@dataclass
class Progress:
    """Where a run stands; with the tensors of model and optimiser, all that resuming needs.

    `sha256`: of every file of the best epoch's model, as it was written.
    """

    epoch: int = 0
    best_epoch: int | None = None
    sha256: dict[str, str] = field(default_factory=dict)
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
    """Restore the last good epoch found in `folder`, or start at the beginning.

    A state that is torn or changed, or whose best model is, is put aside with a line in the log.
    """
    for state in reversed(_numbered(folder, "state")):
        if not (state / SUMS_FILE).exists():  # killed while it was being written
            continue
        try:
            progress = _intact(state)
        except (OSError, ValueError, TypeError, KeyError) as error:
            with (folder / LOG_FILE).open("a", encoding="utf-8") as log:
                log.write(f"saved {state.name} was put aside: {error}\n")
            state.rename(state.with_name(f"damaged-{state.name}"))
            continue
        load_model(classifier.model, state / "model.safetensors")
        update.restore(load_file(state / "optimiser.safetensors"))
        break
    else:
        progress = Progress()
    for kind in ("state", "best"):  # of epochs that are to be trained again
        for later in _numbered(folder, kind, after=progress.epoch):
            shutil.rmtree(later)
    return progress


def _numbered(folder: Path, kind: str, after: int = 0) -> list[Path]:
    """`state-1`, `state-2`, …: what was kept of the epochs, in their order."""
    found = {int(path.name.split("-")[1]): path for path in folder.glob(f"{kind}-*")}
    return [found[epoch] for epoch in sorted(found) if epoch > after]


def _intact(state: Path) -> Progress:
    """What a state says, if all that it needs is as it was written."""
    sums = json.loads((state / SUMS_FILE).read_text(encoding="utf-8"))
    if faults := changes(state, sums):
        raise ValueError(", ".join(faults))
    progress = Progress(**json.loads((state / "progress.json").read_text(encoding="utf-8")))
    if faults := changes(_best(state.parent, progress), progress.sha256):
        raise ValueError(f"of its best epoch {', '.join(faults)}")
    return progress


def _best(folder: Path, progress: Progress) -> Path:
    """Where the best epoch's model is kept; each has its own place, for the states that need it."""
    return folder / f"best-{progress.best_epoch}"


def save_state(folder: Path, classifier: Classifier, update: Update, progress: Progress) -> None:
    """Write the state after an epoch; its checksums come last and make it complete."""
    state = folder / f"state-{progress.epoch}"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir(parents=True)
    save_model(classifier.model, str(state / "model.safetensors"))
    save_file(update.tensors(), state / "optimiser.safetensors")
    (state / "progress.json").write_text(json.dumps(asdict(progress)), encoding="utf-8")
    partial = state / "sums.tmp"
    partial.write_text(json.dumps(checksums(state)), encoding="utf-8")
    partial.rename(state / SUMS_FILE)
    for older in _numbered(folder, "state")[:-STATES]:
        shutil.rmtree(older)
    needed = 2 if progress.best_epoch == progress.epoch else 1  # by this state and the one before
    for older in _numbered(folder, "best")[:-needed]:
        shutil.rmtree(older)


def keep_if_best(
    progress: Progress,
    row: dict[str, Any],
    rule: CheckpointRule,
    classifier: Classifier,
    folder: Path,
) -> None:
    """Count the epoch, and keep its model beside the states if the rule prefers it."""
    for name in (rule.metric, rule.bound[0] if rule.bound else rule.metric):
        if name not in row:
            raise ValueError(f"checkpoint rule names '{name}'; an epoch has: {', '.join(row)}")
    progress.epoch += 1
    progress.history.append(row)
    value = row[rule.metric] if rule.mode == "min" else -row[rule.metric]
    qualifies = rule.bound is None or row[rule.bound[0]] < rule.bound[1]
    if qualifies and (progress.best is None or value < progress.best - rule.min_delta):
        progress.best, progress.best_epoch, progress.waited = value, progress.epoch, 0
        best = _best(folder, progress)
        shutil.rmtree(best, ignore_errors=True)
        classifier.save_pretrained(best)
        progress.sha256 = checksums(best)
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
        shutil.copytree(_best(folder, progress), folder, dirs_exist_ok=True)
    for pattern in ("state-*", "damaged-*", "best-*"):
        for scrap in folder.glob(pattern):
            shutil.rmtree(scrap)
    return str(metrics["status"])


def vanished_epochs(history: list[dict[str, Any]]) -> dict[str, list[int]]:
    """For every loss that moved no weight in an epoch, those epochs."""
    found: dict[str, list[int]] = {}
    for row in history:
        for name in row[VANISHED].split(", ") if VANISHED in row else ():
            found.setdefault(name, []).append(row["epoch"])
    return found
