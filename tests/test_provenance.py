from __future__ import annotations

import json
import subprocess

import torch

from erlib import provenance


def test_the_environment_is_json_and_the_same_each_time():
    first = provenance.environment("cpu")
    assert json.loads(json.dumps(first)) == first == provenance.environment("cpu")
    assert first["packages"]["torch"] == torch.__version__
    assert first["threads"] == torch.get_num_threads() and first["device"] == "cpu"


def test_the_revision_is_that_of_the_checkout_and_marks_changes(tmp_path, monkeypatch):
    def git(*arguments):
        command = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    source = tmp_path / "erlib" / "provenance.py"
    source.parent.mkdir()
    source.write_text("one")
    monkeypatch.setattr(provenance, "__file__", str(source))
    assert provenance.revision() is None  # no repository
    git("init", "-q")
    assert provenance.revision() is None  # not part of it
    git("add", ".")
    git("commit", "-qm", "first")
    commit = git("rev-parse", "HEAD")
    assert provenance.revision() == commit
    source.write_text("two")
    assert provenance.revision() == commit + "+"


def test_the_hash_of_the_source_tells_every_change_and_is_blind_to_what_python_leaves(
    tmp_path, monkeypatch
):
    package = tmp_path / "erlib"
    (package / "__pycache__").mkdir(parents=True)
    (package / "provenance.py").write_text("one")
    monkeypatch.setattr(provenance, "__file__", str(package / "provenance.py"))
    first = provenance.source_hash()
    (package / "__pycache__" / "provenance.pyc").write_text("two")
    assert provenance.source_hash() == first
    (package / "profile.toml").write_text("")
    second = provenance.source_hash()
    (package / "profile.toml").rename(package / "profiles.toml")
    assert len({first, second, provenance.source_hash()}) == 3
