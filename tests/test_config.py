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
    Extraction,
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
        canonical({"bound": value})
    with pytest.raises(ValueError, match="the option 'bound' must be a finite number, a text"):
        term("explanation", 1.0, bound=value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Term("x", 1, (("b", 1), ("a", 2))), term("x", a=2.0, b=1.0)),
        (
            UpdateSpec("constrained", [["lr", 0], ["bound", 1]]),
            update("constrained", bound=1, lr=0),
        ),
        (OptimiserSpec(lr=1, betas=[0.9, 0]), OptimiserSpec(lr=1.0, betas=(0.9, 0.0))),
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


DATA = DataSpec("movies", "local")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: DataSpec("../movies"), "'../movies' is no name of a corpus"),
        (lambda: DataSpec(""), "'' is no name of a corpus"),
        (lambda: DataSpec(3), "DataSpec: corpus must be a text, not 3"),
        (lambda: DataSpec("m", "cloud"), "unknown source 'cloud'"),
        (lambda: DataSpec("m", max_length=0), "max_length must be a whole number from 1 on, not 0"),
        (lambda: DataSpec("m", max_length=True), "max_length must be a whole number, not True"),
        (lambda: DataSpec("m", train_rows=0), r"train_rows \(None: all\) must be a whole number"),
        (lambda: DataSpec("m", dev_rows=1.5), "dev_rows must be a whole number or None, not 1.5"),
        (lambda: DataSpec("m", classes=("A", 1)), "classes must be a list, each of it a text"),
        (lambda: Extraction(RUN, 0), "percent must be a whole number from 1 to 100, not 0"),
        (lambda: Extraction(RUN, 20, shape="round"), "unknown shape of rationales 'round'"),
        (lambda: Extraction(None, 20), "run must be a RunSpec, not None"),
        (lambda: ModelSpec(""), "a model has a name"),
        (lambda: ModelSpec(task="rank"), "unknown task 'rank'"),
        (lambda: ModelSpec(layers=0), "layers must be a whole number from 1 on, not 0"),
        (lambda: ModelSpec(layers=2, frozen=3), "frozen must be a whole number from 0 to 2, not 3"),
        (lambda: term("task", -1), "the weight of task must be a finite number from 0 on, not -1"),
        (lambda: Term("task", "1"), "weight must be a finite number, not '1'"),
        (lambda: Term("task", 1, (("a", 1), ("a", 2))), "the option 'a' is given twice"),
        (lambda: term("task", a={"b": 1}), "the option 'a' must be"),
        (lambda: CheckpointRule(mode="most"), "unknown checkpoint mode 'most'"),
        (lambda: CheckpointRule(patience=0), "patience must be a whole number from 1 on, not 0"),
        (lambda: CheckpointRule(min_delta=-1), "min_delta must be a finite number from 0 on"),
        (lambda: CheckpointRule(bound=("loss",)), r"bound must be \(a text, a finite number\) or"),
        (lambda: OptimiserSpec(lr=-0.001), "lr must be a finite number from 0 on, not -0.001"),
        (lambda: OptimiserSpec(lr=float("nan")), "lr must be a finite number, not nan"),
        (lambda: OptimiserSpec(epochs=1.5), "epochs must be a whole number, not 1.5"),
        (lambda: OptimiserSpec(epochs=0), "epochs must be a whole number from 1 on, not 0"),
        (lambda: OptimiserSpec(batch_size=0), "batch_size must be a whole number from 1 on"),
        (lambda: OptimiserSpec(warmup=2), "warmup, a share of all steps, must be .* from 0 to 1"),
        (lambda: OptimiserSpec(betas=(0.9, 1)), "betas must be from 0 to below 1"),
        (lambda: OptimiserSpec(weight_decay=-1), "weight_decay must be a finite number from 0"),
        (lambda: OptimiserSpec(clip=-1), "clip, the largest norm of a gradient, must be above 0"),
        (lambda: OptimiserSpec(clip=0.0), "must be above 0"),
        (lambda: RunSpec(DATA, seed=None), "seed must be a whole number, not None"),
        (lambda: RunSpec(DATA, seed=2**70), "seed must be a whole number from 0 to"),
        (lambda: RunSpec(DATA, objective=()), "an objective has at least one term"),
        (lambda: RunSpec("movies"), "data must be a DataSpec, not 'movies'"),
        (
            lambda: RunSpec(DATA, each_epoch=(EvalSpec(RUN, DATA, "dev", "agreement"),)),
            "leave out its run=",
        ),
        (lambda: EvalSpec(RUN, DATA, "tets", "predictions"), "unknown split 'tets'; did you mean"),
        (lambda: EvalSpec(RUN, DATA, "test", "predictions", rows=0), "rows .* from 1 on, not 0"),
        (lambda: EvalSpec(RUN, DATA, "test", "predictions", level="piece"), "unknown level"),
        (lambda: update("plain", explainer_lr=-1), "explainer_lr must be a finite number from 0"),
    ],
)
def test_an_impossible_description_is_refused_when_it_is_made(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_numbers_of_numpy_are_numbers():
    spec = replace(RUN, seed=np.int64(2), optimiser=OptimiserSpec(lr=np.float64(0.1)))
    assert canonical(spec) == canonical(replace(RUN, seed=2, optimiser=OptimiserSpec(lr=0.1)))


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
