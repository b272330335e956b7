"""A term that moves no weight is found, named in run, history and report, and nothing else is."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import pandas as pd
import pytest
import torch

from erlib.config import ModelSpec, OptimiserSpec, term, update
from erlib.losses import Step, Weighted
from erlib.models import load_classifier
from erlib.models.families import body_of
from erlib.reports import footer
from erlib.training import loop
from erlib.training.identity import run_hash
from erlib.training.runs import run
from erlib.training.store import open_store
from erlib.training.vanishing import Watched, has_gradient
from tests import tiny

SHORT = OptimiserSpec(lr=1e-4, epochs=2, batch_size=8)
ROWS = [
    {"id": "0", "words": ["a", "great", "film"], "label": 1, "rationale": [0, 1, 0]},
    {"id": "1", "words": ["the", "plot", "is", "dull"], "label": 0, "rationale": [0, 0, 0, 1]},
]


@pytest.fixture
def saturated(tmp_path):
    """A tiny BERT whose heads all look at one token, so that softmax(100·a) has no slope left."""
    model = tiny.classifier("bert")
    last = body_of(model.model).encoder.layer[-1].attention.self
    with torch.no_grad():
        for part in (*last.query.parameters(), *last.key.parameters()):
            part.copy_(part[: tiny.WIDTH // tiny.HEADS].repeat(tiny.HEADS, *[1] * (part.ndim - 1)))
        last.query.weight *= 100
        last.query.bias *= 100
    model.save_pretrained(tmp_path / "saturated")
    return ModelSpec(str(tmp_path / "saturated"))


def trained(spec, store):
    """The run's row and folder; its warnings are the test's own affair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        row = run([spec], store=store).iloc[0]
    return row, open_store(store).get("runs", run_hash(spec)).path


def test_attention_guidance_of_minilm_cut_to_two_layers_has_no_gradient():
    """The whole model has one of 1e-7, that of two layers one of 1e-39."""
    texts = [text.split() for text in tiny.CORPUS]
    rows = [
        {"id": str(i), "words": words, "label": i % 2, "rationale": [0, 1, *[0] * (len(words) - 2)]}
        for i, words in enumerate(texts)
    ]
    found = {}
    for layers in (2, None):
        model = load_classifier("minilm", num_labels=2, head="er", layers=layers, seed=0).train()
        torch.manual_seed(0)  # dropout
        objective = Watched((term("task"), term("explanation", 1.0, guide="attention")))
        objective.loss(Step(model, tiny.batch(model, rows)))
        found[layers] = objective.vanished
    assert found == {2: ["explanation"], None: []}


def test_a_gradient_is_there_if_any_weight_has_one_above_the_least():
    model = tiny.classifier("bert").eval()
    batch = tiny.batch(model)
    logit = model.forward(batch.inputs).logits[0, 0]
    slopes = torch.autograd.grad(logit, list(model.model.parameters()), retain_graph=True,
                                 allow_unused=True)  # fmt: skip
    largest = max(s.abs().max().item() for s in slopes if s is not None)
    assert has_gradient(logit, model, 0.999 * largest)
    assert not has_gradient(logit, model, 1.001 * largest)
    assert not has_gradient(torch.zeros(()), model, 0.0)
    embedding = model.model.get_input_embeddings().weight  # the lowest weight of all
    assert has_gradient((embedding * embedding).sum(), model, 1e-12)


def test_a_run_names_the_loss_that_moved_no_weight_in_table_history_and_warning(
    spec, saturated, tmp_path
):
    still = replace(spec, model=saturated, optimiser=SHORT)
    with pytest.warns(UserWarning, match=r"ER/attention .*: no weight was moved by explanation"):
        row = run([still], store=tmp_path / "store").iloc[0]
    assert row["vanished"] == "no weight was moved by explanation (epochs 1, 2)"
    path = open_store(tmp_path / "store").get("runs", run_hash(still)).path
    assert pd.read_csv(path / "history.csv")["vanished"].tolist() == ["explanation"] * 2
    metrics = json.loads((path / "metrics.json").read_text())
    assert metrics["vanished"] == {"explanation": [1, 2]} and "vanished" not in metrics["lowest"]
    alone = replace(still, objective=(term("task"),))
    plain = trained(alone, tmp_path / "store")[0]
    assert row["dev_task"] == plain["dev_task"]  # it was the Baseline all along


def test_a_term_that_moves_weights_is_not_named(spec, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = run([spec], store=tmp_path / "store").iloc[0]
    assert row["vanished"] == "" and "dev_explanation" in row
    _, path = trained(spec, tmp_path / "store")
    assert "vanished" not in pd.read_csv(path / "history.csv")


def test_looking_changes_no_bit_of_what_is_trained(spec, saturated, tmp_path, monkeypatch):
    for model in (spec.model, saturated):
        one = replace(spec, model=model, optimiser=SHORT)
        _, watched = trained(one, tmp_path / "watched")
        blind = type("Blind", (Weighted,), {"vanished": []})
        monkeypatch.setattr(loop, "Watched", lambda terms, _: blind(terms))  # noqa: B023
        _, unwatched = trained(one, tmp_path / "unwatched")
        monkeypatch.undo()
        a, b = ((p / "model.safetensors").read_bytes() for p in (watched, unwatched))
        assert a == b
        histories = [pd.read_csv(p / "history.csv") for p in (watched, unwatched)]
        pd.testing.assert_frame_equal(*(h.drop(columns="vanished", errors="ignore")
                                        for h in histories))  # fmt: skip


def test_a_loss_that_is_only_measured_is_exempt_and_a_constrained_one_is_not(saturated):
    model = load_classifier(saturated.name, num_labels=2, head="er").train()
    terms = (term("task"), term("explanation", 0.0, guide="attention"))
    for constrained, found in ((None, []), ("explanation", ["explanation"])):
        objective = Watched(terms, constrained)
        objective.loss(Step(model, tiny.batch(model, ROWS)))
        assert objective.vanished == found


def test_every_epoch_is_judged_by_its_own_steps_until_one_has_a_gradient(monkeypatch):
    """Asked in steps 1 and 2, where one is found, and not in step 3; anew in the next epoch."""
    answers = iter([False, True, False])
    monkeypatch.setattr("erlib.training.vanishing.has_gradient", lambda *_: next(answers))
    model, objective = tiny.classifier("bert").train(), Watched((term("task"),))
    batch = tiny.batch(model, ROWS)
    said = []
    for epoch in (3, 1):
        objective.refresh(model, [])
        for _ in range(epoch):
            objective.loss(Step(model, batch))
            said.append(objective.vanished)
    assert said == [["task"], [], [], ["task"]]
    model.eval()
    objective.loss(Step(model, batch))  # held-out texts train nothing: not asked


def test_the_report_names_the_run(spec, saturated, tmp_path):
    still = replace(
        spec,
        model=saturated,
        objective=(term("task"), term("explanation", 0.0, guide="attention")),
        optimiser=replace(SHORT, epochs=1),
        update=update("constrained", term="explanation", bound=0.0, lr=0.1),
    )
    row, _ = trained(still, tmp_path / "store")
    footer("er_lens", profile="quick", runs=[row["run"], "gone"], root=tmp_path,
           store=str(tmp_path / "store"))  # fmt: skip
    made = json.loads((tmp_path / "reports/quick/er_lens.provenance.json").read_text())
    assert len(made["unmoved"]) == 1 and row["run"][:6] in made["unmoved"][0]
    assert made["unmoved"][0].endswith(": no weight was moved by explanation (epoch 1)")
