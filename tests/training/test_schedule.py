"""Few models are on disk at a time, and none goes that is still to be read."""

from __future__ import annotations

from dataclasses import replace

from erlib.config import DataSpec, EvalSpec, Extraction, RunSpec
from erlib.training.schedule import Models, Task, in_order, most_at_once

DATA = DataSpec("sst", "local")


def run(seed, start=None):
    return RunSpec(DATA, seed=seed, start=start)


def measured(spec, split="test"):
    return EvalSpec(spec, DATA, split, "predictions")


def test_a_run_is_followed_by_what_is_asked_of_it_and_then_by_those_that_rest_on_it():
    a, b, c = run(1), run(2), run(3)
    a1, a2, b1 = run(11, a), run(12, a), run(21, b)
    a11 = run(111, a1)
    tasks = in_order([a, b, c, a1, a2, b1, a11], {a: [measured(a)], a1: [measured(a1)]})
    # b before what rests on a: the next beginning is ready when a's are done
    names = [(t.run.seed, bool(t.evals)) for t in tasks]
    assert names == [(1, False), (2, False), (1, True), (11, False), (11, True), (111, False),
                     (12, False), (3, False), (21, False)]  # fmt: skip


def test_what_a_run_rests_on_comes_first_even_if_nobody_named_it():
    start = run(1)
    reader = RunSpec(replace(DATA, extract=Extraction(run(5, start), 10, "attention")))
    assert [t.run.seed for t in in_order([reader], {})] == [1, 5, 0]


def test_a_task_reads_the_measured_run_and_the_one_whose_rationales_its_texts_are():
    guide, reader = run(1), run(2)
    texts = replace(DATA, extract=Extraction(guide, 10, "attention"))
    assert Task(reader, (EvalSpec(reader, texts, "test", "predictions"),)).reads == {guide, reader}
    assert Task(RunSpec(texts, start=reader)).reads == {guide, reader}


def test_a_model_is_dropped_after_its_last_reader_and_neither_kept_nor_held_ones_are():
    start, kept, held = run(1), run(2), run(3)
    child = run(11, start)
    gone = []
    models = Models(gone.append)
    models.expect(start, [measured(start)], keep=False)
    models.expect(child, [], keep=False)
    models.expect(kept, [measured(kept)], keep=True)
    models.expect(held, None, keep=False)
    tasks = {(t.run, bool(t.evals)): t for t in in_order(
        [start, child, kept, held], {start: [measured(start)], kept: [measured(kept)]}
    )}  # fmt: skip
    models.begin(tasks.values())
    gone.clear()  # what is dropped before it was made does nothing
    models.done(tasks[start, False])
    models.done(tasks[kept, False])
    models.done(tasks[kept, True])
    models.done(tasks[held, False])
    models.done(tasks[start, True])
    assert gone == []  # the child has not begun
    models.done(tasks[child, False])
    assert set(gone) == {start, child}
    models.settle()
    assert held in gone and kept not in gone


def test_twenty_children_of_two_starts_are_never_on_disk_together():
    there: set[RunSpec] = set()
    models = Models(there.discard)
    starts = [run(1), run(2)]
    children = [run(100 * s.seed + i, s) for s in starts for i in range(10)]
    for spec in (*starts, *children):
        models.expect(spec, [measured(spec)], keep=spec.seed == 105)
    # both starts, the child that is kept, and the one in work
    assert most_at_once(models, [*starts, *children], there, lambda spec: 1) == 4
    assert {spec.seed for spec in there} == {105}
