from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
import pytest
from bs4 import BeautifulSoup

from erlib.reports import artefact, beside, heatmap
from erlib.reports.ledger import read_rows
from erlib.reports.markup import examples_html, figure_html, table_html
from tests.reports.sample import NASTY, plain_figure

FRAME = pd.DataFrame({"system": ["Baseline", NASTY], "F1": [0.123456789, None], "n": [3, 4]})


@pytest.fixture
def emit(tmp_path):
    def call(id, content, **options):
        given = {"caption": "A caption.", "profile": "quick", "seeds": [0, 1], **options}
        artefact("er_lens", id, content, root=tmp_path, **given)

    return call


def test_a_table_is_saved_in_full_and_entered_once(tmp_path, emit):
    emit("table-2", FRAME, sources=["aa", "bb", "aa"], reduced="2 of 15 seeds.")
    emit("table-2", FRAME.head(1), caption="Another.")
    saved = pd.read_csv(tmp_path / "reports/quick/tables/er_lens-table-2.csv")
    assert saved["F1"].tolist() == [0.123456789]
    assert read_rows(tmp_path / "reports/quick/artefacts.csv") == [
        {
            "paper": "er_lens", "id": "table-2", "kind": "table", "rows": "1", "seeds": "0 1",
            "sources": "", "reduced": "", "caption": "Another.",
            "alt": "",
        }
    ]  # fmt: skip


def test_hashes_of_sources_and_what_is_reduced_are_kept(tmp_path, emit):
    emit("table-2", FRAME, sources=["aa", "bb", "aa"], reduced="2 of 15 seeds.")
    row = read_rows(tmp_path / "reports/quick/artefacts.csv")[0]
    assert (row["sources"], row["reduced"], row["rows"]) == ("aa bb", "2 of 15 seeds.", "2")


def test_a_figure_is_saved_as_png_and_pdf_that_do_not_change(tmp_path, emit):
    folder = tmp_path / "figures/quick"
    saved = []
    for _ in range(2):
        emit("figure-9", plain_figure(), data=FRAME)
        saved.append(
            [(folder / f"er_lens-figure-9.{kind}").read_bytes() for kind in ("png", "pdf")]
        )
    assert saved[0] == saved[1]
    png, pdf = saved[0]
    assert png.startswith(b"\x89PNG") and pdf.startswith(b"%PDF") and b"CreationDate" not in pdf
    assert read_rows(tmp_path / "reports/quick/artefacts.csv")[0]["kind"] == "figure"
    assert (tmp_path / "reports/quick/tables/er_lens-figure-9.csv").exists()


def test_the_alt_text_of_a_figure_is_what_is_seen_in_it_and_a_given_one_wins(
    tmp_path, emit, monkeypatch
):
    shown = []
    monkeypatch.setattr("erlib.reports.artefacts.show", lambda html, _: shown.append(html))
    emit("figure-1", plain_figure())
    emit("figure-2", plain_figure(), alt="F1 rises.")
    seen = [parsed(html).img["alt"] for html in shown]
    assert seen == ["A line chart: “F1 (%)” against “epoch”.", "F1 rises."]
    assert [row["alt"] for row in read_rows(tmp_path / "reports/quick/artefacts.csv")] == seen


def test_no_figure_stays_open(emit):
    figure, axes = plt.subplots()
    axes.plot([1, 2])
    emit("figure-1", figure)
    assert figure.number not in plt.get_fignums()


def test_a_table_beside_the_papers_saves_its_long_form(tmp_path, emit):
    ours = pd.DataFrame({"row": "Baseline", "column": "Movies", "value": [90.0, 92.0]})
    emit("table-2", beside(ours, "er_lens", "table2"))
    saved = pd.read_csv(tmp_path / "reports/quick/tables/er_lens-table-2.csv")
    cell = saved[(saved["row"] == "Baseline") & (saved["column"] == "Movies")].iloc[0]
    assert (cell["ours"], cell["n"], cell["paper"]) == (91.0, 2, 91.01)


@pytest.mark.parametrize("id", ["Table 2", "table2", "figure-", "../x", 'table-2" onload="'])
def test_ids_of_another_form_are_refused(emit, id):
    with pytest.raises(ValueError, match="table-2, figure-9"):
        emit(id, FRAME)


def test_unknown_papers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'er_lens'"):
        artefact("er_lense", "table-1", FRAME, caption="", profile="quick", seeds=[], root=tmp_path)


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def test_table_html_has_its_id_and_escapes_every_cell():
    soup = parsed(table_html(FRAME, "er_lens-table-2", NASTY, reduced=NASTY, notes=[NASTY]))
    assert soup.find(id="er_lens-table-2") is not None and soup.find("script") is None
    cells = [td.get_text() for td in soup.find_all("td")]
    assert cells == ["Baseline", "0.12", "3", NASTY, "–", "4"]
    assert soup.figcaption.get_text() == f"Table 2. {NASTY}"
    assert [p.get_text() for p in soup.find_all("p")] == [f"Reduced: {NASTY}", NASTY]


def test_lines_of_a_cell_are_set_under_it_and_index_names_are_headings():
    frame = pd.DataFrame({"a<b": ["1\n<i>"]}, index=pd.Index(["x & y"], name="row"))
    soup = parsed(table_html(frame, "er_lens-table-1", ""))
    assert [th.get_text() for th in soup.find_all("th")] == ["row", "a<b", "x & y"]
    assert soup.td.small.get_text() == "<i>" and soup.td.i is None


def test_figure_html_has_alt_text_and_no_way_out_of_its_attributes():
    soup = parsed(figure_html("data:image/png;base64,AA", "er_lens-figure-1", NASTY, NASTY))
    assert soup.img["alt"] == NASTY and soup.img["src"].startswith("data:")
    assert soup.figure["id"] == "er_lens-figure-1" and NASTY in soup.figcaption.get_text()


def test_plain_text_examples_are_escaped_and_heatmaps_are_not():
    assert parsed(examples_html(NASTY, "er_lens-examples-1", "")).pre.get_text() == NASTY

    class Text:
        tokens, scores = [NASTY], [1.0]

    soup = parsed(examples_html(heatmap([Text()]), "er_lens-examples-1", ""))
    assert soup.find("div", class_="heatmap") is not None and soup.find("script") is None


def test_content_of_another_kind_is_refused(emit):
    with pytest.raises(TypeError, match="not list"):
        emit("table-1", [1, 2])
