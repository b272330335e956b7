from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from erlib.data.encoding import collate
from erlib.metrics.cartography import (
    cartography,
    curvature,
    gradient_norm,
    group,
    nearest_distance,
    probe_directions,
)
from tests import tiny


def test_the_four_attributes_by_hand():
    p = np.array([[0.9, 0.2], [0.7, 0.4], [0.8, 0.3], [0.6, 0.9], [0.5, 0.2]])
    row, other = cartography(p, p > 0.5, ids=["x", "y"]).to_dict("records")
    assert row["id"] == "x"
    assert row["confidence"] == pytest.approx(0.7)
    assert row["variability"] == pytest.approx(np.sqrt(0.02))  # /5, not /4
    assert row["correctness"] == 4
    assert row["closeness"] == pytest.approx(0.21)
    assert (other["correctness"], other["group"]) == (1, None)


def test_groups_leave_out_one_and_four_of_five():
    assert [group(c, 5) for c in range(6)] == ["Hard", None, "Amb", "Amb", None, "Easy"]


def test_groups_of_other_numbers_of_epochs_keep_the_middle():
    assert [group(c, 4) for c in range(5)] == ["Hard", None, "Amb", None, "Easy"]
    assert [group(c, 2) for c in range(3)] == ["Hard", "Amb", "Easy"]
    assert [group(c, 1) for c in range(2)] == ["Hard", "Easy"]


def test_both_tables_are_epoch_by_text():
    with pytest.raises(ValueError, match=r"\[epoch, text\]"):
        cartography(np.zeros((5, 2)), np.zeros((2, 5)))


def test_norms_of_a_linear_map_are_those_of_its_matrix():
    # h = Σ_t W E_t: the Jacobian is W once for every token.
    weight = torch.tensor([[3.0, 0.0], [0.0, 4.0], [1.0, 1.0]], dtype=torch.float64)
    entry = torch.randn(2, 5, 2, dtype=torch.float64, requires_grad=True)
    h = (entry @ weight.T).sum(1)
    exact = gradient_norm(h, entry, probe_directions("exact", 3, 0, 0))
    assert exact.tolist() == pytest.approx([np.sqrt(5 * 27)] * 2)
    of_sum = gradient_norm(h, entry, probe_directions("sum", 3, 0, 0))
    assert of_sum.tolist() == pytest.approx([np.sqrt(5 * (16 + 25))] * 2)
    estimate = gradient_norm(h, entry, probe_directions("hutchinson", 3, 500, 0))
    assert estimate.tolist() == pytest.approx([np.sqrt(5 * 27)] * 2, rel=0.03)


def test_the_exact_norm_is_that_of_the_full_jacobian_and_ignores_padding():
    classifier = tiny.classifier("bert")
    encoded = classifier.encode(tiny.TEXTS)
    frame = curvature(classifier, encoded, norms=("exact", "sum"))
    for e, row in zip(encoded, frame.to_dict("records"), strict=True):
        inputs = collate([e], classifier.tokenizer.pad_token_id).inputs
        entry = classifier.forward(inputs).entry.detach()
        jacobian = torch.autograd.functional.jacobian(
            lambda x, inputs=inputs: classifier.forward(inputs, entry=x).pooled[0], entry
        )
        assert row["id"] == e.id
        assert row["exact"] == pytest.approx(jacobian.norm().item(), rel=1e-4)
        assert row["sum"] == pytest.approx(jacobian.sum(0).norm().item(), rel=1e-4)


def test_hutchinson_is_near_the_exact_norm_and_the_same_in_every_batch():
    classifier = tiny.classifier("distilbert")
    encoded = classifier.encode(tiny.TEXTS)
    norms = ("exact", "hutchinson")
    frame = curvature(classifier, encoded, norms=norms, probes=100)
    assert frame["hutchinson"].to_numpy() == pytest.approx(frame["exact"].to_numpy(), rel=0.15)
    alone = curvature(classifier, encoded, norms=norms, probes=100, batch_size=1)
    assert alone["hutchinson"].to_numpy() == pytest.approx(frame["hutchinson"].to_numpy(), rel=1e-4)
    other = curvature(classifier, encoded, norms=norms, probes=100, seed=1)
    assert (other["hutchinson"] != frame["hutchinson"]).all()


def test_curvature_leaves_the_models_own_gradients_alone():
    classifier = tiny.classifier("bert").train()
    curvature(classifier, classifier.encode(tiny.TEXTS), norms=("sum",))
    assert all(p.grad is None for p in classifier.model.parameters())


def test_the_nearest_other_text_is_found_across_chunks_and_duplicates_are_at_zero():
    states = np.random.default_rng(0).normal(size=(600, 4))
    states[500] = states[3]
    distances = cdist(states, states)
    np.fill_diagonal(distances, np.inf)
    assert nearest_distance(torch.tensor(states)) == pytest.approx(distances.min(1), abs=1e-12)
    assert nearest_distance(torch.tensor(states))[[3, 500]].tolist() == [0.0, 0.0]


def test_unknown_norms_and_span_models_are_refused():
    classifier = tiny.classifier("bert", task="span")
    encoded = classifier.encode([("which", "a dull plot")])
    with pytest.raises(ValueError, match="unknown norm 'exakt'; did you mean 'exact'"):
        curvature(classifier, encoded, norms=("exakt",))
    with pytest.raises(ValueError, match="no pooled vector"):
        curvature(classifier, encoded, norms=("sum",))
