"""IvRA's grid is the paper's, and each of its numbers lands in the right cell and sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from erlib.catalogue import paper
from erlib.papers.evidence import decide_claims
from erlib.papers.holes import remark_of
from erlib.papers.ivra import (
    audit,
    cells,
    claims,
    costs,
    examples,
    facts,
    figures,
    measured,
    readings,
)
from erlib.papers.ivra import systems as s
from erlib.papers.ivra.measured import STUDENTS, student
from erlib.papers.readings import Reading
from erlib.papers.report import beside_printed
from erlib.papers.study import Study, by_metric
from erlib.parameters import check_parameters
from erlib.reports import paper_table
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import criteria
from erlib.sizes import against_the_paper, check_sizes
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash
from erlib.training.making import fail
from erlib.training.store import open_store
from tests.papers.finished import finished

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
DECODER = "SmolLM2-135M, 4-bit weights"
# explainer → what it is worth by any criterion: sparsemax best, SMaT next
WORTH = {s.SPARSEMAX: 0.9, s.SOFTMAX: 0.85, s.SMAT: 0.8, s.LAST: 0.7, s.FLOOR: 0.5}
LEVELS = {"all levels": 0.1, "feature": 0.2, "head": 0.3, "layer": 0.4}
PROFILES = ("quick", "cpu", "paper")


def settings_of(profile):
    return check_parameters("ivra", {**PARAMETERS, "profile": profile})


@pytest.fixture(scope="module")
def settings():
    return settings_of("cpu")


def worth_of(spec):
    """A number for every evaluation, from what it is of: higher is better, but for sufficiency."""
    run = getattr(spec, "run", spec)
    by_module = {module: name for name, module in s.MODULES.items()}
    explainer = by_module.get(run.model.explainer, "LIME")
    if run.data.taught:
        taught = run.data.taught.method
        explainer = {"attention": s.LAST, None: s.FLOOR}.get(taught, "LIME")
        if taught in ("smat", "ivra"):
            explainer = by_module[run.model.explainer]
    return WORTH.get(explainer, 0.6) + 0.001 * (run.seed % STUDENTS)


def accuracy_of(run):
    """.8 of the Baseline, .802 of one that was trained on; what is lost for each criterion."""
    lost = {"COMP": 0.03, "CONS": 0.1, "SUFF": 0.008}
    longer = run.start is not None and run.model.explainer is None
    return 0.8 - max((lost.get(c, 0) for c in s.criteria_of(run)), default=-0.002 * longer)


def texts_of(spec):
    """Four texts whose mean is the number of the evaluation, or a thousand answers."""
    worth, shift = worth_of(spec), np.array([-0.02, 0.02, -0.01, 0.01])
    if spec.kind == "predictions":
        right = np.arange(1000) < round(1000 * accuracy_of(spec.run))
        return pd.DataFrame({"label": 1, "predicted": right.astype(int)})
    if spec.kind == "faithfulness":  # AOPC divides five bins by six
        bins = [(f"t{i}", b) for i in range(4) for b in range(5)]
        values = {"comprehensiveness": 1.2 * worth, "sufficiency": 1.2 * (1 - worth)}
        return pd.DataFrame(bins, columns=["id", "bin"]).assign(method="m", **values)
    each = {"simulated": worth + shift, "auc": worth + shift, "share": 1 - worth + shift}
    return pd.DataFrame(each)


def number(spec):
    """A summary's number: of spans their F1, of consistency what it is worth."""
    return accuracy_of(spec.run) if getattr(spec, "kind", "") == "predictions" else worth_of(spec)


def made_up(settings, weak=(), failed=()):
    """The study, had the `weak` models not learnt their task and the `failed` ones failed."""
    return finished(
        "ivra", settings, number, table=texts_of,
        accuracy=lambda run: 0.5 if run in weak else 0.7, failed=lambda run: run in failed,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def losses(monkeypatch):
    """What every run logged: two epochs, the last one's loss by what it trains."""

    def history(self, run):
        module = (run.model.explainer or "").split("-")
        last = LEVELS.get(module[-1], LEVELS["all levels"]) + 0.001 * run.seed
        logged = [*readings.LOGGED.values(), "train_student_ce", "train_student_kl"]
        table = pd.DataFrame({name: [1.0, last] for name in [*logged, "train_entropy"]})
        return table.assign(epoch=[1, 2])

    monkeypatch.setattr(Study, "history", history)


@pytest.fixture(scope="module")
def study(settings):
    return made_up(settings)


def value(study, table, row, column, metric):
    """The numbers of a place by seed."""
    found = study.read(Place(table, row, column, metric)) or {}
    return {seed: reading.value for seed, reading in found.items()}


@pytest.fixture
def timed(study, monkeypatch):
    """CONS takes three times the Baseline's training time; LIME fifty times IvRA's to explain."""
    training = {"Baseline": 1.0, "SIM": 1.8, "COMP": 1.5, "SUFF": 1.5, "CONS": 3.0}
    explaining = dict.fromkeys(costs.TIMED, 1.0) | {"LIME": 50.0, "Integrated Gradients": 20.0}
    for what, name, seconds in (
        (costs.training_times, "system", training), (costs.explaining_times, "method", explaining)
    ):  # fmt: skip
        times = pd.DataFrame(
            [
                {name: system, "repetition": i, "texts": n, "seconds": n * each * (1 + 0.01 * i)}
                for system, each in seconds.items()
                for n in (4, 8)
                for i in range(3)
            ]
        )
        monkeypatch.setitem(study._made, (what.__wrapped__,), times)
    return study


def steps_of(spec):
    return -(-spec.data.train_rows // spec.optimiser.batch_size) * spec.optimiser.epochs


def placed(study, *places):
    """The runs behind the cells of a table's row and column, by seed."""
    table, row, column = places
    found = [c for c in study.of(table) if (c.row, c.column) == (row, column)]
    return {c.seed: c.specs[0].run for c in found}


def test_the_paper_profile_has_the_paper_s_recipe():
    paper_s, best = settings_of("paper"), {"SIM": (3e-5, 0.75), "COMP": (3e-4, 0.5)}
    imdb = s.core(paper_s)
    llama = replace(imdb, base="Llama-2")
    for criterion, (lr, decay) in {**best, "SUFF": (3e-4, 0.5), "CONS": (1e-4, 0.25)}.items():
        run = s.trained(llama, s.System((criterion,)), 0)
        assert (run.optimiser.lr, dict(run.update.options)["decay"]) == (lr, decay)
        assert (run.optimiser.epochs, run.optimiser.batch_size) == (20, 64)
        assert run.model.name.endswith("Llama-2-7b-hf") and run.model.frozen == 30
        assert run.model.explainer == "ivra-sparsemax"
    taught = student(imdb, run, s.SPARSEMAX)
    assert taught.update.name == "sgd" and taught.optimiser.lr == 5e-3
    assert len(paper_s.seeds) == 5 and all(len(s.learners(paper_s, base)) == 3 for base in s.BASES)
    printed = set(paper_table("ivra", "table7")["row"])
    assert {cells.setting_name(*x) for x in paper_s.grid["settings"]} == printed
    assert against_the_paper(paper("ivra"), paper_s.grid).empty
    assert s.model_name(paper_s, "Llama-2") == "Llama-2-7b-hf (lowest 30 layers frozen)"


def test_what_a_small_profile_has_less_of_is_told_once(settings):
    told = against_the_paper(paper("ivra"), settings.grid).set_index("what")["here"]
    assert told["samples of LIME"] == "50" and told["sub-words of a text, SNLI"] == "64"
    assert told["in GPT-2's place"] == "smollm2"
    assert told["layers of a base model on a task"] == "SNLI 2, SQuAD 2"
    assert told["do models trained for criteria in full begin from the Baseline?"] == "yes"


def test_a_role_may_say_where_its_corpus_is_read():
    night = settings_of("night")
    pairs, plain = (s.task_named(night, name) for name in ("SNLI", "IMDb"))
    assert (pairs.corpus, pairs.source, plain.source) == ("snli", "packaged", None)
    with pytest.raises(ValueError, match="is a name in quotes"):
        check_sizes(paper("ivra"), {"roles": {"local": {"pairs": {"corpus": 1}}}}, "here")


@pytest.mark.parametrize("profile", PROFILES)
def test_every_contrast_of_a_claim_is_a_difference_of_cells_or_given(profile):
    planned = {
        (c.table, c.row, c.column, metric)
        for c in Study(paper("ivra"), settings_of(profile), {}).cells
        for metric in c.read
    }
    missing = {
        claim
        for claim, criterion in criteria("ivra").items()
        for contrast in criterion.contrasts
        for difference in contrast.differences
        for end in (difference.after, difference.before)
        if end and (end.table, end.row, end.column, end.metric) not in planned
    }
    assert "IV-C15" in missing  # seconds, measured in the notebook
    if profile == "paper":
        assert missing == {"IV-C15"}
    else:  # a small profile lacks tasks, rows and settings, and says so
        assert not missing & {"IV-C11", "IV-C12", "IV-C14"}


def test_fifteen_sets_of_criteria_and_eight_methods_by_four_criteria(settings, study):
    assert len(s.SUBSETS) == len(set(s.SUBSETS)) == 15 and len(s.EXPLAINERS) == 8
    trained = {c.row for c in study.of("figure-5")}
    assert trained == {s.subset_name(x) for x in s.SUBSETS}
    for learner in s.learners(settings, "ELECTRA"):
        found = {
            (c.row, criterion)
            for criterion, (table, _) in cells.BY_CRITERION.items()
            for c in study.of(table)
            if c.column == learner.task.paper
        }
        methods = {(f"ELECTRA|{x}", c) for x in s.EXPLAINERS for c in s.CRITERIA}
        begun = {(f"ELECTRA|{x}", c) for x in s.UNTRAINED for c in s.CRITERIA[1:]}
        assert found == methods | begun | {(f"ELECTRA|{s.FLOOR}", "SIM")}


def test_training_for_simulatability_leaves_the_fine_tuned_teacher_as_it_is(settings):
    home = s.core(settings)
    run = s.trained(home, s.System(("SIM",)), 1)
    assert run.start == s.baseline(home, 1)
    assert [(t.name, t.weight) for t in run.objective] == [("task", 0.0)]
    assert run.update.name == "pilot" and dict(run.update.options)["outer"] == "simulation"
    both = s.trained(home, s.System(("SIM", "COMP")), 1, "short")
    assert [(t.name, t.weight) for t in both.objective] == [("task", 1), ("comprehensiveness", 1)]
    assert both.update.name == "pilot"


def test_a_student_has_its_teacher_s_module_but_not_its_seed_and_the_floor_nothing(settings):
    home = s.core(settings)
    teacher = s.trained(home, s.System(("SIM",), s.SMAT), 2)
    told = student(home, teacher, s.SMAT)
    assert (told.seed, told.model.explainer, told.data.taught.method) == (102, "smat", "smat")
    assert [t.name for t in told.objective] == ["task", "simulation"] and told.start is None
    alone = student(home, s.baseline(home, 2), s.FLOOR)
    assert alone.data.taught.method is None and alone.model.explainer is None
    assert [t.name for t in alone.objective] == ["task"]
    spans = home.on(s.task_named(settings, "SQuAD"))
    reader = student(spans, s.baseline(spans, 0), s.LAST)
    assert [t.weight for t in reader.objective] == [2.0, 1.0]  # both ends' log p, summed
    assert steps_of(alone) == steps_of(told)


def test_core_claims_rest_on_three_seeds_and_full_runs_and_lime_on_64_texts(settings, study):
    for criterion in ("SIM", "COMP", "SUFF"):
        rows = [row for row in s.MODULES if row in settings.grid["every_seed"][criterion]]
        assert {s.SMAT, s.SPARSEMAX} <= set(rows)
        for row in rows:
            runs = placed(study, cells.BY_CRITERION[criterion][0], f"ELECTRA|{row}", "IMDb")
            assert {seed: run.seed % STUDENTS for seed, run in runs.items()} == {0: 0, 1: 1, 2: 2}
            teachers = [run.data.taught.run for run in runs.values() if run.data.taught]
            assert all(steps_of(run) >= 120 for run in [*runs.values(), *teachers])
    for criterion in ("COMP", "SUFF", "CONS"):
        runs = placed(study, "table5", criterion.capitalize(), "IMDb")
        starts = [s.baseline(s.core(settings), n) for n in (0, 1, 2)]
        assert [run.start for run in runs.values()] == starts
    lime = [c.specs[0] for c in study.of("table1", "table2") if c.row == "ELECTRA|LIME"]
    assert settings.grid["explained_rows"] >= 64 and all((e.rows or 0) >= 64 for e in lime)
    assert all(e.run.data.train_rows >= 64 for e in lime if e.run.data.taught)


def test_without_a_core_every_model_goes_on_from_its_baseline_and_no_run_is_made_twice():
    quick = settings_of("quick")
    home = s.core(quick)
    for criterion in s.CRITERIA:
        run = measured.row_run(home, s.SPARSEMAX, criterion, 0)
        assert run.start == s.baseline(home, 0)
        assert run == measured.subset_run(home, (criterion,), 0)


def test_our_rows_are_the_paper_s(settings, study):
    for first, second in cells.BY_CRITERION.values():
        for table in (first, second):
            printed = set(paper_table("ivra", table)["row"])
            ours = {c.row for c in study.of(table)}
            assert printed <= ours
            assert all("untrained" in row or s.FLOOR in row for row in ours - printed)
    begun = {"IvRA Softmax (untrained)", "IvRA Sparsemax (untrained)"}
    assert set(cells.PLAUSIBLE) - begun == set(paper_table("ivra", "table6")["row"])
    assert set(paper_table("ivra", "table5")["row"]) <= {c.row for c in study.of("table5")}
    assert {c.row for c in study.of("table7")} <= set(paper_table("ivra", "table7")["row"])


def test_numbers_stand_in_the_cells_of_their_method_task_and_model(study):
    first = value(study, "table1", f"ELECTRA|{s.SPARSEMAX}", "IMDb", "simulatability")
    assert first == pytest.approx({0: 0.9, 1: 0.901, 2: 0.902})
    assert value(study, "table1", f"ELECTRA|{s.FLOOR}", "SNLI", "simulatability") == {0: 0.5}
    low = value(study, "table3", f"ELECTRA|{s.SMAT}", "IMDb", "suff_aopc")
    assert low == pytest.approx({0: 0.2, 1: 0.199, 2: 0.198})
    other = value(study, "table8", f"GPT-2|{s.SPARSEMAX}", "IMDb", "simulatability_pct")
    assert other == pytest.approx({0: 90})
    assert value(study, "table11", "Llama-2|SMaT", "IMDb", "consistency_spearman") == {0: 0.8}
    labels = s.row_labels(study.settings)
    wide = beside_printed(study, study.of("table8"), "table8", labels=labels).wide()
    assert any(f"{DECODER} (2 layers" in name for name in wide.index)


def test_accuracy_costs_are_against_a_baseline_trained_as_long(study):
    cost = "accuracy_delta_vs_baseline"
    assert value(study, "table5", cells.BASELINE, "IMDb", "accuracy")[0] == pytest.approx(80.2)
    numbers = study.numbers(c for c in study.of("table5") if c.row == cells.BASELINE)
    assert numbers["value"].tolist() == pytest.approx([80.0] * 5)  # shown: as fine-tuned
    longer = value(study, "table5", cells.CONTINUED, "IMDb", "accuracy")
    assert longer == pytest.approx({0: 80.2, 1: 80.2, 2: 80.2})
    comp = value(study, "table5", "Comp", "IMDb", cost)
    assert comp == pytest.approx({0: -3.2, 1: -3.2, 2: -3.2})
    assert value(study, "table5", "Sim", "IMDb", cost)[0] == 0  # its answers are the Baseline's
    assert value(study, "table5", "Cons", "SQuAD", cost)[0] == pytest.approx(-10.2)  # a short run
    assert list(value(study, "table5", "Sim+Comp+Suff+Cons", "IMDb", "accuracy")) == [0]


def test_a_baseline_trained_on_has_as_many_steps_as_a_model_for_a_criterion(settings):
    home = s.core(settings)
    longer = s.continued(home, 1)
    assert longer.start == s.baseline(home, 1)
    model = s.trained(home, s.System(("SUFF",)), 1)
    assert (longer.start, longer.data, longer.optimiser) == (
        model.start, model.data, model.optimiser)  # fmt: skip
    rows = {c.row for c in cells.accuracies(settings_of("paper"))}
    assert not rows & {cells.CONTINUED, cells.SHORT}


@pytest.mark.parametrize("profile", PROFILES)
def test_post_hoc_rows_are_measured_on_a_model_trained_as_long_as_those_beside_them(profile):
    settings = settings_of(profile)
    for learner in s.learners(settings, "ELECTRA"):
        for criterion in s.CRITERIA[1:]:
            fixed, learned = (
                measured.row_run(learner, row, criterion, 0) for row in ("LIME", s.SPARSEMAX)
            )
            assert fixed.start == learned.start and fixed.data == learned.data
            assert fixed.optimiser.epochs == learned.optimiser.epochs
        alone = measured.row_run(learner, "LIME", "SIM", 0)
        assert alone == s.baseline(learner, 0)


def test_the_floor_is_subtracted_seed_by_seed(study):
    table = audit.floor_table(study).set_index(["base", "task", "method"])
    row = table.loc[("ELECTRA", "IMDb", s.SPARSEMAX)]
    assert row["above the floor"] == pytest.approx(40) and row["seeds"] == 3
    assert table.loc[("Llama-2", "IMDb", s.SMAT), "above the floor"] == pytest.approx(30)
    # .500, .501 and .502 by seed; attention has only the first
    assert row["floor"] == pytest.approx(50.1)
    assert table.loc[("ELECTRA", "IMDb", s.LAST), "floor"] == pytest.approx(50.0)


def test_a_module_that_is_not_trained_begins_as_the_trained_one_and_is_the_baseline_s(
    settings, study
):
    home, seed = s.core(settings), 1
    start = s.baseline(home, seed)
    weak = made_up(settings, weak=[start])
    for row, module in s.UNTRAINED.items():
        run, cons, other = (
            measured.row_run(home, name, criterion, seed)
            for name, criterion in ((row, "SUFF"), (row, "CONS"), (module, "SUFF"))
        )
        assert run.start == start and run == cons
        assert run.model == other.model and run.optimiser.lr == 0 and steps_of(run) == 1
        # its scales are measured on the first batch of the same texts
        assert run.optimiser.batch_size == other.optimiser.batch_size
        assert run.data.train_rows == run.optimiser.batch_size <= other.data.train_rows
        assert study.is_trained(run) and not weak.is_trained(run)
    wide = beside_printed(study, study.of("table2"), "table2").wide()
    assert list(wide.index)[-2:] == [f"ELECTRA|{row}" for row in s.UNTRAINED]
    assert not any("untrained" in c.row for c in study.of("table1"))


def test_a_student_is_as_good_as_its_teacher_and_sim_alone_as_the_baseline(settings, study):
    home = s.core(settings)
    weak = made_up(settings, weak=[s.baseline(home, 1)])
    place = Place("table1", f"ELECTRA|{s.SPARSEMAX}", "IMDb", "simulatability")
    assert {n: r.trained for n, r in weak.read(place).items()} == {0: True, 1: False, 2: True}
    alone = s.trained(home, s.System(("SIM",)), 1)  # answers as its start
    taught = placed(study, "table1", f"ELECTRA|{s.SPARSEMAX}", "IMDb")[1]
    found = made_up(settings, weak=[alone, taught])
    assert all(r.trained for r in found.read(place).values())


def test_gains_and_losses_know_whether_all_compared_models_are_trained(settings, study):
    home = s.core(settings)
    weak = made_up(settings, weak=[measured.subset_run(home, ("COMP",), 0)])
    gains = figures.gains(weak).set_index(["row", "criterion"])["trained"]
    assert not gains["Comp", "SIM"] and not gains["Sim+Suff", "COMP"]  # itself, and as reference
    assert gains["Sim+Suff", "SUFF"] and figures.gains(study)["trained"].all()
    level = s.trained(home, s.System(("SUFF",), level="head"), 0, "curves")
    curves = figures.curves(made_up(settings, weak=[level]))
    known = curves.groupby(["criterion", "level"])["trained"].all()
    assert known[~known].index.tolist() == [("SUFF", "head")]


def test_gains_are_relative_to_the_criterion_alone_and_sufficiency_counts_downwards(study):
    gains = figures.gains(study).set_index(["row", "criterion"])["gain"]
    assert gains["Comp", "COMP"] == 0 and gains["Sim+Suff", "SUFF"] == 0
    soft, smat = (
        next(c.specs[0] for c in study.of("table3") if c.row == f"ELECTRA|{row}")
        for row in (s.SOFTMAX, s.SMAT)
    )
    relative = readings.gain("SUFF", relative=True)(study, (soft, smat)).value
    assert relative == pytest.approx(-100 * (0.2 - 0.15) / 0.15)
    plain = readings.gain("SUFF", relative=False)(study, (soft, smat)).value
    assert plain == pytest.approx(-0.05)


def test_a_mean_over_tasks_weighs_tasks_and_not_texts(study):
    tables = {"a": pd.Series([0.0, 1.0], ["x", "y"]), "b": pd.Series([1.0] * 3, ["x", "y", "z"])}

    def read(study, specs):
        return Reading(tables[specs[0]].mean(), tables[specs[0]])

    found = readings.over_tasks(read)(study, ("a", "b"))
    assert found.value == 0.75 == found.statistic(found.texts)
    assert found.texts.index.is_unique and len(found.texts) == 5


def test_claims_read_what_the_figures_show(study):
    feature, head = (
        value(study, "figure-6", level, "SIM", "criterion_loss") for level in ("feature", "head")
    )
    assert (feature, head) == (pytest.approx({0: 0.2}), pytest.approx({0: 0.3}))
    assert value(study, "figure-5", "Sim+Suff", "", "suff_aopc") == pytest.approx({0: 0.1})
    assert value(study, "figure-8", "SIM", "", "arg_of_direct_training") == {0: 0}
    both = [value(study, "figure-7", f"sparsemax, {c}", "IMDb", "important_tokens")
            for c in ("COMP", "SUFF")]  # fmt: skip
    assert both[0] == both[1] == pytest.approx({0: 0.1, 1: 0.099, 2: 0.098})
    table = paper_table("ivra", "table6")
    assert set(table["row"]) <= {c.row for c in study.of("table6")}


def test_times_are_compared_on_the_log_scale_repetition_by_repetition(timed):
    [(claim, found)] = claims.given(timed).items()
    assert set(found) == {c.name for c in criteria("ivra")[claim].contrasts}
    by_end = {name.partition(": ")[2]: evidence.differences for name, evidence in found.items()}
    assert by_end["Baseline → SIM"] == pytest.approx([np.log(1.8)] * 3)
    assert by_end["LIME → IvRA sparsemax"] == pytest.approx([np.log(1 / 50)] * 3)


def test_every_claim_has_a_verdict(timed):
    found = decide_claims("ivra", timed.read, claims.given(timed), profile="cpu")
    assert list(found) == list(criteria("ivra")) and len(found) == 17


def test_the_figures_draw_what_was_measured(timed):
    make = (figures.figure_5, figures.figure_6, figures.figure_7, figures.figure_8,
            figures.figure_9, figures.figure_10)  # fmt: skip
    drawn = [draw(timed) for draw in make]
    assert all(len(data) and figure.axes for figure, data in drawn)
    assert len(drawn[0][1]) == 15 * 4 and set(drawn[1][1]["level"]) == set(LEVELS)
    lime = drawn[2][1].query("task == 'IMDb' and row == 'LIME'")
    assert lime["criterion"].tolist() == ["COMP", "SUFF"] and lime["value"].nunique() == 1


def test_words_are_laid_out_in_lines_that_fit():
    placed_words = examples.laid_out(["word"] * 40)
    assert len(placed_words) == 40
    assert max(column + 4 for _, column, _ in placed_words) <= examples.LINE
    assert [line for line, _, _ in placed_words] == sorted(line for line, _, _ in placed_words)


def test_a_model_s_name_says_where_it_has_fewer_layers(settings, study):
    whole = "MiniLM (2 layers on SNLI and SQuAD)"
    assert s.model_name(settings, "ELECTRA") == whole
    every = [learner.task for learner in s.learners(settings, "ELECTRA")]
    named = {task.paper: s.model_name(settings, "ELECTRA", task) for task in every}
    assert named == {"IMDb": "MiniLM", "SNLI": "MiniLM (2 layers)", "SQuAD": "MiniLM (2 layers)"}
    shown = audit.base_table(study).set_index(["base", "task"])
    assert shown.loc["ELECTRA", "model"].to_dict() == named
    assert shown.loc[("GPT-2", "IMDb"), "model"] == f"{DECODER} (2 layers, lowest 1 layer frozen)"
    assert shown.loc[("ELECTRA", "IMDb"), ["accuracy or span F1", "seeds"]].tolist() == [80.0, 3]


def test_a_run_is_called_by_its_model_set_and_aim(settings):
    home = s.core(settings)
    both = s.trained(home, s.System(("SIM", "COMP")), 1, "short")
    assert s.named(settings, both) == "MiniLM on IMDb for SIM+COMP"
    other = s.baseline(home.on(s.transfer_target(settings, home.task)), 0)
    assert s.named(settings, other) == "MiniLM on SST2 for the task alone"


def test_sentences_say_what_the_tables_have(timed):
    said = facts.data(timed)
    assert "movie_snippets for IMDb" in said["stands"] and "nobody marked" in said["rationales"]
    assert said["alone"] == "SNLI"
    told = facts.simulatability(timed)
    assert told["floors"] == "IMDb 50.1, SNLI 50.0, SQuAD 50.0"
    assert (told["above"], told["cells"], told["best"]) == (24, 24, f"{s.SPARSEMAX} on IMDb")
    comp = facts.criterion(timed, "COMP")
    assert comp["best"].startswith(f"IMDb {s.SPARSEMAX} (0.901)") and comp["pairs"] == 6
    assert facts.criterion(timed, "SUFF")["best"].startswith(f"IMDb {s.SPARSEMAX} (0.099)")
    assert facts.costs(timed)["costs"].startswith(
        "IMDb: SIM +0.0, COMP -3.2, SUFF -1.0, CONS -10.2; SNLI"
    )
    assert facts.together(timed)["cells"] == 56  # 15 sets by 4, less 4 alone
    assert "SIM all levels (0.1000; the highest is 0.4000)" in facts.levels(timed)["lowest"]
    assert f"IMDb: fewest {s.SPARSEMAX} (0.10)" in facts.marked(timed)["shares"]
    assert facts.transfer(timed)["gains"].startswith("SIM +0.0 % (difference +0.000)")
    assert facts.plausible(timed)["first"].endswith("(0.90)")
    assert facts.tuned(timed)["best"].startswith("SIM lr=3e-5, γ 0.750 (tied)")
    decoders = facts.other_bases(timed)["best"]
    assert f"{DECODER} (4 layers, lowest 2 layers frozen), IMDb: SIM {s.SPARSEMAX}" in decoders
    assert "KL from 1.000 to 0.100, fresh students +40.0" in facts.collusion(timed)["losses"]
    assert facts.training(timed) == {"texts": 8, "times": "SIM 1.8, COMP 1.5, SUFF 1.5, CONS 3.0"}
    assert "LIME 50.0" in facts.explaining(timed)["times"]


def test_sentences_leave_out_models_that_are_not_trained(settings):
    home = s.core(settings)
    weak = [s.trained(home, s.System(("COMP",)), n) for n in settings.seeds]
    best = facts.criterion(made_up(settings, weak=weak), "COMP")["best"]
    assert best.startswith(f"IMDb {s.SOFTMAX} (0.851); SNLI {s.SPARSEMAX}")
    snli = s.baseline(home.on(s.task_named(settings, "SNLI")), 0)
    firsts = [s.baseline(home, n) for n in (0, 1)]
    told = facts.simulatability(made_up(settings, weak=[snli, *firsts]))
    assert told["floors"] == "IMDb 50.2, SQuAD 50.0"
    assert told["cells"] == 3 + 8  # of three seeds the modules have one, the others none


def test_a_criterion_counts_once_however_many_seeds_it_has(study, monkeypatch):
    shares = figures.shares(study)
    soft = (shares["row"] == s.SOFTMAX) & (shares["task"] == "IMDb")
    counts = shares[soft].groupby("criterion").size()
    assert counts.to_dict() == {"COMP": 3, "SUFF": 1}
    once = soft & (shares["criterion"] == "SUFF")
    more = shares.assign(value=shares["value"].mask(once, 0.95))
    monkeypatch.setattr(facts, "shares", lambda study: more)
    assert f"most {s.SOFTMAX} (0.55)" in facts.marked(study)["shares"]  # (.149 + .95) / 2


def test_where_no_model_is_trained_nothing_is_said_and_nothing_stops(settings):
    every = {run for stage in cells.grid(settings)[:1] for run in stage.specs({})}
    none = made_up(settings, weak=every)
    assert not any(facts.criterion(none, c) for c in s.CRITERIA[1:])
    assert facts.simulatability(none) == facts.other_bases(none) == {}
    for tell in (facts.together, facts.levels, facts.transfer, facts.marked, facts.tuned,
                 facts.costs):  # fmt: skip
        assert "nan" not in str(tell(none))
    for draw in (figures.figure_5, figures.figure_6, figures.figure_7, figures.figure_8):
        assert draw(none)[0].axes


@pytest.mark.parametrize(("profile", "seed"), [("cpu", 0), ("cpu", 1), ("quick", 0)])
def test_a_failed_run_leaves_holes_and_stops_nothing(profile, seed):
    settings = settings_of(profile)
    home = s.core(settings)
    base = s.baseline(home, seed)
    [runs, _] = cells.grid(settings)
    lost = [run for run in runs.specs({}) if base in (run, run.start)]
    holed = made_up(settings, failed=lost)
    seeds = value(holed, "table2", f"ELECTRA|{s.SPARSEMAX}", "IMDb", "comp_aopc")
    assert set(seeds) == set(settings.seeds) - {seed}
    for made in (audit.base_table, audit.floor_table, audit.collusion_table, figures.figure_5,
                 figures.figure_6, figures.figure_7, figures.figure_8, facts.simulatability,
                 facts.costs, facts.together, facts.levels, facts.marked, facts.transfer,
                 facts.plausible, facts.tuned, facts.other_bases, facts.collusion):  # fmt: skip
        assert made(holed) is not None, made


def test_what_needs_one_failed_model_is_a_remark_that_names_it(tmp_path):
    settings = check_parameters("ivra", {**PARAMETERS, "profile": "quick", "store": str(tmp_path)})
    store, names = open_store(settings.store), {}
    home = s.core(settings)
    learners = {"SIM": home, "CONS": home.on(s.task_named(settings, "SQuAD"))}
    for criterion, learner in learners.items():
        for explainer in ("LIME", *s.MODULES):
            spec = measured.row_run(learner, explainer, criterion, 0)
            names[criterion, explainer] = name = run_hash(spec)
            fail(store, "runs", name, spec, Diverged("loss became nan in step 3"))
    holed = Study(paper("ivra"), settings, {})
    why = "it needs run {}, which failed (loss became nan in step 3)"

    figure, numbers = examples.figure_3(holed)
    assert remark_of(numbers) == why.format(names["SIM", s.SOFTMAX])
    drawn = figure.axes[0].texts[0].get_text().replace("\n", " ")
    assert drawn == f"Not measured: {remark_of(numbers)}."
    assert facts.words(numbers) == {}

    _, numbers = examples.figure_4(holed)
    assert remark_of(numbers) == why.format(names["CONS", "LIME"])  # of the Baseline
    assert facts.questions(numbers) == {}
    assert names["SIM", "LIME"] in examples.examples(holed, 2)

    assert names["SIM", "LIME"] in remark_of(figures.figure_10(holed)[1])
    assert facts.explaining(holed) == {}


def test_a_timed_training_that_diverges_is_a_remark(settings, monkeypatch):
    def diverges(*_):
        raise Diverged("loss became nan in step 3")

    monkeypatch.setattr(costs, "train", diverges)
    study = Study(paper("ivra"), settings, {})
    assert remark_of(figures.figure_9(study)[1]) == "loss became nan in step 3"
    assert facts.training(study) == {}


def test_sentences_of_the_drawn_texts_count_words_and_compare_questions():
    words = pd.DataFrame({"what": "score", "explainer": "A", "value": [0.6, -0.3, 0.1, 0.0]})
    assert facts.words(words) == {"half": "A 1 of 4 words (1 have none)"}
    asked = pd.DataFrame(
        {
            "explainer": ["A: first?"] * 3 + ["A: second?"] * 4,
            "segment": [0, 1, 1, 0, 0, 1, 1],
            "value": [9.0, 1.0, 2.0, 7.0, 8.0, 2.0, 4.0],
        }
    )
    assert facts.questions(asked) == {"correlations": "A 1.00"}


def test_numbers_of_several_metrics_stand_side_by_side(study):
    wide = by_metric(study.numbers(study.of("figure-8")))
    assert list(wide["row"]) == list(s.CRITERIA)
    assert {"arg_of_direct_training", "difference"} <= set(wide)
