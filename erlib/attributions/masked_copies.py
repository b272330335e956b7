"""What does the model answer when words of a text are masked?

A removed word becomes [PAD], piece by piece, with mask and positions kept; specials stay. Every
place is a word of its own, even if a word occurs twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from erlib.attributions.explained import explained
from erlib.attributions.memory import memory_budget, texts_that_fit
from erlib.attributions.registry import Request

MOST_ROWS = 256  # masked copies in one pass; more are not faster

Ask = Callable[[np.ndarray], np.ndarray]  # masks [mask, word] of kept words → f [mask]
Explain = Callable[[int, int, Ask], np.ndarray]  # words, the text's seed, f → scores [word]


def by_word(request: Request, explain: Explain) -> Tensor:
    """[batch, token]: what `explain` finds for each text's words, shared equally between a word's
    pieces; specials get 0."""
    scores = torch.zeros(request.mask.shape)
    for row, seed in enumerate(request.seeds):
        feature = _features(request.batch.segment[row], request.batch.word_ids[row])
        n = int(feature.max()) + 1
        found = explain(n, seed, partial(_answers, request, row, feature))
        pieces = torch.bincount(feature[feature >= 0], minlength=n)
        shares = torch.from_numpy(found).float() / pieces
        scores[row] = torch.where(feature >= 0, shares[feature.clamp(min=0)], 0.0)
    return scores


def _features(segment: Tensor, word_ids: Tensor) -> Tensor:
    """[token]: which word of the text, counted through its segments; -1 for specials and pads."""
    segment, word_ids = segment.cpu(), word_ids.cpu()
    places = torch.where(segment >= 0, segment * (int(word_ids.max()) + 1) + word_ids, -1)
    words, feature = places.unique(return_inverse=True)
    return feature - int(words[0] < 0)


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
