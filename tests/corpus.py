"""A tiny local corpus with rationales, for tests that train: `write(folder)` then ERLIB_DATA."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

WORDS = {0: ["dull", "bad", "worst", "hated"], 1: ["great", "funny", "best", "liked"]}
FILLER = ["the", "plot", "film", "acting", "story", "is", "and", "music"]
SIZES = {"train": 48, "dev": 16, "test": 16}


def write(folder: Path) -> None:
    """`movies` under `folder`: texts whose label hangs on one word, which is the rationale."""
    rng = random.Random(0)
    for split, size in SIZES.items():
        (folder / "movies").mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / "movies" / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            for i in range(size):
                label = i % 2
                tokens = rng.choices(FILLER, k=rng.randint(3, 8))
                place = rng.randrange(len(tokens))
                tokens[place] = rng.choice(WORDS[label])
                row = {
                    "id": f"{split}-{i}",
                    "text": " ".join(tokens),
                    "tokens": tokens,
                    "label": label,
                    "rationale": [int(t == place) for t in range(len(tokens))],
                }
                file.write(json.dumps(row) + "\n")
