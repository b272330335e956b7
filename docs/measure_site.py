"""Where should a gradient be read: at the word embedding x, or at what enters the first layer, E?

Trains three classifiers, which the store keeps, and measures every method at both sites:
`python docs/measure_site.py && python docs/draw_site.py` makes the table and figure of site.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from scipy.stats import ttest_1samp
from transformers import DistilBertConfig, DistilBertModel, GPT2Config, GPT2Model

import erlib
from erlib.attributions import variants
from erlib.attributions.attribute import attribute_encoded, by_word
from erlib.attributions.variants import Options
from erlib.config import DataSpec, EvalSpec, ModelSpec, OptimiserSpec, RunSpec, store_root
from erlib.data import select_rows
from erlib.data.encoding import Encoded
from erlib.metrics.deletion import over_random
from erlib.models import Classifier

HERE = Path(__file__).parent
TEXTS, WORDS = 150, range(5, 17)  # held-out texts, of so many words
POINTS = 10  # of integrated gradients
SITES = {"x": "embeddings", "entry": "entry"}
BASELINES = {"zero": "zero", "[PAD]": "pad"}
METHODS = ["deeplift", "integrated_gradients", "gradshap"]  # DeepSHAP is DeepLIFT here
SENTENCE = "a dull story , but the acting is a joy to watch"
DATA = DataSpec("movie_snippets", max_length=64, train_rows=2000, dev_rows=200)
BERT = RunSpec(DATA, optimiser=OptimiserSpec(epochs=2))
Row = tuple[str, str, str]  # method, baseline, site


def models() -> dict[str, RunSpec]:
    """The packaged encoder, the same weights as a DistilBERT, and a GPT-2 from scratch.

    The packaged decoder is a Llama, which adds no positions: x and E are one there.
    """
    decoder = ModelSpec(str(gpt2()))
    return {
        "BERT": BERT,
        "DistilBERT": replace(BERT, model=ModelSpec(str(distilbert()))),
        "GPT-2": RunSpec(replace(DATA, train_rows=None), decoder, optimiser=OptimiserSpec(5e-4, 2)),
    }


def distilbert() -> Path:
    """The packaged encoder in DistilBERT's shape: its one token type is added to the positions."""
    folder = store_root().resolve() / "models" / "distilbert"
    if (folder / "tokenizer.json").exists():
        return folder
    encoder = erlib.load_classifier("minilm", seed=0)
    was, weights = encoder.model.config, encoder.model.base_model.state_dict()
    types = weights.pop("embeddings.token_type_embeddings.weight")
    weights["embeddings.position_embeddings.weight"] += types[0]
    for old, new in {
        "encoder.layer": "transformer.layer", "attention.self.query": "attention.q_lin",
        "attention.self.key": "attention.k_lin", "attention.self.value": "attention.v_lin",
        "attention.output.dense": "attention.out_lin", "intermediate.dense": "ffn.lin1",
        "attention.output.LayerNorm": "sa_layer_norm", "output.dense": "ffn.lin2",
        "output.LayerNorm": "output_layer_norm",
    }.items():  # fmt: skip
        weights = {name.replace(old, new): weight for name, weight in weights.items()}
    config = DistilBertConfig(
        vocab_size=was.vocab_size, max_position_embeddings=was.max_position_embeddings,
        n_layers=was.num_hidden_layers, n_heads=was.num_attention_heads,
        dim=was.hidden_size, hidden_dim=was.intermediate_size,
    )  # fmt: skip
    model = DistilBertModel(config)
    model.load_state_dict({n: w for n, w in weights.items() if not n.startswith("pooler")})
    model.save_pretrained(folder)
    encoder.tokenizer.save_pretrained(folder)
    return folder


def gpt2() -> Path:
    """A GPT-2 of two layers and the packaged encoder's size and word pieces, all else drawn."""
    folder = store_root().resolve() / "models" / "gpt2"
    if (folder / "tokenizer.json").exists():
        return folder
    encoder = erlib.load_classifier("minilm", seed=0)
    was, tokenizer = encoder.model.config, encoder.tokenizer
    config = GPT2Config(
        vocab_size=was.vocab_size, n_positions=was.max_position_embeddings,
        n_embd=was.hidden_size, n_layer=2, n_head=was.num_attention_heads,
        n_inner=was.intermediate_size, pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
    )  # fmt: skip
    torch.manual_seed(0)
    model = GPT2Model(config)
    model.wte.weight.data = encoder.model.base_model.get_input_embeddings().weight.data.clone()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def rows() -> dict[Row, Options]:
    """What is measured."""
    plain = Options(steps=POINTS)
    local = {
        (name, "", site): replace(plain, site=SITES[site], reduce=reduce)
        for name, reduce in {"input_x_gradient": "sum", "input_x_gradient, ℓ2": "l2"}.items()
        for site in SITES
    }
    return local | {
        (method, baseline, site): replace(plain, site=SITES[site], baseline=BASELINES[baseline])
        for method in METHODS
        for baseline in BASELINES
        for site in SITES
    }


def measured(classifier: Classifier, texts: list[Encoded]) -> pd.DataFrame:
    """One line per method and baseline: at either site the drop over random and the gap."""
    scores: dict[Row, list[np.ndarray]] = {}
    gaps: dict[Row, float] = {}
    for row, options in rows().items():
        method = row[0].split(",")[0]
        variants.VARIANTS[method]["measured"] = options
        found = attribute_encoded(
            classifier, texts, method, variant="measured", level="token", max_memory="300MB"
        )
        scores[row] = [by_word(a, t).scores for a, t in zip(found, texts, strict=True)]
        gaps[row] = np.abs([np.array(a.completeness_gap, dtype=float) for a in found]).mean()
    over = over_random(classifier, texts, scores)
    lines = []
    for method, baseline in dict.fromkeys(row[:2] for row in scores):
        at = {site: over[method, baseline, site] for site in SITES}
        line: dict[str, object] = {"method": method, "baseline": baseline, "texts": len(texts)}
        for name, values in {**at, "difference": at["entry"] - at["x"]}.items():
            test = ttest_1samp(values, 0.0)
            low, high = test.confidence_interval()
            line |= {name: values.mean(), f"{name}_low": low, f"{name}_high": high}
            line |= {f"{name}_t": test.statistic, f"{name}_p": test.pvalue}
        lines.append(line | {f"{site}_gap": gaps[method, baseline, site] for site in SITES})
    return pd.DataFrame(lines)


def identity(classifier: Classifier) -> pd.DataFrame:
    """The two sides of the identity, and the product at E, for each token of `SENTENCE`."""
    (text,) = classifier.encode([SENTENCE])
    output = classifier.forward(classifier.batch([text]).inputs)
    x, entry, block = output.embeddings, output.entry, classifier.model.base_model.embeddings
    rest = block.position_embeddings.weight[: x.shape[1]] + block.token_type_embeddings.weight[0]
    at_x, at_entry = torch.autograd.grad(output.logits.max(), (x, entry))
    products = {"x": x * at_x, "minus_rest": -rest * at_x, "entry": entry * at_entry}
    sums = {name: product.sum(dim=-1)[0].tolist() for name, product in products.items()}
    return pd.DataFrame({"token": text.tokens, **sums})


def main() -> None:
    """Train, measure, write."""
    specs = models()
    trained = dict(zip(specs, erlib.run(list(specs.values()))["run"], strict=True))
    tested = [EvalSpec(spec, DATA, "test", "predictions") for spec in specs.values()]
    accuracies = dict(zip(specs, erlib.evaluate(tested)["accuracy"], strict=True))
    test = erlib.load_data(DATA.corpus, split="test")  # ordered by class: drawn by id instead
    words = [w for w in select_rows(test, len(test))["words"] if len(w) in WORDS]
    frames = []
    for name, run in trained.items():
        classifier = erlib.load_classifier(f"run:{run}")
        lines = measured(classifier, classifier.encode(words[:TEXTS]))
        lines.insert(0, "accuracy", accuracies[name])
        lines.insert(0, "model", name)
        frames.append(lines)
    pd.concat(frames).to_csv(HERE / "site.csv", index=False, float_format="%.5g")
    bert = erlib.load_classifier(f"run:{trained['BERT']}")
    identity(bert).to_csv(HERE / "site_sentence.csv", index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
