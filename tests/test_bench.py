from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from erlib import bench
from erlib.attributions import attribute_encoded
from erlib.attributions.costs import Shape, operations
from erlib.explorer.waiting import seconds_waited
from erlib.metrics.faithfulness import faithfulness
from tests import tiny


def _fused(query, key, *args, **options):
    """Two products of each pair, for every head; of shapes [batch, head, token, head_dim]."""
    batch, heads, n, width = query
    return 4 * batch * heads * n * key[2] * width


def _fused_backward(gradient, query, key, *args, **options):
    """The map once more, and two products for each of the forward's."""
    return 5 * _fused(query, key) // 2


FUSED = {  # what torch does not count on a CPU
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _fused,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: _fused_backward,
}


@pytest.fixture
def small(monkeypatch):
    """The bench on a tiny BERT in place of MiniLM."""
    classifier = tiny.classifier("bert")
    monkeypatch.setattr(bench, "_model", lambda name: classifier)
    monkeypatch.setattr(bench, "matmul_rate", lambda: 1e10)
    return classifier


def _table(tmp_path, *arguments: str) -> pd.DataFrame:
    path = tmp_path / "bench.csv"
    assert bench.main([*arguments, "--models", "minilm", "--csv", str(path)]) == 0
    return pd.read_csv(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "alt"], "unknown method 'alt'; did you mean 'alti'"),
        (["--models", "minilmm"], "unknown model 'minilmm'; did you mean 'minilm'"),
        (["--lengths", "32,x"], "--lengths takes whole numbers"),
        (["--lengths", "2048"], "from 4 to 1024"),
        (["--batch", "0"], "--batch takes whole numbers"),
        (["--against", "tests.attributions.oracles:alti_scores"], "against one method"),
        (["--methods", "alti", "--against", "no.such:thing"], "no.such"),
        (["--methods", "alti", "--against", "tests.tiny:nothing"], "nothing"),
        (["--methods", "alti", "--against", "captum"], "unknown method of captum 'alti'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_timed(arguments, message):
    with pytest.raises(ValueError, match=message):
        bench.main(arguments)


def test_every_cell_has_time_memory_and_a_prediction(small, tmp_path, capsys):
    table = _table(tmp_path, "--methods", "attention,alti", "--lengths", "8,16", "--batch", "1,2")
    assert list(zip(table["method"], table["batch"], table["length"], strict=True)) == [
        (method, batch, n) for method in ("attention", "alti") for batch in (1, 2) for n in (8, 16)
    ]
    assert (table["seconds"] > 0).all() and (table["predicted_seconds"] > 0).all()
    assert table["peak_mb"].notna().all() and (table["status"] == "measured").all()
    assert "exponent of the length" in capsys.readouterr().out


def test_a_cell_that_would_take_too_long_is_skipped_with_its_prediction(small, tmp_path, capsys):
    arguments = ("--methods", "alti", "--lengths", "16", "--cell-seconds", "1e-9")
    skipped = _table(tmp_path, *arguments)
    assert np.isnan(skipped["seconds"][0]) and skipped["predicted_seconds"][0] > 1e-9
    assert "skipped: time" in capsys.readouterr().out
    assert _table(tmp_path, *arguments, "--full")["seconds"][0] > 0


def test_a_cell_that_needs_more_than_the_free_memory_is_skipped(small, tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "_free", lambda: 1000)
    table = _table(tmp_path, "--methods", "decompx", "--lengths", "16")
    assert table["status"][0].startswith("skipped: memory")


@pytest.mark.parametrize("method", ["alti", "decompx"])
def test_another_implementation_is_timed_on_the_same_texts(small, tmp_path, method):
    table = _table(
        tmp_path, "--methods", method, "--lengths", "16", "--batch", "2",
        "--against", f"tests.attributions.oracles:{method}_scores",
    )  # fmt: skip
    ratio = table["against_seconds"][0] / table["cpu_seconds"][0]
    assert table["ratio"][0] == pytest.approx(ratio)
    assert 0 < table["difference"][0] < 1e-4


def test_captum_finds_the_same_scores_and_a_table_says_what_each_side_took(small, tmp_path):
    table = _table(tmp_path, "--lengths", "16", "--batch", "2", "--against", "captum")
    fixed = table[table["method"] != "gradshap"]  # which draws its points
    assert len(fixed) == 4 and (fixed["difference"] < 1e-4).all()
    assert (fixed["correlation"] > 0.9999).all() and (table["cpu_seconds"] > 0).all()
    page = (tmp_path / "bench.md").read_text(encoding="utf-8").splitlines()
    assert len(page) == 2 + len(table) and all(line.count("|") == 8 for line in page)
    assert page[2].startswith("| saliency | minilm | 2 × 16 | ")


COUNTED = (
    "attention", "rollout", "input_x_gradient", "lime", "occlusion", "attn_lrp", "value_zeroing",
    "alti", "decompx",
)  # fmt: skip


# Either form of DecompX's feed-forward block; of SHAP's sets on long texts some are drawn twice
@pytest.mark.parametrize(("method", "n"), [*product(COUNTED, (8, 40)), ("shap", 8)])
def test_formulas_count_the_products_that_run(method, n):
    classifier = tiny.classifier("bert")
    texts = bench.random_texts(classifier, n, 1)
    with FlopCounterMode(display=False, custom_mapping=FUSED) as counter:
        attribute_encoded(classifier, texts, method, level="token")
    shape = Shape.of(classifier)
    formula = operations(method, shape, n)
    if method == "alti":  # 3·N²·D of it, to compare vectors, are no products
        formula -= (shape.layers - 1) * 3 * n * n * shape.width
    assert counter.get_total_flops() == pytest.approx(formula, rel=0.05)


def test_texts_have_exactly_the_length_asked_for():
    texts = bench.random_texts(tiny.classifier("bert"), 17, 3)
    assert [len(text.input_ids) for text in texts] == [17, 17, 17]
    assert texts[0].input_ids != texts[1].input_ids


def test_the_slope_of_a_power_is_its_exponent():
    assert bench.slope([32, 64, 256], [5 * n**2.5 for n in (32, 64, 256)]) == pytest.approx(2.5)


def test_erasure_one_by_one_gives_what_the_engine_gives():
    classifier = tiny.classifier("bert")
    texts = [bench.random_texts(classifier, n, 1, seed=n)[0] for n in (7, 12)]
    draw = np.random.default_rng(0)
    scores = {m: [draw.normal(size=len(t.tokens)) for t in texts] for m in ("a", "b")}
    kept, removed = bench.one_by_one(classifier, texts, scores)
    frame = faithfulness(classifier, texts, scores, protocol="regex")
    assert frame["p_kept"].to_numpy() == pytest.approx(kept, abs=1e-6)
    assert frame["p_removed"].to_numpy() == pytest.approx(removed, abs=1e-6)
    assert np.std(kept) > 1e-3


def test_the_explorer_s_line_has_every_method_that_promises_to_be_fast_and_applies(small, capsys):
    waited = seconds_waited(small, repeat=1)
    assert {"default methods", "attention", "saliency", "deeplift"} <= set(waited)
    assert not {"lime", "alti", "decompx", "ivra"} & set(waited)  # slow, or refused by this model
    assert min(waited.values()) > 0
    assert bench.main(["--methods", "explorer", "--csv", "/dev/null"]) == 0
    assert "a sentence of 27 words: " in capsys.readouterr().out


def test_random_models_have_the_shape_they_are_named_for(monkeypatch):
    monkeypatch.setitem(bench.RANDOM_MODELS, "bert-base", Shape(2, 24, 48, 3))
    bench._model.cache_clear()
    classifier = bench._model("bert-base")
    bench._model.cache_clear()
    assert Shape.of(classifier) == Shape(2, 24, 48, 3)
    with torch.no_grad():
        output = classifier.forward(tiny.inputs(classifier, [" ".join(["film"] * 1022)]))
    assert output.attentions[0].shape == (1, 3, 1024, 1024)
