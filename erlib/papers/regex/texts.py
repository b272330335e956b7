"""Which texts do the models see, and which words of single ones do they call important?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from erlib.attributions import Attribution, attribute_encoded
from erlib.data import load_data, truncated_share
from erlib.data.absent import MissingCorpus
from erlib.metrics.ranking import at_least_one, best_first
from erlib.models import load_classifier
from erlib.papers.holes import as_table, as_text, or_hole
from erlib.papers.regex.evaluations import WORDS
from erlib.papers.regex.systems import MAIN, RATIO, SYMBOLS, data_spec, main_run, run_spec, sets
from erlib.papers.study import Study
from erlib.reports import heatmap, paper_table
from erlib.reports.markup import Html
from erlib.training.kinds.predictions import predict
from erlib.training.notes import noted
from erlib.training.rows import rows_of

LOOKED_AT = 40  # texts of the test split among which examples are chosen
SHOWN = 10  # per cent of the words that are listed
QUOTED = 50  # words of a text that are coloured


@or_hole(as_table)
@noted
def table_data(study: Study) -> pd.DataFrame:
    """The six sets as the models see them."""
    settings = study.settings
    classifier = load_classifier(settings.grid["model"]["name"])
    rows = []
    for this in sets(settings).values():
        data = run_spec(settings, "Baseline", this.paper, settings.seeds[0]).data
        tested = settings.grid.get("test_rows", {}).get("core" if this.paper == "SST" else "wide")
        for split, count in (("train", data.train_rows), ("test", tested)):
            try:
                used = rows_of(data, split, count)
            except MissingCorpus:
                continue
            texts = classifier.encode(used, max_length=data.max_length)
            shares = np.bincount([t.label or 0 for t in texts]) / len(texts)
            names = used.features["label"].names
            rows.append(
                {
                    "stands for": this.paper,
                    "set": f"{this.corpus} {split}",
                    "texts": len(texts),
                    "of": len(load_data(this.corpus, split=split, source=data.source)),
                    "classes": ", ".join(f"{n} {100 * s:.0f} %"
                                         for n, s in zip(names, shares, strict=False)),
                    "mean length": np.mean([len(t.input_ids) for t in texts]),
                    "% cut": 100 * truncated_share(texts),
                    "rationale, % of words": RATIO[this.paper],
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def labels(study: Study) -> dict[str, str]:
    """Row, column or metric of the tables → what stands for it in the report."""
    printed = [row for table in study.paper.tables() for row in paper_table("regex", table)["row"]]
    rows = {row: row.replace("->", " → ").replace("|", ", ") for row in printed}
    return {**rows, **WORDS, **SYMBOLS}


@or_hole(lambda why: (as_text(why), as_table(why)))
def table_5(study: Study) -> tuple[Html, pd.DataFrame]:
    """DeepLIFT by word in the beginning of a held-out IMDB text of each class, REGEX above the
    Baseline; and the best words of both."""
    settings = study.settings
    imdb, seed = sets(settings)["IMDB"], settings.seeds[0]
    data = data_spec(settings, imdb)
    rows = rows_of(data, "test", LOOKED_AT)
    classifiers = {s: study.model(main_run(settings, s, "IMDB", seed)) for s in MAIN}
    texts = classifiers["REGEX"].encode(rows, max_length=data.max_length)
    answers = {s: predict(c, texts)["predicted"].tolist() for s, c in classifiers.items()}
    chosen = one_of_each_class(rows["label"][:], list(answers.values()))
    shown = [texts[i] for i in chosen]
    scores = {
        s: attribute_encoded(c, shown, "deeplift", variant="regex") for s, c in classifiers.items()
    }
    names, lines, titles, table = rows.features["label"].names, [], [], []
    for place, i in enumerate(chosen):
        for system in reversed(MAIN):
            scored = scores[system][place]
            gold, answer = names[rows[i]["label"]], names[answers[system][i]]
            lines.append(
                replace(scored, tokens=scored.tokens[:QUOTED], scores=scored.scores[:QUOTED])
            )
            titles.append(f"{system} (gold {gold}, predicted {answer})")
            best = ", ".join(_best_words(scored))
            table.append({"text": rows[i]["id"], "gold": gold, "system": system,
                          "predicted": answer, "best words": best})  # fmt: skip
    return heatmap(lines, titles=titles), pd.DataFrame(table)


def one_of_each_class(labels: Sequence[int], answers: Sequence[Sequence[int]]) -> list[int]:
    """For each class its first text that all systems classify correctly, or else as many as do."""
    right = [sum(a[i] == label for a in answers) for i, label in enumerate(labels)]
    return [
        max((i for i, label in enumerate(labels) if label == c), key=right.__getitem__)
        for c in sorted(set(labels))
    ]


def _best_words(scored: Attribution) -> list[str]:
    k = at_least_one(SHOWN, len(scored.scores))
    return [scored.tokens[i] for i in best_first(scored.scores)[:k]]
