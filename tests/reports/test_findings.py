"""A report's first sentences are its verdicts' own."""

from __future__ import annotations

from bs4 import BeautifulSoup

from erlib.reports.findings import findings_html
from erlib.reports.recorded import claim_rows, record
from tests.reports.sample import NASTY, three_verdicts


def rows(tmp_path):
    record("er_lens", three_verdicts(), profile="quick", root=tmp_path)
    return claim_rows("er_lens", "quick", tmp_path)


def test_what_held_and_what_did_not_are_told_with_our_effect_and_the_paper_s(tmp_path):
    html = findings_html(rows(tmp_path))
    assert "Of 3 claims: 1 holds, 1 fails, 1 is not attempted." in html
    held, did_not = html.index("What held."), html.index("What did not.")
    assert held < html.index(">ER-C4</a>") < did_not < html.index(">ER-C18</a>")
    assert 'href="#er_lens-claims"' in html and "AUC points" in html
    assert "What leans" not in html and ">ER-C1</a>" not in html


def test_of_many_findings_four_are_told_and_the_others_counted(tmp_path):
    (claim,) = [r for r in rows(tmp_path) if r["claim"] == "ER-C4"]
    html = findings_html([claim] * 7)
    assert html.count(">ER-C4</a>") == 4 and "<li>and 3 more.</li>" in html


def test_nothing_decided_is_said_and_nothing_recorded_says_nothing(tmp_path):
    (claim,) = [r for r in rows(tmp_path) if r["claim"] == "ER-C1"]
    assert "No claim was decided here." in findings_html([claim])
    assert findings_html([]) == ""


def test_where_every_claim_has_an_anchor_its_finding_leads_there(tmp_path):
    assert 'href="#er_lens-ER-C4"' in findings_html(rows(tmp_path), on_index=True)


def test_numbers_of_a_file_are_text(tmp_path):
    (claim,) = [r for r in rows(tmp_path) if r["claim"] == "ER-C4"]
    assert "<script>" not in findings_html([{**claim, "unit": NASTY}])


def test_the_index_draws_each_effect_and_folds_what_is_open(tmp_path):
    soup = BeautifulSoup(findings_html(rows(tmp_path), on_index=True), "html.parser")
    held = soup.find("a", string="ER-C4").find_parent("li")
    assert held.svg["aria-label"] == "ours 4.1, 3.85 to 4.35; paper 4.6"
    fold = soup.find("details")
    assert fold.summary.get_text() == "What was not attempted: 1 claim."
    assert fold.a["href"] == "#er_lens-ER-C1"
