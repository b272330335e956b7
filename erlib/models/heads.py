"""Which heads turn a read token's state into logits, and how are they built onto a family's model?

er         dense → tanh → linear, no dropout in the head        (er_lens.md §3)
pooled     dense → tanh → dropout .1 → linear                   (saloss.md §3, regex.md §3)
agreement  dense → ReLU → dropout .1 → linear, one logit        (agreement.md §3)
own        what the library has for the family, with the configuration's dropout:
           dense → tanh (BERT, RoBERTa), ReLU (DistilBERT), GELU (ELECTRA) or the configuration's
           activation (BigBird) → linear; for GPT-2 and Llama one linear map without bias

`er` and `pooled` have the same parameters and differ in dropout alone. New weights are drawn as
the library draws them: normal with the configuration's `initializer_range`, biases zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DistilBertForSequenceClassification, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput


@dataclass(frozen=True)
class Head:
    """What distinguishes one head from another."""

    activation: Callable[[], nn.Module] | None  # None: the library's, see `families.activation_of`
    dropout: float | None  # None: what the configuration says
    num_labels: int | None = None  # None: as many as the data has
    version: int = 1  # raised whenever a model with this head gives other numbers


OWN = "own"
HEADS = {
    "er": Head(nn.Tanh, 0.0),
    "pooled": Head(nn.Tanh, 0.1),
    "agreement": Head(nn.ReLU, 0.1, num_labels=1),
    OWN: Head(None, None),
}


class DenseHead(nn.Module):
    """dense → activation → dropout → out_proj, with the parameter names of the library's heads.

    The library hands an encoder's head the whole sequence (`first=True`: it reads position 0) and
    applies a decoder's head to every token before it picks the last one. `entry_dropout` is applied
    to what the head reads.
    """

    def __init__(
        self,
        config: PretrainedConfig,
        activation: nn.Module,
        dropout: float,
        *,
        entry_dropout: float = 0.0,
        first: bool,
    ) -> None:
        super().__init__()
        self.entry_dropout = nn.Dropout(entry_dropout)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = activation
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(config.hidden_size, config.num_labels)
        self.first = first

    def pool(self, state: Tensor) -> Tensor:
        """The vector fed to the last linear map, for states [..., dim]."""
        return self.dropout(self.activation(self.dense(self.entry_dropout(state))))

    def forward(self, states: Tensor) -> Tensor:
        """Logits, called by the library's own forward: states [batch, token, dim]."""
        return self.out_proj(self.pool(states[:, 0] if self.first else states))


class LinearHead(nn.Linear):
    """A decoder's head in the library: a map that is the inner and the last one at once."""

    @property
    def dense(self) -> nn.Linear:
        return self

    @property
    def out_proj(self) -> nn.Linear:
        return self

    def pool(self, state: Tensor) -> Tensor:
        """The vector fed to the map: the read token's state as it is."""
        return state


class DistilBertWithHead(DistilBertForSequenceClassification):
    """DistilBERT whose activation between `pre_classifier` and `classifier` can be chosen.

    The library's forward has a ReLU written into it, which is right for `agreement` alone.
    """

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Logits as the library would return them, with the installed activation."""
        body = self.distilbert(
            input_ids=input_ids,
            attention_mask=attention_mask,
            inputs_embeds=inputs_embeds,
            **kwargs,
        )
        state = self.pre_classifier(body.last_hidden_state[:, 0])
        logits = self.classifier(self.dropout(self.activation(state)))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=body.hidden_states, attentions=body.attentions
        )


def install_bert(model: PreTrainedModel, head: Head, activation: nn.Module) -> None:
    """BERT: the library's own pooler and classifier; only activation and dropout are set."""
    model.bert.pooler.activation = activation
    model.dropout.p = _dropout(head, model.dropout)


def install_distilbert(model: PreTrainedModel, head: Head, activation: nn.Module) -> None:
    """DistilBERT: the library's own `pre_classifier` and `classifier`."""
    model.activation = activation
    model.dropout.p = _dropout(head, model.dropout)


def install_encoder(model: PreTrainedModel, head: Head, activation: nn.Module) -> None:
    """RoBERTa, ELECTRA, BigBird: `classifier.dense`, `classifier.out_proj`; no unread pooler.

    The library's own head has its dropout on both sides of the dense map.
    """
    dropout = _dropout(head, model.classifier.dropout)
    before = dropout if head.dropout is None else 0.0
    model.classifier = DenseHead(
        model.config, activation, dropout, entry_dropout=before, first=True
    )
    if getattr(model.base_model, "pooler", None) is not None:
        model.base_model.pooler = None  # BigBird builds one that its classifier never reads


def install_decoder(model: PreTrainedModel, head: Head, activation: nn.Module) -> None:
    """GPT-2, Llama: the same head at `score`, which the library applies to every token."""
    config = model.config
    if head.dropout is None:  # the library's own is a linear map alone
        model.score = LinearHead(config.hidden_size, config.num_labels, bias=False)
        return
    model.score = DenseHead(config, activation, head.dropout, first=False)


def _dropout(head: Head, library: nn.Dropout) -> float:
    return library.p if head.dropout is None else head.dropout


def pool_bert(model: PreTrainedModel, state: Tensor, pooler_output: Tensor | None) -> Tensor:
    """BERT's body has already applied dense and activation to position 0."""
    return model.dropout(pooler_output)


def pool_distilbert(model: PreTrainedModel, state: Tensor, pooler_output: Tensor | None) -> Tensor:
    """dense → activation → dropout, of parts that stand on the model itself."""
    return model.dropout(model.activation(model.pre_classifier(state)))


def pool_encoder(model: PreTrainedModel, state: Tensor, pooler_output: Tensor | None) -> Tensor:
    """dense → activation → dropout of the head at `classifier`."""
    return model.classifier.pool(state)


def pool_decoder(model: PreTrainedModel, state: Tensor, pooler_output: Tensor | None) -> Tensor:
    """dense → activation → dropout of the head at `score`."""
    return model.score.pool(state)


@torch.no_grad()
def draw_linear(linear: nn.Linear, std: float) -> None:
    """New weights for one linear map: normal(0, std), bias zero if it has one."""
    nn.init.normal_(linear.weight, std=std)
    if linear.bias is not None:
        nn.init.zeros_(linear.bias)
