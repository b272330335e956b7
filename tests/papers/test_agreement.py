"""The Agreement grid is the paper's, and each of its numbers lands in the right cell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from scipy.stats import kendalltau, pearsonr
from sklearn.metrics import f1_score

from erlib.config import EvalSpec, Extraction, term
from erlib.metrics import correlations
from erlib.models import load_classifier
from erlib.papers.agreement import (
    agreements,
    audit,
    cells,
    described,
    facts,
    figures,
    reads,
    search,
    systems,
    texts,
    vectors,
)
from erlib.papers.grid import evaluations_of
from erlib.papers.report import beside_printed
from erlib.parameters import check_parameters
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import criteria
from erlib.training.identity import eval_hash, run_hash
from erlib.training.kinds.agreement import METHODS
from erlib.training.runs import run
from tests.papers.finished import carried_out, finished

PARAMETERS = {"profile": "quick", "data": None, "seeds": [1, 2, 3], "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
SMALL = {"core": ["SST"], "train_rows": 64, "wide_train_rows": 32}
TEXTS = [f"t{i}" for i in range(12)]


@pytest.fixture(scope="module")
def settings():
    """The quick profile with one core set for both models, and one variant without all seeds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(vectors.VARIABLE, raising=False)
        found = check_parameters("agreement", PARAMETERS)
        models = {name: {**given, **SMALL} for name, given in found.grid["models"].items()}
        some = {"core_variants": ["Base", "Tying"], "audit": ["TREC"]}
        yield replace(found, grid={**found.grid, "models": models, **some})


@pytest.fixture(scope="module")
def of_the_paper():
    return check_parameters("agreement", {**PARAMETERS, "profile": "paper", "seeds": None})


def study_of(settings, table=None, **options):
    """A grid whose every number is known.

    r of a text is .2 + .01 · seed, .3 more under Tying; τ is .1 below it; DeepLIFT and DeepSHAP
    are equal, unless dropout is on. Even texts are always right, every third one in one epoch only.
    """
    return finished("agreement", settings, lambda spec: 0.8, table=table or table_of, **options)


@pytest.fixture(scope="module")
def study(settings):
    return study_of(settings)


def variant_of(run):
    return run.objective[1].name if len(run.objective) > 1 else "base"


def is_of(run, model, corpus=None, variant=None):
    named = corpus in (None, run.data.corpus) and variant in (None, variant_of(run))
    return named and run.model.name == model


def table_of(spec):
    if spec.kind == "curvature":
        states = [[0.1 * i**2, 1.0] for i in range(len(TEXTS))]
        norm = np.arange(len(TEXTS), dtype=float)
        return pd.DataFrame({"id": TEXTS, "norm": norm, "sum": norm, "state": states})
    return agreement_of(spec) if spec.kind == "agreement" else predictions_of(spec)


def agreement_of(spec):
    level = 0.2 + 0.01 * spec.run.seed + (0.3 if variant_of(spec.run) == "tying" else 0)
    dropout, rows = spec.variant == "agreement_dropout", []
    for a, one in enumerate(METHODS):
        for other in METHODS[a + 1 :]:
            same = (one, other) == ("deeplift", "deepshap") and not dropout
            best = 0.2 if (one, other) == METHODS[2:] else 0
            for i, text in enumerate(TEXTS):
                r = 1.0 if same else level + best + 0.001 * i
                tau = 1.0 if same else r - 0.1
                rows.append({"method_a": one, "method_b": other, "id": text, "n": 9,
                             "kendall": tau, "pearson": r, "gap_a": 0.0, "gap_b": 0.0})  # fmt: skip
    return pd.DataFrame(rows)


def predictions_of(spec):
    rows = []
    for epoch in range(1, spec.run.optimiser.epochs + 1):
        for i, text in enumerate(TEXTS):
            right = i % 2 == 0 or (i % 3 == 0 and epoch == 1)
            label = int(i < 6)
            confidence = (0.9 if right else 0.3) - 0.02 * i - (0.1 if spec.protocol else 0)
            p1 = confidence if label else 1 - confidence
            rows.append({"id": text, "label": label, "predicted": label if right else 1 - label,
                         "p0": 1 - p1, "p1": p1, "epoch": epoch})  # fmt: skip
    return pd.DataFrame(rows)


def run_at(study, model, paper, variant="Base", seed=1):
    """The run of a place of Table 2."""
    place = (f"{model}|{paper}", variant, seed)
    return next(c.specs[0] for c in study.of("table2") if (c.row, c.column, c.seed) == place)


def beside(study, table):
    """The table as the notebook shows it."""
    printed = {"table1b-dropout": "table1b_dbert"}.get(table, table)
    names = described.stands_for(study.settings) if printed in cells.TABLE_1.values() else None
    return beside_printed(study, study.of(table), printed, stands_for=names)


def by_place(table):
    """By row, column and, where a table has several, metric."""
    keys = ["row", "column", "metric"] if table.long["metric"].nunique() > 1 else ["row", "column"]
    return table.long.set_index(keys)


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters(of_the_paper):
    paper = of_the_paper
    assert paper.seeds == (1, 2, 3, 4, 5)
    lr = {"JWA": 1e-3, "DBERT": 2e-5}
    for system in systems.systems(paper, ["Base"]):
        if system.model == "DBERT":  # JWA's vocabulary would be read from the hub
            spec = systems.run_spec(paper, system, 1)
            assert spec.optimiser.lr == lr["DBERT"] and spec.model.name == "distilbert-base-uncased"
            assert (spec.optimiser.epochs, spec.optimiser.batch_size) == (5, 32)
            assert (spec.optimiser.clip, spec.optimiser.weight_decay) == (1.0, 0.0)
            assert spec.optimiser.schedule == "constant" and not spec.model.specials
            assert spec.data.max_length == 200 and spec.data.words == "alphanumeric"
    assert paper.grid["models"]["JWA"]["lr"] == lr["JWA"]
    assert paper.grid["lambdas"]["Conicity"] == [0.1, 0.3, 0.5, 1, 5, 10]
    assert paper.grid["lambdas"]["Tying"] == [0.1, 0.3, 0.5, 1, 5, 10, 20]
    trec = systems.task_named(paper, "TREC")
    assert trec.classes == ("ENTY", "HUM")
    for system in systems.systems(paper):
        assert len(systems.seeds_of(paper, system)) == 5


def test_every_cell_that_a_claim_compares_is_measured_in_the_paper_s_sizes(of_the_paper):
    def strongest(system):
        if system.variant == "Base":
            return 0.0
        return search.weights(of_the_paper, search.weight_source(of_the_paper, system))[0]

    every = list(cells.cells_at(of_the_paper, strongest))
    measured = {(c.table, c.row, c.column, metric) for c in every for metric in c.read}
    for claim, criterion in criteria("agreement").items():
        for contrast in criterion.contrasts:
            for difference in contrast.differences:
                for end in filter(None, (difference.after, difference.before)):
                    place = (end.table, end.row, end.column, end.metric)
                    assert place in measured, (claim, place)


def test_cells_rest_on_what_the_grid_measures(study):
    measured = {s for s in study.rows if isinstance(s, EvalSpec)}
    assert set(evaluations_of(study.cells)) == measured
    assert all(study.has(*cell.specs) for cell in study.cells)


def test_lambda_is_the_strongest_within_three_points_and_the_search_stops_there(settings):
    grid = {**settings.grid, "lambdas": {**settings.grid["lambdas"], "Tying": [0.5, 1, 5]}}
    settings = replace(settings, grid=grid)
    close = systems.System("JWA", systems.core_tasks(settings, "JWA")[0], "Tying")
    never = systems.System("DBERT", systems.core_tasks(settings, "DBERT")[0], "Tying")

    def f1(spec):
        if variant_of(spec) == "base":
            return 0.80
        if spec.model.name == "minilm":
            return 0.6
        return {5.0: 0.7699, 1.0: 0.7701}.get(spec.objective[1].weight, 0.9)

    results = carried_out(cells.grid(settings)[:-1], f1)
    searched = results["λ search 1"]["spec"]
    assert not any(s.each_epoch for s in searched if s.objective[1] == term("tying", 5))
    assert search.tried(settings, results, close) == [(5, 0.7699), (1, 0.7701)]
    assert search.chosen_weight(settings, results, close) == 1
    assert search.accepted(settings, results, never) is None
    assert search.chosen_weight(settings, results, never) == 0.5
    chosen = {
        s.objective[1].weight
        for s in results["regularised"]["spec"]
        if (variant_of(s), s.model.name, s.data.corpus) == ("tying", "jwa", close.task.corpus)
    }
    assert chosen == {1.0}
    other = next(t for t in systems.tasks(settings) if t != close.task)
    wide = systems.System("JWA", other, "Tying")
    assert search.chosen_weight(settings, results, wide) == 1  # the core set's


def test_runs_that_need_no_result_are_listed_before_there_is_any(settings):
    lambdas = {**settings.grid["lambdas"], "Tying": [0.5, 1]}
    searching = replace(settings, grid={**settings.grid, "lambdas": lambdas})
    for given, known in ((settings, 3), (searching, 2)):
        stages = cells.grid(given)[:-1]
        results = carried_out(stages, lambda spec: 0.8)
        listed = [stage for stage in stages if stage.listed]
        assert [s.name for s in listed] == ["base", "λ search 1", "regularised"][:known]
        assert all(s.listed == results[s.name]["spec"].tolist() for s in listed)


def test_core_cells_have_every_seed_and_wide_ones_the_first(study):
    counts = study.numbers(study.of("table3")).groupby(["row", "column"])["seed"].nunique()
    assert counts["DBERT|SST", "Tying"] == 3 == counts["JWA|SST", "Base"]
    assert counts["DBERT|SST", "Conicity"] == 1 == counts["JWA|IMDB", "Tying"]
    assert len(counts) == 2 * 4 * 3
    switched = study.of("audit")[-1].specs[1]
    assert systems.named(study.settings, switched) == "DBERT TREC Tying, pads counted"


def test_the_toy_example_has_the_paper_s_numbers_by_our_code_and_by_scipy():
    tau, r = figures.toy_agreement()
    assert round(tau, 2) == -0.43 and round(r, 2) == 0.99
    assert tau == pytest.approx(kendalltau(*figures.TOY.values()).statistic)
    assert r == pytest.approx(pearsonr(*figures.TOY.values()).statistic)


def test_numbers_stand_in_the_cells_of_their_model_set_and_variant(settings, study, monkeypatch):
    cell = by_place(beside(study, "table1a_jwa")).loc["G-SHAP vs Int-Grad", "SST", "pearson_r"]
    assert cell["ours"] == pytest.approx(0.2 + 0.02 + 0.2 + 0.0055)  # seeds 1 to 3, texts 0 to 11
    assert (cell["n"], cell["paper"]) == (3, 0.87)
    same = by_place(beside(study, "table1b_dbert")).loc["DeepLIFT vs D-SHAP", "IMDB", "kendall_tau"]
    assert same["ours"] == 1
    cell = by_place(beside(study, "table1b-dropout")).loc["DeepLIFT vs D-SHAP", "SST", "pearson_r"]
    assert cell["ours"] == pytest.approx(0.2 + 0.02 + 0.0055) and cell["paper"] == 0.34
    monkeypatch.setattr(reads, "minutes", lambda study, run: 2.0)
    minutes = by_place(beside(study, "table7")).loc["TREC", "JWA"]
    assert (minutes["ours"], minutes["n"]) == (2.0, 3)  # the three variants
    weights = by_place(beside(study, "table8"))
    assert weights.loc[("JWA|SST", "Tying"), "ours"] == max(settings.grid["lambdas"]["Tying"])
    groups = described.table_4(study, "DBERT")
    easy = np.mean([0.001 * i for i in range(0, 12, 2)])  # even texts
    level = (5 * 0.22 + 0.2 + 1 + 5 * easy) / 6
    assert by_place(groups).loc[("SST|Easy", "Base"), "ours"] == pytest.approx(level)
    assert "18 texts" in groups.wide().loc["SST, Easy", "Base"]  # six in each of three seeds


@pytest.mark.parametrize(("table", "row"), [("table2", "DBERT|SST"), ("table4", "SST|Easy")])
def test_claims_read_the_five_pairs_that_are_two_methods(study, table, row):
    """The table has all six, as the paper's."""
    base, tying = (study.read(Place(table, row, v, "pearson_r")) for v in ("Base", "Tying"))
    assert [tying[s].value - base[s].value for s in (1, 2, 3)] == pytest.approx([0.3] * 3)
    assert all(r.value == pytest.approx(r.texts.mean()) for r in base.values())
    assert base[1].chosen == (table == "table4")  # a model's own groups
    shown = study.numbers(c for c in study.of(table) if c.row == row).query("metric == 'pearson_r'")
    means = shown.groupby("column")["value"].mean()
    assert means["Tying"] - means["Base"] == pytest.approx(0.3 * 5 / 6)  # one pair is always 1


def test_agreement_over_the_epochs_weighs_sets_alike(study):
    both = [run_at(study, "JWA", paper) for paper in ("SST", "SUBJ")]
    two = reads.over_sets(2)(study, both)
    assert two.value == pytest.approx(0.21 + 0.2 / 5 + 0.0055) and len(two.texts) == 24
    uneven = two.texts.iloc[:14]  # two texts of the second set
    halves = [uneven["r"].iloc[:12].mean(), uneven["r"].iloc[12:].mean()]
    assert reads.mean_of_sets(uneven) == pytest.approx(np.mean(halves))
    over = study.read(Place("figures-4-11", "Tying", "DBERT, epoch 2", "pearson_r"))
    assert sorted(over) == [1, 2, 3]  # the core set alone has them all
    assert over[3].value == pytest.approx(0.53 + 0.2 / 5 + 0.0055)


def test_f1_is_that_of_the_kept_epoch(study):
    cell = by_place(beside(study, "table3")).loc["JWA|SST", "Base"]
    labels = [int(i < 6) for i in range(12)]
    predicted = [y if i % 2 == 0 else 1 - y for i, y in enumerate(labels)]
    assert cell["ours"] == pytest.approx(f1_score(labels, predicted))


def test_a_variant_above_both_others_has_a_dagger(study):
    table = texts.table_2_tests(study).set_index(["model", "set", "of", "variant"])
    row = table.loc["JWA", "SST", "r", "Tying"]
    # 12 texts, all up: 1/2^12 each; Holm over 96 tests, half of them that small (Tying over both
    # others in 16 cells), so that the largest of these is multiplied by 96
    assert row["p, above Base"] == pytest.approx(96 / 2**12) and row["†"] == "†"
    assert np.isnan(row["p, above Tying"]) and row["texts"] == 12
    assert set(table.xs("Base", level="variant")["†"]) == {""}


def test_curvature_is_correlated_with_cartography_over_texts(study):
    found = by_place(beside(study, "table11"))
    maps = agreements.map_of(study, run_at(study, "DBERT", "SST")).loc[TEXTS]
    expected = pearsonr(np.arange(12), maps["confidence"]).statistic
    assert found.loc[("Grad norm|SST|confidence", "Base"), "ours"] == pytest.approx(expected)
    nearest = [0.1, 0.1, *(0.1 * (i**2 - (i - 1) ** 2) for i in range(2, 12))]
    expected = pearsonr(nearest, maps["variability"]).statistic
    assert found.loc[("Min dist|SST|variability", "Base"), "ours"] == pytest.approx(expected)
    reading = study.read(Place("table11", "Min dist|SST|variability", "Base", "pearson_r"))[1]
    assert reading.value == pytest.approx(expected) and len(reading.texts) == 12


def test_curvature_is_a_mean_over_sets_of_seeds_that_have_them_all(study):
    by_set = by_place(beside(study, "table11"))["ours"]
    r = [by_set[f"Grad norm|{s}|confidence", "Base"] for s in systems.SETS]
    cell = by_place(beside(study, "table5")).loc["Grad norm|confidence", "Base"]
    assert cell["ours"] == pytest.approx(np.tanh(np.arctanh(r).mean())) and cell["n"] == 1


def test_intervals_of_correlations_are_scipy_s(study):
    x, y = np.random.default_rng(0).normal(size=(2, 40))
    truth = pearsonr(x, y).confidence_interval()
    r = correlations.pearson(pd.DataFrame({"x": x, "y": y}))
    low, high, p = correlations.fisher_test(r, 40)
    assert (low, high) == pytest.approx((truth.low, truth.high))
    assert p == pytest.approx(pearsonr(x, y).pvalue, abs=0.01)  # normal for t
    assert np.isnan(correlations.pearson(pd.DataFrame(np.ones((5, 2)))))
    tested = texts.correlation_tests(study).set_index(["statistic", "set", "attribute", "variant"])
    row = tested.loc["Grad norm", "SST", "confidence", "Base"]
    assert (row["seeds"], row["texts"]) == (3, 12)


def test_the_audit_sets_evaluation_mode_beside_dropout_and_each_switch_beside_its_own(study):
    table = audit.audit_table(study).set_index(["switch", "system", "set", "measure"])
    row = table.loc["dropout while explaining", "DBERT Base", "SST", "r, DeepLIFT and D-SHAP"]
    assert row["here"] == 1 and row["switched"] == pytest.approx(0.2 + 0.02 + 0.0055)
    assert row["paper"] == 0.34 and row["change"] == pytest.approx(row["switched"] - 1)
    assert row["seeds"] == 3
    predicted = table.loc["dropout while predicting", "DBERT Base", "TREC", "confidence"]
    assert predicted["change"] == pytest.approx(-0.1)
    trained = [s for s, *_ in table.index if not s.startswith("dropout")]
    assert [s.split(" (")[0] for s in trained] == [
        "conicity: batch axis", "conicity: pads counted", "tying: squared", "tying: pads counted",
    ]  # fmt: skip
    said = facts.audited(study)
    assert said["one_here"] == 1 and said["one_switched"] < 0.3


def test_facts_are_of_trained_models_alone(settings, study):
    def weak(run):  # DBERT's Base: the third seed on SST, and the only one on TREC
        places = [("movie_snippets", 3), ("reuters_pair", 1)]
        return is_of(run, "minilm", variant="base") and (run.data.corpus, run.seed) in places

    found = study_of(settings, accuracy=lambda run: 0.5 if weak(run) else 0.7)
    # five pairs beside the same one, in six runs or four
    both = [facts.pairs(s, "DBERT") for s in (study, found)]
    assert [(f["above"], f["cells"]) for f in both] == [(30, 30), (20, 20)]
    jwa = facts.pairs(study, "JWA")
    assert (jwa["same"], jwa["best"]) == (1, "G-SHAP vs Int-Grad")
    assert facts.raised(study)["tying"].startswith("8 of 8: JWA")
    assert facts.raised(found)["tying"].startswith("7 of 7: JWA")  # SST has two seeds left
    assert "DBERT TREC" not in facts.raised(found)["tying"]
    # six easy texts in each of six runs of Base: three seeds on SST, one on each other set
    assert facts.groups(study)["sizes"].startswith("36 Easy")
    assert facts.groups(found)["sizes"].startswith("24 Easy")
    assert facts.curvature(study)["sets"] == "SUBJ, SST, TREC, IMDB"
    assert facts.curvature(found)["sets"] == "SUBJ, SST, IMDB"
    assert facts.audited(study)["mapped"].startswith("mean confidence on TREC")
    assert facts.audited(found)["mapped"] == "not measured"
    assert facts.margins(study) == {"margins": "JWA 20, DBERT 20"}
    pairs = beside(found, "table1b_dbert").wide()
    assert pairs["movie_snippets\nfor SST"].str.endswith("1 of 3 not trained").all()
    assert beside(found, "table3").wide().loc["DBERT|TREC", "Base"].endswith("n=1\nnot trained")


def test_tests_over_texts_say_where_a_model_is_not_trained(settings):
    def weak(run):  # DBERT's Tying on SUBJ
        return is_of(run, "minilm", "newsgroups_pair", "tying")

    found = study_of(settings, accuracy=lambda run: 0.5 if weak(run) else 0.7)
    tests = texts.table_2_tests(found).query("set == 'SUBJ'").groupby("model")
    assert tests["trained"].unique().map(list).to_dict() == {"DBERT": ["no"], "JWA": ["yes"]}
    assert tests["†"].max().to_dict() == {"DBERT": "", "JWA": "†"}  # Tying is above in both
    groups = texts.group_tests(found).set_index(["set", "test"])["trained"]
    assert groups["SUBJ", "Amb > Easy, Base"] == "yes" == groups["SST", "Tying > Base, Easy"]
    assert groups["SUBJ", "Amb > Easy, Tying"] == "no" == groups["SUBJ", "Tying > Base, Easy"]


def test_where_nothing_is_trained_nothing_is_said(settings):
    found = study_of(settings, accuracy=lambda run: 0.5)
    assert facts.pairs(found, "JWA") == facts.groups(found) == facts.curvature(found) == {}
    assert facts.audited(found) == {} and facts.raised(found)["tying"] == "0 of 0"
    assert texts.table_2_tests(found)["†"].eq("").all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failed_run_leaves_holes_and_stops_nothing(settings, seed):
    def failed(run):
        return is_of(run, "minilm", "movie_snippets", "base") and run.seed == seed

    found = study_of(settings, failed=failed)
    base = found.read(Place("table2", "DBERT|SST", "Base", "pearson_r"))
    assert sorted(base) == sorted({1, 2, 3} - {seed})
    for table in (
        "table1b_dbert",
        "table1b-dropout",
        "table2",
        "table3",
        "table6",
        "table8",
        "table11",
    ):
        assert beside(found, table).wide().size
    for made in (texts.table_2_tests, texts.group_tests, texts.correlation_tests, audit.audit_table,
                 described.search_table, figures.figure_3):  # fmt: skip
        assert made(found) is not None, made
    for fact in (facts.raised, facts.margins, facts.groups, facts.curvature, facts.audited):
        assert fact(found), fact
    _, data = figures.maps(found, "figure-12")
    assert ("SST" in set(data["set"])) == (seed == 2)


def test_where_every_run_failed_nothing_stops(settings):
    found = study_of(settings, failed=lambda run: True)
    assert texts.table_2_tests(found)["not measured"].item() == "no set has all three variants"
    for made in (texts.group_tests, texts.correlation_tests, audit.audit_table):
        assert made(found) is not None, made
    for figure, _ in (figures.maps(found, "figure-2"), figures.figure_3(found),
                      figures.curve(found, "figure-4")):  # fmt: skip
        figure.draw_without_rendering()
    assert facts.pairs(found, "JWA") == facts.groups(found) == facts.curvature(found) == {}


def test_a_text_that_one_variant_has_no_agreement_on_splits_no_row(settings):
    def table(spec):  # Conicity's first text is undefined on JWA's SST
        found = table_of(spec)
        if spec.kind == "agreement" and is_of(spec.run, "jwa", "movie_snippets", "conicity"):
            found.loc[found["id"] == "t0", ["kendall", "pearson"]] = np.nan
        return found

    tests = texts.table_2_tests(study_of(settings, table))
    tests = tests.query("model == 'JWA' and set == 'SST' and of == 'r'")
    assert tests["variant"].tolist() == ["Base", "Conicity", "Tying"]
    assert tests["texts"].tolist() == [11] * 3
    p = tests.set_index("variant")[[f"p, above {v}" for v in systems.VARIANTS]]
    assert (p.isna().to_numpy() == np.eye(3, dtype=bool)).all()  # none but above itself


def test_text_level_tests_combine_over_seeds():
    assert texts.combined([0.5, 0.5])["p"] == pytest.approx(0.5)
    assert np.isnan(texts.combined([])["p"])
    assert texts.combined([0.01, 0.01])["p"] < 0.01 and texts.combined([0.01])["seeds"] == 1


def test_every_figure_draws_something_and_brings_its_numbers(settings, study):
    curves = [figures.curve(study, name) for name in list(cells.CURVES)[:2]]
    for figure, data in (figures.figure_1(), figures.figure_3(study), *curves,
                         figures.maps(study, "figure-2")):  # fmt: skip
        assert isinstance(figure, Figure) and len(data) > 0
    assert list(cells.CURVES) == [f"figure-{n}" for n in range(4, 12)]
    assert cells.CURVES["figure-10"] == ("DBERT", "TREC")
    assert len(curves[0][1].query("variant == 'Tying'")) == settings.grid["epochs"]


def test_texts_are_counted_as_used_and_as_there_are(settings, monkeypatch):
    """The fixture's quick profile asks for 96 and 48 predicted texts."""
    monkeypatch.setattr(described, "size_of", lambda data, split, rows: 60)
    described.texts_of.cache_clear()
    table = described.table_10(settings).set_index("set")
    described.texts_of.cache_clear()
    assert table.loc["SST", "test"].startswith("60\nof 60\npaper 1,810")
    assert table.loc["IMDB", "test"].startswith("48\nof 60")
    assert table.loc["IMDB", "total"].startswith("180\n")


def test_a_quarter_of_the_explained_texts_is_explained_with_dropout(study):
    runs = [run_at(study, "DBERT", paper) for paper in ("SST", "IMDB")]
    assert [systems.dropout_spec(run).rows for run in runs] == [4, 2]  # of 16 and of 6


def test_packaged_vectors_are_used_without_a_glove_file_and_a_wrong_file_is_refused(
    settings, monkeypatch, tmp_path
):
    data = systems.data_spec(settings, "JWA", systems.task_named(settings, "SST"))
    assert vectors.word_vectors(settings, data, 1) == "jwa"
    assert "GloVe 6B, 50 dimensions" in facts.data(settings)["vectors"]
    monkeypatch.setenv(vectors.VARIABLE, str(tmp_path / "none.txt"))
    with pytest.raises(FileNotFoundError, match="ERLIB_GLOVE names"):
        vectors.word_vectors(settings, data, 1)


def test_jwa_trains_on_the_vectors_of_a_given_glove_file(settings, monkeypatch, tmp_path):
    file = tmp_path / "glove.8d.txt"
    words = ["the", "film", "is", "and", "funny", "unseenword"]
    file.write_text("".join(f"{w} {' '.join([f'{i}.5'] * 8)}\n" for i, w in enumerate(words)))
    monkeypatch.setenv(vectors.VARIABLE, str(file))
    settings = replace(settings, store=str(tmp_path / "store"))
    base = systems.System("JWA", systems.task_named(settings, "SST"), "Base")
    spec = systems.run_spec(settings, base, 1)
    start = load_classifier(spec.model.name, head="agreement")
    ids = start.tokenizer.get_vocab()
    assert "unseenword" not in ids  # not a word of the training texts
    vector = start.model.embedding.weight[ids["film"]]
    assert vector.tolist() == [1.5] * 8
    assert start.model.lstm.hidden_size == 4  # two directions fill the embedding's size
    assert spec.model.name == systems.run_spec(settings, base, 1).model.name  # made once
    file.write_text(file.read_text().replace("0.5", "9.5"))  # as long, and of the same name
    assert systems.run_spec(settings, base, 1).model.name != spec.model.name
    other = systems.run_spec(settings, base, 2).model.name
    drawn = load_classifier(other, head="agreement").model.lstm.weight_ih_l0
    assert not torch.equal(drawn, start.model.lstm.weight_ih_l0)  # a seed's own other weights
    assert "word vectors of glove.8d.txt" in facts.data(settings)["vectors"]
    short = replace(spec, each_epoch=(), optimiser=replace(spec.optimiser, epochs=1))
    assert run([short], store=settings.store, device="cpu")["status"].tolist() == ["done"]


def test_a_run_is_named_by_what_is_in_the_glove_file_and_not_by_where_it_lies(
    settings, monkeypatch, tmp_path
):
    system = systems.System("JWA", systems.task_named(settings, "SST"), "Base")

    def in_folder(name, number, file="glove.txt"):
        """A run and an evaluation on the vectors of a file, all in a folder of their own."""
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(f"film 0.5 {number}\nfunny 1.5 2.5\n")
        monkeypatch.setenv(vectors.VARIABLE, str(tmp_path / name / file))
        own = replace(settings, store=str(tmp_path / name / "store"))
        run = systems.run_spec(own, system, 1)
        assert run.model.name.startswith(own.store)  # there it is loaded from
        rationales = replace(run.data, extract=Extraction(run, 20))
        return run_hash(run), eval_hash(EvalSpec(run, rationales, "test", "predictions"))

    first = in_folder("first", 0.25)
    assert in_folder("second", 0.25, "renamed.txt") == first
    assert not set(in_folder("third", 0.75)) & set(first)


def test_a_glove_file_is_read_once_for_its_name_and_again_when_it_changes(monkeypatch, tmp_path):
    read = []
    monkeypatch.setattr(vectors, "checksum", lambda path: read.append(path) or str(len(read)))
    file = tmp_path / "glove.txt"
    file.write_text("film 0.5\n")
    assert vectors.content_of_file(file) == vectors.content_of_file(file) == "1"
    file.write_text("film 0.25\n")
    assert vectors.content_of_file(file) == "2"
