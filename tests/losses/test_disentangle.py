"""Conicity and tying are the paper's equations (Agreement §3.4), token by token."""

from __future__ import annotations

from math import dist, sqrt

import pytest
import torch

from erlib.config import term
from erlib.losses import Step, build
from erlib.models import load_classifier
from tests import tiny

TEXTS = [["a", "great", "film"], ["the", "plot", "is", "dull", "and", "bad"], ["year"]]


@pytest.fixture(params=["bert", "distilbert", "jwa"])
def model(request, tmp_path):
    if request.param != "jwa":
        return tiny.classifier(request.param, head="agreement", specials=False).eval()
    words = [*dict.fromkeys(w for text in TEXTS for w in text)]
    rows = [f"{w} " + " ".join(f"{(i * 7 + d * 3) % 5 - 2}.5" for d in range(6))
            for i, w in enumerate(words)]  # fmt: skip
    (tmp_path / "glove.txt").write_text("\n".join(rows) + "\n")
    return load_classifier("jwa", glove=tmp_path / "glove.txt", head="agreement", seed=0)


def step(model, texts=TEXTS):
    return Step(model, tiny.batch(model, [" ".join(t) for t in texts]))


def value(name, given, **options):
    return build(term(name, **options)).loss(given)[name]


def vectors(model, texts=TEXTS):
    """(h, e) of each text alone, as lists of lists: nothing of the code under test."""
    for text in texts:
        output = model.forward(tiny.inputs(model, [" ".join(text)]))
        yield output.hidden_states[-1][0].tolist(), output.embeddings[0].tolist()


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / sqrt(sum(x * x for x in a)) / sqrt(sum(y * y for y in b))


def mean(rows):
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def average(values):
    return sum(values) / len(values)


def test_conicity_is_the_mean_cosine_of_a_text_s_states_to_their_mean(model):
    expected = average(
        [average([cosine(x, mean(h)) for x in h]) for h, _ in vectors(model)]  # eq. 1 and 2
    )
    assert value("conicity", step(model)).item() == pytest.approx(expected, abs=1e-5)


def test_tying_is_the_mean_distance_of_states_to_their_words(model):
    distances = [[dist(x, y) for x, y in zip(h, e, strict=True)] for h, e in vectors(model)]
    assert value("tying", step(model)).item() == pytest.approx(
        average([average(text) for text in distances]), abs=1e-5
    )
    squares = average([average([d * d for d in text]) for text in distances])  # eq. 3
    assert value("tying", step(model), squared=True).item() == pytest.approx(squares, rel=1e-5)


def test_the_batch_axis_compares_each_state_with_the_other_texts_at_its_position(model):
    states = [h for h, _ in vectors(model)]
    longest = max(map(len, states))
    means = [mean([h[t] for h in states if t < len(h)]) for t in range(longest)]
    expected = average([average([cosine(x, means[t]) for t, x in enumerate(h)]) for h in states])
    assert value("conicity", step(model), axis="batch").item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["conicity", "tying"])
def test_padding_changes_nothing_unless_pads_are_made_to_count(model, name):
    alone, padded = TEXTS[:1], [TEXTS[0], TEXTS[1] * 2]
    other = value(name, step(model, [TEXTS[1] * 2])).item()
    both = (value(name, step(model, alone)).item() + other) / 2
    assert value(name, step(model, padded)).item() == pytest.approx(both, abs=1e-5)
    assert value(name, step(model, padded), mask=False).item() != pytest.approx(both, abs=1e-3)
    same = value(name, step(model, alone), mask=False).item()  # no pads, nothing to count
    assert same == pytest.approx(value(name, step(model, alone)).item(), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("conicity", {}),
        ("conicity", {"axis": "batch"}),
        ("tying", {}),
        ("tying", {"squared": True}),
    ],
)
def test_gradients_agree_with_finite_differences(name, options):
    model = tiny.classifier("bert", head="agreement", specials=False).eval()
    model.model.double()
    for part in ("embeddings.word_embeddings.weight", "layer.1.output.dense.weight"):
        weight = next(p for n, p in model.model.named_parameters() if n.endswith(part))
        model.model.zero_grad()
        value(name, step(model), **options).backward()
        used = step(model).batch.inputs["input_ids"][0, 0].item()
        index, h = (used if "word" in part else 3, 2), 1e-6
        with torch.no_grad():
            weight[index] += h
            up = value(name, step(model), **options).item()
            weight[index] -= 2 * h
            down = value(name, step(model), **options).item()
            weight[index] += h
        assert weight.grad[index].item() == pytest.approx((up - down) / (2 * h), rel=1e-4, abs=1e-9)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="unknown axis 'tine'; did you mean 'time'"):
        build(term("conicity", axis="tine"))
    small = tiny.classifier("electra", head="agreement", specials=False)  # embeddings of size 12
    with pytest.raises(ValueError, match="states of size 16 with embeddings of size 12"):
        value("tying", step(small))
