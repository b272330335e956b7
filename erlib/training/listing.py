"""Which runs are in the store, and what was each?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from erlib.training.checkpoints import VANISHED
from erlib.training.store import Sealed, Store


def runs_table(store: Store) -> pd.DataFrame:
    """One row per finished run: what it was and how it ended."""
    rows = []
    for sealed in store.sealed("runs"):
        spec, metrics = sealed.read("spec.json"), sealed.read("metrics.json")
        rows.append(
            {
                "run": sealed.name,
                "status": sealed.status,
                "corpus": spec["data"]["corpus"],
                "source": spec["data"]["source"],
                "texts": metrics["train_texts"],
                "model": spec["model"]["name"],
                "objective": objective_text(spec),
                "seed": spec["seed"],
                "dev_f1": _dev_f1(sealed),
                "seconds": sealed.read("provenance.json")["seconds"],
            }
        )
    return pd.DataFrame(rows)


def objective_text(spec: Mapping[str, Any]) -> str:
    """`task + 0.5 explanation/attention`: the terms, their options, and weights other than 1."""
    return " + ".join(
        ("" if t["weight"] == 1 else f"{t['weight']:g} ")
        + "/".join([t["name"], *(str(value) for _, value in t["options"])])
        for t in spec["objective"]
    )


# The terms beside the task's, in order of the alphabet, under the name that the papers give them.
SYSTEMS: Mapping[tuple[str, ...], str] = {
    (): "Baseline",
    ("explanation",): "ER",
    ("guided", "input_gradient", "virtual_adversarial"): "REGEX",
    ("salience",): "SaLoss",
}


def run_label(sealed: Sealed) -> str:
    """One line that tells a run from the others: system, corpus, model, seed, score, hash.

    `ER/attention (constrained) · movie_snippets · minilm · seed 1 · dev F1 0.84 · 66a797`
    """
    spec = sealed.read("spec.json")
    extract = spec["data"]["extract"]
    score = _dev_f1(sealed)
    parts = [
        _system(spec),
        spec["data"]["corpus"] + (f", rationales by {extract['method']}" if extract else ""),
        _model(spec["model"]),
        *filter(None, [spec["optimiser"].get("precision")]),
        f"seed {spec['seed']}",
        *([] if score is None else [f"dev F1 {score:.2f}"]),
        sealed.name[:6],
    ]
    return " · ".join(parts)


def vanished_words(sealed: Sealed) -> str:
    """`no weight was moved by explanation (epochs 1, 2)`; empty where every loss moved some."""
    found = sealed.read("metrics.json").get(VANISHED, {})
    parts = [
        f"{name} (epoch{'s' * (len(epochs) > 1)} {', '.join(map(str, epochs))})"
        for name, epochs in found.items()
    ]
    return f"no weight was moved by {' and '.join(parts)}" if parts else ""


def _model(model: Mapping[str, Any]) -> str:
    """`minilm, 2 layers, ivra-sparsemax`: the encoder, and what was done to it."""
    layers = f"{model['layers']} layer{'s' * (model['layers'] > 1)}" if model["layers"] else ""
    parts = [Path(model["name"]).name, layers, model.get("explainer"), *model["quirks"]]
    return ", ".join(part for part in parts if part)


def _dev_f1(sealed: Sealed) -> float | None:
    return (sealed.read("metrics.json")["best"] or {}).get("dev_f1_macro")


def _system(spec: Mapping[str, Any]) -> str:
    bound = dict(spec["update"]["options"]).get("term")  # weighted by its multiplier
    used = [t for t in spec["objective"] if t["weight"] or t["name"] == bound]
    terms = [t for t in used if not t["name"].startswith("task")]
    names = tuple(sorted(t["name"] for t in terms))
    choices = [value for t in terms for _, value in t["options"] if isinstance(value, str)]
    update = spec["update"]["name"]
    alone = bool(terms) and terms == used
    notes = ([] if update == "plain" else [update]) + (["no task loss"] if alone else [])
    return "/".join([SYSTEMS.get(names, " + ".join(names)), *choices]) + (
        f" ({', '.join(notes)})" if notes else ""
    )
