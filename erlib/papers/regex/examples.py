"""Which words do the two systems call important in the same texts? (Table 5)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from erlib.attributions import Attribution, attribute_encoded
from erlib.metrics.ranking import at_least_one, best_first
from erlib.papers.holes import as_table, as_text, or_hole
from erlib.papers.regex.systems import MAIN, data_spec, main_run, sets
from erlib.papers.study import Study
from erlib.reports import heatmap
from erlib.reports.markup import Html
from erlib.training.kinds.predictions import predict
from erlib.training.rows import rows_of

LOOKED_AT = 40  # texts of the test split among which examples are chosen
SHOWN = 10  # per cent of the words that are listed
QUOTED = 50  # words of a text that are coloured


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
