"""Is what the pages say true of the code?"""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import scipy.stats

from erlib.attributions.attribute import attribute
from erlib.attributions.registry import METHODS
from erlib.config import term
from erlib.data.schema import read_record
from erlib.losses.objective import OBJECTIVES, Step, build
from erlib.reports.criteria import read_criteria
from tests import tiny

ROOT = Path(__file__).parent.parent


def examples(page: str, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.S)


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")),
]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_to_a_file_leads_somewhere(page: str):
    text = (ROOT / page).read_text()
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert targets
    assert [t for t in targets if not (ROOT / page).parent.joinpath(t).exists()] == []


@pytest.mark.parametrize("page", sorted(path.name for path in ROOT.glob("docs/methods/*.md")))
def test_the_code_that_a_page_on_methods_names_is_there(page: str):
    named = re.findall(r"`(erlib/[\w/.]+)`", (ROOT / "docs/methods" / page).read_text())
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_example_attribution_works_as_it_stands(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(METHODS, "embedding_norm", None)  # and gone after the test
    exec(examples("CONTRIBUTING.md", "python")[0], {})
    classifier = tiny.classifier()
    results = attribute(classifier, tiny.TEXTS, "embedding_norm", level="token")
    entry = classifier.eval().forward(tiny.inputs(classifier)).entry
    for result, expected in zip(results, entry.pow(2).sum(-1).sqrt(), strict=True):
        assert result.scores == pytest.approx(expected[: len(result.scores)].tolist(), rel=1e-5)


def test_the_example_loss_works_as_it_stands(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(OBJECTIVES, "attention_entropy", None)  # and gone after the test
    exec(examples("CONTRIBUTING.md", "python")[1], {})
    classifier = tiny.classifier().eval()
    step = Step(classifier, tiny.batch(classifier))
    value = build(term("attention_entropy")).loss(step)["attention_entropy"]
    rows = step.forward().attentions[-1].mean(1)[:, 0].tolist()
    expected = [scipy.stats.entropy([a for a in row if a > 0]) for row in rows]
    assert value.item() == pytest.approx(sum(expected) / len(expected), rel=1e-5)

    value.backward()
    gradients = [p.grad for p in classifier.model.parameters() if p.grad is not None]
    assert gradients and all(g.isfinite().all() for g in gradients)


def test_the_example_entries_have_the_fields_of_real_ones():
    corpus, claim, _ = (tomllib.loads(text) for text in examples("CONTRIBUTING.md", "toml"))
    real = tomllib.loads((ROOT / "erlib/data/corpora.toml").read_text())
    assert set(*corpus.values()) <= {field for entry in real.values() for field in entry}
    real = tomllib.loads((ROOT / "erlib/papers/er_lens/claims.toml").read_text())
    assert claim.keys() <= real.keys()
    assert claim["claim"][0].keys() <= {field for entry in real["claim"] for field in entry}


def test_the_example_criterion_is_accepted():
    _, text, _ = examples("CONTRIBUTING.md", "toml")
    common = '[criteria]\ncannot = {}\nnight = "can"\n'
    (contrast,) = read_criteria("er_lens", common + text)["ER-C4"].contrasts
    assert contrast.asked == pytest.approx(74.6 - 70.0)


def test_the_example_paper_is_the_one_that_is_tested():
    toy = ROOT / "tests/toy/guided"
    notebook = json.loads((toy / "06_guided.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"]]
    *_, code, calls = examples("CONTRIBUTING.md", "python")
    *_, sizes = examples("CONTRIBUTING.md", "toml")
    assert code in (toy / "cells.py").read_text() and calls.strip() in cells
    assert sizes in (toy / "paper.toml").read_text()


def test_the_example_records_are_accepted():
    lines = [line for block in examples("docs/data.md", "json") for line in block.splitlines()]
    one, tree, pair, question = (json.loads(line) for line in lines)
    assert read_record(one, task="classify", classes=2)["rationale"] == [0, 1, 0, 1, 0]
    assert read_record(tree, task="classify", classes=2)["words"] == ["a", "gripping", "film"]
    assert read_record(pair, task="pair", classes=3)["label"] == 2
    assert read_record(question, task="span", classes=0)["answers"][0]["text"] == "A man"


def test_the_table_of_sites_is_what_was_measured_and_marks_the_defaults():
    drawing = runpy.run_path(str(ROOT / "docs/draw_site.py"))
    table = drawing["table"](pd.read_csv(ROOT / "docs/site.csv"))
    assert f"<!-- table -->\n\n{table}\n\n<!-- end -->" in (ROOT / "docs/site.md").read_text()


def test_the_table_of_claims_is_what_the_criteria_say():
    listing = runpy.run_path(str(ROOT / "docs/list_claims.py"))
    assert (ROOT / "docs/claims.md").read_text(encoding="utf-8") == listing["page"]()


def test_the_table_of_precisions_is_what_was_measured():
    measuring = runpy.run_path(str(ROOT / "docs/measure_precision.py"))
    table = measuring["table"](pd.read_csv(ROOT / "docs/precision.csv"))
    assert f"<!-- table -->\n\n{table}\n\n<!-- end -->" in (ROOT / "docs/precision.md").read_text()
