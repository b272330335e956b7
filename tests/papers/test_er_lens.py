"""The ER-lens grid is the paper's, and each of its numbers lands in the right cell."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from erlib.catalogue import paper
from erlib.config import EvalSpec, canonical, run_spec_from_dict
from erlib.papers.er_lens import (
    audit,
    cells,
    claims,
    effects,
    evaluations,
    facts,
    figures,
    kendall,
    reads,
    recipe,
    scatter,
    systems,
)
from erlib.papers.er_lens.systems import Bounds
from erlib.papers.report import beside_printed
from erlib.papers.study import Study
from erlib.parameters import check_parameters
from erlib.reports import paper_table
from erlib.reports.cells import Cell as Place
from erlib.reports.criteria import criteria

PARAMETERS = {"profile": "cpu", "data": None, "seeds": None, "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip
BOUNDS = Bounds(0.03, 0.04)
IDS = [f"text {i}" for i in range(40)]


@pytest.fixture
def settings():
    return check_parameters("er_lens", PARAMETERS)


def run_row(spec, **other):
    """What `run` reports: the explanation loss grows with the seed, and falls with λ."""
    weight = spec.objective[1].weight if len(spec.objective) > 1 else 0.0
    return {
        "spec": spec, "seed": spec.seed, "run": canonical(spec), "status": "done", "replaces": None,
        "dev_task": 0.4 + weight / 1000, "dev_accuracy": 0.8, "dev_majority": 0.5,
        "dev_explanation": 0.05 + 0.01 * spec.seed - weight / 10000, "dev_chance_p": 0.001,
        "lowest_train_explanation_min": 0.0222, "lowest_dev_explanation": 0.0302,
        **{f"dev_explanation_{g}": 0.1 * (i + 1) for i, g in enumerate(systems.GUIDES)}, **other,
    }  # fmt: skip


def is_of(spec, *which):
    """Is the run of one of these (system, seed)?"""
    return not spec.model.quirks and any(
        (systems.system_of(spec), spec.seed) == one for one in which
    )


def carried_out(settings, *, weak=(), failed=(), lost=()):
    """The grid's results; `weak`, `failed`, `lost`: (system, seed), the last replaced by + 10."""
    results = {}
    for stage in cells.grid(settings):
        specs, rows = list(stage.specs(results)), []
        assert len(set(specs)) == len(specs) <= stage.maximum
        for spec in specs:
            if isinstance(spec, EvalSpec):
                rows.append({"spec": spec, "eval": canonical(spec), "status": "done"})
            elif stage.name != "sweep" and is_of(spec, *failed):
                rows.append({"spec": spec, "seed": spec.seed, "run": "", "status": "failed",
                             "replaces": None, "dev_chance_p": np.nan})  # fmt: skip
            elif stage.name != "sweep" and is_of(spec, *lost):
                rows.append(run_row(spec, status="lost", dev_chance_p=np.nan))
                other = spec.with_seed(spec.seed + 10)
                rows.append(run_row(other, replaces=spec.seed))
            else:
                rows.append(run_row(spec, dev_chance_p=0.5 if is_of(spec, *weak) else 0.001))
        results[stage.name] = pd.DataFrame(rows)
    return results


class Planted(Study):
    """A study in which every system answers and ranks as `gain` says, text by text."""

    def texts(self, spec):
        made = {"predictions": self.answers, "plausibility": self.ranks,
                "attributions": self.scores, "faithfulness": self.erased}  # fmt: skip
        return made[spec.kind](spec)

    def gain(self, spec):
        """How many of ten texts more than the Baseline are right; AUC over the Baseline."""
        system = systems.system_of(spec.run)
        att = 0.3 if spec.method == "attention" else 0.0
        return {"ER+Att": att, "ER-C+AttR": 0.2}.get(system, 0.0)

    def answers(self, spec):
        wrong = np.arange(len(IDS)) < int(len(IDS) * (0.4 - self.gain(spec)))
        label = np.arange(len(IDS)) % 2
        return pd.DataFrame(
            {"id": IDS, "label": label, "predicted": np.where(wrong, 1 - label, label)}
        )

    def ranks(self, spec):
        noise = np.random.default_rng(spec.run.seed).normal(scale=0.001, size=len(IDS))
        value = 0.5 + self.gain(spec) + noise
        by_layer = [np.r_[np.full(5, v / 2), v] for v in value]
        return pd.DataFrame({"id": IDS, "auc": value, "average_precision": value,
                             "recall_at_k": value, "layer_auc": by_layer})  # fmt: skip

    def scores(self, spec):
        methods = list(systems.TECHNIQUES.values())
        system = list(systems.SYSTEMS).index(systems.system_of(spec.run))
        draw = np.random.default_rng([spec.run.seed, system, methods.index(spec.method)])
        return pd.DataFrame({"id": IDS, "scores": [draw.normal(size=12) for _ in IDS]})

    def erased(self, spec):
        better = 0.2 if spec.method in ("alti", "decompx", "decompx_classifier") else 0.0
        named = [f"normalised_{measure}" for measure in reads.MEASURES]
        rows = [
            {"id": i, "bin": b, "method": spec.method, "undefined": False,
             "sufficiency": 1.0, "comprehensiveness": 0.2, "p_full": 0.6, "p_empty": 0.3,
             **dict.fromkeys(named, b / 200 + better + 0.001 * spec.run.seed)}
            for i in IDS for b in (1, 20, 40, 60, 80, 100)
        ]  # fmt: skip
        return pd.DataFrame(rows)


class Spread(Planted):
    """F1 hangs on the seed, as the AUC does."""

    def answers(self, spec):
        right = np.arange(len(IDS)) >= 10 + 2 * spec.run.seed
        label = np.arange(len(IDS)) % 2
        return pd.DataFrame(
            {"id": IDS, "label": label, "predicted": np.where(right, label, 1 - label)}
        )


class Alike(Planted):
    """ER+Att has the scores of the Baseline of its seed."""

    def scores(self, spec):
        draw = np.random.default_rng([spec.run.seed, len(spec.method)])
        return pd.DataFrame({"id": IDS, "scores": [draw.normal(size=12) for _ in IDS]})


def planted_study(settings, kind=Planted, **how):
    return kind(paper("er_lens"), settings, carried_out(settings, **how))


@pytest.fixture(scope="module")
def planted():
    settings = check_parameters("er_lens", PARAMETERS)
    return planted_study(settings, lost=[("ER-C+IxG", 1)])


def values(study, *place):
    """By seed what stands at (table, row, column, metric)."""
    return {seed: r.value for seed, r in (study.read(Place(*place)) or {}).items()}


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": "paper"})
    printed = paper_table("er_lens", "table8").set_index(["row", "column"])["printed"]
    words = {"joint": "Joint ", "constrained": "Constrained ", "baseline": "Baseline"}
    guides = {"ATT": "Attention", "ATTR": "Rollout", "IXG": "IxG", "": ""}
    for name in systems.CLASSIFIERS:
        this, spec = systems.SYSTEMS[name], systems.run_spec(settings, name, 0, BOUNDS)
        row = words[this.mode] + guides[this.guide]
        assert spec.optimiser.lr == float(printed[row, "lr"]), name
        assert spec.optimiser.epochs == int(printed[row, "epochs"]), name
        assert spec.optimiser.betas == (0.9, 0.98) and spec.optimiser.batch_size == 32
        if this.mode == "joint":
            assert spec.objective[1].weight == float(printed[row, "lambda"])
        if this.mode == "constrained":
            options = dict(spec.update.options)
            assert options == {"bound": 0.03, "lr": float(printed[row, "constraint_lr"]),
                               "term": "explanation"}  # fmt: skip
            rule = spec.optimiser.checkpoint
            assert rule.metric == "dev_task" and rule.bound == ("dev_explanation", 1.1 * 0.04)
            assert (rule.patience, rule.patience_unmet) == (5, 10)
    assert spec.model.name == "google/bigbird-roberta-base" and len(settings.seeds) == 15
    sweep = systems.sweep_specs(settings).values()
    assert len(sweep) == (3 * 5 + 1) * 5 and all(s.start is None for s in sweep)


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_every_run_belongs_to_its_system_and_is_read_back_from_its_description(profile):
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": profile})
    for name in systems.SYSTEMS:
        spec = systems.run_spec(settings, name, 1, BOUNDS)
        assert systems.system_of(spec) == systems.named(settings, spec) == name
        assert run_spec_from_dict(json.loads(canonical(spec))) == spec


def test_a_reader_knows_starts_sweeps_and_audits_by_their_names(settings):
    sweep = systems.sweep_specs(settings)
    assert systems.named(settings, sweep["ATT", 100, 0]) == "ER+Att at λ = 100"
    assert systems.named(settings, sweep[None, 0, 0]) == "λ = 0"
    assert systems.named(settings, systems.start_spec(settings, 2)) == "start"
    doubled = systems.audited(settings)["ER+Att"]
    assert (
        systems.named(settings, systems.double_embedding(systems.start_spec(settings, 0)))
        == "start"
    )
    assert systems.named(settings, doubled) == "ER+Att with its embedding applied twice"


def test_bounds_follow_the_paper_s_rule(settings):
    """The paper's own losses of ATT, .0222 and .0302, give its .033 (printed .035) and .030."""
    runs = [systems.run_spec(settings, name, 0) for name in ("Lexpl(A)", "Lexpl(R)")]
    other = {"lowest_train_explanation_min": 0.02, "lowest_dev_explanation": 0.0316}
    rows = pd.DataFrame([run_row(runs[0]), run_row(runs[1], **other)])
    assert systems.bounds_of(rows, "ATT") == Bounds(0.033, 0.030)
    assert systems.bounds_of(rows, "ATTR") == Bounds(0.030, 0.032)


def test_constrained_runs_have_the_bounds_of_the_explanation_only_ones(planted):
    runs = planted.results["constrained"]["spec"]
    assert {dict(s.update.options)["bound"] for s in runs} == {0.033}
    kinds = pd.Series([s.kind for s in planted.results["measurements"]["spec"]]).value_counts()
    assert kinds["faithfulness"] == 3 * 7  # three Baselines, six techniques and random


def test_where_explanation_only_training_failed_nothing_is_constrained_by_it(settings):
    study = planted_study(settings, failed=[("Lexpl(A)", 0)])
    assert "ER-C+Att" not in {systems.system_of(s) for s in study.results["constrained"]["spec"]}
    assert recipe.bounds_table(study)["b_val"].isna().tolist() == [True, False, False]
    chosen = recipe.hyper_parameters(study)["b_val"]
    assert chosen["ER-C+Att"].startswith("–") and chosen["ER-C+IxG"].startswith("0.03")


def test_a_replacement_takes_the_place_of_the_lost_seed(planted):
    assert set(values(planted, "table2", "ER-C+IxG", "Movies", "f1_macro")) == {0, 1, 2}
    assert cells.placed(planted)["ER-C+IxG", 1].seed == 11


def test_of_every_seed_tried_from_scratch_it_is_known_whether_it_came_to_a_model():
    given = {**PARAMETERS, "profile": "paper", "data": "local", "seeds": [0, 1, 2]}
    study = planted_study(check_parameters("er_lens", given), lost=[("ER-C+IxG", 1)])
    kept = values(study, "footnote-14", "ER-C+IxG", "", "share_of_seeds")
    assert kept == {0: 1.0, 1: 0.0, 11: 1.0, 2: 1.0}


GIVEN = ("ER-C8", "ER-C19", "ER-C20", "ER-C24")  # no differences of cells


@pytest.mark.parametrize("claim", [c for c in criteria("er_lens") if c not in GIVEN])
def test_every_contrast_names_cells_that_are_planned(claim):
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": "paper", "data": "local"})
    study = Study(paper("er_lens"), settings, {})
    planned = {(c.table, c.row, c.column, m) for c in study.cells for m in c.read}
    written = criteria("er_lens")[claim]
    for each in (written, *(criteria("er_lens")[name] for name in written.claims)):
        for contrast in each.contrasts:
            for d in contrast.differences:
                ceiling = contrast.ceiling and d.before and replace(d.before, row=contrast.ceiling)
                asked = [x for x in (d.after, d.before, ceiling, *(d.less or ())) if x]
                asked += [replace(x, metric=m) for x in asked for m in written.metrics]
                assert {tuple(asdict(x).values()) for x in asked} <= planned


def test_every_other_contrast_is_given_in_the_units_of_its_criterion():
    settings = check_parameters(
        "er_lens", {**PARAMETERS, "profile": "paper", "data": "local", "seeds": [0, 1, 2, 3]}
    )
    found = claims.given(planted_study(settings, Spread))
    for claim in GIVEN:
        contrasts = [contrast.name for contrast in criteria("er_lens")[claim].contrasts]
        assert list(found[claim]) == contrasts
    of = found["ER-C8"]["in domain"]
    assert len(of.across) == 4 * 3 and len(of.within) == 6 and of.texts == 40
    assert all(-1 < tau < 1 and a != b for (a, b), tau in (*of.across.items(), *of.within.items()))
    points = found["ER-C20"]["figure-6 AUC of IXG on Movies F1 on Movies spearman_rho"].points
    assert [len(x) for x, _ in points.values()] == [4] * 7


def test_without_three_baselines_no_distance_is_given():
    """The jackknife leaves one of them out, and a pair has to remain."""
    settings = check_parameters("er_lens", {**PARAMETERS, "seeds": [0, 1]})
    assert claims.given(planted_study(settings)) == {}


def places(row, *columns):
    return [Place("", row, column, "") for column in columns]


def test_a_system_that_ranks_as_its_baseline_is_as_far_from_others_as_that_is(planted):
    """ER+Att has the Baseline's scores: d(system_s, Baseline_s′) = d(Baseline_s, Baseline_s′)."""
    same = Alike(planted.paper, planted.settings, planted.results)
    of = claims.across_models(same, places("Baseline and ER+Att", "SST-Dev/DX", "SST-Dev/IXG"))
    assert all(of.across[s, t] == pytest.approx(tau) for (s, t), tau in of.within.items())
    of = claims.changed(same, places("ER+Att", "pairs without ATT"))
    assert all(of.across[s, t] == pytest.approx(d) for (s, t), d in of.within.items())


def test_models_that_have_not_learnt_are_at_no_distance(settings):
    weak = planted_study(settings, weak=[("ER+Att", 0)])
    of = claims.across_models(weak, places("Baseline and ER+Att", "SST-Dev/DX"))
    assert set(of.within) == {(0, 1), (0, 2), (1, 2)}
    assert set(of.across) == {(1, 0), (1, 2), (2, 0), (2, 1)}
    weaker = planted_study(settings, weak=[("Baseline", 0)])
    assert claims.across_models(weaker, places("Baseline and ER+Att", "SST-Dev/DX")) is None


def test_depths_are_shares_of_the_model_s_and_leave_the_top_layer_out(planted):
    """Of six layers depth 4/11 is layer 2 and 10/11 the top one; the lower are half as good."""
    lower = values(planted, "figure-4", "ER-C+AttR", "ATT at depth 4/11", "layer_auc")
    assert lower[0] == pytest.approx(100 * 0.7 / 2, abs=0.1)
    assert values(planted, "figure-4", "ER-C+AttR", "ATT at depth 10/11", "layer_auc") == {}
    assert facts.layers(planted) == pytest.approx({"top": 30.0, "below": 15.0})


def test_long_documents_are_decomposed_for_the_systems_the_profile_names(settings):
    movies, home = (evaluations.annotated(settings)[name] for name in ("Movies", "SST-Dev"))
    on = evaluations.techniques_on
    assert "DX" in on(settings, movies, "ER-C+AttR", 0)
    assert "DX" not in on(settings, movies, "ER-C+AttR", 1)
    assert "DX" not in on(settings, movies, "ER+IxG", 0)
    run = systems.run_spec(settings, "Baseline", 0)
    spec = evaluations.plausibility_spec(settings, run, movies, "DX")
    assert spec.data.max_length == 256 and spec.rows == 13 and spec.protocol == "layers"
    assert "DX" in on(settings, home, "ER+IxG", 0)
    assert "DX" not in on(settings, home, "ER+IxG", 1)


def shown(study, table, **options):
    """A table as the report has it."""
    return beside_printed(study, study.of(table), table, **options)


def test_numbers_stand_in_the_cell_of_their_system_set_and_technique(planted):
    f1 = shown(planted, "table2").long.set_index(["row", "column"])
    assert f1.loc[("Baseline", "SST-Test"), "ours"] == pytest.approx(60)
    assert f1.loc[("ER-C+AttR", "Amazon-M-TV"), ["ours", "n"]].tolist() == pytest.approx([80, 3])
    auc = shown(planted, "table3", metric="auc_x100").long.set_index(["row", "column"])
    assert auc.loc[("ER+Att", "SST-Dev/ATT"), "difference"] == pytest.approx(80 - 78.6, abs=0.1)
    assert auc.loc[("ER+Att", "SST-Dev/DX"), "ours"] == pytest.approx(50, abs=0.1)
    labels = evaluations.headings(planted.settings, systems.TECHNIQUES)
    away = shown(planted, "table4", metric="auc_x100", labels=labels)
    row = away.long.set_index(["row", "column"]).loc[("ER-C+AttR", "Movies/DX")]
    assert row["n"] == 1 and row["ours"] == pytest.approx(70, abs=0.1)
    cell = away.wide().loc["ER-C+AttR", "imdb_reviews/DX\nfor Movies/DX"]
    assert "new, ≤ 256 tokens" in cell


def test_losses_stand_beside_the_auc_of_the_guided_technique(planted):
    both = shown(planted, "table5", digits={"expl_loss": 3, "auc_x100": 1}).wide()
    assert both.loc[("ATT/Joint", "expl_loss")].item() == "0.060 ± 0.010\npaper 0.040\n+0.020, n=3"
    assert both.loc[("ATT/Joint", "auc_x100")].item().startswith("80.0 ± 0.0\npaper 78.6\n+1.4")
    assert facts.gap(planted)["ratios"] == "ATT 1.20, ATTR 1.20, IXG 1.20"


def test_effects_are_those_that_were_planted(planted):
    changes = effects.by_system(planted)
    assert changes.loc["ER+Att", "ATT"] == "+30.0 (+30.0 to +30.0)"
    assert changes.loc["ER+Att", "DX"] == "+0.0 (+0.0 to +0.0)"
    assert changes.loc["ER-C+AttR", "F1, out of domain"] == "+20.0 (+20.0 to +20.0)"
    assert changes.loc["ER-C+Att", "IXG"].endswith(", n=1") and "Baseline" not in changes.index
    signs = effects.signs(planted)
    assert signs.loc["Joint/Local", "AUC, guided"].startswith("+\n+30.0")
    assert signs.loc["Constrained/Global", "AUC, not guided, paper"] == "+"
    moved = {"guided": 30.0, "others": 0.0, "global_others": 20.0}
    assert facts.guidance(planted) == pytest.approx(moved, abs=1e-9)
    assert facts.measures(planted) == {"same": 72, "every": 72}


def test_a_sign_is_made_by_the_effects_that_have_three_seeds(planted):
    """Of ER+AttR and ER+IxG the decompositions are of one seed: four of ten effects remain."""
    cell = effects.signs(planted).loc["Joint/Global", "AUC, not guided"]
    assert cell == "0\n+0.0 (+0.0 to +0.0)\n4 of 10 effects"


def test_table_1_averages_the_seeds_that_all_effects_have():
    """Were seeds matched by their order, the mean would be 2.5."""
    one = pd.Series([1.0, 0.0, 5.0, 4.0], [0, 1, 2, 3])
    other = pd.Series([0.0, 5.0, 4.0], [1, 2, 3])
    assert effects.effect([one, other]).startswith("0\n+3.0 (")


def test_table_8_has_ours_above_the_paper_s(planted):
    chosen = recipe.hyper_parameters(planted)
    assert chosen.loc["ER-C+Att", "b_train"] == "0.033\npaper 0.035"
    assert chosen.loc["Baseline", "lr"] == "1e-4\npaper 3e-5"
    assert chosen.loc["ER+IxG", "epochs"].startswith("1 + 1\n")


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_without_guidance_a_sweep_has_one_run_per_seed(profile):
    """λ = 0 is one description for all guides, and so one run; of every other λ there are three."""
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": profile})
    specs, sweep = list(systems.sweep_specs(settings).values()), settings.grid["sweep"]
    unguided = [s for s in specs if not any(t.weight for t in s.objective[1:])]
    assert sorted(s.seed for s in unguided) == list(settings.seeds[: sweep["seeds"]])
    assert len(set(specs)) == len(specs) == sweep["seeds"] * (3 * (len(sweep["lambda"]) - 1) + 1)
    assert [t.weight for t in unguided[0].objective] == [1, 0, 0, 0]


def test_the_losses_of_all_guides_are_read_off_the_one_run_without_guidance(planted):
    sweep = figures.sweep(planted)
    start = sweep[sweep["weight"] == 0].set_index("guide")
    assert start["explanation"].to_dict() == pytest.approx({"ATT": 0.1, "ATTR": 0.2, "IXG": 0.3})
    assert set(start["task"]) == {0.4}
    assert sweep.groupby(["guide", "seed"]).size().tolist() == [3, 3, 3]
    said = facts.price(planted)
    assert said["most"] == 100 and said["changes"].startswith("ATT +0.100 (-0.060), ATTR")


def test_a_bound_that_an_unguided_model_meets_is_named(planted):
    table = recipe.bounds_table(planted).set_index("technique")
    assert table.loc["IXG", ["b_train", "b_val", "to be met"]].tolist() == pytest.approx(
        [0.033, 0.03, 0.033]
    )
    assert facts.idle_bounds(planted)["idle"] == "no technique"


def steps(spec):
    """Training steps of a run and of what it goes on from."""
    own = -(-spec.data.train_rows // spec.optimiser.batch_size) * spec.optimiser.epochs
    return own + (steps(spec.start) if spec.start else 0)


@pytest.mark.parametrize("profile", ["quick", "cpu"])
def test_the_baseline_is_trained_as_long_as_the_systems_beside_it(profile):
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": profile})
    found = {n: systems.run_spec(settings, n, 0, BOUNDS) for n in systems.SYSTEMS}
    assert len({steps(spec) for spec in found.values()}) == 1
    starts = {spec.start for spec in found.values() if spec.start}
    assert len(starts) == 1 and starts.pop().objective == found["Baseline"].objective
    listed = {stage.name: stage for stage in cells.grid(settings)}["starts"].specs({})
    assert {s.seed for s in listed} == set(settings.seeds)


def test_the_paper_s_profile_trains_everything_in_one_go():
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": "paper"})
    assert "starts" not in [stage.name for stage in cells.grid(settings)]


class PartlyUnsure(Planted):
    """The Baseline of seed 1 is no surer of the first ten texts than of nothing, IXG says; of the
    others sufficiency with everything kept is 1."""

    def erased(self, spec):
        table = super().erased(spec)
        out = table["id"].isin(IDS[:10]) & (spec.run.seed == 1)
        out &= spec.method == "input_x_gradient"
        whole = table["normalised_sufficiency"].mask(table["bin"] == 100, 1.0).mask(out)
        return table.assign(normalised_sufficiency=whole, undefined=out, p_empty=0.6)


@pytest.fixture(scope="module")
def unsure(planted):
    return PartlyUnsure(planted.paper, planted.settings, planted.results)


def test_texts_no_surer_than_nothing_are_left_out_of_every_curve_and_counted(unsure):
    curves = reads.erasure_curves(unsure).set_index(["seed", "technique", "kept"])
    assert (curves.xs(100, level="kept")["sufficiency"] == 1).all()
    assert (curves.loc[0, ["texts", "left_out"]] == [40, 0]).all(axis=None)
    assert (curves.loc[1, ["texts", "left_out"]] == [30, 10]).all(axis=None)
    said = facts.erasure(unsure)
    assert said["shares"] == "0.0 % (seed 0), 25.0 % (seed 1), 0.0 % (seed 2)"
    (reading,) = [unsure.reading(c, "area_sufficiency") for c in unsure.of("figure-8")
                  if (c.row, c.seed) == ("DX", 1)]  # fmt: skip
    assert set(reading.texts.index) == set(IDS[10:])


def test_areas_are_those_of_the_planted_curves(planted):
    """From 1 to 100 %, b/200: a trapezoid of .99 · (.005 + .5)/2; decompositions .2 higher."""
    area = values(planted, "figure-8", "ATT", "", "area_comprehensiveness")
    assert area[0] == pytest.approx(0.99 * 0.505 / 2)
    gain = values(planted, "figure-8", "DX", "", "area_comprehensiveness")[0] - area[0]
    assert gain == pytest.approx(0.99 * 0.2)


def test_the_audit_changes_one_thing_at_a_time(unsure):
    table = audit.table(unsure).set_index(["departure", "measured"])
    every = table.loc[audit.NO_SURER].loc["area under sufficiency of ATT x 100, all Baselines"]
    assert every["changed"] == pytest.approx(99)  # all of them reach 1 with any share of tokens
    doubled = table.loc["embedding block applied twice"]
    assert len(doubled) == 2 * (2 + 3) and (doubled["difference"] == 0).all()
    assert table.loc["population's standard deviation", "here"].item() == 0


class Unmarked(Planted):
    """No text has a rationale word: no AUC anywhere, and in the store lists without a number."""

    def ranks(self, spec):
        table = super().ranks(spec)
        none = [np.array([None] * 6, dtype=object)] * len(table)
        return table.assign(auc=np.nan, average_precision=np.nan, recall_at_k=np.nan,
                            layer_auc=none)  # fmt: skip


def test_where_no_text_has_an_auc_layers_have_none_and_figures_say_so(planted):
    unmarked = Unmarked(planted.paper, planted.settings, planted.results)
    assert reads.layer_scores(unmarked, "SST-Dev").empty
    for figure, data in (
        figures.layer_maps(unmarked, "SST-Dev", techniques=["ATT", "DX"]),
        figures.layer_maps(unmarked, "SST-Dev"),
    ):
        assert data.empty and figure.axes[0].texts[0].get_text() == "no text has an AUC"
    assert values(unmarked, "table3", "ER+Att", "SST-Dev/ATT", "auc_x100") == {}
    assert values(unmarked, "table2", "ER+Att", "Movies", "f1_macro")


def test_a_model_that_has_not_learnt_the_task_decides_nothing(settings, planted):
    weak = planted_study(settings, weak=[("ER+Att", 1)])
    assert effects.auc_changes(weak, "ER+Att", "ATT").index.tolist() == [0, 2]
    assert effects.f1_changes(weak, "ER+Att", "Movies").index.tolist() == [0, 2]
    assert len(effects.auc_changes(weak, "ER-C+AttR", "ALTI")) == 3
    assert effects.by_system(weak).loc["ER+Att", "ATT"] == "+30.0, n=2"
    home, other, *_ = evaluations.test_sets(settings)
    dots = [len(scatter.predicted(s, "F1", home, other)) for s in (weak, planted)]
    assert dots[0] == dots[1] - 1


def test_where_no_model_is_trained_the_first_stands_alone(settings):
    weak = planted_study(settings, weak=[("ER+Att", seed) for seed in settings.seeds])
    assert effects.auc_changes(weak, "ER+Att", "ATT").index.tolist() == [0]


def test_explanation_only_models_have_no_task_to_learn(settings):
    study = planted_study(settings, weak=[("Lexpl(A)", 0)])
    assert not study.untrained
    assert study.read(Place("table5", "ATT/Lexpl", "SST-Dev", "expl_loss"))[0].trained


@pytest.mark.parametrize("profile", ["quick", "cpu", "paper"])
def test_techniques_of_a_set_are_taken_of_the_first_texts_of_one_order(profile):
    """All texts come in the corpus's order and some in that of their hashes: never both."""
    grid = check_parameters("er_lens", {**PARAMETERS, "profile": profile}).grid
    for counts in grid["attributed"].values():
        assert set(counts) == set(systems.TECHNIQUES)


def test_two_models_are_never_compared_with_themselves(planted):
    """With different seeds τ of random scores is near 0; a model with itself would give 1."""
    taus = kendall.across_systems(planted, "SST-Dev/ATT", "Baseline")
    assert len(taus) == 40 and np.abs(taus).max() < 1
    assert kendall.across_systems(planted, "SST-Dev/DX", "ER-C+Att") is not None  # one is enough
    table = kendall.histogram_table(planted, "SST-Dev", systems.CLASSIFIERS[1:])
    assert set(table["pair"]) == {"BS-BS", "BS-ER"} and len(table) == 6 * 6 * 2 * 40
    pairs = kendall.pairs_of_techniques(planted, "SST-Dev").set_index("system")
    assert pairs.loc["Baseline", "tau"].between(-1, 1, inclusive="neither").all()
    assert len(pairs.loc["Baseline"]) == 15 and not pairs.loc["Baseline", "one_seed"].any()
    assert pairs.loc["ER-C+Att"].query("a == 'ATT' and b == 'IXG'")["one_seed"].item()


def test_one_seed_makes_no_pair_of_models_but_a_figure():
    settings = check_parameters("er_lens", {**PARAMETERS, "seeds": [0]})
    figure, data = figures.histograms(planted_study(settings), "Yelp-50")
    assert data.empty and "not\nmeasured" in [text.get_text() for text in figure.axes[0].texts]


def test_what_was_not_measured_is_empty_and_not_1(planted):
    """On long documents ER+IxG has no decomposition, so that nothing agrees with it."""
    pairs = figures.technique_maps(planted, "Movies")[1].set_index(["system", "a", "b"])
    assert ("Baseline", "ALTI", "DX") in pairs.index and ("ER+IxG", "ATT", "IXG") in pairs.index
    assert ("ER+IxG", "ALTI", "DX") not in pairs.index and pairs["tau"].notna().all()


def test_equation_5_as_printed_divides_by_the_wrong_number():
    """S(α) = .8, S(0) = .4: the paper's print gives .4 / .2, clipped to 1; it means .4 / .6."""
    table = pd.DataFrame(
        {"sufficiency": [0.8, 0.5], "comprehensiveness": [0.3, 0.3], "p_full": [0.9, 0.9],
         "p_empty": [0.3, 0.3], "undefined": [False, False]}
    )  # fmt: skip
    assert audit.misprinted_sufficiency(table).tolist() == pytest.approx([1.0, 0.1001 / 0.5])
    assert audit.normalised("comprehensiveness", table).tolist() == pytest.approx(
        [0.3 / 0.6001] * 2
    )


FIGURES = {
    "2": partial(figures.f1_boxes, without=["ER-C+IxG"]),
    "3": partial(figures.histograms, where="Yelp-50", systems=["ER+Att", "ER-C+AttR"]),
    "4": partial(figures.layer_maps, where="SST-Dev", techniques=["ATT", "DX"]),
    "5": lambda study: figures.loss_curves(study, "ATT", "ATTR"),
    "6": scatter.figure_6,
    "8": figures.erasure,
    "10": partial(figures.technique_maps, where="SST-Dev"),
    "11": figures.f1_boxes,
    "12": lambda study: figures.loss_curves(study, "IXG"),
    "14": scatter.figure_14,
}


@pytest.mark.parametrize("number", FIGURES)
def test_every_figure_is_drawn_from_numbers(planted, number):
    figure, data = FIGURES[number](planted)
    assert len(data) > 0 and figure.axes


def test_where_no_model_is_trained_nothing_predicts_and_no_sign_is_given(settings):
    every = [(name, seed) for name in systems.SYSTEMS for seed in settings.seeds]
    none = planted_study(settings, weak=every)
    figure, data = scatter.figure_6(none)
    figure.draw_without_rendering()
    assert data.empty and {a.texts[0].get_text() for a in figure.axes} == {"no\ntrained\nmodel"}
    signs = effects.signs(none).filter(regex="F1$|guided$").map(lambda cell: cell[0])
    assert signs.eq("?").all(axis=None)


@pytest.mark.parametrize(("system", "seed"), [("Baseline", 0), ("ER+Att", 1), ("Lexpl(I)", 0)])
def test_a_failed_run_leaves_a_hole_and_stops_nothing(settings, system, seed):
    study = planted_study(settings, failed=[(system, seed)])
    assert seed not in values(study, "table3", system, "SST-Dev/ATT", "auc_x100")
    for table in (2, 3, 4, 5, 7, 9):
        assert len(shown(study, f"table{table}").long)
    for made in (effects.signs, effects.by_system, recipe.hyper_parameters, recipe.bounds_table,
                 audit.table, figures.f1_boxes, figures.sweep, figures.erasure,
                 scatter.figure_6, facts.idle_bounds, facts.guidance, facts.erasure):  # fmt: skip
        assert made(study) is not None, made


def test_where_every_measurement_failed_nothing_stops(planted):
    results = {
        name: table.assign(status="failed") if "eval" in table else table
        for name, table in planted.results.items()
    }
    study = Planted(planted.paper, planted.settings, results)
    for name, draw in FIGURES.items():
        figure, _ = draw(study)
        figure.draw_without_rendering()
        assert figure.axes, name
    told = {name: getattr(facts, name)(study) for name in ("accuracy", "skipped", "erasure")}
    assert set(map(str, told.values())) == {"{}"}
    assert facts.agreement(study) and effects.signs(study).size and claims.given(study) == {}


def test_a_technique_that_failed_is_missing_and_the_run_is_not(planted):
    run = cells.placed(planted)["Baseline", 0]
    test = evaluations.annotated(planted.settings)["SST-Dev"]
    hole = evaluations.plausibility_spec(planted.settings, run, test, "DX")
    table = planted.results["measurements"]
    failed = table.assign(status=table["status"].mask(table["spec"] == hole, "failed"))
    results = {**planted.results, "measurements": failed}
    study = Planted(planted.paper, planted.settings, results)
    assert set(values(study, "table3", "Baseline", "SST-Dev/DX", "auc_x100")) == {1, 2}
    assert set(values(study, "table3", "Baseline", "SST-Dev/ALTI", "auc_x100")) == {0, 1, 2}


def test_boxes_carry_the_names_of_their_systems(planted):
    first = figures.f1_boxes(planted)[0].axes[0]
    assert [text.get_text() for text in first.get_yticklabels()] == systems.CLASSIFIERS


def test_a_system_without_a_run_leaves_its_box_empty(settings):
    every = [("ER-C+IxG", seed) for seed in settings.seeds]
    assert figures.f1_boxes(planted_study(settings, failed=every))[0].axes


def test_the_report_says_on_how_many_texts_its_numbers_rest(planted):
    said = facts.texts(planted, "SST-Dev")["texts"]
    assert said == "movie_snippets dev: ATT, ATTR, IXG, ALTI, DX-C, DX of 40"
    assert facts.skipped(planted)["texts"].startswith("movie_snippets dev 0 of 40; imdb_reviews 0")


def test_a_set_that_is_missing_has_no_cells():
    settings = check_parameters("er_lens", {**PARAMETERS, "profile": "paper"})  # from the hub
    study = Study(paper("er_lens"), settings, {})
    assert list(evaluations.annotated(settings)) == ["SST-Dev", "Movies"] and not study.of("table7")
    assert evaluations.shown(settings) == "Movies"
