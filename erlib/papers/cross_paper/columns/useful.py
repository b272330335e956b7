"""Do explanations help another model: one that reads them alone, one that learns from them?

Both columns train models of their own, as long as the Baseline, for each row and seed: they are
measured where a profile has their sizes.
"""

from __future__ import annotations

from dataclasses import replace

from erlib.config import EvalSpec, Extraction, RunSpec, Teaching, term, update
from erlib.metrics.task import counted_f1_macro
from erlib.papers.cells import Spec, of_answers, text_mean
from erlib.papers.cross_paper.columns import Specs, Subject, column
from erlib.papers.cross_paper.ground import lens, sister
from erlib.papers.er_lens import systems as er
from erlib.training.identity import as_measured

PERCENT = 20  # of a text's words, in a rationale
STUDENTS = 100  # added to the seed: a student's head must not begin where its teacher's began
METHOD = "attention"  # whose explanations both get: every row has it, and it costs nothing


def _plain(subject: Subject, name: str) -> RunSpec:
    """The task alone from scratch, on as many texts as the profile says."""
    run = er.unguided(lens(subject.settings), subject.run.seed)
    return replace(run, data=replace(run.data, **subject.grid[name]))


@column("fresh_f1", group="Useful", title="FRESH", read=of_answers(counted_f1_macro, 1.0))
def fresh(subject: Subject) -> Specs:
    """F1 of a classifier that sees nothing but the best fifth of the words."""
    if "fresh" not in subject.grid:
        return ()
    run = _plain(subject, "fresh")
    reader = replace(run, data=replace(run.data, extract=Extraction(subject.run, PERCENT, METHOD)))
    return (_asked(subject, reader, "predictions"),)


def _student(subject: Subject, method: str | None) -> Specs:
    if "student" not in subject.grid:
        return ()
    run, ivra = _plain(subject, "student"), sister(subject.settings, "ivra").grid
    student = replace(
        run,
        data=replace(run.data, taught=Teaching(subject.run, method)),
        seed=run.seed + STUDENTS,
    )
    if method:
        student = replace(
            student,
            model=replace(run.model, explainer="ivra-softmax"),
            objective=(term("task"), term("simulation", ivra["pilot"]["beta"])),
            update=update("plain", explainer_lr=ivra["explainer_factor"] * run.optimiser.lr),
        )
    return (_asked(subject, student, "simulatability"),)


@column("simulatability", group="Useful", title="simulated", read=text_mean("simulated"))
def simulatability(subject: Subject) -> Specs:
    """How often a student says what the model says that explained itself to it."""
    return _student(subject, METHOD)


@column(
    "simulatability_floor",
    metric="simulatability",
    group="Useful",
    title="its floor",
    read=text_mean("simulated"),
)
def floor(subject: Subject) -> Specs:
    """The same of a student that was given no explanations: what the answers alone teach."""
    return _student(subject, None)


def _asked(subject: Subject, run: RunSpec, kind: str) -> Spec:
    rows = subject.grid["texts"]["answered"]
    return EvalSpec(run, as_measured(run.data), "test", kind, rows)
