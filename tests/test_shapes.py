"""Whatever the GPU profiles ask for works on made-up models and sets of the hub's shape."""

from __future__ import annotations

import sys

import pytest

from erlib import hub, preflight
from erlib.config import EvalSpec, RunSpec
from erlib.data import absent, loading
from erlib.models.places import what_is_missing
from erlib.papers.grid import stage
from erlib.training import rows
from erlib.training.listing import failed_lines
from erlib.training.making import with_origins
from erlib.training.stages import carry_out
from erlib.training.store import open_store
from tests import naming, shapes


@pytest.fixture(scope="session")
def laid_out(tmp_path_factory):
    """Models and sets, once."""
    folder = tmp_path_factory.mktemp("hub")
    shapes.models(folder / "models")
    return folder, shapes.sets(folder)


@pytest.fixture
def here(laid_out, tmp_path, monkeypatch):
    """As if the hub were these folders."""
    folder, registry = laid_out
    monkeypatch.setenv("ERLIB_MODELS", str(folder / "models"))
    monkeypatch.setenv("ERLIB_DATA", str(folder / "local"))
    monkeypatch.setenv("ERLIB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", folder / "cache")
    monkeypatch.setattr(sys.modules["erlib.data.corpora"], "_registry", lambda: registry)
    forget()
    yield
    absent.rows_may_be_missing(False)
    forget()


def forget():
    for known in (
        hub.reachable, preflight.why_not, loading._hub_or_local, loading._load, rows._rows_at,
        rows.fingerprint_at,
    ):  # fmt: skip
        known.cache_clear()
    naming.forget()


def carried_out(specs):
    """The failures of these, and their names."""
    runs = with_origins([s.run if isinstance(s, EvalSpec) else s for s in specs])
    evals = list(dict.fromkeys(s for s in specs if isinstance(s, EvalSpec) and s.run))
    stages = [stage("runs", runs), stage("evaluations", evals)]
    results = carry_out(stages, executor="local", store=None, device="cpu")
    made, measured = results["runs"], results["evaluations"]
    return [
        *failed_lines(open_store(None), made["run"], measured["eval"]),
        *(f"{run} was lost" for run in made.loc[made["status"] == "lost", "run"]),
    ]


def test_every_model_that_a_profile_names_is_there_in_miniature(here):
    every = (spec for profile in shapes.PROFILES for spec in shapes.specs(profile))
    asked = {spec.model.name for spec in every if isinstance(spec, RunSpec)}
    assert asked - set(shapes.ALIKE) - {"jwa"} <= set(shapes.MODELS)
    assert [what_is_missing(name) for name in shapes.MODELS] == [None] * len(shapes.MODELS)


def test_the_miniatures_have_the_shape_of_every_description_of_the_profiles():
    """What is carried out below is all that the profiles can ask for, but for its size."""
    miniatures = {shapes.signature(spec) for spec in shapes.representatives().values()}
    for profile in shapes.PROFILES:
        assert {shapes.signature(spec) for spec in shapes.specs(profile)} <= miniatures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_architecture_runs_with_every_loss_update_and_evaluation_that_it_meets(here):
    assert carried_out(shapes.few(shapes.representatives())) == []


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_every_shape_of_the_profiles_runs(here):
    assert carried_out(list(shapes.representatives().values())) == []
