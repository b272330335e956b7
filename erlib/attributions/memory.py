"""How many texts fit in memory at once?"""

from __future__ import annotations

import re

import psutil
import torch

from erlib.models.classifier import Classifier

# What a core's cache holds of a pass is worked on fastest; a GPU is not full with less.
TOKENS_IN_A_PASS, TOKENS_OF_GPU = 2**10, 2**16
SHARE_OF_FREE = 0.25  # several processes may attribute at once
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_bytes(size: str) -> int:
    """Bytes in "2GB", "500 MB" or "1e9".

    >>> parse_bytes("2GB")
    2000000000
    """
    match = re.fullmatch(r"\s*([\d.]+(?:e\d+)?)\s*([kmgt]?)b?\s*", size.lower())
    if match is None or not float(match[1]):
        raise ValueError(f"max_memory={size!r} is not a size; write it as '2GB' or '500MB'")
    return int(float(match[1]) * _UNITS[match[2]])


def memory_budget(max_memory: int | None, device: torch.device) -> int:
    """Bytes that may be used: as asked, or a share of what is free now."""
    if max_memory is not None:
        return max_memory
    if device.type == "cuda":
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(SHARE_OF_FREE * (torch.cuda.mem_get_info(device)[0] + held))  # torch's own cache
    return int(SHARE_OF_FREE * psutil.virtual_memory().available)


def bytes_per_text(classifier: Classifier, length: int, *, graph: bool) -> int:
    """An estimate of what one text of `length` tokens costs in a forward and a backward pass.

    Measured: a layer keeps 10 vectors of the model's width per token for its backward pass
    (`graph`), 1 otherwise, and one attention map per head; while it runs, 8 more and 4.
    """
    config = classifier.model.config
    width = getattr(config, "hidden_size", None) or config.dim
    layers = getattr(config, "num_hidden_layers", 1)
    maps = getattr(config, "num_attention_heads", 1) * length**2
    vector = length * width
    kept = (10 if graph else 1) * vector + maps
    return 4 * (layers * kept + 8 * vector + 4 * maps)


def texts_worth_a_pass(length: int, device: torch.device) -> int:
    """How many texts of `length` tokens are no slower together than more of them; at least one."""
    return max(1, (TOKENS_IN_A_PASS if device.type == "cpu" else TOKENS_OF_GPU) // length)


def texts_that_fit(classifier: Classifier, length: int, budget: int, *, graph: bool) -> int:
    """How many texts of `length` tokens a pass may hold; at least one."""
    return max(1, budget // bytes_per_text(classifier, length, graph=graph))
