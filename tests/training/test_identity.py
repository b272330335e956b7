"""A hash changes with everything that changes the numbers, and with nothing else."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from erlib.attributions.registry import METHODS
from erlib.config import EvalSpec, Extraction, Teaching, canonical, digest, term, update
from erlib.losses import OBJECTIVES, explanation, guided
from erlib.models import jwa
from erlib.models.heads import HEADS
from erlib.training import identity, rows
from erlib.training.evaluations import KINDS
from tests import corpus


def forget():
    for cached in (rows._rows_at, rows.fingerprint_at, identity.run_hash, identity.eval_hash):
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


@pytest.mark.parametrize(
    ("loss", "guide"),
    [
        *((term("explanation", 0.6, guide=g), g) for g in explanation.GUIDES),
        *((term("guided", guide=g), g) for g in guided.GUIDES),
        (term("guided"), "integrated_gradients"),  # which it follows by default
    ],
)
def test_a_new_version_of_the_attribution_that_a_loss_follows_is_a_new_run(
    spec, monkeypatch, loss, guide
):
    unguided, own = (replace(spec, objective=(term("task"), *more)) for more in ((), (loss,)))
    named = "guides" in identity.run_identity(own)["versions"]
    assert named == (guide not in identity.UNNAMED)  # older runs were not, and names stay
    before = [identity.run_hash(s) for s in (unguided, own)]
    raised = replace(METHODS[guide], version=METHODS[guide].version + 1)
    monkeypatch.setitem(METHODS, guide, raised)
    forget()
    assert identity.run_hash(unguided) == before[0]
    assert identity.run_hash(own) != before[1]
    assert identity.run_identity(own)["versions"]["guides"] == {guide: raised.version}


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


def test_equal_descriptions_have_equal_names_and_true_is_not_one(spec):
    one, same, other = (replace(spec, objective=(term("tying", mask=m),)) for m in (1, 1.0, True))
    names = [identity.run_hash(s) for s in (one, same, other)]
    assert names[0] == names[1] != names[2]  # for Python the three are equal
    forget()
    assert identity.run_hash(other) == names[2]  # whichever is asked first


def test_how_many_texts_a_run_has_names_its_evaluation_only_through_the_run(spec):
    free = EvalSpec(spec, spec.data, "test", "predictions")
    counted = replace(free, data=replace(spec.data, train_rows=8, dev_rows=4))
    assert identity.eval_hash(counted) == identity.eval_hash(free)
    fewer = replace(free, run=replace(spec, data=counted.data))
    assert identity.eval_hash(fewer) != identity.eval_hash(free)


def test_what_is_spent_names_an_evaluation_rationales_and_lessons(spec):
    steps = (("steps", 3),)
    asked = {"method": "integrated_gradients", "variant": "ivra"}
    evaluation = EvalSpec(spec, spec.data, "test", "attributions", **asked)
    cut = [Extraction(spec, 20, **asked), Extraction(spec, 20, **asked, options=steps)]
    taught = [Teaching(spec, **asked), Teaching(spec, **asked, options=steps)]
    read = [replace(spec, data=replace(spec.data, extract=e)) for e in cut]
    learnt = [replace(spec, data=replace(spec.data, taught=t)) for t in taught]
    names = [identity.eval_hash(e) for e in (evaluation, replace(evaluation, options=steps))]
    names += [identity.run_hash(s) for s in (*read, *learnt)]
    assert len(set(names)) == 6
    scored = identity.scoring(cut[1], spec.data, "train", None)
    lessons = identity.explanations(taught[1], spec.data, 8)
    assert scored.options == lessons.options == steps


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "attributions", "method": "attention"},
        {"kind": "predictions"},
        {"kind": "agreement", "options": (("points", 3),)},
    ],
)
def test_an_option_that_nothing_reads_is_refused_before_anything_is_measured(spec, asked):
    with pytest.raises(
        ValueError, match="takes no 'steps'|unknown option .* known: samples, steps"
    ):
        identity.eval_hash(
            EvalSpec(spec, spec.data, "test", **{"options": (("steps", 3),), **asked})
        )


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"kind": "agreement", "protocol": "layers"}, "agreement has no protocols, so not"),
        ({"kind": "flips", "protocol": "deleted"}, "unknown protocol of flips 'deleted'; did you"),
        ({"kind": "attributions", "protocol": "dropout"}, "unknown protocol of attr"),
    ],
)
def test_a_protocol_that_nothing_reads_is_refused(spec, asked, said):
    with pytest.raises(ValueError, match=said):
        identity.eval_hash(EvalSpec(spec, spec.data, "test", method="attention", **asked))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"objective": (term("tying", masked=True),)}, "unknown option of objective 'tying' 'mas"),
        ({"objective": (term("explanation"),)}, "objective 'explanation' needs the option guide"),
        ({"update": update("plain", decays=0.5)}, "unknown option of update 'plain' 'decays'; did"),
        ({"update": update("plain", seed=1)}, "unknown option of update 'plain' 'seed'"),
        ({"update": update("constrained", lr=1)}, "'constrained' needs the options term, bound"),
    ],
)
def test_options_that_a_loss_or_an_update_does_not_take_are_refused(spec, change, said):
    with pytest.raises(ValueError, match=said):
        identity.run_hash(replace(spec, **change))


def relabelled(folder, split):
    """The corpus in another folder, with another label of one text of this split."""
    corpus.write(folder)
    path = folder / "movies" / f"{split}.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    rows[0]["label"] = 1 - rows[0]["label"]
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_each_split_names_what_reads_it_and_nothing_else(spec, tmp_path, monkeypatch, split):
    def names():
        forget()
        measured = [EvalSpec(None, spec.data, s, "predictions") for s in ("train", "dev", "test")]
        return [identity.run_hash(spec), *map(identity.eval_hash, measured)]

    before = names()
    relabelled(tmp_path / "other", split)
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "other"))
    changed = [a != b for a, b in zip(before, names(), strict=True)]
    assert changed == [split != "test", *(s == split for s in ("train", "dev", "test"))]


def test_a_new_version_of_the_head_is_a_new_run(spec, monkeypatch):
    before = identity.run_hash(spec)
    head = HEADS[spec.model.head]
    monkeypatch.setitem(HEADS, spec.model.head, replace(head, version=head.version + 1))
    forget()
    assert identity.run_hash(spec) != before
