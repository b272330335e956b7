"""The quick profile's finished report: every artefact is there, and the pages open cleanly."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from erlib.catalogue import papers
from erlib.reports.recorded import statements
from tests.browser import NEEDS_CHROMIUM, chromium
from tests.readable import faults

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports" / "quick"
NOTEBOOKS = {name: paper.notebook for name, paper in papers().items()}
NEEDED = {
    "er_lens": [
        *(f"table-{n}" for n in range(1, 10)), "table-effects", "table-audit",
        "table-encoder",
        *(f"figure-{n}" for n in range(1, 15)),
    ],
    "regex": [
        *(f"table-{n}" for n in range(1, 11)), *(f"figure-{n}" for n in range(1, 5)),
        "table-data", "table-cost", "table-guide", "table-perturbation", "table-audit",
        "table-encoder",
    ],
    "ivra": [
        *(f"table-{n}" for n in range(1, 12)), *(f"figure-{n}" for n in range(1, 11)),
        "table-bases", "table-floor", "table-collusion", "table-encoder",
    ],
    "saloss": [
        *(f"table-{n}" for n in range(1, 9)), "table-2-tests", "table-3-tests", "table-audit",
        "figure-1", "table-encoder",
    ],
    "agreement": [
        "table-1a", "table-1b", *(f"table-{n}" for n in range(2, 12)), "table-audit",
        "table-1b-dropout", "table-2-tests", "table-4-tests", "table-11-tests",
        "table-encoder",
        *(f"figure-{n}" for n in range(1, 13)),
    ],
}  # fmt: skip
PAGES = ["index.html", *(f"{notebook}.html" for notebook in NOTEBOOKS.values())]

pytestmark = [
    pytest.mark.report,
    pytest.mark.skipif(
        not (REPORTS / "index.html").exists(), reason="the quick profile has not been run"
    ),
]


@cache
def page(name: str) -> BeautifulSoup:
    return BeautifulSoup((REPORTS / name).read_text(encoding="utf-8"), "html.parser")


def artefacts() -> pd.DataFrame:
    return pd.read_csv(REPORTS / "artefacts.csv", dtype=str, keep_default_na=False)


def test_every_artefact_is_listed_and_stands_at_its_place_in_the_report():
    listed = artefacts()
    for paper, ids in NEEDED.items():
        rows = listed[listed["paper"] == paper].set_index("id")
        html = page(f"{NOTEBOOKS[paper]}.html")
        for name in ids:
            assert int(rows.loc[name, "rows"]) > 0 and rows.loc[name, "sources"]
            place = html.find(id=f"{paper}-{name}")
            assert place is not None and place.get_text(strip=True)
            assert rows.loc[name, "reduced"] in place.get_text()


def test_tables_are_files_and_figures_are_png_and_pdf():
    for row in artefacts().itertuples():
        if row.kind == "figure":
            for ending in ("png", "pdf"):
                assert (
                    ROOT / "figures" / "quick" / f"{row.paper}-{row.id}.{ending}"
                ).stat().st_size > 5000
            assert row.alt not in ("", row.caption)
        if row.kind in ("table", "figure"):
            assert len(pd.read_csv(REPORTS / "tables" / f"{row.paper}-{row.id}.csv")) == int(
                row.rows
            )


def test_our_numbers_stand_beside_the_papers():
    cells = pd.read_csv(REPORTS / "tables" / "er_lens-table-2.csv")
    cell = cells.query("row == 'ER+Att' and column == 'SST-Test'").iloc[0]
    assert cell["paper"] == 94.33 and cell["n"] == 2 and 30 < cell["ours"] < 100  # per cent
    assert cell["difference"] == pytest.approx(cell["ours"] - 94.33)


def test_claims_have_the_contract_s_columns_and_quick_decides_none():
    claims = pd.read_csv(REPORTS / "claims.csv")
    columns = (
        "paper claim statement paper_value our_value ci_low ci_high seeds texts verdict reason "
        "source part unit scale no_effect lost note"
    )
    assert list(claims.columns) == columns.split()
    for paper in NOTEBOOKS:
        assert set(claims.loc[claims["paper"] == paper, "claim"]) == set(statements(paper))
    assert (claims["verdict"] == "not attempted").all()


def test_the_report_says_that_lexicon_rationales_are_lexicon_rationales():
    assert "nobody marked them in these texts" in page("01_er_lens.html").get_text()


def test_texts_left_out_of_plausibility_are_counted_in_the_report():
    assert "are left out: movie_snippets dev" in page("01_er_lens.html").get_text()


@pytest.mark.parametrize("name", NOTEBOOKS.values())
def test_the_executed_notebook_has_outputs_and_no_progress_bars_or_errors(name):
    notebook = json.loads((REPORTS / f"{name}.ipynb").read_text(encoding="utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
    assert len(outputs) >= 10
    assert {o["output_type"] for o in outputs} <= {"display_data", "execute_result"}


@pytest.mark.parametrize("paper", NOTEBOOKS)
def test_what_a_report_was_made_from_is_kept_beside_it(paper):
    sources = json.loads((REPORTS / f"{paper}.sources.json").read_text(encoding="utf-8"))
    assert sources["notebook"] and sources["profile"] and "objective task" in sources["versions"]
    corpora = [dd.get_text() for dd in page("index.html").select(".facts dd")]
    assert all(name in corpora[1] for name in sources["corpora"])


def test_every_link_and_picture_of_the_pages_exists():
    for name in PAGES:
        html = page(name)
        for element, attribute in (
            ("a", "href"),
            ("img", "src"),
            ("link", "href"),
            ("script", "src"),
        ):
            for found in html.find_all(element, **{attribute: True}):
                target, _, anchor = found[attribute].partition("#")
                assert not target.startswith(("http:", "https:", "//")) or element == "a", found
                if target and not target.startswith(("data:", "http")):
                    assert (REPORTS / target).exists(), target
                    if anchor:
                        assert page(target).find(id=anchor) is not None, found[attribute]
        assert all(image.get("alt") for image in html.find_all("img"))


@pytest.mark.browser
@NEEDS_CHROMIUM
def test_the_pages_open_in_a_browser_without_a_complaint_and_can_be_read_anywhere():
    with chromium() as browser:
        assert [fault for name in PAGES for fault in faults(browser, REPORTS / name)] == []


@pytest.mark.browser
@NEEDS_CHROMIUM
def test_every_table_of_a_report_sorts_and_comes_back():
    with chromium() as browser:
        tab = browser.new_page()
        for name in PAGES:
            tab.goto((REPORTS / name).as_uri())
            for table in tab.locator(":is(.artefact, .text) > .scroll > table").all():
                rows, heading = table.locator("tbody tr"), table.locator("th button").last
                before = rows.all_inner_texts()
                heading.click()
                ascending = rows.all_inner_texts()
                heading.click()
                heading.click()
                assert sorted(ascending) == sorted(before) and rows.all_inner_texts() == before
