"""IvRA's grid is the paper's, and each of its numbers lands in the right cell and claim."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.papers.holes import remark_of
from erlib.papers.ivra import claims, costs, figures, measurements, prose, tables
from erlib.papers.ivra import study as studies
from erlib.papers.ivra import systems as s
from erlib.papers.ivra.examples import LINE, examples, figure_3, figure_4, laid_out
from erlib.parameters import check_parameters
from erlib.reports import decide, paper_table
from erlib.reports.claims import claims as listed
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash
from erlib.training.making import fail
from erlib.training.store import open_store

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
DECODER = "SmolLM2-135M, 4-bit weights"
# explainer → what it is worth by any criterion: sparsemax best, SMaT next
WORTH = {s.SPARSEMAX: 0.9, s.SOFTMAX: 0.85, s.SMAT: 0.8, s.LAST: 0.7, s.FLOOR: 0.5}


def settings_of(profile, data=None):
    return check_parameters("ivra", {**PARAMETERS, "profile": profile, "data": data})


@pytest.fixture(scope="module")
def settings():
    return settings_of("cpu")


def worth_of(spec):
    """A number for every evaluation, from what it is of: higher is better, but for sufficiency."""
    run = spec.run
    if run.data.taught:
        explainer = {"smat": s.SMAT, "ivra": s.SPARSEMAX, None: s.FLOOR, "attention": s.LAST}.get(
            run.data.taught.method, "LIME"
        )
        if explainer == s.SPARSEMAX and run.model.explainer == "ivra-softmax":
            explainer = s.SOFTMAX
    else:
        by_module = {module: name for name, module in s.MODULES.items()}
        explainer = by_module.get(run.model.explainer, "LIME")
    return WORTH.get(explainer, 0.6) + 0.001 * (run.seed % s.STUDENTS)


def summary(spec):
    """What every kind of evaluation may say of a run."""
    worth = worth_of(spec)
    criteria = {t.name for t in spec.run.objective}
    cost = 0.0 if "task" in criteria and len(criteria) == 1 else 0.008
    cost = 0.03 if "comprehensiveness" in criteria else cost
    cost = 0.1 if "consistency" in criteria else cost
    if spec.run.start is not None and spec.run.model.explainer is None:
        cost = -0.002  # a Baseline that was trained on
    return {
        "simulatability": worth, "comprehensiveness": worth, "sufficiency": 1 - worth,
        "consistency": worth, "share": 1 - worth, "auc": worth, "accuracy": 0.8 - cost,
        "token_f1": 0.6 - cost, "exact_match": 0.4, "majority": 0.5,
    }  # fmt: skip


def fake_per_text(spec, store=None, device=None):
    """Four texts whose mean is the summary's number."""
    said, shift = summary(spec), np.array([-0.02, 0.02, -0.01, 0.01])
    ids = [f"t{i}" for i in range(4)]
    if spec.kind == "faithfulness":
        rows = [
            {"method": "m", "id": name, "bin": b, "comprehensiveness": said["comprehensiveness"],
             "sufficiency": said["sufficiency"]}
            for name in ids for b in range(5)
        ]  # fmt: skip
        frame = pd.DataFrame(rows)
        frame[["comprehensiveness", "sufficiency"]] *= 6 / 5  # AOPC divides five bins by six
        return frame
    if spec.kind == "predictions":
        texts = round(1000 * said["accuracy"])
        predicted = [1] * texts + [0] * (1000 - texts)
        return pd.DataFrame({"id": range(1000), "label": 1, "predicted": predicted})
    return pd.DataFrame(
        {
            "id": ids,
            "simulated": said["simulatability"] + shift,
            "auc": said["auc"] + shift,
            "share": said["share"] + shift,
            "consistency": said["consistency"],
        }
    )


def carried_out(settings):
    """Results of a grid in which nothing failed."""
    models, students, evals = (stage.specs({}) for stage in measurements.grid(settings))
    rows = [{"eval": str(i), "spec": e, "kind": e.kind, **summary(e)} for i, e in enumerate(evals)]
    return {
        "models": pd.DataFrame({"spec": models, "run": "model", "dev_chance_p": 0.001}),
        "students": pd.DataFrame(
            {"spec": students, "run": [f"s{i}" for i in range(len(students))]}
        ),
        "measurements": pd.DataFrame(rows),
    }


@pytest.fixture(scope="module")
def results(settings):
    return carried_out(settings)


def without(settings, results, *weak):
    """The study, had these models not learnt their task."""
    models = results["models"]
    chance = models["dev_chance_p"].mask(models["spec"].isin(weak), 0.5)
    return studies.Study(settings, {**results, "models": models.assign(dev_chance_p=chance)})


def measuring(settings, results, cells, **values):
    """The study, had these cells been measured so."""
    table = results["measurements"].copy()
    table.loc[table["spec"].isin([c.spec for c in cells]), list(values)] = list(values.values())
    return studies.Study(settings, {**results, "measurements": table})


@pytest.fixture
def study(settings, results, monkeypatch):
    monkeypatch.setattr(studies, "per_text", fake_per_text)
    levels = {"all levels": 0.1, "feature": 0.2, "head": 0.3, "layer": 0.4}

    def history(self, spec):
        module = spec.model.explainer.split("-")
        loss = levels.get(module[2] if len(module) > 2 else "all levels", 0.1)
        names = ("simulatability", "comprehensiveness", "sufficiency", "consistency", "student_ce",
                 "student_kl", "entropy")  # fmt: skip
        return pd.DataFrame(
            {
                "epoch": [1, 2],
                **{f"train_{name}": [1.0, loss + 0.001 * spec.seed] for name in names},
            }
        )

    monkeypatch.setattr(studies.Study, "history", history)
    return studies.Study(settings, results)


@pytest.fixture(scope="module")
def times():
    """CONS takes three times the Baseline's training time; LIME fifty times IvRA's to explain."""
    training = {"Baseline": 1.0, "SIM": 1.8, "COMP": 1.5, "SUFF": 1.5, "CONS": 3.0}
    explaining = dict.fromkeys(costs.TIMED, 1.0) | {
        "LIME": 50.0, "Integrated Gradients": 20.0, "Input X Gradients": 3.0,
    }  # fmt: skip
    return tuple(
        pd.DataFrame(
            [
                {name: system, "repetition": i, "texts": n, "seconds": n * each * (1 + 0.01 * i)}
                for system, each in seconds.items()
                for n in (4, 8)
                for i in range(3)
            ]
        )
        for name, seconds in (("system", training), ("method", explaining))
    )


def steps_of(spec):
    return -(-spec.data.train_rows // spec.optimiser.batch_size) * spec.optimiser.epochs


def test_the_paper_profile_has_the_paper_s_recipe():
    paper = settings_of("paper")
    imdb = s.core_task(paper)
    for criterion, (lr, decay) in claims.BEST_SETTINGS.items():
        run = s.trained(paper, "Llama-2", imdb, s.System((criterion,)), 0)
        assert (run.optimiser.lr, dict(run.update.options)["decay"]) == (lr, decay)
        assert (run.optimiser.epochs, run.optimiser.batch_size) == (20, 64)
        assert run.model.name.endswith("Llama-2-7b-hf") and run.model.frozen == 30
        assert run.model.explainer == "ivra-sparsemax"
    taught = s.student(paper, "ELECTRA", imdb, run, s.SPARSEMAX)
    assert taught.update.name == "sgd" and taught.optimiser.lr == 5e-3
    assert len(paper.seeds) == 5 and all(len(s.tasks(paper, base)) == 3 for base in s.BASES)
    printed = set(paper_table("ivra", "table7")["row"])
    assert {measurements.setting_name(*x) for x in paper.grid["settings"]} == printed
    assert prose.reduced(paper) == ""
    assert tables.model_name(paper, "Llama-2") == "Llama-2-7b-hf (lowest 30 layers frozen)"


def test_fifteen_sets_of_criteria_and_eight_methods_by_four_criteria(settings):
    assert len(s.SUBSETS) == len(set(s.SUBSETS)) == 15 and len(s.EXPLAINERS) == 8
    trained = {c.row for c in measurements.by_subset(settings)}
    assert trained == {"+".join(x) for x in s.SUBSETS}
    assert {c.task.paper for c in measurements.by_subset(settings)} == {"IMDb"}
    for task in ("IMDb", "SNLI", "SQuAD"):
        cells = [c for c in measurements.by_explainer(settings)
                 if (c.base, c.task.paper) == ("ELECTRA", task)]  # fmt: skip
        found = {(c.row, c.criterion) for c in cells}
        methods = {(x, c) for x in s.EXPLAINERS for c in s.CRITERIA}
        begun = {(x, c) for x in s.UNTRAINED for c in ("COMP", "SUFF", "CONS")}
        assert found == methods | begun | {(s.FLOOR, "SIM")}


def test_training_for_simulatability_leaves_the_fine_tuned_teacher_as_it_is(settings):
    task = s.core_task(settings)
    run = s.trained(settings, "ELECTRA", task, s.System(("SIM",)), 1)
    assert run.start == s.baseline(settings, "ELECTRA", task, 1)
    assert [(t.name, t.weight) for t in run.objective] == [("task", 0.0)]
    assert run.update.name == "pilot" and dict(run.update.options)["outer"] == "simulation"
    both = s.trained(settings, "ELECTRA", task, s.System(("SIM", "COMP")), 1, "short")
    assert [(t.name, t.weight) for t in both.objective] == [("task", 1), ("comprehensiveness", 1)]
    assert both.update.name == "pilot"


def test_a_student_has_its_teacher_s_module_but_not_its_seed_and_the_floor_nothing(
    settings,
):
    task = s.core_task(settings)
    teacher = s.trained(settings, "ELECTRA", task, s.System(("SIM",), s.SMAT), 2)
    told = s.student(settings, "ELECTRA", task, teacher, s.SMAT)
    assert (told.seed, told.model.explainer, told.data.taught.method) == (102, "smat", "smat")
    assert [t.name for t in told.objective] == ["task", "simulation"] and told.start is None
    alone = s.student(settings, "ELECTRA", task, s.baseline(settings, "ELECTRA", task, 2), s.FLOOR)
    assert alone.data.taught.method is None and alone.model.explainer is None
    assert [t.name for t in alone.objective] == ["task"]
    spans = s.task_named(settings, "SQuAD")
    reader = s.student(
        settings, "ELECTRA", spans, s.baseline(settings, "ELECTRA", spans, 0), s.LAST
    )
    assert [t.weight for t in reader.objective] == [2.0, 1.0]  # both ends' log p, summed
    assert steps_of(alone) == steps_of(told)


def test_core_claims_rest_on_three_seeds_and_full_runs_and_lime_on_64_texts(settings):
    cells = [c for c in measurements.by_explainer(settings)
             if (c.base, c.task.paper) == ("ELECTRA", "IMDb")]  # fmt: skip
    for criterion in ("SIM", "COMP", "SUFF"):
        rows = [row for row in s.MODULES if row in settings.grid["every_seed"][criterion]]
        assert {s.SMAT, s.SPARSEMAX} <= set(rows)
        for row in rows:
            runs = [c.spec.run for c in cells if (c.row, c.criterion) == (row, criterion)]
            assert [run.seed % s.STUDENTS for run in runs] == [0, 1, 2]
            assert min(steps_of(run) for run in runs) >= 120
            teachers = [run.data.taught.run for run in runs if run.data.taught]
            assert all(steps_of(run) >= 120 for run in teachers)
    single = [c for c in measurements.subset_answers(settings)
              if c.task.paper == "IMDb" and "+" not in c.row]  # fmt: skip
    for criterion in ("COMP", "SUFF", "CONS"):
        runs = [c.spec.run for c in single if c.row == criterion]
        starts = [s.baseline(settings, "ELECTRA", s.core_task(settings), n) for n in (0, 1, 2)]
        assert [run.seed for run in runs] == [0, 1, 2] and [run.start for run in runs] == starts
    assert settings.grid["explained_rows"] >= 64
    lime = [c.spec for c in cells if c.row == "LIME"]
    assert all((e.rows or 0) >= 64 for e in lime)
    assert all(e.run.data.train_rows >= 64 for e in lime if e.run.data.taught)


def test_without_a_core_every_model_goes_on_from_its_baseline_and_no_run_is_made_twice():
    quick = settings_of("quick")
    task = s.core_task(quick)
    for criterion in s.CRITERIA:
        run = measurements.explained_run(quick, "ELECTRA", task, s.SPARSEMAX, criterion, 0)
        assert run.start == s.baseline(quick, "ELECTRA", task, 0)
        assert run == measurements.subset_run(quick, task, (criterion,), 0)
    assert "all else for 2 from there" in prose.reduced(quick)


def test_our_rows_are_the_paper_s(settings):
    for criterion, (first, second) in tables.BY_CRITERION.items():
        for table, bases in ((first, ("ELECTRA",)), (second, tables.OTHERS)):
            names = {
                tables.PRINTED.get((table, f"{base}|{row}"), f"{base}|{row}")
                for base in bases
                for row in s.EXPLAINERS
            }
            assert names == set(paper_table("ivra", table)["row"]), (criterion, table)
    begun = {"IvRA Softmax (untrained)", "IvRA Sparsemax (untrained)"}
    assert set(measurements.PLAUSIBLE) - begun == set(paper_table("ivra", "table6")["row"])
    rows = {s.subset_name(x) for x in s.SUBSETS} | {"ELECTRA baseline"}
    assert set(paper_table("ivra", "table5")["row"]) <= rows
    settings_tried = {measurements.setting_name(*x) for x in settings.grid["settings"]}
    assert settings_tried <= set(paper_table("ivra", "table7")["row"])


def test_numbers_stand_in_the_cells_of_their_method_task_and_model(study):
    first = tables.by_criterion(study, "SIM").long.set_index(["row", "column"])
    cell = first.loc[("ELECTRA|IvRA - Sparsemax", "IMDb")]
    assert cell["ours"] == pytest.approx(0.901) and (cell["n"], cell["paper"]) == (3, 0.944)
    assert cell["ours_se"] == pytest.approx(0.001 / np.sqrt(3))
    assert first.loc[(f"ELECTRA|{s.FLOOR}", "SNLI"), ["ours", "n"]].tolist() == [0.5, 1]
    low = tables.by_criterion(study, "SUFF").long.set_index(["row", "column"])
    assert low.loc[("ELECTRA|Attention-SMaT", "IMDb"), "ours"] == pytest.approx(1 - 0.801)
    other = tables.by_criterion(study, "SIM", others=True)
    cells = other.long.set_index(["row", "column"])
    assert cells.loc[("GPT-2|IvRA - Sparsemax", "IMDb"), "ours"] == pytest.approx(90)
    assert any("SmolLM2-135M, 4-bit weights" in name for name in other.wide.index)
    last = tables.by_criterion(study, "CONS", others=True).long.set_index(["row", "column"])
    assert last.loc[("Llama-2|SMaT", "IMDb"), "ours"] == pytest.approx(0.8)


def test_accuracy_costs_are_against_a_baseline_trained_as_long(study):
    shown = tables.table_5(study)
    cells = shown.long.set_index(["row", "column"])
    assert cells.loc[("ELECTRA baseline", "IMDb"), "ours"] == 80.0
    assert cells.loc[(measurements.CONTINUED, "IMDb"), ["ours", "n"]].tolist() == [80.2, 3]
    assert cells.loc[("Comp", "IMDb"), "cost"] == pytest.approx(-3.2)
    assert cells.loc[("Sim", "IMDb"), "cost"] == pytest.approx(0)  # its answers are the Baseline's
    assert cells.loc[("Cons", "SQuAD"), "cost"] == pytest.approx(-10.2)  # a short run
    assert cells.loc[("Sim+Comp+Suff+Cons", "IMDb"), "n"] == 1
    assert "cost −3.2" in shown.wide.loc["Comp"].iloc[0]


def test_a_baseline_trained_on_has_as_many_steps_as_a_model_for_a_criterion(settings):
    task = s.core_task(settings)
    longer = s.continued(settings, "ELECTRA", task, 1)
    assert longer.start == s.baseline(settings, "ELECTRA", task, 1)
    model = s.trained(settings, "ELECTRA", task, s.System(("SUFF",)), 1)
    assert (longer.start, longer.data, longer.optimiser) == (
        model.start, model.data, model.optimiser)  # fmt: skip
    assert measurements.continued_answers(settings_of("paper")) == []


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_post_hoc_rows_are_measured_on_a_model_trained_as_long_as_those_beside_them(profile):
    settings = settings_of(profile)
    for task in s.tasks(settings, "ELECTRA"):
        for criterion in s.CRITERIA[1:]:
            fixed, learned = (
                measurements.explained_run(settings, "ELECTRA", task, row, criterion, 0)
                for row in ("LIME", s.SPARSEMAX)
            )
            assert fixed.start == learned.start and fixed.data == learned.data
            assert fixed.optimiser.epochs == learned.optimiser.epochs
        alone = measurements.explained_run(settings, "ELECTRA", task, "LIME", "SIM", 0)
        assert alone == s.baseline(settings, "ELECTRA", task, 0)


def test_a_seed_without_a_number_is_left_out_of_a_difference(study, settings, results):
    cells = studies.chosen(study.by_explainer, base="ELECTRA", task="IMDb", criterion="CONS")
    after, before = (studies.chosen(cells, row=row) for row in (s.SPARSEMAX, "LIME"))
    undefined = results["measurements"].copy()
    undefined.loc[undefined["spec"] == after[0].spec, "consistency"] = np.nan
    found = studies.Study(settings, {**results, "measurements": undefined})
    assert found.difference(after[:1], before) is None
    assert study.difference(after[:1], before) is not None


def test_the_floor_is_subtracted_seed_by_seed(study):
    table = tables.floor_table(study).set_index(["base", "task", "method"])
    row = table.loc[("ELECTRA", "IMDb", s.SPARSEMAX)]
    assert row["above the floor"] == pytest.approx(40) and row["seeds"] == 3
    assert table.loc[("Llama-2", "IMDb", s.SMAT), "above the floor"] == pytest.approx(30)
    # .500, .501 and .502 by seed; attention has only the first
    assert row["floor"] == pytest.approx(50.1)
    assert table.loc[("ELECTRA", "IMDb", s.LAST), "floor"] == pytest.approx(50.0)


def test_seeds_of_models_that_are_not_trained_decide_nothing(study, settings, results, times):
    task = s.core_task(settings)
    weak = s.trained(settings, "ELECTRA", task, s.System(("COMP",), s.SPARSEMAX), 1)
    found = claims.measure_claims(without(settings, results, weak), *times)
    assert len(found["IV-C4"]["softmax over SMaT IMDb"]["differences"]) == 3
    assert "softmax over sparsemax IMDb" not in found["IV-C4"]  # two seeds left, others have three
    assert len(found["IV-C10"]["COMP IMDb"]["differences"]) == 3  # what it costs is asked there
    every = [s.trained(settings, "ELECTRA", task, s.System(("COMP",), name), seed)
             for name in s.MODULES for seed in settings.seeds]  # fmt: skip
    found = claims.measure_claims(without(settings, results, *every), *times)["IV-C4"]
    first = found["softmax over SMaT IMDb"]["differences"]
    assert first == pytest.approx([0.05])  # alone
    assert decide("ivra", "IV-C4", found).verdict == "inconclusive"


def test_a_module_that_is_not_trained_begins_as_the_trained_one_and_is_the_baseline_s(
    settings, study, results
):
    task, seed = s.core_task(settings), 1
    for row, module in s.UNTRAINED.items():
        run = measurements.explained_run(settings, "ELECTRA", task, row, "SUFF", seed)
        other = measurements.explained_run(settings, "ELECTRA", task, module, "SUFF", seed)
        assert run.start == s.baseline(settings, "ELECTRA", task, seed)
        assert run == measurements.explained_run(settings, "ELECTRA", task, row, "CONS", seed)
        assert run.model == other.model and run.optimiser.lr == 0 and steps_of(run) == 1
        # its scales are measured on the first batch of the same texts
        assert run.optimiser.batch_size == other.optimiser.batch_size
        assert run.data.train_rows == run.optimiser.batch_size <= other.data.train_rows
        cells = studies.chosen(study.by_explainer, base="ELECTRA", task="IMDb", row=row)
        of_seed = [c for c in cells if c.seed == seed]
        assert of_seed and all(map(study.is_trained, of_seed))
        weak = without(settings, results, run.start)
        assert not any(map(weak.is_trained, of_seed))
    shown = tables.by_criterion(study, "COMP")
    assert list(shown.wide.index)[-2:] == list(s.UNTRAINED)
    assert shown.long.set_index("row").loc[f"ELECTRA|{row}", "paper"].isna().all()
    assert not set(s.UNTRAINED) & set(tables.by_criterion(study, "SIM").wide.index)
    assert list(tables.table_6(study).wide().index)[-1] == "IvRA Sparsemax (untrained)"


def test_a_student_is_as_good_as_its_teacher_and_sim_alone_as_the_baseline(
    study, settings, results
):
    cells = studies.chosen(study.by_explainer, base="ELECTRA", task="IMDb", criterion="SIM")
    after, before = (studies.chosen(cells, row=row) for row in (s.SPARSEMAX, s.SMAT))
    task = s.core_task(settings)
    start = s.baseline(settings, "ELECTRA", task, 1)
    found = without(settings, results, start)
    assert [b.seed for b, _ in found.paired(after, before)] == [0, 2]
    assert [b.seed for b, _ in found.paired(after, before, every=True)] == [0, 1, 2]
    alone = s.trained(settings, "ELECTRA", task, s.System(("SIM",)), 1)  # answers as its start
    assert len(without(settings, results, alone).paired(after, before)) == 3
    spans = [c for c in study.by_explainer if c.task.spans]
    assert all(map(study.is_trained, spans))


def test_gains_and_curves_know_whether_all_compared_models_are_trained(study, settings, results):
    task = s.core_task(settings)
    weak = measurements.subset_run(settings, task, ("COMP",), 0)
    gains = without(settings, results, weak).subset_gains.set_index(["row", "criterion"])["trained"]
    assert not gains["COMP"].any() and not gains["SIM+SUFF", "COMP"]  # itself, and as reference
    assert gains["SIM+SUFF", "SUFF"] and study.subset_gains["trained"].all()
    level = measurements.level_runs(settings)["SUFF", "head", 0]
    curves = without(settings, results, level)
    curves.history = study.history
    known = curves.curves.groupby(["criterion", "level"])["trained"].all()
    assert known[~known].index.tolist() == [("SUFF", "head")]


def test_what_is_not_trained_or_has_no_number_is_left_out_of_differences_by_seed():
    differences = pd.Series([1.0, 2.0, np.nan, 4.0])
    table = pd.DataFrame({"seed": [0, 0, 1, 2, 3], "trained": [True, True, False, True, True]})
    assert claims._decided(differences, table) == {"differences": [1.0, 4.0]}
    assert claims._decided(differences, table.assign(trained=False)) == {"differences": [1.0]}
    assert claims._decided(differences[[2]], table) is None


def test_gains_are_relative_to_the_criterion_alone_and_sufficiency_counts_downwards(study):
    gains = study.subset_gains.set_index(["row", "criterion"])["gain"]
    assert gains["COMP", "COMP"] == 0 and gains["SIM+SUFF", "SUFF"] == 0
    cells = [
        measurements.Cell("ELECTRA", s.core_task(study.settings), row, "SUFF", 0, spec)
        for row, spec in (("SUFF", _spec(study, s.SOFTMAX)), ("b", _spec(study, s.SMAT)))
    ]
    worse = study.gains(cells, "{criterion}").set_index("row")["gain"]
    assert worse["b"] == pytest.approx(-100 * (0.2 - 0.15) / 0.15)


def _spec(study, row):
    return next(c.spec for c in studies.chosen(study.by_explainer, base="ELECTRA", task="IMDb",
                                               row=row, criterion="SUFF"))  # fmt: skip


@pytest.fixture
def measured(study, times):
    return claims.measure_claims(study, *times)


def test_all_17_claims_are_measured_with_differences_of_the_right_sign(measured):
    assert list(measured) == list(listed("ivra")) and len(measured) == 17
    assert measured["IV-C1"]["over SMaT IMDb"]["differences"] == pytest.approx([0.1] * 3)
    assert measured["IV-C4"]["softmax over sparsemax IMDb"]["differences"] == pytest.approx(
        [-0.05] * 3
    )
    assert measured["IV-C5"]["sparsemax under SMaT IMDb"]["differences"] == pytest.approx(
        [-0.1] * 3
    )
    assert measured["IV-C10"]["CONS IMDb"]["differences"] == pytest.approx([-10.2] * 3)
    assert measured["IV-C10"]["CONS below COMP IMDb"]["differences"] == pytest.approx([-7] * 3)
    assert measured["IV-C11"]["head below layer SIM"]["differences"] == pytest.approx([-0.1])
    assert measured["IV-C13"]["sparsemax, SUFF below COMP IMDb"]["differences"] == [0, 0, 0]
    assert "training, CONS above the others" not in measured["IV-C15"]  # of 8 texts
    assert measured["IV-C15"]["training, less than twice CONS"]["differences"] == pytest.approx(
        [1] * 3
    )
    assert measured["IV-C15"]["explaining, less than half LIME"]["differences"] == pytest.approx(
        [-0.48] * 3
    )
    assert measured["IV-C17"]["SIM GPT-2 IMDb"]["differences"] == pytest.approx([10])


def test_consistency_is_held_to_be_costly_on_many_texts_only(study, times):
    training, explaining = times
    many = training.assign(texts=training["texts"] * 50_000)
    found = claims.measure_claims(study, many, explaining)["IV-C15"]
    assert found["training, CONS above the others"]["differences"] == pytest.approx([1.2] * 3)
    assert "training, less than twice CONS" not in found


def test_every_measured_part_is_one_that_its_claim_has(measured):
    for claim, parts in measured.items():
        for name in parts:
            assert listed("ivra")[claim].part(name)


def test_core_claims_are_decided_by_the_core_task_and_a_single_seed_of_a_decoder_decides_nothing(
    study, measured
):
    verdicts = {claim: decide("ivra", claim, parts) for claim, parts in measured.items()}
    decided = {claim: verdicts[claim].verdict for claim in claims.CORE_CLAIMS}
    assert decided == {"IV-C1": "holds", "IV-C3": "holds", "IV-C4": "fails",
                       "IV-C5": "holds", "IV-C10": "holds"}  # fmt: skip
    assert all(verdicts[claim].n == 3 for claim in claims.CORE_CLAIMS)
    assert (verdicts["IV-C17"].verdict, verdicts["IV-C17"].n) == ("inconclusive", 1)
    said = claims.notes(study, measured)
    assert said["IV-C17"].startswith("One decoder, cut twice") and "4-bit weights" in said["IV-C17"]
    assert "nobody marked them" in said["IV-C12"]
    alike = [claim for claim in said if "Of sets other than IMDb there is one seed." in said[claim]]
    assert alike == ["IV-C10", "IV-C1", "IV-C3", "IV-C4", "IV-C5", "IV-C13"]
    for claim in ("IV-C6", "IV-C7"):  # softmax for SUFF and LIME have the first seed only
        assert verdicts[claim].n == 1 and "one seed" not in said.get(claim, "")


def test_the_paper_s_effects_come_from_its_tables():
    found = {c: {p.name: p.paper for p in claim.parts} for c, claim in listed("ivra").items()}
    assert found["IV-C1"]["over SMaT"] == pytest.approx((0.018 + 0.027 + 0.016) / 3, abs=1e-6)
    assert found["IV-C4"]["softmax over SMaT"] == pytest.approx(0.13 / 3, abs=1e-6)
    assert found["IV-C10"]["CONS"] == pytest.approx(-(7.8 + 6.5 + 10.4) / 3, abs=1e-6)
    assert found["IV-C12"]["SIM over SMaT"] == pytest.approx(0.05)
    assert listed("ivra")["IV-C1"].part("over SMaT IMDb").paper == pytest.approx(0.018)
    assert listed("ivra")["IV-C10"].part("COMP SQuAD").paper == pytest.approx(-1.9)
    table = paper_table("ivra", "table10").set_index(["row", "column"])["mean"]
    effects = [
        table[f"{base}|IvRA - Sparsemax", task] - table[f"{base}|Attention-SMaT", task]
        for base in ("GPT-2", "Llama-2")
        for task in ("IMDb", "SNLI", "SQuAD")
    ]
    assert found["IV-C5"]["sparsemax under SMaT"] == pytest.approx(np.mean(effects))
    for under, row in (("SMaT", "Attention-SMaT"), ("softmax", "IvRA - Softmax")):
        for task in ("IMDb", "SNLI", "SQuAD"):
            both = [table[f"{base}|IvRA - Sparsemax", task] - table[f"{base}|{row}", task]
                    for base in ("GPT-2", "Llama-2")]  # fmt: skip
            part = listed("ivra")["IV-C5"].part(f"sparsemax under {under} {task}")
            assert part.paper == pytest.approx(np.mean(both))


def test_the_figures_draw_what_was_measured(study, times):
    make = (figures.figure_5, figures.figure_6, figures.figure_7, figures.figure_8)
    drawn = [draw(study) for draw in make]
    drawn += [figures.figure_9(times[0]), figures.figure_10(times[1])]
    assert all(len(data) and figure.axes for figure, data in drawn)
    assert len(drawn[0][1]) == 15 * 4
    assert set(drawn[1][1]["level"]) == {"feature", "head", "layer", "all levels"}


def test_words_are_laid_out_in_lines_that_fit():
    tokens = ["word"] * 40
    placed = laid_out(tokens)
    assert len(placed) == 40 and max(column + 4 for _, column, _ in placed) <= LINE
    assert [line for line, _, _ in placed] == sorted(line for line, _, _ in placed)


def test_a_model_s_name_says_where_it_has_fewer_layers(settings, study):
    whole = "MiniLM (2 layers on SNLI and SQuAD)"
    assert tables.model_name(settings, "ELECTRA") == whole
    every = s.tasks(settings, "ELECTRA")
    named = {task.paper: tables.model_name(settings, "ELECTRA", task) for task in every}
    assert named == {"IMDb": "MiniLM", "SNLI": "MiniLM (2 layers)", "SQuAD": "MiniLM (2 layers)"}
    shown = tables.base_table(study).set_index(["base", "task"])["model"]
    assert shown["ELECTRA"].to_dict() == named
    assert shown["GPT-2", "IMDb"] == f"{DECODER} (2 layers, lowest 1 layer frozen)"


def test_what_the_profile_leaves_out_is_said(settings, study):
    said = prose.reduced(settings)
    assert "SNLI and SQuAD) for ELECTRA;" in said and f"{DECODER} (4 layers" in said
    assert "texts cut at 28 (IMDb), 64 (SNLI), 128 (SQuAD) sub-words" in said
    assert "at most 300 test texts for accuracy, students examined on 300, elsewhere on 100" in said
    assert "LIME with 50 samples" in said and "GPT-2 on IMDb only" in said
    assert "64 explained texts; 24 for sets" in said and "decoders for 240 before" in said
    quick = prose.reduced(settings_of("quick"))
    assert "2 of 8 methods for ELECTRA on SNLI" in quick and "2 of 16 settings" in quick
    assert "criteria trained together: IMDb up to 2, elsewhere one" in quick
    assert "at most 48 test texts for accuracy, students examined on 48;" in quick
    assert "nobody marked them" in prose.about_data(settings)
    assert "movie_snippets for IMDb" in prose.about_data(settings)
    assert f"most {s.SPARSEMAX}" in prose.about_simulatability(study)


def test_models_that_are_not_trained_are_named_by_what_they_are_trained_for(
    study, settings, results
):
    assert "Every Baseline and every model trained for COMP, SUFF or CONS has learnt its task" in (
        prose.about_training(study, results)
    )
    task = s.core_task(settings)
    target = s.transfer_target(settings, task)
    weak = [
        s.trained(settings, "ELECTRA", task, s.System(("COMP",), s.SMAT), 2),
        s.baseline(settings, "ELECTRA", target, 0),
        measurements.subset_run(settings, task, ("SUFF", "CONS"), 0),
    ]
    said = prose.about_training(without(settings, results, *weak), results)
    # COMP: three modules of three seeds, four levels, four settings, and the short one
    assert "Not trained (" in said and "MiniLM on SST2: Baseline 1 of 1" in said
    assert "MiniLM on IMDb: SUFF+CONS 1 of 1, COMP 1 of 18;" in said
    [cell] = [c for c in measurements.base_answers(settings) if c.base == "GPT-2"]
    below = measuring(settings, results, [cell], accuracy=0.5)
    assert prose.about_training(below, results).endswith(
        f"not above the majority class on test texts: {DECODER} (2 layers, lowest 1 layer frozen) "
        "on IMDb, seed 0."
    )


def test_sentences_leave_out_models_that_are_not_trained(study, settings, results):
    task = s.core_task(settings)
    weak = [s.trained(settings, "ELECTRA", task, s.System(("COMP",)), n) for n in settings.seeds]
    said = prose.about_criterion(without(settings, results, *weak), "COMP")
    begun = "IvRA - Softmax (untrained) 0.851, IvRA - Sparsemax (untrained) 0.901"
    assert f"IMDb: {s.SOFTMAX} 0.851, {s.SMAT} 0.801, {begun}; SNLI: {s.SPARSEMAX} 0.900" in said
    assert said.endswith("Models that are not trained are left out.")
    assert "left out" not in prose.about_criterion(study, "COMP")
    snli = s.baseline(settings, "ELECTRA", s.task_named(settings, "SNLI"), 0)
    firsts = [s.baseline(settings, "ELECTRA", task, n) for n in (0, 1)]
    said = prose.about_simulatability(without(settings, results, snli, *firsts))
    assert "IMDb: without explanations 50.2 %; seed by seed, 3 of 3 methods are above" in said
    assert "SNLI: no teacher is trained" in said and said.endswith("left out.")
    first = s.baseline(settings, "Llama-2", task, 0)
    said = prose.about_other_bases(without(settings, results, first))
    cut = f"{DECODER} (4 layers, lowest 2 layers frozen)"
    assert f"{cut}, IMDb: SIM none, COMP {s.SPARSEMAX}" in said


def test_where_no_model_is_trained_nothing_is_said_and_nothing_stops(
    study, settings, results, times
):
    none = without(settings, results, *results["models"]["spec"])
    about = [prose.about_simulatability(none), prose.about_other_bases(none),
             prose.about_gains(none), prose.about_levels(none), prose.about_transfer(none),
             prose.about_important(none), prose.about_settings(none), prose.about_costs(none),
             *(prose.about_criterion(none, criterion) for criterion in s.CRITERIA[1:])]  # fmt: skip
    assert all(about) and "nan" not in " ".join(about)
    for draw in (figures.figure_5, figures.figure_6, figures.figure_8):
        assert draw(none)[0].axes
    for claim, measured in claims.measure_claims(none, *times).items():
        if claim not in ("IV-C10", "IV-C15"):  # costs in accuracy and in time count everywhere
            assert decide("ivra", claim, measured).verdict == "inconclusive", claim


def failing(settings, results, *runs):
    """The study, had these runs failed, and with them the students that they were to teach."""
    models, table = results["models"].copy(), results["measurements"].copy()
    holes = [
        spec.run in runs or bool(spec.run.data.taught and spec.run.data.taught.run in runs)
        for spec in table["spec"]
    ]
    numbers = [c for c in table if c not in ("eval", "spec", "kind")]
    table["status"], models["status"] = "done", "done"
    table.loc[holes, numbers], table.loc[holes, "status"] = np.nan, "failed"
    models.loc[models["spec"].isin(runs), ["dev_chance_p", "status"]] = [np.nan, "failed"]
    return {**results, "models": models, "measurements": table}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_run_leaves_holes_and_stops_nothing(study, settings, results, times, seed):
    task = s.core_task(settings)
    systems = [s.System((criterion,), s.SPARSEMAX) for criterion in s.CRITERIA]
    runs = [s.trained(settings, "ELECTRA", task, system, seed) for system in systems]
    runs += [s.baseline(settings, "ELECTRA", task, seed)]
    level = next(r for (_, _, n), r in measurements.level_runs(settings).items() if n == 0)
    found = failing(settings, results, *runs, level)
    holed = studies.Study(settings, found)
    whole = tables.by_criterion(study, "COMP").long.set_index(["row", "column"])["n"]
    n = tables.by_criterion(holed, "COMP").long.set_index(["row", "column"])["n"]
    cell = (f"ELECTRA|{s.SPARSEMAX}", task.paper)
    assert (whole[cell], n[cell]) == (3, 2)
    part = claims._compare(holed, "softmax over", "COMP", s.SOFTMAX, s.SPARSEMAX)
    assert len(part[f"softmax over {task.paper}"]["differences"]) == 2
    assert claims.measure_claims(holed, *times)
    assert "Not trained" not in prose.about_training(holed, found)
    about = [prose.about_simulatability(holed), prose.about_costs(holed), prose.about_gains(holed),
             prose.about_levels(holed), prose.about_transfer(holed), prose.about_important(holed),
             prose.about_plausible(holed), prose.about_settings(holed),
             prose.about_other_bases(holed), prose.about_criterion(holed, "CONS")]  # fmt: skip
    assert all(about)
    for made in (tables.table_5, tables.table_6, tables.table_7, tables.base_table,
                 tables.floor_table, tables.collusion_table, figures.figure_5, figures.figure_6,
                 figures.figure_7, figures.figure_8):  # fmt: skip
        assert made(holed) is not None, made


@pytest.mark.parametrize("task", ["IMDb", "SNLI"])
def test_a_failed_run_of_the_only_seed_stops_nothing_either(study, times, task):
    settings = settings_of("quick")
    results = carried_out(settings)
    base = s.baseline(settings, "ELECTRA", s.task_named(settings, task), 0)
    runs = [spec for spec in results["models"]["spec"] if base in (spec, spec.start)]
    found = failing(settings, results, *runs)
    holed = studies.Study(settings, found)
    for made in (tables.table_5, tables.table_6, tables.table_7, tables.base_table,
                 tables.floor_table, figures.figure_5, figures.figure_6, figures.figure_7,
                 figures.figure_8, prose.about_gains, prose.about_levels, prose.about_important,
                 prose.about_transfer, prose.about_plausible, prose.about_settings):  # fmt: skip
        assert made(holed) is not None, made
    assert prose.about_collusion(tables.collusion_table(holed))
    for claim, measured in claims.measure_claims(holed, *times).items():
        assert decide("ivra", claim, measured).verdict, claim


def test_what_needs_one_failed_model_is_a_remark_that_names_it(tmp_path, times):
    settings = check_parameters("ivra", {**PARAMETERS, "profile": "quick", "store": str(tmp_path)})
    store, names = open_store(settings.store), {}
    tasks = {"SIM": s.core_task(settings), "CONS": s.task_named(settings, "SQuAD")}
    for criterion, task in tasks.items():
        for explainer in ("LIME", *s.MODULES):
            spec = measurements.explained_run(settings, "ELECTRA", task, explainer, criterion, 0)
            names[criterion, explainer] = name = run_hash(spec)
            fail(store, "runs", name, spec, Diverged("loss became nan in step 3"))
    holed = studies.Study(settings, {"measurements": pd.DataFrame()})
    why = "it needs run {}, which failed (loss became nan in step 3)"

    figure, numbers = figure_3(holed)
    assert remark_of(numbers) == why.format(names["SIM", s.SOFTMAX])
    drawn = figure.axes[0].texts[0].get_text().replace("\n", " ")
    assert drawn == f"Not measured: {remark_of(numbers)}."
    assert prose.about_words(numbers) == ""

    _, numbers = figure_4(holed)
    assert remark_of(numbers) == why.format(names["CONS", "LIME"])  # of the Baseline
    assert prose.about_questions(numbers) == ""
    assert names["SIM", "LIME"] in examples(holed, 2)

    explaining = costs.explaining_times(holed)
    assert remark_of(explaining) == why.format(names["SIM", "LIME"])
    assert names["SIM", "LIME"] in remark_of(figures.figure_10(explaining)[1])
    assert prose.about_explaining_times(explaining) == ""
    parts = claims._times(times[0], explaining)
    assert parts and all(name.startswith("training") for name in parts)


def test_a_timed_training_that_diverges_is_a_remark(settings, times, monkeypatch):
    def diverges(*_):
        raise Diverged("loss became nan in step 3")

    monkeypatch.setattr(costs, "train", diverges)
    training = costs.training_times(settings)
    assert remark_of(training) == remark_of(figures.figure_9(training)[1])
    assert remark_of(training) == "loss became nan in step 3"
    assert prose.about_training_times(training) == ""
    parts = claims._times(training, times[1])
    assert parts and all(name.startswith("explaining") for name in parts)


def test_sentences_say_what_the_tables_have(study):
    assert prose.about_costs(study).startswith(
        "Points against the Baseline of the same seeds; but for SIM alone, it is trained on for as "
        "many steps. IMDb: SIM +0.0, COMP −3.2, SUFF −1.0, CONS −10.2"
    )
    assert prose.compared_with(settings_of("paper")) == "the Baseline of the same seeds"
    assert f"fewest {s.SPARSEMAX} (0.10)" in prose.about_important(study)
    assert prose.about_plausible(study).endswith("Chance is .50.")
    assert "SIM lr=3e-5, γ=0.750 (tied)" in prose.about_settings(study)
    said = prose.about_other_bases(study)
    assert f"(4 layers, lowest 2 layers frozen), IMDb: SIM {s.SPARSEMAX}" in said
    assert "from 1.000 to 0.100" in prose.about_collusion(tables.collusion_table(study))


def test_a_criterion_counts_once_however_many_seeds_it_has(study, settings, results):
    cells = measurements.important_tokens(settings)
    assert len(studies.chosen(cells, task="IMDb", row=s.SOFTMAX, criterion="COMP")) == 3
    once = studies.chosen(cells, task="IMDb", row=s.SOFTMAX, criterion="SUFF")
    assert len(once) == 1
    said = prose.about_important(measuring(settings, results, once, share=0.95))
    assert f"most {s.SOFTMAX} (0.55)" in said  # (.149 + .95) / 2


def test_rows_that_are_equally_good_are_called_tied(study, settings, results):
    assert "tied" not in prose.about_other_bases(study)
    lime = studies.chosen(study.by_explainer, base="Llama-2", row="LIME", criterion="CONS")
    said = prose.about_other_bases(measuring(settings, results, lime, consistency=0.9))
    assert said.count("(tied)") == 1 and "CONS LIME (tied)" in said


def test_a_gain_without_a_number_is_not_counted(study, settings, results):
    assert " of 56 gains are negative" in prose.about_gains(study)  # 15 sets by 4, less 4 alone
    [cell] = studies.chosen(measurements.by_subset(settings), row="SIM+COMP", criterion="CONS")
    undefined = measuring(settings, results, [cell], consistency=np.nan)
    assert " of 55 gains are negative" in prose.about_gains(undefined)


def test_sentences_of_the_drawn_texts_count_words_and_compare_questions():
    words = pd.DataFrame({"what": "score", "explainer": "A", "value": [0.6, -0.3, 0.1, 0.0]})
    assert "A 1 of 4 words (1 have none)" in prose.about_words(words)
    asked = pd.DataFrame(
        {
            "explainer": ["A: first?"] * 3 + ["A: second?"] * 4,
            "segment": [0, 1, 1, 0, 0, 1, 1],
            "value": [9.0, 1.0, 2.0, 7.0, 8.0, 2.0, 4.0],
        }
    )
    assert "A 1.00" in prose.about_questions(asked)
