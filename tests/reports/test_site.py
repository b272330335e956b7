from __future__ import annotations

import json
from urllib.parse import unquote

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from erlib.reports import build_index
from erlib.reports.footer import duration
from erlib.reports.interval_plot import interval_svg
from erlib.reports.ledger import read_rows
from tests.reports.sample import NASTY, finished_profile


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    root = finished_profile(tmp_path_factory.mktemp("project"))
    page = build_index("quick", root)
    return page, BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


def test_every_link_and_image_leads_to_something(profile):
    page, soup = profile
    targets = [a["href"] for a in soup.find_all("a")] + [i["src"] for i in soup.find_all("img")]
    assert len(targets) > 10
    for target in targets:
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), target
        if anchor:
            there = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
            assert there.find(id=anchor) is not None, target


def test_nothing_is_asked_of_another_host(profile):
    _, soup = profile
    assert [script.attrs for script in soup.find_all("script")] == [{"type": "module"}]
    for tag in soup.find_all(["link", "img", "iframe", "source", "object"]):
        address = tag.get("href") or tag.get("src")
        assert not address.startswith(("http:", "https:", "//"))


def test_each_claim_has_its_verdict_values_and_interval(profile):
    page, soup = profile
    rows = read_rows(page.parent / "claims.csv")
    assert {r["verdict"] for r in rows} == {"holds", "not attempted", "fails"}
    for row in rows:
        shown = soup.find(id=f"er_lens-{row['claim']}").get_text(" ", strip=True)
        assert row["statement"] in shown and row["verdict"] in shown and row["seeds"] in shown
    assert "2 seeds lost" in soup.find(id="er_lens-ER-C18").get_text()


def test_claims_link_to_the_tables_that_exist_and_name_those_that_do_not(profile):
    _, soup = profile
    cell = soup.find(id="er_lens-ER-C1")
    assert cell.find("a", string="Table 2")["href"] == "01_er_lens.html#er_lens-table-2"
    other = soup.find(id="er_lens-ER-C4")
    assert "Table 3" in other.get_text() and other.find("a", string="Table 3") is None


def test_what_was_found_stands_first_with_every_verdict_explained(profile):
    _, soup = profile
    assert soup.main.section["id"] == "found"
    legend = [li.get_text(" ", strip=True) for li in soup.find(class_="verdicts").find_all("li")]
    assert legend == [
        "✓ holds 1 as claimed, and large enough",
        "✗ fails 1 the other way, or beyond the margin",
        "· not attempted 1 too little measured to decide",
    ]
    told = {a.get_text(): a["href"] for a in soup.find(id="found").select(".findings a")}
    assert told == {name: f"#er_lens-{name}" for name in ("ER-C4", "ER-C18", "ER-C1")}


def test_a_reader_is_told_how_far_to_trust_it(tmp_path):
    root = finished_profile(tmp_path)
    tables = root / "reports/quick/tables"
    (tables / "er_lens-table-corpora.csv").write_text(
        "corpus,from,is,why\nmovie_snippets,packaged,stand-in,x\nimdb_reviews,packaged,sample,y\n"
    )
    (tables / "saloss-table-corpora.csv").write_text(
        "corpus,from,is,why\nmovie_snippets,packaged,stand-in,x\nsnli,packaged,official,\n"
    )
    (tables / "er_lens-table-profile.csv").write_text(
        'what,here,paper\n"seeds","0, 1","0, 1, 2"\nencoder,minilm,bigbird\n'
    )
    (tables / "saloss-table-profile.csv").write_text(
        "what,here,paper\nencoder,minilm,BERT-base\nlayers of the encoder,2,12\n"
    )
    (tables / "er_lens-table-encoder.csv").write_text("set,difference\na,-4\nb,2\nc,-0.1\n")
    (tables / "saloss-table-1.csv").write_text(
        "row,column,metric,ours,paper,difference\n"
        "SST,Baseline,f1_macro,.8,.9,-.1\nAG,Baseline,f1_macro,.7,.95,-.25\n"
        "M,Baseline,f1_macro,.7,.9,-.2\nSST,SaLoss,f1_macro,.1,.9,-.8\n"
    )
    soup = BeautifulSoup(build_index("quick", root).read_text(encoding="utf-8"), "html.parser")
    said = [li.get_text() for li in soup.find(class_="trust").find_all("li")]
    assert said[0].endswith("1 stand-in, 1 sample, 1 official.")
    assert said[1] == (
        "Encoders that stand for the papers’: minilm for bigbird, BERT-base, of some the first "
        "layers only."
    )
    assert said[2].startswith("Rationales are ")
    assert said[3].startswith("Seeds behind a claim: 1 to ")
    assert (
        said[-2]
        == "The Baselines’ task scores are 20 points below the papers’ (median of 3 cells)."
    )
    assert said[-1].startswith("On 2 of 3 sets the Baseline is below logistic regression")


def test_our_value_leads_to_the_first_table_that_exists(profile):
    _, soup = profile
    value = soup.find(id="er_lens-ER-C18").find("td", class_="value")
    assert value.a["href"] == "01_er_lens.html#er_lens-table-2" and value.a.get_text() == "0.962"


def test_the_index_says_on_what_and_at_which_revision(tmp_path):
    root = finished_profile(tmp_path)
    sources = {"models": ["minilm"], "corpora": ["tweets", "imdb_reviews"], "seconds": 3900.0}
    (root / "reports/quick/er_lens.sources.json").write_text(json.dumps(sources))
    made = json.loads((root / "reports/quick/er_lens.provenance.json").read_text())
    made["environment"]["revision"] = "0123456789abcdef+"
    (root / "reports/quick/er_lens.provenance.json").write_text(json.dumps(made))
    soup = BeautifulSoup(build_index("quick", root).read_text(encoding="utf-8"), "html.parser")
    facts = [dd.get_text() for dd in soup.find("dl", class_="facts").find_all("dd")]
    assert facts[:2] == ["minilm", "imdb_reviews, tweets"]
    assert facts[3].startswith("1 h 05 min, workers") and len(facts) == 5
    assert facts[4] == "0123456789+"
    cells = [td.get_text() for td in soup.find(id="provenance").find_all("td")]
    assert cells[1:5] == ["1", "1", "1 h 05 min", "1 min 15 s"] and cells[-1] == "0123456789+"


def test_only_what_is_committed_is_linked(profile):
    """No PDF, no executed notebook, and CSVs of tables alone: figures may have single texts'."""
    _, soup = profile
    targets = {a["href"].partition("#")[0] for a in soup.find_all("a")} - {""}
    assert targets == {
        "01_er_lens.html", "tables/er_lens-table-2.csv", "claims.csv", "claims_parts.csv",
        "artefacts.csv",
    }  # fmt: skip


def test_what_was_run_is_said_first(profile):
    _, soup = profile
    lead = soup.find(class_="lead").get_text()
    assert lead.startswith("The quick profile: 1 notebook, 1 training run and 1 evaluation on cpu")
    assert "with packaged data" in lead
    assert "3 claims evaluated: 1 holds, 1 fails, 1 is not attempted." in lead
    assert "some 1 could be decided wrongly by chance" in lead


def test_text_from_elsewhere_is_escaped(profile):
    _, soup = profile
    listed = soup.find("details", class_="tables").li.get_text()
    assert NASTY in listed and "alert" not in soup.script.get_text()


def test_images_have_alt_text(profile):
    _, soup = profile
    image = soup.find("img")
    assert image["alt"] == "A line chart: “F1 (%)” against “epoch”."
    assert image["alt"] not in image.find_parent("figure").figcaption.get_text()
    assert all(svg.get("aria-label") or svg.get("aria-hidden") for svg in soup.find_all("svg"))


def test_a_figure_from_before_figures_were_described_has_its_caption(tmp_path):
    root = finished_profile(tmp_path)
    artefacts = root / "reports/quick/artefacts.csv"
    pd.read_csv(artefacts, dtype=str).drop(columns="alt").to_csv(artefacts, index=False)
    soup = BeautifulSoup(build_index("quick", root).read_text(encoding="utf-8"), "html.parser")
    assert soup.find("img")["alt"] == "Per seed."


def test_provenance_is_kept_as_data_too(profile):
    page, soup = profile
    made = json.loads((page.parent / "er_lens.provenance.json").read_text())
    assert made["runs"] == ["ab" * 32] and made["environment"]["packages"]["torch"]
    assert "1 min 15 s" in soup.find(id="provenance").get_text()


def test_an_empty_profile_still_has_a_page(tmp_path):
    page = build_index("cpu", tmp_path)
    assert "No claim has been evaluated" in page.read_text(encoding="utf-8")


def test_the_interval_is_drawn_to_scale():
    row = {"ci_low": "2", "ci_high": "6", "our_value": "4", "paper_value": "10", "no_effect": "0"}
    soup = BeautifulSoup(interval_svg(row), "html.parser")
    zero, line = soup.find_all("line")
    left, right = float(zero["x1"]), float(soup.path["d"].split()[0][1:])
    at = [(float(x) - left) / (right - left) for x in (line["x1"], line["x2"], soup.circle["cx"])]
    assert at == pytest.approx([0.2, 0.6, 0.4], abs=0.002)
    assert soup.svg["aria-label"] == "ours 4, 2 to 6; paper 10"


@pytest.mark.parametrize(
    ("seconds", "said"), [(41.6, "42 s"), (200, "3 min 20 s"), (3900, "1 h 05 min")]
)
def test_durations_are_said_as_readers_say_them(seconds, said):
    assert duration(seconds) == said
