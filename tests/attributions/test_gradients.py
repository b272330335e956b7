from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pytest
import torch
from captum.attr import DeepLift, DeepLiftShap, GradientShap, InputXGradient, IntegratedGradients
from torch import Tensor, nn

from erlib.attributions import attribute
from erlib.attributions.attribute import attribute_encoded
from erlib.attributions.gradients import captum_deeplift, hooked_deeplift
from erlib.models import load_classifier
from tests import tiny
from tests.attributions import toy
from tests.attributions.plain import TEXT, Plain

ENCODERS = ("bert", "roberta", "electra", "distilbert", "big_bird")
TOYS = [toy.text([5, 6, 7, 8, 5], label=1), toy.text([9, 4], label=0)]


def _one(classifier, method, variant=None, label=None, **options):
    labels = None if label is None else [label]
    (found,) = attribute(
        classifier, [TEXT], method, variant=variant, labels=labels, level="token", **options
    )
    return found


SITES = [(None, "entry"), ("word_embedding", "embeddings")]


@pytest.mark.parametrize("family", ENCODERS)
def test_saliency_and_input_x_gradient_are_captums_on_the_librarys_model(family):
    classifier = tiny.classifier(family)
    f = Plain(classifier)
    slopes = f.gradient(f.x)[0]
    np.testing.assert_allclose(_one(classifier, "saliency").scores, slopes.norm(dim=-1), rtol=1e-4)
    for variant, site in SITES:
        f = Plain(classifier, site=site)
        product = InputXGradient(f).attribute(f.x.clone().requires_grad_())[0]
        found = _one(classifier, "input_x_gradient", variant)
        np.testing.assert_allclose(found.scores, product.detach().sum(-1), atol=1e-5)
        assert found.target == f.label and found.completeness_gap is None


def test_the_signed_sum_of_a_gradient_behind_a_layer_norm_is_zero_so_saliency_is_its_length():
    f = Plain(tiny.classifier("bert"))
    assert f.gradient(f.x).sum(-1).abs().max() < 1e-5 < 1e-2 < f.gradient(f.x).norm(dim=-1).min()


@pytest.mark.parametrize("family", tiny.DECODERS)
def test_the_gradient_of_a_decoder_is_that_of_its_last_token(family):
    classifier = tiny.classifier(family)
    inputs = tiny.inputs(classifier, [TEXT])
    x = classifier.forward(inputs).entry.detach()
    found = _one(classifier, "input_x_gradient")
    for t in (0, 3, x.shape[1] - 1):
        step = torch.zeros_like(x)
        step[0, t] = 3e-3 * x[0, t]
        with torch.no_grad():
            up, down = (classifier.forward(inputs, entry=x + s).logits for s in (step, -step))
        slope = float((up - down)[0, found.target]) / 6e-3
        assert found.scores[t] == pytest.approx(slope, rel=0.02, abs=1e-4)


def test_each_papers_gradient_is_the_one_its_notes_describe():
    classifier = tiny.classifier("bert")
    special = np.array(_one(classifier, "random").special)
    f, p = Plain(classifier), Plain(classifier, of="probability")
    other = Plain(classifier, label=1 - f.label)  # gold is not what was predicted
    gold = {"label": other.label}
    x, g, gp, g_gold = f.x[0], f.gradient(f.x)[0], p.gradient(f.x)[0], other.gradient(f.x)[0]
    at_entry = Plain(classifier, site="entry")
    e, product = at_entry.x[0], (at_entry.x * at_entry.gradient(at_entry.x))[0]
    e_gold = Plain(classifier, label=other.label, site="entry").gradient(e[None])[0]

    def check(method, variant, expected, specials_last=False, **options):
        found = _one(classifier, method, variant, **options).scores
        assert np.isneginf(found[special]).all() == specials_last
        shown = ~special if specials_last else slice(None)
        np.testing.assert_allclose(found[shown], expected.detach().numpy()[shown], atol=1e-5)

    check("saliency", "regex", g_gold.norm(dim=-1), **gold)
    check("saliency", "regex_mean", g_gold.abs().mean(-1), **gold)
    check("input_x_gradient", "regex", (x * g).norm(dim=-1), specials_last=True)
    check("input_x_gradient", "regex_guide", (x * g_gold).norm(dim=-1), **gold)
    check("input_x_gradient", "regex_guide_mean", (e * e_gold).mean(-1).abs(), **gold)
    check("input_x_gradient", "saloss", (x * gp).sum(-1).abs(), specials_last=True)
    check("input_x_gradient", "saloss_signed", (x * gp).sum(-1), specials_last=True)
    check("input_x_gradient", "ivra", product.sum(-1))
    check("input_x_gradient", None, (e * e_gold).sum(-1), target="gold", **gold)


def test_er_lens_multiplies_at_the_embedding_blocks_output_and_scales_to_length_one():
    classifier = tiny.classifier("bert")
    f = Plain(classifier)
    model = classifier.model
    e = model.bert.embeddings(input_ids=f.ids).detach().requires_grad_()
    state = model.bert.encoder(e, attention_mask=None).last_hidden_state
    logits = model.classifier(model.bert.pooler(state))
    gold = 1 - f.label
    (g,) = torch.autograd.grad(logits[0, gold], e)
    product = (e * g)[0].sum(-1).detach()
    found = _one(classifier, "input_x_gradient", "er_lens", label=gold)
    assert found.target == gold
    np.testing.assert_allclose(found.scores, (product / product.norm()).abs(), atol=1e-5)


@pytest.mark.parametrize("family", ENCODERS)
def test_integrated_gradients_add_up_and_are_the_integral(family):
    classifier = tiny.classifier(family)
    f = Plain(classifier)
    found = _one(classifier, "integrated_gradients")
    with torch.no_grad():
        change = float(f(f.x) - f(torch.zeros_like(f.x)))
    assert found.scores.sum() == pytest.approx(change, rel=0.01, abs=1e-4)
    assert found.completeness_gap == pytest.approx(found.scores.sum() - change, abs=1e-5)
    points = (torch.arange(400) + 0.5) / 400  # midpoint rule
    slopes = f.gradient(points[:, None, None] * f.x).mean(0)
    np.testing.assert_allclose(found.scores, (f.x[0] * slopes).sum(-1), atol=1e-3)


def test_the_completeness_gap_of_integrated_gradients_falls_with_the_number_of_points():
    classifier = tiny.classifier("roberta")
    gaps = [
        abs(_one(classifier, "integrated_gradients", options={"steps": n}).completeness_gap)
        for n in (2, 6, 20)
    ]
    assert gaps[0] > 10 * gaps[1] > 100 * gaps[2]


def test_saloss_integrates_over_eleven_points_of_equal_weight():
    classifier = tiny.classifier("bert")
    f = Plain(classifier, of="probability")
    slopes = torch.stack([f.gradient(f.x * k / 10)[0] for k in range(11)]).mean(0)
    found = _one(classifier, "integrated_gradients", "saloss")
    real = ~np.array(found.special)
    np.testing.assert_allclose(found.scores[real], (f.x[0] * slopes).sum(-1)[real], atol=1e-5)


def test_regex_takes_the_norm_of_integrated_gradients_and_in_the_audit_other_deeplifts():
    classifier = tiny.classifier("bert")
    f = Plain(classifier)
    real = ~np.array(_one(classifier, "random").special)
    ig = IntegratedGradients(f).attribute(f.x)[0]
    found = _one(classifier, "integrated_gradients", "regex").scores
    np.testing.assert_allclose(found[real], ig.norm(dim=-1).detach()[real], atol=1e-5)
    lift = _quiet(DeepLift(f).attribute, f.x.clone().requires_grad_())[0]
    found = _one(classifier, "deeplift", "regex_word_embedding").scores
    np.testing.assert_allclose(found[real], lift.sum(-1).detach()[real], atol=1e-5)
    hooked_ones = ("regex_hooked_word_embedding", "hooked")
    found, hooked = (_one(classifier, "deeplift", variant) for variant in hooked_ones)
    np.testing.assert_array_equal(found.scores[real], hooked.scores[real])
    assert np.isneginf(found.scores[~real]).all()


@pytest.mark.parametrize("method", ["integrated_gradients", "deeplift", "deepshap"])
def test_agreement_goes_from_pads_to_words_at_the_embedding_blocks_output(method):
    classifier = tiny.classifier("distilbert", head="agreement", specials=False)
    inputs = tiny.inputs(classifier, [TEXT])
    model = classifier.model.distilbert
    pads = torch.full_like(inputs["input_ids"], classifier.tokenizer.pad_token_id)
    e, reference = (model.embeddings(ids).detach() for ids in (inputs["input_ids"], pads))

    class GoldProbability(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = classifier.model

        def forward(self, entry: Tensor) -> Tensor:
            z = classifier.forward(_repeated(inputs, len(entry)), entry=entry).logits[:, 0]
            return 1 - z.sigmoid()

    captum = {"integrated_gradients": IntegratedGradients, "deeplift": DeepLift}
    tool = captum.get(method, DeepLift)(GoldProbability())
    expected = _quiet(tool.attribute, e.clone().requires_grad_(), reference).sum(-1).abs()[0]
    found = _one(classifier, method, "agreement", label=0)
    assert found.target == 0
    np.testing.assert_allclose(found.scores, expected.detach(), atol=1e-6)


def test_agreement_explains_the_logit_of_a_bilstm(tmp_path):
    classifier = toy.jwa(tmp_path, head="agreement")
    inputs = tiny.inputs(classifier, [TEXT])
    x = classifier.model.embedding(inputs["input_ids"]).detach()
    pads = classifier.model.embedding(torch.zeros_like(inputs["input_ids"])).detach()

    def logit(x: Tensor) -> Tensor:
        return classifier.forward(_repeated(inputs, len(x)), embeddings=x).logits[:, 0]

    expected = IntegratedGradients(logit).attribute(x, pads).sum(-1).abs()[0]
    found = _one(classifier, "integrated_gradients", "agreement", label=0)
    np.testing.assert_allclose(found.scores, expected.detach(), atol=1e-6)


def test_one_logit_speaks_for_class_one_and_against_class_zero(tmp_path):
    for classifier in (toy.jwa(tmp_path, head="agreement"), tiny.classifier(head="agreement")):
        for method in ("input_x_gradient", "integrated_gradients", "deeplift", "scaled_attention"):
            zero, one = (_one(classifier, method, label=y, target="gold") for y in (0, 1))
            np.testing.assert_allclose(zero.scores, -one.scores, atol=1e-6)
            assert abs(one.scores).max() > 1e-4
            positive = classifier.forward(tiny.inputs(classifier, [TEXT])).logits.item() > 0
            assert _one(classifier, method).target == int(positive)


def test_integrated_gradients_of_a_linear_model_are_its_weights():
    classifier = toy.Toy(toy.SumOverTokens(nn.Linear(toy.DIM, 2)))
    weight = classifier.model.net.g.weight.detach()
    for method in ("integrated_gradients", "input_x_gradient", "deeplift", "deepshap", "gradshap"):
        for text, found in zip(TOYS, _toys(classifier, method, target="gold"), strict=True):
            x = classifier.model.table.weight[text.input_ids].detach()
            np.testing.assert_allclose(found.scores, x @ weight[text.label], atol=1e-6)


def test_input_x_gradient_of_a_homogeneous_network_adds_up_to_its_output():
    net = nn.Sequential(nn.Linear(toy.DIM, 9, bias=False), nn.ReLU(), nn.Linear(9, 2, bias=False))
    classifier = toy.Toy(toy.SumOverTokens(net))
    for text, found in zip(TOYS, _toys(classifier, "input_x_gradient"), strict=True):
        x = classifier.model.table.weight[text.input_ids]
        np.testing.assert_allclose(found.scores, net(x)[:, found.target].detach(), atol=1e-9)


@pytest.mark.parametrize("variant", ["captum", "hooked"])
def test_deeplift_is_exact_on_a_relu_network(variant):
    classifier = toy.Toy(_perceptron(nn.ReLU))
    for found in _toys(classifier, "deeplift", variant=variant):
        assert abs(found.completeness_gap) < 1e-5
    x, other = torch.randn(2, 4, 3, toy.DIM, dtype=torch.double)
    f = _Class(classifier.model.net)
    torch.testing.assert_close(hooked_deeplift(f, x, other), captum_deeplift(f, x, other))


@pytest.mark.parametrize("activation", [nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid])
def test_hooked_deeplift_is_exact_where_captum_knows_no_rule(activation):
    classifier = toy.Toy(_perceptron(activation))
    hooked, captum = (_toys(classifier, "deeplift", variant=v) for v in ("hooked", "captum"))
    assert max(abs(a.completeness_gap) for a in hooked) < 1e-9
    if activation in (nn.GELU, nn.SiLU):
        assert max(abs(a.completeness_gap) for a in captum) > 1e-2


def test_hooked_deeplift_of_one_gelu_is_the_secant():
    x, other = torch.tensor([[[1.5]]]), torch.tensor([[[-0.5]]])
    found, _ = hooked_deeplift(nn.Sequential(nn.GELU(), nn.Flatten(0)), x, other)
    expected = nn.functional.gelu(x) - nn.functional.gelu(other)  # one input: all of the change
    torch.testing.assert_close(found, expected)


def test_hooked_deeplift_is_exact_through_softmax_products_and_norms():
    for net in (toy.AttendingPool(), nn.Sequential(nn.LayerNorm(toy.DIM), toy.AttendingPool())):
        classifier = toy.Toy(net)
        hooked, captum = (_toys(classifier, "deeplift", variant=v) for v in ("hooked", "captum"))
        assert max(abs(a.completeness_gap) for a in hooked) < 1e-9
        assert max(abs(a.completeness_gap) for a in captum) > 1e-2
        f = _Class(net)
        x, other = torch.randn(2, 4, 3, toy.DIM, dtype=torch.double)
        total = hooked_deeplift(f, 30 * x, other)[0].sum((1, 2))  # far apart: softmax saturates
        torch.testing.assert_close(total, f(30 * x) - f(other))


def test_hooked_deeplift_of_softmax_is_near_its_integrated_gradients():
    classifier = toy.Toy(toy.AttendingPool())
    f = _Class(classifier.model.net)
    x, other = torch.randn(2, 1, 3, toy.DIM, dtype=torch.double)
    near = other + 1e-3 * (x - other)
    expected = IntegratedGradients(f).attribute(near, other)
    torch.testing.assert_close(hooked_deeplift(f, near, other)[0], expected, rtol=1e-3, atol=1e-8)


@pytest.mark.parametrize("family", tiny.FAMILIES)
def test_hooked_deeplift_adds_up_on_every_transformer_and_captums_does_not(family):
    classifier = tiny.classifier(family)
    hooked, captum = (_one(classifier, "deeplift", v) for v in ("hooked", "word_embedding"))
    change = captum.scores.sum() - captum.completeness_gap
    assert hooked.scores.sum() == pytest.approx(change, abs=2e-5)
    assert abs(captum.completeness_gap) > 1e-3 > 100 * abs(hooked.completeness_gap)


def test_hooked_deeplift_says_why_it_cannot_explain_a_bilstm(tmp_path):
    with pytest.raises(ValueError, match="LSTM"):
        _one(toy.jwa(tmp_path), "deeplift", "hooked")


@pytest.mark.parametrize("family", ENCODERS)
def test_deeplift_without_a_variant_is_captums(family):
    classifier = tiny.classifier(family)
    classifier.model.double()
    for variant, site in [*SITES, ("captum", "entry")]:
        f = Plain(classifier, site=site)
        expected = _quiet(DeepLift(f).attribute, f.x.clone().requires_grad_()).sum(-1)[0].detach()
        found = _one(classifier, "deeplift", variant).scores
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_deepshap_with_equal_baselines_is_deeplift_unless_dropout_is_on():
    classifier = tiny.classifier("distilbert")
    f = Plain(classifier, site="entry")
    lift, shap = (_one(classifier, m).scores for m in ("deeplift", "deepshap"))
    np.testing.assert_allclose(shap, lift, atol=1e-6)
    zeros = torch.zeros(3, *f.x.shape[1:])
    captum = _quiet(DeepLiftShap(f).attribute, f.x.clone().requires_grad_(), zeros).sum(-1)[0]
    np.testing.assert_allclose(shap, captum.detach(), atol=1e-6)
    lift, shap = (
        _one(classifier, m, "agreement_dropout", label=1).scores for m in ("deeplift", "deepshap")
    )
    assert abs(shap - lift).max() > 0.01 * abs(lift).max()


def test_dropout_is_the_same_for_a_text_in_any_batch_and_leaves_the_global_generator_alone():
    classifier = tiny.classifier("distilbert")
    before = torch.random.get_rng_state()
    alone = _one(classifier, "deeplift", "agreement_dropout", label=1)
    _, beside = attribute(
        classifier, ["dull", TEXT], "deeplift", variant="agreement_dropout", labels=[0, 1],
        level="token",
    )  # fmt: skip
    assert torch.equal(before, torch.random.get_rng_state())
    np.testing.assert_array_equal(alone.scores, beside.scores)
    assert not classifier.model.training


def test_gradshap_converges_to_integrated_gradients_as_captums_does():
    classifier = tiny.classifier("bert")
    f = Plain(classifier)
    many = _one(classifier, "gradshap", options={"samples": 4000}).scores
    integral = _one(classifier, "integrated_gradients").scores
    points = torch.rand(500, 1, 1, generator=torch.Generator().manual_seed(0))
    spread = (f.gradient(points * f.x) * f.x).sum(-1).std(0).numpy()
    assert (abs(many - integral) < 4.5 * spread / 4000**0.5).all()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        captum = GradientShap(f).attribute(f.x, torch.zeros(1, *f.x.shape[1:]), n_samples=2000)
    assert (abs(many - captum.detach()[0].sum(-1).numpy()) < 5.5 * spread / 2000**0.5).all()


def test_gradshap_draws_five_points_of_each_texts_own():
    classifier = toy.Toy(toy.SumOverTokens(_Square()))
    first, second = _toys(classifier, "gradshap", seed=0), _toys(classifier, "gradshap", seed=1)
    # f = Σ x²: the score is 2 ā x² for the mean ā of the points
    means = []
    for found, text in zip([*first, *second], [*TOYS, *TOYS], strict=True):
        x = classifier.model.table.weight[text.input_ids].detach()
        ratio = found.scores / (2 * x.square().sum(-1).numpy())
        np.testing.assert_allclose(ratio, ratio[0], rtol=1e-6)
        means.append(ratio[0])
    assert len({round(m, 6) for m in means}) == 4 and all(0.1 < m < 0.9 for m in means)


@pytest.mark.parametrize("method", ["integrated_gradients", "gradshap", "deeplift"])
def test_passes_hold_fewer_texts_when_memory_is_short_and_scores_stay(method, monkeypatch):
    classifier = tiny.classifier("bert")
    texts = [TEXT, "dull", "a great film , truly moving", "not a bad film"]
    sizes, forward = [], classifier.forward
    monkeypatch.setattr(
        classifier, "forward", lambda i, **k: sizes.append(len(i["input_ids"])) or forward(i, **k)
    )
    plenty, most = attribute(classifier, texts, method, level="token", max_memory="1GB"), max(sizes)
    sizes.clear()
    short = attribute(classifier, texts, method, level="token", max_memory="100kB")
    assert max(sizes) <= most / 2
    for a, b in zip(plenty, short, strict=True):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-5)


def test_gradients_are_taken_for_the_embeddings_alone_and_the_model_is_left_as_it_was():
    classifier = tiny.classifier("bert").train()
    classifier.model.classifier.bias.requires_grad_(False)
    wanted = [p.requires_grad for p in classifier.model.parameters()]
    classifier.forward(tiny.inputs(classifier, [TEXT]))  # the library hooks what it returns, once
    hooks = _hooks(classifier.model)
    for method in ("input_x_gradient", "integrated_gradients", "deeplift"):
        _one(classifier, method)
    assert classifier.model.training
    assert wanted == [p.requires_grad for p in classifier.model.parameters()]
    assert all(p.grad is None for p in classifier.model.parameters())
    assert hooks == _hooks(classifier.model)


def _hooks(model: nn.Module) -> list[int]:
    return [
        len(m._forward_hooks) + len(m._forward_pre_hooks) + len(m._backward_hooks)
        for m in model.modules()
    ]


@cache
def _minilm():
    return load_classifier("minilm", seed=0)


def test_minilm_shows_what_deeplift_means_with_and_without_rules_for_every_step():
    classifier = _minilm()
    text = ["a gorgeous , witty , seductive movie ."]
    captum, hooked, ig = (
        attribute(classifier, text, m, variant=v, level="token")[0]
        for m, v in (("deeplift", "captum"), ("deeplift", "hooked"), ("integrated_gradients", None))
    )
    change = ig.scores.sum() - ig.completeness_gap
    assert abs(ig.completeness_gap) < 0.01 * abs(change)
    assert abs(hooked.completeness_gap) < 1e-4 * abs(change)
    assert abs(captum.completeness_gap) > 0.5 * abs(change)


class _Square(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([x.square().sum(-1)] * 2, dim=-1)


class _Class(nn.Module):
    """The second logit of a network."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)[:, 1]


def _perceptron(activation: type[nn.Module]) -> nn.Module:
    return toy.SumOverTokens(
        nn.Sequential(
            nn.Linear(toy.DIM, 9), activation(), nn.Linear(9, 5), activation(), nn.Linear(5, 2)
        )
    )


def _toys(classifier, method, **options):
    return attribute_encoded(classifier, TOYS, method, level="token", **options)


def _repeated(inputs: dict[str, Tensor], times: int) -> dict[str, Tensor]:
    return {name: tensor.expand(times, -1) for name, tensor in inputs.items()}


def _quiet(call, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)
