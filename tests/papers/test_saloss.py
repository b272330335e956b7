"""SaLoss's grid is the paper's, and each of its numbers lands in the right cell and claim."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ranksums

from erlib.config import RunSpec
from erlib.papers.holes import REMARK
from erlib.papers.saloss import audit, claims, examples, figures, prose, stages, systems, tables
from erlib.parameters import check_parameters
from erlib.reports import decide, paper_table
from erlib.reports.claims import claims as listed
from erlib.training.executors import fail, open_store, per_text
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip


@pytest.fixture(scope="module")
def settings():
    return check_parameters("saloss", PARAMETERS)


def carried_out(settings, value, accuracy=lambda spec: 0.7, failed=lambda run: False):
    """Results as `carry_out` gives them; `value(spec)` is every number that a spec can have."""
    results: dict[str, pd.DataFrame] = {}
    for stage in stages.grid(settings):
        specs = list(stage.specs(results))
        assert len(set(specs)) == len(specs) <= stage.maximum, stage.name
        rows = []
        for spec in specs:
            number = value(spec)
            if isinstance(spec, RunSpec):
                row = {"seed": spec.seed, "status": "done", "dev_f1_macro": number}
                row |= {"dev_accuracy": accuracy(spec), "dev_majority": 0.5}
                row |= {"dev_chance_p": 0.001 if accuracy(spec) > 0.5 else 0.5}
            else:
                row = {"seed": spec.run.seed, "kind": spec.kind, "corpus": spec.data.corpus}
                row |= {"method": spec.method, "f1_macro": number, "fraction": number}
            if failed(spec if isinstance(spec, RunSpec) else spec.run):
                scores = [name for name, x in row.items() if isinstance(x, float)]
                row |= {"status": "failed", **dict.fromkeys(scores, np.nan)}
            rows.append({"spec": spec, "status": "done", **row})
        results[stage.name] = pd.DataFrame(rows)
    return results


def by_system(numbers, otherwise=0.5):
    """The number of a spec hangs on its system alone."""

    def value(spec):
        run = spec if isinstance(spec, RunSpec) else spec.run
        return numbers.get(systems.system_of(run), otherwise)

    return value


@pytest.fixture(scope="module")
def results(settings):
    def value(spec):
        run = spec if isinstance(spec, RunSpec) else spec.run
        system, seed = systems.system_of(run), run.seed
        start = {"Baseline": 0.6, "TextRank": 0.4, "TFIDF": 0.45, "ChiSquared": 0.5}.get(
            system, 0.3
        )
        method = getattr(spec, "method", None)
        shift = {"attention": 0.0, "random": 0.2, "input_x_gradient": 0.1}.get(method, 0.05)
        return start + shift + 0.01 * seed + (0.03 if getattr(spec, "protocol", None) else 0)

    return carried_out(settings, value)


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    paper = check_parameters("saloss", {**PARAMETERS, "profile": "paper", "data": "local"})
    printed = paper_table("saloss", "table6").set_index(["row", "column"])["printed"]
    for task in systems.tasks(paper):
        spec = systems.run_spec(paper, task, systems.SALOSS, 100, 1e-3)
        assert spec.optimiser.lr == float(printed[task.paper, "lr_m"])
        assert spec.optimiser.head_lr == float(printed[task.paper, "lr_c"])
        assert printed[task.paper, "model"].split("-")[0] in spec.model.name
        assert spec.optimiser.epochs == (20 if task.paper == "SEMEVAL" else 10)
        assert spec.optimiser.batch_size == (8 if task.paper in ("SST", "SEMEVAL") else 4)
        assert task.core and spec.start is None and spec.model.head == "pooled"
        assert spec.optimiser.checkpoint.patience is None and spec.optimiser.warmup == 0
        fresh = systems.fresh_spec(paper, task, spec, "top_k")  # a tenth of the first epoch
        assert fresh.optimiser.warmup * fresh.optimiser.epochs == pytest.approx(0.1)
    assert paper.seeds == (100, 200, 300)
    assert all(
        w == [1e-2, 1e-3, 1e-4] for (_, s), w in stages.searched(paper).items() if s != "eq. 3"
    )
    assert all(spec.rows is None for spec in stages.search_evals(paper, stages.candidates(paper)))


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_lambda_has_the_paper_s_meaning_since_batches_are_as_large_as_the_paper_s(profile):
    chosen = check_parameters("saloss", {**PARAMETERS, "profile": profile, "seeds": [0]})
    for task in systems.tasks(chosen):
        printed = {"SST": 1e-3, "AG": 1e-4, "Ev.Inf": 1e-4, "M.RC": 1e-3, "SEMEVAL": 1e-3}
        assert task.weight == printed[task.paper]
        batch = 8 if task.paper in ("SST", "SEMEVAL") else 4
        for system in ("Baseline", "TextRank"):
            spec = systems.run_spec(chosen, task, system, 0, task.weight)
            assert spec.optimiser.batch_size == batch


def test_what_the_hub_does_not_have_is_read_from_the_local_folder():
    paper = check_parameters("saloss", {**PARAMETERS, "profile": "paper"})
    sources = {task.corpus: task.source for task in systems.tasks(paper)}
    assert sources.pop("evinf") == "local" and set(sources.values()) == {"hub"}


def test_saloss_is_the_loss_of_the_code_and_every_system_is_told_by_its_losses():
    (task, salience) = systems.objective("TextRank", 1e-3)
    assert (task.name, salience.name, salience.weight) == ("task", "salience", 1e-3)
    assert dict(salience.options) == {"kl": "reference", "salience_of": "textrank"}
    names = ["Baseline", *systems.SALIENCE, *systems.AUDIT]
    assert len({systems.objective(name, 1.0) for name in names}) == len(names)


def test_core_tasks_are_trained_from_scratch_and_wide_ones_go_on_from_the_baseline(settings):
    core, *wide = systems.tasks(settings)
    assert core.core and core.corpus == "movie_snippets" and not any(t.core for t in wide)
    spec = systems.run_spec(settings, core, "TFIDF", 1, 1e-3)
    steps = -(-spec.data.train_rows // spec.optimiser.batch_size) * spec.optimiser.epochs
    assert spec.start is None and steps >= 120
    for task in wide:
        spec = systems.run_spec(settings, task, "TFIDF", 0, 1e-3)
        baseline = systems.run_spec(settings, task, "Baseline", 0)
        assert spec.start is not None and spec.start.start is None
        assert baseline == replace(spec, objective=spec.start.objective)  # as long, the task alone
        assert systems.seeds_of(settings, task) == (0,)


@pytest.fixture(scope="module")
def best_elsewhere(settings):
    """1e-3, the paper's, is the best on tweets, 1e-2 everywhere else."""

    def value(spec):
        run = spec if isinstance(spec, RunSpec) else spec.run
        weight = run.objective[-1].weight
        return 0.1 if weight == (1e-3 if run.data.corpus == "tweets3" else 1e-2) else 0.9

    return carried_out(settings, value)


def test_the_weight_with_the_smallest_fraction_on_dev_texts_is_chosen(settings, best_elsewhere):
    weights = stages.chosen(settings, best_elsewhere)
    assert weights["tweets3", "TextRank"] == 1e-3 and weights["reuters_r8", "TextRank"] == 1e-2
    # where nothing differs, the smaller of the two that were tried
    assert weights["movie_snippets", "eq. 3"] == 0.1
    search = best_elsewhere["search"]["spec"]
    assert all(spec.split == "dev" and spec.rows >= 200 for spec in search)


def test_every_system_has_the_paper_s_weight_and_textrank_the_chosen_one_as_well(
    settings, best_elsewhere
):
    used: dict[tuple[str, str], set[float]] = {}
    for spec in best_elsewhere["systems"]["spec"]:
        key = (spec.data.corpus, systems.row_of(settings, spec))
        used.setdefault(key, set()).add(spec.objective[-1].weight)
    assert used["reuters_r8", "TextRank"] == used["reuters_r8", "Uniform"] == {1e-4}
    assert used["reuters_r8", "TextRank, chosen λ"] == {1e-2}
    assert used["tweets3", "TextRank"] == used["tweets3", "ChiSquared"] == {1e-3}
    assert ("tweets3", "TextRank, chosen λ") not in used  # one model serves both
    assert used["movie_snippets", "eq. 3"] == used["movie_snippets", "second softmax"] == {0.1}
    assert used["movie_snippets", "squared sum"] == {1e-3}
    supports = {spec.data.extract.run for spec in best_elsewhere["fresh"]["spec"]}
    assert "TextRank, chosen λ" not in {systems.row_of(settings, run) for run in supports}


def test_a_task_with_one_weight_has_no_search_and_that_weight():
    quick = check_parameters("saloss", {**PARAMETERS, "profile": "quick", "seeds": [0]})
    results = carried_out(quick, by_system({}))
    assert set(results["search"]["corpus"]) == {"movie_snippets"}
    assert stages.chosen(quick, results)["reuters_r8", "TextRank"] == 1e-4
    assert "reuters_r8 1e-4, the only one tried" in prose.about_search(quick, results)


def test_the_chosen_weight_s_numbers_stand_beside_the_paper_s_in_tables_1_and_2(
    settings, best_elsewhere
):
    shown, long = tables.table_1(settings, best_elsewhere)
    assert shown.loc["AG\nreuters_r8", "λ"] == "paper's 1e-4\nchosen 1e-2"
    cells = long.set_index(["row", "column"])
    assert cells.loc[("AG", "SaLoss"), ["ours", "weight"]].tolist() == [0.9, "1e-4"]
    assert cells.loc[("AG", "SaLoss, chosen λ"), ["ours", "weight"]].tolist() == [0.1, "1e-2"]
    assert cells.loc[("AG", "Baseline"), "weight"] == ""
    shown, long = tables.table_2(settings, best_elsewhere)
    cells = long.set_index(["row", "column"])["ours"]
    assert cells["SaLoss|IG", "AG"] == 0.9 and cells["SaLoss, chosen λ|IG", "AG"] == 0.1
    assert cells["SaLoss|a", "SEMEVAL"] == cells["SaLoss, chosen λ|a", "SEMEVAL"] == 0.1
    assert list(shown.index[-8::4]) == ["SaLoss (paper's λ) α", "SaLoss (chosen λ) α"]
    tests = tables.measured(settings, best_elsewhere)
    assert set(tests.loc[tests["kind"] == "parts_of_speech", "system"]) == {"Baseline", "TextRank"}


def test_fresh_classifiers_see_the_rationales_of_their_support_at_the_task_s_share(
    settings, results
):
    specs = list(results["fresh"]["spec"])
    shares = {s.data.corpus: s.data.extract.percent for s in specs}
    assert shares["snli"] == 10 and shares["movie_snippets"] == 20
    for spec in specs:
        extract = spec.data.extract
        assert extract.run.seed == spec.seed and extract.run.data.corpus == spec.data.corpus
        assert (extract.method, extract.variant) == ("attention", "saloss")
        assert spec.start is None and len(spec.objective) == 1
    tested = [s for s in results["measurements"]["spec"] if s.data.extract]
    assert [s.data.extract for s in tested] == [s.data.extract for s in specs]


def test_numbers_stand_in_the_cells_of_their_system_attribution_and_set(settings, results):
    shown, long = tables.table_2(settings, results)
    assert list(shown.index[:3]) == ["Random", "Baseline α", "Baseline x∇x"]
    assert shown.columns[0] == "SST\nmovie_snippets"
    mine = shown.loc["SaLoss (paper's λ) α", "SST\nmovie_snippets"]
    assert mine.startswith("0.41 ± 0.01\npaper 0.42")
    cells = long.set_index(["row", "column"])
    assert cells.loc[("Random", "SST"), "ours"] == pytest.approx(0.6 + 0.2 + 0.01)
    assert cells.loc[("Baseline|xGx", "AG"), "ours"] == pytest.approx(0.7)
    assert cells.loc[("SaLoss|a", "SST"), ["ours", "n"]].tolist() == pytest.approx([0.41, 3])
    assert cells.loc[("SaLoss|a", "SST"), "difference"] == pytest.approx(0.41 - 0.42)
    blocks = tables.table_8(settings, results)[1].set_index(["row", "column"])
    assert blocks.loc[("TFIDF|IG", "SEMEVAL"), "ours"] == pytest.approx(0.5)
    assert blocks.loc[("ChiSquared|a", "M.RC"), "ours"] == pytest.approx(0.5)
    wide, long = tables.table_3(settings, results)
    assert "SST\nmovie_snippets" in wide.index and len(long) == 15
    uniform = long.query("column == 'SaLoss-Uniform' and row == 'SST'").iloc[0]
    assert uniform["ours"] == pytest.approx(0.3 + 0.05 + 0.01) and uniform["paper"] == 0.82


def test_the_audit_compares_each_departure_with_the_same_model_or_seed(settings):
    numbers = {"eq. 3": 0.2, "TextRank": 0.3, "second softmax": 0.24, "CE on probabilities": 0.37,
               "unweighted TextRank": 0.28, "TFIDF": 0.4}  # fmt: skip
    table = audit.audit_table(settings, carried_out(settings, by_system(numbers)))
    change = table.set_index(["departure", "measure"])["change"]
    assert change["second softmax and squared sum", "fraction, α"] == pytest.approx(0.1)
    assert change["second softmax, alone", "test F1-macro"] == pytest.approx(0.04)
    assert change["CE on probabilities", "fraction, α"] == pytest.approx(0.07)
    assert change["two-way neighbours count 2", "fraction, α"] == pytest.approx(0.02)
    assert change["TF-IDF of scikit-learn's words", "test F1-macro"] == pytest.approx(-0.1)
    # of the saliences themselves: many texts have two-way neighbours, and few ranks move by them
    assert 0.3 < change["two-way neighbours count 2", "texts whose salience differs"] < 0.7
    assert -0.1 < change["two-way neighbours count 2", "ρ of the two saliences"] < 0
    assert 0.1 < change["TF-IDF of scikit-learn's words", "tokens of salience 0"] < 0.4
    departures = table["departure"].unique()
    for part in ("squared sum", "deleted", "embedding matrix", "order of score", "best seed"):
        assert any(part in name for name in departures), part


def test_one_seed_is_no_choice_of_seeds():
    quick = check_parameters("saloss", {**PARAMETERS, "profile": "quick", "seeds": [0]})
    table = audit.audit_table(quick, carried_out(quick, by_system({})))
    choice = table["departure"] == "best seed by test F1"
    assert table.loc[choice, "change"].isna().all() and table.loc[~choice, "change"].notna().all()


def fake_per_text(spec, store=None):
    """SaLoss flips .2 earlier, answers as the Baseline does, and looks at proper nouns more."""
    system = systems.system_of(spec.run)
    if spec.kind == "flips":
        start = {"Baseline": 0.7, "TextRank": 0.5, "TFIDF": 0.6, "ChiSquared": 0.8}.get(system, 0.4)
        start += 0.25 if spec.method == "random" else 0.0
        start += 0.05 if spec.method != "attention" else 0.0
        return pd.DataFrame({"fraction": start + 0.01 * np.arange(-4, 5)})
    if spec.kind == "parts_of_speech":
        scores = [0.5, 0.3, 0.2] if system == "TextRank" else [0.2, 0.3, 0.5]
        row = {"words": ["Bob", "it", "and"], "tags": ["PROPN", "PRON", "CCONJ"], "scores": scores}
        return pd.DataFrame([{**row, "words": [f"{w}{i}" for w in row["words"]]} for i in range(6)])
    wrong = spec.data.extract is not None and system == "Uniform"
    predicted = [0, 1, 1, 1] if wrong else [0, 0, 1, 1]
    return pd.DataFrame({"label": [0, 0, 1, 1] * 10, "predicted": predicted * 10})


@pytest.fixture
def found(settings, results, monkeypatch):
    for module in (claims, figures, tables):
        monkeypatch.setattr(module, "per_text", fake_per_text)
    return claims.measure_claims(settings, results)


def test_all_ten_claims_are_measured_with_differences_of_the_right_sign(found):
    assert list(found) == list(listed("saloss")) and len(found) == 10
    assert found["SL-C1"]["SST"]["differences"] == [0, 0, 0]
    assert found["SL-C3"]["SST"]["differences"] == pytest.approx([-0.2] * 3)
    assert found["SL-C4"]["SST"]["differences"] == pytest.approx([-0.05] * 3)
    assert found["SL-C5"]["SST Baseline a"]["differences"] == pytest.approx([-0.3] * 3)
    # F1-macro of Uniform: (2/3 + 4/5) / 2 against 1
    expected = (2 / 3 + 4 / 5) / 2 - 1
    assert found["SL-C7"]["SST"]["differences"] == pytest.approx([expected] * 3)
    assert found["SL-C9"]["TextRank under χ²"]["differences"] == [0.5] * 3
    assert found["SL-C9"]["mean TF-IDF − χ²"]["differences"] == pytest.approx([-0.2] * 3)
    assert found["SL-C10"]["SST PROPN"]["differences"] == pytest.approx([0.3] * 3)
    assert found["SL-C10"]["SST CCONJ"]["differences"] == pytest.approx([-0.3] * 3)
    assert "SST INTJ" not in found["SL-C10"]  # no such word in the texts


def test_every_measured_part_is_one_that_its_claim_has(found):
    for claim, parts in found.items():
        for name in parts:
            assert listed("saloss")[claim].part(name)


def test_core_claims_are_decided_by_the_core_set_and_one_seed_decides_nothing(found):
    core = ("SL-C1", "SL-C3", "SL-C7", "SL-C9")
    verdicts = {claim: decide("saloss", claim, found[claim]) for claim in core}
    assert {d.verdict for d in verdicts.values()} == {"holds"}
    assert list(verdicts["SL-C1"].parts) == ["SST"] and verdicts["SL-C1"].n == 3
    left_out = "left out (too few seeds) or not measured: Ev.Inf, M.RC"
    assert left_out in verdicts["SL-C3"].reason
    cells = decide("saloss", "SL-C2", found["SL-C2"])
    assert (cells.n, cells.verdict, cells.part) == (1, "inconclusive", "cells that improve")
    assert cells.estimate == pytest.approx(1 - 16.5 / 20) and "SST a" in cells.parts


def test_models_that_have_not_learnt_their_task_decide_nothing(settings, monkeypatch):
    def accuracy(spec):  # the second seed's SaLoss, and every classifier of Uniform rationales
        uniform = spec.data.extract is not None and systems.system_of(spec) == "Uniform"
        return 0.5 if uniform or (systems.system_of(spec), spec.seed) == ("TextRank", 1) else 0.7

    results = carried_out(settings, by_system({}), accuracy)
    for module in (claims, figures, tables):
        monkeypatch.setattr(module, "per_text", fake_per_text)
    found = claims.measure_claims(settings, results)
    assert len(found["SL-C1"]["SST"]["differences"]) == 2
    assert len(found["SL-C7"]["SST"]["differences"]) == 1
    assert decide("saloss", "SL-C7", found["SL-C7"]).verdict == "inconclusive"
    # two seeds decide nothing, though eq. 3, which is reported beside, has three
    assert len(found["SL-C3"]["SST"]["differences"]) == 2
    assert len(found["SL-C3"]["SST by eq. 3"]["differences"]) == 3
    attention = decide("saloss", "SL-C3", found["SL-C3"])
    assert attention.verdict == "inconclusive" and "SST by eq. 3" in attention.parts
    shown, _ = tables.table_1(settings, results)
    mine = shown.loc["SST\nmovie_snippets", "SaLoss (paper's λ)"]
    assert mine.endswith("n=3\n1 of 3 not trained")
    assert "not trained" not in shown.loc["SST\nmovie_snippets", "Baseline"]
    shown, _ = tables.table_3(settings, results)
    assert shown.loc["AG\nreuters_r8", "SaLoss-Uniform"].endswith("n=1\nnot trained")
    assert "TextRank on SST" in prose.about_training(settings, results)
    said = prose.about_flips(settings, results)
    assert "of 16 cells" in said and said.endswith("since a model is not trained: SST.")
    figure, _ = figures.figure_1(settings, results)
    titles = [axis.get_title() for axis in figure.axes]
    assert [title.endswith("not trained") for title in titles] == [True, False, False]


@pytest.mark.parametrize("system", ["Baseline", "TextRank"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_run_leaves_holes_and_stops_nothing(settings, monkeypatch, system, seed):
    def failed(run):
        support = run.data.extract.run if run.data.extract else run
        return (systems.system_of(support), support.seed) == (system, seed)

    results = carried_out(settings, by_system({}), failed=failed)
    assert not any(failed(spec.run) for spec in results["measurements"]["spec"])  # nobody asks
    for module in (claims, figures, tables):
        monkeypatch.setattr(module, "per_text", fake_per_text)
    whole = tables.table_1(settings, carried_out(settings, by_system({})))[1]
    table = tables.table_1(settings, results)[1]
    assert whole["n"].sum() > table["n"].sum() > 0
    assert len(claims.measure_claims(settings, results)["SL-C1"]["SST"]["differences"]) == 2
    for made in (tables.table_2, tables.table_3, tables.table_6, tables.table_7, tables.table_8,
                 tables.flip_tests, tables.fresh_tests, figures.figure_1, prose.about_training,
                 prose.about_search, prose.about_flips, prose.about_fresh, prose.about_functions,
                 prose.about_tags):  # fmt: skip
        assert made(settings, results) is not None, made
    assert "Not trained" not in prose.about_training(settings, results)


@pytest.mark.parametrize("system", ["Baseline", "TextRank", "eq. 3", "TFIDF"])
def test_an_audited_model_that_failed_leaves_its_cells_empty(settings, monkeypatch, system):
    monkeypatch.setattr(audit, "_salience", lambda settings, task: [])  # asks no model

    def failed(run):
        return (systems.system_of(run), run.seed) == (system, 0)

    results = [
        carried_out(settings, by_system({}), failed=which) for which in (lambda run: False, failed)
    ]
    whole, holed = (audit.audit_table(settings, found) for found in results)
    assert holed["departure"].tolist() == whole["departure"].tolist()
    assert holed["change"].notna().sum() < whole["change"].notna().sum()


def test_where_no_model_is_trained_nothing_is_said_and_nothing_stops(settings, monkeypatch):
    results = carried_out(settings, by_system({}), lambda spec: 0.5)
    for module in (claims, figures, tables):
        monkeypatch.setattr(module, "per_text", fake_per_text)
    assert prose.about_flips(settings, results).startswith("On no set are all models trained")
    about = [
        prose.about_fresh(settings, results),
        prose.about_functions(settings, results),
        prose.about_tags(settings, results),
        prose.about_training(settings, results),
    ]
    assert all(about) and "nan" not in " ".join(about)  # fmt: skip
    assert figures.figure_1(settings, results)[0].axes
    for claim, measured in claims.measure_claims(settings, results).items():
        assert decide("saloss", claim, measured).verdict == "inconclusive", claim


def test_a_classifier_of_an_untrained_model_s_rationales_is_not_trained_either(
    settings, monkeypatch
):
    def accuracy(spec):  # the second seed's Baseline of sentences, itself
        weak = spec.data.extract is None and spec.data.corpus == "movie_snippets"
        return 0.5 if weak and (systems.system_of(spec), spec.seed) == ("Baseline", 1) else 0.7

    results = carried_out(settings, by_system({}), accuracy)
    monkeypatch.setattr(claims, "per_text", fake_per_text)
    monkeypatch.setattr(figures, "per_text", fake_per_text)
    assert len(claims.measure_claims(settings, results)["SL-C6"]["SST"]["differences"]) == 2
    shown, _ = tables.table_3(settings, results)
    assert shown.loc["SST\nmovie_snippets", "Baseline"].endswith("1 of 3 not trained")
    tests = tables.fresh_tests(settings, results).set_index(["set", "shape"])["trained"]
    assert tests["SST", "top-k"] == "no" and tests.drop(("SST", "top-k")).eq("yes").all()
    said = prose.about_training(settings, results)
    assert "p < 0.01): Baseline on SST, FRESH on SST. Nothing" in said


def test_mean_f1_of_rationales_is_of_trained_classifiers_and_every_set_counts_once(settings):
    def value(spec):  # sentences .9, its third seed .6; all other sets .31; TextRank .1 higher
        run = spec if isinstance(spec, RunSpec) else spec.run
        f1 = 0.9 if run.data.corpus == "movie_snippets" else 0.31
        f1 = 0.6 if f1 == 0.9 and run.seed == 2 else f1
        return f1 + (0.1 if systems.system_of(run) == "TextRank" else 0)

    def accuracy(spec, weak=("movie_snippets", "tweets3")):  # the third seed's; all of tweets
        fresh = spec.data.extract is not None and systems.system_of(spec) == "Uniform"
        return 0.5 if fresh and spec.data.corpus in weak and spec.seed in (0, 2) else 0.7

    said = prose.about_fresh(settings, carried_out(settings, value))
    # sentences (.9 + .9 + .6) / 3 = .8, four others .31
    means = "top-k Baseline 0.41, TextRank 0.51, Uniform 0.41 (SST, AG, Ev.Inf, M.RC, SEMEVAL)"
    assert means in said
    assert "contiguous Baseline 0.43" in said and said.endswith("SEMEVAL).")  # one seed, .9
    said = prose.about_fresh(settings, carried_out(settings, value, accuracy))
    # Uniform: sentences .9 by the second seed alone, three others .31; the others as before
    assert "top-k Baseline 0.43, TextRank 0.53, Uniform 0.46 (SST, AG, Ev.Inf, M.RC)" in said
    assert said.endswith("top-k on SEMEVAL; contiguous on SST, SEMEVAL.")
    none = prose.about_fresh(
        settings, carried_out(settings, value, lambda s: 0.5 if s.data.extract else 0.7)
    )
    assert "words: none. Left out" in none and "nan" not in none


def test_tests_over_texts_are_scipys_and_one_sided_against_random(settings, results, found):
    table = tables.flip_tests(settings, results).set_index(["set", "by"])
    cell = table.loc["SST", "α"]
    steps = 0.01 * np.arange(-4, 5)
    assert cell["rank-sum"] == pytest.approx(ranksums(0.5 + steps, 0.7 + steps).pvalue)
    assert cell["signed-rank"] == pytest.approx(2 / 2**9)  # nine texts, all on one side
    assert cell["SaLoss\nunder random"] == pytest.approx(1 / 2**9)
    assert cell["Holm"] == pytest.approx(min(1, 20 * 2 / 2**9)) and cell["texts"] == 9
    said = prose.about_flips(settings, results)
    assert "20 of 20 cells" in said
    assert "With fewer than 10 texts no signed-rank test can pass Holm: SST, AG" in said


def test_equal_salience_functions_are_called_equal(settings):
    numbers = {"TextRank": 0.4, "TFIDF": 0.4, "ChiSquared": 0.5}
    said = prose.about_functions(settings, carried_out(settings, by_system(numbers)))
    assert "TextRank under TF-IDF in 0 of 20, 20 equal (sign test p 1.00)" in said
    assert "TextRank under χ² in 20 of 20 (sign test p 0.00)" in said


def test_the_paper_s_own_text_is_shown_if_it_is_there_and_else_a_short_one():
    short, long = ["word"] * 12, ["word"] * 100
    theirs = ["a", "promising", ",", "Unusual", "kind", "of", "psycho-logical", "horror", "."]
    phrase = examples.SHOWN["sentences"]
    assert examples.shown_text([long, short, theirs], phrase) == 2
    assert examples.shown_text([long, short], phrase) == 1
    assert examples.shown_text([long, ["word"]], phrase) == 0


def test_an_example_whose_models_failed_is_a_remark_that_names_one(tmp_path, monkeypatch):
    settings = check_parameters(
        "saloss", {**PARAMETERS, "profile": "quick", "store": str(tmp_path)}
    )

    def failed(run):
        return systems.system_of(run) == "Baseline" and run.data.corpus == lost.corpus

    def scores(spec, store=None):
        if not failed(spec.run):
            return pd.DataFrame({"predicted": [0] * 500, "scores": [np.arange(9.0)] * 500})
        fail(open_store(store), "runs", run_hash(spec.run), spec.run, Diverged("loss became nan"))
        return per_text(spec, store=store)

    lost = next(t for t in systems.tasks(settings) if t.role == "sentences")
    monkeypatch.setattr(examples, "per_text", scores)
    results = carried_out(settings, by_system({}), failed=failed)
    [spec] = [s for s in results["baselines"]["spec"] if failed(s)]
    html, rows = examples.table_4(settings, results)
    said = rows[REMARK].dropna()
    assert said.index.tolist() == [2] and run_hash(spec) in said[2] and said[2] in html
    assert rows["set"].notna().sum() == 4 and "Example 3: " in html


def test_words_of_too_few_or_too_many_texts_are_left_out_of_the_figure(settings, monkeypatch):
    words = [["film", f"rare{i}", "common"] if i < 5 else ["film", f"rare{i}"] for i in range(8)]
    table = pd.DataFrame({"words": words})
    table["tags"] = [["NOUN", "ADJ", "VERB"][: len(w)] for w in words]
    table["scores"] = [[0.5, 0.25, 0.25][: len(w)] for w in words]
    monkeypatch.setattr(figures, "per_text", lambda spec, store=None: table)
    strict = replace(settings, grid={**settings.grid, "least_documents": 5})
    counts = figures.tag_totals(strict, None)[:, :, 1].sum(axis=0)
    # "film" is in every text, each rare word in one; "common" is in five of eight
    assert counts.sum() == 5 and counts[figures.TAGS.index("VERB")] == 5


def test_what_the_profile_leaves_out_is_said(settings, results):
    assert "one seed for AG, Ev.Inf, M.RC, SEMEVAL" in prose.reduced(settings)
    quick = prose.reduced(check_parameters("saloss", {**PARAMETERS, "profile": "quick"}))
    assert "FRESH on SST only" in quick and "MiniLM with 2 layers in place of BERT" in quick
    said = prose.about_search(settings, results)
    assert "tweets3 1e-4 of 1e-2, 1e-3, 1e-4 (fractions 0.40 on 200 texts)" in said
    assert "16 dev texts to choose λ by" in quick
