"""How does each supported Transformer family name its parts?

One row per family; what differs between families is data here, and code nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import transformers
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.activations import ACT2FN

from erlib.errors import unknown
from erlib.models import heads
from erlib.models.heads import HEADS, OWN, Head


@dataclass(frozen=True)
class Family:
    """One row: the library's classes, where the head stands, and which token it reads."""

    classify: type[PreTrainedModel]
    span: type[PreTrainedModel]
    install: Callable[[PreTrainedModel, Head, nn.Module], None]
    pool: Callable[[PreTrainedModel, Tensor, Tensor | None], Tensor]
    dense: str  # the head's inner linear map
    out: str  # its last linear map
    layers: str  # the list of layers, below the body
    span_out: str = "qa_outputs"
    span_own: str = "qa_outputs.weight"  # in the library's checkpoints
    final_norm: str | None = None  # of a pre-norm family, below the body
    decoder: bool = False  # causal; the head reads the last real token
    library_activation: type[nn.Module] | None = nn.Tanh  # of `own`; None: the configuration's
    config: tuple[tuple[str, Any], ...] = ()  # settings forced on the configuration

    @property
    def own_weights(self) -> dict[str, set[str]]:
        """By task, the weights that a checkpoint with the library's own head has."""
        maps = {self.out.partition(".")[0]} if self.decoder else {self.dense, self.out}
        return {"classify": {f"{name}.weight" for name in maps}, "span": {self.span_own}}


FAMILIES: dict[str, Family] = {
    "bert": Family(
        classify=transformers.BertForSequenceClassification,
        span=transformers.BertForQuestionAnswering,
        install=heads.install_bert,
        pool=heads.pool_bert,
        dense="bert.pooler.dense",
        out="classifier",
        layers="encoder.layer",
    ),
    "roberta": Family(
        classify=transformers.RobertaForSequenceClassification,
        span=transformers.RobertaForQuestionAnswering,
        install=heads.install_encoder,
        pool=heads.pool_encoder,
        dense="classifier.dense",
        out="classifier.out_proj",
        layers="encoder.layer",
    ),
    "electra": Family(
        classify=transformers.ElectraForSequenceClassification,
        span=transformers.ElectraForQuestionAnswering,
        install=heads.install_encoder,
        pool=heads.pool_encoder,
        dense="classifier.dense",
        out="classifier.out_proj",
        layers="encoder.layer",
        library_activation=nn.GELU,
    ),
    "distilbert": Family(
        classify=heads.DistilBertWithHead,
        span=transformers.DistilBertForQuestionAnswering,
        install=heads.install_distilbert,
        pool=heads.pool_distilbert,
        dense="pre_classifier",
        out="classifier",
        layers="transformer.layer",
        library_activation=nn.ReLU,
    ),
    "big_bird": Family(
        classify=transformers.BigBirdForSequenceClassification,
        span=transformers.BigBirdForQuestionAnswering,
        install=heads.install_encoder,
        pool=heads.pool_encoder,
        dense="classifier.dense",
        out="classifier.out_proj",
        layers="encoder.layer",
        span_out="qa_classifier",
        span_own="qa_classifier.qa_outputs.weight",
        library_activation=None,
        config=(("attention_type", "original_full"),),  # er_lens.md §4.6
    ),
    "gpt2": Family(
        classify=transformers.GPT2ForSequenceClassification,
        span=transformers.GPT2ForQuestionAnswering,
        install=heads.install_decoder,
        pool=heads.pool_decoder,
        dense="score.dense",
        out="score.out_proj",
        layers="h",
        final_norm="ln_f",
        decoder=True,
        library_activation=nn.Identity,
        config=(("use_cache", False),),
    ),
    "llama": Family(
        classify=transformers.LlamaForSequenceClassification,
        span=transformers.LlamaForQuestionAnswering,
        install=heads.install_decoder,
        pool=heads.pool_decoder,
        dense="score.dense",
        out="score.out_proj",
        layers="layers",
        final_norm="norm",
        decoder=True,
        library_activation=nn.Identity,
        config=(("use_cache", False),),
    ),
}

TASKS = ("classify", "span")


def family_of(model_type: str) -> Family:
    """The row of a configuration's `model_type`."""
    if model_type not in FAMILIES:
        raise unknown("model family", model_type, [*FAMILIES, "jwa"])
    return FAMILIES[model_type]


def activation_of(config: PretrainedConfig, head: str) -> Callable[[], nn.Module]:
    """What a head has behind its dense map; Identity where it has none."""
    chosen = HEADS[head].activation or family_of(config.model_type).library_activation
    return chosen or (lambda: ACT2FN[config.hidden_act])


@cache
def model_class(
    model_type: str,
    task: str,
    head: str,
    explainer: Callable[[PretrainedConfig], nn.Module] | None = None,
) -> type[PreTrainedModel]:
    """The library's class with our head built in, so that its own loading and saving apply.

    `explainer` makes the module that stands beside the head (`erlib.models.learned_attention`).
    The class keeps the library's name: `architectures` in a saved config.json stays what a reader
    without erlib can open.
    """
    family = family_of(model_type)
    library = family.classify if task == "classify" else family.span

    def __init__(self: PreTrainedModel, config: PretrainedConfig) -> None:
        library.__init__(self, config)
        if task == "classify":
            family.install(self, HEADS[head], activation_of(config, head)())
        elif model_type == "big_bird" and head != OWN:  # the library's is a feed-forward block
            self.qa_classifier = nn.Linear(config.hidden_size, 2)
        if explainer is not None:
            self.explainer = explainer(config)

    own = {
        "__init__": __init__,
        "__module__": __name__,
        # Llama's span model keeps its body under another name than every other Llama checkpoint.
        "base_model_prefix": (library if head == OWN else family.classify).base_model_prefix,
    }
    return type(library.__name__.replace("WithHead", "ForSequenceClassification"), (library,), own)


def body_of(model: PreTrainedModel) -> PreTrainedModel:
    """The model without its head: embeddings and layers."""
    return model.base_model
