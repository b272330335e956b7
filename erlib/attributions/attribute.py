"""How important was each token? One verb for all methods."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from erlib import checks
from erlib.attributions.explained import Target, check_target, chosen_target, class_of
from erlib.attributions.memory import (
    memory_budget,
    parse_bytes,
    texts_that_fit,
    texts_worth_a_pass,
)
from erlib.attributions.registry import METHODS, Method, Progress, Request, Scores, unwatched
from erlib.attributions.registry import method as registered
from erlib.attributions.spending import check_spending
from erlib.attributions.variants import Options, options_of
from erlib.data.encoding import Encoded, batch_indices
from erlib.errors import unknown
from erlib.models.classifier import Classifier

LEVELS = ("word", "token")
FOR, AGAINST = "0,114,178", "213,94,0"  # the reports' colours: blue for, orange against
MOST_TEXTS = 32  # in a batch, if the caller does not say; more are not faster


@dataclass
class Attribution:
    """The scores of one text. At level "word" `tokens` are its words and no special is left.

    `target` is the explained class, or (start, end). `completeness_gap` is Σ scores − (f(x) −
    f(baseline)) before any reduction other than the signed sum, for methods that promise zero.
    `cut`: how many words at the end of the text the model did not see.
    """

    tokens: list[str]
    word_ids: list[int]  # index into the words of the segment, -1 for specials
    segment: list[int]
    special: list[bool]
    scores: np.ndarray  # [token]
    layers: np.ndarray | None  # [layer, token]
    target: int | tuple[int, int]
    method: str
    variant: str | None
    completeness_gap: float | None
    cut: int = 0

    def _repr_html_(self) -> str:
        """Each token on a ground as strong as its score: blue for the target, orange against."""
        shown = np.where(np.isfinite(self.scores), self.scores, 0.0)
        strength = shown / (np.abs(shown).max(initial=0.0) or 1.0)
        grounds = [f"rgba({FOR if s > 0 else AGAINST},{abs(s):.2f})" for s in strength]
        spans = [
            f'<span title="{score:.4g}" style="background:{ground};padding:0 .15em;'
            f'border-radius:.2em">{escape(token)}</span>'
            for token, score, ground in zip(self.tokens, self.scores, grounds, strict=True)
        ]
        name = self.method if self.variant is None else f"{self.method} ({self.variant})"
        cut = f" · {self.cut:,} more words were cut" if self.cut else ""
        title = f"<small>{escape(name)} · target {self.target}{cut}</small>"
        return f"<div>{title}<br>{' '.join(spans)}</div>"


def attribute(
    classifier: Classifier,
    inputs: Any,
    method: str,
    *,
    variant: str | None = None,
    target: Target = "predicted",
    labels: Sequence[int] | None = None,
    level: str = "word",
    per_layer: bool = False,
    batch_size: int | None = None,
    max_memory: str | None = None,
    seed: int = 0,
    options: Mapping[str, int] | None = None,
) -> list[Attribution]:
    """Scores for every input, in the order given.

    inputs: strings, word lists, (a, b) pairs, {"question", "context"} mappings, or a `Dataset` from
        `load_data`, which brings its labels.
    variant: a paper's options under its name; the table below lists each method's. Without one: the
        target's logit, signed sum over dimensions, zero baseline, integrated gradients with 50
        points, nothing normalised; lime explains the probability, and saliency takes the ℓ2 norm,
        since its signed sum is zero behind a layer norm. input_x_gradient, deeplift and deepshap
        explain at what enters the first layer (`word_embedding`: at the word embedding, where
        they see positions and not words; docs/site.md), integrated_gradients and gradshap at the
        word embedding (`entry`: at what enters the first layer), as does deeplift's `hooked`.
    target: "predicted", or "gold", which needs labels, or a class: its index or its name, as the
        data set or the model's configuration has it. A variant whose paper explains the gold
        class does so whatever is asked. A model with one logit z explains z for class 1 and −z for
        class 0; a span model z_start + z_end.
    level: "word" sums a word's pieces and drops specials; "token" keeps every piece and special.
    per_layer: also the scores after every layer, for the methods that have them.
    batch_size, max_memory: texts at a time, and a size such as "2GB" for what a method may use
        beside the model; by default as many as fit in a share of the free memory. Neither changes
        a score.
    seed: of the stochastic methods; each text draws from its own generator, so that its scores do
        not depend on the texts beside it.
    options: how much is spent on a text, where that is not what the variant says: {"steps": 20} of
        integrated_gradients (without a variant 50), {"samples": 50} of lime (500) or gradshap (5).
    """
    if isinstance(classifier, str):
        raise ValueError(f"attribute takes a classifier: erlib.load_classifier('{classifier}')")
    encoded = classifier.encode(inputs, labels=labels)
    if cut := [text for text in encoded if text.truncated]:
        longest = max(cut, key=lambda text: text.words_cut)
        warnings.warn(
            f"{len(cut)} of {len(encoded)} texts were cut to the {classifier.max_length} tokens "
            f"that the model reads: of '{longest.id}', the last {longest.words_cut:,} of "
            f"{sum(map(len, longest.words)):,} words have no score",
            stacklevel=2,
        )
    target = class_of(target, classifier, inputs)
    return attribute_encoded(
        classifier,
        encoded,
        method,
        variant=variant,
        target=target,
        level=level,
        per_layer=per_layer,
        batch_size=batch_size,
        max_memory=max_memory,
        seed=seed,
        options=options,
    )


def attribute_encoded(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    method: str,
    *,
    variant: str | None = None,
    target: Target = "predicted",
    level: str = "word",
    per_layer: bool = False,
    batch_size: int | None = None,
    max_memory: str | None = None,
    seed: int = 0,
    progress: Progress = unwatched,
    options: Mapping[str, int] | None = None,
) -> list[Attribution]:
    """`attribute` for texts that are encoded already.

    progress: called by lime, alti and decompx between the parts of each text; it may raise to stop.
    """
    for name, value, wanted in (
        ("method", method, str),
        ("variant", variant, str | None),
        ("level", level, str),
        ("per_layer", per_layer, bool),
        ("max_memory", max_memory, str | None),
        ("options", options, Mapping | None),
    ):
        checks.of_type(name, value, wanted)
    chosen = registered(method)
    sizes: dict[str, Any] = dict(options or {})
    check_spending(sizes, method)
    settled = replace(options_of(method, variant, classifier.family), **sizes)
    if level not in LEVELS:
        raise unknown("level", level, LEVELS)
    target = class_of(target, classifier)
    checks.whole("seed", seed)
    if batch_size is not None:
        checks.whole("batch_size", batch_size, 1)
    if per_layer and not chosen.per_layer:
        layered = ", ".join(sorted(name for name, m in METHODS.items() if m.per_layer))
        raise ValueError(f"'{method}' has no per-layer scores; methods that have: {layered}")
    if settled.target == "gold":
        target = "gold"
    budget = None if max_memory is None else parse_bytes(max_memory)
    results: dict[int, Attribution] = {}
    with explaining(classifier, dropout=settled.dropout):
        batches = _batches(classifier, encoded, chosen, settled, batch_size, budget)
        if settled.site == "straight":
            batches = _of_equal_length(batches, encoded)
        for indices in batches:
            texts = [encoded[i] for i in indices]
            seeds = [text_seed(seed, text) for text in texts]
            request = _request(classifier, texts, chosen, target, per_layer, seeds, budget, settled)
            request.progress = progress
            with _drawing(seeds[0], settled.dropout):
                scores = chosen.function(request)
            for row, (i, text) in enumerate(zip(indices, texts, strict=True)):
                one = _one_text(request, scores, row, text)
                one.method, one.variant = method, variant
                results[i] = by_word(one, text) if level == "word" else one
    return [results[i] for i in range(len(encoded))]


def _request(
    classifier: Classifier,
    texts: list[Encoded],
    chosen: Method,
    target: Target,
    per_layer: bool,
    seeds: list[int],
    budget: int | None,
    options: Options,
) -> Request:
    batch = classifier.batch(texts)
    gradients, maps = "gradients" in chosen.needs, chosen.looks_inside
    output = None
    if target == "predicted":
        with torch.set_grad_enabled(gradients):
            output = classifier.forward(batch.inputs, maps=maps)
    explained = chosen_target(target, batch, None if output is None else output.logits)
    check_target(explained, classifier)
    return Request(
        classifier, batch, explained, per_layer, seeds, budget, options, gradients, maps, output
    )


def text_seed(seed: int, text: Encoded) -> int:
    """A seed of the text's own: of what it says, not of its place in the list."""
    content = f"{seed}:{','.join(map(str, text.input_ids))}"
    return int.from_bytes(sha256(content.encode()).digest()[:7], "big")


def _batches(
    classifier: Classifier,
    encoded: Sequence[Encoded],
    chosen: Method,
    options: Options,
    batch_size: int | None,
    budget: int | None,
) -> Iterator[list[int]]:
    """Texts of similar length together, as many as asked for or as fit."""
    lengths = [len(e.input_ids) for e in encoded]
    if options.dropout:  # dropout draws for a whole batch; alone, a text meets its own draws
        batch_size = 1
    elif batch_size is None and "hidden_states" in chosen.needs:
        batch_size = 1  # ALTI and DecompX take texts one at a time; a batch's maps only cost memory
    if batch_size is not None:
        yield from batch_indices(lengths, batch_size)
        return
    available = memory_budget(budget, classifier.device)
    graph = bool({"gradients", "embeddings"} & set(chosen.needs))
    copies = getattr(options, chosen.spends) if graph and chosen.spends else 1
    batch: list[int] = []
    for (i,) in batch_indices(lengths, 1):  # from the shortest to the longest
        fit = texts_that_fit(classifier, lengths[i], available, graph=graph)
        if graph:
            fit = min(fit, texts_worth_a_pass(lengths[i] * copies, classifier.device))
        if batch and len(batch) >= min(MOST_TEXTS, fit):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _of_equal_length(
    batches: Iterator[list[int]], encoded: Sequence[Encoded]
) -> Iterator[list[int]]:
    """Batches that are sorted by length, split so that no text of them is padded."""
    for batch in batches:
        for _, equal in groupby(batch, key=lambda i: len(encoded[i].input_ids)):
            yield list(equal)


@contextmanager
def explaining(classifier: Classifier, *, dropout: bool) -> Iterator[None]:
    """Evaluation mode, and no gradient for any parameter beyond the embedding tables.

    Gradients then stop at the embeddings, and passes keep only what they need for those.
    """
    model = classifier.model
    was_training = model.training
    tables = {id(p) for m in model.modules() if isinstance(m, nn.Embedding) for p in m.parameters()}
    frozen = [p for p in model.parameters() if p.requires_grad and id(p) not in tables]
    opened = [p for p in model.parameters() if not p.requires_grad and id(p) in tables]
    # cuDNN's LSTM has a backward pass in training mode only
    cudnn = torch.backends.cudnn.enabled and classifier.family != "jwa"
    try:
        classifier.train(dropout)
        _require_gradients(frozen, False)
        _require_gradients(opened, True)
        with torch.backends.cudnn.flags(enabled=cudnn):
            yield
    finally:
        _require_gradients(frozen, True)
        _require_gradients(opened, False)
        classifier.train(was_training)


def _require_gradients(parameters: Sequence[nn.Parameter], wanted: bool) -> None:
    for parameter in parameters:
        parameter.requires_grad_(wanted)


@contextmanager
def _drawing(seed: int, dropout: bool) -> Iterator[None]:
    """While dropout is on, it draws from this seed and leaves the global generator as it was."""
    if not dropout:
        yield
        return
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _one_text(request: Request, scores: Scores, row: int, text: Encoded) -> Attribution:
    """A row of a batch without its pads, with the options that apply to every method's scores."""
    n = len(text.input_ids)
    special = torch.tensor(text.special)
    values = _finished(scores.tokens[row, :n], special, request.options)
    layers = None
    if scores.layers is not None:
        layers = _finished(scores.layers[row, :, :n], special, request.options)
    gap = scores.completeness_gap
    target = request.target[row].tolist()
    return Attribution(
        tokens=list(text.tokens),
        word_ids=list(text.word_ids),
        segment=list(text.segment),
        special=list(text.special),
        scores=values.numpy(),
        layers=None if layers is None else layers.numpy(),
        target=tuple(target) if isinstance(target, list) else target,
        method="",
        variant=None,
        completeness_gap=None if gap is None else float(gap[row]),
        cut=text.words_cut,
    )


def _finished(scores: Tensor, special: Tensor, options: Options) -> Tensor:
    """normalise, absolute, specials: in the order of `Options`. scores [..., token]."""
    scores = scores.detach().cpu()
    counted = scores.masked_fill(special, 0.0) if options.specials == "last" else scores
    if options.normalise == "sum":
        scores = scores / counted.sum(dim=-1, keepdim=True)
    elif options.normalise == "l2":
        scores = scores / counted.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    if options.absolute:
        scores = scores.abs()
    return scores.masked_fill(special, -torch.inf) if options.specials == "last" else scores


def by_word(one: Attribution, text: Encoded) -> Attribution:
    """Pieces summed to words, specials dropped; words cut off with the text's end are absent."""
    places: dict[tuple[int, int], list[int]] = {}
    for token, (segment, word) in enumerate(zip(text.segment, text.word_ids, strict=True)):
        if segment >= 0:
            places.setdefault((segment, word), []).append(token)
    pieces = list(places.values())
    return Attribution(
        tokens=[text.words[segment][word] for segment, word in places],
        word_ids=[word for _, word in places],
        segment=[segment for segment, _ in places],
        special=[False] * len(places),
        scores=np.array([one.scores[p].sum() for p in pieces]),
        layers=(
            None
            if one.layers is None
            else np.stack([one.layers[:, p].sum(axis=1) for p in pieces], axis=1)
        ),
        target=one.target,
        method=one.method,
        variant=one.variant,
        completeness_gap=one.completeness_gap,
        cut=one.cut,
    )
