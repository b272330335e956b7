"""How are the results of the grid read? One object that tables, figures and claims ask."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from erlib.config import EvalSpec, RunSpec
from erlib.metrics.directions import average_relative_gain
from erlib.metrics.faithfulness import aopc
from erlib.models import Classifier, load_classifier
from erlib.papers.holes import failed
from erlib.papers.ivra import measurements
from erlib.papers.ivra.measurements import Cell
from erlib.papers.ivra.systems import CRITERIA, answers_as
from erlib.papers.trained import deciding, untrained_models
from erlib.parameters import Settings
from erlib.provenance import default_device
from erlib.training.evaluating import per_text
from erlib.training.failures import FAILED, RestsOnFailure
from erlib.training.identity import run_hash
from erlib.training.runs import trained_folder
from erlib.training.stages import Results
from erlib.training.store import open_store

# criterion → the column of its evaluation's summary, and what `directions` calls it
VALUES = {
    "SIM": "simulatability",
    "COMP": "comprehensiveness",
    "SUFF": "sufficiency",
    "CONS": "consistency",
}
METRICS = {
    "SIM": "simulatability",
    "COMP": "ivra_comprehensiveness",
    "SUFF": "ivra_sufficiency",
    "CONS": "consistency",
}
Measured = dict[str, Any]


class Study:
    """The grid's results, found by what was asked for."""

    def __init__(self, settings: Settings, results: Results) -> None:
        self.settings = settings
        self.results = results
        self.rows: dict[EvalSpec, dict[Any, Any]] = {
            row["spec"]: row for row in results["measurements"].to_dict("records")
        }

    @cached_property
    def untrained(self) -> set[RunSpec]:
        """The models that have not learnt their task.

        What leaves the answers as they are is as trained as the model it begins from.
        """
        models = self.results["models"]
        weak = untrained_models(models)
        return {spec for spec in models["spec"] if answers_as(spec) in weak}

    def is_trained(self, cell: Cell) -> bool:
        """Has the model that was measured, or that taught the student, learnt its task?"""
        run = cell.spec.run
        return (run.data.taught.run if run and run.data.taught else run) not in self.untrained

    @cached_property
    def by_explainer(self) -> list[Cell]:
        """Of Tables 1 to 4 and 8 to 11."""
        return measurements.by_explainer(self.settings)

    @cached_property
    def accuracies(self) -> list[Cell]:
        """Of the Baselines and of every set of criteria, in points."""
        make = (
            measurements.base_answers,
            measurements.continued_answers,
            measurements.subset_answers,
        )
        return [cell for cells in make for cell in cells(self.settings)]

    def value(self, cell: Cell) -> float:
        """The cell's number: a criterion's, accuracy or span F1 in points, AUC, or a share; NaN
        where it failed."""
        row, kind = self.rows[cell.spec], cell.spec.kind
        if row.get("status") == FAILED:
            return np.nan
        if kind == "predictions":
            return 100 * float(row["token_f1"] if cell.task.spans else row["accuracy"])
        if kind == "plausibility":
            return float(row["auc"])
        return float(row["share"] if kind == "important_share" else row[VALUES[cell.criterion]])

    def frame(self, cells: Sequence[Cell]) -> pd.DataFrame:
        """One row per cell: base, task (the paper's name), row, criterion, seed, value, trained."""
        return pd.DataFrame(
            [
                {
                    "base": c.base,
                    "task": c.task.paper,
                    "row": c.row,
                    "criterion": c.criterion,
                    "seed": c.seed,
                    "value": self.value(c),
                    "trained": self.is_trained(c),
                }
                for c in cells
            ]
        )

    def texts(self, cell: Cell) -> pd.Series | None:
        """The cell's number text by text; None where it is not a mean over texts."""
        table, kind = self.table(cell.spec), cell.spec.kind
        if kind == "faithfulness":
            return aopc(table, VALUES[cell.criterion]).droplevel("method")
        if kind == "consistency" or (kind == "predictions" and cell.task.spans):
            return None
        by_id = table.set_index("id")
        if kind == "predictions":
            return 100.0 * (by_id["label"] == by_id["predicted"])
        column = {"simulatability": "simulated", "plausibility": "auc"}.get(kind, "share")
        return by_id[column].astype(float)

    def table(self, spec: EvalSpec) -> pd.DataFrame:
        """The evaluation's own table."""
        return per_text(spec, store=self.settings.store, device=self.settings.device)

    def paired(
        self, after: Sequence[Cell], before: Sequence[Cell], *, every: bool = False
    ) -> list[tuple[Cell, Cell]]:
        """The cells of the seeds on which both have a number (explanations that are all alike have
        no consistency).

        Of seeds that decide (see `trained.deciding`), unless `every` seed is asked for.
        """
        first, second = ({c.seed: c for c in cells} for cells in (before, after))
        both = [(second[s], first[s]) for s in sorted(set(first) & set(second))]
        known = [(b, a) for b, a in both if np.isfinite(self.value(b) - self.value(a))]
        return deciding({pair: every or all(map(self.is_trained, pair)) for pair in known})

    def difference(
        self, after: Sequence[Cell], before: Sequence[Cell], *, every: bool = False
    ) -> Measured | None:
        """`after` − `before` of `paired` cells, seed by seed and text by text; None without any."""
        pairs = self.paired(after, before, every=every)
        if not pairs:
            return None
        differences = [self.value(b) - self.value(a) for b, a in pairs]
        rows = []
        for b, a in pairs:
            new, old = self.texts(b), self.texts(a)
            if new is None or old is None:
                return {"differences": differences}
            rows.append((new - old.loc[new.index]).to_numpy())
        return {"differences": differences, "per_text": rows}

    def cost(self, task: str, row: str) -> Measured | None:
        """Points of accuracy that a set of criteria has over a Baseline trained as long.

        SIM alone leaves the Baseline's answers as they are. Every seed counts: that a model is no
        longer trained is a cost too.
        """
        cells = chosen(self.accuracies, base="ELECTRA", task=task)
        brief = [] if row in CRITERIA else chosen(cells, row=measurements.SHORT)
        as_long = brief or chosen(cells, row=measurements.CONTINUED)
        before = (as_long if row != "SIM" else []) or chosen(cells, row="Baseline")
        return self.difference(chosen(cells, row=row), before, every=True)

    def gains(self, cells: Sequence[Cell], reference: str) -> pd.DataFrame:
        """Average relative gains over the rows named `reference`, by row, criterion and seed.

        `reference` is formatted with the criterion: "{criterion}" is each criterion trained alone.
        Columns: row, criterion, seed, gain (%), difference (mean over tasks, positive is better),
        trained (are all of the compared models?).
        """
        frame, rows = self.frame(cells), []
        for (row, criterion, seed), found in frame.groupby(
            ["row", "criterion", "seed"], sort=False
        ):
            name = reference.format(criterion=criterion)
            alone = frame[
                (frame["row"] == name)
                & (frame["criterion"] == criterion)
                & (frame["seed"] == seed)
                & frame["task"].isin(found["task"])
            ]
            gain = average_relative_gain(
                METRICS[str(criterion)],
                dict(zip(alone["task"], alone["value"], strict=True)),
                dict(zip(found["task"], found["value"], strict=True)),
            )
            rows.append(
                {
                    "row": row,
                    "criterion": criterion,
                    "seed": seed,
                    "gain": gain.arg,
                    "difference": float(np.mean(list(gain.difference.values()))),
                    "trained": bool(found["trained"].all() and alone["trained"].all()),
                }
            )
        return pd.DataFrame(rows)

    @cached_property
    def subset_gains(self) -> pd.DataFrame:
        """Figure 5: every set of criteria against each criterion alone."""
        return self.gains(measurements.by_subset(self.settings), "{criterion}")

    @cached_property
    def transfer_gains(self) -> pd.DataFrame:
        """Figure 8: direct training over transferred models; one row per criterion and seed."""
        gains = self.gains(measurements.transferred(self.settings), "transferred")
        return gains[gains["row"] == "direct"].reset_index(drop=True)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Figure 6: criterion, level, seed, epoch, loss (NaN where a run failed), trained."""
        tables = []
        holes = failed([self.results["models"]])
        for (criterion, level, seed), spec in measurements.level_runs(self.settings).items():
            column = f"train_{VALUES[criterion]}"
            if spec in holes:
                history = pd.DataFrame({"epoch": [1], column: [np.nan]})
            else:
                history = self.history(spec)
            tables.append(
                pd.DataFrame(
                    {
                        "criterion": criterion,
                        "level": level,
                        "seed": seed,
                        "epoch": history["epoch"],
                        "loss": history[column],
                        "trained": spec not in self.untrained,
                    }
                )
            )
        return pd.concat(tables, ignore_index=True)

    def history(self, spec: RunSpec) -> pd.DataFrame:
        """What a run logged, epoch by epoch."""
        return pd.read_csv(self._sealed(spec) / "history.csv")

    def classifier(self, spec: RunSpec) -> Classifier:
        """The trained model of a run."""
        store, device = self.settings.store, self.settings.device
        path = trained_folder(spec, store=store, device=device)
        return load_classifier(str(path)).to(device or default_device())

    def _sealed(self, spec: RunSpec) -> Any:
        sealed = open_store(self.settings.store).get("runs", run_hash(spec))
        if sealed is None:
            raise ValueError(f"run {run_hash(spec)} has not been trained; carry out the grid first")
        if sealed.status == FAILED:
            raise RestsOnFailure(sealed)
        return sealed.path


def chosen(cells: Sequence[Cell], **wanted: str) -> list[Cell]:
    """The cells whose base, task (the paper's name), row and criterion are the ones given."""

    def fits(cell: Cell) -> bool:
        has = {"base": cell.base, "task": cell.task.paper, "row": cell.row,
               "criterion": cell.criterion}  # fmt: skip
        return all(has[name] == value for name, value in wanted.items())

    return [c for c in cells if fits(c)]
