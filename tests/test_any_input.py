"""Whatever comes in is accepted, or refused by an error of ours that says what would be right.

Never by a KeyError, TypeError or zlib.error of ten frames later. `EXAMPLES` cases of each kind;
with ./run_tests.sh --full ten times as many.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
import tempfile
from dataclasses import fields
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from erlib.attributions import attribute
from erlib.catalogue import paper as paper_named
from erlib.catalogue import papers
from erlib.cli import main
from erlib.config import (
    SOURCES,
    CheckpointRule,
    DataSpec,
    EvalSpec,
    Extraction,
    ModelSpec,
    OptimiserSpec,
    RunSpec,
    Teaching,
    Term,
    UpdateSpec,
    canonical,
    load_profile,
    run_spec_from_dict,
)
from erlib.data import loading, local
from erlib.parameters import PARAMETERS, check_parameters
from erlib.sizes import against_the_paper
from tests import tiny

EXAMPLES = {
    "descriptions": 500, "profiles": 200, "local data": 150, "attributions": 120, "commands": 250,
}  # fmt: skip
assert sum(EXAMPLES.values()) >= 1_000
SCALE = pytest.mark.parametrize(
    "scale", [1, pytest.param(10, marks=pytest.mark.full)], ids=["quick", "full"]
)


def cases(kind, scale):
    """How hypothesis draws: the same cases on every machine, and no deadline on a busy one."""
    return settings(
        max_examples=EXAMPLES[kind] * scale,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def accepted(call):
    """What the call returns, or None where it is refused with advice; anything else is raised."""
    try:
        return call()
    except (ValueError, FileNotFoundError) as error:
        assert type(error) in (ValueError, FileNotFoundError), f"{type(error).__name__}: {error}"
        assert len(str(error)) > 10, error
        return None


# What somebody may write where something else is meant, beside what is right.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**9, 2**64, -(10**30), 0.5, -0.0, 1e308, float("nan"), float("inf")]),
    st.sampled_from([np.int64(2), np.float32(0.5), np.bool_(True), "1", "", "../x", "a\0b", "ψ"]),
    st.text(max_size=3),
    st.lists(st.integers(0, 2), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(0, 2), max_size=2),
    st.just(object()),
)
GIVEN = {**dict.fromkeys(PARAMETERS), "profile": "quick", "executor": "local"}
DATA = DataSpec("movies", "local")
RUN = RunSpec(DATA)
RIGHT = {  # class → a right value of every field
    DataSpec: {"corpus": "movies"},
    Extraction: {"run": RUN, "percent": 20},
    Teaching: {"run": RUN},
    ModelSpec: {},
    Term: {"name": "task"},
    UpdateSpec: {},
    CheckpointRule: {},
    OptimiserSpec: {},
    EvalSpec: {"run": RUN, "data": DATA, "split": "test", "kind": "predictions"},
    RunSpec: {"data": DATA},
}


@st.composite
def descriptions(draw):
    """A description of which one or two fields are odd: its class and its fields."""
    made = draw(st.sampled_from(list(RIGHT)))
    names = draw(st.lists(st.sampled_from([f.name for f in fields(made)]), max_size=2))
    return made, {**RIGHT[made], **{name: draw(ODD) for name in names}}


@SCALE
def test_a_description_is_refused_or_can_be_named_and_read_back(scale):
    @cases("descriptions", scale)
    @given(descriptions())
    def check(drawn):
        made, given_fields = drawn
        spec = accepted(lambda: made(**given_fields))
        if spec is not None:
            assert hash(spec) == hash(made(**given_fields))
            text = canonical(spec)
            if isinstance(spec, RunSpec):
                assert canonical(run_spec_from_dict(json.loads(text))) == text

    check()


@st.composite
def profiles(draw):
    """A paper, and the quick profile with one or two of its settings changed, renamed or gone."""
    paper = draw(st.sampled_from(sorted(papers())))
    profile = copy.deepcopy(load_profile("quick"))
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.sampled_from([profile, *[profile.get(paper)] * 5]))
        place = place if isinstance(place, dict) and place else profile
        name = draw(st.sampled_from(sorted(place)))
        while isinstance(place[name], dict) and place[name] and draw(st.booleans()):
            place = place[name]
            name = draw(st.sampled_from(sorted(place)))
        value = place.pop(name)
        if draw(st.booleans()):
            place[name] = draw(ODD.filter(lambda v: v is not None and json_can(v)))
        elif draw(st.booleans()):
            place[draw(st.text(max_size=3))] = value
    return paper, profile


@SCALE
def test_a_profile_is_accepted_or_refused_with_its_key(scale):
    @cases("profiles", scale)
    @given(profiles())
    def check(drawn):
        name, profile = drawn
        with patch("erlib.parameters.load_profile", lambda _: profile):
            found = accepted(lambda: check_parameters(name, GIVEN))
        if found is not None:
            against_the_paper(paper_named(name), found.grid)
            assert isinstance(found.roles, dict) and found.source in SOURCES

    check()


WORDS = st.lists(st.sampled_from(["a", "great", "film", "…", "dull"]), min_size=1, max_size=6)
GOOD = {"id": "a", "label": 1, "text": "a fine film"}
NAMES = ("id", "label", "text", "tokens", "rationale", "tree", "text_a", "context", "answers")


@st.composite
def files(draw):
    """The bytes of a split: records of which some are odd, lines that are none, damaged gzip."""
    lines = []
    for i in range(draw(st.integers(0, 4))):
        record = {**GOOD, "id": str(i), "text": " ".join([*draw(WORDS), str(i)])}
        for name in draw(st.lists(st.sampled_from(NAMES), max_size=2)):
            odd = draw(ODD)
            record[name] = odd if json_can(odd) else draw(st.sampled_from(["(9 x)", "(" * 300]))
        line = json.dumps(record).encode()
        lines.append(
            draw(st.sampled_from([line] * 8 + [line[:-3], b"", b"[1]", b"\xff", b"9" * 5000]))
        )
    plain = b"\n".join(lines)
    packed = bytearray(gzip.compress(plain, mtime=0))
    kind = draw(st.sampled_from(["plain", "packed", "packed", "bit", "cut"]))
    if kind == "bit":
        packed[draw(st.integers(0, len(packed) - 1))] ^= 1 << draw(st.integers(0, 7))
    if kind == "cut":
        packed = packed[: draw(st.integers(0, len(packed)))]
    return (".jsonl", plain) if kind == "plain" else (".jsonl.gz", bytes(packed))


def json_can(value):
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True


@SCALE
def test_local_data_are_read_or_refused_with_a_remedy(scale):
    @cases("local data", scale)
    @given(
        st.dictionaries(st.sampled_from(["train", "dev", "test"]), files(), min_size=1),
        st.sampled_from(["yelp", "mine", "snli", "squad", "sst", "../yelp"]),
    )
    def check(splits, name):
        loading._load.cache_clear()
        local.refuse_shared.cache_clear()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "data" / name
            place.mkdir(parents=True)
            for split, (end, content) in splits.items():
                (place / f"{split}{end}").write_bytes(content)
            with patch.dict(os.environ, {"ERLIB_DATA": str(Path(folder) / "data")}):
                for split in splits:
                    accepted(
                        lambda split=split: loading.load_data(name, split=split, source="local")
                    )
                accepted(lambda: loading.corpus_report(name, "local"))
                table = loading.check_corpora("local")
        assert set(table["status"]) <= {"ok", "missing", "error"}
        assert not table["note"].str.contains("KeyError|TypeError|zlib").any()

    check()


@cache
def classifier():
    return tiny.classifier("bert", num_labels=3)


TEXTS = st.one_of(
    ODD,
    st.lists(st.one_of(WORDS.map(" ".join), WORDS, st.tuples(WORDS, WORDS), ODD), max_size=3),
    st.just([{"question": "which ?", "context": "a great film"}]),
    st.just([["film"] * 90]),
)
ARGUMENTS = {
    "variant": st.sampled_from([None, "ivra", "regex"]),
    "target": st.sampled_from(["predicted", "gold", "LABEL_1", 0, 2, np.int64(1)]),
    "labels": st.lists(st.integers(0, 2), max_size=3),
    "level": st.sampled_from(["word", "token"]),
    "per_layer": st.booleans(),
    "batch_size": st.integers(1, 4),
    "max_memory": st.sampled_from(["2GB", "1kB", "much"]),
    "seed": st.integers(0, 9),
    "options": st.sampled_from([{"steps": 2}, {"samples": 2}, {}, {"step": 1}]),
}


@SCALE
@pytest.mark.filterwarnings("ignore:.*were cut to the:UserWarning")
def test_an_attribution_is_made_or_refused(scale):
    @cases("attributions", scale)
    @given(
        TEXTS,
        st.sampled_from(
            ["attention", "saliency", "input_x_gradient", "random", "rollout", "altii"]
        ),
        st.dictionaries(st.sampled_from(list(ARGUMENTS)), st.none(), max_size=2),
        st.data(),
    )
    def check(texts, method, names, data):
        chosen = {n: data.draw(st.one_of(ARGUMENTS[n], ARGUMENTS[n], ODD)) for n in names}
        found = accepted(lambda: attribute(classifier(), texts, method, **chosen))
        if found is not None:
            assert [len(one.scores) for one in found] == [len(one.tokens) for one in found]

    check()


@SCALE
def test_a_command_or_a_notebook_runs_with_its_parameters_or_says_what_is_wrong(scale, capsys):
    odd_words = st.sampled_from(
        ["", "1,1", "-1", "quik", "er_lens,", "🙂", "1,2", "0", "a b", "../x"]
    )

    @cases("commands", scale)
    @given(
        st.dictionaries(st.sampled_from([*PARAMETERS, "sedes"]), ODD, max_size=3),
        st.lists(
            st.tuples(st.sampled_from(["--profile", "--only", "--seeds", "--data"]), odd_words),
            min_size=1, max_size=2,
        ),
        st.tuples(st.sampled_from(["ls", "show", "verify", "gc"]), odd_words),
    )  # fmt: skip
    def check(parameters, options, runs):
        accepted(lambda: check_parameters("er_lens", {**GIVEN, **parameters}))
        words = [f"{name}={word}" for name, word in options]
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, ERLIB_STORE=folder):
            with patch("erlib.cli.print_plan", lambda _: 0):
                assert main(["run", "--plan", *words]) in (0, 2)
            assert main(["runs", *runs]) in (0, 2)
        said = capsys.readouterr().err
        assert "Traceback" not in said

    check()
