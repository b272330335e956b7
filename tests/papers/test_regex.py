"""REGEX's grid is the paper's, and each of its numbers lands in the right cell and claim."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pandas as pd
import pytest

from erlib.config import term
from erlib.papers.holes import remark_of
from erlib.papers.regex import audit, claims, examples, figures, prose, schematics, tables
from erlib.papers.regex.grid import (
    SHORT,
    ablated,
    attacked,
    deeplifts,
    every_attribution,
    every_cell,
    faithful,
    fresh,
    fresh_with_source_ratio,
    full_text,
    grid,
    initialisations,
    main_run,
    swept,
)
from erlib.papers.regex.study import Study, not_trained
from erlib.papers.regex.systems import (
    ATTRIBUTIONS,
    SYSTEMS,
    families,
    objective,
    other_readings,
    pair_name,
    pairs,
    run_spec,
    untrained,
)
from erlib.parameters import check_parameters
from erlib.reports import decide, paper_table
from erlib.reports.claims import claims as listed
from erlib.training.executors import fail, open_store
from erlib.training.failures import Diverged
from erlib.training.identity import run_hash
from erlib.training.kinds import attack, faithfulness, predictions
from tests import tiny

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
TEXTS = 24
WITHOUT_BOTH = "w/o robustness improvement, short run"


def of(profile, **given):
    return check_parameters("regex", {**PARAMETERS, "profile": profile, **given})


@pytest.fixture(scope="module")
def settings():
    return of("cpu")


class Planted(Study):
    """A study in which every system is as faithful, right and robust as the tables below say."""

    LEVEL = {"RAND": 0.2, "aGa": 0.4, "a": 0.3, "DeepLift": 0.4, "xGx": 0.25, "IG": 0.25}  # AOPC
    GAIN = {"REGEX": 0.2, SHORT: 0.2, "w/o robustness improvement": 0.02,
            "w/o explanation guided training": 0.18}  # fmt: skip
    RIGHT = {"Baseline": 0.5, "REGEX": 0.75}  # of classifiers that read their rationales

    def __init__(self, settings, untrained=(), failed=()):
        self.settings = settings
        self.untrained = {*untrained, *failed}
        measured = [*(c.spec for c in every_cell(settings)), *every_attribution(settings)]
        self.holes = {spec for spec in measured if spec.run in failed}
        self.summaries = {}
        cells = [*every_cell(settings), *fresh(settings), *fresh_with_source_ratio(settings)]
        self.cells = {cell.spec: cell for cell in reversed(cells)}  # the first one counts

    def value(self, spec, name):
        if spec in self.holes:
            return np.nan
        kinds = {"faithfulness": faithfulness._summary, "attack": attack._summary,
                 "predictions": predictions.task_scores}  # fmt: skip
        if spec not in self.summaries:
            self.summaries[spec] = kinds[spec.kind](self.texts(spec))
        return self.summaries[spec][name]

    def texts(self, spec):
        assert self.has(spec), "it failed, and there are no texts"
        return {"faithfulness": self.erasure, "predictions": self.answers, "attack": self.attack,
                "attributions": self.scores}[spec.kind](spec)  # fmt: skip

    def erasure(self, spec):
        cell = self.cells[spec]
        level = self.LEVEL[cell.attribution] + self.GAIN.get(cell.system, 0.0)
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
        right = self.RIGHT[self.cells[spec].system] if spec.data.extract else 0.75
        label = np.arange(TEXTS) % 2
        wrong = np.arange(TEXTS) >= right * TEXTS
        ids = [f"text {i}" for i in range(TEXTS)]
        return pd.DataFrame({"id": ids, "label": label, "predicted": np.where(wrong, 1, label)})

    def attack(self, spec):
        """Ten texts, one wrong before; REGEX flips in one, the Baseline in four."""
        flipped = {"REGEX": 1, "Baseline": 4}[self.cells[spec].system]
        return pd.DataFrame(
            {"id": [f"text {i}" for i in range(10)], "label": 1, "before": [1] * 9 + [0],
             "after": [0] * flipped + [1] * (9 - flipped) + [0], "words": 50, "changed": 5,
             "queries": 20, "kinds": ["name"] * flipped + [""] * (10 - flipped)}
        )  # fmt: skip

    def scores(self, spec):
        """All seeds of REGEX rank alike; the others at random."""
        told = [t.name for t in spec.run.objective]
        seed = [spec.run.seed if "guided" not in told else 7, len(spec.method)]
        draw = np.random.default_rng(seed)
        special = np.arange(14) % 13 == 0
        rows = [(draw.normal(size=14), special) for _ in range(TEXTS)]
        return pd.DataFrame(rows, columns=["scores", "special"])


@pytest.fixture(scope="module")
def planted(settings):
    return Planted(settings)


def steps(spec):
    return ceil(spec.data.train_rows / spec.optimiser.batch_size) * spec.optimiser.epochs


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    paper = of("paper", data="local")
    spec = run_spec(paper, "REGEX", "SST", 0)
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
    assert run_spec(paper, "REGEX", "SST", 0, small=True).model.name == "FacebookAI/roberta-large"
    assert len(paper.seeds) == 5 and prose.reduced(paper) == ""
    cells = faithful(paper)
    assert len(cells) == 18 * 2 * 5 * 6 and all(c.spec.run.start is None for c in cells)
    assert all(c.spec.rows is None for c in [*cells, *full_text(paper)])
    assert {c.spec.variant for c in cells} == {"regex"}
    assert len({c.spec.run for c in fresh(paper)}) == 6 * 2 * 5 * 5
    assert all(len(table) == 5 for table in initialisations(paper, small=True).values())
    assert {c.spec.rows for c in attacked(paper)} == {400}


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


def test_two_families_of_three_make_the_pairs_of_table_1(settings):
    assert [[s.corpus for s in family] for family in families(settings)] == [
        ["movie_snippets", "imdb_reviews", "amazon_snippets"],
        ["tweets3", "news_snippets3", "amazon_snippets3"],
    ]
    printed = dict.fromkeys(r.split("|")[0] for r in paper_table("regex", "table1")["row"])
    assert sorted(pair_name(*p) for p in pairs(settings)) == sorted(printed)
    local = [s.corpus for family in families(of("cpu", data="local")) for s in family]
    assert local == ["sst", "imdb", "yelp", "amaz_digimu", "amaz_pantry", "amaz_instr"]


def test_core_runs_are_long_with_three_seeds_and_wide_ones_go_on_from_the_baseline(settings):
    for name in settings.grid["core"]:
        spec = run_spec(settings, name, "SST", 1)
        assert spec.start is None and steps(spec) >= 120 and spec.model.layers is None
    home = [c for c in faithful(settings) if c.source == c.target == "SST"]
    assert {(c.system, c.seed) for c in home if c.attribution == "aGa"} == {
        (system, seed) for system in ("Baseline", "REGEX") for seed in (0, 1, 2)
    }
    wide = [c for c in faithful(settings) if c.source != "SST"]
    assert {c.seed for c in wide} == {0}
    for cell in wide:
        if cell.system == "REGEX":
            start = run_spec(settings, "Baseline", cell.source, 0)
            assert cell.spec.run.start == start and steps(cell.spec.run) < steps(start)


def test_every_run_is_trained_before_what_needs_it(settings):
    runs, measured, classifiers, rationales = (list(s.specs({})) for s in grid(settings))
    for place, spec in enumerate(runs):
        assert spec.start is None or spec.start in runs[:place]
    assert {e.run for e in measured} <= set(runs)
    assert {e.run for e in rationales} == set(classifiers)
    assert {c.data.extract.run for c in classifiers} <= set(runs)


def test_fresh_classifiers_see_rationales_of_their_support_at_the_target_s_ratio(settings):
    for cell in fresh(settings):
        run, tested = cell.spec.run, cell.spec.data
        support = run.data.extract.run
        assert tested.extract.run == support and support.seed == run.seed
        assert support.data.corpus == run.data.corpus and len(run.objective) == 1
        assert run.data.extract.percent == 20  # SST's, on which it is trained
        assert tested.extract.percent == {"SST": 20, "IMDB": 2, "Yelp": 10}[cell.target]
    assert {c.attribution for c in fresh(settings)} == set(ATTRIBUTIONS) - {"RAND"}
    other = fresh_with_source_ratio(settings)
    assert {c.spec.data.extract.percent for c in other} == {20}


def test_the_untrained_model_takes_no_step(settings):
    spec = untrained(settings)
    assert spec.optimiser.lr == spec.optimiser.head_lr == 0 and spec.seed not in settings.seeds
    tables = initialisations(settings, small=False)
    assert tables["REGEX"]["#Untrained"] == tables["Baseline"]["#Untrained"]
    assert untrained(settings, small=True).model.layers == 3


def test_the_sweeps_change_one_number_and_pass_through_regex(settings):
    regex = run_spec(settings, "REGEX", "SST", 0, wide=True)
    for name, at in (("lambda", 0.01), ("percent", 15)):
        values = swept(settings, name)
        assert at in values and len(values) >= 3
        assert {c.spec.run for c in values[at]} == {regex}
        assert all(c.spec.run != regex for v, cells in values.items() if v != at for c in cells)
    weights = {c.spec.run.objective[-1].weight
               for cells in swept(settings, "lambda").values() for c in cells}  # fmt: skip
    assert weights == set(settings.grid["lambdas"])


def test_numbers_stand_in_the_cells_of_their_pair_system_and_attribution(planted):
    faith = tables.table_1(planted).long.set_index(["row", "column", "metric"])
    assert len(faith) == 18 * 2 * 6 * 2
    cell = faith.loc[("SST->SST|REGEX", "DeepLift", "norm_suff")]
    assert cell["ours"] == pytest.approx(0.6, abs=0.01) and cell["n"] == 3
    assert cell["difference"] == pytest.approx(cell["ours"] - 0.71)
    away = faith.loc[("AmazInstr->AmazPantry|Baseline", "a", "norm_comp")]
    assert away["ours"] == pytest.approx(0.3, abs=0.01) and away["n"] == 1
    f1 = tables.table_2(planted).long.set_index(["row", "column"])
    assert f1.loc[("Yelp->IMDB|REGEX", "Full-text"), "n"] == 1
    assert f1.loc[("SST->Yelp|REGEX", "IG"), "ours"] > f1.loc[("SST->Yelp|Baseline", "IG"), "ours"]
    only = tables.table_9(planted).long
    assert set(only["row"]) == {"SST->SST|REGEX", "SST->IMDB|REGEX", "SST->Yelp|REGEX"}
    ablation = tables.table_10(planted).long.set_index(["row", "column", "metric"])
    without = ablation.loc[("w/o robustness improvement", "aGa", "norm_suff")]
    assert without["ours"] == pytest.approx(0.42, abs=0.01) and without["n"] == 3
    assert (SHORT, "IG", "norm_comp") in ablation.index
    four = tables.table_4(planted).long
    assert set(four["column"]) == {"aGa", "DeepLift"} and "REGEX" in set(four["row"])
    assert (WITHOUT_BOTH, "aGa", "norm_suff") in ablation.index
    assert len(tables.table_7(planted).long) == 14


def test_jaccard_tables_are_symmetric_and_know_the_untrained_model(planted):
    table = tables.table_3(planted).long.set_index(["row", "column"])["ours"]
    assert table["Init#1|REGEX", "Init#3"] == 1 and table["Init#2|Baseline", "Init#2"] == 1
    assert table["Init#1|Baseline", "Init#2"] == table["Init#2|Baseline", "Init#1"] < 0.4
    assert table["#Untrained|REGEX", "Init#2"] == table["Init#2|REGEX", "#Untrained"] < 0.4
    assert np.isnan(table["Init#4|REGEX", "Init#1"])  # three initialisations here
    assert tables.table_8(planted).long["ours"].notna().sum() == 2 * 9
    assert "REGEX 1.00 between 3 pairs" in prose.about_agreement(planted, small=False)


def test_the_attack_s_seven_statistics_stand_beside_the_paper_s(planted):
    table = tables.table_6(planted).long.set_index(["row", "column"])["ours"]
    assert table["Number of successful attacks", "Baseline"] == 4
    assert table["Original accuracy(%)", "REGEX"] == 90
    assert table["Accuracy under attack(%)", "Baseline"] == pytest.approx(50)
    assert table["Attack success rate(%)", "REGEX"] == pytest.approx(100 / 9)
    assert table["Average perturbed word(%)", "REGEX"] == pytest.approx(10)
    assert len(table) == 14
    said = prose.about_attack(planted)
    assert "3 flip for the Baseline alone and 0 for REGEX alone (McNemar p = 0.25)" in said
    assert "5 name" in said


@pytest.fixture(scope="module")
def found(planted):
    return claims.measure_claims(planted)


def test_all_sixteen_claims_are_measured_and_every_part_is_one_that_its_claim_has(found):
    assert list(found) == list(listed("regex")) == [f"RX-C{i}" for i in range(1, 17)]
    for claim, parts in found.items():
        for name in parts:
            assert listed("regex")[claim].part(name)


def test_claims_are_fed_with_the_effects_that_were_planted(found):
    assert found["RX-C1"]["SST->SST"]["differences"] == pytest.approx([0.2] * 3)
    assert set(found["RX-C1"]) == {"SST->SST"}  # the other pairs have one seed
    assert set(found["RX-C3"]) == {"SST->SST aGa", "SST->SST DeepLift"}
    assert len(found["RX-C4"]) == 9  # no pair has three seeds, so all are there
    assert found["RX-C5"]["sufficiency"]["differences"] == pytest.approx([0.1])  # over attention
    assert found["RX-C6"]["SST->SST"]["differences"] == [0, 0, 0]
    assert found["RX-C7"]["SST->SST aGa"]["differences"][0] > 10
    assert found["RX-C7"]["SST->SST aGa against full text"]["differences"] == [0]
    between = found["RX-C8"]["pairs of initialisations"]
    assert len(between["differences"]) == 3 and min(between["differences"]) > 0.5
    assert [len(r) for r in between["per_text"]] == [TEXTS] * 3
    assert len(found["RX-C9"]["with the untrained model"]["differences"]) == 3
    assert found["RX-C11"]["aGa sufficiency"]["differences"] == pytest.approx([0.16] * 3)
    short = found["RX-C12"]["IG aGa sufficiency"]["differences"]
    assert short == pytest.approx([0.2])  # against REGEX as short as the variant
    assert found["RX-C14"]["success rate"]["differences"] == pytest.approx([-100 * 3 / 9])
    assert found["RX-C15"]["λ4 sufficiency"]["differences"][0] > 0  # best at the paper's .01
    assert found["RX-C15"]["λ4 comprehensiveness"]["differences"][0] < 0
    assert found["RX-C16"]["a sufficiency"]["differences"] == pytest.approx([0.1])


def test_core_claims_are_decided_by_three_seeds_in_domain_and_the_others_are_not(found):
    decisions = {claim: decide("regex", claim, parts) for claim, parts in found.items()}
    for claim in claims.CORE_CLAIMS:
        assert decisions[claim].n == 3, claim
    verdicts = {claim: decisions[claim].verdict for claim in claims.CORE_CLAIMS}
    assert set(verdicts.values()) == {"holds"}  # as planted
    wide = [claim for claim in decisions if decisions[claim].n < 3]
    assert {"RX-C4", "RX-C5", "RX-C7", "RX-C12", "RX-C14", "RX-C16"} <= set(wide)
    assert {decisions[claim].verdict for claim in wide} == {"inconclusive"}
    said = {claim: claims.remark(claim, found[claim]) for claim in found}
    for claim in ("RX-C1", "RX-C2", "RX-C3", "RX-C6"):  # SST's own pair has three seeds
        assert said[claim] == "Decided on 1 of 18 pairs; it says nothing of the others."
    assert said["RX-C7"].startswith("Parts not measured") and not said["RX-C4"]
    every = {part.name: {} for part in listed("regex")["RX-C3"].parts}
    assert claims.remark("RX-C3", every) == ""
    assert "pairs of models" in said["RX-C8"]


def test_seeds_of_models_that_are_not_trained_decide_nothing(settings):
    weak = [main_run(settings, "REGEX", "SST", 1), untrained(settings)]
    found = claims.measure_claims(Planted(settings, weak))
    home = {claim: found[claim]["SST->SST"]["differences"] for claim in ("RX-C1", "RX-C6")}
    assert [len(differences) for differences in home.values()] == [2, 2]
    assert decide("regex", "RX-C1", found["RX-C1"]).verdict == "inconclusive"
    assert len(found["RX-C11"]["aGa sufficiency"]["differences"]) == 3  # does not ask for REGEX
    assert len(found["RX-C8"]["pairs of initialisations"]["differences"]) == 1  # Init#1 and Init#3
    # the model that is meant to be untrained stays
    assert len(found["RX-C9"]["with the untrained model"]["differences"]) == 2
    none = claims.measure_claims(Planted(settings, {c.spec.run for c in faithful(settings)}))
    assert none["RX-C1"]["SST->SST"]["differences"] == pytest.approx([0.2])  # the first alone


@pytest.fixture(scope="module")
def paper():
    """Five seeds of everything."""
    return of("paper", data="local")


def test_of_five_seeds_of_which_one_is_not_trained_four_decide(paper):
    swept_run = swept(paper, "lambda")[0.1][-1].spec.run  # of the last seed
    weak = [main_run(paper, "REGEX", "IMDB", 2), swept_run]
    study = Planted(paper, weak)
    assert len(claims._attack(study)["differences"]) == 4
    assert len(claims._best_of_sweep(study, "lambda", "norm_suff")["differences"]) == 4
    assert len(claims._best_of_sweep(study, "percent", "norm_suff")["differences"]) == 5
    table = claims._Faithfulness(study, faithful(paper))
    assert len(table.over_random("aGa", "norm_suff")["differences"]) == 4  # over all pairs
    assert len(table.change("aGa", "norm_suff", "Baseline", "REGEX")["differences"]) == 5


def test_classifiers_that_read_rationales_of_an_untrained_model_are_not_trained(paper):
    readers = {(c.system, c.attribution, c.seed): c.spec.run for c in fresh(paper)
               if c.source == c.target == "SST"}  # fmt: skip
    runs = [main_run(paper, system, "SST", seed) for system in ("Baseline", "REGEX")
            for seed in paper.seeds]  # fmt: skip
    support = main_run(paper, "REGEX", "SST", 2)
    results = {
        "runs": pd.DataFrame({"spec": runs, "dev_chance_p": [0.5 if r == support else 0.001
                                                             for r in runs]}),
        "classifiers": pd.DataFrame({"spec": readers.values(), "dev_chance_p": [
            0.5 if key == ("Baseline", "DeepLift", 0) else 0.001 for key in readers]}),
    }  # fmt: skip
    weak = not_trained(results)
    of_support = {run for key, run in readers.items() if key[0] == "REGEX" and key[2] == 2}
    assert weak == {support, readers["Baseline", "DeepLift", 0]} | of_support
    found = claims._fresh_gains(Planted(paper, weak))
    assert len(found["SST->SST aGa"]["differences"]) == 4  # without seed 2
    assert len(found["SST->SST DeepLift"]["differences"]) == 3  # nor seed 0
    assert len(found["Yelp->Yelp DeepLift"]["differences"]) == 5


def test_one_seed_leaves_claims_on_pairs_of_models_out_and_stops_nothing():
    alone = Planted(of("cpu", seeds=[0]))
    found = claims.measure_claims(alone)
    assert not {"RX-C8", "RX-C10"} & found.keys() and "RX-C9" in found
    assert "trained models" not in prose.about_agreement(alone, small=False)


def test_effects_that_are_no_difference_of_two_cells_are_those_of_the_paper_s_tables():
    def mean(values):
        return sum(values) / len(values)

    for table, claim in (("table3", "RX-C8"), ("table8", "RX-C10")):
        cell = paper_table("regex", table).set_index(["row", "column"])["mean"]
        gain = [cell[f"Init#{a}|REGEX", f"Init#{b}"] - cell[f"Init#{a}|Baseline", f"Init#{b}"]
                for a in range(1, 5) for b in range(a + 1, 5)]  # fmt: skip
        assert listed("regex")[claim].parts[0].paper == pytest.approx(mean(gain), abs=5e-4)
        if table == "table3":
            low = [cell[f"Init#{a}|REGEX", "#Untrained"] - cell[f"Init#{a}|Baseline", "#Untrained"]
                   for a in range(1, 5)]  # fmt: skip
            assert listed("regex")["RX-C9"].parts[0].paper == pytest.approx(mean(low))
    ours = paper_table("regex", "table1")
    ours = ours[ours["row"].str.endswith("|REGEX") & ours["mean"].notna()]
    for metric, word in (("norm_suff", "sufficiency"), ("norm_comp", "comprehensiveness")):
        wide = ours[ours["metric"] == metric].pivot(index="row", columns="column", values="mean")
        assert len(wide) == 17
        best = wide[["aGa", "DeepLift"]].mean(axis=1) - wide[["a", "xGx", "IG"]].max(axis=1)
        assert listed("regex")["RX-C5"].part(word).paper == pytest.approx(best.mean(), abs=5e-4)
        for a in ("aGa", "a", "DeepLift", "xGx", "IG"):
            over = (wide[a] - wide["RAND"]).mean()
            part = listed("regex")["RX-C16"].part(f"{a} {word}")
            assert part.paper == pytest.approx(over, abs=5e-4)
    attacks = paper_table("regex", "table6").set_index(["row", "column"])["mean"]
    rate = attacks["Attack success rate(%)"]
    assert listed("regex")["RX-C14"].parts[0].paper == rate["REGEX"] - rate["Baseline"]
    f1 = paper_table("regex", "table2").set_index(["row", "column"])["mean"]
    for pair, a in (("SST->SST", "aGa"), ("Yelp->Yelp", "DeepLift")):
        part = listed("regex")["RX-C7"].part(f"{pair} {a} against full text")
        assert part.paper == pytest.approx(
            f1[f"{pair}|REGEX", a] - f1[f"{pair}|Baseline", "Full-text"]
        )


@pytest.mark.parametrize("profile", ["cpu", "paper"])
def test_every_way_to_deeplift_is_measured_on_the_same_models_and_texts(profile):
    cells = deeplifts(of(profile, data="local"))
    for system in ("Baseline", "REGEX"):
        ways = {variant: cells[s, variant].spec for s, variant in cells if s == system}
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

    study = Void(settings)
    rows = audit.choices(study).set_index(["choice", "what"])
    way = "DeepLift straight into the encoder, or "
    what = f"Baseline, sufficiency, {TEXTS} texts"
    old = rows.loc[(way + "through the whole model from the word embedding", what)]
    assert old["ours"] - old["the other reading"] == pytest.approx(0.4)
    assert rows.loc[(way + "random in its place", what), "the other reading"] == pytest.approx(
        old["ours"] - 0.2
    )
    said = prose.about_deeplifts(study)
    error = 0.1 / np.sqrt(TEXTS - 1)  # of values that are .1 above or below their mean
    assert "Baseline: straight into the encoder +0.200 ± 0.000 and +0.200 ± 0.000" in said
    assert f"from the word embedding −0.200 ± {error:.3f} and −0.200 ± {error:.3f}." in said


def test_the_audit_shows_both_readings_of_each_choice(planted):
    table = audit.choices(planted)
    ours, other = table["ours"], table["the other reading"]
    divisor = table["choice"] == "AOPC: sum / 6 or / 5"
    assert other[divisor].to_numpy() == pytest.approx(ours[divisor].to_numpy() * 6 / 5)
    for part in ("ball of radius", "every epoch, or for every batch", "FRESH ratio", "equal"):
        assert table["choice"].str.contains(part, regex=False).any(), part
    assert list(other_readings(of("paper", data="local")))[1].endswith("or for every epoch")
    [_, made] = other_readings(of("paper", data="local")).values()
    guided = objective(of("paper", data="local"), made)[-1]
    assert dict(guided.options)["refreshed"] == "epoch"


@pytest.fixture
def tiny_study(settings, monkeypatch):
    """The audit's own measurements on a tiny model and texts that repeat."""
    texts = ["a great film , truly moving and funny .", "the plot is dull and the acting is bad ."]

    def repeated(classifier, spec, count):
        labels = [i % 2 for i in range(count)]
        encoded = classifier.encode([texts[i % 2] for i in range(count)], labels=labels)
        return [replace(t, id=f"text {i}") for i, t in enumerate(encoded)]

    monkeypatch.setattr(audit, "trained", lambda settings, spec: tiny.classifier("bert"))
    monkeypatch.setattr(audit, "_training_texts", repeated)
    return settings


def test_the_remembered_guide_is_compared_with_a_fresh_one_on_ten_batches(tiny_study):
    check = audit.guide_check(tiny_study)
    assert check["batch"].tolist() == list(range(1, 11))
    assert check["rank correlation"].iloc[0] > 0.99  # the same weights: only the points differ
    assert check["rank correlation"].between(-1, 1).all()
    assert check["masked by both"].between(0, 1).all()
    assert "over 10 batches" in prose.about_guide(check, tiny_study)


def test_every_system_s_step_is_timed_against_the_baseline_s(tiny_study):
    table = audit.costs(tiny_study)
    assert table["system"].tolist()[0] == "Baseline" and table["times Baseline"].iloc[0] == 1
    assert (table["seconds per step"] > 0).all()
    guide = table.set_index("system")["of it the epoch's guide"]
    assert guide["REGEX"] > 5 * guide["with robustness terms"]  # which makes none
    assert "the paper prints 2.1" in prose.about_cost(table)


def test_the_ascent_is_measured_by_step_size(tiny_study):
    check = audit.perturbation_check(tiny_study)
    assert check["step size η"].iloc[0] == 1e-3
    cosine = check["cosine with the random start"]
    assert cosine.is_monotonic_decreasing and cosine.iloc[0] <= 1 + 1e-6
    assert check["times"].iloc[-1] > check["times"].iloc[0]
    assert "times as much as a random δ" in prose.about_perturbation(check)


def test_masked_tokens_are_compared_as_sets():
    counted = np.array([False, True, True, True, True, False])
    a, b = np.array([0, 3, 1, 2, 4, 0.0]), np.array([0, 3, 4, 2, 1, 0.0])
    assert audit._same_lowest(a, b, counted) == 0  # 15 % of four tokens is one
    assert audit._same_lowest(a, a, counted) == 1


def test_examples_are_texts_that_both_systems_classify_correctly_where_there_are_such():
    labels = [0, 1, 0, 1]
    assert examples.one_of_each_class(labels, [[1, 1, 0, 1], [0, 0, 0, 1]]) == [2, 3]
    assert examples.one_of_each_class(labels, [[1, 1, 1, 0], [1, 0, 1, 1]]) == [0, 1]


def test_every_figure_is_drawn_from_numbers(planted):
    for name, values in (("figure_3", "lambdas"), ("figure_4", "percents")):
        figure, data = getattr(figures, name)(planted)
        assert len(figure.axes) == 2
        assert sorted(data["value"].unique()) == sorted(planted.settings.grid[values])
        assert set(data["attribution"]) == set(planted.settings.grid["swept"])
    for draw in (schematics.figure_1, schematics.figure_2):
        figure, data = draw()
        assert figure.axes and len(data)


def test_sentences_are_made_from_the_numbers(planted):
    assert "aGa sufficiency 0.40 to 0.60" in prose.about_core(planted)
    said = prose.about_faithfulness(planted)
    assert "Of 18 pairs, REGEX is ahead in sufficiency in 18 (RAND), 18 (aGa)" in said
    assert "ahead of RAND in 18 (aGa), 18 (a), 18 (DeepLift)" in said
    assert "count as 0: Baseline 0 % in SST's domain, 0 % elsewhere" in said
    assert prose.about_ablation(planted) == (
        "Sufficiency, mean of aGa and DeepLift. Against REGEX: w/o robustness improvement −0.180; "
        "w/o explanation guided training −0.020. Against REGEX, short run: w/o virtual adversarial "
        "training −0.200; w/o input gradient regularization −0.200."
    )
    assert "sufficiency is best at 0.01 (largest difference 0.200)" in prose.about_sweep(
        planted, "lambda"
    )
    assert "from SST: Baseline Full-text" in prose.about_fresh(planted)


def test_pairs_of_models_that_are_not_trained_are_not_counted(settings):
    weak = [main_run(settings, "REGEX", "IMDB", 0), main_run(settings, "Baseline", "SST", 0)]
    study = Planted(settings, weak)  # each tested on three sets
    said = prose.about_faithfulness(study)
    assert "Of 12 pairs with trained models, REGEX is ahead in sufficiency in 12 (RAND)" in said
    assert "under REGEX over 12 pairs and seeds" in said
    assert "REGEX (models that are not trained are included):" in prose.about_core(study)
    none = Planted(settings, {c.spec.run for c in faithful(settings)})
    assert prose.about_faithfulness(none).startswith("No pair has trained models")


def test_where_no_model_is_trained_nothing_stops(settings):
    class Blank(Planted):
        def is_trained(self, spec):
            return False

    none = Blank(settings)
    about = [prose.about_core(none), prose.about_fresh(none), prose.about_ablation(none),
             prose.about_sweep(none, "lambda"), prose.about_attack(none)]  # fmt: skip
    assert all(about) and "nan" not in " ".join(about)


@pytest.mark.parametrize("system", ["Baseline", "REGEX"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_failed_run_leaves_holes_and_stops_nothing(settings, system, seed):
    runs = {main_run(settings, system, source, seed) for source in ("SST", "IMDB")}
    study = Planted(settings, failed=runs)
    table = tables.table_1(study).long.set_index(["row", "column", "metric"])["n"]
    whole = tables.table_1(Planted(settings)).long.set_index(["row", "column", "metric"])["n"]
    cell = (f"SST->SST|{system}", "aGa", "norm_suff")
    assert table[cell] == whole[cell] - 1
    found = claims.measure_claims(study)
    assert len(found["RX-C1"]["SST->SST"]["differences"]) == 2  # of three seeds
    for made in (tables.table_2, tables.table_3, tables.table_4, tables.table_6, tables.table_8,
                 tables.table_9, audit.choices, figures.figure_3, prose.about_faithfulness,
                 prose.about_core, prose.about_attack, prose.about_deeplifts,
                 prose.about_ablation, prose.about_fresh):  # fmt: skip
        assert made(study) is not None, made
    assert prose.about_agreement(study, small=False) and prose.about_sweep(study, "lambda")


@pytest.fixture
def without_baselines(tmp_path):
    """The settings of a store in which every Baseline of the first seed failed."""
    settings = of("quick", store=str(tmp_path))
    runs = [main_run(settings, "Baseline", source, settings.seeds[0]) for source in ("SST", "IMDB")]
    for spec in (*runs, run_spec(settings, "Baseline", "SST", settings.seeds[0])):
        why = Diverged("loss became nan in step 3")
        fail(open_store(settings.store), "runs", run_hash(spec), spec, why)
    return settings


@pytest.mark.parametrize("make", [audit.costs, audit.guide_check, audit.perturbation_check])
def test_what_needs_one_failed_model_is_a_remark_that_names_it(without_baselines, make):
    settings, of_run = without_baselines, run_spec if make is audit.guide_check else main_run
    name = run_hash(of_run(settings, "Baseline", "SST", settings.seeds[0]))
    table = make(settings)
    why = f"it needs run {name}, which failed (loss became nan in step 3)"
    assert remark_of(table) == why and table.shape == (1, 1)
    assert prose.about_cost(table) == prose.about_guide(table, settings) == ""
    assert prose.about_perturbation(table) == ""


def test_table_5_names_the_failed_run_too(without_baselines):
    html, words = examples.table_5(without_baselines)
    name = run_hash(main_run(without_baselines, "Baseline", "IMDB", without_baselines.seeds[0]))
    assert name in remark_of(words) and remark_of(words) in html


def test_undefined_texts_of_a_model_are_counted_once(settings):
    class Unsure(Planted):
        def erasure(self, spec):
            """The first Baseline is no surer of any SST text than of an empty one."""
            cell = self.cells[spec]
            first = cell.system == "Baseline" and cell.source == cell.target == "SST"
            return super().erasure(spec).assign(undefined=first and cell.seed == 0)

    said = prose.about_faithfulness(Unsure(settings))
    assert "Baseline 33 % in SST's domain, 0 % elsewhere; REGEX 0 %" in said  # of three models


def test_runs_that_learnt_nothing_are_named(settings):
    runs = [run_spec(settings, "Baseline", "SST", seed) for seed in settings.seeds]
    runs += [run_spec(settings, "Baseline", "SST", 0, small=True), untrained(settings)]
    table = pd.DataFrame(
        {
            "spec": runs,
            "dev_accuracy": [0.7, 0.65, 0.72, 0.5, 0.1],
            "dev_majority": 0.5,
            "dev_chance_p": [0.001] * 3 + [0.5] * 2,
        }
    )
    readers = pd.DataFrame(
        {"spec": [c.spec.run for c in fresh(settings)][:2], "dev_chance_p": [0.5, 0.001]}
    )
    said = prose.about_training(settings, {"runs": table, "classifiers": readers})
    assert "+20, +15, +22 for the Baselines" in said and "4 runs and 2 classifiers" in said
    assert "Not trained, themselves or the model whose rationales they read (" in said
    assert (
        "): 1 of 1 on movie_snippets with the second model, 1 of 2 on movie_snippets's rationales."
    ) in said
    weak = {"runs": table.assign(dev_chance_p=0.5), "classifiers": readers}
    assert "2 of 2 on movie_snippets's rationales." in prose.about_training(settings, weak)


def test_what_the_profile_leaves_out_is_said(settings):
    said = prose.reduced(settings)
    for part in ("MiniLM in place of BERT-base", "3 seeds of 5", "n=1",
                 "3 of 4 initialisations, 2 of", "32 (IMDB 64) of 256 tokens",
                 "128 training and 24 test texts"):  # fmt: skip
        assert part in said
    short = run_spec(settings, "REGEX", "SST", 0, wide=True)
    assert (
        f"; {steps(short)} steps on from the Baseline's weights for all systems but Baseline, "
        "REGEX, w/o robustness improvement, w/o explanation guided training of SST, with a "
        "Baseline trained on for as many beside them;" in said
    )
    away = {c.source: c.spec.run.start for c in full_text(settings)
            if c.system == "REGEX" and c.source != c.target}  # fmt: skip
    assert away["SST"] is None and None not in [away[s] for s in away if s != "SST"]
    assert "SST's domain (of attributions but aGa and DeepLift the first seed); elsewhere" in said
    alone = prose.reduced(of("cpu", seeds=[0]))
    assert "1 seed of 5 and" in alone and "the first seed)" not in alone
    assert "; 1 of 4 initialisations, 1 of the second model" in alone
    quick = prose.reduced(of("quick"))
    assert "steps on from the Baseline's weights for all systems, with a Baseline" in quick
    assert "its first layer in place of RoBERTa-large" in quick


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_a_baseline_differs_from_the_regex_beside_it_in_nothing_but_the_objective(profile):
    """The same start, texts, steps, rates and seed, wherever the two are compared."""
    these = of(profile, data="local")
    cells = [*faithful(these), *full_text(these), *attacked(these)]
    runs = {(c.system, c.source, c.seed): c.spec.run for c in cells}
    read = {(c.system, f"rationales of {c.source}", c.seed): c.spec.run.data.extract.run
            for c in [*fresh(these), *fresh_with_source_ratio(these)]}  # fmt: skip
    compared = {(system, f"Table {table}", name): spec.run
                for small, table in ((False, 3), (True, 8))
                for system, found in initialisations(these, small=small).items()
                for name, spec in found.items()}  # fmt: skip
    every = {**runs, **read, **compared}
    baselines = [key for key in every if key[0] == "Baseline"]
    assert 2 * len(baselines) == len(every)
    for _, *where in baselines:
        regex = every["REGEX", *where]
        assert every["Baseline", *where] == replace(regex, objective=(term("task"),))
    assert profile != "paper" or all(run.start is None for run in every.values())


def test_variants_are_compared_with_what_is_trained_as_long(settings):
    table = claims._Faithfulness(Planted(settings), ablated(settings))
    one_term = "w/o virtual adversarial training"
    before = table.as_long_as(one_term, "w/o robustness improvement")
    of_one, of_both = (table.cells["SST->SST", system, "aGa", 0] for system in (one_term, before))
    assert before == WITHOUT_BOTH and of_both.rows == of_one.rows
    assert replace(of_both.run, objective=of_one.run.objective) == of_one.run
    assert table.as_long_as("w/o explanation guided training", "REGEX") == "REGEX"


def test_in_quick_regex_has_two_seeds_that_go_on_from_their_baselines():
    home = {(c.system, c.seed): c.spec for c in faithful(of("quick"))
            if c.source == c.target == "SST" and c.attribution == "aGa"}  # fmt: skip
    assert set(home) == {(system, seed) for system in ("Baseline", "REGEX") for seed in (0, 1)}
    for (_, seed), spec in home.items():
        assert spec.run.start == run_spec(of("quick"), "Baseline", "SST", seed)
    assert len({spec.rows for spec in home.values()}) == 1  # the same texts


def test_ablated_variants_that_decide_are_as_long_as_regex(settings):
    runs = {(c.system, c.seed): c.spec.run for c in ablated(settings)}
    for name in ("REGEX", "w/o robustness improvement", "w/o explanation guided training"):
        assert {seed for system, seed in runs if system == name} == {0, 1, 2}
        assert runs[name, 0].start is None
    short = runs[SHORT, 0]
    assert replace(runs["IG (Mean)", 0], objective=(term("task"),)) == replace(
        short, objective=(term("task"),)
    )
