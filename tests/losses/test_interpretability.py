from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from erlib.config import OptimiserSpec, term
from erlib.losses import Step, Weighted, build
from erlib.losses.interpretability import (
    best_alone,
    best_tokens,
    clustering,
    drawn_percent,
    explanation_divergence,
    pair_divergence,
)
from erlib.metrics.ranking import at_least_one, best
from erlib.models.learned_attention import calibrate, explain
from erlib.training.updates import PlainUpdate
from tests import tiny
from tests.losses.finite import agrees

ROWS = [
    {"id": "0", "words": "a great film , truly moving and funny", "label": 1},
    {"id": "1", "words": "the plot is dull", "label": 0},
    {
        "id": "2",
        "words": "not a bad film but the ending is dull and the acting",
        "label": 0,
    },
]
QUESTIONS = [
    {
        "id": "q",
        "question": "which is best ?",
        "context": "a great film . dull .",
        "answers": [{"text": "great film", "answer_start": 2}],
    },
    {
        "id": "p",
        "question": "which is the worst of the year ?",
        "context": "the music . the story is bad . a film",
        "answers": [{"text": "the story is bad", "answer_start": 12}],
    },
]


def ready(family="bert", explainer="ivra-sparsemax", **options):
    model = tiny.classifier(family, explainer=explainer, **options)
    calibrate(model, tiny.inputs(model))
    return model


def step_of(model, rows=ROWS):
    return Step(model, tiny.batch(model, rows))


def value(name, model, rows=ROWS, **options):
    (found,) = build(term(name, **options)).loss(step_of(model, rows)).values()
    return found.item()


def asked(model, rows, percent):
    """For each text alone: log p(ỹ) of the whole, of the best tokens, and without them; and all
    predictions, [log p] by part. One pass each, with nothing but the attention mask changed."""
    answers = []
    for row in rows:
        batch = tiny.batch(model, [row])
        special = batch.special[0].numpy()
        with torch.no_grad():
            whole = model.forward(batch.inputs)
            r = explain(model, whole, batch.inputs["attention_mask"]).r[0].numpy()
            k = at_least_one(percent, int((~special).sum()))
            t = best(np.where(special, -np.inf, r), k)
            logits = [whole.logits]
            for kept in (t | special, ~t | special):
                mask = torch.tensor(kept)[None].long()
                logits.append(model.forward({**batch.inputs, "attention_mask": mask}).logits)
        dim = 1 if model.task == "span" else -1
        log_p = [z.log_softmax(dim=dim)[0] for z in logits]  # [class] or [token, 2]
        chosen = log_p[0].argmax(dim=0)
        of = [(p[chosen] if p.ndim == 1 else p[chosen, [0, 1]].sum()).item() for p in log_p]
        answers.append((*of, log_p))
    return answers


@pytest.mark.parametrize(
    ("family", "options", "rows"),
    [
        ("bert", {}, ROWS),
        ("gpt2", {}, ROWS),
        ("llama", {"num_labels": 3}, ROWS),
        ("electra", {"task": "span"}, QUESTIONS),
    ],
)
@pytest.mark.parametrize("explainer", ["ivra-softmax", "ivra-sparsemax", "smat"])
def test_erasure_losses_are_what_single_passes_give(family, options, rows, explainer):
    model = ready(family, explainer, **options)
    of = asked(model, rows, percent=10)  # what dev uses

    def mean(f):
        return pytest.approx(np.mean([f(*answer[:3]) for answer in of]), abs=1e-5)

    for margin in (1.0, 0.01):
        expected = mean(lambda x, t, rest, m=margin: m + max(-m, -(x - rest)))  # eq. 10
        assert value("comprehensiveness", model, rows, margin=margin) == expected
        expected = mean(lambda x, t, rest, m=margin: m + max(-m, -(t - x)))  # eq. 11
        assert value("sufficiency", model, rows, margin=margin) == expected
    assert value("sufficiency", model, rows, form="absolute") == mean(lambda x, t, _: abs(x - t))
    divergences = [(p.exp() * (p - x)).sum().item() for *_, (x, p, _) in of]  # eq. 17
    assert value("sufficiency", model, rows, form="kl") == pytest.approx(
        np.mean(divergences), abs=1e-5
    )


def test_one_logit_is_the_logit_of_class_1():
    model = ready(head="agreement")
    batch = tiny.batch(model, ROWS[1:2])
    assert (~batch.special).sum() <= 10  # so that 10 % are one token
    with torch.no_grad():
        z = model.forward(batch.inputs).logits[0, 0]
        r = explain(model, model.forward(batch.inputs), batch.inputs["attention_mask"]).r[0]
        t = r.masked_fill(batch.special[0], -1).argmax()
        mask = batch.inputs["attention_mask"].clone()
        mask[0, t] = 0
        without = model.forward({**batch.inputs, "attention_mask": mask}).logits[0, 0]
    sign = 1 if z > 0 else -1
    log_p = [-math.log1p(math.exp(-sign * float(v))) for v in (z, without)]
    assert value("comprehensiveness", model, ROWS[1:2]) == pytest.approx(
        1 + max(-1, log_p[1] - log_p[0]), abs=1e-5
    )


@pytest.mark.parametrize("name", ["comprehensiveness", "sufficiency", "consistency"])
@pytest.mark.parametrize("norm", ["softmax", "sparsemax"])
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_every_criterion_reaches_features_heads_layers_and_the_encoder(family, norm, name):
    model = ready(family, f"ivra-{norm}")
    model.train()
    torch.manual_seed(0)
    (loss,) = build(term(name)).loss(step_of(model)).values()
    loss.backward()
    for weight in ("omega_q", "omega_k", "lambda_", "eta"):
        slope = getattr(model.explainer, weight).grad
        assert slope is not None and slope.abs().max() > 0 and slope.isfinite().all(), weight
    assert model.encoder_parameters()[0].grad.abs().max() > 0


def test_the_best_tokens_are_as_many_as_asked_for_and_no_specials():
    step = step_of(ready(explainer="ivra-softmax"))
    hard = best_tokens(step, 20)
    counted = (step.mask.bool() & ~step.batch.special).sum(dim=1)
    assert set(hard.unique().tolist()) <= {0.0, 1.0} and not hard.requires_grad
    assert hard.sum(dim=1).tolist() == [at_least_one(20, int(n)) for n in counted]
    assert (hard * step.batch.special == 0).all() and (hard * (1 - step.mask) == 0).all()


def test_what_is_kept_alone_is_hard_in_value_and_soft_in_gradient():
    model = ready(explainer="ivra-softmax")
    step = step_of(model)
    (ours,) = torch.autograd.grad(
        best_alone(step, 20)[:, 0].sum(), model.explainer.eta, retain_graph=True
    )
    gate = (best_tokens(step, 20) + step.batch.special).requires_grad_()
    (slope,) = torch.autograd.grad(
        model.forward(step.batch.inputs, gate=gate).logits[:, 0].sum(), gate
    )
    r = step.explanation.r
    soft = (r / r.amax(dim=1, keepdim=True) * slope)[~step.batch.special]
    (theirs,) = torch.autograd.grad(soft.sum(), model.explainer.eta)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("explainer", ["ivra-softmax", "ivra-sparsemax", "smat"])
def test_comprehensiveness_teaches_r_what_each_token_of_the_whole_text_is_worth(explainer):
    """By difference quotients of log p around the whole text, one token at a time."""
    model = ready(explainer=explainer)
    model.model.double()
    step = step_of(model)
    model.model.training = True  # of the model alone: no dropout below it
    criterion = build(term("comprehensiveness", margin=50.0))  # out of reach
    weights = list(model.explainer.parameters())
    loss = criterion.loss(step)["comprehensiveness"]
    ours = torch.autograd.grad(loss, weights, retain_graph=True)

    chosen, h = step.forward().logits.argmax(dim=1), 1e-5
    worth = torch.zeros_like(step.mask, dtype=torch.double)
    with torch.no_grad():
        for text, token in (~step.batch.special & step.mask.bool()).nonzero().tolist():
            log_p = []
            for level in (1 - h, 1 + h):
                gate = torch.ones_like(worth)
                gate[text, token] = level
                logits = model.forward(step.batch.inputs, gate=gate).logits
                log_p.append(logits.log_softmax(dim=1)[text, chosen[text]])
            worth[text, token] = (log_p[1] - log_p[0]) / (2 * h)
    taught = -(explain(model, step.forward(), step.mask).r * worth).sum(dim=1).mean()
    for one, other in zip(ours, torch.autograd.grad(taught, weights), strict=True):
        assert other.abs().max() > 0
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-9)


def test_a_text_that_has_lost_more_than_the_margin_teaches_nothing():
    model = ready(explainer="ivra-softmax")
    step = step_of(model)
    model.model.training = True
    loss = build(term("comprehensiveness", margin=-50.0)).loss(step)["comprehensiveness"]
    (slope,) = torch.autograd.grad(loss, model.explainer.eta)
    assert (slope == 0).all()


def test_the_share_is_drawn_in_training_and_fixed_on_dev():
    model = ready()
    step = step_of(model)
    assert {drawn_percent(step) for _ in range(20)} == {10}
    model.train()
    torch.manual_seed(0)
    assert {drawn_percent(step) for _ in range(200)} == {1, 5, 10, 20, 50}


def test_consistency_over_all_pairs_at_once_is_the_loop():
    generator = torch.Generator().manual_seed(0)
    r = torch.rand(5, 7, generator=generator)
    r[:, 3] = 0  # zeros as sparsemax makes them
    r[1, 4:] = 0  # and pads
    r = r / r.sum(dim=1, keepdim=True)
    states = torch.randn(5, 7, 3, generator=generator)
    total, pairs = 0.0, 0
    for i in range(5):
        for j in range(5):
            if i != j:
                p, q = (r[k].double().numpy() + 1e-8 for k in (i, j))
                distance = np.linalg.norm((states[i] - states[j]).numpy().ravel())
                total += float((p * np.log(p / q)).sum()) / (distance + 1e-6)
                pairs += 1
    assert pair_divergence(r, states).item() == pytest.approx(total / pairs, rel=1e-5)
    wider = torch.cat([r, torch.zeros(5, 4)], dim=1)
    further = torch.cat([states, torch.zeros(5, 4, 3)], dim=1)
    assert pair_divergence(wider, further).item() == pytest.approx(total / pairs, rel=1e-5)
    assert pair_divergence(r[:1], states[:1]).item() == 0


def test_consistency_looks_at_mean_states_and_does_not_push_them_apart():
    model = ready(explainer="ivra-softmax")
    step = step_of(model)
    found = build(term("consistency")).loss(step)["consistency"]
    states = []
    for row in ROWS:
        layers = step_of(model, [row]).forward().hidden_states[1:]
        states.append(torch.stack(layers).mean(dim=0)[0])
    padded = torch.nn.utils.rnn.pad_sequence(states, batch_first=True)
    expected = pair_divergence(step.explanation.r, padded)
    torch.testing.assert_close(found, expected)
    rows = [r.detach() for r in step.explanation.r]
    still = pair_divergence(torch.stack(rows), padded.detach())
    assert not still.requires_grad and still.item() == pytest.approx(found.item(), rel=1e-5)


def test_clusters_are_near_their_class_and_far_from_the_other():
    r = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 1.0]])
    classes = torch.tensor([0, 0, 1, 1])
    # squared distances: 01: .5, 02 and 03: 2, 12 and 13: .5, 23: 0
    expected = np.mean([0.5 - 2, 0.5 - 0.5, 0 - (2 + 0.5) / 2, 0 - (2 + 0.5) / 2])
    assert clustering(r, classes).item() == pytest.approx(expected)
    model = ready()
    step = step_of(model)
    found = build(term("consistency", form="clusters")).loss(step)["consistency"]
    torch.testing.assert_close(found, clustering(step.explanation.r, torch.tensor([1, 0, 0])))
    with pytest.raises(ValueError, match="spans have none"):
        value("consistency", ready(task="span"), QUESTIONS, form="clusters")


def test_a_student_is_charged_the_divergence_from_what_it_is_taught():
    r = torch.tensor([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]])
    learnt = torch.tensor([[0.25, 0.25, 0.5], [1.0, 0.0, 0.0]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    first = math.log(2)
    second = 0.25 * math.log(0.25) + 0.75 * math.log(0.75 / 1e-8)
    torch.testing.assert_close(
        explanation_divergence(r, learnt, mask), torch.tensor([first, second]), rtol=1e-5, atol=0
    )
    model = ready().train()
    step = step_of(model)
    with pytest.raises(ValueError, match="taught=Teaching"):
        build(term("simulation")).loss(step)
    step.batch.explanation = torch.full(step.mask.shape, 0.1) * step.mask
    found = build(term("simulation")).loss(step)["simulation"]
    expected = explanation_divergence(step.batch.explanation, step.explanation.r, step.mask).mean()
    torch.testing.assert_close(found, expected)
    model.eval()  # its explanations say nothing about held-out texts
    assert "simulation" not in Weighted((term("simulation"),)).loss(step)


@pytest.mark.parametrize("name", ["comprehensiveness", "sufficiency", "consistency", "entropy"])
def test_padding_changes_no_criterion(name):
    model = ready()
    narrow, wide = step_of(model), step_of(model)
    for key, tensor in wide.batch.inputs.items():
        wide.batch.inputs[key] = torch.nn.functional.pad(tensor, (0, 5))
    wide.batch.special = torch.nn.functional.pad(wide.batch.special, (0, 5))
    losses = [build(term(name)).loss(step)[name] for step in (narrow, wide)]
    torch.testing.assert_close(*losses, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    "weight", ["omega_q", "lambda_", "eta", "layer.0.attention.self.key.weight"]
)
def test_the_gradient_of_consistency_is_its_difference_quotient(weight):
    model = ready(explainer="ivra-softmax")
    model.model.double()
    states = torch.stack(step_of(model).forward().hidden_states[1:]).mean(dim=0).detach()

    def fixed():  # the weights of the pairs as they were
        step = step_of(model)
        return pair_divergence(step.explanation.r, states * step.mask[..., None])

    analytic = build(term("consistency")).loss(step_of(model))["consistency"]
    agrees(model, fixed, weight, analytic=analytic, places=2)


@pytest.mark.parametrize("norm", ["softmax", "sparsemax"])
def test_training_with_sparsemax_ends_in_exact_zeros_and_with_softmax_in_none(norm):
    model = ready(explainer=f"ivra-{norm}")
    update = PlainUpdate(model, OptimiserSpec(lr=1e-3, warmup=0.0), 200, explainer_lr=0.05)
    objective = Weighted((term("task"), term("sufficiency")))
    torch.manual_seed(0)
    model.train()
    for number in range(60):
        update.apply(objective, step_of(model), number)
    model.eval()
    step = step_of(model)
    r = step.explanation.r.detach()
    torch.testing.assert_close(r.sum(dim=1), torch.ones(3))
    zeros = (r == 0)[step.mask.bool()].float().mean()  # share of real tokens
    assert zeros > 0.1 if norm == "sparsemax" else zeros == 0


def test_unknown_forms_are_refused():
    with pytest.raises(ValueError, match="unknown form of sufficiency 'mae'"):
        build(term("sufficiency", form="mae"))
    with pytest.raises(ValueError, match="unknown form of consistency 'cluster'.*'clusters'"):
        build(term("consistency", form="cluster"))
