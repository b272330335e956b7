"""Which classifiers can be looked at, and what do they call their classes?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from erlib.metrics.learnt import LEVEL
from erlib.models import Classifier, load_classifier
from erlib.models.classifier import SETTINGS_FILE
from erlib.models.heads import OWN
from erlib.models.predicting import RUN_FILE, refuse_no_classes
from erlib.provenance import default_device
from erlib.training.listing import run_label
from erlib.training.store import Sealed, Store

UNTRAINED = "has not learnt its task"
KEPT_OPEN = 8  # models in memory


@dataclass(frozen=True)
class Model:
    """A classifier as it is shown."""

    label: str
    classifier: Classifier
    classes: tuple[str, ...]  # () for spans
    note: str = ""  # why its predictions may mean nothing


def trained_runs(store: Store) -> dict[str, str]:
    """Label → folder of every run with a model, ordered by corpus, system and seed.

    A lost run has none, and that of most runs is dropped when all is measured: see `runs restore`.
    """
    found = [
        (sealed.read("spec.json")["data"]["corpus"], _label(sealed), str(sealed.path))
        for sealed in store.sealed("runs")
        if (sealed.path / SETTINGS_FILE).exists() and not sealed.dropped
    ]
    return {label: path for _, label, path in sorted(found)}


def _label(run: Sealed) -> str:
    """The run's line in the list, which says so of a model that is no better than chance."""
    return " · ".join(filter(None, (run_label(run), _lesson(run))))


def _lesson(run: Sealed) -> str:
    """`UNTRAINED` of a run that is not known to be better than chance; of any other nothing."""
    p = (run.read("metrics.json").get("best") or {}).get("dev_chance_p")
    return UNTRAINED if p is not None and p >= LEVEL else ""


def open_model(name: str) -> Model:
    """A run's folder, or any name that `load_classifier` knows; kept in memory until it changes."""
    return _opened(name, _saved_at(Path(name)))


def _saved_at(folder: Path) -> int:
    """When the newest file of a folder was written; 0 for what is no folder."""
    files = (file for file in folder.glob("*") if file.is_file())
    return max((file.stat().st_mtime_ns for file in files), default=0)


@lru_cache(maxsize=KEPT_OPEN)
def _opened(name: str, saved_at: int) -> Model:
    classifier = load_classifier(name, seed=0).to(default_device())
    folder = Path(classifier.name)
    if (folder / RUN_FILE).exists():
        run = Sealed(folder, "done")
        return Model(run_label(run), classifier, classifier.classes, _lesson(run))
    refuse_no_classes(classifier)
    return Model(name, classifier, classifier.classes, _doubt(classifier))


def _doubt(classifier: Classifier) -> str:
    """Why the predictions may mean nothing."""
    if classifier.head == OWN or (Path(classifier.name) / SETTINGS_FILE).exists():
        return ""
    return "its head was never trained, so its predictions are arbitrary"
