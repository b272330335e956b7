from __future__ import annotations

import json

from erlib.config import DataSpec, ModelSpec, RunSpec, canonical, term, update
from erlib.training.listing import objective_text, run_label
from erlib.training.store import Sealed

DATA = DataSpec("sst", "local")


def label(spec, tmp_path, best=None):
    folder = tmp_path / "0123456789abcdef"
    folder.mkdir(exist_ok=True)
    (folder / "spec.json").write_text(canonical(spec))
    (folder / "metrics.json").write_text(json.dumps({"best": best}))
    return run_label(Sealed(folder, "done"))


def test_a_label_says_system_corpus_model_seed_score_and_hash(tmp_path):
    text = label(RunSpec(DATA, seed=4), tmp_path, {"dev_f1_macro": 0.756})
    assert text == "Baseline · sst · minilm · seed 4 · dev F1 0.76 · 012345"


def test_a_label_says_what_was_done_to_the_encoder(tmp_path):
    cut = ModelSpec(layers=2, quirks=("double_embedding",))
    text = label(RunSpec(DATA, model=cut), tmp_path)
    assert text.split(" · ")[2] == "minilm, 2 layers, double_embedding"


def test_systems_are_called_as_in_the_papers(tmp_path):
    def system(*terms, **more):
        return label(RunSpec(DATA, objective=terms, **more), tmp_path).partition(" · ")[0]

    er = term("explanation", 0.5, guide="attention")
    assert system(term("task"), er) == "ER/attention"
    assert system(er) == "ER/attention (no task loss)"
    bound = update("constrained", term="explanation", bound=0.1)
    assert system(term("task"), er, update=bound) == "ER/attention (constrained)"
    measured = term("explanation", 0.0, guide="attention")
    assert system(term("task"), measured) == "Baseline"
    assert system(term("task"), measured, update=bound) == "ER/attention (constrained)"
    assert system(term("task"), term("conicity", 0.1), term("tying")) == "conicity + tying"


def test_an_objective_is_written_with_weights_and_options():
    spec = json.loads(canonical(RunSpec(DATA, objective=(term("task"), term("x", 0.5, a="b")))))
    assert objective_text(spec) == "task + 0.5 x/b"
