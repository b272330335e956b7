"""Tiny random models of every family, for any test that needs a real classifier in milliseconds.

`tiny.classifier("gpt2", head="er", seed=0)` saves a random model of the library and a tokenizer
made in memory to a temporary directory, once per process, and loads it through `load_classifier`;
every call returns a fresh object, so that a test may train or damage it.
"""

from __future__ import annotations

import atexit
import copy
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import Tensor
from transformers import AutoModel, PreTrainedTokenizerFast

from erlib.data.encoding import Batch, collate
from erlib.models import Classifier, load_classifier
from erlib.models.classifier import library_quiet

FAMILIES = ("bert", "roberta", "electra", "distilbert", "big_bird", "gpt2", "llama")
DECODERS = ("gpt2", "llama")

# A vocabulary in which common words are whole and rare ones fall into pieces.
CORPUS = [
    "a great film , truly moving and funny .",
    "the plot is dull and the acting is bad .",
    "not a bad film , but the ending is dull",
    "which review is the most positive ?",
    "the best and the worst of the year",
    "i liked the music but hated the story .",
]
TEXTS = ["a great film , truly moving", "dull", "the plot is bad and the acting is unfunny ."]

WIDTH, HEADS, INNER, LAYERS, POSITIONS = 16, 4, 24, 2, 64
_ROOM = {"num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_size": WIDTH}
_SPREAD = {"initializer_range": 0.3}  # far from the linear regime, so that mistakes show
_CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", {**_ROOM, "intermediate_size": INNER}),
    "roberta": ("RobertaConfig", {**_ROOM, "intermediate_size": INNER, "type_vocab_size": 1}),
    "electra": ("ElectraConfig", {**_ROOM, "intermediate_size": INNER, "embedding_size": 12}),
    "distilbert": (
        "DistilBertConfig",
        {"n_layers": LAYERS, "n_heads": HEADS, "dim": WIDTH, "hidden_dim": INNER},
    ),
    # block_sparse as on the hub: the loader must force full attention
    "big_bird": ("BigBirdConfig", {**_ROOM, "intermediate_size": INNER, "block_size": 4}),
    "gpt2": ("GPT2Config", {"n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_inner": INNER}),
    "llama": ("LlamaConfig", {**_ROOM, "intermediate_size": INNER, "num_key_value_heads": 2}),
}


def classifier(family: str = "bert", **options: Any) -> Classifier:
    """A tiny classifier; options are those of `load_classifier`, `seed=0` unless given."""
    return load_classifier(directory(family), **{"seed": 0, **options})


def batch(model: Classifier, texts: list[Any] | None = None, **options: Any) -> Batch:
    """Texts encoded and padded for a classifier; by default three of different lengths."""
    return collate(model.encode(texts or TEXTS, **options), model.tokenizer.pad_token_id)


def inputs(model: Classifier, texts: list[Any] | None = None) -> dict[str, Tensor]:
    """What `Classifier.forward` takes."""
    return batch(model, texts).inputs


@cache
def directory(family: str) -> Path:
    """A library model without our head, and its tokenizer, saved by `save_pretrained`."""
    path = Path(tempfile.mkdtemp(prefix=f"tiny-{family}-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    spoken = tokenizer(family)
    name, shape = _CONFIGS[family]
    config = getattr(transformers, name)(
        **shape,
        **_SPREAD,
        vocab_size=len(spoken),
        max_position_embeddings=POSITIONS + 2,
        pad_token_id=spoken.pad_token_id,
        bos_token_id=spoken.bos_token_id,
        eos_token_id=spoken.eos_token_id,
        sep_token_id=spoken.sep_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = AutoModel.from_config(config)
        for weight in model.parameters():  # norms and biases too, which start as ones and zeros
            if weight.ndim == 1:
                weight.data += 0.2 * torch.randn_like(weight)
    with library_quiet():
        model.save_pretrained(path)
    spoken.save_pretrained(path)
    return path


def saved_by_library(
    family: str, kind: Any, folder: Path, **options: Any
) -> transformers.PreTrainedModel:
    """A model as the library's users save it, in evaluation mode: its own head, drawn at random.

    `kind` is an AutoModelFor…; options are those of its configuration. A tokenizer without a pad
    pads with the end of text, as users of decoders have it.
    """
    spoken = copy.deepcopy(tokenizer(family))
    spoken.pad_token = spoken.pad_token or spoken.eos_token
    options = {"pad_token_id": spoken.pad_token_id, **options}
    with torch.random.fork_rng(), library_quiet():
        torch.manual_seed(2)
        model = kind.from_pretrained(
            directory(family), **options, attn_implementation="eager"
        ).eval()
        for name, weight in model.named_parameters():
            if weight.ndim == 1 and not name.startswith(model.base_model_prefix):
                weight.data += 0.2 * torch.randn_like(weight)  # a head's biases start as zeros
        model.save_pretrained(folder)
    spoken.save_pretrained(folder)
    return model


@cache
def tokenizer(family: str) -> PreTrainedTokenizerFast:
    """Word pieces for BERT's relatives, byte-level BPE for RoBERTa and GPT-2, `▁` for Llama."""
    if family in ("roberta", "gpt2"):
        return _byte_level(family)
    return _sentence_pieces() if family == "llama" else _word_pieces()


def _word_pieces() -> PreTrainedTokenizerFast:
    """Every letter, and the corpus's words of one to five letters; the trainer would break ties
    between equally frequent pieces differently in every process."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in CORPUS for word in text.split() if len(word) <= 5})
    letters = sorted({letter for text in CORPUS for letter in text if letter.isalpha()})
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *words]
    vocabulary = {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}
    built = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=POSITIONS,
    )


def _byte_level(family: str) -> PreTrainedTokenizerFast:
    end = "<|endoftext|>"
    specials = [end] if family == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    built = Tokenizer(models.BPE())
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    built.train_from_iterator(CORPUS, trainer)
    if family == "gpt2":
        return PreTrainedTokenizerFast(tokenizer_object=built, bos_token=end, eos_token=end)
    built.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        bos_token="<s>",
        cls_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token="<mask>",
        model_max_length=POSITIONS,
    )


def _sentence_pieces() -> PreTrainedTokenizerFast:
    built = Tokenizer(models.BPE(unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    specials = ["<unk>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=specials, show_progress=False)
    built.train_from_iterator(CORPUS, trainer)
    built.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", built.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
