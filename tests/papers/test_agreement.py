"""The Agreement grid is the paper's, and each of its numbers lands in the right cell and claim."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from scipy.stats import kendalltau, pearsonr
from sklearn.metrics import f1_score

from erlib.config import EvalSpec, Extraction, term
from erlib.models import load_classifier
from erlib.papers import agreement
from erlib.papers.agreement import (
    Study,
    claims,
    correlations,
    figures,
    prose,
    systems,
    tables,
    vectors,
)
from erlib.papers.agreement import study as reading
from erlib.papers.agreement.groups import combined
from erlib.parameters import check_parameters
from erlib.reports import decide, paper_table
from erlib.reports.claims import claims as claims_of
from erlib.training.identity import eval_hash, run_hash
from erlib.training.kinds.agreement import METHODS
from erlib.training.runs import run

PARAMETERS = {"profile": "quick", "data": None, "seeds": [1, 2, 3], "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
SMALL = {"core": ["SST"], "train_rows": 64, "wide_train_rows": 32}
TEXTS = [f"t{i}" for i in range(12)]


@pytest.fixture
def settings(monkeypatch):
    """The quick profile with one core set for both models, and one variant without all seeds."""
    monkeypatch.delenv(vectors.VARIABLE, raising=False)
    found = check_parameters("agreement", PARAMETERS)
    models = {name: {**given, **SMALL} for name, given in found.grid["models"].items()}
    grid = {**found.grid, "models": models, "core_variants": ["Base", "Tying"], "audit": ["TREC"]}
    return replace(found, grid=grid)


def done(specs, f1=0.8):
    rows = [
        {
            "spec": s, "run": f"run{i}", "status": "done", "best_epoch": s.optimiser.epochs,
            "dev_f1_binary": f1(s) if callable(f1) else f1, "dev_accuracy": 0.8,
            "dev_majority": 0.5, "dev_chance_p": 0.001,
        }
        for i, s in enumerate(specs)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture
def study(settings, monkeypatch):
    """Results of a grid whose every number is known.

    r of a text is .2 + .01 · seed, .3 more under Tying; τ is .1 below it; DeepLIFT and DeepSHAP
    are equal, unless dropout is on. Even texts are always right, every third one in one epoch only.
    """
    for cached in ("_pairs_by_epoch", "_by_text", "_epochs", "_map", "_read", "_bends"):
        getattr(reading, cached).cache_clear()
    monkeypatch.setattr(reading, "per_epoch", fake_epochs)
    monkeypatch.setattr(reading, "per_text", fake_texts)
    timed = SimpleNamespace(read=lambda file: {"seconds": 120.0})
    store = SimpleNamespace(get=lambda kind, name: timed)
    monkeypatch.setattr(reading, "open_store", lambda store_path: store)
    monkeypatch.setattr(reading, "run_hash", lambda spec: "a run")  # without reading the corpora
    results = {}
    for stage in systems.grid(settings):
        specs = stage.specs(results)
        assert len(specs) <= stage.maximum
        measured = stage.name == "measurements"
        results[stage.name] = pd.DataFrame({"spec": specs}) if measured else done(specs)
    return Study(settings, results)


def variant_of(spec):
    return spec.objective[1].name if len(spec.objective) > 1 else "base"


def fake_agreement(spec, dropout=False):
    level = 0.2 + 0.01 * spec.seed + (0.3 if variant_of(spec) == "tying" else 0)
    rows = []
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


def fake_epochs(spec, each, store=None):
    epochs = range(1, spec.optimiser.epochs + 1)
    if each.kind == "agreement":
        return pd.concat([fake_agreement(spec).assign(epoch=e) for e in epochs], ignore_index=True)
    rows = []
    for epoch in epochs:
        for i, text in enumerate(TEXTS):
            right = i % 2 == 0 or (i % 3 == 0 and epoch == 1)
            label = int(i < 6)
            confidence = (0.9 if right else 0.3) - 0.02 * i - (0.1 if each.protocol else 0)
            p1 = confidence if label else 1 - confidence
            rows.append({"id": text, "label": label, "predicted": label if right else 1 - label,
                         "p0": 1 - p1, "p1": p1, "epoch": epoch})  # fmt: skip
    return pd.DataFrame(rows)


def fake_texts(spec, store=None):
    if spec.kind == "agreement":
        return fake_agreement(spec.run, dropout=True)
    norm = np.arange(len(TEXTS), dtype=float)
    states = [[0.1 * i**2, 1.0] for i in range(len(TEXTS))]
    return pd.DataFrame({"id": TEXTS, "norm": norm, "sum": norm, "state": states})


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    paper = check_parameters("agreement", {**PARAMETERS, "profile": "paper", "seeds": None})
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

    results = {}
    for stage in systems.grid(settings)[:-1]:
        results[stage.name] = done(stage.specs(results), f1)
    searched = results["λ search 1"]["spec"]
    assert not any(s.each_epoch for s in searched if s.objective[1] == term("tying", 5))
    assert systems.tried(settings, results, close) == [(5, 0.7699), (1, 0.7701)]
    assert systems.chosen_weight(settings, results, close) == 1
    assert not systems.within_reach(settings, results, never)
    assert systems.chosen_weight(settings, results, never) == 0.5
    chosen = {
        s.objective[1].weight
        for s in results["regularised"]["spec"]
        if (variant_of(s), s.model.name, s.data.corpus) == ("tying", "jwa", close.task.corpus)
    }
    assert chosen == {1.0}
    other = next(t for t in systems.tasks(settings) if t != close.task)
    wide = systems.System("JWA", other, "Tying")
    assert systems.chosen_weight(settings, results, wide) == 1  # the core set's


def test_runs_that_need_no_result_are_listed_before_there_is_any(settings):
    lambdas = {**settings.grid["lambdas"], "Tying": [0.5, 1]}
    searching = replace(settings, grid={**settings.grid, "lambdas": lambdas})
    for given, known in ((settings, 3), (searching, 2)):
        results, listed = {}, []
        for stage in systems.grid(given)[:-1]:
            results[stage.name] = done(stage.specs(results))
            if isinstance(stage.sample, list):
                listed.append(stage.name)
                assert stage.sample == results[stage.name]["spec"].tolist()
        assert listed == ["base", "λ search 1", "regularised"][:known]


def test_core_cells_have_every_seed_and_wide_ones_the_first(study):
    counts = study.main.groupby(["model", "set", "variant"]).size()
    assert counts["DBERT", "SST", "Tying"] == 3 == counts["JWA", "SST", "Base"]
    assert counts["DBERT", "SST", "Conicity"] == 1 == counts["JWA", "IMDB", "Tying"]
    assert len(counts) == 2 * 4 * 3
    audited = study.runs[~study.runs.index.isin(study.main.index)]
    assert set(audited["variant"]) == set(systems.AUDITED) and set(audited["set"]) == {"TREC"}


def test_the_toy_example_has_the_paper_s_numbers_by_our_code_and_by_scipy():
    tau, r = figures.toy_agreement()
    assert round(tau, 2) == -0.43 and round(r, 2) == 0.99
    assert tau == pytest.approx(kendalltau(*figures.TOY.values()).statistic)
    assert r == pytest.approx(pearsonr(*figures.TOY.values()).statistic)


def cells(table):
    keys = ["row", "column", "metric"] if table.long["metric"].nunique() > 1 else ["row", "column"]
    return table.long.set_index(keys)


def test_numbers_stand_in_the_cells_of_their_model_set_and_variant(settings, study):
    pairs = cells(tables.table_1(study, "JWA"))
    cell = pairs.loc["G-SHAP vs Int-Grad", "SST", "pearson_r"]
    assert cell["ours"] == pytest.approx(0.2 + 0.02 + 0.2 + 0.0055)  # seeds 1 to 3, texts 0 to 11
    assert (cell["n"], cell["paper"]) == (3, 0.87)
    assert pairs.loc[("DeepLIFT vs D-SHAP", "IMDB", "kendall_tau"), "ours"] == 1
    noisy = cells(tables.table_1b_dropout(study))
    cell = noisy.loc["DeepLIFT vs D-SHAP", "SST", "pearson_r"]
    assert cell["ours"] == pytest.approx(0.2 + 0.02 + 0.0055) and cell["paper"] == 0.34
    means = cells(tables.table_2(study))
    gap = [means.loc["DBERT|SUBJ", v, "pearson_r"]["ours"] for v in ("Tying", "Base")]
    assert gap[0] - gap[1] == pytest.approx(0.3 * 5 / 6)  # one pair of six is always 1
    assert cells(tables.table_7(study)).loc[("TREC", "JWA"), "ours"] == 2.0
    weights = cells(tables.table_8(study))
    assert weights.loc[("JWA|SST", "Tying"), "ours"] == max(settings.grid["lambdas"]["Tying"])
    groups = tables.table_4(study, "DBERT")
    easy = np.mean([0.001 * i for i in range(0, 12, 2)])  # even texts
    level = (5 * 0.22 + 0.2 + 1 + 5 * easy) / 6
    assert cells(groups).loc[("SST|Easy", "Base"), "ours"] == pytest.approx(level)
    assert "18 texts" in groups.wide().loc["SST|Easy", "Base"]  # six in each of three seeds


def test_f1_is_that_of_the_kept_epoch(study):
    cell = cells(tables.table_3(study)).loc["JWA|SST", "Base"]
    labels = [int(i < 6) for i in range(12)]
    predicted = [y if i % 2 == 0 else 1 - y for i, y in enumerate(labels)]
    assert cell["ours"] == pytest.approx(f1_score(labels, predicted))


def test_a_variant_above_both_others_has_a_dagger(study):
    table = tables.table_2_tests(study).set_index(["model", "set", "of", "variant"])
    row = table.loc["JWA", "SST", "r", "Tying"]
    # 12 texts, all up: 1/2^12 each; Holm over 96 tests, half of them that small (Tying over both
    # others in 16 cells), so that the largest of these is multiplied by 96
    assert row["p, above Base"] == pytest.approx(96 / 2**12) and row["†"] == "†"
    assert np.isnan(row["p, above Tying"]) and row["texts"] == 12
    assert set(table.xs("Base", level="variant")["†"]) == {""}


def test_curvature_is_correlated_with_cartography_over_texts(study):
    found = cells(tables.table_11(study, "DBERT"))
    maps = study.map_of(study.runs_of("DBERT", "SST", "Base")[1]).loc[TEXTS]
    expected = pearsonr(np.arange(12), maps["confidence"]).statistic
    assert found.loc[("Grad norm|SST|confidence", "Base"), "ours"] == pytest.approx(expected)
    nearest = [0.1, 0.1, *(0.1 * (i**2 - (i - 1) ** 2) for i in range(2, 12))]
    expected = pearsonr(nearest, maps["variability"]).statistic
    assert found.loc[("Min dist|SST|variability", "Base"), "ours"] == pytest.approx(expected)


def test_intervals_of_correlations_are_scipy_s_and_sets_are_correlated_apart():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40))
    truth = pearsonr(x, y).confidence_interval()
    r = correlations.pearson(np.stack([x, y], axis=1))
    low, high, p = correlations.fisher_test(r, 40)
    assert (low, high) == pytest.approx((truth.low, truth.high))
    assert p == pytest.approx(pearsonr(x, y).pvalue, abs=0.01)  # normal for t
    apart = np.concatenate([
        np.stack([x, x + 9, np.zeros(40)], axis=1), np.stack([x, -x, np.ones(40)], axis=1)
    ])  # fmt: skip
    assert correlations.mean_correlation(apart) == pytest.approx(0, abs=1e-6)
    assert np.isnan(correlations.pearson(np.ones((5, 2))))


def test_the_audit_sets_evaluation_mode_beside_dropout_and_each_switch_beside_its_own(study):
    table = agreement.audit(study).set_index(["switch", "system", "set", "measure"])
    row = table.loc["dropout while explaining", "DBERT Base", "SST", "r, DeepLIFT and D-SHAP"]
    assert row["here"] == 1 and row["switched"] == pytest.approx(0.22 + 0.0055)
    assert row["paper"] == 0.34 and row["change"] == pytest.approx(row["switched"] - 1)
    predicted = table.loc["dropout while predicting", "DBERT Base", "TREC", "confidence"]
    assert predicted["change"] == pytest.approx(-0.1)
    trained = [s for s, *_ in table.index if not s.startswith("dropout")]
    assert [s.split(" (")[0] for s in trained] == [
        "conicity: batch axis", "conicity: pads counted", "tying: squared", "tying: pads counted",
    ]  # fmt: skip
    assert "is therefore noise from dropout" in prose.about_audit(study)


def test_every_claim_is_measured_and_decided_from_paired_seeds(study):
    found = claims.measure_claims(study)
    assert set(found) == set(claims_of("agreement")) and len(found) == 13
    verdicts = {c: decide("agreement", c, parts) for c, parts in found.items()}
    assert found["AG-C4"]["DBERT SST"]["differences"] == pytest.approx([0.25] * 3)
    assert verdicts["AG-C1"].verdict == "holds" and verdicts["AG-C1"].n == 3
    assert verdicts["AG-C2"].verdict == "holds"
    assert verdicts["AG-C4"].verdict == "holds"
    assert verdicts["AG-C7"].parts["F1 DBERT SST Tying"].verdict == "holds"
    assert verdicts["AG-C7"].estimate == 0
    assert verdicts["AG-C13"].verdict == "holds"
    # Low in every pair; that DeepLIFT = DeepSHAP in evaluation mode does not count against it
    assert verdicts["AG-C3"].verdict == "holds"
    assert {n for n in verdicts["AG-C3"].parts if "DeepLIFT vs D-SHAP" in n} == {
        "with dropout SST DeepLIFT vs D-SHAP"
    }
    noisy = [d for n, d in verdicts["AG-C3"].parts.items() if n.startswith("with dropout")]
    assert len(noisy) == 5 and {d.verdict for d in noisy} == {"holds"}
    note = claims.claim_note(study, "AG-C3", verdicts["AG-C3"])
    assert "JWA on movie_snippets for SST" in note and "paper's code: holds; 5 parts" in note
    # Conicity has one seed here
    assert verdicts["AG-C5"].verdict == "inconclusive" and verdicts["AG-C5"].n == 1


def weakened(study, weak):
    """The study as if the runs of which `weak` is true had learnt nothing."""
    results = {
        name: table.assign(dev_chance_p=[0.5 if weak(s) else 0.001 for s in table["spec"]])
        if "dev_chance_p" in table
        else table
        for name, table in study.results.items()
    }
    return Study(study.settings, results)


def test_nothing_is_concluded_from_a_model_that_has_not_learnt_its_task(study):
    def weak(seeds, spec):
        return variant_of(spec) == "base" and spec.seed in seeds and spec.model.name == "jwa"

    for seeds, left in (([2], 2), ([1, 2, 3], 1)):
        found = weakened(study, partial(weak, seeds))
        parts = claims.measure_claims(found)["AG-C4"]
        assert len(parts["JWA SST"]["differences"]) == left
        assert len(parts["DBERT SST"]["differences"]) == 3
        assert "JWA SST Base seed 2" in prose.about_training(found)


def test_sentences_leave_out_untrained_models_and_name_them(study):
    def weak(spec):  # DBERT's Tying on SUBJ
        subj = (spec.model.name, spec.data.corpus) == ("minilm", "newsgroups_pair")
        return subj and variant_of(spec) == "tying"

    found = weakened(study, weak)
    said = "not trained: DBERT SUBJ Tying seed 1."
    tying = prose.about_tying(found)
    assert "Tying raises r in 7 of 7 cells" in tying and "DBERT SUBJ +" in tying  # Conicity's
    assert "DBERT SUBJ" not in tying.split("Tying raises")[1].split(" Left out")[0]
    assert tying.endswith(f"Left out, with the other run of the pair, since they are {said}")
    # six easy texts in each of six runs of Base: three seeds on SST, one on each other set
    assert "36 Easy" in prose.about_groups(study) and "30 Easy" in prose.about_groups(found)
    assert prose.about_groups(found).endswith(said)
    curved = prose.about_curvature(found)
    assert "mean over SST, TREC, IMDB, 12 texts a set" in curved and curved.endswith(said)
    assert "SUBJ, SST, TREC, IMDB, 12 texts" in prose.about_curvature(study)
    assert "Left out" not in prose.about_pairs(found, "DBERT")  # Base is trained
    cells = tables.table_2(found).wide().loc["DBERT|SUBJ"]
    assert cells["Tying"].str.endswith("not trained").all()
    assert not cells["Base"].str.contains("not trained").any()
    tests = tables.table_2_tests(found).query("set == 'SUBJ'").groupby("model")
    assert tests["trained"].unique().map(list).to_dict() == {"DBERT": ["no"], "JWA": ["yes"]}
    assert tests["†"].max().to_dict() == {"DBERT": "", "JWA": "†"}  # Tying is above in both
    groups = agreement.group_tests(found, "DBERT").set_index(["set", "test"])["trained"]
    assert groups["SUBJ", "Amb > Easy, Base"] == "yes" == groups["SST", "Tying > Base, Easy"]
    assert groups["SUBJ", "Amb > Easy, Tying"] == "no" == groups["SUBJ", "Tying > Base, Easy"]


def test_an_untrained_base_is_left_out_of_tables_of_pairs_and_of_the_audit(study):
    def weak(spec):  # DBERT's Base: the third seed on SST, and the only one on TREC
        base = variant_of(spec) == "base" and spec.model.name == "minilm"
        return base and (spec.data.corpus, spec.seed) in [
            ("movie_snippets", 3),
            ("reuters_pair", 1),
        ]

    found = weakened(study, weak)
    names = "not trained: DBERT SST Base seed 3, DBERT TREC Base seed 1."
    # five pairs beside the same one, in six runs or four
    assert "in 30 of 30 cells" in prose.about_pairs(study, "DBERT")
    assert "in 20 of 20 cells" in prose.about_pairs(found, "DBERT")
    assert names in prose.about_pairs(found, "DBERT")
    shown = tables.table_1(found, "DBERT").wide().astype(str)
    column = next(c for c in shown.columns if "SST" in c)
    assert shown[column].str.endswith("1 of 3 not trained").all()
    f1 = tables.table_3(found).wide()
    assert f1.loc["DBERT|TREC", "Base"].endswith("n=1\nnot trained")
    assert f1.loc["DBERT|SST", "Base"].endswith("1 of 3 not trained")
    said = prose.about_audit(found)
    assert said.endswith(names) and "tying: squared" in said  # Tying and its switch are trained
    assert "Predicted with dropout on" in prose.about_audit(study)
    assert "Predicted with dropout on" not in said  # it was TREC's Base


def test_where_nothing_is_trained_nothing_is_said(study):
    found = weakened(study, lambda spec: True)
    about = [
        prose.about_tying(found), prose.about_groups(found), prose.about_curvature(found),
        prose.about_pairs(found, "JWA"), prose.about_audit(found),
    ]  # fmt: skip
    assert "Tying raises r in 0 of 0 cells." in about[0]
    assert all(text.startswith("Nothing is concluded from this table. Left") for text in about[1:])
    assert tables.table_2_tests(found)["†"].eq("").all()
    for claim, measured in claims.measure_claims(found).items():
        assert decide("agreement", claim, measured).verdict == "inconclusive", claim


@pytest.mark.parametrize("seed", [1, 2])
def test_a_failed_run_leaves_holes_and_stops_nothing(study, seed):
    task = systems.task_named(study.settings, "SST")
    base = systems.run_spec(study.settings, systems.System("DBERT", task, "Base"), seed)
    runs = study.results["base"].copy()
    scores = ["best_epoch", "dev_f1_binary", "dev_accuracy", "dev_majority", "dev_chance_p"]
    runs.loc[runs["spec"] == base, scores] = np.nan
    runs.loc[runs["spec"] == base, "status"] = "failed"
    asked = systems._measurements(study.settings, {**study.results, "base": runs})
    assert asked and base not in {spec.run for spec in asked}
    holed = Study(study.settings, {**study.results, "base": runs})
    assert sorted(holed.runs_of("DBERT", "SST", "Base")) == sorted({1, 2, 3} - {seed})
    assert len(claims.measure_claims(holed)["AG-C1"]) > 0
    for made in (tables.table_2, tables.table_2_tests, tables.table_3, tables.table_6,
                 tables.table_8, tables.table_1b_dropout, agreement.audit, prose.about_tying,
                 prose.about_training, prose.about_search, prose.about_groups,
                 prose.about_curvature, prose.about_audit):  # fmt: skip
        assert made(holed) is not None, made
    for model in ("DBERT", "JWA"):
        for of_model in (tables.table_1, tables.table_4, tables.table_5, tables.table_11,
                         agreement.group_tests, agreement.correlation_tests,
                         prose.about_pairs):  # fmt: skip
            assert of_model(holed, model) is not None, of_model
    assert figures.figure_3(holed) and figures.maps(holed, ["SST"])


def test_curvature_is_a_mean_over_sets_of_seeds_that_have_them_all(study, monkeypatch):
    def r(given, model):  # r is .5 on SST, which has three seeds, and 0 on the other sets
        cells = [(s, seed) for s in systems.SETS for seed in ((1, 2, 3) if s == "SST" else (1,))]
        rows = [
            {"set": s, "variant": v, "seed": seed, "statistic": "Grad norm", "texts": 12,
             "attribute": "confidence", "r": 0.5 if s == "SST" else 0.0}
            for s, seed in cells for v in ("Base", "Tying")
        ]  # fmt: skip
        return pd.DataFrame(rows)

    monkeypatch.setattr(tables, "correlations", r)
    cell = tables.table_5(study, "DBERT").long.set_index(["row", "column"])
    expected = np.tanh(np.arctanh(0.5) / 4)
    found = cell.loc[("Grad norm|confidence", "Base"), ["ours", "n"]].tolist()
    assert found == pytest.approx([expected, 1])


def test_a_text_that_one_variant_has_no_agreement_on_splits_no_row(study, monkeypatch):
    plain = Study.text_means

    def text_means(self, spec, epoch=None):  # Conicity's first text is undefined on JWA's SST
        means = plain(self, spec, epoch)
        if (variant_of(spec), spec.model.name, spec.data.corpus) == (
            "conicity", "jwa", "movie_snippets",
        ):  # fmt: skip
            means.loc["t0"] = np.nan
        return means

    monkeypatch.setattr(Study, "text_means", text_means)
    table = tables.table_2_tests(study).query("model == 'JWA' and set == 'SST' and of == 'r'")
    assert table["variant"].tolist() == ["Base", "Conicity", "Tying"]
    assert table["texts"].tolist() == [11] * 3
    p = table.set_index("variant")[[f"p, above {v}" for v in systems.VARIANTS]]
    assert (p.isna().to_numpy() == np.eye(3, dtype=bool)).all()  # none but above itself


def test_a_model_that_has_not_learnt_one_set_takes_no_seed_from_another(study):
    def weak(spec):
        return spec.model.name == "minilm" and spec.data.corpus == "imdb_reviews"

    found = claims.measure_claims(weakened(study, weak))
    assert len(found["AG-C8"]["Base SST"]["differences"]) == 3
    assert len(found["AG-C9"]["group SST Amb"]["differences"]) == 3


def test_correlations_of_claims_come_with_the_texts_they_are_made_of(study):
    part = claims.measure_claims(study)["AG-C10"]["Grad norm confidence"]
    maps = study.map_of(study.runs_of("DBERT", "SST", "Base")[1]).loc[TEXTS]
    expected = pearsonr(np.arange(12), maps["confidence"]).statistic
    assert part["differences"] == pytest.approx([expected] * 3)
    assert part["per_text"][0].shape == (12, 3)


def test_effects_of_the_claims_are_those_of_the_paper_s_tables():
    cells = paper_table("agreement", "table2").set_index(["metric", "row", "column"])["mean"]

    def effect(metric, model, paper, variant):
        base, treated = (cells[metric, f"{model}|{paper}", v] for v in ("Base", variant))
        return round(treated - base, 6)

    found = claims_of("agreement")
    for part in found["AG-C6"].parts:
        variant, model, paper = part.name.split()
        assert part.paper == effect("kendall_tau", model, paper, variant), part.name
    for part in found["AG-C5"].parts:
        assert part.paper == effect("pearson_r", *part.name.split(), "Conicity"), part.name
    for part in found["AG-C4"].parts:
        effects = {s: effect("pearson_r", part.name, s, "Tying") for s in systems.SETS}
        assert part.paper == pytest.approx(np.mean(list(effects.values())))
        assert part.margin == pytest.approx(min(effects.values()) / 2)
        assert part.by_column == pytest.approx(effects)
    assert found["AG-C4"].part("JWA TREC").paper == 0.41  # .52 → .93
    f1 = paper_table("agreement", "table3").pivot(index="row", columns="column", values="mean")
    costs = f1[["Conicity", "Tying"]].sub(f1["Base"], axis=0)
    assert found["AG-C7"].parts[0].paper == pytest.approx(costs.to_numpy().mean())
    of_cells = {f"{row.replace('|', ' ')} {v}": cost for (row, v), cost in costs.stack().items()}
    assert found["AG-C7"].parts[0].by_column == pytest.approx(of_cells)
    assert found["AG-C7"].part("F1 DBERT TREC Tying").paper == -0.01  # .92 → .91
    groups = paper_table("agreement", "table4").set_index(["row", "column"])["mean"]
    for part in found["AG-C8"].parts:
        gaps = {
            s: groups[f"{s}|Amb", part.name] - groups[f"{s}|Easy", part.name] for s in systems.SETS
        }
        assert part.paper == pytest.approx(np.mean(list(gaps.values())))
        assert part.margin == pytest.approx(min(gaps.values()) / 2)
        assert part.by_column == pytest.approx(gaps)
    gains = groups.unstack("column").eval("Tying - Base")
    assert found["AG-C9"].parts[0].paper == pytest.approx(gains.mean(), abs=0.001)
    assert found["AG-C9"].parts[0].margin == pytest.approx(gains.min() / 2)
    of_groups = {row.replace("|", " "): gain for row, gain in gains.items()}
    assert found["AG-C9"].parts[0].by_column == pytest.approx(of_groups)
    assert found["AG-C9"].part("group TREC Hard").paper == 0.08  # .32 → .40
    curves = paper_table("agreement", "table5").set_index(["row", "column"])["mean"]
    for claim, variant in (("AG-C10", "Base"), ("AG-C11", "Tying")):
        for part in found[claim].parts:
            printed = curves["|".join(part.name.rsplit(" ", 1)), variant]
            assert np.isnan(printed) or part.paper == printed


def test_text_level_tests_combine_over_seeds():
    assert combined([0.5, 0.5])["p"] == pytest.approx(0.5) and np.isnan(combined([])["p"])
    assert combined([0.01, 0.01])["p"] < 0.01 and combined([0.01, 0.01])["seeds"] == 2


def test_every_figure_draws_something_and_brings_its_numbers(settings, study):
    drawn = [
        figures.figure_1(),
        figures.figure_3(study),
        figures.maps(study, ["SUBJ"]),
        *(figures.curve(study, *cell) for cell in list(figures.CURVES.values())[:2]),
    ]
    for figure, data in drawn:
        assert isinstance(figure, Figure) and len(data) > 0
    assert list(figures.CURVES) == [f"figure-{n}" for n in range(4, 12)]
    assert figures.CURVES["figure-10"] == ("DBERT", "TREC")
    curve = drawn[3][1].query("variant == 'Tying'")
    assert len(curve) == settings.grid["epochs"]


def test_every_sentence_can_be_written(study):
    about = [
        prose.about_training(study), prose.about_search(study), prose.about_tying(study),
        prose.about_groups(study), prose.about_curvature(study), prose.about_pairs(study, "DBERT"),
    ]  # fmt: skip
    assert all(text.strip() and "nan" not in text for text in about)
    assert "Tying raises r in 8 of 8 cells: JWA SUBJ +0.25" in prose.about_tying(study)
    assert "identical by construction (smallest r of a text 1.000000)" in about[-1]
    assert "JWA 30, DBERT 30" in prose.about_training(study)
    paper = check_parameters("agreement", {**PARAMETERS, "profile": "paper", "seeds": None})
    assert prose.reduced(paper) == "" == prose.reduced(paper, dropout=True)


@pytest.fixture
def sixty_texts(monkeypatch):
    """Every split has 60 texts, and no corpus is read."""
    monkeypatch.setattr(tables, "rows_of", lambda data, split, rows: range(60)[:rows])
    tables._length.cache_clear()
    yield
    tables._length.cache_clear()


def test_a_table_made_with_dropout_says_on_how_many_texts_it_rests(settings, sixty_texts):
    core, wide = (
        systems.System("DBERT", systems.task_named(settings, paper), "Base")
        for paper in ("SST", "IMDB")
    )
    rows = [systems.dropout_spec(systems.run_spec(settings, s, 1)).rows for s in (wide, core)]
    said = prose.reduced(settings, dropout=True)
    assert said.startswith(f"{rows[0]} to {rows[1]} explained test texts") and "path" not in said


def test_what_the_profile_reduces_is_counted_and_not_what_it_asked_for(settings, sixty_texts):
    """The fixture's quick profile asks for 96 and 48 predicted texts."""
    said = prose.reduced(settings)
    assert "6 to 16 explained test texts of a set, 48 to 60 predicted test texts of a set" in said
    assert "60 validation texts of a set, 32 to 60 training texts" in said
    assert "curvature on 16 (JWA) and 16 (DBERT) test texts of a set" in said
    assert "curvature" not in prose.reduced(settings, dropout=True)


def test_the_audit_says_where_dropout_is_not_the_only_switch(settings):
    paper = check_parameters("agreement", {**PARAMETERS, "profile": "paper", "seeds": None})
    assert "a second switch" in prose.audit_caption(settings)
    assert "a second switch" not in prose.audit_caption(paper)


def test_packaged_vectors_are_used_without_a_glove_file_and_a_wrong_file_is_refused(
    settings, monkeypatch, tmp_path
):
    data = systems.data_spec(settings, "JWA", systems.task_named(settings, "SST"))
    assert vectors.word_vectors(settings, data, 1) == "jwa"
    assert "GloVe 6B, 50 dimensions" in prose.about_data(settings)
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
    assert "word vectors of glove.8d.txt" in prose.about_data(settings)
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
