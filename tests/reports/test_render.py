from __future__ import annotations

import base64
import re
import struct
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from nbconvert.filters.markdown import markdown2html
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from erlib.reports import render_notebook
from erlib.reports.heatmap import heatmap
from erlib.reports.markup import figure_html, plain, png_uri, table_html
from erlib.reports.render import prose_html
from erlib.reports.sanitised import sanitised
from erlib.reports.site import interval_svg
from tests.reports.sample import NASTY, html_output, notebook

PIXEL = base64.b64encode(b"\x89PNG picture").decode()
PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 150, 100)  # one inch wide


def rendered(tmp_path, *outputs):
    page = render_notebook(notebook(tmp_path / "01_er_lens.ipynb", *outputs))
    assert page == tmp_path / "01_er_lens.html"
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def test_nothing_is_asked_of_another_host(tmp_path):
    soup = rendered(tmp_path, html_output("<table></table>"))
    assert [script.attrs for script in soup.find_all("script")] == [{"type": "module"}]
    for tag in soup.find_all(["link", "img", "iframe", "source", "object"]):
        assert (tag.get("href") or tag.get("src")).startswith("data:")
    assert "://" not in soup.script.get_text()
    css = "".join(style.get_text() for style in soup.find_all("style"))
    assert "url(" not in css and "@import" not in css


def test_the_page_has_a_title_and_a_table_of_contents_that_leads_somewhere(tmp_path):
    soup = rendered(tmp_path)
    assert soup.title.get_text() == "A title"
    links = [a["href"] for a in soup.nav.find_all("a") if a["href"].startswith("#")]
    assert len(links) == len(set(links)) == 3
    for link in links:
        assert len(soup.find_all(id=link[1:])) == 1
    assert [a.get_text() for a in soup.nav.ol.find_all("a")] == ["Results"] * 3


def test_code_is_folded_and_escaped(tmp_path):
    soup = rendered(tmp_path)
    code = soup.find("details", class_="code")
    assert not code.has_attr("open") and "value = '<b>'" in code.pre.get_text()
    assert code.find("b") is None


def test_code_without_outputs_shares_the_fold_of_the_code_that_it_leads_to(tmp_path):
    shown = [new_output("execute_result", data={"text/plain": "3"})]
    cells = [new_code_cell("a = 1"), new_code_cell("a + 2", outputs=shown), new_code_cell("b = 1")]
    nbformat.write(new_notebook(cells=cells), tmp_path / "x.ipynb")
    page = render_notebook(tmp_path / "x.ipynb").read_text(encoding="utf-8")
    folds = BeautifulSoup(page, "html.parser").find_all("details", class_="code")
    assert [fold.pre.get_text().split() for fold in folds] == [
        ["a", "=", "1", "a", "+", "2"], ["b", "=", "1"],
    ]  # fmt: skip


def published(tmp_path, picture: bytes, **files: str):
    """A page at reports/quick with a figure and a table, and the files beside it."""
    for name, content in {"figures/quick/er_lens-figure-1.png": PNG, **files}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    shown = [
        table_html(pd.DataFrame({"a": [1]}), "er_lens-table-1", "", reduced="Less."),
        figure_html(png_uri(picture), "er_lens-figure-1", "A caption.", "Alt.", reduced="Less."),
        table_html(pd.DataFrame({"a": [1]}), "er_lens-table-2", "", reduced="Even less."),
    ]
    (tmp_path / "reports/quick").mkdir(parents=True, exist_ok=True)
    return rendered(tmp_path / "reports/quick", *map(html_output, shown))


def test_a_figure_comes_from_its_file_at_the_size_it_was_drawn_for(tmp_path):
    image = published(tmp_path, PNG).img
    assert image["src"] == image.parent["href"] == "../../figures/quick/er_lens-figure-1.png"
    assert (image["width"], image["height"], image["alt"]) == ("96", "64", "Alt.")


def test_a_figure_whose_file_is_another_stays_in_the_page(tmp_path):
    assert published(tmp_path, b"\x89PNG of an earlier run").img["src"].startswith("data:")


def test_a_table_links_to_its_numbers_where_they_are(tmp_path):
    soup = published(tmp_path, PNG, **{"reports/quick/tables/er_lens-table-1.csv": b"a"})
    assert soup.find(id="er_lens-table-1").find("a", string="CSV")["href"] == (
        "tables/er_lens-table-1.csv"
    )
    assert soup.find(id="er_lens-table-2").find("a", string="CSV") is None


def test_what_is_reduced_is_said_once_in_full_and_folded_where_it_is_the_same(tmp_path):
    soup = published(tmp_path, PNG)
    open_at = {f["id"]: f.find("p", class_="reduced") for f in soup.find_all("figure")}
    assert [i for i, line in open_at.items() if line] == ["er_lens-table-1", "er_lens-table-2"]
    folded = soup.find(id="er_lens-figure-1").find("details", class_="reduced")
    assert not folded.has_attr("open") and folded.p.get_text() == "Reduced: Less."


def test_a_table_written_in_markdown_scrolls_by_itself(tmp_path):
    written = new_output("display_data", data={"text/markdown": "| a | b |\n|---|---|\n| 1 | 2 |"})
    table = rendered(tmp_path, written).find("td", string="1").find_parent("table")
    assert table.parent["class"] == ["scroll"]


def test_printed_text_is_escaped_and_progress_bars_show_their_last_state(tmp_path):
    soup = rendered(
        tmp_path,
        new_output("stream", name="stdout", text=NASTY),
        new_output("stream", name="stderr", text="10%\r50%\r100%\ndone\n"),
    )
    assert soup.find("pre", class_="output").get_text() == NASTY
    assert "alert" not in "".join(script.get_text() for script in soup.find_all("script"))
    log = soup.find("details", class_="log").pre.get_text()
    assert log.split() == ["100%", "done"]


HARM = {
    "a script": "<script>alert(1)</script>",
    "a handler": '<img src="x" onerror="alert(1)">',
    "a link that runs": '<a href="javascript:alert(1)">x</a>',
    "a link to a page of its own": '<a href=" data:text/html,<script>alert(1)</script>">x</a>',
    "a script in a drawing": '<svg onload="alert(1)"><script>alert(1)</script></svg>',
    "a style in an equation": "<math><mtext><table><mglyph><style><img onerror=alert(1)>",
    "a frame": '<iframe src="data:text/html,x"></iframe>',
    "a form": '<form action="https://example.org"><input onfocus="alert(1)"></form>',
    "a picture from elsewhere": '<img src="https://example.org/x.png">',
    "a background from elsewhere": '<p style="background:u\\72l(//example.org)">x</p>',
    "a rule from elsewhere": '<style>@import "https://example.org"</style>',
    "another base": '<base href="https://example.org">',
    "another page": '<meta http-equiv="refresh" content="0;url=https://example.org">',
}


@pytest.mark.parametrize("harm", HARM.values(), ids=HARM)
@pytest.mark.parametrize("way", ["output", "Markdown", "prose"])
def test_what_would_run_or_fetch_does_not_reach_the_page(tmp_path, harm, way):
    cells = {
        "output": new_code_cell("1", outputs=[html_output(harm)]),
        "Markdown": new_code_cell(
            "1", outputs=[new_output("display_data", data={"text/markdown": f"Text.\n\n{harm}"})]
        ),
        "prose": new_markdown_cell(f"Text.\n\n{harm}"),
    }
    nbformat.write(new_notebook(cells=[cells[way]]), tmp_path / "x.ipynb")
    page = render_notebook(tmp_path / "x.ipynb").read_text(encoding="utf-8")
    main = BeautifulSoup(page, "html.parser").main
    assert not main.find_all(["script", "style", "iframe", "form", "input", "base", "meta"])
    for tag in main.find_all(True):
        assert not any(name.startswith("on") for name in tag.attrs)
        assert not tag.get("src") and "example" not in str(tag.attrs)
        assert not re.match("javascript|data", tag.get("href", "").strip())


def test_what_reports_show_reaches_the_page_as_it_is(tmp_path):
    scored = SimpleNamespace(tokens=["fine", "<b>"], scores=np.array([1.0, -0.5]))
    row = {"our_value": "1", "paper_value": "2", "ci_low": "0", "ci_high": "3", "no_effect": "0"}
    cells = pd.DataFrame({"a": [1.5]}, index=pd.Index(["x"], name="row"))
    shown = [
        heatmap([scored], rationales=[[1, 0]]),
        table_html(cells, "er_lens-table-1", "A caption.", notes=["A note."]),
        figure_html(png_uri(PNG), "er_lens-figure-1", "A caption.", "Alt."),
        interval_svg(row),
        prose_html(
            r"$$\frac{\sum_i x_i^2}{\sqrt{y}} \begin{pmatrix} a & b \end{pmatrix}$$ $\hat y$"
        ),
    ]
    for html in map(str, shown):
        there, before = (BeautifulSoup(h, "html.parser") for h in (sanitised(html), html))
        assert there == before


def test_errors_are_shown(tmp_path):
    soup = rendered(
        tmp_path,
        new_output(
            "error",
            ename="ValueError",
            evalue="<no>",
            traceback=["\x1b[31mValueError\x1b[0m: <no>"],
        ),
    )
    assert soup.find("pre", class_="error").get_text() == "ValueError: <no>"


def test_pictures_have_alt_text(tmp_path):
    soup = rendered(
        tmp_path, new_output("display_data", data={"image/png": PIXEL, "text/plain": "<Figure>"})
    )
    assert soup.img["alt"] == "Figure: <Figure>"
    assert soup.img["src"] == f"data:image/png;base64,{PIXEL}"


def test_plain_results_are_escaped(tmp_path):
    soup = rendered(tmp_path, new_output("execute_result", data={"text/plain": "'<u>x</u>'"}))
    assert soup.find("u") is None and "'<u>x</u>'" in soup.get_text()


@pytest.mark.parametrize(
    "name", ["a_b_c", "*x*", "[l](//x)", "<script>", "x&amp;y", "`q` ~~r~~", "\\_"]
)
def test_a_name_in_markdown_stands_for_itself(name):
    said = BeautifulSoup(markdown2html(plain(name)), "html.parser")
    assert said.get_text().strip() == name and [tag.name for tag in said.find_all(True)] == ["p"]


def test_pages_fit_phones_and_dark_rooms(tmp_path):
    page = str(rendered(tmp_path))
    assert 'name="viewport"' in page and "prefers-color-scheme: dark" in page
    assert re.search(r'<html lang="en', page)
