"""REGEX's grid is the paper's, and each of its numbers lands in the right cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import ceil

import numpy as np
import pandas as pd
import pytest

from erlib.catalogue import paper
from erlib.config import term
from erlib.papers.cells import Spec
from erlib.papers.holes import remark_of
from erlib.papers.regex import audit, evaluations, facts, figures, training
from erlib.papers.regex import texts as report_texts
from erlib.papers.regex.cells import SHORTENED, baselines, grid
from erlib.papers.regex.systems import (
    ATTRIBUTIONS,
    SHORT_RUN,
    SYSTEMS,
    families,
    main_run,
    named,
    objective,
    other_readings,
    pair_name,
    pairs,
    run_spec,
    untrained,
)
from erlib.papers.report import beside_printed
from erlib.papers.study import Study
from erlib.parameters import check_parameters
from erlib.reports import paper_table
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import criteria
from erlib.sizes import against_the_paper
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash
from erlib.training.kinds import attack, faithfulness, predictions
from erlib.training.making import fail
from erlib.training.store import open_store
from tests import tiny
from tests.papers.finished import MadeUp, carried_out

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
TEXTS = 24
SHORT = "REGEX" + SHORT_RUN


def of(profile, **given):
    return check_parameters("regex", {**PARAMETERS, "profile": profile, **given})


def planned(settings, *tables):
    """The cells of these tables before anything is trained."""
    return Study(paper("regex"), settings, {}).of(*tables)


def runs_in(settings, *tables):
    """(row, column, seed) → the run behind the cell."""
    return {(c.row, c.column, c.seed): c.specs[0].run for c in planned(settings, *tables)}


@pytest.fixture(scope="module")
def settings():
    return of("cpu")


class Planted(MadeUp):
    """A study in which every system is as faithful, right and robust as the tables below say."""

    LEVEL = {"RAND": 0.2, "aGa": 0.4, "a": 0.3, "DeepLift": 0.4, "xGx": 0.25, "IG": 0.25}  # AOPC
    GAIN = {"REGEX": 0.2, "w/o robustness improvement": 0.02,
            "w/o explanation guided training": 0.18}  # fmt: skip
    RIGHT = {"Baseline": 0.5, "REGEX": 0.75}  # of classifiers that read their rationales
    SUMMARIES = {"faithfulness": faithfulness._summary, "attack": attack._summary,
                 "predictions": predictions.task_scores}  # fmt: skip

    def value(self, spec: Spec, name: str) -> float:
        return self.SUMMARIES[spec.kind](self.texts(spec))[name] if self.has(spec) else np.nan

    def table(self, spec):
        assert self.has(spec) or spec.kind == "attributions", "it failed, and there are no texts"
        return {"faithfulness": self.erasure, "predictions": self.answers, "attack": self.attack,
                "attributions": self.scores}[spec.kind](spec)  # fmt: skip

    def system(self, run):
        names = {objective(self.settings, system): name for name, system in SYSTEMS.items()}
        return names.get(run.objective, "")

    def erasure(self, spec):
        attribution = {method: name for name, method in ATTRIBUTIONS.items()}[spec.method]
        level = self.LEVEL[attribution] + self.GAIN.get(self.system(spec.run), 0.0)
        noise = np.random.default_rng(spec.run.seed).normal(scale=0.01, size=TEXTS)
        seen = np.sort(np.random.default_rng(0).permutation(TEXTS)[: spec.rows])  # wide: fewer
        value = 6 / 5 * np.repeat(level + noise[seen], 5)
        return pd.DataFrame(
            {"id": np.repeat([f"text {i}" for i in seen], 5), "method": spec.method,
             "bin": [1, 5, 10, 20, 50] * len(seen), "undefined": False,
             **dict.fromkeys(faithfulness.MEASURES, value)}
        )  # fmt: skip

    def answers(self, spec):
        """All are right on three quarters of the full texts, FRESH as `RIGHT` says."""
        extract = spec.data.extract
        right = self.RIGHT[self.system(extract.run)] if extract else 0.75
        label = np.arange(TEXTS) % 2
        wrong = np.arange(TEXTS) >= right * TEXTS
        return pd.DataFrame({"label": label, "predicted": np.where(wrong, 1, label)})

    def attack(self, spec):
        """Ten texts, one wrong before; REGEX flips in one, the Baseline in four."""
        flipped = {"REGEX": 1, "Baseline": 4}[self.system(spec.run)]
        return pd.DataFrame(
            {"label": 1, "before": [1] * 9 + [0], "words": 50, "changed": 5, "queries": 20,
             "after": [0] * flipped + [1] * (9 - flipped) + [0],
             "kinds": ["name"] * flipped + [""] * (10 - flipped)}
        )  # fmt: skip

    def scores(self, spec):
        """All seeds of REGEX rank alike; the others at random."""
        told = [t.name for t in spec.run.objective]
        draw = np.random.default_rng(
            [spec.run.seed if "guided" not in told else 7, len(spec.method)]
        )
        special = np.arange(14) % 13 == 0
        rows = [(draw.normal(size=14), special) for _ in range(TEXTS)]
        return pd.DataFrame(rows, columns=["scores", "special"])


def plant(settings, untrained=(), failed=(), kind=Planted):
    results = carried_out(
        grid(settings), lambda spec: 0.5,
        accuracy=lambda run: 0.5 if run in untrained or run.optimiser.lr == 0 else 0.7,
        failed=lambda run: run in failed,
    )  # fmt: skip
    return kind(paper("regex"), settings, results)


@pytest.fixture(scope="module")
def planted(settings):
    return plant(settings)


def shown(study, table, **options):
    return beside_printed(study, study.of(table), table, **options).long


def steps(spec):
    return ceil(spec.data.train_rows / spec.optimiser.batch_size) * spec.optimiser.epochs


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    these = of("paper", data="local")
    spec = run_spec(these, "REGEX", "SST", 0)
    weights = {t.name: t.weight for t in spec.objective}
    assert weights == {"task": 1, "input_gradient": 0.01, "virtual_adversarial": 0.5,
                       "guided": 0.01}  # fmt: skip
    assert dict(spec.objective[-1].options) == {
        "aggregation": "l2", "guide": "integrated_gradients", "percent": 15, "points": 50,
        "refreshed": "batch",
    }  # fmt: skip
    optimiser = spec.optimiser
    assert (optimiser.lr, optimiser.head_lr, optimiser.epochs) == (1e-5, 1e-4, 10)
    assert (optimiser.warmup, optimiser.clip, optimiser.batch_size) == (0.1, 1.0, 16)
    assert (optimiser.checkpoint.metric, optimiser.checkpoint.mode) == ("dev_f1_macro", "max")
    assert spec.model.name == "google-bert/bert-base-uncased" and spec.data.max_length == 256
    assert run_spec(these, "REGEX", "SST", 0, small=True).model.name == "FacebookAI/roberta-large"
    assert len(these.seeds) == 5 and against_the_paper(paper("regex"), these.grid).empty


def test_the_paper_profile_measures_every_cell_with_five_seeds_on_all_texts():
    these = of("paper", data="local")
    faithful, answers = planned(these, "table1"), planned(these, "table2")
    assert len(faithful) == 18 * 2 * 5 * 6 and len(answers) == 18 * 2 * 5 * 6
    for cell in faithful:
        (spec,) = cell.specs
        assert spec.run.start is None and spec.rows is None and spec.variant == "regex"
    read = {c.specs[0].run for c in answers if c.column != "Full-text"}
    assert len(read) == 6 * 2 * 5 * 5
    assert len(planned(these, "table8")) == 2 * 5 * 5
    assert {c.specs[0].rows for c in planned(these, "table6")} == {400}


def test_each_system_has_the_terms_of_equation_8_that_its_name_says(settings):
    terms = {name: [t.name for t in objective(settings, s)] for name, s in SYSTEMS.items()}
    assert terms["Baseline"] == ["task"]
    assert terms["w/o robustness improvement"] == ["task", "guided"]
    assert terms["w/o virtual adversarial training"] == ["task", "input_gradient", "guided"]
    assert terms["w/o input gradient regularization"] == ["task", "virtual_adversarial", "guided"]
    assert terms["w/o explanation guided training"] == [
        "task", "input_gradient", "virtual_adversarial",
    ]  # fmt: skip
    printed = set(paper_table("regex", "table10")["row"])
    assert printed == set(SYSTEMS) - {"Baseline"}
    assert len({objective(settings, s) for s in SYSTEMS.values()}) == 13
    guide = dict(objective(settings, SYSTEMS["Saliency (Mean)"])[-1].options)
    assert (guide["guide"], guide["aggregation"]) == ("saliency", "mean")


@pytest.mark.parametrize("profile", ["quick", "cpu"])
def test_the_guide_of_small_profiles_has_ten_points_and_is_made_once_per_epoch(profile):
    guide = dict(objective(of(profile), SYSTEMS["REGEX"])[-1].options)
    assert (guide["points"], guide["refreshed"]) == (10, "epoch")


def test_what_a_small_profile_leaves_out_is_listed():
    less = against_the_paper(paper("regex"), of("quick").grid).set_index("what")
    assert less.loc["seeds", "here"] == "0, 1"
    assert less.loc["tokens of a longer text that are read", "here"] == "IMDB 40"
    assert less.loc["layers of the encoder of Table 8"].tolist() == ["1", "24"]


def test_two_families_of_three_make_the_pairs_of_table_1(settings):
    assert [[s.corpus for s in family] for family in families(settings)] == [
        ["movie_snippets", "imdb_reviews", "amazon_snippets"],
        ["tweets3", "news_snippets3", "amazon_snippets3"],
    ]
    printed = dict.fromkeys(r.split("|")[0] for r in paper_table("regex", "table1")["row"])
    assert sorted(pair_name(*p) for p in pairs(settings)) == sorted(printed)
    local = [s.corpus for family in families(of("cpu", data="local")) for s in family]
    assert local == ["sst", "imdb", "yelp", "amaz_digimu", "amaz_pantry", "amaz_instr"]


def test_every_contrast_of_the_criteria_is_a_difference_of_cells():
    known = {
        (c.table, c.row, c.column, metric)
        for c in Study(paper("regex"), of("paper", data="local"), {}).cells
        for metric in c.read
    }
    for claim, criterion in criteria("regex").items():
        for contrast in criterion.contrasts:
            for end in (e for d in contrast.differences for e in (d.before, d.after) if e):
                place = (end.table, end.row, end.column, end.metric)
                assert place in known or claim in (claim, place)


def test_core_runs_are_long_with_three_seeds_and_wide_ones_go_on_from_the_baseline(settings):
    for name in settings.grid["core"]:
        spec = run_spec(settings, name, "SST", 1)
        assert spec.start is None and steps(spec) >= 120 and spec.model.layers is None
    runs = runs_in(settings, "table1")
    home = {(row, seed) for row, column, seed in runs if column == "aGa" and "SST->SST" in row}
    assert home == {(f"SST->SST|{s}", i) for s in ("Baseline", "REGEX") for i in (0, 1, 2)}
    wide = {place: run for place, run in runs.items() if not place[0].startswith("SST")}
    assert {seed for *_, seed in wide} == {0}
    for (row, *_), run in wide.items():
        if row.endswith("REGEX"):
            start = run_spec(settings, "Baseline", row.split("->")[0], 0)
            assert run.start == start and steps(run) < steps(start)


def test_every_run_is_trained_before_what_needs_it(settings):
    runs, measured = (list(stage.specs({})) for stage in grid(settings))
    for place, spec in enumerate(runs):
        assert spec.start is None or spec.start in runs[:place]
        assert spec.data.extract is None or spec.data.extract.run in runs[:place]
    assert {e.run for e in measured} <= set(runs)


def test_fresh_classifiers_see_rationales_of_their_support_at_the_target_s_ratio(settings):
    cells = [c for c in planned(settings, "table2") if c.column != "Full-text"]
    assert {c.column for c in cells} == set(ATTRIBUTIONS) - {"RAND"}
    for cell in cells:
        run, tested = cell.specs[0].run, cell.specs[0].data
        support = run.data.extract.run
        assert tested.extract.run == support and support.seed == run.seed
        assert support.data.corpus == run.data.corpus and len(run.objective) == 1
        assert run.data.extract.percent == 20  # SST's, on which it is trained
        target = cell.row.split("->")[1].split("|")[0]
        assert tested.extract.percent == {"SST": 20, "IMDB": 2, "Yelp": 10}[target]
    other = [c for c in planned(settings, "audit") if "ratio" in c.row and c.column != "ours"]
    assert {c.specs[0].data.extract.percent for c in other} == {20}


def test_the_untrained_model_takes_no_step_and_is_no_failure(settings):
    spec = untrained(settings)
    assert spec.optimiser.lr == spec.optimiser.head_lr == 0 and spec.seed not in settings.seeds
    of_both = {evaluations.initialisations(settings, s, small=False)["#Untrained"]
               for s in ("REGEX", "Baseline")}  # fmt: skip
    assert len(of_both) == 1 and untrained(settings, small=True).model.layers == 3
    study = plant(settings)
    low = study.numbers(c for c in study.of("table3") if c.column == "#Untrained")
    assert low["trained"].all() and not study.untrained


def test_the_sweeps_change_one_number_and_pass_through_regex(settings):
    regex = run_spec(settings, "REGEX", "SST", 0, wide=True)
    for figure, at in (("figure-3", "λ4 = .01"), ("figure-4", "K = .15")):
        runs = {row: run for (row, *_), run in runs_in(settings, figure).items()}
        assert len(runs) >= 3 and [row for row, run in runs.items() if run == regex] == [at]
    swept = runs_in(settings, "figure-3").values()
    assert {run.objective[-1].weight for run in swept} == set(settings.grid["lambdas"])


def test_claims_on_a_sweep_are_about_the_mean_of_the_five_attributions():
    study = plant(of("paper", data="local", seeds=[0]))
    (mean,) = [c for c in study.of("figure-4") if not c.column and c.row == "K = .2"]
    found = study.reading(mean, "norm_comp")
    assert len(mean.specs) == 5 and len(found.texts) == TEXTS
    assert found.value == pytest.approx((0.4 + 0.3 + 0.4 + 0.25 + 0.25) / 5, abs=0.01)


def test_numbers_stand_in_the_cells_of_their_pair_system_and_attribution(planted):
    faith = shown(planted, "table1").set_index(["row", "column", "metric"])
    assert len(faith) == 18 * 2 * 6 * 2
    cell = faith.loc[("SST->SST|REGEX", "DeepLift", "norm_suff")]
    assert cell["ours"] == pytest.approx(0.6, abs=0.01) and cell["n"] == 3
    assert cell["difference"] == pytest.approx(cell["ours"] - 0.71)
    away = faith.loc[("AmazInstr->AmazPantry|Baseline", "a", "norm_comp")]
    assert away["ours"] == pytest.approx(0.3, abs=0.01) and away["n"] == 1
    f1 = shown(planted, "table2").set_index(["row", "column"])
    assert f1.loc[("Yelp->IMDB|REGEX", "Full-text"), "n"] == 1
    assert f1.loc[("SST->Yelp|REGEX", "IG"), "ours"] > f1.loc[("SST->Yelp|Baseline", "IG"), "ours"]
    only = shown(planted, "table9").query("n > 0")
    assert set(only["row"]) == {"SST->SST|REGEX", "SST->IMDB|REGEX", "SST->Yelp|REGEX"}


def test_variants_stand_in_the_ablation_s_tables_with_what_short_ones_compare_with(planted):
    ablation = shown(planted, "table10").set_index(["row", "column", "metric"])
    without = ablation.loc[("w/o robustness improvement", "aGa", "norm_suff")]
    assert without["ours"] == pytest.approx(0.42, abs=0.01) and without["n"] == 3
    for system in SHORTENED:
        assert (system + SHORT_RUN, "aGa", "norm_comp") in ablation.index
    four = shown(planted, "table4")
    assert set(four["column"]) == {"aGa", "DeepLift"} and (four["n"] > 0).all()
    assert len(shown(planted, "table7")) == 14


def test_jaccard_tables_are_symmetric_and_know_the_untrained_model(planted):
    table = shown(planted, "table3").set_index(["row", "column"])["ours"]
    assert table["Init#1|REGEX", "Init#3"] == 1 and table["Init#2|Baseline", "Init#2"] == 1
    assert table["Init#1|Baseline", "Init#2"] == table["Init#2|Baseline", "Init#1"] < 0.4
    assert table["#Untrained|REGEX", "Init#2"] == table["Init#2|REGEX", "#Untrained"] < 0.4
    assert np.isnan(table["Init#4|REGEX", "Init#1"])  # three initialisations here
    assert shown(planted, "table8")["ours"].notna().sum() == 2 * 9
    found = facts.agreement(planted, "table3")
    assert found["REGEX_trained"] == 1 and found["pairs"] == "3 pairs"
    assert found["Baseline_untrained"] == pytest.approx(
        np.mean([table[f"Init#{i}|Baseline", "#Untrained"] for i in (1, 2, 3)])
    )


def test_one_initialisation_agrees_with_no_other():
    alone = facts.agreement(plant(of("cpu", seeds=[0])), "table3")
    assert np.isnan(alone["REGEX_trained"]) and alone["pairs"] == "0 pairs"


def test_the_attack_s_seven_statistics_stand_beside_the_paper_s(planted):
    table = shown(planted, "table6").set_index(["row", "column"])["ours"]
    assert table["Number of successful attacks", "Baseline"] == 4
    assert table["Original accuracy(%)", "REGEX"] == 90
    assert table["Accuracy under attack(%)", "Baseline"] == pytest.approx(50)
    assert table["Attack success rate(%)", "REGEX"] == pytest.approx(100 / 9)
    assert table["Average perturbed word(%)", "REGEX"] == pytest.approx(10)
    assert len(table) == 14
    found = facts.attack(planted)
    assert (found["Baseline"], found["REGEX"], found["both"]) == ("4 of 9", "1 of 9", 9)
    assert (found["Baseline_alone"], found["REGEX_alone"]) == (3, 0)
    assert found["p"] == pytest.approx(0.25) and found["changes"] == "5 name"


@pytest.mark.parametrize("profile", ["cpu", "paper"])
def test_every_way_to_deeplift_is_measured_on_the_same_models_and_texts(profile):
    found = audit.deeplifts(of(profile, data="local"))
    for system in ("Baseline", "REGEX"):
        ways = {variant: spec for (s, variant), spec in found.items() if s == system}
        assert list(ways) == ["regex", "regex_hooked", "regex_hooked_word_embedding",
                              "regex_word_embedding", "random"]  # fmt: skip
        ours, *others, drawn = ways.values()
        assert ours.rows is None or ours.rows >= 100
        assert [s.variant for s in (ours, *others)] == list(ways)[:4] and ours.method == "deeplift"
        assert all(replace(s, variant="regex") == ours for s in others)
        assert drawn == replace(ours, method="random")


def test_the_audit_puts_deeplift_beside_random_text_by_text(settings):
    class Void(Planted):
        def erasure(self, spec):
            """DeepLift of the word embedding falls below random by .1 or .3, text by text."""
            table = super().erasure(spec)
            if spec.variant != "regex_word_embedding":
                return table
            lower = 6 / 5 * np.where(np.arange(len(table)) // 5 % 2, 0.3, 0.5)
            return table.assign(**{m: table[m] - lower for m in faithfulness.MEASURES})

    study = plant(settings, kind=Void)
    rows = audit.choices(study).set_index(["choice", "what"])
    way = "DeepLift straight into the encoder, or "
    old = rows.loc[(way + "through the whole model from the word embedding",
                    "Baseline, sufficiency")]  # fmt: skip
    assert old["ours"] - old["the other reading"] == pytest.approx(0.4)
    drawn = rows.loc[(way + "random in its place", "Baseline, sufficiency")]
    assert drawn["the other reading"] == pytest.approx(old["ours"] - 0.2)
    said = facts.over_random(study)
    error = 0.1 / np.sqrt(TEXTS - 1)  # of values that are .1 above or below their mean
    assert said["texts"] == TEXTS
    assert said["Baseline"].startswith("straight into the encoder +0.200 ± 0.000 and +0.200 ± 0.0")
    assert said["Baseline"].endswith(f"-0.200 ± {error:.3f} and -0.200 ± {error:.3f}")


def test_the_audit_shows_both_readings_of_each_choice(planted):
    table = audit.choices(planted)
    ours, other = table["ours"], table["the other reading"]
    divisor = table["choice"] == "AOPC: sum / 6 or / 5"
    assert other[divisor].to_numpy() == pytest.approx(ours[divisor].to_numpy() * 6 / 5)
    for part in ("ball of radius", "every epoch, or for every batch", "FRESH ratio", "equal"):
        assert table["choice"].str.contains(part, regex=False).any(), part
    alike = table.set_index("what").loc["share of REGEX's SST rows"]
    assert alike["ours"] == alike["the other reading"] == 1  # as planted
    assert list(other_readings(of("paper", data="local")))[1].endswith("or for every epoch")
    [_, made] = other_readings(of("paper", data="local")).values()
    guided = objective(of("paper", data="local"), made)[-1]
    assert dict(guided.options)["refreshed"] == "epoch"


@pytest.fixture
def tiny_study(settings, monkeypatch):
    """The measurements on a few batches, with a tiny model and texts that repeat."""
    texts = ["a great film , truly moving and funny .", "the plot is dull and the acting is bad ."]

    def repeated(classifier, spec, count):
        labels = [i % 2 for i in range(count)]
        encoded = classifier.encode([texts[i % 2] for i in range(count)], labels=labels)
        return [replace(t, id=f"text {i}") for i, t in enumerate(encoded)]

    monkeypatch.setattr(training, "_training_texts", repeated)
    study = Study(paper("regex"), settings, {})
    study.model = lambda run: tiny.classifier("bert").eval()
    return study


def test_the_remembered_guide_is_compared_with_a_fresh_one_on_ten_batches(tiny_study):
    check = training.guide_check(tiny_study)
    assert check["batch"].tolist() == list(range(1, 11))
    assert check["rank correlation"].iloc[0] > 0.99  # the same weights: only the points differ
    assert check["rank correlation"].between(-1, 1).all()
    assert check["masked by both"].between(0, 1).all()
    assert facts.guide(check)["batches"] == 10


def test_every_system_s_step_is_timed_against_the_baseline_s(tiny_study):
    table = training.costs(tiny_study)
    assert table["system"].tolist()[0] == "Baseline" and table["times Baseline"].iloc[0] == 1
    assert (table["seconds per step"] > 0).all()
    guide = table.set_index("system")["of it the epoch's guide"]
    assert guide["REGEX"] > 5 * guide["with robustness terms"]  # which makes none
    assert facts.cost(table)["regex"] == table.set_index("system").loc["REGEX", "times Baseline"]


def test_the_ascent_is_measured_by_step_size(tiny_study):
    check = training.perturbation_check(tiny_study)
    assert check["step size η"].iloc[0] == 1e-3
    cosine = check["cosine with the random start"]
    assert cosine.is_monotonic_decreasing and cosine.iloc[0] <= 1 + 1e-6
    assert check["times"].iloc[-1] > check["times"].iloc[0]
    assert facts.perturbation(check)["larger"].count("at η = ") == 2


def test_masked_tokens_are_compared_as_sets():
    counted = np.array([False, True, True, True, True, False])
    a, b = np.array([0, 3, 1, 2, 4, 0.0]), np.array([0, 3, 4, 2, 1, 0.0])
    assert training._same_lowest(a, b, counted) == 0  # 15 % of four tokens is one
    assert training._same_lowest(a, a, counted) == 1


def test_examples_are_texts_that_both_systems_classify_correctly_where_there_are_such():
    labels = [0, 1, 0, 1]
    assert report_texts.one_of_each_class(labels, [[1, 1, 0, 1], [0, 0, 0, 1]]) == [2, 3]
    assert report_texts.one_of_each_class(labels, [[1, 1, 1, 0], [1, 0, 1, 1]]) == [0, 1]


def test_rows_and_columns_have_the_names_of_the_text(planted):
    names = report_texts.labels(planted)
    wide = beside_printed(planted, planted.of("table1"), "table1", labels=names).wide()
    assert wide.index[0] == ("SST → SST, REGEX", "sufficiency")
    assert list(wide.columns) == ["RAND", "α∇α", "α", "DeepLift", "x∇x", "IG"]


def test_every_figure_is_drawn_from_numbers(planted):
    grid_of = planted.settings.grid
    for draw, values in ((figures.figure_3, grid_of["lambdas"]),
                         (figures.figure_4, [k / 100 for k in grid_of["percents"]])):  # fmt: skip
        figure, numbers = draw(planted)
        assert len(figure.axes) == 2
        assert sorted(numbers["value"].unique()) == sorted(values)
        assert set(numbers["attribution"]) == set(grid_of["swept"])
    for draw in (figures.figure_1, figures.figure_2):
        figure, numbers = draw()
        assert figure.axes and len(numbers)


def test_sentences_have_the_effects_that_were_planted(planted):
    home = facts.in_domain(planted)
    assert home["sufficiency_aGa_Baseline"] == pytest.approx(0.4, abs=0.01)
    assert home["comprehensiveness_DeepLift_REGEX"] == pytest.approx(0.6, abs=0.01)
    found = facts.ahead(planted)
    assert found["pairs"] == 18
    assert found["sufficiency_gains"].startswith("18 (RAND), 18 (α∇α)")
    assert found["comprehensiveness_useful"].startswith("18 (α∇α), 18 (α), 18 (DeepLift)")
    assert facts.undefined(planted) == dict.fromkeys(
        ("Baseline_home", "REGEX_home", "Baseline_away", "REGEX_away"), 0
    )
    ranks = facts.ranking(planted, "norm_suff")
    assert ranks["blocks"] == 18 and ranks["ranks"].startswith("DeepLift 1.5, α∇α 1.5, α 3.0")
    assert ranks["critical"] == pytest.approx(2.728 * np.sqrt(5 * 6 / (6 * 18)), abs=1e-3)  # Demšar
    best = facts.sweep(planted, "figure-3")
    assert best["sufficiency"] == 0.01
    assert best["sufficiency_spread"] == pytest.approx(0.2)
    said = facts.rationales(planted)
    assert said["sources"] == "SST" and said["REGEX"].startswith("Full-text ")


def test_each_part_is_held_against_regex_trained_for_as_long(planted):
    found = facts.parts(planted)
    assert found["robustness"] == pytest.approx(-0.18)  # against the long run
    assert found["guidance"] == pytest.approx(-0.02)
    assert found["adversarial"] == pytest.approx(-0.2)  # against the short one
    assert found["gradient"] == pytest.approx(-0.2)


def test_claims_compare_short_variants_with_runs_as_short_in_either_table(settings):
    """RX-C12 and RX-C13 read the short runs; tables, and RX-C11, the long ones."""

    class Longer(Planted):
        def erasure(self, spec):
            longer = 0.1 if spec.run.start is None else 0.0
            table = super().erasure(spec)
            return table.assign(**{m: table[m] + 6 / 5 * longer for m in faithfulness.MEASURES})

    study = plant(settings, kind=Longer)
    without = "w/o robustness improvement"
    for table, row, level in (("table4", "REGEX", 0.6), ("table10", without, 0.42)):
        place = (table, row, "aGa", "norm_suff")
        read = study.read(Place(*place))
        seen = shown(study, table).set_index(["row", "column", "metric"]).loc[place[1:], "ours"]
        assert read[0].value == pytest.approx(level, abs=0.01)
        assert seen == pytest.approx(level + 0.1, abs=0.01)
        assert len(read[0].texts) == settings.grid["erased_rows"]["wide"]
    long = study.read(Place("table4", without, "aGa", "norm_suff"))
    assert set(long) == {0, 1, 2} and long[0].value == pytest.approx(0.52, abs=0.01)


def test_pairs_of_models_that_are_not_trained_are_not_counted(settings):
    weak = [main_run(settings, "REGEX", "IMDB", 0), main_run(settings, "Baseline", "SST", 0)]
    study = plant(settings, weak)  # each tested on three sets
    assert facts.ahead(study)["pairs"] == 12
    assert facts.ranking(study, "norm_suff")["blocks"] == 12
    every = set(runs_in(settings, "table1").values())
    none = plant(settings, every)
    assert facts.ahead(none) == facts.ranking(none, "norm_suff") == {}


@pytest.mark.parametrize("system", ["Baseline", "REGEX"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_run_leaves_holes_and_stops_nothing(settings, planted, system, seed):
    runs = {main_run(settings, system, source, seed) for source in ("SST", "IMDB")}
    study = plant(settings, failed=runs)
    place = (f"SST->SST|{system}", "aGa", "norm_suff")
    n, whole = (
        shown(s, "table1").set_index(["row", "column", "metric"]).loc[place, "n"]
        for s in (study, planted)
    )
    assert n == whole - 1
    for table in ("table2", "table3", "table4", "table6", "table7", "table8", "table9", "table10"):
        assert len(shown(study, table))
    for made in (facts.in_domain, facts.ahead, facts.undefined, facts.rationales, facts.attack,
                 facts.parts, facts.over_random, audit.choices, figures.figure_3):  # fmt: skip
        assert made(study) is not None, made
    assert facts.agreement(study, "table3") and facts.sweep(study, "figure-3") is not None


@pytest.fixture
def without_baselines(tmp_path):
    """A study in whose store every Baseline of the first seed failed."""
    settings = of("quick", store=str(tmp_path))
    runs = [main_run(settings, "Baseline", source, settings.seeds[0]) for source in ("SST", "IMDB")]
    for spec in (*runs, run_spec(settings, "Baseline", "SST", settings.seeds[0])):
        why = Diverged("loss became nan in step 3")
        fail(open_store(settings.store), "runs", run_hash(spec), spec, why)
    return Study(paper("regex"), settings, {})


@pytest.mark.parametrize(
    "make", [training.costs, training.guide_check, training.perturbation_check]
)
def test_what_needs_one_failed_model_is_a_remark_that_names_it(without_baselines, make):
    settings = without_baselines.settings
    of_run = run_spec if make is training.guide_check else main_run
    name = run_hash(of_run(settings, "Baseline", "SST", settings.seeds[0]))
    table = make(without_baselines)
    why = f"it needs run {name}, which failed (loss became nan in step 3)"
    assert remark_of(table) == why and table.shape == (1, 1)
    assert facts.cost(table) == facts.guide(table) == facts.perturbation(table) == {}


def test_table_5_names_the_failed_run_too(without_baselines):
    html, words = report_texts.table_5(without_baselines)
    settings = without_baselines.settings
    name = run_hash(main_run(settings, "Baseline", "IMDB", settings.seeds[0]))
    assert name in remark_of(words) and remark_of(words) in html


def test_undefined_texts_of_a_model_are_counted_once(settings):
    class Unsure(Planted):
        def erasure(self, spec):
            """The first Baseline is no surer of any SST text than of an empty one."""
            first = self.system(spec.run) == "Baseline" and spec.run.seed == 0
            home = spec.run.data.corpus == spec.data.corpus == "movie_snippets"
            return super().erasure(spec).assign(undefined=first and home)

    shares = facts.undefined(plant(settings, kind=Unsure))
    assert shares["Baseline_home"] == pytest.approx(100 / 3)  # of three models
    assert shares["REGEX_home"] == shares["Baseline_away"] == 0


def test_runs_are_called_by_their_system_and_corpus(settings):
    names = Counter(named(settings, run) for run in grid(settings)[0].specs({}))
    assert names["REGEX on imdb_reviews"] == 1 and names["IG (Mean) on movie_snippets"] == 1
    assert names["REGEX on movie_snippets (second model)"] == 2
    assert names["classifiers of rationales of movie_snippets"] == 10
    assert names["REGEX at another setting on movie_snippets"] == 2 + 2 + 2  # two sweeps, the audit


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_a_baseline_differs_from_the_regex_beside_it_in_nothing_but_the_objective(profile):
    """The same start, texts, steps, rates and seed, wherever the two are compared."""
    these = of(profile, data="local")
    compared = {}
    for cell in planned(these, "table1", "table2", "table3", "table6", "table8"):
        row, _, system = cell.row.partition("|")
        column, system = (cell.column, system) if system else ("", cell.column)
        run = cell.specs[0].run
        read = run.data.extract.run if run.data.extract else run
        compared.setdefault((cell.table, row, column, cell.seed), {})[system] = read
    for both in compared.values():
        assert both["Baseline"] == replace(both["REGEX"], objective=(term("task"),))
        assert profile != "paper" or both["REGEX"].start is None


def test_in_quick_regex_has_two_seeds_that_go_on_from_their_baselines():
    runs = runs_in(of("quick"), "table1")
    for seed in (0, 1):
        for system in ("Baseline", "REGEX"):
            run = runs[f"SST->SST|{system}", "aGa", seed]
            assert run.start == run_spec(of("quick"), "Baseline", "SST", seed)


def test_ablated_variants_that_decide_are_as_long_as_regex(settings):
    runs = runs_in(settings, "table10")
    for name in ("REGEX", "w/o robustness improvement", "w/o explanation guided training"):
        assert {seed for row, _, seed in runs if row == name} == {0, 1, 2}
        assert runs[name, "aGa", 0].start is None
    short, variant = runs[SHORT, "aGa", 0], runs["IG (Mean)", "aGa", 0]
    assert replace(variant, objective=short.objective) == short
    rows = {c.row: c.specs[0].rows for c in planned(settings, "table10")}
    assert rows[SHORT] == rows["IG (Mean)"] != rows["REGEX"]


def test_the_encoder_s_table_has_the_baselines_of_all_six_sets(settings):
    found = baselines(settings)
    assert list(found) == [s.paper for family in families(settings) for s in family]
    assert [spec.run.seed for spec in found["SST"]] == [0, 1, 2]
