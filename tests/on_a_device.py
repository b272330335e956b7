"""Nothing crosses from a GPU to the CPU unasked: shown on a device that raises where CUDA would."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from erlib.attributions import attribute
from erlib.attributions.registry import METHODS
from erlib.attributions.variants import VARIANTS
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, term, update
from erlib.losses import Step, Weighted
from erlib.metrics.faithfulness import faithfulness
from erlib.models.learned_attention import calibrate
from erlib.training import kinds, loop, pilot  # noqa: F401  (registered below)
from erlib.training.evaluating import evaluate
from erlib.training.evaluations import KINDS
from erlib.training.runs import run
from erlib.training.updates import UPDATES, PlainUpdate
from tests import corpus, devices, tiny
from tests.attributions import toy
from tests.losses.test_parts import REFUSED, TERMS, TEXTS, batch_of

SMALL = {"integrated_gradients": {"steps": 3}, "lime": {"samples": 6}, "gradshap": {"samples": 2}}
QUESTIONS = [{"question": "which is best ?", "context": "a great film . dull ."}]


@pytest.fixture
def device():
    with devices.pretended() as name:
        yield name


def test_the_device_raises_where_cuda_does_and_nowhere_else(device):
    x, y = torch.arange(4.0, device=device), torch.arange(4.0)
    with pytest.raises(devices.MixedDevices, match="meet tensors of the device"):
        x + y
    with pytest.raises(devices.MixedDevices):
        torch.cat([x, y])
    for numpy_of in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(TypeError, match="to numpy"):
            numpy_of()
    assert (x + y.sum()).tolist() == [6, 7, 8, 9] and x[1].item() == 1  # 0-dim ones may
    assert x[torch.tensor([2, 0])].tolist() == [2, 0]  # and indices
    assert x.cpu().numpy().tolist() == y.to(device).cpu().tolist() and x.device.type == device
    x[0] = 5
    assert x.add_(1).tolist() == [6, 2, 3, 4] and x.tolist() == [6, 2, 3, 4]


FAMILIES = ("bert", "distilbert", "gpt2", "jwa", "span")
LEARNED = {"smat": "smat", "ivra": "ivra-softmax"}  # which need a module
EVERY = [
    (family, name, variant)
    for family in FAMILIES
    for name in METHODS
    for variant in (None, *VARIANTS.get(name, {}))
    if not (family == "jwa" and (name in LEARNED or name == "rollout"))
]


def model_of(family, explainer, folder):
    if family == "jwa":
        return toy.jwa(folder)
    if family == "span":
        return tiny.classifier("bert", task="span", explainer=explainer)
    return tiny.classifier(family, explainer=explainer)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_every_attribution_gives_on_the_device_what_it_gives_on_the_cpu(family, tmp_path):
    """Or refuses the model in the same words."""
    checked = 0
    for name, variant in [(n, v) for f, n, v in EVERY if f == family]:
        model = model_of(family, LEARNED.get(name), tmp_path)
        if model.explainer:
            calibrate(model, tiny.inputs(model))
        texts = QUESTIONS if family == "span" else tiny.TEXTS[:2]

        def scores(model=model, texts=texts, name=name, variant=variant):
            options = SMALL.get(name) if variant is None else None
            try:
                found = attribute(model, texts, name, variant=variant, options=options)
            except ValueError as error:
                return str(error)
            return [a.scores for a in found]

        here = scores()
        with devices.pretended() as device:
            model.to(device)
            there = scores()
        if isinstance(here, str) or isinstance(there, str):
            assert type(here) is type(there), (name, variant, here, there)
            continue
        checked += 1
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5, err_msg=f"{name} {variant}")
    assert checked > (10 if family == "jwa" else 15)


TERMS_OF = [(n, o) for n, every in {**TERMS, **{n: [o] for n, o in REFUSED.items()}}.items()
            for o in (every if isinstance(every, list) else [every])]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), TERMS_OF, ids=[f"{n} {o}" for n, o in TERMS_OF])
def test_every_loss_and_its_gradient_stay_on_the_device(name, options):
    found = []
    for device in (None, devices.NAME):
        model = tiny.classifier("bert", head="er", explainer="ivra-sparsemax")
        calibrate(model, tiny.inputs(model))
        for module in model.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        objective = Weighted([term(name, **options)])
        objective.fit(model.encode(TEXTS))
        batch = batch_of(model)
        with devices.pretended():
            if device is not None:
                model, batch = model.to(device), batch.to(device)
            torch.manual_seed(1)
            loss = objective.loss(Step(model.train(), batch))["loss"]
            loss.backward()
            found.append(loss.item())
    assert found[1] == pytest.approx(found[0], rel=1e-4)


RUNS = {
    "plain": ((term("task"), term("explanation", 0.5, guide="attention")), update("plain"), None),
    "sgd": ((term("task"), term("simulation")), update("sgd"), "ivra-softmax"),
    "constrained": (
        (term("task"), term("explanation", 0.0, guide="rollout")),
        update("constrained", term="explanation", bound=0.03, lr=0.1),
        None,
    ),
    "pilot": ((term("task"),), update("pilot"), "ivra-sparsemax"),
}


@pytest.fixture
def spec(tmp_path, monkeypatch):
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    return RunSpec(
        DataSpec("movies", "local", 32, train_rows=16, dev_rows=8),
        ModelSpec(str(tiny.directory("bert"))),
        optimiser=OptimiserSpec(epochs=2, batch_size=8),
    )


def test_every_update_is_among_the_runs():
    assert set(RUNS) == set(UPDATES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["plain", "constrained", "pilot"])
def test_a_run_on_the_device_is_saved_taken_up_again_and_measured(name, spec, monkeypatch):
    objective, how, explainer = RUNS[name]
    model = replace(spec.model, explainer=explainer)
    spec = replace(spec, objective=objective, update=how, model=model)
    evaluate_epoch = loop.evaluate_epoch

    def killed(*args):
        evaluate_epoch(*args)
        if args[2].name == "2":
            raise KeyboardInterrupt

    with devices.pretended() as device:
        monkeypatch.setattr(loop, "evaluate_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            run([spec], device=device)
        monkeypatch.setattr(loop, "evaluate_epoch", evaluate_epoch)
        (row,) = run([spec], device=device).to_dict("records")
        assert row["status"] == "done"
        asked = [EvalSpec(spec, spec.data, "test", "predictions", 4)]
        assert list(evaluate(asked, device=device)["status"]) == ["done"]


KIND_OF = {
    "faithfulness": {"method": "integrated_gradients", "protocol": "ivra"},
    "flips": {"method": "attention"},
    "plausibility": {"method": "alti"},
    "attributions": {"method": "decompx"},
    "word_scores": {"method": "decompx_classifier", "level": "word"},
    "important_share": {"method": "lime"},
    "consistency": {"method": "deeplift"},
    "soft_faithfulness": {"method": "occlusion"},
    "parts_of_speech": {"method": "scaled_attention"},
}


@pytest.mark.filterwarnings("ignore")
def test_every_kind_of_evaluation_is_measured_on_the_device(spec):
    asked = [
        EvalSpec(spec, spec.data, "test", name, 4, **{"level": "token", **KIND_OF.get(name, {})})
        for name in KINDS
        if name not in ("attack", "simulatability")  # of another shape: a word list, a student
    ]
    with devices.pretended() as device:
        found = evaluate(asked, device=device)
    assert dict(zip(found["kind"], found["status"], strict=True)) == {
        s.kind: "done" for s in asked
    }


def test_spans_are_measured_on_the_device():
    model = tiny.classifier("bert", task="span")
    texts = model.encode(QUESTIONS)
    scores = [np.linspace(0, 1, len(t.input_ids)) for t in texts]
    found = []
    for place in ("cpu", devices.NAME):
        with devices.pretended():
            table = faithfulness(model.to(place), texts, {"attention": scores}, protocol="ivra")
        found.append(table.select_dtypes("number").to_numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-6)


def test_a_bilstm_is_trained_on_the_device(tmp_path, device):
    model = toy.jwa(tmp_path, head="agreement").to(device).train()
    batch = model.batch(model.encode(tiny.TEXTS, labels=[0, 1, 0]))
    objective = Weighted([term("task"), term("conicity", 0.5)])
    made = PlainUpdate(model, OptimiserSpec(lr=1e-2), 4)
    losses = [made.apply(objective, Step(model, batch), n)["loss"].item() for n in range(3)]
    assert losses[-1] < losses[0]
