"""The pilot update teaches a teacher through one step of its student."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch

from erlib.config import CheckpointRule, ModelSpec, OptimiserSpec, term, update
from erlib.losses import Step, Weighted
from erlib.models.learned_attention import calibrate, explain
from erlib.training import loop
from erlib.training.identity import run_hash
from erlib.training.pilot import PilotUpdate, Teacher
from erlib.training.runs import run
from erlib.training.updates import PlainUpdate
from tests import tiny

MEASURED = Weighted((term("task", 0.0),))
SPEC = OptimiserSpec(lr=1e-3, warmup=0.0, schedule="constant")
ROWS = [
    {"id": "0", "words": "a great film , truly moving", "label": 1},
    {"id": "1", "words": "the plot is dull and bad", "label": 0},
    {"id": "2", "words": "not a bad film", "label": 0},
    {"id": "3", "words": "i liked the music but hated the story", "label": 1},
]
QUESTIONS = [
    {
        "id": str(i),
        "question": "which is best ?",
        "context": f"a {word} film . dull .",
        "answers": [{"text": word, "answer_start": 2}],
    }
    for i, word in enumerate(("great", "funny", "moving"))
]


def ready(family="bert", explainer="ivra-softmax", rows=ROWS, frozen=0, **options):
    """A teacher and its pilot without dropout, in float64; the student has begun to differ."""
    task = "span" if rows is QUESTIONS else "classify"
    teacher = tiny.classifier(family, explainer=explainer, task=task, seed=1)
    teacher.freeze(frozen)
    calibrate(teacher, tiny.inputs(teacher))
    pilot = PilotUpdate(teacher, SPEC, 10, seed=0, **options)
    pilot.student.eval()
    calibrate(pilot.student, tiny.inputs(teacher))
    if explainer == "ivra-sparsemax":  # where one token has all of a tiny map, nothing has a slope
        for scales in (teacher.explainer, pilot.student.explainer):
            scales.scale_heads /= 8
            scales.scale_layers /= 8
    for model in (teacher.model, pilot.student.model):
        model.double()
    generator = torch.Generator().manual_seed(2)
    for weight in pilot.student.explainer.parameters():
        weight.data += 0.3 * torch.rand(weight.shape, generator=generator)
    return teacher, pilot, Step(teacher, tiny.batch(teacher, rows))


@pytest.mark.parametrize("outer", ["simulation", "smat"])
@pytest.mark.parametrize(
    ("family", "explainer", "rows"),
    [
        ("bert", "ivra-softmax", ROWS),
        ("bert", "ivra-sparsemax", ROWS),
        ("gpt2", "smat", ROWS),
        ("electra", "ivra-softmax", QUESTIONS),
    ],
)
def test_the_gradient_is_the_difference_quotient_through_the_student_s_step(
    family, explainer, rows, outer
):
    teacher, pilot, step = ready(family, explainer, rows, outer=outer, student_lr=0.3)
    lessons = Teacher(step)
    for phi in teacher.explainer_parameters():
        (slope,) = torch.autograd.grad(pilot.outer_loss(lessons.lesson())[0], phi)
        for place in slope.abs().flatten().topk(min(2, slope.numel())).indices.tolist():
            values = []
            for h in (1e-6, -1e-6):
                with torch.no_grad():
                    phi.view(-1)[place] += h
                values.append(pilot.outer_loss(lessons.lesson())[0].item())
                with torch.no_grad():
                    phi.view(-1)[place] -= h
            quotient = (values[0] - values[1]) / 2e-6
            found = slope.flatten()[place].item()
            assert found == pytest.approx(quotient, rel=1e-4, abs=1e-9)
            assert abs(quotient) > 1e-8


def test_a_student_has_its_teacher_s_frozen_layers_and_learns_explanations_above_them():
    _, pilot, step = ready("llama", frozen=1, beta=1.0)
    was = {name: weight.clone() for name, weight in pilot.student.model.named_parameters()}
    answers_alone = copy.deepcopy(pilot)
    answers_alone.beta = 0.0
    for student in (pilot, answers_alone):
        student.teach(Teacher(step).lesson())
    taught, untaught = (dict(p.student.model.named_parameters()) for p in (pilot, answers_alone))
    still = {name for name, weight in taught.items() if weight.equal(was[name])}
    assert {n for n in was if "layers.0." in n or "embed" in n} <= still
    top = "model.layers.1.self_attn.q_proj.weight"
    assert top not in still and not taught[top].equal(untaught[top])


def test_the_student_s_cross_entropy_reaches_the_teacher_only_by_second_derivatives():
    """SMaT's outer loss has no r in it: without the step in the graph its gradient would be 0."""
    teacher, pilot, step = ready(outer="smat", student_lr=0.3)
    phi = teacher.explainer.lambda_
    (slope,) = torch.autograd.grad(pilot.outer_loss(Teacher(step).lesson())[0], phi)
    assert slope.abs().max() > 1e-8
    pilot.student_lr = 0.0
    (slope,) = torch.autograd.grad(pilot.outer_loss(Teacher(step).lesson())[0], phi)
    assert slope.abs().max() == 0


def test_one_update_is_its_three_steps_written_out():
    teacher, pilot, step = ready(student_lr=0.1, beta=0.5, explainer_lr=0.05)
    before, student = copy.deepcopy(teacher), copy.deepcopy(pilot.student)
    lesson = Teacher(Step(before, step.batch)).lesson()
    outer, _ = pilot.outer_loss(lesson)
    slopes = torch.autograd.grad(outer, before.explainer_parameters())
    adam = torch.optim.AdamW(
        before.explainer_parameters(), lr=0.05, betas=SPEC.betas, weight_decay=0.0
    )
    for weight, slope in zip(before.explainer_parameters(), slopes, strict=True):
        weight.grad = slope
    adam.step()

    found = pilot.apply(MEASURED, step, 0)
    for ours, theirs in zip(
        teacher.explainer_parameters(), before.explainer_parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs)
    # step 3: the student, as it was, with the teacher as it now is
    output = student.forward(step.batch.inputs)
    learnt = explain(student, output, step.mask).r.clamp(min=1e-8)
    told = before.forward(step.batch.inputs)
    r = explain(before, told, step.mask).r.detach()
    ce = torch.nn.functional.cross_entropy(output.logits, told.logits.argmax(dim=1))
    learnt = learnt / (learnt * step.mask).sum(dim=1, keepdim=True)
    divergence = torch.where(r > 0, r * (r.clamp(min=1e-30).log() - learnt.log()), 0.0).sum(dim=1)
    loss = ce + 0.5 * divergence.mean()
    named = dict(student.model.named_parameters())
    slopes = torch.autograd.grad(loss, list(named.values()), allow_unused=True)
    moved = 0
    for (name, weight), slope in zip(named.items(), slopes, strict=True):
        ours = dict(pilot.student.model.named_parameters())[name]
        if slope is not None:
            weight = weight - 0.1 * slope
            moved += 1
        torch.testing.assert_close(ours, weight, atol=1e-9, rtol=1e-7)
    assert moved > 20
    assert found["simulatability"].item() == pytest.approx(outer.item())
    assert found["loss"].item() == pytest.approx(outer.item())
    split = found["student_ce"] + 0.5 * found["student_kl"]
    assert split.item() == pytest.approx(outer.item())


def test_simulatability_alone_leaves_every_prediction_as_it_was():
    teacher, pilot, step = ready(explainer="ivra-sparsemax", explainer_lr=0.05)
    was = {name: tensor.clone() for name, tensor in teacher.model.state_dict().items()}
    logits = teacher.forward(step.batch.inputs).logits
    for number in range(3):
        pilot.apply(MEASURED, Step(teacher.train(), step.batch), number)
    changed = {n for n, t in teacher.model.state_dict().items() if not torch.equal(t, was[n])}
    assert changed == {f"explainer.{n}" for n in ("omega_q", "omega_k", "lambda_", "eta")}
    assert torch.equal(teacher.eval().forward(step.batch.inputs).logits, logits)


def test_beside_other_losses_the_student_moves_nothing_but_the_explainer():
    teacher, pilot, step = ready()
    twin = copy.deepcopy(teacher)
    objective = Weighted((term("task"), term("consistency")))
    plain = PlainUpdate(twin, SPEC, 10)
    plain.apply(objective, Step(twin, step.batch), 0)
    found = pilot.apply(objective, step, 0)
    for name, weight in teacher.model.named_parameters():
        theirs = dict(twin.model.named_parameters())[name]
        if name.startswith("explainer."):
            assert not torch.equal(weight, theirs)
        else:
            torch.testing.assert_close(weight, theirs, atol=1e-12, rtol=1e-9)
    total = found["task"] + found["consistency"] + found["simulatability"]
    assert found["loss"].item() == pytest.approx(total.item())


def test_the_student_is_the_pretrained_model_with_another_head():
    teacher, pilot, _ = ready()
    fresh = tiny.classifier("bert", explainer="ivra-softmax", seed=5)
    ours, theirs = (dict(m.model.named_parameters()) for m in (pilot.student, fresh))
    body = [n for n in ours if n.startswith("bert.") and "pooler" not in n]
    assert body and all(torch.equal(ours[n], theirs[n].double()) for n in body)
    heads = [m.model.classifier.weight for m in (pilot.student, teacher)]
    assert not torch.equal(*heads)


@pytest.fixture
def simulated(spec):
    base = replace(spec, objective=(term("task"),))
    return replace(
        base,
        start=base,
        model=ModelSpec(spec.model.name, explainer="ivra-sparsemax"),
        objective=(term("task", 0.0), term("entropy", 0.0)),
        optimiser=replace(
            spec.optimiser, checkpoint=CheckpointRule("train_student_ce", patience=None)
        ),
        update=update("pilot", student_lr=0.05, explainer_lr=0.05),
    )


def test_a_pilot_run_taken_up_after_an_epoch_ends_like_an_unbroken_one(
    simulated, tmp_path, monkeypatch
):
    run([simulated], store=tmp_path / "whole")
    evaluate_epoch, epochs = loop.evaluate_epoch, []

    def interrupted(*arguments):
        epochs.append(arguments)
        if len(epochs) == 3:  # the first was the start's
            raise KeyboardInterrupt
        evaluate_epoch(*arguments)

    run([simulated.start], store=tmp_path / "broken")
    epochs.append("start")
    monkeypatch.setattr(loop, "evaluate_epoch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([simulated], store=tmp_path / "broken")
    run([simulated], store=tmp_path / "broken")
    broken, whole = (tmp_path / s / "runs" / run_hash(simulated) for s in ("broken", "whole"))
    for file in ("metrics.json", "history.csv", "model.safetensors"):
        assert (broken / file).read_bytes() == (whole / file).read_bytes(), file
    assert '"resumed": true' in (broken / "provenance.json").read_text()


def test_what_cannot_be_piloted_is_refused():
    with pytest.raises(ValueError, match="no learned attention"):
        PilotUpdate(tiny.classifier("bert"), SPEC, 10, seed=0)
    with pytest.raises(ValueError, match="unknown outer loss 'smart'; did you mean 'smat'"):
        PilotUpdate(tiny.classifier("bert", explainer="smat"), SPEC, 10, seed=0, outer="smart")
