"""How do other libraries explain the same texts, as fast as they can?

What `python -m erlib bench --against captum,lime,shap,trainer` times in turn with ours: the
library's own model with fused attention, a pass that finds the predicted class, and the library's
own method at the site that ours is taken at. Texts have equal lengths, so that nobody pads.
Captum's integrated gradients get the fastest of a few batch sizes; lime and shap, which have to be
installed, explain words and get their answers from batches. The `Trainer` of transformers takes a
few steps on the same texts from the same weights, without dropout, so that losses can be compared.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from erlib.attributions.variants import DEFAULTS, Options
from erlib.config import OptimiserSpec, term
from erlib.data.encoding import Encoded
from erlib.errors import unknown
from erlib.models.classifier import Classifier

Scores = Callable[[Classifier, dict[str, Tensor]], Tensor]
POINTS_AT_ONCE = (5, 10, 25, 50)  # of which Captum's integrated gradients take the fastest
AT_ONCE = 64  # masked copies in a pass of lime's and shap's
STEPS, RATE = 4, 5e-5  # of training


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
    explainer = _installed("lime").LimeTextExplainer
    samples = DEFAULTS["lime"].samples

    def scores(classifier: Classifier, inputs: dict[str, Tensor]) -> Tensor:
        library, tokenizer = plain(classifier, "embeddings"), classifier.tokenizer
        pad = str(tokenizer.pad_token)

        @torch.no_grad()
        def answers(texts: list[str]) -> Any:
            parts = []
            for start in range(0, len(texts), AT_ONCE):
                ids = tokenizer(texts[start : start + AT_ONCE], return_tensors="pt", padding=True)
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


def shap(method: str) -> Scores:
    """KernelExplainer with as many sets as ours; every place is a word of its own."""
    if method != "shap":
        raise unknown("method of shap", method, ["shap"])
    library_of_values = _installed("shap")
    samples = DEFAULTS["shap"].samples

    def scores(classifier: Classifier, inputs: dict[str, Tensor]) -> Tensor:
        library, found = plain(classifier, "embeddings"), torch.zeros(inputs["input_ids"].shape)
        target, pad = library.predicted(inputs), int(classifier.tokenizer.pad_token_id)
        of = DEFAULTS["shap"].of
        for row, label in enumerate(target.tolist()):
            text = {name: ids[row : row + 1] for name, ids in inputs.items()}

            @torch.no_grad()
            def answers(kept: Any, text: dict[str, Tensor] = text, label: int = label) -> Any:
                parts = []
                for some in torch.from_numpy(kept).bool().split(AT_ONCE):
                    copies = {name: ids.expand(len(some), -1) for name, ids in text.items()}
                    ids = copies["input_ids"].clone()
                    ids[:, 1:-1] = ids[:, 1:-1].masked_fill(~some, pad)
                    logits = library.model(**{**copies, "input_ids": ids}).logits
                    parts.append(
                        (logits.softmax(dim=-1) if of == "probability" else logits)[:, label]
                    )
                return torch.cat(parts).numpy()

            words = inputs["input_ids"].shape[1] - 2
            told = library_of_values.KernelExplainer(answers, np.zeros((1, words)))
            values = told.shap_values(
                np.ones((1, words)), nsamples=samples, l1_reg=False, silent=True
            )
            found[row, 1:-1] = torch.from_numpy(np.asarray(values).reshape(-1))
        return found

    return scores


def trainer(method: str) -> Scores:
    """`STEPS` steps of transformers' Trainer; the loss of each."""
    if method != "step":
        raise unknown("method of trainer", method, ["step"])
    _installed("accelerate")
    from transformers import Trainer, TrainingArguments

    def losses(classifier: Classifier, inputs: dict[str, Tensor]) -> Tensor:
        rows = [
            {**{name: ids[i] for name, ids in inputs.items()}, "labels": label_of(i)}
            for i in range(len(inputs["input_ids"]))
        ]
        with tempfile.TemporaryDirectory() as folder:
            arguments = TrainingArguments(
                folder, max_steps=STEPS, per_device_train_batch_size=len(rows), use_cpu=True,
                learning_rate=RATE, lr_scheduler_type="constant", adam_beta2=0.98, max_grad_norm=0,
                logging_steps=1, save_strategy="no", report_to=[], disable_tqdm=True,
            )  # fmt: skip
            model = without_dropout(plain(classifier, "embeddings").model)
            teaching = Trainer(model, arguments, train_dataset=rows)
            with contextlib.redirect_stdout(io.StringIO()):
                teaching.train()
        return torch.tensor([log["loss"] for log in teaching.state.log_history if "loss" in log])

    return losses


def own_steps(classifier: Classifier, texts: Sequence[Encoded]) -> Tensor:
    """The same steps by ours; the loss of each."""
    from erlib.losses import Step, Weighted
    from erlib.training.updates import PlainUpdate

    own = copy.copy(classifier)
    own.model = without_dropout(classifier.model)
    batch = own.batch([replace(text, label=label_of(i)) for i, text in enumerate(texts)])
    update = PlainUpdate(own.train(), OptimiserSpec(lr=RATE, schedule="constant"), STEPS)
    objective = Weighted([term("task")])
    steps = [update.apply(objective, Step(own, batch), number) for number in range(STEPS)]
    return torch.stack([losses["loss"].detach() for losses in steps])


def label_of(place: int) -> int:
    """A class for every text."""
    return place % 2


def without_dropout(model: Any) -> Any:
    """A copy that trains without dropout."""
    made = copy.deepcopy(model)
    for module in made.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return made


def _installed(name: str) -> Any:
    try:
        return importlib.import_module("lime.lime_text" if name == "lime" else name)
    except ImportError as error:
        raise ValueError(f"{name} is not installed here ({error}): pip install {name}") from error


class Peer(NamedTuple):
    """Another library: its methods by our names, and what computes one of them."""

    methods: tuple[str, ...]
    scores: Callable[[str], Scores]


PEERS = {
    "captum": Peer(
        ("saliency", "input_x_gradient", "integrated_gradients", "gradshap", "deeplift"), captum
    ),
    "lime": Peer(("lime",), lime),
    "shap": Peer(("shap",), shap),
    "trainer": Peer(("step",), trainer),
}
