"""Is the plan's count of operations that of the products that are really taken?"""

from __future__ import annotations

import pytest
import transformers
from torch.utils.flop_counter import FlopCounterMode

from erlib.attributions.costs import Shape, forward_operations
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, Teaching, update
from erlib.config import term as term_of
from erlib.losses import Step, Weighted
from erlib.models import load_classifier
from erlib.models.learned_attention import calibrate
from erlib.training.costs import eval_operations, run_operations, step_passes, tokens
from erlib.training.stages import planned_steps
from erlib.training.updates import make_update
from tests import tiny

SHAPE = Shape(layers=3, width=128, inner=512, heads=4)
PROFILE = {"megabytes": [{"model": "other", "words": 1, "layer": 0.7864, "layers": 3}]}
WORDS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT so wide that its layers are all that counts."""
    path = tmp_path_factory.mktemp("wide")
    spoken = tiny.tokenizer("bert")
    config = transformers.BertConfig(
        vocab_size=len(spoken), hidden_size=128, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(path)
    spoken.save_pretrained(path)
    return path


EACH = {
    "task": (),
    "attention": (term_of("explanation", guide="attention"),),
    "input x gradient": (term_of("explanation", guide="input_x_gradient"),),
    "input_gradient": (term_of("input_gradient"),),
    "virtual_adversarial": (term_of("virtual_adversarial"),),
    "comprehensiveness": (term_of("comprehensiveness"),),
    "sufficiency": (term_of("sufficiency"),),
    "pilot": (),
    "frozen": (),
}


@pytest.mark.parametrize("name", EACH)
def test_a_step_takes_about_the_operations_that_are_planned(name, folder):
    how = update("pilot") if name == "pilot" else update("plain")
    explainer = "ivra-softmax" if name in ("comprehensiveness", "sufficiency", "pilot") else None
    spec = RunSpec(
        DataSpec("sst", "hub", 64), ModelSpec(str(folder), explainer=explainer,
        frozen=2 if name == "frozen" else 0), (term_of("task"), *EACH[name]),
        OptimiserSpec(batch_size=4), update=how,
    )  # fmt: skip
    model = load_classifier(str(folder), head="er", explainer=explainer, seed=0).train()
    model.freeze(spec.model.frozen)
    texts = [{"id": str(i), "words": " ".join(["film"] * WORDS), "label": i % 2,
              "rationale": [1] + [0] * (WORDS - 1)} for i in range(4)]  # fmt: skip
    batch = tiny.batch(model, texts)
    if explainer:
        calibrate(model, batch.inputs)
    made = make_update(spec, model, 4)
    with FlopCounterMode(display=False) as counter:
        made.apply(Weighted(spec.objective), Step(model, batch), 0)
    length = batch.inputs["input_ids"].shape[1]
    planned = 4 * step_passes(spec, 3) * forward_operations(SHAPE, length)
    assert planned / 1.5 < counter.get_total_flops() < planned * 1.5


def test_a_run_is_planned_by_the_texts_and_tokens_that_it_reads():
    """By hand: 6,920 sentences of 19 words, two epochs, forward and twice that back."""
    spec = RunSpec(DataSpec("sst", "hub", 64), optimiser=OptimiserSpec(epochs=2, batch_size=40))
    width, n = 128, tokens("sst", 64)
    assert n == 26 and tokens("movies", 512) == 512
    once = 3 * (n * 24 * width**2 + 4 * n**2 * width)
    assert run_operations(PROFILE, spec) == pytest.approx(2 * 6920 * 3 * once, rel=0.01)
    asked = EvalSpec(spec, spec.data, "test", "attributions", 100, "integrated_gradients",
                     options=(("steps", 10),))  # fmt: skip
    # of the last layer the keys and values of all tokens, and all else of one
    last, last_back = ((4 * n + 20) * width**2 + each * n * width for each in (4, 8))
    point = 2 / 3 * once + last + 2 * (n * 24 * width**2 + 8 * n**2 * width) + last_back
    by_hand = 100 * (10 * point + once)
    assert eval_operations(PROFILE, asked) == pytest.approx(by_hand, rel=0.15)


def test_a_student_reads_a_fifth_of_the_test_texts():
    teacher = RunSpec(DataSpec("sst", "hub", 64))
    data = DataSpec("sst", "hub", 64, taught=Teaching(teacher, "attention"))
    student = RunSpec(data, optimiser=OptimiserSpec(epochs=1, batch_size=1))
    assert planned_steps(student) == 1821 // 5

