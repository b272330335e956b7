"""Which tables are more than cells beside printed numbers?

Tables 1, 5 and 6 for reading and as numbers: the texts, the models and the two λ. And tests over
texts and seeds, which stand beside the verdicts: texts of one model are no independent runs.
"""

from __future__ import annotations

from math import ceil

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from erlib.data import load_data, report_or_none
from erlib.metrics.stats import holm, signed_rank_p
from erlib.papers.cells import Reading
from erlib.papers.holes import as_table, or_hole
from erlib.papers.report import beside_printed
from erlib.papers.saloss.cells import SHAPES, baseline_runs, chosen
from erlib.papers.saloss.systems import SALOSS, SHOWN, Task, power, recipe_of, tasks
from erlib.papers.study import Study
from erlib.reports.cells import Cell as Place
from erlib.reports.paper_numbers import paper_table
from erlib.training.notes import noted
from erlib.training.rows import rows_of, size_of

Table = tuple[pd.DataFrame, pd.DataFrame]  # for reading, and the numbers
SHOWN_SYSTEMS = {"SaLoss": "SaLoss (paper's λ)", "SaLoss, chosen λ": "SaLoss (chosen λ)"}
NAMES = {"ChiSquared": "χ²", "TFIDF": "TF-IDF"}  # where the table's own are hard to read
COLUMNS = {"avg_words": "words", "classes": "classes", "train": "train", "dev": "dev",
           "test": "test"}  # fmt: skip
PRINTED = {"encoder": "model", "lr": "lr_m", "lr of the head": "lr_c", "dev F1": "dev"}


def headings(study: Study) -> dict[str, str]:
    """The paper's set → with our corpus under it."""
    return {task.paper: task.heading for task in tasks(study.settings)}


def table_1(study: Study) -> Table:
    """Test F1-macro of Baseline and SaLoss, at the paper's λ and at the chosen one, and both λ."""
    made = beside_printed(
        study, study.of("table1"), "table1", metric="f1_macro", labels=headings(study)
    )
    best = chosen(study.settings, study.results)
    weights = {t.paper: (t.weight, best[t.corpus, SALOSS]) for t in tasks(study.settings)}
    wide, long = made.wide().rename(columns=SHOWN_SYSTEMS), made.long
    wide["λ"] = [f"paper's {power(a)}\nchosen {power(b)}" for a, b in weights.values()]
    place = {name: i for i, name in enumerate(SHOWN_SYSTEMS)}
    long["weight"] = [
        power(weights[row][place[column]]) if column in place else ""
        for row, column in zip(long["row"], long["column"], strict=True)
    ]
    return wide, long


@or_hole(lambda why: (as_table(why), as_table(why)))
@noted
def table_5(study: Study) -> Table:
    """The data: words per text, classes, and how many of the texts this profile uses."""
    shown, numbers = [], []
    for task in tasks(study.settings):
        if report_or_none(task.corpus, task.source) is None:
            continue
        sizes = recipe_of(study.settings, task)
        data = baseline_runs(study.settings, task)[0].data
        words: list[int] = []
        used: dict[str, float] = {}
        cells: dict[str, str] = {}
        for split in ("train", "dev", "test"):
            texts = rows_of(data, split, sizes.get(f"{split}_rows"))
            document = "words_a" if "words_a" in texts.column_names else "words"
            words += [len(w) for w in texts[document][:]]
            whole = len(load_data(task.corpus, split=split, source=task.source))
            used[split] = len(texts)
            cells[split] = f"{len(texts):,} of {whole:,}"
        used |= {"avg_words": float(np.mean(words)), "classes": len(texts.features["label"].names)}
        cells |= {"avg_words": f"{used['avg_words']:.0f}", "classes": f"{used['classes']}"}
        printed = {name: _printed("table5", task, name) for name in used}
        numbers += [
            {"set": task.paper, "corpus": task.corpus, "what": n, "ours": v, "paper": printed[n]}
            for n, v in used.items()
        ]
        beside = {COLUMNS[n]: f"{cells[n]}\npaper {int(printed[n]):,}" for n in COLUMNS}
        shown.append({"set": task.heading, **beside, "tokens at most": sizes["max_length"]})
    return pd.DataFrame(shown), pd.DataFrame(numbers)


def table_6(study: Study) -> Table:
    """Encoder, learning rates and development F1 of the Baselines."""
    rows = []
    for task in tasks(study.settings):
        runs = baseline_runs(study.settings, task)
        spec, optimiser = runs[0], runs[0].optimiser
        texts = size_of(spec.data, "train", spec.data.train_rows)
        f1 = pd.Series([study.value(run, "dev_f1_macro") for run in runs])
        layers = f", {spec.model.layers} layers" if spec.model.layers else ""
        rows.append(
            {
                "set": task.paper,
                "encoder": f"{spec.model.name}{layers}",
                "lr": power(optimiser.lr),
                "lr of the head": power(optimiser.head_lr or optimiser.lr),
                "batch": optimiser.batch_size,
                "epochs": optimiser.epochs,
                "steps": ceil(texts / optimiser.batch_size) * optimiser.epochs,
                "dev F1": f1.mean(),
                "std": f1.std(ddof=1),
            }
        )
    numbers = pd.DataFrame(rows)
    spread = [f" ± {s:.2f}" if np.isfinite(s) else "" for s in numbers["std"]]
    shown = numbers.drop(columns="std").assign(set=[t.heading for t in tasks(study.settings)])
    shown["dev F1"] = [f"{f:.2f}{s}" for f, s in zip(shown["dev F1"], spread, strict=True)]
    for column, cell in PRINTED.items():
        theirs = [_printed("table6", task, cell) for task in tasks(study.settings)]
        numbers[f"paper's {column}"] = theirs
        shown[column] = [f"{a}\npaper {b}" for a, b in zip(shown[column], theirs, strict=True)]
    return shown, numbers


def _printed(table: str, task: Task, column: str) -> str:
    cells = paper_table("saloss", table).set_index(["row", "column"])["printed"]
    return str(cells[task.paper, column])


def flip_labels(study: Study) -> dict[str, str]:
    """What a reader calls the rows and columns of Tables 2 and 8."""
    systems = {name: name for name in ("Baseline", "TextRank")} | SHOWN_SYSTEMS | NAMES
    rows = {
        f"{name}|{sign}": f"{said} {shown}"
        for name, said in systems.items()
        for sign, shown in SHOWN.items()
    }
    return rows | headings(study)


def _read(study: Study, table: str, row: str, column: str, metric: str) -> dict[int, Reading]:
    """By seed what was measured at a place; empty where nothing was."""
    return study.read(Place(table, row, column, metric)) or {}


def flip_tests(study: Study) -> pd.DataFrame:
    """p of SaLoss against Baseline over texts, and of either of them against a random order.

    SaLoss against Baseline by the paper's rank-sum test, and by signed-rank tests with Holm over
    all cells; against random by one-sided signed-rank tests. A text's fraction is its mean over
    seeds. `trained`: have all models of the set learnt it?
    """
    rows = []
    for task in tasks(study.settings):
        by_row = {
            row: _read(study, "table2", row, task.paper, "frac_tokens_to_flip")
            for row in ("Random", *(f"{s}|{a}" for s in ("Baseline", "SaLoss") for a in SHOWN))
        }
        trained = all(r.trained for of in by_row.values() for r in of.values())
        random = _text_means(by_row["Random"])
        for sign in SHOWN:
            a, b = (_text_means(by_row[f"{system}|{sign}"]) for system in ("Baseline", "SaLoss"))
            if a.size and b.size and random.size:
                rows.append(
                    {
                        "set": task.paper,
                        "texts": len(a),
                        "by": SHOWN[sign],
                        "Baseline": a.mean(),
                        "SaLoss": b.mean(),
                        "rank-sum": stats.ranksums(b, a).pvalue,
                        "signed-rank": signed_rank_p(b - a),
                        "Baseline\nunder random": signed_rank_p(a - random, "less"),
                        "SaLoss\nunder random": signed_rank_p(b - random, "less"),
                        "trained": "yes" if trained else "no",
                    }
                )
    table = pd.DataFrame(rows)
    table.insert(7, "Holm", holm(table["signed-rank"]))
    return table


def _text_means(of: dict[int, Reading]) -> NDArray[np.float64]:
    """[text] mean over the seeds; empty without any."""
    return np.mean([np.asarray(r.texts) for r in of.values()], axis=0) if of else np.empty(0)


def fresh_tests(study: Study) -> pd.DataFrame:
    """The paper's t-test over seeds of TextRank against Baseline rationales, in both shapes.

    `trained`: have all these classifiers and their supports learnt the task?
    """
    rows = []
    for task in tasks(study.settings):
        for shape, (table, metric) in SHAPES.items():
            a, b = (
                _read(study, table, task.paper, column, metric)
                for column in ("Baseline", "SaLoss-TextRank")
            )
            if not (a and b):
                continue
            x, y = (np.array([r.value for r in of.values()]) for of in (a, b))
            tested = len(x) > 1 and np.ptp([*x, *y]) > 0
            trained = all(r.trained for of in (a, b) for r in of.values())
            rows.append(
                {
                    "set": task.paper,
                    "shape": shape.replace("_", "-"),
                    "Baseline": x.mean(),
                    "SaLoss": y.mean(),
                    "difference": y.mean() - x.mean(),
                    "t-test p": stats.ttest_ind(y, x).pvalue if tested else np.nan,
                    "seeds": len(x),
                    "trained": "yes" if trained else "no",
                }
            )
    return pd.DataFrame(rows)
