"""The section on one batch shows what training computes, token by token."""

from __future__ import annotations

import pytest

from erlib.config import ModelSpec, term
from erlib.losses import Weighted
from erlib.losses.explanation import GUIDES
from erlib.papers.one_batch import OneBatch
from erlib.parameters import check_parameters
from erlib.reports.render import prose_html


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    given = {
        "profile": "quick",
        "executor": "local",
        "store": str(tmp_path_factory.mktemp("store")),
    }
    settings = check_parameters("saloss", {**given, "data": None, "seeds": None, "device": "cpu"})
    return OneBatch(settings, ModelSpec("minilm", head="er", layers=1))


def test_the_loss_is_the_mean_distance_of_the_columns_that_are_shown(four):
    batch = four.step.batch
    guide = GUIDES["attention"](four.step, batch.rationale, batch.has_rationale)
    rows = [four.table({"a": guide.attribution, "g": guide.target}, i) for i in range(4)]
    marked = [row for row in rows if row["g"].sum()]
    distance = sum((row["a"] - row["g"]).abs().sum() for row in marked) / sum(map(len, marked))
    losses = Weighted([term("explanation", 1.0, guide="attention")]).loss(four.step)
    shown = four.numbers(**losses).set_index("quantity")["value"]
    assert shown["explanation"] == pytest.approx(distance, abs=1e-3)
    assert rows[0].index[0] == "[CLS]" and rows[0].index[-1] == "[SEP]"


def test_a_few_steps_change_the_map_and_cost_nothing_twice(four, monkeypatch):
    objective = [term("task"), term("explanation", 1.0, guide="attention")]
    html = four.before_and_after(objective, "attention", variant="er_lens")
    before, after = html.split("After 12 steps")
    assert "<h4>Before</h4>" in before and before.count("<span") <= after.count("<span")
    monkeypatch.setattr("erlib.training.making.train", None)  # nothing is trained again
    assert four.before_and_after(objective, "attention", variant="er_lens") == html


def test_equations_are_drawn_by_the_browser_itself():
    html = prose_html(
        "The loss is\n\n$$L = \\lambda L_{expl}$$\n\nwith $\\lambda$ and 5 % of $x_t$."
    )
    assert html.count("<math") == 3 and 'display="block"' in html and "$" not in html
    assert "5 %" in html
