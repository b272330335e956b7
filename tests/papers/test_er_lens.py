"""The ER-lens grid is the paper's, and each of its numbers lands in the right cell and claim."""

from __future__ import annotations

import pandas as pd
import pytest

from erlib.papers.er_lens import claims, systems, tables
from erlib.parameters import check_parameters
from erlib.reports import decide, paper_table

PARAMETERS = {"profile": "quick", "data": None, "seeds": [0, 1, 2], "executor": "local",
              "store": None, "device": "cpu"}  # fmt: skip


@pytest.fixture
def settings():
    return check_parameters("er_lens", PARAMETERS)


def measured(settings, value):
    """Results as `carry_out` gives them; `value(system, seed, corpus, split)` is every number."""
    runs = [
        systems.run_spec(settings, system, seed) for system in systems.SYSTEMS for seed in (0, 1, 2)
    ]
    rows = [
        {
            "spec": spec, "kind": spec.kind, "method": spec.method, "seed": spec.run.seed,
            "corpus": spec.data.corpus, "split": spec.split,
            **dict.fromkeys(("f1_macro", "auc"), value(systems.system_of(spec.run), spec)),
        }
        for spec in systems.eval_specs(settings, runs)
    ]  # fmt: skip
    return {"measurements": pd.DataFrame(rows)}


def test_the_paper_profile_trains_with_the_paper_s_hyper_parameters():
    paper = check_parameters("er_lens", {**PARAMETERS, "profile": "paper", "seeds": None})
    printed = paper_table("er_lens", "table8").set_index(["row", "column"])["printed"]
    for system, row in (("Baseline", "Baseline"), ("ER+Att", "Joint Attention")):
        spec = systems.run_spec(paper, system, 0)
        assert spec.optimiser.lr == float(printed[row, "lr"])
        assert spec.optimiser.epochs == int(printed[row, "epochs"])
        assert spec.optimiser.betas == (0.9, 0.98) and spec.optimiser.batch_size == 32
    assert spec.objective[1].weight == float(printed["Joint Attention", "lambda"])
    assert spec.model.name == "google/bigbird-roberta-base" and len(paper.seeds) == 15


def test_every_run_belongs_to_its_system_and_every_stage_keeps_its_announcement(settings):
    stages = {stage.name: stage for stage in systems.grid(settings)}
    runs = stages["runs"].specs({})
    assert [(systems.system_of(s), s.seed) for s in runs] == [
        (system, seed) for system in ("Baseline", "ER+Att") for seed in (0, 1, 2)
    ]
    done = pd.DataFrame({"spec": runs, "status": "done"})
    assert len(stages["measurements"].specs({"runs": done})) == stages["measurements"].maximum
    done.loc[0, "status"] = "lost"
    assert len(stages["measurements"].specs({"runs": done})) < stages["measurements"].maximum


def test_a_number_stands_in_the_cell_of_its_system_and_set(settings):
    def value(system, spec):
        place = 0.5 if spec.data.corpus == "movie_snippets" else 0.7
        return place + 0.01 * spec.run.seed + (0.1 if system == "ER+Att" else 0)

    table = tables.table_2(settings, measured(settings, value)).long.set_index(["row", "column"])
    assert table.loc[("Baseline", "SST-Test"), "ours"] == pytest.approx(51)
    assert table.loc[("ER+Att", "Amazon-M-TV"), "ours"] == pytest.approx(81)
    assert table.loc[("ER+Att", "tweets"), ["n", "note"]].tolist() == [3, "not in the paper"]
    auc = tables.table_3(settings, measured(settings, value)).long.set_index(["row", "column"])
    assert auc.loc[("ER+Att", "SST-Dev/ATT"), "difference"] == pytest.approx(61 - 78.6)


def test_claims_are_fed_with_paired_differences_of_the_right_sign(settings, monkeypatch):
    """ER+Att gets one more of four texts right than the Baseline, and ranks 0.3 better."""

    def fake(spec, store=None):
        better = systems.system_of(spec.run) == "ER+Att"
        if spec.kind == "plausibility":
            return pd.DataFrame({"auc": [0.8 if better else 0.5, None, 0.9 if better else 0.6]})
        predicted = [0, 0, 1, 1] if better else [0, 1, 1, 1]
        return pd.DataFrame({"label": [0, 0, 1, 1], "predicted": predicted})

    monkeypatch.setattr(claims, "per_text", fake)
    found = claims.measure_claims(settings, measured(settings, lambda *_: 0.0))
    # F1-macro of the Baseline: (2/3 + 4/5) / 2, of ER+Att: 1
    expected = 100 * (1 - (2 / 3 + 4 / 5) / 2)
    assert found["ER-C1"]["pooled"]["differences"] == pytest.approx([expected] * 3)
    assert found["ER-C4"]["SST-Dev"]["differences"] == pytest.approx([30] * 3)
    assert "ER-C3" not in found  # the packaged corpora stand in for neither Movies nor Yelp
    decision = decide("er_lens", "ER-C4", {"SST-Dev": found["ER-C4"]["SST-Dev"]})
    assert decision.estimate == pytest.approx(30) and decision.n == 3
