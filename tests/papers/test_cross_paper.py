from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from erlib.catalogue import paper
from erlib.config import EvalSpec
from erlib.metrics.directions import METRICS
from erlib.metrics.estimates import Evidence
from erlib.papers.cross_paper import cells, effects, figures, findings, systems, tables
from erlib.papers.cross_paper.columns import COLUMNS, GROUPS, Subject, in_order
from erlib.papers.cross_paper.ground import CLEAN, lens
from erlib.papers.cross_paper.groups import correlations, front, groups
from erlib.papers.cross_paper.rows import ROWS
from erlib.papers.cross_paper.systems import BASELINE, Key
from erlib.papers.er_lens import systems as er
from erlib.parameters import PARAMETERS, check_parameters
from erlib.training.identity import run_hash
from erlib.training.stages import planned_steps
from tests.papers.finished import finished

GIVEN = {**dict.fromkeys(PARAMETERS), "profile": "quick", "executor": "local", "device": "cpu"}


@pytest.fixture
def settings():
    return check_parameters("cross_paper", GIVEN)


def _profile(name):
    return check_parameters("cross_paper", {**GIVEN, "profile": name})


def test_rows_are_the_baseline_and_seventeen_treatments_of_five_papers():
    families = pd.Series({name: one.family for name, one in ROWS.items()})
    assert families.value_counts().to_dict() == {
        "ER": 7, "REGEX": 3, "IvRA": 5, "Agreement": 2, "SaLoss": 1
    }  # fmt: skip
    assert next(iter(ROWS)) == BASELINE


@pytest.mark.parametrize("profile", ["quick", "cpu", "night"])
def test_rows_of_er_are_the_runs_of_its_own_notebook(profile):
    here, there = _profile(profile), check_parameters("er_lens", {**GIVEN, "profile": profile})
    runs = systems.wanted(here, {}, bounded=False)
    for name, seed in product(("Baseline", "ER+Att"), here.seeds):
        assert runs[Key(CLEAN, name, seed)] == er.run_spec(there, name, seed)


@pytest.mark.parametrize("profile", ["quick", "cpu", "night"])
def test_every_row_has_the_baseline_s_model_texts_and_steps(profile):
    here = _profile(profile)
    runs = systems.wanted(here, systems.unknown_bounds(here))
    for key, run in runs.items():
        base = runs[Key(key.rule, BASELINE, key.seed)]
        assert run.data.corpus == base.data.corpus
        assert replace(run.model, explainer=None) == base.model
        goes_on = run.start == base  # through a student: the model stays as it is
        steps = [sum(planned_steps(r) for r in (one, one.start) if r) for one in (run, base)]
        assert goes_on or steps[0] == steps[1], key


def test_every_column_names_a_metric_with_direction_and_scale_and_belongs_to_a_group():
    for column in COLUMNS.values():
        assert column.metric in METRICS and column.group in GROUPS
    assert [c.group for c in in_order()] == sorted(
        (c.group for c in COLUMNS.values()), key=GROUPS.index
    )


def test_a_column_s_number_is_the_mean_over_attributions(settings):
    run = systems.wanted(settings, {}, bounded=False)[Key(CLEAN, BASELINE, 0)]
    one = Subject(settings, run)
    assert list(COLUMNS["auc"].of(one)) == settings.grid["methods"]
    assert list(COLUMNS["decision_flip"].of(one)) == settings.grid["erased_methods"]
    assert "occlusion" not in COLUMNS["leave_one_out"].of(one)
    assert COLUMNS["jaccard"].of(one) == {}  # with a single seed there is no other model
    study = finished("cross_paper", settings, table=_table)
    values = study.numbers([c for c in study.of("grid") if c.column == "auc" and c.seed == 0])
    parts = study.numbers([c for c in study.of("methods") if c.column.startswith("auc|")])
    first = parts[(parts["row"] == BASELINE) & (parts["seed"] == 0)]
    assert values.set_index("row")["value"][BASELINE] == pytest.approx(first["value"].mean())
    assert first["value"].nunique() > 1


def test_fresh_classifiers_read_and_students_learn_what_a_row_s_own_model_explains(settings):
    own = {"fresh": {"train_rows": 32}, "student": {"train_rows": 16}}
    more = replace(settings, grid={**settings.grid, **own})
    runs = systems.wanted(more, systems.unknown_bounds(more))
    names = ("fresh_f1", "simulatability", "simulatability_floor")
    for key in (k for k in runs if k.rule == CLEAN):
        one = Subject(more, runs[key])
        fresh, student, floor = (COLUMNS[name].of(one)[""][0].run for name in names)
        assert fresh.data.extract.run == student.data.taught.run == floor.data.taught.run == one.run
        assert fresh.model == floor.model == runs[Key(CLEAN, BASELINE, key.seed)].model
        assert student.data.taught.method == "attention" and floor.data.taught.method is None
        assert student.seed == floor.seed != one.run.seed
        assert (fresh.data.train_rows, floor.data.train_rows) == (32, 16)
    stages = {s.name: s for s in paper("cross_paper").module("cells").grid(more)}
    clean = [k for k in runs if k.rule == CLEAN]
    assert stages["readers"].maximum == 3 * len(clean)
    assert all(COLUMNS[name].of(Subject(settings, runs[clean[0]])) == {} for name in names)


def test_planted_runs_learn_the_planted_corpus_and_twins_are_asked_swapped(settings):
    study = finished("cross_paper", settings, table=_table)
    used = [c for c in study.of("planted") if c.column == "single|used"]
    assert {c.row for c in used} == set(settings.grid["systems"])
    for cell in used:
        texts, twins = cell.specs
        assert cell.run.data.corpus == texts.data.corpus == "movie_snippets+single"
        assert twins.data.corpus == "movie_snippets+single+swapped"


def test_both_answers_of_a_pair_have_to_be_right(settings):
    def table(spec):
        swapped = spec.data.corpus.endswith("swapped")
        ids = ["a", "b", "d"] if swapped else ["a", "b", "c"]  # d is not among the texts asked
        right = [1, 1, 0] if swapped else [1, 0, 1]
        return pd.DataFrame({"id": ids, "label": 1, "predicted": right})

    study = finished("cross_paper", settings, table=table)
    cell = next(c for c in study.of("planted") if c.column == "single|used")
    assert study.reading(cell, "rule_accuracy").value == 0.5


def test_what_a_spurious_word_says_counts_where_it_contradicts_the_text(settings):
    table = pd.DataFrame({
        "id": list("abcd"), "label": [0, 0, 1, 1], "said": [1.0, 0.0, 0.0, np.nan],
        "predicted": [1, 1, 1, 0],
    })  # fmt: skip
    study = finished("cross_paper", settings, table=lambda spec: table)
    found = cells._followed(study, [_any(settings)])
    assert found.to_dict() == {"a": 1.0, "c": 0.0}


def _any(settings):
    run = systems.wanted(settings, {}, bounded=False)[Key(CLEAN, BASELINE, 0)]
    return EvalSpec(run, run.data, "test", "predictions")


MEASURED = ("auc", "average_precision", "token_f1", "iou_f1", "fraction", "found",
            "soft_sufficiency", "soft_comprehensiveness")  # fmt: skip


def _table(spec):
    """Ten texts; numbers depend on the method, the row and the seed, so that something differs."""
    shift = sum(map(ord, f"{spec.method}{spec.run.objective}{spec.seed}")) % 7 / 20
    rng = np.random.default_rng(int(run_hash_free(spec)))
    values = np.clip(0.3 + shift + 0.05 * rng.random(10), 0.01, 0.99)
    label = np.arange(10) % 2
    frame = pd.DataFrame({
        "id": [f"t{i}" for i in range(10)], "label": label, "predicted": label, "said": 1 - label,
        "scores": [rng.random(5).tolist() for _ in range(10)],
        "drops": [np.r_[0.0, rng.random(31)].tolist() for _ in range(10)],
        **dict.fromkeys(MEASURED, values),
    })  # fmt: skip
    if spec.kind == "faithfulness":
        names = ("sufficiency", "comprehensiveness")
        measures = {f"{n}{m}": values for n in ("", "normalised_") for m in names}
        frame = frame[["id"]].assign(method="m", bin=50, undefined=False, **measures)
    return frame


def run_hash_free(spec):
    """A number of a description without looking at its texts."""
    return sum(map(ord, f"{spec.kind}{spec.method}{spec.run.objective}{spec.run.seed}"))


@pytest.fixture(scope="module")
def study():
    three = check_parameters("cross_paper", {**GIVEN, "seeds": [0, 1, 2]})
    return finished("cross_paper", three, table=_table)


def test_an_effect_is_the_mean_difference_turned_so_that_more_is_better():
    differences = {"a": [1.0, 1.2, 0.8], "b": [-0.1, 0.1, 0.03]}
    evidence = {row: Evidence(d, base=2.0) for row, d in differences.items()}
    for side in (1, -1):
        found = {e.row: e for e in effects.effects_of(evidence, "auc", "identity", side)}
        a = found["a"]
        half = stats.t.ppf(1 - 0.05 / 2 / 2, 2) * np.std([1, 1.2, 0.8], ddof=1) / np.sqrt(3)
        assert a.value == pytest.approx(side) and a.plain == pytest.approx(1.0)
        assert (a.high - a.low) / 2 == pytest.approx(half)  # shared by two rows
        assert a.low < a.value < a.high and a.decided and not found["b"].decided
        pooled = np.mean([np.var(d, ddof=1) for d in differences.values()]) / 2
        assert a.standardised == pytest.approx(side / np.sqrt(pooled))


def test_two_seeds_decide_nothing_and_one_has_no_interval():
    for d in ([1.0, 1.0001], [1.0]):
        (one,) = effects.effects_of({"a": Evidence(d, base=0.0)}, "auc", "identity", 1)
        assert not one.decided
    assert np.isnan(one.low) and np.isnan(one.standardised)


def test_correlations_are_spearman_s_and_rows_and_seeds_are_drawn_again():
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([list("abcdefgh"), range(3)], names=["row", "seed"])
    x = np.repeat(rng.random(8), 3)
    frame = pd.DataFrame({"x": x, "y": x + 0.01 * rng.random(24), "z": rng.random(24)}, index=index)
    found = correlations(frame, "models").set_index(["a", "b"])
    for a, b in found.index:
        assert found.rho[a, b] == pytest.approx(stats.spearmanr(frame[a], frame[b]).statistic)
    assert found.low["x", "y"] > 0.5 and found.low["x", "z"] < 0 < found.high["x", "z"]
    over_rows = correlations(frame, "rows").set_index(["a", "b"])
    means = frame.groupby(level="row").mean()
    assert over_rows.rho["x", "z"] == pytest.approx(stats.spearmanr(means.x, means.z).statistic)
    assert over_rows.n["x", "z"] == 8
    two = frame[frame.index.get_level_values("seed") < 2]
    assert correlations(two, "models")["low"].isna().all()
    assert groups(correlations(frame, "models"), ["x", "y", "z"]) == [["x", "y"], ["z"]]


def test_the_front_is_what_nothing_beats_by_brute_force():
    rng = np.random.default_rng(1)
    points = pd.DataFrame(rng.integers(0, 4, (30, 3)).astype(float))
    expected = [
        not any(
            all(q >= p for p, q in zip(one, other, strict=True)) and tuple(one) != tuple(other)
            for other in points.to_numpy()
        )
        for one in points.to_numpy()
    ]
    assert front(points).tolist() == expected and 0 < sum(expected) < 30
    points.loc[0] = np.nan
    assert not front(points)[0]


def test_every_figure_and_table_is_made_of_a_finished_study(study):
    drawn, numbers = figures.heat_map(study)
    assert set(numbers["row"]) == set(study.settings.grid["systems"]) - {BASELINE}
    assert len(drawn.axes) == 2
    _, points = figures.pareto(study)
    assert points["front"].any()
    _, found = figures.metric_map(study)
    assert set(found["over"]) == {"models", "rows"}
    shown, _ = tables.grid(study)
    assert list(shown["row"]) == [r for r in ROWS if r in study.settings.grid["systems"]]
    shown, numbers = tables.planted(study)
    assert set(shown["rule"]) == {"single"} and numbers["mean"].between(0, 1).all()
    assert set(findings.advice(study)["if you want"]) == set(findings.GOALS)
    assert "ER+AttR" in tables.not_measured(study)["rows"]


def test_nothing_is_found_where_seeds_are_too_few(settings):
    two = finished("cross_paper", settings, table=_table)
    said = findings.table(two)["finding"]
    assert not said.str.contains("ways of training|answer").any()
    advice = findings.advice(two)
    assert advice["use"].str.startswith("nothing here").all()


def test_a_finding_stands_on_its_interval(study):
    for one in findings.sure(study, "auc", 1):
        assert one.low > 0 and one.seeds >= 3
    for line in findings.table(study).to_dict("records"):
        assert line["supported by"] or line["finding"] == findings.NONE


def test_a_lost_run_s_replacement_stands_in_its_place(settings):
    results = dict(finished("cross_paper", settings, table=_table).results)
    table = results["constrained"].copy()
    lost = table["spec"][0]
    other = replace(lost, seed=9)
    more = {**table.iloc[0].to_dict(), "spec": other, "seed": 9, "replaces": lost.seed}
    table.loc[0, "status"] = "lost"
    results["constrained"] = pd.concat([table, pd.DataFrame([more])], ignore_index=True)
    study = type(finished("cross_paper", settings))(paper("cross_paper"), settings, results)
    key = systems.key_of(lost, lost.seed)
    assert cells.placed(study)[key] == other


def test_every_run_has_a_name(settings):
    runs = systems.wanted(settings, systems.unknown_bounds(settings))
    for key, run in runs.items():
        said = systems.named(settings, run)
        assert said == key.row + (", single planted" if key.rule else ""), key
    assert systems.named(settings, er.start_spec(lens(settings), 0)) == "start"


def test_names_of_equal_runs_are_equal(settings):
    there = check_parameters("er_lens", GIVEN)
    here = systems.wanted(settings, {}, bounded=False)[Key(CLEAN, "ER+Att", 0)]
    assert run_hash(here) == run_hash(er.run_spec(there, "ER+Att", 0))


def test_a_study_of_which_everything_failed_has_holes_and_no_exception(settings):
    none = finished("cross_paper", settings, table=_table, failed=lambda run: True)
    for draw in (figures.heat_map, figures.metric_map, figures.pareto, figures.hiding):
        drawn, _ = draw(none)
        assert drawn.axes
    for make in (tables.grid, tables.planted):
        make(none)
    assert findings.table(none)["finding"].tolist() == [findings.NONE]
    assert findings.advice(none)["use"].str.startswith("nothing here").all()
    tables.not_measured(none), tables.effect_table(none)
