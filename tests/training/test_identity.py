"""A hash changes with everything that changes the numbers, and with nothing else."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from erlib.config import EvalSpec, canonical, digest, term
from erlib.losses import OBJECTIVES
from erlib.models import jwa
from erlib.training import identity
from erlib.training.evaluations import KINDS
from tests import corpus


def forget():
    for cached in (identity.rows_of, identity.content_of, identity.run_hash, identity.eval_hash):
        cached.cache_clear()


@pytest.fixture(autouse=True)
def fresh():
    forget()
    yield
    forget()


def test_a_hash_is_the_same_in_every_process():
    value = {"b": [1, 2.5, None], "a": "ψ"}
    code = f"from erlib.config import digest; print(digest({value!r}))"
    out = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert out.stdout.strip() == digest(value)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.with_seed(4),
        lambda s: replace(s, data=replace(s.data, train_rows=40)),
        lambda s: replace(s, optimiser=replace(s.optimiser, lr=1e-3)),
        lambda s: replace(s, objective=(term("task"), term("explanation", 0.6, guide="attention"))),
        lambda s: replace(s, model=replace(s.model, layers=1)),
    ],
)
def test_whatever_changes_a_run_changes_its_hash(spec, change):
    assert identity.run_hash(spec) != identity.run_hash(change(spec))


def test_a_new_version_of_a_loss_is_a_new_run(spec, monkeypatch):
    before = identity.run_hash(spec)
    monkeypatch.setattr(OBJECTIVES["explanation"], "version", 99)
    forget()
    assert identity.run_hash(spec) != before


def test_a_new_version_of_the_scores_on_dev_is_a_new_run(spec, monkeypatch):
    before = identity.run_hash(spec)
    monkeypatch.setitem(KINDS, "predictions", replace(KINDS["predictions"], version=99))
    forget()
    assert identity.run_hash(spec) != before


def test_a_jwa_on_other_vectors_is_a_new_run_and_no_other_model_is(spec, monkeypatch):
    specs = [spec, replace(spec, model=replace(spec.model, name="jwa"))]
    before = [identity.run_hash(s) for s in specs]
    monkeypatch.setattr(jwa, "VERSION", 99)
    forget()
    assert identity.run_hash(specs[0]) == before[0]
    assert identity.run_hash(specs[1]) != before[1]


def test_a_corrected_label_is_a_new_run(spec, tmp_path, monkeypatch):
    before = identity.run_hash(spec)
    monkeypatch.setitem(corpus.WORDS, 0, ["dull", "bad", "worst", "awful"])
    corpus.write(tmp_path / "other")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "other"))
    forget()
    assert identity.run_hash(spec) != before


def test_an_evaluation_is_named_after_its_run_its_rows_and_its_method(spec):
    base = EvalSpec(spec, spec.data, "test", "attributions", method="attention")
    others = [
        replace(base, rows=8),
        replace(base, split="dev"),
        replace(base, run=spec.with_seed(4)),
        replace(base, kind="plausibility"),
        replace(base, target="gold"),
    ]
    assert len({identity.eval_hash(s) for s in (base, *others)}) == 6


def test_the_canonical_form_does_not_depend_on_the_order_of_options():
    assert canonical(term("explanation", a=1, b=2)) == canonical(term("explanation", b=2, a=1))
