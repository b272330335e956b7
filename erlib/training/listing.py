"""Which runs are in the store, and what was each?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from erlib.training.failures import FAILED, FAILURE_FILE, is_lacking, why
from erlib.training.store import LOG_FILE, VANISHED, Sealed, Store


def runs_table(store: Store) -> pd.DataFrame:
    """One row per finished run: what it was and how it ended."""
    return pd.DataFrame([_row(sealed) for sealed in store.sealed("runs")])


def _row(sealed: Sealed) -> dict[str, Any]:
    try:
        spec, metrics = sealed.read("spec.json"), sealed.read("metrics.json")
        return {
            "run": sealed.name,
            "status": sealed.status,
            "corpus": spec["data"]["corpus"],
            "source": spec["data"]["source"],
            "texts": metrics.get("train_texts"),
            "model": spec["model"]["name"],
            "objective": objective_text(spec),
            "seed": spec["seed"],
            "dev_f1": _dev_f1(sealed),
            "weights": "dropped" if sealed.dropped else "",
            "seconds": sealed.read("provenance.json").get("seconds"),
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # half-written, or odd
        return {"run": sealed.name, "status": "damaged"}


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


def eval_label(sealed: Sealed) -> str:
    """`plausibility by decompx on movie_snippets, test · Baseline · minilm · seed 1 · 66a797`."""
    spec = sealed.read("spec.json")
    by = f" by {spec['method']}" if spec["method"] else ""
    run = spec["run"]
    parts = [
        f"{spec['kind']}{by} on {spec['data']['corpus']}, {spec['split']}",
        _system(run),
        _model(run["model"]),
        f"seed {run['seed']}",
        sealed.name[:6],
    ]
    return " · ".join(parts)


def remarks(run: Sealed) -> list[str]:
    """What its owner should know: why it failed, which saved epochs were put aside, which losses
    moved no weight."""
    log = run.path / LOG_FILE
    said = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return [*said, *filter(None, [failed_words(run), vanished_words(run)])]


def failed_words(sealed: Sealed) -> str:
    """Why it failed and what can be done; empty if it did not, or only because another did or its
    texts are not there, which is said once for all of them (`absent_lines`)."""
    if sealed.status != FAILED or is_lacking(sealed):
        return ""
    failure = sealed.read(FAILURE_FILE)
    if failure["rests_on"] or failure.get("absent"):
        return ""
    return f"failed. {why(sealed)}"


def failed_lines(store: Store, runs: Iterable[str], evals: Iterable[str] = ()) -> list[str]:
    """A line for each of these runs that failed, and for each evaluation that failed of itself:
    hash, description, why and what can be done. What is not there where only results are read has
    not failed."""
    return [
        f"{s.name}: {(run_label if s.path.parent.name == 'runs' else eval_label)(s)}: {why(s)}"
        for s in _failed(store, runs, evals)
        if not is_lacking(s) and not _absent(store, s)
    ]


def absent_lines(store: Store, runs: Iterable[str], evals: Iterable[str] = ()) -> list[str]:
    """What was not there for these runs and evaluations, and what would mend it."""
    found = (_absent(store, s) for s in _failed(store, runs, evals))
    return list(dict.fromkeys(filter(None, found)))


def _absent(store: Store, failed: Sealed) -> str:
    """Which set was not there; empty if something else was the cause."""
    cause = _cause(store, failed)
    failure = cause.read(FAILURE_FILE) if cause and cause.status == FAILED else {}
    return str(failure["message"]) if failure.get("absent") else ""


def _failed(store: Store, runs: Iterable[str], evals: Iterable[str]) -> list[Sealed]:
    found = [store.get("runs", name) for name in runs]
    found += [_cause(store, store.get("evals", name)) for name in evals]
    return list(dict.fromkeys(s for s in found if s and s.status == FAILED))


def _cause(store: Store, sealed: Sealed | None) -> Sealed | None:
    """What failed (or was lost) in the first place, for this one to fail."""
    if sealed is None or sealed.status != FAILED:
        return sealed
    origin = sealed.read(FAILURE_FILE)["rests_on"]
    if not origin:
        return sealed
    return _cause(store, store.get("evals", origin) or store.get("runs", origin))


def _model(model: Mapping[str, Any]) -> str:
    """`minilm, 2 layers, ivra-sparsemax`: the encoder, and what was done to it."""
    layers = f"{model['layers']} layer{'s' * (model['layers'] > 1)}" if model["layers"] else ""
    parts = [Path(model["name"]).name, layers, model.get("explainer"), *model["quirks"]]
    return ", ".join(part for part in parts if part)


def _dev_f1(sealed: Sealed) -> float | None:
    return (sealed.read("metrics.json").get("best") or {}).get("dev_f1_macro")


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
