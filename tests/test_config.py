"""Equal descriptions have equal texts, unequal ones do not, and a new field renames nothing."""

from __future__ import annotations

import json
from dataclasses import make_dataclass, replace

import numpy as np
import pytest

from erlib.config import (
    CheckpointRule,
    DataSpec,
    EvalSpec,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Term,
    UpdateSpec,
    canonical,
    later,
    load_profile,
    overlaid,
    run_gigabytes,
    run_spec_from_dict,
    term,
    update,
)

RUN = RunSpec(DataSpec("movies", "local"), objective=(term("task"), term("tying", 0.5, mask=True)))


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (1, 1.0, "1"),
        (0, -0.0, "0"),
        (3, np.int64(3), "3"),
        (3, np.float32(3), "3"),
        (0.1, np.float64(0.1), "0.1"),
        (10**22, 1e22, "1" + 22 * "0"),
        (5e-5, 0.00005, "5e-05"),
        (True, np.bool_(True), "true"),
        ((1.0, "a", None), [1, "a", None], '[1,"a",null]'),
        ({"b": 2.0, "a": 1}, {"a": 1, "b": 2}, '{"a":1,"b":2}'),
    ],
)
def test_what_is_equal_is_written_alike(one, other, text):
    assert canonical(one) == canonical(other) == text


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (0, False), (0, None), (1, "1"), (0.1, np.float32(0.1)), (2**53, 2**53 + 1)],
)
def test_what_differs_is_written_differently(one, other):
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float32("-inf")])
def test_what_json_cannot_write_is_refused(value):
    with pytest.raises(ValueError, match="cannot be part of a description; leave it out"):
        canonical(term("explanation", 1.0, bound=value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Term("x", 1, (("b", 1), ("a", 2))), term("x", a=2.0, b=1.0)),
        (
            UpdateSpec("constrained", [["lr", 0], ["bound", 1]]),
            update("constrained", bound=1, lr=0),
        ),
        (OptimiserSpec(lr=1, betas=[0.9, 1]), OptimiserSpec(lr=1.0, betas=(0.9, 1.0))),
        (CheckpointRule(bound=["loss", 2]), CheckpointRule(bound=("loss", 2.0))),
        (ModelSpec(quirks=["double_embedding"]), ModelSpec(quirks=("double_embedding",))),
        (term("x", layers=[1, [2, 3]]), term("x", layers=(1, (2, 3)))),
    ],
)
def test_two_spellings_of_a_description_are_one(one, other):
    assert one == other and hash(one) == hash(other)
    assert canonical(one) == canonical(other)


def test_a_description_is_read_back_from_its_text():
    lists = replace(
        RUN,
        update=update("constrained", bound=1.0, term="tying"),
        optimiser=OptimiserSpec(lr=1.0, checkpoint=CheckpointRule(bound=("dev_loss", 2.0))),
        each_epoch=(EvalSpec(None, RUN.data, "dev", "agreement", options=(("steps", 3),)),),
        start=RUN,
    )
    assert run_spec_from_dict(json.loads(canonical(lists))) == lists


def with_field(spec, declared):
    """The description, as if its class had a field `added` that it has not got yet."""
    longer = make_dataclass("Longer", [("added", int, declared)], bases=(type(spec),), frozen=True)
    return longer(**vars(spec))


def test_a_field_that_is_added_later_renames_nothing_until_it_is_used():
    added = replace(RUN, optimiser=with_field(RUN.optimiser, later(0)))
    used = replace(RUN, optimiser=replace(added.optimiser, added=1))
    assert canonical(added) == canonical(RUN)
    assert canonical(used) != canonical(RUN) and '"added":1' in canonical(used)
    plain = replace(RUN, optimiser=with_field(RUN.optimiser, 0))  # as a field without `later`
    assert canonical(plain) != canonical(RUN)


def test_options_are_left_out_where_there_are_none():
    asked = EvalSpec(None, RUN.data, "test", "attributions", method="lime")
    assert "options" not in json.loads(canonical(asked))
    spending = replace(asked, options=(("samples", 50),))
    assert json.loads(canonical(spending))["options"] == [["samples", 50]]


def test_a_plan_knows_what_a_model_takes_on_disk():
    """As measured: 60 MB for two layers of MiniLM, 11 for JWA."""
    quick, size = load_profile("quick"), {}
    for name, layers in (("minilm", 2), ("minilm", None), ("jwa", None), ("smollm2", 3)):
        run = replace(RUN, model=replace(RUN.model, name=name, layers=layers))
        size[name, layers] = run_gigabytes(quick, run)
    assert size["minilm", 2] == pytest.approx(0.061, abs=0.004)
    assert size["minilm", None] == pytest.approx(0.092, abs=0.004)
    assert size["jwa", None] == pytest.approx(0.011)
    weights = 49152 * 576 + 3 * (2 * 576 * 576 + 2 * 576 * 192 + 3 * 576 * 1536)
    assert size["smollm2", 3] == pytest.approx(4 * weights / 1e9, rel=0.05)
    assert run_gigabytes(load_profile("paper"), RUN) == pytest.approx(0.49, abs=0.01)


def test_a_profile_that_inherits_merges_tables_and_replaces_all_else():
    under = {"seeds": [0, 1, 2], "rate": {"ATT": 1.0, "IXG": 4.0}, "model": "minilm"}
    over = {"seeds": [5], "rate": {"IXG": 2.0}, "short": {"epochs": 1}}
    assert overlaid(under, over) == {
        "seeds": [5], "rate": {"ATT": 1.0, "IXG": 2.0}, "model": "minilm", "short": {"epochs": 1}
    }  # fmt: skip
    assert under["rate"] == {"ATT": 1.0, "IXG": 4.0}


def test_night_is_cpu_with_what_it_says_itself():
    night, cpu = load_profile("night"), load_profile("cpu")
    assert "inherits" not in night and night["source"] == "local"
    assert night["megabytes"] == cpu["megabytes"]
    assert night["er_lens"]["optimiser"] == cpu["er_lens"]["optimiser"]
    assert night["regex"]["optimiser"] == cpu["regex"]["optimiser"] | {
        "batch_size": 16, "precision": "bf16"
    }  # fmt: skip
