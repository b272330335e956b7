"""What do gradients with respect to the embeddings say?

f is the explained number, x the tensor at the site (`Options.site`: word embeddings or the
embedding block's output), x' a baseline. Each method gives a vector per token, [batch, token, dim],
which `options.reduce` turns into the token's score. Gradients are taken for x alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from erlib.attributions.explained import explained
from erlib.attributions.memory import memory_budget, texts_that_fit, texts_worth_a_pass
from erlib.attributions.registry import Request, Scores, register
from erlib.attributions.rescale import ModuleRule, RescaleRule
from erlib.models import Output


@register(
    "saliency",
    signed=False,
    scope="global",
    differentiable=True,
    needs=("gradients",),
    version=1,
)
def saliency(request: Request) -> Scores:
    """Length of the gradient at the embedding: ‖∂f/∂x_t‖₂.

    Not the signed sum over dimensions that other methods take: a layer norm does not see a constant
    added to all dimensions, so that behind one (BERT's relatives, GPT-2) this sum is always zero.
    """
    return Scores(reduced(_gradient(request)[1], request.options.reduce))


@register(
    "input_x_gradient",
    signed=True,
    scope="global",
    differentiable=True,
    needs=("gradients",),
    version=2,
)
def input_x_gradient(request: Request) -> Scores:
    """Embedding times gradient: x_t ⊙ ∂f/∂x_t, at the embedding block's output.

    Variant `word_embedding` multiplies at the word embedding, and there the signed product is blind
    to words in every model whose block ends in a layer norm: LayerNorm(s) with s = word + position
    + type does not change with the scale of s, so that the gradient g is orthogonal to s (but for
    the norm's eps), and g·word = −g·(position + type). DeepLIFT with a zero baseline has the same
    fault there as far as no rule intervenes. docs/site.md shows what it costs.
    """
    x, gradient = _gradient(request)
    return Scores(reduced(x * gradient, request.options.reduce))


@register(
    "integrated_gradients",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("embeddings",),
    version=1,
    spends="steps",
)
def integrated_gradients(request: Request) -> Scores:
    """Gradients along the line from a baseline: (x − x') ⊙ ∫ ∂f(x' + a(x − x'))/∂x da.

    At the word embedding: its zero baseline takes the word away and leaves its position.
    """
    problem, options = _problem(request), request.options
    if options.quadrature == "gausslegendre":
        nodes, sizes = np.polynomial.legendre.leggauss(options.steps)
        points, weights = torch.from_numpy((1 + nodes) / 2), torch.from_numpy(sizes / 2)
    else:  # SaLoss: the mean of `steps` left points and the end point
        points = torch.linspace(0, 1, options.steps + 1)
        weights = torch.full_like(points, 1 / len(points))
    every = points.expand(len(problem.x), -1)
    return _scores(request, problem, mean_along_path(problem, every, weights))


@register(
    "gradshap",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("embeddings",),
    version=1,
    spends="samples",
)
def gradshap(request: Request) -> Scores:
    """Integrated gradients at a few random points of the line: expected gradients."""
    problem = _problem(request)
    # Captum draws for a whole batch from the global generator; here each text draws its own.
    generators = [torch.Generator().manual_seed(seed) for seed in request.seeds]
    samples = request.options.samples
    draws = torch.stack([torch.rand(samples, generator=g) for g in generators])
    equal = torch.full((samples,), 1 / samples)
    return _scores(request, problem, mean_along_path(problem, draws, equal))


@register(
    "deeplift",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("embeddings",),
    version=2,
)
def deeplift(request: Request) -> Scores:
    """Differences to a baseline, propagated by the rescale rule (captum) or all rules (hooked).

    Without a variant, and in the papers' variants, `captum_deeplift`; `hooked_deeplift` is the one
    whose scores add up. The site is the embedding block's output, as of `input_x_gradient`, but for
    `hooked`: its multipliers are not gradients, and from zero at the word embedding it finds the
    words that matter, from zero at the block's output no better than chance.
    """
    problem = _problem(request)
    return _scores(request, problem, *_deeplift(request, problem, copies=1))


@register(
    "deepshap",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("embeddings",),
    version=2,
)
def deepshap(request: Request) -> Scores:
    """DeepLIFT, mean over several baselines: with equal ones, as in the paper, DeepLIFT itself."""
    problem = _problem(request)
    return _scores(request, problem, *_deeplift(request, problem, copies=request.options.baselines))


class Explained(nn.Module):
    """f as a function of the tensor at the site: x [batch, token, dim] → [batch].

    A module, because Captum's DeepLift looks for activation modules below the one it is given.
    """

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.model = request.classifier.model
        self.request = request

    def forward(self, x: Tensor, target: Tensor, *inputs: Tensor) -> Tensor:
        named = dict(zip(self.request.batch.inputs, inputs, strict=True))
        options = self.request.options
        place = "entry" if options.site == "straight" else options.site
        hooked = options.rule == "hooked"  # whose rules are for the steps of attention
        at: dict[str, Any] = {place: x}
        output = self.request.classifier.forward(named, **at, maps=hooked)
        return explained(output.logits, target, named["attention_mask"], options.of)


@dataclass
class Problem:
    """f, where it is explained, against what, and how many texts a pass may hold."""

    f: Explained
    x: Tensor
    baseline: Tensor
    arguments: tuple[Tensor, ...]  # of f, after x
    rows: int
    at_x: Output | None  # passes that were made already and tell f(x), f(baseline), if any were
    at_baseline: Output | None


def _problem(request: Request) -> Problem:
    classifier, inputs = request.classifier, request.batch.inputs
    straight = request.options.site == "straight"
    site, at_baseline = "embeddings" if straight else request.options.site, None
    if straight:
        _check_straight(request)
    with torch.no_grad():
        x = getattr(request.output, site).detach()
        baseline = torch.zeros_like(x)
        if request.options.baseline == "pad":
            pads = torch.full_like(inputs["input_ids"], int(classifier.tokenizer.pad_token_id))
            at_baseline = classifier.forward({**inputs, "input_ids": pads}, maps=False)
            baseline = getattr(at_baseline, site)
    budget, length = memory_budget(request.max_memory, classifier.device), x.shape[1]
    fit = texts_that_fit(classifier, length, budget, graph=True)
    worth = texts_worth_a_pass(length, classifier.device)
    return Problem(
        f=Explained(request),
        x=x,
        baseline=baseline,
        arguments=(request.target, *inputs.values()),
        rows=fit if request.options.dropout else min(fit, worth),
        at_x=None if straight else request.output,  # the full model is another function
        at_baseline=None if straight else at_baseline,
    )


def _check_straight(request: Request) -> None:
    """Word embeddings can go straight into the first layer if they fit and no text has pads."""
    words, wanted = request.output.embeddings.shape[-1], request.output.entry.shape[-1]
    if words != wanted:
        raise ValueError(
            f"word embeddings of size {words} cannot go straight into the layers of "
            f"{request.classifier.name}, which are {wanted} wide: a projection stands between; "
            "explain at the embedding block's output"
        )
    if not request.mask.all():
        raise ValueError("without a mask, texts of different lengths cannot share a batch")


def _gradient(request: Request) -> tuple[Tensor, Tensor]:
    """x and ∂f/∂x of the plain pass."""
    output = request.output
    x = getattr(output, request.options.site)
    f = explained(output.logits, request.target, request.mask, request.options.of)
    return x, torch.autograd.grad(f.sum(), x)[0]


def mean_along_path(problem: Problem, points: Tensor, weights: Tensor) -> Tensor:
    """(x − x') ⊙ Σ_k w_k ∂f(x' + a_k (x − x'))/∂x, for points a [batch, k], weights w [k]."""
    x, baseline = problem.x, problem.baseline
    texts = torch.arange(len(x)).repeat_interleave(points.shape[1])
    mean = torch.zeros_like(x)
    places, shares = (
        of_each.flatten().to(x)[:, None, None].split(problem.rows)
        for of_each in (points, weights.expand_as(points))
    )
    for rows, a, share in zip(texts.split(problem.rows), places, shares, strict=True):
        between = (baseline[rows] + a * (x[rows] - baseline[rows])).requires_grad_()
        f = problem.f(between, *(argument[rows] for argument in problem.arguments))
        (gradient,) = torch.autograd.grad(f.sum(), between)
        mean.index_add_(0, rows.to(x.device), share * gradient)
    return (x - baseline) * mean


def _deeplift(request: Request, problem: Problem, copies: int) -> tuple[Tensor, Tensor | None]:
    """DeepLIFT of each text against `copies` of its baseline, averaged; and f at the baseline.

    Without dropout, which draws anew for each, the copies are all the same.
    """
    hooked = request.options.rule == "hooked"
    if hooked and request.classifier.family == "jwa":
        raise ValueError(
            "variant 'hooked' needs a rule for every step, and the gates of jwa's LSTM are inside "
            "one fused operation; use 'captum'"
        )
    drawn = request.options.dropout
    copies = copies if drawn else 1
    mean, at_baseline = torch.zeros_like(problem.x), []
    texts = torch.arange(len(problem.x)).repeat_interleave(copies)
    together = hooked or drawn  # do input and baseline run as one batch?
    for rows in texts.split(max(1, problem.rows // 2) if together else problem.rows):
        x, baseline = problem.x[rows], problem.baseline[rows]
        arguments = tuple(argument[rows] for argument in problem.arguments)
        if hooked:
            found, value = hooked_deeplift(problem.f, x, baseline, arguments)
        else:
            found, value = captum_deeplift(problem.f, x, baseline, arguments, together=drawn)
        mean.index_add_(0, rows.to(mean.device), found / copies)
        at_baseline.append(value)
    return mean, None if drawn else torch.cat(at_baseline)


def captum_deeplift(
    f: nn.Module,
    x: Tensor,
    baseline: Tensor,
    arguments: tuple[Tensor, ...] = (),
    *,
    together: bool = False,
) -> tuple[Tensor, Tensor]:
    """Captum's DeepLIFT: the rescale rule at tanh, ReLU and the like, gradients elsewhere.

    GELU, softmax, layer norm, products and LSTM are elsewhere, so that on a Transformer this is
    nearly (x − x') ⊙ ∂f/∂x, and the completeness gap is large. It is what the papers ran. Only the
    input needs a graph. `together`: as one batch with the baseline, for which dropout draws once.
    Returns the attributions, and f at the baseline.
    """
    x = x.detach().requires_grad_()
    rule = ModuleRule(f, halves=together)
    if together:
        with rule:
            both = f(torch.cat([x, baseline]), *(torch.cat([a, a]) for a in arguments))
        value, at_baseline = both.chunk(2)
    else:
        at_baseline = rule.at_reference(lambda: f(baseline, *arguments))
        with rule:
            value = f(x, *arguments)
    (multiplier,) = torch.autograd.grad(value.sum(), x)
    return (x.detach() - baseline) * multiplier, at_baseline.detach()


def hooked_deeplift(
    f: nn.Module, x: Tensor, baseline: Tensor, arguments: tuple[Tensor, ...] = ()
) -> tuple[Tensor, Tensor]:
    """DeepLIFT with a rule for every step (`erlib.attributions.rescale`): Σ = f(x) − f(x').

    And f(x').
    """
    x = x.detach().requires_grad_()
    with RescaleRule():
        both = f(torch.cat([x, baseline]), *(torch.cat([a, a]) for a in arguments))
    (multiplier,) = torch.autograd.grad(both[: len(x)].sum(), x)
    return (x.detach() - baseline) * multiplier, both[len(x) :].detach()


def reduced(vectors: Tensor, how: str) -> Tensor:
    """[batch, token, dim] → [batch, token]."""
    match how:
        case "sum":
            return vectors.sum(dim=-1)
        case "abs_sum":
            return vectors.sum(dim=-1).abs()
        case "abs_mean":
            return vectors.mean(dim=-1).abs()
        case "mean_abs":
            return vectors.abs().mean(dim=-1)
        case "l2":
            return vectors.norm(dim=-1)
    raise ValueError(f"unknown reduction '{how}'")


def _scores(
    request: Request, problem: Problem, attributions: Tensor, at_baseline: Tensor | None = None
) -> Scores:
    """The gap is to f(x) − f(x'), of the very function that was explained."""

    def f(point: Tensor, known: Output | None) -> Tensor:
        if known is None:
            return problem.f(point, *problem.arguments)
        return explained(known.logits, request.target, request.mask, request.options.of)

    with torch.no_grad():
        change = f(problem.x, problem.at_x) - (
            f(problem.baseline, problem.at_baseline) if at_baseline is None else at_baseline
        )
    total = (attributions.sum(dim=-1) * request.mask).sum(dim=-1)
    return Scores(reduced(attributions, request.options.reduce), completeness_gap=total - change)
