"""Agreement of four methods is scipy's, text by text, and dropout is what parts equals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr

from erlib.attributions import attribute
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec
from erlib.models import load_classifier
from erlib.training.evaluating import per_epoch
from erlib.training.evaluations import KINDS, Evaluation, kind
from erlib.training.identity import eval_hash
from erlib.training.rows import rows_of
from erlib.training.runs import run
from tests import corpus, tiny

ASKED = EvalSpec(
    None, DataSpec("movies", "local", 32), "test", "agreement", 6,
    variant="agreement", target="gold", level="token",
)  # fmt: skip


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    corpus.write(tmp_path / "data")
    monkeypatch.setenv("ERLIB_DATA", str(tmp_path / "data"))


def measured(spec, model):
    rows = rows_of(spec.data, spec.split, spec.rows)
    return rows, kind("agreement").per_text(Evaluation(spec, rows, lambda: model))


@pytest.mark.parametrize("family", ["bert", "distilbert"])
def test_every_pair_of_every_text_is_compared_as_scipy_compares_it(family):
    model = tiny.classifier(family, head="agreement", specials=False).eval()
    rows, table = measured(ASKED, model)
    assert len(table) == 6 * 6  # pairs x texts
    for a, b in (("deeplift", "gradshap"), ("gradshap", "integrated_gradients")):
        found = table[(table["method_a"] == a) & (table["method_b"] == b)].set_index("id")
        one, other = (
            attribute(model, rows, m, variant="agreement", target="gold", level="token")
            for m in (a, b)
        )
        for text, x, y in zip(rows["id"], one, other, strict=True):
            x, y = np.abs(x.scores), np.abs(y.scores)
            assert found.loc[text, "kendall"] == pytest.approx(kendalltau(x, y).statistic, abs=1e-9)
            assert found.loc[text, "pearson"] == pytest.approx(pearsonr(x, y).statistic, abs=1e-6)


def test_special_tokens_do_not_count():
    with_specials = tiny.classifier("bert", head="agreement").eval()
    _, table = measured(ASKED, with_specials)
    lengths = {t.id: sum(not s for s in t.special) for t in with_specials.encode(
        rows_of(ASKED.data, "test", 6))}  # fmt: skip
    assert dict(zip(table["id"], table["n"], strict=True)) == lengths


def test_deeplift_equals_deepshap_in_evaluation_mode_on_both_models_and_not_under_dropout(tmp_path):
    """One constant baseline makes them the same function; the paper's .30 to .51 is dropout."""
    transformer = tiny.classifier("distilbert", head="agreement", specials=False).eval()
    for model in (transformer, jwa(tmp_path)):
        _, table = measured(ASKED, model)
        same = table[(table["method_a"] == "deeplift") & (table["method_b"] == "deepshap")]
        assert same["pearson"].min() > 1 - 1e-6
    _, noisy = measured(replace(ASKED, variant="agreement_dropout"), transformer)
    same = noisy[(noisy["method_a"] == "deeplift") & (noisy["method_b"] == "deepshap")]
    assert same["pearson"].max() < 1 - 1e-4


def jwa(folder):
    """A BiLSTM on random vectors of the corpus's words."""
    words = [*corpus.FILLER, *corpus.WORDS[0], *corpus.WORDS[1]]
    rng = np.random.default_rng(0)
    lines = [f"{w} " + " ".join(f"{x:.3f}" for x in rng.normal(size=8)) for w in words]
    (folder / "glove.txt").write_text("\n".join(lines) + "\n")
    return load_classifier("jwa", glove=folder / "glove.txt", head="agreement", seed=0).eval()


def test_after_every_epoch_there_is_a_table_and_the_summary_is_its_mean(tmp_path):
    spec = RunSpec(
        data=DataSpec("movies", "local", 32),
        model=ModelSpec(str(tiny.directory("distilbert")), head="agreement", specials=False),
        optimiser=OptimiserSpec(lr=5e-3, epochs=2, batch_size=16),
        each_epoch=(ASKED,),
    )
    run([spec], store=tmp_path / "store", device="cpu")
    table = per_epoch(spec, ASKED, store=tmp_path / "store")
    assert table["epoch"].value_counts().to_dict() == {1: 36, 2: 36}
    last = table[table["epoch"] == 2]
    by_pair = last.groupby(["method_a", "method_b"])["pearson"].mean()
    assert kind("agreement").summarise(last)["pearson"] == pytest.approx(by_pair.mean())
    assert not np.allclose(last["pearson"], table.loc[table["epoch"] == 1, "pearson"])


def test_a_new_version_of_a_method_is_a_new_version_of_their_agreement(monkeypatch):
    before = eval_hash(ASKED)
    eval_hash.cache_clear()
    monkeypatch.setitem(KINDS, "agreement", replace(KINDS["agreement"], version=99))
    assert eval_hash(ASKED) != before
    eval_hash.cache_clear()
