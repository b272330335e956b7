"""What does a classifier show of one forward pass?

Logits, and everything the losses and attributions look at: attention maps, hidden states, word
embeddings x and the embedding block's output E, each the very tensor in the graph.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerFast
from transformers.utils import logging

from erlib.data.encoding import Batch, Encoded, collate, encode
from erlib.models.families import body_of, family_of
from erlib.models.gate import AttentionGate
from erlib.models.layers import LayerView, layer_views
from erlib.models.lean import LeanStack, layers_replaced
from erlib.models.precision import in_bf16, one_pass
from erlib.models.predicting import class_names, predictions

SETTINGS_FILE = "erlib.json"


@dataclass
class Output:
    """One forward pass. Shapes: B texts, T tokens, L layers, H heads, D dimensions.

    `attentions` are taken after softmax and, in training, after attention dropout: the
    probabilities that multiply the values. `hidden_states[0]` is `entry`. For GPT-2 and Llama
    `hidden_states[-1]` is taken after the final norm, as the library does; what the last layer
    itself put out is in `layers.trace`.
    """

    logits: Tensor  # [B, class]; span: [B, T, 2] (start, end)
    attentions: tuple[Tensor, ...]  # L of [B, H, query, key]
    hidden_states: tuple[Tensor, ...]  # L + 1 of [B, T, D]
    embeddings: Tensor  # word-embedding lookup x, [B, T, D] (small ELECTRAs: fewer dimensions)
    entry: Tensor  # embedding-block output E, [B, T, D]
    pooled: Tensor | None  # the vector fed to the last linear map, [B, D]; None for spans


class Classifier:
    """A Transformer with a head, its tokenizer, and how texts are put to it.

    Made by `load_classifier`. `model` is a transformers model; called directly it gives the same
    logits as `forward` (decoders: for batches given as `input_ids`; not with the quirk
    "double_embedding", which is `forward`'s).
    """

    def __init__(
        self,
        name: str,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        *,
        task: str,
        head: str,
        specials: bool,
        max_length: int,
        note: str = "",
        quirks: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.family: str = model.config.model_type
        self.task = task
        self.head = head
        self.specials = specials
        self.max_length = max_length
        self.note = note
        self.quirks = tuple(quirks)
        self.frozen = 0
        self.model = model
        self.tokenizer = tokenizer

    @property
    def num_labels(self) -> int:
        """Number of logits per text (spans: 2 per token)."""
        return 2 if self.task == "span" else self.model.config.num_labels

    @property
    def classes(self) -> tuple[str, ...]:
        """What its classes are called, in the order of the logits; () for spans."""
        return class_names(self)

    @property
    def layers(self) -> list[LayerView]:
        """A uniform view of each layer's parameters, made anew so that gradients always flow."""
        return layer_views(self.model)

    @property
    def explainer(self) -> Any:
        """The learned attention beside the head (`erlib.models.learned_attention`), or None."""
        return getattr(self.model, "explainer", None)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> Self:
        self.model.to(device)
        return self

    def train(self, mode: bool = True) -> Self:
        self.model.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def encoder_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of the pretrained body, BERT's pooler included."""
        return [p for p in body_of(self.model).parameters() if p.requires_grad]

    def head_parameters(self) -> list[nn.Parameter]:
        """All other trainable parameters of the prediction: what is new on top of the body."""
        known = {id(p) for p in (*self.encoder_parameters(), *self.explainer_parameters())}
        return [p for p in self.model.parameters() if p.requires_grad and id(p) not in known]

    def explainer_parameters(self) -> list[nn.Parameter]:
        """Trainable parameters of the learned attention; none where there is none."""
        explainer = self.explainer
        return [] if explainer is None else [p for p in explainer.parameters() if p.requires_grad]

    def freeze(self, layers: int) -> None:
        """Leave embeddings and the lowest `layers` as they are: head, explainer and the layers
        above train, BERT's pooler with the head. 0 freezes nothing."""
        self.frozen = layers
        if not layers:
            return
        body, family = body_of(self.model), family_of(self.family)
        stack = body.get_submodule(family.layers)
        if layers > len(stack):
            raise ValueError(f"{self.name} has {len(stack)} layers: cannot freeze {layers}")
        body.requires_grad_(False)
        for layer in stack[layers:]:
            layer.requires_grad_(True)
        if self.task == "classify":
            self.model.get_submodule(family.dense).requires_grad_(True)

    def encode(
        self, inputs: Any, labels: Sequence[int] | None = None, max_length: int | None = None
    ) -> list[Encoded]:
        """Texts as this classifier reads them: its tokenizer, specials and length."""
        return encode(
            inputs,
            self.tokenizer,
            max_length=self.max_length if max_length is None else max_length,
            specials=self.specials,
            labels=labels,
        )

    def predict(self, inputs: Any, *, batch_size: int = 32) -> pd.DataFrame:
        """One row per input: its `label` and the probability of each class under the class's name.

        Of a span model its `answer` and the probability of that. `inputs` are those of `encode`.
        """
        return predictions(self, inputs, batch_size)

    def batch(self, encoded: Sequence[Encoded]) -> Batch:
        """Encoded texts padded with this tokenizer's pad, on the model's device."""
        return collate(encoded, int(self.tokenizer.pad_token_id)).to(self.device)

    def read_position(self, attention_mask: Tensor) -> Tensor:
        """[B] index of the token the head reads: 0, or a decoder's last real token."""
        if not family_of(self.family).decoder:
            return torch.zeros(len(attention_mask), dtype=torch.long, device=attention_mask.device)
        return last_real_token(attention_mask)

    def read_row(self, rows: Tensor, attention_mask: Tensor) -> Tensor:
        """[B, ...] of `rows` [B, T, ...], states or an attention map: the row the head reads."""
        texts = torch.arange(len(rows), device=rows.device)
        return rows[texts, self.read_position(attention_mask)]

    @one_pass
    def forward(
        self,
        inputs: Mapping[str, Tensor],
        *,
        embeddings: Tensor | None = None,
        entry: Tensor | None = None,
        gate: Tensor | None = None,
        maps: bool = True,
    ) -> Output:
        """Run the model on `input_ids` and `attention_mask`, with `token_type_ids` or without.

        `embeddings` [B, T, D] replaces the word-embedding lookup: positions and types are still
        added, once. `entry` replaces the embedding block's output. `gate` [B, T] says how much of
        each token attention may see (`erlib.models.gate`); 0 is an attention mask of 0, with a
        gradient. Positions count from the first token whatever the ids are, so that a token
        replaced by a pad does not move the others. Without `maps` only logits, embeddings and entry
        are wanted: there are no attentions, and hidden states may end with the first
        (`erlib.models.lean`).
        """
        body = body_of(self.model)
        mask = inputs["attention_mask"]
        if embeddings is None:
            embeddings = body.get_input_embeddings()(inputs["input_ids"])
        types = inputs.get("token_type_ids")
        if types is not None and getattr(self.model.config, "type_vocab_size", 1) > 1:
            segments = {"token_type_ids": types}
        else:
            segments = {}  # GPT-2 would look the types up as words
        looked_up = embeddings
        if "double_embedding" in self.quirks:  # the block reads its own output once more
            first = body.embeddings(inputs_embeds=embeddings, **segments)
            embeddings, entry = (first if entry is None else entry), None
        drawn = self.model.training or "attention_by_order" in self.quirks
        if not (maps or drawn or gate is not None or in_bf16()):
            return self._lean(inputs, embeddings, entry, segments, looked_up)
        n_layers = self.model.config.num_hidden_layers
        gating = nullcontext() if gate is None else AttentionGate(gate, n_layers)
        with entry_replaced(self.model, entry), gating:
            states = body(
                inputs_embeds=embeddings,
                attention_mask=mask,
                output_attentions=maps,
                output_hidden_states=True,
                **segments,
            )
        sparse = "attention_by_order" in self.quirks  # whose maps the library does not give
        given = maps and not sparse
        if given and len(states.attentions) != n_layers:  # what fused attention gives: none
            raise RuntimeError(
                f"{len(states.attentions)} attention maps for {n_layers} layers; "
                "the model must run with attn_implementation='eager'"
            )
        if gate is not None:
            mask = mask * (gate > 0)  # a decoder's head reads the last token that is seen
        logits, pooled = self._head(states, mask)
        return Output(
            logits=logits,
            attentions=states.attentions if maps else (),
            hidden_states=states.hidden_states,
            embeddings=looked_up,
            entry=embeddings if "double_embedding" in self.quirks else states.hidden_states[0],
            pooled=pooled,
        )

    __call__ = forward

    def _lean(
        self,
        inputs: Mapping[str, Tensor],
        embeddings: Tensor,
        entry: Tensor | None,
        segments: Mapping[str, Tensor],
        looked_up: Tensor,
    ) -> Output:
        family, mask, body = family_of(self.family), inputs["attention_mask"], body_of(self.model)
        first = self.task == "classify" and not family.decoder
        stack = LeanStack(self.layers, mask, entry, first=first)
        with layers_replaced(body, family.layers, stack):
            states = body(inputs_embeds=embeddings, attention_mask=mask, **segments)
        logits, pooled = self._head(states, mask[:, :1] if first else mask)
        assert stack.entry is not None
        read = embeddings if "double_embedding" in self.quirks else stack.entry
        return Output(logits, (), (stack.entry,), embeddings=looked_up, entry=read, pooled=pooled)

    def _head(self, states: Any, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        family = family_of(self.family)
        last = states.last_hidden_state
        if self.task == "span":
            return self.model.get_submodule(family.span_out)(last), None
        read = self.read_row(last, mask)
        pooled = family.pool(self.model, read, getattr(states, "pooler_output", None))
        return self.model.get_submodule(family.out)(pooled), pooled

    def save_pretrained(self, directory: str | Path) -> None:
        """Weights (safetensors), configuration, tokenizer, and erlib.json with what they omit."""
        directory = Path(directory)
        directory.mkdir(parents=True, exist_ok=True)
        self._save_weights(directory)
        self.tokenizer.backend_tokenizer.no_truncation()  # encoding leaves its last length there
        self.tokenizer.save_pretrained(directory)
        settings = {
            "task": self.task,
            "head": self.head,
            "specials": self.specials,
            "max_length": self.max_length,
            "note": self.note,
            "quirks": list(self.quirks),
            "explainer": None if self.explainer is None else self.explainer.name,
        }
        (directory / SETTINGS_FILE).write_text(json.dumps(settings, indent=2) + "\n")

    def _save_weights(self, directory: Path) -> None:
        with library_quiet():
            self.model.save_pretrained(directory)


def last_real_token(attention_mask: Tensor) -> Tensor:
    """[B] index of the last position whose mask is 1."""
    positions = torch.arange(attention_mask.shape[1], device=attention_mask.device)
    return (positions * (attention_mask != 0)).argmax(dim=1)


@contextmanager
def entry_replaced(model: PreTrainedModel, entry: Tensor | None) -> Iterator[None]:
    """While open, the first layer reads `entry` instead of the embedding block's output.

    Under autocast it reads either in float32: ELECTRA's block ends in a matrix product, and
    `Output.entry` has to be the tensor in the graph.
    """
    autocast = torch.is_autocast_enabled(model.device.type)
    if entry is None and not autocast:
        yield
        return

    def read(module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        e = args[0] if entry is None else entry
        return (e.float() if autocast else e, *args[1:])

    family = family_of(model.config.model_type)
    first = body_of(model).get_submodule(family.layers)[0]
    hook = first.register_forward_pre_hook(read)
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def library_quiet() -> Iterator[None]:
    """While open, transformers neither lists new and left-over weights nor draws bars.

    It does so at every load, where a new head and layers left out are what was asked for. The
    hub's own progress bars, of downloads, stay.
    """
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    bars = logging.set_tqdm_hook(lambda bar, args, given: bar(*args, **{**given, "disable": True}))
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.set_tqdm_hook(bars)
