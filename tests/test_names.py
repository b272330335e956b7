"""Every run and evaluation of a profile keeps its name."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from erlib.config import EvalSpec, RunSpec, canonical, run_spec_from_dict
from tests import naming

ADVICE = """
Their names are not those of tests/names. Results in a store are found by name: what is renamed is
computed again. If that was meant, write the lists with `python -m tests.naming`, and say in
CHANGELOG.md which specs were renamed and why; if not, see "Names stay" in CONTRIBUTING.md.
"""


@pytest.mark.parametrize("profile", naming.PROFILES)
def test_every_spec_has_the_name_that_is_listed(profile):
    found = naming.names(profile, naming.listed_rows().__getitem__)
    changes = naming.differences(naming.listed(profile), found)
    assert not changes, "\n".join([f"{len(changes)} specs of {profile}:", *changes, ADVICE])


def test_rows_have_the_fingerprint_that_is_listed():
    listed = naming.listed_rows()
    short = min((p for p in listed if p[1] == "packaged"), key=lambda p: (p[5] or 10**9, p))
    assert naming.content_at(short) == listed[short]


@pytest.mark.parametrize("profile", naming.PROFILES)
def test_a_name_stands_for_one_spec_whichever_paper_asks_for_it(profile):
    assert (naming.listed(profile).groupby("name")["what"].nunique() == 1).all()


def test_every_description_of_quick_is_read_back_from_its_text():
    for _, spec in naming.specs_of("quick"):
        run = spec
        if isinstance(spec, EvalSpec):
            run = replace(spec.run, each_epoch=(replace(spec, run=None),))
        assert isinstance(run, RunSpec)
        assert run_spec_from_dict(json.loads(canonical(run))) == run


def test_a_difference_is_told_with_what_it_is_of():
    was = naming.listed("quick").head(3)
    other = was.assign(name=["0" * 16, *was["name"][1:]])
    (line,) = naming.differences(was, other)
    assert line.startswith("changed: er_lens") and line.endswith(f"({was.name[0]} → {'0' * 16})")
    (line,) = naming.differences(was, was.tail(2))
    assert line.startswith("gone: ") and was["name"][0] in line
    (line,) = naming.differences(was.tail(2), was)
    assert line.startswith("new: ") and was["name"][0] in line
