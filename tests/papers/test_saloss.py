"""SaLoss's grid is the paper's, and each of its numbers lands in the right cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ranksums

from erlib.catalogue import paper
from erlib.papers.holes import REMARK
from erlib.papers.saloss import audit, cells, described, examples, facts, figures, systems
from erlib.papers.saloss.importance import importance_of
from erlib.papers.study import Study, run_behind
from erlib.parameters import check_parameters
from erlib.reports import paper_table
from erlib.reports.criteria import criteria
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash
from erlib.training.making import fail
from erlib.training.store import open_store
from tests.papers.finished import finished, texts_with

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip


@pytest.fixture(scope="module")
def settings():
    return check_parameters("saloss", PARAMETERS)


def by_system(numbers, otherwise=0.5):
    """The number of a spec hangs on its system alone."""
    return lambda spec: numbers.get(systems.system_of(run_behind(spec)), otherwise)


@pytest.fixture(scope="module")
def study(settings):
    def value(spec):
        run = run_behind(spec)
        systems_ = {"Baseline": 0.6, "TextRank": 0.4, "TFIDF": 0.45, "ChiSquared": 0.5}
        method = getattr(spec, "method", None)
        shift = {"attention": 0.0, "random": 0.2, "input_x_gradient": 0.1}.get(method, 0.05)
        return systems_.get(systems.system_of(run), 0.3) + shift + 0.01 * run.seed

    return finished("saloss", settings, value, table=lambda spec: table_of(spec, value(spec)))


def table_of(spec, value):
    """SaLoss looks at proper nouns more."""
    if spec.kind != "parts_of_speech":
        return texts_with(value)
    treated = systems.system_of(spec.run) == "TextRank"
    scores = [0.5, 0.3, 0.2] if treated else [0.2, 0.3, 0.5]
    row = {"words": ["Bob", "it", "and"], "tags": ["PROPN", "PRON", "CCONJ"], "scores": scores}
    return pd.DataFrame([{**row, "words": [f"{w}{i}" for w in row["words"]]} for i in range(6)])


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
        w == [1e-2, 1e-3, 1e-4] for (_, s), w in cells.searched(paper).items() if s != "eq. 3"
    )
    assert all(spec.rows is None for spec in cells.search_evals(paper, cells.candidates(paper)))


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
        run = run_behind(spec)
        best = 1e-3 if run.data.corpus == "tweets3" else 1e-2
        return 0.1 if run.objective[-1].weight == best else 0.9

    return finished("saloss", settings, value)


def test_the_weight_with_the_smallest_fraction_on_dev_texts_is_chosen(settings, best_elsewhere):
    weights = cells.chosen(settings, best_elsewhere.results)
    assert weights["tweets3", "TextRank"] == 1e-3 and weights["reuters_r8", "TextRank"] == 1e-2
    # where nothing differs, the smaller of the two that were tried
    assert weights["movie_snippets", "eq. 3"] == 0.1
    search = best_elsewhere.results["search"]["spec"]
    assert all(spec.split == "dev" and spec.rows >= 200 for spec in search)


def test_every_system_has_the_paper_s_weight_and_textrank_the_chosen_one_as_well(
    settings, best_elsewhere
):
    used: dict[str, set[float]] = {}
    for run in best_elsewhere.results["runs"]["spec"]:
        used.setdefault(systems.named(settings, run), set()).add(run.objective[-1].weight)
    assert used["TextRank on AG"] == used["Uniform on AG"] == {1e-4}
    assert used["TextRank, chosen λ on AG"] == {1e-2}
    assert used["TextRank on SEMEVAL"] == used["ChiSquared on SEMEVAL"] == {1e-3}
    assert "TextRank, chosen λ on SEMEVAL" not in used  # one model serves both
    assert used["eq. 3 on SST"] == used["second softmax on SST"] == {0.1}
    assert used["squared sum on SST"] == {1e-3}


def test_a_task_with_one_weight_has_no_search_and_that_weight():
    quick = check_parameters("saloss", {**PARAMETERS, "profile": "quick", "seeds": [0]})
    made = finished("saloss", quick)
    assert set(made.results["search"]["corpus"]) == {"movie_snippets"}
    assert cells.chosen(quick, made.results)["reuters_r8", "TextRank"] == 1e-4
    assert "reuters_r8 1e-4 (the only one tried)" in facts.search(made)["weights"]


def test_the_chosen_weight_s_numbers_stand_beside_the_paper_s_in_tables_1_and_2(best_elsewhere):
    shown, long = described.table_1(best_elsewhere)
    assert shown.loc["AG\nreuters_r8", "λ"] == "paper's 1e-4\nchosen 1e-2"
    table = long.set_index(["row", "column"])["weight"]
    assert table["AG", "SaLoss"] == "1e-4" and table["AG", "SaLoss, chosen λ"] == "1e-2"
    assert table["AG", "Baseline"] == ""
    numbers = best_elsewhere.numbers(best_elsewhere.of("table2"))
    value = numbers.groupby(["row", "column"])["value"].mean()
    assert value["SaLoss|IG", "AG"] == pytest.approx(0.9)
    assert value["SaLoss, chosen λ|IG", "AG"] == pytest.approx(0.1)
    assert value["SaLoss|a", "SEMEVAL"] == value["SaLoss, chosen λ|a", "SEMEVAL"]


def test_fresh_classifiers_see_the_rationales_of_their_support_at_the_task_s_share(study):
    classifiers = [r for r in study.results["runs"]["spec"] if r.data.extract]
    shares = {run.data.corpus: run.data.extract.percent for run in classifiers}
    assert shares["snli"] == 10 and shares["movie_snippets"] == 20
    for run in classifiers:
        extract = run.data.extract
        assert extract.run.seed == run.seed and extract.run.data.corpus == run.data.corpus
        assert (extract.method, extract.variant) == ("attention", "saloss")
        assert run.start is None and len(run.objective) == 1
    tested = [s for s in study.results["measurements"]["spec"] if s.data.extract]
    assert {s.data.extract for s in tested} == {r.data.extract for r in classifiers}


def test_numbers_stand_in_the_cells_of_their_system_attribution_and_set(study):
    numbers = study.numbers(study.cells)
    value = numbers.groupby(["table", "row", "column"])["value"].mean()
    assert value["table2", "Random", "SST"] == pytest.approx(0.6 + 0.2 + 0.01)
    assert value["table2", "Baseline|xGx", "AG"] == pytest.approx(0.7)
    assert value["table2", "SaLoss|a", "SST"] == pytest.approx(0.41)
    assert value["table8", "TFIDF|IG", "SEMEVAL"] == pytest.approx(0.5)
    assert value["table8", "ChiSquared|a", "M.RC"] == pytest.approx(0.5)
    seeds = numbers.query("table == 'table2' and row == 'SaLoss|a'").groupby("column")["seed"]
    assert seeds.nunique().to_dict() == {"SST": 3, "AG": 1, "Ev.Inf": 1, "M.RC": 1, "SEMEVAL": 1}


def test_f1_is_of_the_answers_to_all_texts_and_can_be_made_of_some_of_them(study):
    [cell] = [c for c in study.of("table1")
              if (c.row, c.column, c.seed) == ("SST", "Baseline", 0)]  # fmt: skip
    found = study.reading(cell, "f1_macro")  # 6 or 7 of 10 right, three or four of each class
    assert found.value == pytest.approx(found.statistic(found.texts))
    assert found.statistic(found.texts.iloc[:6]) == 1.0


def test_importance_is_of_the_words_of_a_tag_by_text(study):
    numbers = study.numbers(study.of("figure-1")).query("row.str.startswith('SST')")
    value = numbers.groupby(["row", "column"])["value"].mean()
    assert value["SST PROPN", "SaLoss"] == 0.5
    assert value["SST PROPN", "Baseline"] == pytest.approx(0.2)
    assert value.isna()["SST INTJ", "SaLoss"]  # no such word in the texts
    assert set(figures.importance(study)["tag"]) == {"PROPN", "PRON", "CCONJ"}


def test_every_contrast_of_the_criteria_is_a_difference_of_cells():
    planned = check_parameters("saloss", {**PARAMETERS, "profile": "paper", "data": "local"})
    empty = Study(paper("saloss"), planned, {})
    weights = {key: w[0] for key, w in cells.searched(planned).items()}
    known = {
        (c.table, c.row, c.column, metric)
        for c in cells.cells_at(planned, weights)
        for metric in c.read
    }
    assert empty.results == {}
    for claim, criterion in criteria("saloss").items():
        for contrast in criterion.contrasts:
            for difference in contrast.differences:
                for end in (difference.before, difference.after):
                    assert end is None or (
                        end.table, end.row, end.column, end.metric
                    ) in known, (claim, end)  # fmt: skip


def test_the_audit_compares_each_departure_with_the_same_model_or_seed(settings):
    numbers = {"eq. 3": 0.2, "TextRank": 0.3, "second softmax": 0.2, "CE on probabilities": 0.4,
               "unweighted TextRank": 0.28, "TFIDF": 0.4}  # fmt: skip
    table = audit.audit_table(finished("saloss", settings, by_system(numbers)))
    change = table.set_index(["departure", "measure"])["change"]
    assert change["second softmax and squared sum", "fraction, α"] == pytest.approx(0.1)
    assert change["CE on probabilities", "fraction, α"] == pytest.approx(0.1)
    assert change["two-way neighbours count 2", "fraction, α"] == pytest.approx(0.02)
    assert change["second softmax, alone", "test F1-macro"] == pytest.approx(0)
    assert change["TF-IDF of scikit-learn's words", "test F1-macro"] < -0.05
    # of the saliences themselves: many texts have two-way neighbours, and few ranks move by them
    assert 0.3 < change["two-way neighbours count 2", "texts whose salience differs"] < 0.7
    assert -0.1 < change["two-way neighbours count 2", "ρ of the two saliences"] < 0
    assert 0.1 < change["TF-IDF of scikit-learn's words", "tokens of salience 0"] < 0.4
    departures = table["departure"].unique()
    for part in ("squared sum", "deleted", "embedding matrix", "order of score", "best seed"):
        assert any(part in name for name in departures), part


def test_one_seed_is_no_choice_of_seeds(monkeypatch):
    monkeypatch.setattr(audit, "_salience", lambda settings, task: [])  # asks no model
    quick = check_parameters("saloss", {**PARAMETERS, "profile": "quick", "seeds": [0]})
    table = audit.audit_table(finished("saloss", quick))
    choice = table["departure"] == "best seed by test F1"
    assert table.loc[choice, "change"].isna().all() and table.loc[~choice, "change"].notna().all()


@pytest.mark.parametrize("system", ["Baseline", "TextRank", "eq. 3", "TFIDF"])
def test_an_audited_model_that_failed_leaves_its_cells_empty(settings, monkeypatch, system):
    monkeypatch.setattr(audit, "_salience", lambda settings, task: [])  # asks no model

    def failed(run):
        return (systems.system_of(run), run.seed) == (system, 0)

    whole, holed = (
        audit.audit_table(finished("saloss", settings, failed=which))
        for which in (lambda run: False, failed)
    )
    assert holed["departure"].tolist() == whole["departure"].tolist()
    assert holed["change"].notna().sum() < whole["change"].notna().sum()


@pytest.mark.parametrize("system", ["Baseline", "TextRank"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_run_leaves_holes_and_stops_nothing(settings, system, seed):
    def failed(run):
        support = run.data.extract.run if run.data.extract else run
        return (systems.system_of(support), support.seed) == (system, seed)

    holed = finished("saloss", settings, failed=failed, table=lambda s: table_of(s, 0.5))
    numbers = holed.numbers(holed.of("table1")).query("row == 'SST'")
    empty = numbers[numbers["value"].isna()]
    columns = {"Baseline": {"Baseline"}, "TextRank": {"SaLoss", "SaLoss, chosen λ"}}
    assert set(empty["seed"]) == {seed} and set(empty["column"]) <= columns[system]
    for made in (described.table_1, described.table_6, described.flip_tests, described.fresh_tests,
                 figures.figure_1, facts.search, facts.flips, facts.fresh, facts.functions,
                 facts.tags):  # fmt: skip
        assert made(holed) is not None, made


def test_where_no_model_is_trained_nothing_is_counted_and_nothing_stops(settings):
    idle = finished("saloss", settings, accuracy=lambda run: 0.5, table=lambda s: table_of(s, 0.5))
    said = {**facts.flips(idle), **facts.fresh(idle), **facts.functions(idle), **facts.tags(idle)}
    assert said["cells"] == 0 and said["sets"] == said["top_k"] == "none"
    assert "0 of 0" in said["compared"] and said["moves"] == "no set"
    titles = [axis.get_title() for axis in figures.figure_1(idle)[0].axes]
    assert all(title.endswith("not trained") for title in titles)


def test_a_classifier_of_an_untrained_model_s_rationales_is_not_trained_either(settings):
    def accuracy(run):  # the second seed's Baseline of sentences, itself
        weak = run.data.extract is None and run.data.corpus == "movie_snippets"
        return 0.5 if weak and (systems.system_of(run), run.seed) == ("Baseline", 1) else 0.7

    made = finished("saloss", settings, accuracy=accuracy)
    numbers = made.numbers(made.of("table3")).query("column == 'Baseline' and not trained")
    assert numbers[["row", "seed"]].to_numpy().tolist() == [["SST", 1]]
    trained = described.fresh_tests(made).set_index(["set", "shape"])["trained"]
    assert trained["SST", "top-k"] == "no" and trained.drop(("SST", "top-k")).eq("yes").all()


def test_tests_over_texts_are_scipys_and_one_sided_against_random(study):
    table = described.flip_tests(study).set_index(["set", "by"])
    cell, steps = table.loc["SST", "α"], 0.01 * (np.arange(10) - 4.5)
    assert cell["rank-sum"] == pytest.approx(ranksums(0.41 + steps, 0.61 + steps).pvalue)
    assert cell["signed-rank"] == pytest.approx(2 / 2**10)  # ten texts, all on one side
    assert cell["SaLoss\nunder random"] == pytest.approx(1 / 2**10)
    assert cell["Holm"] == pytest.approx(min(1, 20 * 2 / 2**10)) and cell["texts"] == 10
    said = facts.flips(study)
    assert (said["better"], said["cells"], said["least"]) == (20, 20, 10)


def test_equal_salience_functions_are_not_called_better(settings):
    numbers = {"TextRank": 0.4, "TFIDF": 0.4, "ChiSquared": 0.5}
    said = facts.functions(finished("saloss", settings, by_system(numbers)))["compared"]
    assert "TextRank under TF-IDF in 0 of 20 (sign test p 1.00)" in said
    assert "TextRank under χ² in 20 of 20 (sign test p 0.00)" in said


def test_the_paper_s_own_text_is_shown_if_it_is_there_and_else_a_short_one():
    short, long = ["word"] * 12, ["word"] * 100
    theirs = ["a", "promising", ",", "Unusual", "kind", "of", "psycho-logical", "horror", "."]
    phrase = examples.SHOWN["sentences"]
    assert examples.shown_text([long, short, theirs], phrase) == 2
    assert examples.shown_text([long, short], phrase) == 1
    assert examples.shown_text([long, ["word"]], phrase) == 0


def test_an_example_whose_models_failed_is_a_remark_that_names_one(tmp_path):
    quick = check_parameters("saloss", {**PARAMETERS, "profile": "quick", "store": str(tmp_path)})

    def failed(run):
        return systems.system_of(run) == "Baseline" and run.data.corpus == "movie_snippets"

    def table(spec):
        if not failed(spec.run):
            return pd.DataFrame({"predicted": [0] * 500, "scores": [np.arange(9.0)] * 500})
        fail(open_store(tmp_path), "runs", run_hash(spec.run), spec.run, Diverged("became nan"))
        return Study(paper("saloss"), quick, {}).texts(spec)

    html, rows = examples.table_4(finished("saloss", quick, table=table))
    said = rows[REMARK].dropna()
    assert said.index.tolist() == [2] and said[2] in html
    assert rows["set"].notna().sum() == 4 and "Example 3: " in html


def test_words_of_too_few_or_too_many_texts_are_left_out_of_the_figure(settings):
    words = [["film", f"rare{i}", "common"] if i < 5 else ["film", f"rare{i}"] for i in range(8)]
    table = pd.DataFrame({"words": words})
    table["tags"] = [["NOUN", "ADJ", "VERB"][: len(w)] for w in words]
    table["scores"] = [[0.5, 0.25, 0.25][: len(w)] for w in words]
    strict = replace(settings, grid={**settings.grid, "least_documents": 5})
    made = finished("saloss", strict, table=lambda spec: table)
    spec = made.of("figure-1")[0].specs
    # "film" is in every text, each rare word in one; "common" is in five of eight
    counts = {t: importance_of(t)(made, spec).texts["words"].sum() for t in ("NOUN", "ADJ", "VERB")}
    assert counts == {"NOUN": 0, "ADJ": 0, "VERB": 5}
