"""How do other libraries explain the same texts, as fast as they can?

What `python -m erlib bench --against captum` (or lime) times in turn with ours: the library's own
model with fused attention, a pass that finds the predicted class, and the library's own method at
the site that ours is taken at. Texts have equal lengths, so that nobody pads. Captum's integrated
gradients get the fastest of a few batch sizes; `lime`, which has to be installed, explains words
and gets its answers from batches.
"""

from __future__ import annotations

import copy
import importlib
import time
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from erlib.attributions.variants import DEFAULTS, Options
from erlib.errors import unknown
from erlib.models.classifier import Classifier

Scores = Callable[[Classifier, dict[str, Tensor]], Tensor]
POINTS_AT_ONCE = (5, 10, 25, 50)  # of which Captum's integrated gradients take the fastest


class Plain(nn.Module):
    """The library's BERT with fused attention, from word embeddings or from what enters its
    layers to logits."""

    def __init__(self, classifier: Classifier, site: str) -> None:
        super().__init__()
        self.model, self.site = copy.deepcopy(classifier.model).eval(), site
        self.model.set_attn_implementation("sdpa")

    def start(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """x, where the site is."""
        body = self.model.bert
        if self.site == "embeddings":
            return body.get_input_embeddings()(inputs["input_ids"]).detach()
        return body.embeddings(inputs["input_ids"], inputs["token_type_ids"]).detach()

    def forward(self, x: Tensor) -> Tensor:
        """[batch, class], for texts without pads."""
        body = self.model.bert
        states = x if self.site == "entry" else body.embeddings(inputs_embeds=x)
        return self.model.classifier(body.pooler(body.encoder(states).last_hidden_state))

    @torch.no_grad()
    def predicted(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """The classes that are explained."""
        return self.model(**inputs).logits.argmax(dim=-1)


@cache
def plain(classifier: Classifier, site: str) -> Plain:
    """One for each classifier, made once."""
    return Plain(classifier, site)


def captum(method: str) -> Scores:
    """Captum's method of this name, summed over dimensions (saliency: its length)."""
    from captum import attr

    tools = {
        "saliency": attr.Saliency,
        "input_x_gradient": attr.InputXGradient,
        "integrated_gradients": attr.IntegratedGradients,
        "gradshap": attr.GradientShap,
        "deeplift": attr.DeepLift,
    }
    if method not in tools:
        raise unknown("method of captum", method, tools)
    options = DEFAULTS.get(method, Options())
    batches: dict[tuple[int, ...], int] = {}

    def scores(classifier: Classifier, inputs: dict[str, Tensor]) -> Tensor:
        library = plain(classifier, options.site)
        target, x = library.predicted(inputs), library.start(inputs).requires_grad_()
        tool, more = tools[method](library), dict[str, Any]()
        if method == "saliency":
            return tool.attribute(x, target, abs=False).norm(dim=-1)
        if method == "integrated_gradients":
            shape = tuple(x.shape)
            if shape not in batches:
                batches[shape] = _fastest(tool, x, target)
            more = {"n_steps": options.steps, "internal_batch_size": batches[shape]}
        elif method == "gradshap":
            more = {"baselines": torch.zeros_like(x[:1]), "n_samples": options.samples}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            return tool.attribute(x, target=target, **more).sum(dim=-1).detach()

    return scores


def _fastest(tool: Any, x: Tensor, target: Tensor) -> int:
    """The internal batch size with which the path takes the least time."""
    took = {}
    for points in POINTS_AT_ONCE:
        began = time.process_time()
        tool.attribute(x, target=target, n_steps=50, internal_batch_size=points * len(x))
        took[points * len(x)] = time.process_time() - began
    return min(took, key=lambda size: took[size])


def lime(method: str) -> Scores:
    """lime_text with as many samples as ours; every place is a word of its own."""
    if method != "lime":
        raise unknown("method of lime", method, ["lime"])
    try:
        explainer = importlib.import_module("lime.lime_text").LimeTextExplainer
    except ImportError as error:
        raise ValueError(f"lime is not installed here ({error}): pip install lime") from error
    samples = DEFAULTS["lime"].samples

    def scores(classifier: Classifier, inputs: dict[str, Tensor]) -> Tensor:
        library, tokenizer = plain(classifier, "embeddings"), classifier.tokenizer
        pad = str(tokenizer.pad_token)

        @torch.no_grad()
        def answers(texts: list[str]) -> Any:
            parts = []
            for start in range(0, len(texts), 64):
                ids = tokenizer(texts[start : start + 64], return_tensors="pt", padding=True)
                ids["attention_mask"] = torch.ones_like(ids["attention_mask"])  # a pad hides a word
                parts.append(library.model(**ids).logits.softmax(dim=-1))
            return torch.cat(parts).numpy()

        found = torch.zeros(inputs["input_ids"].shape)
        target = library.predicted(inputs)
        for row, ids in enumerate(inputs["input_ids"]):
            words = tokenizer.convert_ids_to_tokens(ids)[1:-1]
            told = explainer(bow=False, mask_string=pad, split_expression=r"\s+", random_state=0)
            label = int(target[row])
            explained = told.explain_instance(
                " ".join(words), answers, labels=(label,), num_features=len(words),
                num_samples=samples,
            )  # fmt: skip
            for place, weight in explained.as_map()[label]:
                found[row, 1 + place] = weight
        return found

    return scores


class Peer(NamedTuple):
    """Another library: its methods by our names, and what computes one of them."""

    methods: tuple[str, ...]
    scores: Callable[[str], Scores]


PEERS = {
    "captum": Peer(
        ("saliency", "input_x_gradient", "integrated_gradients", "gradshap", "deeplift"), captum
    ),
    "lime": Peer(("lime",), lime),
}
