from __future__ import annotations

import base64
import re

from bs4 import BeautifulSoup
from nbformat.v4 import new_output

from erlib.reports import render_notebook
from tests.reports.sample import NASTY, html_output, notebook

PIXEL = base64.b64encode(b"\x89PNG picture").decode()


def rendered(tmp_path, *outputs):
    page = render_notebook(notebook(tmp_path / "01_er_lens.ipynb", *outputs))
    assert page == tmp_path / "01_er_lens.html"
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def test_nothing_is_asked_of_another_host(tmp_path):
    soup = rendered(tmp_path, html_output("<table></table>"))
    assert soup.find("script") is None
    for tag in soup.find_all(["link", "img", "iframe", "source", "object"]):
        assert (tag.get("href") or tag.get("src")).startswith("data:")
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


def test_printed_text_is_escaped_and_progress_bars_show_their_last_state(tmp_path):
    soup = rendered(
        tmp_path,
        new_output("stream", name="stdout", text=NASTY),
        new_output("stream", name="stderr", text="10%\r50%\r100%\ndone\n"),
    )
    assert soup.find("pre", class_="output").get_text() == NASTY and soup.find("script") is None
    log = soup.find("details", class_="log").pre.get_text()
    assert log.split() == ["100%", "done"]


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


def test_pages_fit_phones_and_dark_rooms(tmp_path):
    page = str(rendered(tmp_path))
    assert 'name="viewport"' in page and "prefers-color-scheme: dark" in page
    assert re.search(r'<html lang="en', page)
