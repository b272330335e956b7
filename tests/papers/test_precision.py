"""A profile's entry `precision` reaches the runs of every paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import replace

import pytest

from erlib.config import RunSpec
from erlib.papers.agreement import systems as agreement
from erlib.papers.er_lens import systems as er_lens
from erlib.papers.ivra import systems as ivra
from erlib.papers.regex import systems as regex
from erlib.papers.saloss import systems as saloss
from erlib.parameters import Settings, check_parameters

# paper → where a profile says it, and a run that should hear it
SAID: Mapping[str, tuple[tuple[str, ...], Callable[[Settings], RunSpec]]] = {
    "er_lens": (("optimiser",), lambda s: er_lens.run_spec(s, "ER+Att", 0)),
    "regex": (("optimiser",), lambda s: regex.run_spec(s, "REGEX", "SST", 0)),
    "ivra": (("full",), lambda s: ivra.baseline(ivra.core(s), 0)),
    "saloss": (("training",), lambda s: saloss.run_spec(s, saloss.tasks(s)[0], "Baseline", 0)),
    "agreement": (
        ("models", "DBERT"),
        lambda s: agreement.run_spec(
            s, agreement.System("DBERT", agreement.tasks(s)[0], "Base"), 0
        ),
    ),
}


@pytest.mark.parametrize("paper", SAID)
def test_a_profile_trains_in_the_precision_it_names_and_else_in_fp32(paper: str) -> None:
    settings = check_parameters(paper, {"profile": "cpu", "executor": "local"})
    place, run = SAID[paper]
    assert run(settings).optimiser.precision == "fp32"
    grid = deepcopy(dict(settings.grid))
    entry = grid
    for name in place:
        entry = entry[name]
    entry["precision"] = "bf16"
    assert run(replace(settings, grid=grid)).optimiser.precision == "bf16"
