"""How long does each attribution take, in how much memory, and does it grow as its formula says?

`python -m erlib bench` times every method at every length on the packaged MiniLM and on a random
model of BERT-base's size, after predicting each cell from its formula; what would take too long or
too much memory is skipped with the prediction. `--against captum` or `lime` times that library on
the same texts in the same run, in turn with ours (`erlib.peers`); so does `--against
module:function`, which is called as `function(classifier, inputs)` with `input_ids` and the like
[batch, token], and returns scores [batch, token]. Both sides then compute on one thread, their CPU
seconds are compared (the least of the repetitions), and a table in Markdown is written beside the
other.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import torch
from transformers import BertConfig

from erlib.attributions import attribute_encoded
from erlib.attributions.costs import Shape, operations, peak_bytes
from erlib.data.encoding import Encoded, collate
from erlib.errors import unknown
from erlib.explorer.waiting import SENTENCE, seconds_waited
from erlib.metrics.faithfulness import PROTOCOLS, faithfulness
from erlib.models import Classifier, load_classifier
from erlib.models.families import model_class
from erlib.peers import PEERS, plain
from erlib.timing import matmul_rate, timed_in_turn
from erlib.training.workers import one_thread

ATTRIBUTIONS = (
    "random",
    "attention",
    "attention_all",
    "rollout",
    "scaled_attention",
    "saliency",
    "input_x_gradient",
    "integrated_gradients",
    "deeplift",
    "deepshap",
    "gradshap",
    "lime",
    "occlusion",
    "shap",
    "attn_lrp",
    "value_zeroing",
    "alti",
    "decompx",
    "decompx_classifier",
)
ERASURE = "erasure"  # evaluation of all methods' scores, not an attribution
EXPLORER = "explorer"  # what somebody waits for who types a sentence there
LINES = (ERASURE, EXPLORER)  # what is told in a line of its own, not by length
LENGTHS = (32, 64, 128, 256, 512, 1024)
RANDOM_MODELS = {
    "minilm-random": Shape(layers=6, width=384, inner=1536, heads=12),
    "bert-base": Shape(layers=12, width=768, inner=3072, heads=12),
}
MODELS = ("minilm", *RANDOM_MODELS)
POSITIONS = 1024  # of the random models; MiniLM has 512
FIRST_GUESS = 0.3  # of the matmul peak, for a method that has not been timed yet
TEXTS, SAMPLE = 40, 5  # of the erasure rows, and of them those asked one by one
SIX = ("input_x_gradient", "attention", "saliency", "rollout", "deeplift", "scaled_attention")
LOOP = 32  # texts in a pass of a loop

Against = Callable[[Classifier, dict[str, torch.Tensor]], torch.Tensor]


@dataclass
class Cell:
    """One row of the table. Seconds are medians, megabytes are above what was held before."""

    model: str
    method: str
    batch: int
    length: int
    predicted_seconds: float
    predicted_mb: float
    seconds: float = math.nan
    peak_mb: float = math.nan
    gflop: float = math.nan  # of the form that ran
    share_of_peak: float = math.nan  # of the best matmul rate in this run
    cpu_seconds: float = math.nan
    against_seconds: float = math.nan  # of CPU
    against_mb: float = math.nan
    ratio: float = math.nan  # against / ours, of CPU seconds
    difference: float = math.nan  # the largest, relative to the largest score
    correlation: float = math.nan  # of their scores with ours
    status: str = "measured"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `python -m erlib bench`."""
    parser.add_argument(
        "--methods",
        help=f"with commas; default all: {', '.join(ATTRIBUTIONS)}, "
        f"{ERASURE}, the erasure evaluation, and {EXPLORER}, a sentence in the explorer",
    )
    lengths = ",".join(map(str, LENGTHS))
    parser.add_argument("--lengths", default=lengths, help="tokens, with commas")
    parser.add_argument("--models", default="minilm,bert-base", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--batch", default="1", help="texts at a time, with commas")
    parser.add_argument("--repeat", type=int, default=3, help="runs of a cell; the median counts")
    parser.add_argument("--cell-seconds", type=float, default=60, help="longest cell that is run")
    parser.add_argument("--full", action="store_true", help="run cells of any length")
    parser.add_argument("--max-memory", help="what attribute may use, such as 2GB")
    parser.add_argument(
        "--against",
        help=f"a library to time on the same texts ({', '.join(PEERS)}), or module:function "
        "(one method)",
    )
    parser.add_argument("--csv", default="bench.csv", help="where the table is written")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, check, run, print and write."""
    parser = argparse.ArgumentParser("erlib bench", description=__doc__, allow_abbrev=False)
    add_arguments(parser)
    return run(parser.parse_args(argv))


def run(options: argparse.Namespace) -> int:
    """The bench, from parsed options; unknown names are refused before anything is timed."""
    known = (*ATTRIBUTIONS, *LINES)
    peer = PEERS.get(options.against)
    default = known if peer is None else peer.methods
    methods = _names("method", options.methods or ",".join(default), known)
    models = _names("model", options.models, MODELS)
    lengths, batches = _numbers("lengths", options.lengths), _numbers("batch", options.batch)
    against: dict[str, Against] = {}
    if peer is not None:
        against = {method: peer.scores(method) for method in methods}
    elif options.against is not None:
        if len(methods) != 1 or methods[0] in LINES:
            raise ValueError("--against is timed against one method: name it with --methods")
        against = {methods[0]: _function(options.against)}
    if min(lengths) < 4 or max(lengths) > POSITIONS:
        raise ValueError(f"--lengths are from 4 to {POSITIONS} tokens")

    with one_thread("cpu") if against else nullcontext():
        return _run(options, methods, models, lengths, batches, against)


def _run(
    options: argparse.Namespace,
    methods: Sequence[str],
    models: Sequence[str],
    lengths: Sequence[int],
    batches: Sequence[int],
    against: Mapping[str, Against],
) -> int:
    peak = MatmulPeak()
    print(
        f"{torch.get_num_threads()} threads, matmul {peak.measure() / 1e9:.0f} GFLOP/s, "
        f"{_free() / 1e9:.1f} GB free"
    )
    cells = []
    for cell in _cells(methods, models, lengths, batches, options, against, peak):
        cells.append(cell)
        print(_line(cell), flush=True)
    table = pd.DataFrame([asdict(cell) for cell in cells])
    _print_slopes(table)
    if ERASURE in methods:
        print(_erasure_line(options))
    if EXPLORER in methods:
        print(_explorer_line())
    table.to_csv(options.csv, index=False)
    print(f"written to {options.csv}")
    if against:
        page = Path(options.csv).with_suffix(".md")
        page.write_text(as_markdown(table, options.against) + "\n", encoding="utf-8")
        print(f"written to {page}")
    return 0


@dataclass
class MatmulPeak:
    """The best rate of matrix products seen in this run, in operations per second."""

    rate: float = 0.0

    def measure(self) -> float:
        """Once more: on a machine that does other things too, any one time may be too low."""
        self.rate = max(self.rate, matmul_rate())
        return self.rate


def _cells(
    methods: Sequence[str],
    models: Sequence[str],
    lengths: Sequence[int],
    batches: Sequence[int],
    options: argparse.Namespace,
    against: Mapping[str, Against],
    peak: MatmulPeak,
) -> Iterator[Cell]:
    for name in models:
        for method in (m for m in methods if m not in LINES):
            for batch in batches:
                share = FIRST_GUESS
                for length in sorted(lengths):
                    theirs = against.get(method)
                    cell = _cell(name, method, batch, length, share, options, theirs, peak)
                    if not math.isnan(cell.share_of_peak):
                        share = cell.share_of_peak  # the next length is predicted from this one
                    yield cell


def _cell(
    name: str,
    method: str,
    batch: int,
    length: int,
    share: float,
    options: argparse.Namespace,
    against: Against | None,
    peak: MatmulPeak,
) -> Cell:
    """Predict one cell and, if it is affordable, run it."""
    if name == "minilm" and length > _model(name).max_length:
        name = "minilm-random"  # the packaged encoder has 512 positions
    classifier = _model(name)
    flop = batch * operations(method, Shape.of(classifier), length)
    cell = Cell(
        name,
        method,
        batch,
        length,
        predicted_seconds=flop / (share * peak.measure()),
        predicted_mb=peak_bytes(method, classifier, length, batch) / 1e6,
    )
    too_long = cell.predicted_seconds > options.cell_seconds
    if (too_long or cell.predicted_mb > _free() / 1e6) and not options.full:
        reason = "time" if too_long else "memory"
        cell.status = f"skipped: {reason}, as predicted (--full runs it)"
        return cell
    texts = random_texts(classifier, length, batch)
    calls = [_ours(classifier, texts, method, options.max_memory)]
    if against is not None:
        calls.append(_theirs(classifier, texts, against))
    limit = math.inf if options.full else options.cell_seconds
    try:
        ours, *theirs = timed_in_turn(calls, repeat=options.repeat, limit=limit)
    except ValueError as error:  # a method that does not apply, or a budget too small
        cell.status = f"refused: {error}"
        return cell
    cell.seconds, cell.peak_mb, cell.gflop = ours.seconds, ours.peak_mb, flop / 1e9
    cell.share_of_peak = flop / (ours.seconds * peak.measure())
    cell.cpu_seconds = ours.cpu_seconds
    for other in theirs:
        cell.against_seconds, cell.against_mb = other.cpu_seconds, other.peak_mb
        cell.ratio = other.cpu_seconds / ours.cpu_seconds
        cell.difference = np.abs(other.result - ours.result).max() / np.abs(other.result).max()
        cell.correlation = np.corrcoef(other.result.ravel(), ours.result.ravel())[0, 1]
    return cell


def as_markdown(table: pd.DataFrame, against: str) -> str:
    """What was timed against another implementation, what was lost included."""
    head = ["method", "model", "texts × tokens", "ours", against, "ratio", "largest difference, r"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for cell in table[table["ratio"].notna()].itertuples():
        lines.append(
            f"| {cell.method} | {cell.model} | {cell.batch} × {cell.length} | "
            f"{cell.cpu_seconds:.3f} s, {cell.peak_mb:.0f} MB | "
            f"{cell.against_seconds:.3f} s, {cell.against_mb:.0f} MB | {cell.ratio:.2f} | "
            f"{cell.difference:.0e}, {cell.correlation:.4f} |"
        )
    return "\n".join(lines)


def _ours(
    classifier: Classifier, texts: list[Encoded], method: str, max_memory: str | None
) -> Callable[[], np.ndarray]:
    def attribute() -> np.ndarray:
        results = attribute_encoded(
            classifier,
            texts,
            method,
            level="token",
            batch_size=len(texts),
            max_memory=max_memory,
        )
        return np.stack([result.scores for result in results])

    return attribute


def _theirs(
    classifier: Classifier, texts: list[Encoded], against: Against
) -> Callable[[], np.ndarray]:
    inputs = collate(texts, int(classifier.tokenizer.pad_token_id)).inputs
    return lambda: against(classifier, inputs).detach().numpy()


def _free() -> int:
    return int(psutil.virtual_memory().available)


@cache
def _model(name: str) -> Classifier:
    if name == "minilm":
        return load_classifier("minilm", seed=0)
    shape = RANDOM_MODELS[name]
    config = BertConfig(
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.inner,
        max_position_embeddings=POSITIONS,
        num_labels=2,
        attn_implementation="eager",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = model_class("bert", "classify", "er")(config).eval()
    return Classifier(
        name,
        model,
        _model("minilm").tokenizer,
        task="classify",
        head="er",
        specials=True,
        max_length=POSITIONS,
    )


def random_texts(classifier: Classifier, length: int, count: int, seed: int = 0) -> list[Encoded]:
    """Texts of exactly so many tokens, specials included: words that are one piece each."""
    vocabulary = classifier.tokenizer.get_vocab()
    words = sorted(word for word in vocabulary if word.isascii() and word.isalpha())
    draw = np.random.default_rng(seed)
    n_words = length - classifier.tokenizer.num_special_tokens_to_add()
    return classifier.encode([list(draw.choice(words, n_words)) for _ in range(count)])


def _print_slopes(table: pd.DataFrame) -> None:
    """Exponents of the length between the measured cells: as timed, and as the formula has it."""
    if table.empty:
        return
    print("\nexponent of the length   measured  formula  lengths")
    timed = table[table["seconds"].notna()]
    for (name, method, batch), rows in timed.groupby(["model", "method", "batch"], sort=False):
        if len(rows) > 1:
            measured = slope(rows["length"], rows["seconds"])
            formula = slope(rows["length"], rows["gflop"])
            span = f"{rows['length'].min()} to {rows['length'].max()}"
            print(f"{name} {method} {batch}".ljust(44) + f"{measured:.2f}  {formula:.2f}  {span}")


def slope(lengths: Any, costs: Any) -> float:
    """Of the least-squares line through the logarithms."""
    return float(np.polyfit(np.log(lengths), np.log(costs), 1)[0])


def _line(cell: Cell) -> str:
    head = f"{cell.model:<14}{cell.method:<21}batch {cell.batch:<3}{cell.length:>5} tokens  "
    predicted = f"predicted {cell.predicted_seconds:8.3f} s {cell.predicted_mb:7.0f} MB"
    if math.isnan(cell.seconds):
        return f"{head}{predicted}  {cell.status}"
    measured = f"{cell.seconds:8.3f} s {cell.peak_mb:7.0f} MB {cell.share_of_peak:5.0%} of peak"
    line = f"{head}{measured}  ({predicted})"
    if math.isnan(cell.ratio):
        return line
    return (
        f"{line}  against {cell.against_seconds:.3f} s {cell.against_mb:.0f} MB: "
        f"{cell.ratio:.2f}x, difference {cell.difference:.0e}, r {cell.correlation:.4f}"
    )


def _erasure_line(options: argparse.Namespace) -> str:
    """The erasure evaluation beside a loop over methods that asks in batches, in CPU seconds: of
    one method and of six that people use; and of all methods with scores drawn at random, which
    agree on nothing, beside a pass for each input."""
    classifier = _model("minilm")
    draw = np.random.default_rng(0)
    lengths = draw.integers(8, 33, TEXTS)
    texts = [random_texts(classifier, int(n), 1, seed)[0] for seed, n in enumerate(lengths)]
    real = {
        method: [
            found.scores for found in attribute_encoded(classifier, texts, method, level="token")
        ]
        for method in SIX
    }
    few = {m: [draw.normal(size=len(t.tokens)) for t in texts[:SAMPLE]] for m in ATTRIBUTIONS}
    cases = (
        ("1 method", texts, {SIX[0]: real[SIX[0]]}, LOOP),
        (f"{len(SIX)} methods", texts, real, LOOP),
        (f"{len(few)} methods at random", texts[:SAMPLE], few, 1),
    )
    said = []
    for name, chosen, scores, size in cases:
        together, apart = timed_in_turn(
            [
                partial(faithfulness, classifier, chosen, scores, protocol="regex"),
                partial(one_by_one, classifier, chosen, scores, size=size),
            ],
            repeat=options.repeat,
        )
        kept, removed = apart.result
        difference = max(
            np.abs(together.result["p_kept"] - kept).max(),
            np.abs(together.result["p_removed"] - removed).max(),
        )
        how = f"batches of {size}" if size > 1 else "one pass each"
        said.append(
            f"erasure, {name}, {len(chosen)} texts, 5 bins, both metrics: "
            f"{together.cpu_seconds:.2f} s, {how} {apart.cpu_seconds:.2f} s: "
            f"{apart.cpu_seconds / together.cpu_seconds:.2f}x, difference {difference:.0e}"
        )
    return "\n".join(said)


def _explorer_line() -> str:
    """How long a sentence takes in the explorer, and which method alone takes longest."""
    waited = seconds_waited(_model("minilm"))
    together = waited.pop("default methods")
    slowest = max(waited, key=lambda method: waited[method])
    return (
        f"explorer, a sentence of {len(SENTENCE.split())} words: {together:.2f} s with the default "
        f"methods; of {len(waited)} methods alone, {slowest} takes longest, {waited[slowest]:.2f} s"
    )


@torch.no_grad()
def one_by_one(
    classifier: Classifier,
    texts: Sequence[Encoded],
    scores: Mapping[str, Sequence[np.ndarray]],
    size: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """p_kept and p_removed under the `regex` protocol, method after method, with a forward pass of
    the library's own model for every input, or for so many of them.

    In the order of `faithfulness`: methods, then texts, then bins.
    """
    rules, pad = PROTOCOLS["regex"], int(classifier.tokenizer.pad_token_id)
    library = plain(classifier, "embeddings").model

    def probabilities(asked: Sequence[Encoded]) -> np.ndarray:
        passes = [asked[i : i + size] for i in range(0, len(asked), size)]
        logits = [library(**collate(some, pad).inputs).logits for some in passes]
        return torch.cat(logits).double().softmax(-1).numpy()

    predicted = probabilities(texts).argmax(axis=-1)
    answers: list[np.ndarray] = []
    for arrays in scores.values():
        asked, labels = [], []
        for text, array, label in zip(texts, arrays, predicted, strict=True):
            special = np.array(text.special)
            order = np.argsort(np.where(special, np.inf, -array), kind="stable")
            for percent in rules.bins:
                chosen = np.zeros(len(order), dtype=bool)
                chosen[order[: rules.k(percent, text)]] = True
                for shown in (chosen | special, ~chosen | special):
                    ids = np.where(shown, text.input_ids, pad).tolist()
                    asked.append(replace(text, input_ids=ids))
                    labels.append(label)
        answers.append(probabilities(asked)[np.arange(len(asked)), labels])
    both = np.concatenate(answers)
    return both[0::2], both[1::2]


def _names(kind: str, listed: str, known: Sequence[str]) -> list[str]:
    names = listed.split(",")
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)
    return names


def _numbers(option: str, listed: str) -> list[int]:
    if not all(part.isdecimal() and int(part) for part in listed.split(",")):
        raise ValueError(f"--{option} takes whole numbers with commas, not '{listed}'")
    return [int(part) for part in listed.split(",")]


def _function(path: str) -> Against:
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"--against takes module:function; '{path}': {error}") from error
