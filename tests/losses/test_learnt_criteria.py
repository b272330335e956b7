"""Does training for a criterion of IvRA improve it?

Gradients can be right in every formula and teach nothing, as those of a gate on the word embedding
did. So a trained encoder goes on for 60 steps with COMP, as in the paper's recipe, and is compared
with itself and the module it began with.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import ttest_1samp

import erlib
from erlib.config import ModelSpec, OptimiserSpec, RunSpec, term, update
from erlib.data import select_rows
from erlib.losses import Step
from erlib.losses.interpretability import PERCENTS, best_tokens
from erlib.models.learned_attention import calibrate
from erlib.training.checkpoints import begin_from
from erlib.training.rows import rows_of
from erlib.training.store import open_store
from tests.attributions.test_better_than_random import SPEC

LR, BATCH, STEPS, TEXTS = 5e-5, 16, 60, 300
NORMS = ("softmax", "sparsemax")

pytestmark = pytest.mark.full


def taught_with(norm: str) -> RunSpec:
    return RunSpec(
        replace(SPEC.data, train_rows=BATCH * STEPS),
        ModelSpec(explainer=f"ivra-{norm}"),
        (term("task"), term("comprehensiveness")),
        OptimiserSpec(lr=LR, epochs=1, batch_size=BATCH, schedule="constant", warmup=0.0),
        update=update("plain", explainer_lr=100 * LR),
        start=SPEC,
    )


@pytest.fixture(scope="module")
def runs() -> dict[str, str]:
    return dict(zip(NORMS, erlib.run([taught_with(norm) for norm in NORMS])["run"], strict=True))


@torch.no_grad()
def drops(classifier, rows) -> np.ndarray:
    """COMP text by text: p(ỹ) less p(ỹ) without the best tokens, the mean over PERCENTS."""
    found = []
    for chunk in np.array_split(np.arange(len(rows)), 6):
        step = Step(classifier, classifier.batch(classifier.encode(rows.select(chunk))))
        p = step.forward().logits.softmax(dim=1)
        y = p.argmax(dim=1, keepdim=True)
        left = []
        for percent in PERCENTS:
            mask = step.mask * (1 - best_tokens(step, percent)).long()
            erased = classifier.forward({**step.batch.inputs, "attention_mask": mask})
            left.append(erased.logits.softmax(dim=1).gather(1, y))
        found.append((p.gather(1, y) - torch.stack(left).mean(dim=0))[:, 0].numpy())
    return np.concatenate(found)


@pytest.mark.parametrize("norm", NORMS)
def test_60_steps_of_comprehensiveness_raise_it_above_the_untrained_modules(runs, norm):
    rows = select_rows(erlib.load_data("movie_snippets", split="test"), TEXTS)
    begun = erlib.load_classifier("minilm", num_labels=2, explainer=f"ivra-{norm}")
    begin_from(begun, open_store().find("runs", erlib.run([SPEC])["run"][0]).path)
    first = rows_of(SPEC.data, "train", BATCH * STEPS).select(range(BATCH))
    calibrate(begun, begun.batch(begun.encode(first)).inputs)
    taught = erlib.load_classifier(f"run:{runs[norm]}")
    gain = drops(taught.eval(), rows) - drops(begun.eval(), rows)
    assert ttest_1samp(gain, 0.0, alternative="greater").pvalue < 0.01
