"""What does the answer to masked copies of a text say?"""

from __future__ import annotations

from math import comb

import numpy as np
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from erlib.attributions.explained import explained
from erlib.attributions.memory import memory_budget, texts_that_fit
from erlib.attributions.registry import Request, Scores, register

KERNEL_WIDTH = 25.0  # lime_text's, for cosine distances times 100
MOST_ROWS = 256  # masked copies in one pass; more are not faster


@register(
    "lime",
    signed=True,
    scope="global",
    differentiable=False,
    needs=("predictions",),
    version=1,
    spends="samples",
)
def lime(request: Request) -> Scores:
    """Ridge regression on masked copies of the text, a word being a feature.

    The first line says what; here is how. As lime_text samples: one copy is whole, the others lose
    a number of words drawn from 1 … n, and count by an exponential kernel on 100 × cosine distance
    to the whole text. A removed word becomes [PAD], piece by piece, with mask and positions kept;
    specials stay. Every place is a feature of its own, even if a word occurs twice. Texts with
    fewer masks than samples are not sampled: each mask counts as often as it would be drawn on
    average. Token scores share a word's coefficient equally between its pieces; specials get 0.
    """
    scores = torch.zeros(request.mask.shape)
    for row, seed in enumerate(request.seeds):
        feature = _features(request.batch.segment[row], request.batch.word_ids[row])
        n = int(feature.max()) + 1
        masks, counts = drawn_masks(n, request.options.samples, np.random.default_rng(seed))
        answers = _answers(request, row, feature, masks)
        coefficients = torch.from_numpy(ridge(masks, answers, counts)).float()
        pieces = torch.bincount(feature[feature >= 0], minlength=n)
        shares = coefficients / pieces
        scores[row] = torch.where(feature >= 0, shares[feature.clamp(min=0)], 0.0)
    return Scores(scores)


def _features(segment: Tensor, word_ids: Tensor) -> Tensor:
    """[token]: which word of the text, counted through its segments; -1 for specials and pads."""
    segment, word_ids = segment.cpu(), word_ids.cpu()
    places = torch.where(segment >= 0, segment * (int(word_ids.max()) + 1) + word_ids, -1)
    words, feature = places.unique(return_inverse=True)
    return feature - int(words[0] < 0)


def drawn_masks(
    n: int, samples: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct masks [mask, word] of kept words, and how often each was drawn.

    All 2^n masks with their expected counts, if there are fewer of them than samples.
    """
    if 2**n <= samples:
        masks = (np.arange(2**n)[:, None] >> np.arange(n)) & 1 == 1
        removed = n - masks.sum(axis=1)
        draws = np.array([0.0] + [(samples - 1) / (n * comb(n, k)) for k in range(1, n + 1)])
        return masks, draws[removed] + (removed == 0)
    masks = np.ones((samples, n), dtype=bool)
    for mask, k in zip(masks[1:], generator.integers(1, n + 1, samples - 1), strict=True):
        mask[generator.choice(n, k, replace=False)] = False
    distinct, counts = np.unique(masks, axis=0, return_counts=True)
    return distinct, counts.astype(float)


def ridge(masks: np.ndarray, answers: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """[word] coefficients of lime_text's weighted ridge regression (α = 1, with intercept)."""
    kept = masks.mean(axis=1)
    distance = 100 * (1 - np.sqrt(kept))  # cosine to the whole text is √(share of words kept)
    kernel = np.sqrt(np.exp(-(distance**2) / KERNEL_WIDTH**2))
    model = Ridge(alpha=1.0).fit(masks.astype(float), answers, sample_weight=kernel * counts)
    return model.coef_


@torch.no_grad()
def _answers(request: Request, row: int, feature: Tensor, masks: np.ndarray) -> np.ndarray:
    """[mask] f of one text's masked copies, each distinct one asked once."""
    classifier = request.classifier
    n = int(request.mask[row].sum())
    inputs = {name: tensor[row, :n] for name, tensor in request.batch.inputs.items()}
    word = feature[:n]
    kept = torch.from_numpy(masks)[:, word.clamp(min=0)] | (word < 0)  # [mask, token]
    budget = memory_budget(request.max_memory, classifier.device)
    rows = min(MOST_ROWS, texts_that_fit(classifier, n, budget, graph=False))
    pad = int(classifier.tokenizer.pad_token_id)
    answers: list[Tensor] = []
    chunks = kept.to(classifier.device).split(rows)
    for chunk in chunks:
        request.progress(len(answers), len(chunks))
        copies = {name: tensor.expand(len(chunk), -1) for name, tensor in inputs.items()}
        copies["input_ids"] = copies["input_ids"].masked_fill(~chunk, pad)
        target = request.target[row].expand(len(chunk), *request.target[row].shape)
        logits = classifier.forward(copies, maps=False).logits
        answers.append(explained(logits, target, copies["attention_mask"], request.options.of))
    return torch.cat(answers).double().cpu().numpy()
