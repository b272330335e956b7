"""Which models have learnt their task? Nothing follows from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import pandas as pd

from erlib.config import RunSpec
from erlib.metrics.learnt import EVEN, FEWEST, LEVEL

Key = TypeVar("Key")
RULE = (
    "macro-F1 above that of permuted predictions and, where no class has more than "
    f"{100 * EVEN:.0f} % of the texts, accuracy above the majority class's; spans: exact match "
    f"above the best constant answer's; on dev, p < {LEVEL:g}"
)


def untrained_models(models: pd.DataFrame) -> set[RunSpec]:
    """The runs that are not known to have learnt their task (`RULE`), and those that read
    rationales of one; not those that had none to learn.

    `models`: rows of `erlib.run`.
    """
    models = models[[has_task(spec) for spec in models["spec"]]]
    learnt = models["dev_chance_p"] < LEVEL
    weak = {s for s, known in zip(models["spec"], learnt, strict=True) if not known or too_few(s)}
    readers = {s for s in models["spec"] if s.data.extract and s.data.extract.run in weak}
    return weak | readers


def has_task(spec: RunSpec) -> bool:
    """Does its objective ask for answers? That of the explanation loss alone does not."""
    return any(term.name != "explanation" for term in spec.objective)


def judged_by(run: RunSpec) -> RunSpec:
    """The run by which one knows whether a model has learnt its task.

    Of a student that is its teacher; of a model whose answers no step moves, since its rate or all
    weights of its objective are 0, the one that it begins from; of any other, itself.
    """
    if run.data.taught:
        return judged_by(run.data.taught.run)
    still = run.optimiser.lr == 0 or not any(term.weight for term in run.objective)
    return run.start if run.start and still else run


def too_few(spec: RunSpec) -> bool:
    """Is the run, or the one whose rationales it reads, judged by fewer than `FEWEST` dev texts
    by its own choice? A whole split is enough, whatever its size."""
    rows, extract = spec.data.dev_rows, spec.data.extract
    return (rows is not None and rows < FEWEST) or (extract is not None and too_few(extract.run))


def why_untrained(weak: Sequence[RunSpec], named: Callable[[Sequence[RunSpec]], str]) -> str:
    """ "Not trained (…): A, B. Too few dev texts to tell (…): C."; `named` lists some of them."""
    unclear = [spec for spec in weak if too_few(spec)]
    known = [spec for spec in weak if not too_few(spec)]
    parts = []
    if known:
        reads = ", themselves or the model whose rationales they read"
        also = reads if any(spec.data.extract for spec in known) else ""
        parts.append(f"Not trained{also} (trained means: {RULE}): {named(known)}.")
    if unclear:
        parts.append(
            f"Too few dev texts to tell (fewer than {FEWEST}), and so not counted as trained: "
            f"{named(unclear)}."
        )
    return " ".join(parts)


def deciding(trained: Mapping[Key, bool]) -> list[Key]:
    """The seeds, or pairs of models, that a verdict may rest on: those that are trained.

    Where there are none the first stands alone, which is too few for a verdict.
    """
    return [key for key, good in trained.items() if good] or list(trained)[:1]
