"""How many operations does a run or an evaluation take, before anything is computed?

Counted in forward passes (a backward pass through weights and activations is two, through
activations alone one), each counted by `erlib.attributions.costs`. A profile states how many
operations a second its machine does; embeddings, heads, optimiser and loading are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from erlib.attributions.costs import Shape, forward_operations, operations
from erlib.attributions.variants import options_of
from erlib.config import EvalSpec, ModelSpec, RunSpec, Term
from erlib.data.corpora import corpora
from erlib.training.stages import expected_rows, planned_steps

PIECES = 1.25  # tokens of a word, on the average; and two specials
SCORES = {"faithfulness": 14, "flips": 12, "consistency": 2, "agreement": 1, "curvature": 8}
AGREEMENT = ("integrated_gradients", "gradshap", "deeplift", "deepshap")


def passes(term: Term, moved: float) -> float:
    """What a term adds to the task's own pass and its gradient, per text and in forward passes;
    `moved`: the share of the layers that is trained."""
    options = dict(term.options)
    match term.name:
        case "explanation" if options["guide"] == "input_x_gradient":
            return 3  # a gradient in the graph, and back through it
        case "input_gradient":
            return 3
        case "virtual_adversarial":
            return 2 * 2 + 3  # two ascents, and a pass with the perturbation
        case "guided":
            points = options.get("points", 50)
            guide = options.get("guide", "integrated_gradients")
            return 2 * (points if guide == "integrated_gradients" else 1) + 3
        case "comprehensiveness":
            return 1 + 2 * moved + 2  # a gated pass; another, and the slope of its gate
        case "sufficiency":
            return 2 + moved  # a gated pass, back to its gate
    return 0


def step_passes(run: RunSpec, layers: int) -> float:
    """Forward passes of a text in a training step; nothing is passed back to frozen layers."""
    moved = 1 - run.model.frozen / layers
    own = 1 + 2 * moved + sum(passes(t, moved) for t in run.objective)
    if run.update.name != "pilot":
        return own
    # the teacher's pass; the student's, once more with moved weights, back through both, and the
    # student's own step
    return own + 1 + 3 + 5 * 2 * moved


def run_operations(profile: Mapping[str, Any], run: RunSpec) -> float:
    """Of a run that uses all its epochs, with what is measured after each."""
    texts = planned_steps(run) * run.optimiser.batch_size
    length = tokens(run.data.corpus, run.data.max_length)
    shape = shape_of(profile, run.model)
    once = forward_operations(shape, length)
    each = sum(eval_operations(profile, replace(e, run=run)) for e in run.each_epoch)
    return texts * step_passes(run, shape.layers) * once + run.optimiser.epochs * each


def eval_operations(profile: Mapping[str, Any], spec: EvalSpec) -> float:
    """Of an evaluation: what explains a text, and how often it is then asked again."""
    assert spec.run is not None
    rows = expected_rows(spec.data, spec.split, spec.rows)
    shape, n = shape_of(profile, spec.run.model), tokens(spec.data.corpus, spec.data.max_length)
    once = forward_operations(shape, n)
    methods = AGREEMENT if spec.kind == "agreement" else filter(None, (spec.method,))
    explained = sum(_explained(m, spec, shape, n) for m in methods)
    return rows * (explained + SCORES.get(spec.kind, 1) * once)


def _explained(method: str, spec: EvalSpec, shape: Shape, n: int) -> float:
    """By a method with the points or samples that are asked for."""
    spent = dict(spec.options)
    usual = operations(method, shape, n)
    if method not in ("integrated_gradients", "lime", "gradshap"):
        return usual
    known = options_of(method, spec.variant, "bert")
    name = "steps" if method == "integrated_gradients" else "samples"
    default = operations(method, shape, n) / max(1, getattr(options_of(method, None, "bert"), name))
    return default * spent.get(name, getattr(known, name))


@cache
def tokens(corpus: str, max_length: int) -> int:
    """Tokens of a text, on the average, as far as they are read."""
    return min(max_length, round(PIECES * corpora()[corpus].words) + 2)


def shape_of(profile: Mapping[str, Any], model: ModelSpec) -> Shape:
    """A model's shape from what a layer of it takes on disk: 12 D² numbers of 4 bytes."""
    sizes = {size["model"]: size for size in profile["megabytes"]}
    size = sizes[model.name if model.name in sizes else "other"]
    width = max(1, round(math.sqrt(size["layer"] * 1e6 / 4 / 12)))
    return Shape(model.layers or size["layers"], width, 4 * width, max(1, width // 64))


def spec_seconds(profile: Mapping[str, Any], spec: RunSpec | EvalSpec) -> float:
    """At the rate of the profile's machine; no pass is shorter than its kernels take to start."""
    if isinstance(spec, EvalSpec):
        return eval_operations(profile, spec) / profile["operations_per_second"]
    shape = shape_of(profile, spec.model)
    kernels = planned_steps(spec) * step_passes(spec, shape.layers) * shape.layers
    counted = run_operations(profile, spec) / profile["operations_per_second"]
    return max(kernels * profile["seconds_per_layer"], counted)
