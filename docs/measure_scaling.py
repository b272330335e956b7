"""What does more of everything cost? Larger models, longer texts, more texts, more runs.

`python docs/measure_scaling.py` measures on one thread and writes scaling.csv: seconds of CPU time,
so that other work on the machine disturbs them little, and the memory that stays.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import psutil
import torch
from datasets import Dataset
from transformers import BertConfig, BertForSequenceClassification

from erlib.config import DataSpec, EvalSpec, RunSpec, term
from erlib.losses import Step, Weighted
from erlib.models import Classifier, load_classifier
from erlib.training.identity import eval_hash
from erlib.training.making import with_origins
from erlib.training.store import Store
from erlib.training.workers import forks, side_by_side

FILE, PAGE = (Path(__file__).parent / f"scaling.{kind}" for kind in ("csv", "md"))
TITLES = {
    "step": "a training step with joint guidance, 2 texts",
    "encoding": "a corpus as a run holds it",
    "names": "names of runs and evaluations",
    "order": "handing out tasks",
    "seals": "sealing results",
    "checks": "finding results, checksums compared",
}
SHAPES = {"MiniLM": (6, 384), "BERT-base": (12, 768), "BERT-large": (24, 1024)}
LENGTHS, BATCH = (64, 128, 256, 512), 2
TEXTS, WORDS = (1_000, 10_000), 20
RUNS = (100, 1_000)
Row = tuple[str, str, float, float, float]


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of CPU, and megabytes that stay."""
    us = psutil.Process()
    before, began = us.memory_info().rss, time.process_time()
    kept = work()
    seconds = time.process_time() - began
    grown = (us.memory_info().rss - before) / 1e6
    del kept
    return seconds, grown


def model(layers: int, width: int) -> Classifier:
    """A random BERT of this shape, with MiniLM's tokenizer."""
    spoken = load_classifier("minilm", num_labels=2).tokenizer
    config = BertConfig(
        vocab_size=len(spoken),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
        pad_token_id=spoken.pad_token_id,
    )
    with tempfile.TemporaryDirectory() as folder:
        BertForSequenceClassification(config).save_pretrained(folder)
        spoken.save_pretrained(folder)
        return load_classifier(folder, num_labels=2, head="er")


def steps() -> Iterator[Row]:
    """A training step of the task with joint guidance of attention, and its gradient."""
    loss = Weighted((term("task"), term("explanation", 1.0, guide="attention")))
    for name, shape in SHAPES.items():
        made = model(*shape)
        parameters = sum(p.numel() for p in made.model.parameters())
        for length in LENGTHS if name == "MiniLM" else LENGTHS[1:2]:
            rows = corpus(BATCH, length)

            def step(rows: Dataset = rows, length: int = length, made: Classifier = made) -> None:
                texts = made.encode(rows, max_length=length)
                loss.loss(Step(made, made.batch(texts)))["loss"].backward()

            step()
            yield "step", f"{name}, {length} tokens", parameters, *spent(step)


def corpus(texts: int, words: int) -> Dataset:
    """Made-up texts with rationales."""
    row = {"words": ["film"] * words, "rationale": [0] * (words - 1) + [1], "label": 0}
    rows = [{"id": str(i), **row} for i in range(texts)]
    return Dataset.from_list(rows)


def encoding() -> Iterator[Row]:
    """A corpus as a run holds it: encoded once, all of it in memory."""
    made = load_classifier("minilm", num_labels=2)
    for texts in TEXTS:
        rows = corpus(texts, WORDS)
        seconds, grown = spent(lambda rows=rows: made.encode(rows, max_length=128))
        yield "encoding", f"{texts} texts of {WORDS} words", texts, seconds, grown


def bookkeeping() -> Iterator[Row]:
    """What a grid costs beside its work: names, order, locks and seals."""
    first = RunSpec(DataSpec("movie_snippets", train_rows=64, dev_rows=16))
    eval_hash(EvalSpec(first, first.data, "test", "predictions", 16))  # its rows are read once
    for runs in RUNS:
        specs = [first.with_seed(seed) for seed in range(runs)]

        def named(specs: list[RunSpec] = specs) -> list[str]:
            return [
                eval_hash(EvalSpec(spec, replace(spec.data), "test", "predictions", 16))
                for spec in with_origins(specs)
            ]

        yield "names", f"{runs} runs, an evaluation each", runs, *spent(named)

        def done(runs: int = runs) -> None:
            after = [{i - 1} if i % 2 else () for i in range(runs)]
            side_by_side(
                lambda task, tell: tell(task), range(runs), forks(2), print_nothing, after,
                killed=print,
            )  # fmt: skip

        yield "order", f"{runs} tasks for 2 workers", runs, *spent(done)
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))

            def sealed(store: Store = store, runs: int = runs) -> None:
                for i in range(runs):
                    store.make("evals", f"{i:016x}", leave_little)

            yield "seals", f"{runs} results", runs, *spent(sealed)
            again = Store(Path(folder))

            def found(again: Store = again, runs: int = runs) -> None:
                for i in range(runs):
                    again.get("evals", f"{i:016x}")

            yield "checks", f"{runs} results", runs, *spent(found)


def print_nothing(*_: object) -> None:
    """Nobody listens."""


def leave_little(folder: Path) -> str:
    """A result of a few kilobytes."""
    for name in ("spec.json", "summary.json", "provenance.json"):
        (folder / name).write_text("{}" * 1000, encoding="utf-8")
    return "done"


def main() -> None:
    """All curves, or those that are named."""
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    chosen = sys.argv[1:] or ["steps", "encoding", "bookkeeping"]
    rows = [row for name in chosen for row in globals()[name]()]
    columns = ["curve", "what", "size", "cpu_seconds", "megabytes"]
    table = pd.DataFrame(rows, columns=columns).round({"cpu_seconds": 3, "megabytes": 1})
    if FILE.exists():
        old = pd.read_csv(FILE)
        table = pd.concat([old[~old["curve"].isin(table["curve"])], table])
    table.to_csv(FILE, index=False)
    before, rest = PAGE.read_text().split("<!-- table -->")
    shown = f"<!-- table -->\n\n{page_table(table)}\n\n<!-- end -->"
    PAGE.write_text(before + shown + rest.split("<!-- end -->")[1])


def page_table(rows: pd.DataFrame) -> str:
    """As the page has it."""
    lines = ["| what | | CPU seconds | memory that stays |", "|---|---|---|---|"]
    for row in rows.itertuples():
        memory = f"{row.megabytes:.0f} MB" if row.curve == "encoding" else ""
        lines.append(f"| {TITLES[row.curve]} | {row.what} | {row.cpu_seconds:.2f} | {memory} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
