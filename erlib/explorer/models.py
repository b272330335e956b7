"""Which classifiers can be looked at, and what do they call their classes?"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from erlib.data.local import local_info
from erlib.models import Classifier, load_classifier
from erlib.models.classifier import SETTINGS_FILE
from erlib.models.families import FAMILIES
from erlib.models.heads import HEADS
from erlib.training.executors import default_device
from erlib.training.listing import run_label
from erlib.training.store import Sealed, Store

KEPT_OPEN = 8  # models in memory


@dataclass(frozen=True)
class Model:
    """A classifier as it is shown."""

    label: str
    classifier: Classifier
    classes: tuple[str, ...]  # () for spans
    note: str = ""  # why its predictions may mean nothing


def trained_runs(store: Store) -> dict[str, str]:
    """Label → folder of every run with a model, ordered by corpus, system and seed."""
    found = [
        (sealed.read("spec.json")["data"]["corpus"], run_label(sealed), str(sealed.path))
        for sealed in store.sealed("runs")
        if (sealed.path / SETTINGS_FILE).exists()  # a lost run has no model
    ]
    return {label: path for _, label, path in sorted(found)}


@lru_cache(maxsize=KEPT_OPEN)
def open_model(name: str) -> Model:
    """A run's folder, or any name that `load_classifier` knows; kept in memory."""
    classifier = _with_own_head(name).eval().to(default_device())
    folder = Path(classifier.name)
    if (folder / "spec.json").exists():
        run = Sealed(folder, "done")
        data = run.read("spec.json")["data"]
        classes = tuple(data["classes"]) or local_info(data["corpus"]).labels
        return Model(run_label(run), classifier, classes)
    config = classifier.model.config
    names = getattr(config, "id2label", None) or {}
    count = 0 if classifier.task == "span" else max(2, classifier.num_labels)
    classes = tuple(str(names.get(i, i)) for i in range(count))
    trained = (folder / SETTINGS_FILE).exists() or _has_head(classifier)
    note = "" if trained else "its head was never trained, so its predictions are arbitrary"
    return Model(name, classifier, classes, note)


def _with_own_head(name: str) -> Classifier:
    """The classifier with the task and the activation that its checkpoint was trained with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the default head, which is replaced below
        classifier = load_classifier(name, seed=0)
        if (Path(classifier.name) / SETTINGS_FILE).exists() or not _has_head(classifier):
            return classifier
        if _architecture(classifier).endswith("ForQuestionAnswering"):
            return load_classifier(name, seed=0, task="span")
        activation = FAMILIES[classifier.family].library_activation
        if activation is HEADS[classifier.head].activation:
            return classifier
        head = next(
            h for h in HEADS if HEADS[h].activation is activation and not HEADS[h].num_labels
        )
        return load_classifier(name, seed=0, head=head)


def _has_head(classifier: Classifier) -> bool:
    """Whether the checkpoint brings a head that we can read; decoders' have no dense map."""
    family = FAMILIES.get(classifier.family)
    architecture = _architecture(classifier)
    if family is None or architecture.endswith("ForQuestionAnswering"):
        return family is not None
    return architecture.endswith("ForSequenceClassification") and bool(family.library_activation)


def _architecture(classifier: Classifier) -> str:
    """The class that the checkpoint says it was saved from."""
    return (getattr(classifier.model.config, "architectures", None) or [""])[0]
