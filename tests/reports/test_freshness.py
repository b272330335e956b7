from __future__ import annotations

import json
import shutil
from dataclasses import replace

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from erlib.attributions.registry import METHODS
from erlib.catalogue import paper
from erlib.cli import main
from erlib.parameters import check_parameters
from erlib.reports import artefact, footer, freshness
from erlib.training.kinds import predictions  # noqa: F401  (registers the kind)
from erlib.training.store import checksums
from tests.reports.test_staging import GIVEN

RUN = {
    "data": {"corpus": "sst", "extract": None}, "model": {"name": "minilm", "head": "er"},
    "objective": [{"name": "task"}, {"name": "explanation"}], "update": {"name": "plain"},
    "each_epoch": [{"kind": "predictions", "method": None, "data": {"corpus": "imdb"}}],
    "start": {
        "data": {"corpus": "sst"}, "model": {"name": "bert", "head": "pooled"},
        "objective": [{"name": "salience"}], "update": {"name": "constrained"},
        "each_epoch": [], "start": None,
    },
}  # fmt: skip
EVAL = {"kind": "plausibility", "method": "alti", "data": {"corpus": "tweets"}, "run": RUN}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A report of er_lens made from one run and one evaluation."""
    write(tmp_path, "a = 1")
    scores, other = ({**EVAL, "kind": "attributions", "method": m} for m in ("alti", "lime"))
    made = {"runs/00ab": RUN, "evals/00ab": EVAL, "evals/00cd": scores, "evals/00ef": other}
    for name, spec in made.items():
        folder = tmp_path / "store" / name
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(json.dumps(spec))
        origin = {"made_from": "00cd"} if spec is EVAL else {}
        (folder / "provenance.json").write_text(json.dumps({"seconds": 20.5, **origin}))
    footer("er_lens", profile="quick", runs=["00ab"], evals=["00ab"], root=tmp_path)
    written = freshness.text_sources("er_lens", "quick", tmp_path)
    freshness.record_sources("er_lens", "quick", written, root=tmp_path, store=tmp_path / "store")
    (tmp_path / "reports/quick/01_er_lens.html").write_text("a page")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(root, source, *, outputs=()):
    (root / "notebooks").mkdir(exist_ok=True)
    cells = [new_markdown_cell("# Title"), new_code_cell(source, outputs=list(outputs))]
    nbformat.write(new_notebook(cells=cells), root / "notebooks/01_er_lens.ipynb")


def changes(project):
    return freshness.out_of_date("er_lens", "quick", project)


def written(project, monkeypatch):
    """A copy of the claims and of the papers' tables that a test may change."""
    folder = project / "papers"
    for name in ("er_lens", "saloss"):
        shutil.copytree(paper(name).folder, folder / name)

    def copied(name):
        return replace(paper(name), folder=folder / name)

    monkeypatch.setattr(freshness, "paper_named", copied)
    return folder


def test_everything_that_a_description_names_is_found_in_the_runs_beneath_it_too():
    found = freshness.used([EVAL])
    assert found["models"] == ["bert", "minilm"]
    assert found["corpora"] == ["imdb", "sst", "tweets"]
    assert list(found["versions"]) == [
        "attribution alti",
        "evaluation attributions", "evaluation plausibility", "evaluation predictions",
        "head er", "head pooled",
        "objective explanation", "objective salience", "objective task",
        "update constrained", "update plain",
    ]  # fmt: skip
    assert found["versions"]["attribution alti"] == METHODS["alti"].version


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        ({"extract": {"method": "alti"}}, {"word_scores"}),
        ({"taught": {"method": ""}}, {"predictions"}),
        ({"taught": {"method": "ivra"}}, {"predictions", "attributions"}),
    ],
)
def test_what_rationales_and_lessons_come_from_is_found_though_no_description_names_it(data, kinds):
    run = {**RUN, "data": {"corpus": "sst", **data}, "each_epoch": [], "start": None}
    found = {name for name in freshness.used([run])["versions"] if name.startswith("evaluation")}
    assert found == {f"evaluation {kind}" for kind in kinds}


def test_a_new_version_of_learned_attention_counts_where_a_model_has_it():
    model = {"name": "minilm", "head": "er", "explainer": "smat"}
    found = freshness.used([{**RUN, "model": model}])["versions"]
    assert found["explainer smat"] == freshness.VERSION
    assert "explainer smat" not in freshness.used([RUN])["versions"]


def test_the_seconds_of_runs_and_evaluations_are_added_up_with_those_they_are_made_from(project):
    """The run, plausibility, and the attributions that it is made from; another method's not."""
    sources = json.loads(freshness.sources_file("er_lens", "quick", project).read_text())
    assert sources["seconds"] == 3 * 20.5


def test_a_report_is_up_to_date_until_a_cell_changes_whatever_its_outputs(project):
    assert changes(project) == []
    write(project, "a = 1", outputs=[new_output("stream", name="stdout", text="1")])
    assert changes(project) == []
    write(project, "a = 2")
    assert changes(project) == ["the notebook has changed"]


def test_a_change_of_the_profile_counts_for_the_papers_whose_entry_it_is(project, monkeypatch):
    profile = freshness.load_profile("quick")
    monkeypatch.setattr(freshness, "load_profile", lambda _: {**profile, "saloss": {}})
    assert changes(project) == []
    monkeypatch.setattr(freshness, "load_profile", lambda _: {**profile, "er_lens": {}})
    assert changes(project) == ["the profile has changed"]


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("er_lens/claims.toml", ["the list of claims has changed"]),
        ("er_lens/tables/table2.csv", ["the copy of the paper's tables has changed"]),
        ("saloss/claims.toml", []),
        ("saloss/tables/table2.csv", []),
    ],
)
def test_a_change_of_the_claims_or_of_the_printed_numbers_counts_for_their_paper(
    project, monkeypatch, file, said
):
    path = written(project, monkeypatch) / file
    assert changes(project) == []
    path.write_text(path.read_text(encoding="utf-8").replace("0.", "1."), encoding="utf-8")
    assert changes(project) == said


def test_a_comment_among_the_claims_changes_nothing(project, monkeypatch):
    path = written(project, monkeypatch) / "er_lens/claims.toml"
    path.write_text(path.read_text(encoding="utf-8") + "\n# a comment\n", encoding="utf-8")
    assert changes(project) == []


def test_a_report_from_before_the_claims_were_recorded_counts_as_older_and_says_why(project):
    file = freshness.sources_file("er_lens", "quick", project)
    sources = json.loads(file.read_text())
    del sources["claims"], sources["paper_tables"]
    file.write_text(json.dumps(sources))
    assert changes(project) == [
        "it was made before the list of claims was recorded",
        "it was made before the copy of the paper's tables was recorded",
    ]


def test_a_new_version_counts_for_the_methods_that_were_used(project, monkeypatch):
    monkeypatch.setitem(METHODS, "lime", replace(METHODS["lime"], version=99))
    assert changes(project) == []
    now = METHODS["alti"].version
    monkeypatch.setitem(METHODS, "alti", replace(METHODS["alti"], version=now + 1))
    assert changes(project) == [f"attribution alti was version {now} and is {now + 1}"]
    monkeypatch.delitem(METHODS, "alti")
    assert changes(project) == ["attribution alti is gone"]


def test_the_command_lists_every_report_and_being_old_is_no_failure(project, capsys):
    assert main(["reports", "check"]) == 0
    line, total = capsys.readouterr().out.splitlines()
    assert line.startswith("reports/quick/01_er_lens.html: made 2")
    assert " at revision " in line and line.endswith(": up to date")
    assert total.startswith("0 of 1 reports are older")
    write(project, "a = 2")
    assert main(["reports", "check"]) == 0
    assert "the notebook has changed\n1 of 1 reports" in capsys.readouterr().out


def test_a_report_whose_sources_were_not_kept_is_named(project):
    freshness.sources_file("er_lens", "quick", project).unlink()
    assert changes(project) == ["what it was made from is not known"]


@pytest.fixture
def executed(project, monkeypatch):
    """The same report with all that an execution records, and its settings."""
    monkeypatch.setenv("ERLIB_STORE", str(project / "store"))
    monkeypatch.delenv("ERLIB_DATA", raising=False)
    for folder in (project / "store").glob("*/*"):
        seal(folder)
    artefact("er_lens", "table-2", pd.DataFrame({"F1": [1]}), caption="", profile="quick",
             seeds=[0], root=project)  # fmt: skip
    (project / "reports/quick/01_er_lens.ipynb").write_text("{}")
    settings = check_parameters("er_lens", GIVEN)
    written = freshness.text_sources("er_lens", "quick", project) | freshness.made_with(settings)
    freshness.record_sources("er_lens", "quick", written, root=project, store=project / "store")
    return settings


def seal(folder, status="done", **dropped):
    sums = checksums(folder)
    there = {name: sha for name, sha in sums.items() if name not in ("DONE", *dropped)}
    done = {"status": status, "sha256": there, **({"dropped": dropped} if dropped else {})}
    (folder / "DONE").write_text(json.dumps(done))


def test_a_report_of_which_nothing_has_changed_is_not_executed_again(executed, project):
    assert freshness.why_again(executed, project) == []
    run = project / "store/runs/00ab"
    seal(run, **{"spec.json": checksums(run)["spec.json"]})  # a model that was dropped
    assert freshness.why_again(executed, project) == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda root: write(root, "a = 2"), "the notebook has changed"),
        (lambda root: (root / "reports/quick/01_er_lens.ipynb").unlink(),
         "a file of it is missing"),
        (lambda root: (root / "reports/quick/tables/er_lens-table-2.csv").unlink(),
         "a file of it is missing"),
        (lambda root: (root / "reports/quick/artefacts.csv").unlink(), "a file of it is missing"),
        (lambda root: (root / "reports/quick/01_er_lens.failed.ipynb").touch(),
         "its last execution failed"),
        (lambda root: shutil.rmtree(root / "store/evals/00cd"), "the store has other results"),
        (lambda root: seal(root / "store/runs/00ab", "failed"), "the store has other results"),
    ],
)  # fmt: skip
def test_what_else_could_change_it_has_it_executed_again(executed, project, change, why):
    change(project)
    assert freshness.why_again(executed, project) == [why]


def test_so_do_other_source_parameters_libraries_and_files_of_one_s_own(
    executed, project, monkeypatch
):
    other = replace(executed, seeds=(7,))
    assert freshness.why_again(other, project) == ["a parameter has changed"]
    monkeypatch.setattr(freshness, "source_hash", lambda *folders: "other")
    assert freshness.why_again(executed, project) == ["erlib's source has changed"]
    monkeypatch.undo()
    monkeypatch.chdir(project)
    monkeypatch.setenv("ERLIB_STORE", str(project / "store"))
    (project / "data/mine").mkdir(parents=True)
    (project / "data/mine/train.jsonl").write_text("")
    monkeypatch.setenv("ERLIB_DATA", str(project / "data"))
    assert freshness.why_again(executed, project) == [
        "the device, a library or a file of your own has changed"
    ]


def test_the_command_executes_what_is_up_to_date_only_when_forced(
    executed, project, monkeypatch, capsys
):
    done = []

    def execute(paper, parameters, root):
        done.append(paper)
        return root / "a page"

    monkeypatch.setattr("erlib.notebooks.execute", execute)
    assert main(["run", "--only", "er_lens"]) == 0 and done == []
    assert "up to date; --force executes it again" in capsys.readouterr().out
    assert main(["run", "--only", "er_lens", "--force"]) == 0 and done == ["er_lens"]
    write(project, "a = 2")
    assert main(["run", "--only", "er_lens"]) == 0 and done == ["er_lens"] * 2
