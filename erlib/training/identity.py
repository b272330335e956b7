"""What does the name of a run or an evaluation cover?

The hash covers the description, the content of the rows it resolves to (so a corrected corpus or
another source makes another run) and the `version` of every head, objective, attribution (also one
that a loss follows) and evaluation involved. Rationales are named by the texts they are taken from
and the run that takes them, so that a run has its name before the one it rests on is trained. On
how many rows a run was trained names the run, and its evaluations only through it. The device and
the number of threads are recorded in `provenance.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from erlib.attributions import method
from erlib.attributions.spending import check_spending
from erlib.config import DataSpec, EvalSpec, Extraction, RunSpec, as_plain, canonical, digest
from erlib.errors import unknown
from erlib.losses import OBJECTIVES, build
from erlib.losses.objective import Guided
from erlib.models import jwa
from erlib.models.heads import HEADS
from erlib.models.learned_attention import EXPLAINERS, VERSION
from erlib.training.evaluations import check_protocol, kind
from erlib.training.rows import content_of, contents, fingerprint_at
from erlib.training.students import answers, explanations
from erlib.training.updates import update_class

Spec = TypeVar("Spec", RunSpec, EvalSpec)
# The versions that guides had while runs were not named by them; with these they still are not.
UNNAMED = {
    "attention": 1,
    "rollout": 1,
    "saliency": 1,
    "input_x_gradient": 2,
    "deeplift": 2,
    "integrated_gradients": 1,
}


def _by_text(name: Callable[[Spec], str]) -> Callable[[Spec], str]:
    """Remember a name by the canonical text: for Python True is 1, in the text it is not."""
    known: dict[str, str] = {}

    def remembered(spec: Spec) -> str:
        text = canonical(spec)
        if text not in known:
            known[text] = name(spec)
        return known[text]

    remembered.cache_clear = known.clear  # type: ignore[attr-defined]
    return remembered


def forget_names() -> None:
    """Begin anew with `contents`."""
    fingerprint_at.cache_clear()
    run_hash.cache_clear()  # type: ignore[attr-defined]
    eval_hash.cache_clear()  # type: ignore[attr-defined]
    contents.clear()


@_by_text
def run_hash(spec: RunSpec) -> str:
    """The name of a run in the store."""
    return digest(run_identity(spec))


@_by_text
def eval_hash(spec: EvalSpec) -> str:
    """The name of an evaluation in the store; `spec.run` may be None (an each-epoch one)."""
    identity = {
        "spec": _placeless(as_plain(replace(spec, run=None, data=as_measured(spec.data)))),
        "run": run_hash(spec.run) if spec.run else None,
        "rows": content_of(spec.data, spec.split, spec.rows),
        "versions": _eval_versions(spec),
        **_extraction(spec.data),
        **_teaching(spec.data),
    }
    return digest(identity)


def run_identity(spec: RunSpec) -> dict[str, Any]:
    """Everything that the hash of a run is taken of."""
    for part in spec.objective:
        if part.name not in OBJECTIVES:
            raise unknown("objective", part.name, OBJECTIVES)
    if spec.model.head not in HEADS:
        raise unknown("head", spec.model.head, HEADS)
    explainer = spec.model.explainer
    if explainer is not None and explainer not in EXPLAINERS:
        raise unknown("explainer", explainer, EXPLAINERS)
    return {
        "spec": _placeless(as_plain(replace(spec, start=None))),
        "start": run_hash(spec.start) if spec.start else None,
        "train": content_of(spec.data, "train", spec.data.train_rows),
        "dev": content_of(spec.data, "dev", spec.data.dev_rows),
        "each_epoch": [eval_hash(e) for e in spec.each_epoch],
        "versions": {
            "objectives": {t.name: OBJECTIVES[t.name].version for t in spec.objective},
            "head": HEADS[spec.model.head].version,
            "update": update_class(spec.update).version,
            "scores": kind("predictions").version,  # of its epochs on dev
            **({} if explainer is None else {"explainer": VERSION}),
            **({"jwa": jwa.VERSION} if spec.model.name == "jwa" else {}),
            **_guides(spec),
        },
        **_extraction(spec.data),
        **_teaching(spec.data),
    }


def _guides(spec: RunSpec) -> dict[str, dict[str, int]]:
    """The versions of the attributions that losses follow, where they are not `UNNAMED`."""
    losses = (build(t) for t in spec.objective)
    versions = {x.guide: method(x.guide).version for x in losses if isinstance(x, Guided)}
    named = {guide: v for guide, v in versions.items() if UNNAMED.get(guide) != v}
    return {"guides": named} if named else {}


def scoring(extract: Extraction, data: DataSpec, split: str, rows: int | None) -> EvalSpec:
    """The evaluation that scores the words from which `extract` takes its rationales."""
    return EvalSpec(
        extract.run,
        replace(
            data,
            max_length=extract.run.data.max_length,
            train_rows=None,
            dev_rows=None,
            extract=None,
        ),
        split,
        "word_scores",
        rows,
        method=extract.method,
        variant=extract.variant,
        level="word",
        options=extract.options,
    )


def _placeless(plain: Any) -> Any:
    """A plain description with every model in it as `jwa.placeless` names it, at any depth."""
    if isinstance(plain, dict):
        return {name: _placeless(value) for name, value in plain.items()}
    if isinstance(plain, list):
        return [_placeless(value) for value in plain]
    return jwa.placeless(plain) if isinstance(plain, str) else plain


def as_measured(data: DataSpec) -> DataSpec:
    """What an evaluation reads: how many texts its run was trained on does not name it."""
    return replace(data, train_rows=None, dev_rows=None)


def _extraction(data: DataSpec) -> dict[str, Any]:
    """What the name covers of the rationales: the run and the versions that they come from."""
    if data.extract is None:
        return {}
    versions = _eval_versions(scoring(data.extract, data, "train", None))
    return {"extract": {"run": run_hash(data.extract.run), "versions": versions}}


def _teaching(data: DataSpec) -> dict[str, Any]:
    """What the name covers of a student's lessons: the teacher and the versions they come from."""
    if data.taught is None:
        return {}
    versions = _eval_versions(answers(data.taught, data, "test", None))
    if data.taught.method:
        versions |= _eval_versions(explanations(data.taught, data, 1))
    return {"taught": {"run": run_hash(data.taught.run), "versions": versions}}


def _eval_versions(spec: EvalSpec) -> dict[str, int]:
    check_protocol(spec)
    methods = kind(spec.kind).methods or ((spec.method,) if spec.method else ())
    check_spending(dict(spec.options), *methods)
    versions = {spec.kind: kind(spec.kind).version}
    if used := kind(spec.kind).uses:
        versions[used] = kind(used).version
    if spec.method:
        versions[spec.method] = method(spec.method).version
    return versions
