"""The quick profile's finished report: every artefact is there, and the pages open cleanly."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "reports" / "quick"
NEEDED = {"er_lens": ["table-2", "table-3", "table-4", "table-6", "figure-2", "figure-4"]}
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)

pytestmark = [
    pytest.mark.report,
    pytest.mark.skipif(
        not (REPORTS / "index.html").exists(), reason="the quick profile has not been run"
    ),
]


def page(name: str) -> BeautifulSoup:
    return BeautifulSoup((REPORTS / name).read_text(encoding="utf-8"), "html.parser")


def artefacts() -> pd.DataFrame:
    return pd.read_csv(REPORTS / "artefacts.csv", dtype=str, keep_default_na=False)


def test_every_artefact_is_listed_and_stands_at_its_place_in_the_report():
    listed = artefacts()
    for paper, ids in NEEDED.items():
        rows = listed[listed["paper"] == paper].set_index("id")
        html = page("01_er_lens.html")
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
        if row.kind in ("table", "figure"):
            assert len(pd.read_csv(REPORTS / "tables" / f"{row.paper}-{row.id}.csv")) == int(
                row.rows
            )


def test_our_numbers_stand_beside_the_papers():
    cells = pd.read_csv(REPORTS / "tables" / "er_lens-table-2.csv")
    cell = cells.query("row == 'ER+Att' and column == 'SST-Test'").iloc[0]
    assert cell["paper"] == 94.33 and cell["n"] == 2 and 60 < cell["ours"] < 100
    assert cell["difference"] == pytest.approx(cell["ours"] - 94.33)


def test_claims_have_the_contract_s_columns_and_two_seeds_decide_nothing():
    claims = pd.read_csv(REPORTS / "claims.csv")
    columns = "paper claim statement paper_value our_value ci_low ci_high seeds verdict"
    assert list(claims.columns[:9]) == columns.split()
    assert {"ER-C1", "ER-C4"} <= set(claims["claim"])
    assert (claims.loc[claims["seeds"] < 3, "verdict"] == "inconclusive").all()


def test_the_report_says_that_lexicon_rationales_are_lexicon_rationales():
    assert "nobody marked them in these texts" in page("01_er_lens.html").get_text()


def test_texts_left_out_of_plausibility_are_counted_in_the_report():
    assert "are left out: movie_snippets dev" in page("01_er_lens.html").get_text()


def test_the_executed_notebook_has_outputs_and_no_progress_bars_or_errors():
    notebook = json.loads((REPORTS / "01_er_lens.ipynb").read_text(encoding="utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
    assert len(outputs) >= 10
    assert {o["output_type"] for o in outputs} <= {"display_data", "execute_result"}


def test_every_link_and_picture_of_the_pages_exists():
    for name in ("index.html", "01_er_lens.html"):
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
@pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="no Chromium on this machine"
)
def test_the_pages_open_in_a_browser_without_a_complaint_and_fit_a_phone():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "CI needs Chromium for this test"
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        complaints: list[str] = []
        for width in (1280, 390):
            tab = browser.new_page(viewport={"width": width, "height": 900})
            tab.on(
                "console",
                lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None,
            )
            tab.on("pageerror", lambda error: complaints.append(str(error)))
            tab.on("requestfailed", lambda request: complaints.append(request.url))
            for name in ("index.html", "01_er_lens.html"):
                tab.goto((REPORTS / name).as_uri())
                assert tab.title()
                sideways = tab.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                assert sideways <= 0, f"{name} scrolls sideways by {sideways} px at {width} px"
        browser.close()
        assert complaints == []
