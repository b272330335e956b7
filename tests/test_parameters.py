"""A notebook's parameters are what they should be, or the notebook does not run."""

from __future__ import annotations

import pytest

from erlib.config import PROFILES, load_profile
from erlib.data import corpora
from erlib.parameters import check_parameters, settings

GOOD = {
    "profile": "quick",
    "data": None,
    "seeds": None,
    "executor": "local",
    "store": None,
    "device": "cpu",
}


def test_the_profile_fills_in_what_is_not_given():
    found = check_parameters("er_lens", GOOD)
    assert found.source == "packaged" and list(found.seeds) == found.grid["seeds"]
    assert found.roles["in_domain"] == "movie_snippets"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"profile": "quik"}, "unknown profile 'quik'; did you mean 'quick'"),
        ({"data": "cloud"}, "unknown data source 'cloud'"),
        ({"data": "hub"}, "no corpora from source 'hub'"),
        ({"executor": "slurm"}, "unknown executor 'slurm'"),
        ({"seeds": "1,2"}, "seeds must be a list of whole numbers"),
        ({"seeds": [1, 2.0]}, "seeds must be a list of whole numbers"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"seeds": []}, "seeds must be a list"),
        ({"store": 3}, "parameter 'store' must be a text or None, not 3"),
        ({"sedes": [1]}, "unknown notebook parameter 'sedes'; did you mean 'seeds'"),
    ],
)
def test_a_wrong_parameter_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        check_parameters("er_lens", {**GOOD, **change})


def test_a_misspelt_parameter_that_papermill_injected_is_found_in_the_executed_cells():
    cells = ["", "profile = 'quick'", "# Parameters\nsedes = [1]\n"]
    with pytest.raises(ValueError, match="unknown notebook parameter 'sedes'"):
        settings("er_lens", {**GOOD, "In": cells})
    assert settings("er_lens", {**GOOD, "sedes": 1, "In": ["", "sedes = 1"]}).profile == "quick"


def test_every_role_of_every_profile_is_a_registered_corpus():
    def names(value):
        if isinstance(value, str):
            return [value]
        if isinstance(value, dict):
            return [value["corpus"]]
        return [name for item in value for name in names(item)]

    for profile in PROFILES:
        papers = {k: v for k, v in load_profile(profile).items() if isinstance(v, dict)}
        assert set(papers) == {"er_lens", "regex", "ivra", "saloss", "agreement"}
        for paper in papers.values():
            for roles in paper["roles"].values():
                for role in roles.values():
                    assert set(names(role)) <= set(corpora())
