"""Which numbers stand in the paper's tables?

Every function starts from the results of the grid (`carry_out`). A table that is shown in another
form than it is kept in comes as a pair: for reading, and the numbers behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from erlib.data import load_data
from erlib.metrics.stats import holm, signed_rank_p
from erlib.papers.holes import as_table, measured_rows, or_hole
from erlib.papers.saloss.stages import chosen, not_trained
from erlib.papers.saloss.systems import (
    ATTRIBUTIONS,
    BASELINE,
    CHOSEN,
    SALOSS,
    Task,
    recipe_of,
    row_of,
    run_spec,
    task_of,
    tasks,
)
from erlib.parameters import Settings
from erlib.reports.paper_numbers import beside, paper_table
from erlib.training.evaluating import per_text
from erlib.training.notes import noted
from erlib.training.rows import rows_of, size_of
from erlib.training.stages import Results

SIGNS = {method: sign for sign, method in ATTRIBUTIONS.items()} | {"random": "random"}
SHOWN = {"a": "α", "xGx": "x∇x", "aGa": "α∇α", "IG": "IG"}
FUNCTIONS = (SALOSS, "ChiSquared", "TFIDF")  # the blocks of Table 8
Table = tuple[pd.DataFrame, pd.DataFrame]  # for reading, and the numbers


def measured(settings: Settings, results: Results) -> pd.DataFrame:
    """The measurements with what their descriptions say in columns of their own.

    `shape` and `order` are those of a FRESH classifier's rationales, empty for support models.
    `trained`: have the model, and a FRESH classifier's support, learnt their task?
    """
    table, weak = measured_rows(results["measurements"]), not_trained(results)
    rows = []
    for spec in table["spec"]:
        extract = spec.run.data.extract
        rows.append(
            {
                "set": task_of(settings, spec.run).paper,
                "system": row_of(settings, spec.run),
                "sign": SIGNS.get(spec.method, ""),
                "protocol": spec.protocol or "",
                "shape": extract.shape if extract else "",
                "order": extract.order if extract else "",
                "trained": spec.run not in weak,
            }
        )
    found = pd.DataFrame(rows, index=table.index)
    return pd.concat([found, table.drop(columns=[c for c in found if c in table])], axis=1)


def power(weight: float) -> str:
    """A power of ten as the paper writes it: 1e-3."""
    return f"{weight:.0e}".replace("e-0", "e-").replace("e+00", "")


# --- task performance and decision flips ----------------------------------------------------------


def table_1(settings: Settings, results: Results) -> Table:
    """Test F1-macro on full texts of Baseline and SaLoss, at the paper's λ and at the chosen."""
    found = measured(settings, results).query("kind == 'predictions' and shape == ''")
    found = _at_both_weights(settings, results, found)
    found = found[found["system"].isin(BOTH_WEIGHTS)]
    wide, long = _f1(settings, found, "table1", BOTH_WEIGHTS, "f1_macro")
    best = chosen(settings, results)
    weights = {t.paper: (t.weight, best[t.corpus, SALOSS]) for t in tasks(settings)}
    wide["λ"] = [f"paper's {power(a)}\nchosen {power(b)}" for a, b in weights.values()]
    place = {BOTH_WEIGHTS[SALOSS]: 0, BOTH_WEIGHTS[CHOSEN]: 1}
    long["weight"] = [
        power(weights[row][place[column]]) if column in place else ""
        for row, column in zip(long["row"], long["column"], strict=True)
    ]
    return wide.rename(columns=SHOWN_SYSTEMS), long


def table_2(settings: Settings, results: Results) -> Table:
    """Fraction of tokens to flip the decision, by attribution, for Baseline and SaLoss."""
    return _fractions(settings, results, "table2", BOTH_WEIGHTS)


def table_8(settings: Settings, results: Results) -> Table:
    """Table 2 with other salience functions in SaLoss."""
    return _fractions(settings, results, "table8", {name: name for name in FUNCTIONS})


def fractions(settings: Settings, results: Results) -> pd.DataFrame:
    """Flip fractions on test texts by the paper's own way of removing and ranking."""
    return measured(settings, results).query("kind == 'flips' and protocol == ''")


# system → its name in the paper's tables, and one for SaLoss at the λ that we chose
BOTH_WEIGHTS = {BASELINE: "Baseline", SALOSS: "SaLoss", CHOSEN: "SaLoss, chosen λ"}
SHOWN_SYSTEMS = {"SaLoss": "SaLoss (paper's λ)", "SaLoss, chosen λ": "SaLoss (chosen λ)"}
NAMES = {"ChiSquared": "χ²", "TFIDF": "TF-IDF"}  # where the tables' own are hard to read


def _at_both_weights(settings: Settings, results: Results, found: pd.DataFrame) -> pd.DataFrame:
    """With SaLoss at the paper's λ as that at the chosen one too, where they are the same."""
    best = chosen(settings, results)
    same = [t.paper for t in tasks(settings) if best[t.corpus, SALOSS] == t.weight]
    shared = found[(found["system"] == SALOSS) & found["set"].isin(same)]
    return pd.concat([found, shared.assign(system=CHOSEN)])


def _fractions(
    settings: Settings, results: Results, table: str, systems: Mapping[str, str]
) -> Table:
    found = _at_both_weights(settings, results, fractions(settings, results))
    random = found[(found["sign"] == "random") & (found["system"] == BASELINE)].assign(row="Random")
    found = found[found["system"].isin(systems) & (found["sign"] != "random")]
    found = found.assign(row=found["system"].map(systems) + "|" + found["sign"])
    ours = pd.concat([random, found]).assign(column=lambda f: f["set"], value=lambda f: f.fraction)
    made = beside(_remarked(ours), "saloss", table)
    rows = {
        f"{name}|{sign}": f"{(SHOWN_SYSTEMS | NAMES).get(name, name)} {shown}"
        for name in systems.values()
        for sign, shown in SHOWN.items()
    }
    headings = {task.paper: task.heading for task in tasks(settings)}
    return made.wide().rename(index=rows, columns=headings), made.long


def _remarked(found: pd.DataFrame) -> pd.DataFrame:
    """row, column and value of each seed, with a remark in cells whose models are not trained."""
    cells = found.groupby(["row", "column"])["trained"]
    weak, n = cells.transform(lambda t: (~t).sum()), cells.transform("size")
    partly = weak.astype(str) + " of " + n.astype(str) + " not trained"
    remark = partly.mask(weak == n, "not trained").mask(weak == 0, "")
    return found.assign(remark=remark)[["row", "column", "value", "remark"]]


def flip_tests(settings: Settings, results: Results) -> pd.DataFrame:
    """p of SaLoss against Baseline over texts, and of either of them against a random order.

    SaLoss against Baseline by the paper's rank-sum test, and by signed-rank tests with Holm over
    all cells; against random by one-sided signed-rank tests. A text's fraction is its mean over
    seeds. Texts of one model are no independent runs: these stand beside the verdicts, which are
    made from seeds. `trained`: have all models of the set learnt it?
    """
    found, rows = fractions(settings, results), []

    def means(task: Task, system: str, sign: str) -> np.ndarray:
        cell = (found["set"] == task.paper) & (found["system"] == system) & (found["sign"] == sign)
        return _text_means(settings, found.loc[cell, "spec"])

    for task in tasks(settings):
        random = means(task, BASELINE, "random")
        if not random.size:
            continue
        compared = (found["set"] == task.paper) & found["system"].isin([BASELINE, SALOSS])
        trained = "yes" if found.loc[compared, "trained"].all() else "no"
        for sign in ATTRIBUTIONS:
            a, b = (means(task, system, sign) for system in (BASELINE, SALOSS))
            if not (a.size and b.size):
                continue
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
                    "trained": trained,
                }
            )
    table = pd.DataFrame(rows)
    table.insert(7, "Holm", holm(table["signed-rank"]))
    return table


def _text_means(settings: Settings, specs: Sequence[Any]) -> np.ndarray:
    """[text] mean over the runs of `specs`; empty without any."""
    found = [per_text(s, store=settings.store)["fraction"] for s in specs]
    return np.mean(found, axis=0) if found else np.empty(0)


# --- FRESH ----------------------------------------------------------------------------------------


def fresh(settings: Settings, results: Results) -> pd.DataFrame:
    """F1 of the FRESH classifiers on test rationales, words in the text's order."""
    return measured(settings, results).query("shape != '' and order == 'document'")


def table_3(settings: Settings, results: Results) -> Table:
    """FRESH with the best words by attention, wherever they stand."""
    return _fresh(settings, results, "table3", "top_k", "f1_macro_topk_alpha")


def table_7(settings: Settings, results: Results) -> Table:
    """FRESH with the best window of words by attention."""
    return _fresh(settings, results, "table7", "contiguous", "f1_macro_contiguous_alpha")


FRESH_COLUMNS = {BASELINE: "Baseline", SALOSS: "SaLoss-TextRank", "Uniform": "SaLoss-Uniform"}


def _fresh(settings: Settings, results: Results, table: str, shape: str, metric: str) -> Table:
    found = fresh(settings, results)
    return _f1(settings, found[found["shape"] == shape], table, FRESH_COLUMNS, metric)


def fresh_tests(settings: Settings, results: Results) -> pd.DataFrame:
    """The paper's t-test over seeds of TextRank against Baseline rationales, in both shapes.

    `trained`: have all these classifiers and their supports learnt the task?
    """
    found, rows = fresh(settings, results), []
    for task in tasks(settings):
        for shape, cells in found[found["set"] == task.paper].groupby("shape", sort=False):
            a, b = (
                cells.loc[cells["system"] == s].sort_values("seed")["f1_macro"].to_numpy()
                for s in (BASELINE, SALOSS)
            )
            if not (a.size and b.size):
                continue
            p = stats.ttest_ind(b, a).pvalue if len(a) > 1 and np.ptp([*a, *b]) else np.nan
            difference = b.mean() - a.mean()
            row = {"set": task.paper, "shape": shape.replace("_", "-"), "Baseline": a.mean()}
            row |= {"SaLoss": b.mean(), "difference": difference, "t-test p": p, "seeds": len(a)}
            compared = cells.loc[cells["system"].isin([BASELINE, SALOSS]), "trained"]
            rows.append(row | {"trained": "yes" if compared.all() else "no"})
    return pd.DataFrame(rows)


def _f1(
    settings: Settings, found: pd.DataFrame, table: str, columns: dict[str, str], metric: str
) -> Table:
    """F1 by set and system beside the paper's, with the corpus under the name of the set."""
    ours = found.assign(row=found["set"], column=found["system"].map(columns))
    made = beside(_remarked(ours.assign(value=ours["f1_macro"])), "saloss", table, metric=metric)
    wide = made.wide().rename(index={task.paper: task.heading for task in tasks(settings)})
    return wide, made.long


# --- data and hyper-parameters --------------------------------------------------------------------


@or_hole(lambda why: (as_table(why), as_table(why)))
@noted
def table_5(settings: Settings) -> Table:
    """The data: words per text, classes, and how many of the texts this profile uses."""
    shown, numbers = [], []
    for task in tasks(settings):
        sizes = recipe_of(settings, task)
        data = run_spec(settings, task, BASELINE, settings.seeds[0]).data
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
        shown.append(
            {
                "set": task.heading,
                **{_TABLE_5[n]: f"{cells[n]}\npaper {int(printed[n]):,}" for n in _TABLE_5},
                "tokens at most": sizes["max_length"],
            }
        )
    return pd.DataFrame(shown), pd.DataFrame(numbers)


_TABLE_5 = {
    "avg_words": "words",
    "classes": "classes",
    "train": "train",
    "dev": "dev",
    "test": "test",
}


def table_6(settings: Settings, results: Results) -> Table:
    """Encoder, learning rates and development F1 of the Baselines."""
    runs, rows = results["baselines"], []
    for task in tasks(settings):
        spec = run_spec(settings, task, BASELINE, settings.seeds[0])
        optimiser, texts = spec.optimiser, size_of(spec.data, "train", spec.data.train_rows)
        f1 = runs.loc[[task_of(settings, s) == task for s in runs["spec"]], "dev_f1_macro"]
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
    shown = numbers.drop(columns="std").assign(set=[t.heading for t in tasks(settings)])
    shown["dev F1"] = [f"{f:.2f}{s}" for f, s in zip(shown["dev F1"], spread, strict=True)]
    printed = {"encoder": "model", "lr": "lr_m", "lr of the head": "lr_c", "dev F1": "dev"}
    for column, cell in printed.items():
        theirs = [_printed("table6", task, cell) for task in tasks(settings)]
        numbers[f"paper's {column}"] = theirs
        shown[column] = [f"{a}\npaper {b}" for a, b in zip(shown[column], theirs, strict=True)]
    return shown, numbers


def _printed(table: str, task: Task, column: str) -> str:
    cells = paper_table("saloss", table).set_index(["row", "column"])["printed"]
    return str(cells[task.paper, column])
