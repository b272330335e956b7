"""Does it matter in which precision a system is trained? One system for each family of losses.

`python docs/measure_precision.py` trains each with three seeds in fp32 and in bf16, measures on one
thread and writes precision.csv, and the table of precision.md. What the store has is not trained
again; `python docs/measure_precision.py tying pilot` does only these and keeps the other lines.

The rule, written before any of it was measured. A family may be trained in bf16 if

1. the mean |Δp| on held-out texts between the precisions at equal seed is at most a tenth of that
   between seeds in fp32, p being the probability of class 1, and
2. the attributions of both precisions (attention and input × gradient, for the pilot also its
   learned attention) correlate with r ≥ .99: Pearson's r over a text's words, mean over texts and
   seeds.

Else it stays in fp32 in every profile.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
import torch

import erlib
from erlib.config import DataSpec, EvalSpec, RunSpec
from erlib.losses import Step
from erlib.models import load_classifier
from erlib.models.learned_attention import calibrate
from erlib.models.precision import training_in
from erlib.papers.agreement import systems as agreement
from erlib.papers.er_lens import systems as er_lens
from erlib.papers.ivra import systems as ivra
from erlib.papers.regex import systems as regex
from erlib.papers.saloss import systems as saloss
from erlib.parameters import Settings, check_parameters
from erlib.training.evaluating import per_text
from erlib.training.rows import rows_of
from erlib.training.updates import make_update
from erlib.training.vanishing import Watched

HERE = Path(__file__).parent
FILE = HERE / "precision.csv"
DATA = DataSpec("movie_snippets", max_length=32, train_rows=1600, dev_rows=200)
BATCH, EPOCHS = 16, 2
HELD_OUT, TEXTS = replace(DATA, train_rows=None, dev_rows=None), 200
SEEDS = (0, 1, 2)
PRECISIONS = ("fp32", "bf16")
STEPS, TIMED_BATCH, TIMED_LENGTH = 5, 32, 64  # timed in each precision, and on what
SHARE, CORRELATION = 0.1, 0.99  # the rule
Pair = tuple[RunSpec, RunSpec]
COLUMNS = ["family", "quantity", "precisions", "seeds", "fp32", "bf16"]


def settings(paper: str) -> Settings:
    """The paper as the cpu profile has it, but for the sizes."""
    return check_parameters(paper, {"profile": "cpu", "executor": "local"})


def er(system: str, seed: int) -> RunSpec:
    """ER lens; the constrained system with the bounds that the first seed's L_expl runs give."""
    these, bounds = settings("er_lens"), None
    if er_lens.SYSTEMS[system].mode == "constrained":
        alone = sized(er_lens.run_spec(these, "Lexpl(A)", SEEDS[0]))
        bounds = er_lens.bounds_of(erlib.run([alone]), "ATT")
    return er_lens.run_spec(these, system, seed, bounds)


def regex_spec(seed: int) -> RunSpec:
    """REGEX, from a Baseline; with a guide for every batch, so that its cost is in the step."""
    system = replace(regex.SYSTEMS["REGEX"], refreshed="batch")
    return regex.run_spec(settings("regex"), system, "SST", seed, wide=True)


def pilot(seed: int) -> RunSpec:
    """SIM with sparsemax, from a Baseline."""
    these = settings("ivra")
    return ivra.trained(ivra.core(these), ivra.System(("SIM",)), seed)


def salience(seed: int) -> RunSpec:
    """SaLoss at the paper's λ for SST."""
    these = settings("saloss")
    task = next(t for t in saloss.tasks(these) if t.role == "sentences")
    return saloss.run_spec(these, task, saloss.SALOSS, seed, task.weight)


def tying(seed: int) -> RunSpec:
    """Tying on the Transformer."""
    these = settings("agreement")
    system = agreement.System("DBERT", agreement.task_named(these, "SST"), "Tying")
    return agreement.run_spec(these, system, seed, 0.01)


FAMILIES: dict[str, Callable[[int], RunSpec]] = {
    "task": partial(er, "Baseline"),
    "attention": partial(er, "ER+Att"),
    "gradient": partial(er, "ER+IxG"),
    "constrained": partial(er, "ER-C+Att"),
    "tying": tying,
    "salience": salience,
    "pilot": pilot,
    "regex": regex_spec,
}
ROWS = {"pilot": 800, "regex": 400}  # a step takes 6 and 15 times as long as the task's


def sized(spec: RunSpec, precision: str = "fp32", rows: int | None = DATA.train_rows) -> RunSpec:
    """The same system at the sizes above; what it starts from is trained in the same precision.

    SaLoss keeps its batches of 8: its loss is the square of a sum over them.
    """
    optimiser = replace(
        spec.optimiser,
        lr=1e-4,
        epochs=1 if spec.start else EPOCHS,
        batch_size=spec.optimiser.batch_size if has(spec, "salience") else BATCH,
        precision=precision,
    )
    return replace(
        spec,
        data=replace(DATA, train_rows=rows),
        optimiser=optimiser,
        each_epoch=(),
        start=sized(spec.start, precision) if spec.start else None,
    )


def has(spec: RunSpec, term: str) -> bool:
    """Is there such a term in the objective?"""
    return any(t.name == term for t in spec.objective)


def seconds_per_step(spec: RunSpec) -> dict[str, float]:
    """CPU time of a training step by precision: medians of steps on the same batches in turn."""
    size = spec.optimiser.batch_size if has(spec, "salience") else TIMED_BATCH
    rows = rows_of(spec.data, "train", STEPS * size)
    arms = {}
    for precision in PRECISIONS:
        model = spec.model
        classifier = load_classifier(
            model.name, num_labels=label_count(spec), head=model.head, specials=model.specials,
            layers=model.layers, seed=spec.seed, explainer=model.explainer,
        )  # fmt: skip
        texts = classifier.encode(rows, max_length=TIMED_LENGTH)
        batches = [classifier.batch(texts[i : i + size]) for i in range(0, len(texts), size)]
        calibrate(classifier, batches[0].inputs)
        objective = Watched(spec.objective, dict(spec.update.options).get("term"))
        objective.fit(texts)
        arms[precision] = classifier.train(), objective, make_update(spec, classifier, 100), batches
    times: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    for number in range(STEPS):
        for precision, (classifier, objective, update, batches) in arms.items():
            step, begun = Step(classifier, batches[number]), time.process_time()
            with training_in(precision, "cpu"):
                update.apply(objective, step, number)
            times[precision].append(time.process_time() - begun)
    return {precision: median(all_[1:]) for precision, all_ in times.items()}  # the first warms up


def label_count(spec: RunSpec) -> int:
    """One logit for Agreement's head, two for the others."""
    return 1 if spec.model.head == "agreement" else 2


def probabilities(spec: RunSpec) -> np.ndarray:
    """p of class 1, for each held-out text."""
    return per_text(EvalSpec(spec, HELD_OUT, "test", "predictions", TEXTS))["p1"].to_numpy()


def scores(method: str, spec: RunSpec) -> list[np.ndarray]:
    """An attribution of the gold class by word, for each held-out text."""
    asked = EvalSpec(
        spec, HELD_OUT, "test", "attributions", TEXTS, method, target="gold", level="word"
    )
    return [np.array(s) for s in per_text(asked)["scores"]]


def moved(pair: Pair) -> float:
    """Mean |Δp|."""
    return float(np.abs(probabilities(pair[0]) - probabilities(pair[1])).mean())


def alike(method: str, pair: Pair) -> float:
    """Mean over texts of Pearson's r over words; without texts of two words or constant scores."""
    both = zip(scores(method, pair[0]), scores(method, pair[1]), strict=True)
    told = [(a, b) for a, b in both if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0]
    return float(np.mean([np.corrcoef(a, b)[0, 1] for a, b in told]))


def measured(family: str, earlier: pd.DataFrame) -> pd.DataFrame:
    """One line per quantity: between precisions, between seeds, and its value in each precision.

    A step that was timed `earlier` is not timed again.
    """
    make, rows = FAMILIES[family], ROWS.get(family, DATA.train_rows)
    specs = {p: [sized(make(seed), p, rows) for seed in SEEDS] for p in PRECISIONS}
    timed = earlier.query("family == @family and quantity == 'seconds per step'")
    seconds = timed.iloc[0][list(PRECISIONS)] if len(timed) else seconds_per_step(specs["fp32"][0])
    lines: list[dict[str, object]] = [{"quantity": "seconds per step", **seconds}]
    runs = erlib.run([s for both in specs.values() for s in both])
    runs = runs[runs["replaces"].isna()].set_index("spec")
    done = runs["status"] == "done"
    lines.append({"quantity": "kept", **{p: done[specs[p]].mean() for p in PRECISIONS}})
    across = [(a, b) for a, b in zip(*specs.values(), strict=True) if done[a] and done[b]]
    within = [(a, b) for a, b in combinations(specs["fp32"], 2) if done[a] and done[b]]
    asked: dict[str, Callable[[Pair], float]] = {"|Δp|": moved}
    own = [specs["fp32"][0].model.explainer.split("-")[0]] if family == "pilot" else []
    for method in ("attention", "input_x_gradient", *own):
        asked[f"r of {method}"] = partial(alike, method)
    for quantity, between in asked.items():
        lines.append(
            {
                "quantity": quantity,
                "precisions": np.mean([between(pair) for pair in across]),
                "seeds": np.mean([between(pair) for pair in within]),
            }
        )
    values = runs.filter(regex=r"^(dev|train)_").dropna(axis=1).drop(columns="dev_majority")
    values = values.loc[:, [not str(name).endswith("_min") for name in values]]
    for name, value in values.items():
        lines.append(
            {
                "quantity": name,
                "precisions": np.mean([abs(value[a] - value[b]) for a, b in across]),
                "seeds": np.mean([abs(value[a] - value[b]) for a, b in within]),
                **{p: value[specs[p]].mean() for p in PRECISIONS},
            }
        )
    found = pd.DataFrame(lines)
    found.insert(0, "family", family)
    return found


def verdict(lines: pd.DataFrame) -> bool:
    """The rule, for the lines of one family."""
    by = lines.set_index("quantity")
    r = by.loc[[q for q in by.index if q.startswith("r of")], "precisions"]
    moves = by.loc["|Δp|"]
    return bool(moves["precisions"] <= SHARE * moves["seeds"] and (r >= CORRELATION).all())


def table(lines: pd.DataFrame) -> str:
    """The table of precision.md: what the rule looks at, and a few numbers beside it."""
    head = (
        "family", "seconds a step, fp32 / bf16", "mean \\|Δp\\|, precisions / seeds", "share",
        "r of attention", "r of input × gradient", "dev F1, fp32 / bf16", "bf16",
    )  # fmt: skip
    rows = [head, ("---", *["--:"] * (len(head) - 2), "---")]
    done = set(lines.loc[lines["quantity"] == "|Δp|", "family"])
    for family in (name for name in FAMILIES if name in done):
        of = lines[lines["family"] == family].set_index("quantity")
        step, moves, f1 = of.loc["seconds per step"], of.loc["|Δp|"], of.loc["dev_f1_macro"]
        r = {
            method: "{precisions:.3f} ({seeds:.2f})".format(**of.loc[f"r of {method}"])
            for method in ("attention", "input_x_gradient")
        }
        rows.append(
            (
                family,
                f"{step['fp32']:.2f} / {step['bf16']:.2f} ({step['fp32'] / step['bf16']:.1f}×)",
                f"{moves['precisions']:.4f} / {moves['seeds']:.3f}",
                f"{moves['precisions'] / moves['seeds']:.3f}",
                *r.values(),
                f"{f1['fp32']:.3f} / {f1['bf16']:.3f}",
                "passes" if verdict(of.reset_index()) else "fails",
            )
        )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def write(lines: pd.DataFrame) -> None:
    """precision.csv, and the table between the marks of precision.md."""
    lines.to_csv(FILE, index=False, float_format="%.5g")
    page = HERE / "precision.md"
    before, _, after = page.read_text("utf-8").partition("<!-- table -->")
    drawn = table(pd.read_csv(FILE))
    end = after[after.index("<!-- end -->") :]
    page.write_text(f"{before}<!-- table -->\n\n{drawn}\n\n{end}", "utf-8")


def main(families: list[str]) -> None:
    """Measure these families, and write them over their lines of an earlier time."""
    torch.set_num_threads(1)
    for family in families or FAMILIES:
        earlier = pd.read_csv(FILE) if FILE.exists() else pd.DataFrame(columns=COLUMNS)
        lines = measured(family, earlier)
        write(pd.concat([earlier[earlier["family"] != family], lines])[COLUMNS])


if __name__ == "__main__":
    main(sys.argv[1:])
