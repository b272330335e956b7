"""The pages in a real browser: readable everywhere, and their tables sort and can be copied."""

from __future__ import annotations

import pandas as pd
import pytest

from erlib.reports import build_index, render_notebook
from erlib.reports.markup import table_html
from tests.browser import NEEDS_CHROMIUM, chromium
from tests.readable import DESK, PHONE, complaints, faults
from tests.reports.sample import finished_profile, html_output, notebook

pytestmark = [pytest.mark.browser, NEEDS_CHROMIUM]
TABLE = "#er_lens-table-2 table"


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    root = finished_profile(tmp_path_factory.mktemp("project"))
    return build_index("quick", root).parent


@pytest.fixture
def tab(browser, reports):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    said = complaints(tab)
    tab.goto((reports / "01_er_lens.html").as_uri())
    yield tab
    context.close()
    assert said == []


@pytest.mark.parametrize("name", ["index.html", "01_er_lens.html"])
def test_a_page_can_be_read_on_a_desk_and_a_phone_by_day_and_by_night(browser, reports, name):
    assert faults(browser, reports / name) == []


def test_what_could_not_be_read_is_found(browser, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<title>x</title><body style='background:#fff'><p style='color:#777'>pale</p>"
        "<p style='color:#000;opacity:.4'>faint</p><h1 style='color:#777'>large</h1>"
        "<p style='color:#767676'>just enough</p><img src='gone.png' alt='x'>"
        "<div style='width:2000px'>wide</div>"
    )
    found = " ".join(faults(browser, page))
    assert "pale" in found and "faint" in found
    assert "large" not in found and "just enough" not in found
    assert "gone.png" in found and "scrolls sideways" in found


def test_a_heading_sorts_by_its_column_and_the_third_time_as_it_was(tab):
    def column(number):
        cells = tab.locator(f"{TABLE} tbody tr td:nth-child({number})").all_inner_texts()
        return [cell.split("\n")[0] for cell in cells]

    shown = column(2)
    f1 = tab.locator(f"{TABLE} th").nth(1)
    assert shown == ["10.5 ± 0.1", "–", "−2.25"]
    f1.locator("button").click()
    assert (
        column(2) == ["−2.25", "10.5 ± 0.1", "–"] and f1.get_attribute("aria-sort") == "ascending"
    )
    f1.locator("button").click()
    assert column(2) == ["10.5 ± 0.1", "−2.25", "–"]  # what is missing stays last
    f1.locator("button").click()
    assert column(2) == shown and f1.get_attribute("aria-sort") is None
    tab.locator(f"{TABLE} th button").first.click()
    assert column(1) == ["a", "b 9", "b 10"]


def test_a_table_is_copied_as_it_stands_with_tabs(tab):
    tab.locator(f"{TABLE} th button").first.click()
    tab.locator("#er_lens-table-2").get_by_role("button", name="Copy").click()
    tab.get_by_text("Copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()").split("\n") == [
        "system\tF1", "a\t–", "b 9\t-2.25 paper 1", "b 10\t10.5 ± 0.1 paper 9",
    ]  # fmt: skip


def test_folds_open(tab):
    code = tab.locator("details.code pre").first
    assert not code.is_visible()
    tab.get_by_text("Code", exact=True).first.click()
    assert code.is_visible() and "value" in code.inner_text()
    tab.get_by_text("Reduced as above").click()
    assert tab.locator("#er_lens-figure-2").get_by_text("2 of 15 seeds.").is_visible()


def test_the_contents_wait_folded_on_a_phone(browser, reports):
    tab = browser.new_page(viewport={"width": PHONE, "height": 800})
    tab.goto((reports / "01_er_lens.html").as_uri())
    entry = tab.locator("nav li a").first
    assert not entry.is_visible()
    tab.get_by_text("Contents").click()
    assert entry.is_visible()
    tab.close()


def test_a_phone_says_what_each_verdict_means_and_how_many_claims_have_it(browser, reports):
    tab = browser.new_page(viewport={"width": PHONE, "height": 800})
    tab.goto((reports / "index.html").as_uri())
    legend = tab.locator(".verdicts li").filter(visible=True).all_inner_texts()
    assert [" ".join(text.split()) for text in legend] == [
        "✓ holds 1 as claimed, and large enough",
        "✗ fails 1 the other way, or beyond the margin",
        "· not attempted 1 too little measured to decide",
    ]
    tab.close()


def test_claims_are_filtered_by_verdict_and_paper_and_a_link_brings_them_back(browser, reports):
    tab = browser.new_page()
    tab.goto((reports / "index.html").as_uri())
    shown = tab.locator("tr[data-verdict]").filter(visible=True)
    assert shown.count() == 3
    tab.get_by_label("Verdict").select_option("fails")
    assert shown.count() == 1 and "1 claims" in tab.locator(".filters output").inner_text()
    tab.locator(".findings a", has_text="ER-C4").click()
    assert shown.count() == 3 and tab.locator("#er_lens-ER-C4").is_visible()
    tab.close()


def test_the_first_tab_stop_skips_to_the_content(browser, reports):
    for name in ("index.html", "01_er_lens.html"):
        tab = browser.new_page()
        tab.goto((reports / name).as_uri())
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        assert tab.locator(tab.evaluate("document.activeElement.hash")).count() == 1
        tab.close()


def test_two_rows_of_headings_sort_and_copy_by_the_column_they_stand_over(browser, tmp_path):
    frame = pd.DataFrame({"SST/ATT": [2, 1], "SST/DX": [3, 4], "Movies/ATT": [5, 6]})
    frame.index = pd.Index(["b", "a"], name="system")
    table = html_output(table_html(frame, "er_lens-table-1", ""))
    page = render_notebook(notebook(tmp_path / "01_er_lens.ipynb", table))
    tab = browser.new_page()
    tab.goto(page.as_uri())
    heads = tab.locator("#er_lens-table-1 thead tr")
    assert [h.strip() for h in heads.nth(0).locator("th").all_inner_texts()] == [
        "system", "SST", "Movies",
    ]  # fmt: skip
    heads.nth(1).locator("button").nth(2).click()
    heads.nth(1).locator("button").nth(2).click()  # descending by Movies/ATT: 6, 5
    first = tab.locator("#er_lens-table-1 tbody tr").first.inner_text().split()
    assert first == ["a", "1", "4", "6"]
    tab.close()


def test_a_table_too_wide_is_one_for_each_group(browser, tmp_path):
    frame = pd.DataFrame({f"{s}/{m}": [1.0] for s in "XYZ" for m in "abcd"}, index=["row"])
    html = table_html(frame, "er_lens-table-1", "")
    assert html.count("<table>") == 3 and html.count("<figure") == 1


def test_print_cuts_no_column(browser, tmp_path):
    wide = pd.DataFrame({f"a long heading {i}": ["some words here"] for i in range(14)})
    table = html_output(table_html(wide, "er_lens-table-1", ""))
    page = render_notebook(notebook(tmp_path / "01_er_lens.ipynb", table))
    tab = browser.new_page(viewport={"width": 760, "height": 1000})  # A4 less its margins
    tab.emulate_media(media="print")
    tab.goto(page.as_uri())
    box = tab.locator("#er_lens-table-1 .scroll")
    assert box.evaluate("e => e.scrollWidth <= e.clientWidth + 1")
    tab.close()


@pytest.mark.parametrize("headings", [True, False])
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_heading_stands_over_its_column_however_far_the_table_is_scrolled(
    browser, tmp_path, width, headings
):
    """Row headings stay where they are; without them the first column moves like any other."""
    wide = pd.DataFrame({f"a long heading {i}": ["some words here"] for i in range(20)})
    wide.index = pd.Index(["a row"], name="row") if headings else wide.index
    table = html_output(table_html(wide, "er_lens-table-1", ""))
    page = render_notebook(notebook(tmp_path / "01_er_lens.ipynb", table))
    tab = browser.new_page(viewport={"width": width, "height": 800})
    tab.goto(page.as_uri())

    def left(selector):
        return tab.locator(f"#er_lens-table-1 {selector}").first.bounding_box()["x"]

    before = left("thead th")
    tab.locator("#er_lens-table-1 .scroll").evaluate("box => { box.scrollLeft = 300; }")
    assert left("thead th") == left("tbody tr > *")
    assert left("thead th") == pytest.approx(before if headings else before - 300, abs=1)
    tab.close()
