import csv
from datetime import date

import numpy as np
import pytest
from bs4 import BeautifulSoup

from erlib.papers.evidence import Evidence, Reading, decide_claims
from erlib.reports.criteria import criteria
from erlib.reports.looks import changes, foresight, look, looked
from erlib.reports.recorded import (
    by_chance,
    claims_html,
    part_row,
    record,
    statements,
    summarise,
    tally,
    verdict_verb,
)
from erlib.reports.site import build_index
from erlib.reports.staging import publish, staged
from erlib.reports.verdicts import VERBS

COLUMNS = [
    "paper", "claim", "statement", "paper_value", "our_value", "ci_low", "ci_high", "seeds",
    "texts", "verdict", "reason", "source", "part", "unit", "scale", "no_effect", "lost", "note",
]  # fmt: skip
OVER = {
    "over ER+AttR": Evidence([2.0, 2.1, 1.9], texts=400),
    "over ER+IxG": Evidence([0.5, 2.5, -1]),
}


def verdicts(given=None, paper="er_lens", profile="cpu", **rest):
    given = (
        {"ER-C1": {"mean of all": Evidence([2.0, 2.1, 1.9])}, "ER-C2": OVER}
        if given is None
        else given
    )
    return decide_claims(paper, lambda cell: None, given, profile=profile, **rest)


def part(paper, claim, name, evidence):
    found = verdicts({claim: {name: evidence}}, paper, "paper")[claim]
    return next(one for one in found.parts if one.name == name)


def rows(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_claims_has_a_row_for_each_claim_and_parts_one_for_each_part(tmp_path):
    found = verdicts(lost={"ER-C1": 1})
    record("er_lens", found, profile="cpu", notes={"ER-C2": "Longer trained."}, root=tmp_path)
    claims = rows(tmp_path / "reports/cpu/claims.csv")
    parts = rows(tmp_path / "reports/cpu/claims_parts.csv")
    assert list(claims[0]) == COLUMNS
    assert [r["claim"] for r in claims] == list(statements("er_lens"))
    assert len(parts) == 12 + sum(len(c.contrasts) for c in criteria("er_lens").values())
    first, second = claims[:2]
    assert (first["verdict"], first["our_value"], first["seeds"], first["lost"]) == (
        "holds", "2", "3", "1",
    )  # fmt: skip
    assert second["part"] == "over ER+IxG" and second["note"] == "Longer trained."
    assert claims[2]["verdict"] == "not attempted" and claims[2]["our_value"] == ""


def test_a_papers_rows_take_the_place_of_all_that_it_had_and_leave_the_others(tmp_path):
    record("agreement", verdicts({}, "agreement"), profile="cpu", root=tmp_path)
    for _ in range(2):
        record("er_lens", verdicts(), profile="cpu", root=tmp_path)
    claims = rows(tmp_path / "reports/cpu/claims.csv")
    assert [r["paper"] for r in claims] == ["er_lens"] * 24 + ["agreement"] * 13


def test_a_part_shows_every_interval_and_the_tests_beside():
    row = part_row(part("er_lens", "ER-C2", "over ER+AttR", Evidence([2.0, 2.1, 1.9])))
    widths = [float(row[f"high_{c}"]) - float(row[f"low_{c}"]) for c in (95, 90, 80)]
    assert widths == sorted(widths, reverse=True)
    assert float(row["t_low"]) == pytest.approx(2 - 4.302653 * 0.1 / 3**0.5, abs=1e-5)
    assert row["sign_flip_p"] == "0.25" and row["verdict"] == "holds" and row["seeds"] == "3"


@pytest.mark.parametrize(("paper", "claim", "name", "evidence", "said"), [
    ("er_lens", "ER-C1", "mean of all", [0.1, 2.1, 0.5], "even the 80 % interval includes 0"),
    ("ivra", "IV-C15", "figure-9 training_seconds: Baseline → SIM", [0.1, 0.11, 0.12],
     "Ratio 1.12 (90 % interval 1.1 to 1.14; 3 repetitions): it lies below 2."),
    ("ivra", "IV-C15", "figure-9 training_seconds: SIM → CONS", [-0.4, 0.2, 0.5],
     "even the 80 % interval includes 1"),
    ("regex", "RX-C9", "mean of all", [0.02, 0.01, 0.0, 0.01], "4 models): it lies below +0.05."),
    ("saloss", "SL-C8", "SaLoss and Baseline", [0.0, 0.01, -0.01], "it lies within ±0.03."),
])  # fmt: skip
def test_the_sentence_belongs_to_the_rule_and_the_scale(paper, claim, name, evidence, said):
    row = part_row(part(paper, claim, name, Evidence(evidence, base=0.5)))
    assert said in row["reason"]


def test_no_sentence_says_of_a_ratio_that_it_includes_zero():
    for claim, c in criteria("ivra").items():
        for contrast in c.contrasts:
            if contrast.scale == "log":
                for spread in (0.01, 0.5, 3.0):
                    d = Evidence(np.array([-1.0, 0.5, 1.0]) * spread)
                    reason = part_row(part("ivra", claim, contrast.name, d))["reason"]
                    assert "includes 0" not in reason and " 0," not in reason


def test_an_open_claim_says_what_would_decide_it_and_at_what_cost():
    found = verdicts(hours={"ER-C2": 0.5})["ER-C2"]
    assert found.word == "open"
    assert "An effect of +5" in found.reason and "could be found with 80 % power" in found.reason
    seeds = int(found.reason.split("it takes ")[1].split()[0])
    assert (
        f"{seeds} seeds in place of 3, some {(seeds - 3) * 0.5:.2g} more hours here" in found.reason
    )


def test_effects_on_fishers_z_are_printed_as_r_at_the_baselines_mean():
    z = np.arctanh(0.5) + np.array([0.3, 0.31, 0.29]) - np.arctanh(0.5)
    found = part(
        "agreement", "AG-C4", "table2 DBERT|SST pearson_r: Base → Tying", Evidence(z, base=0.5)
    )
    assert found.ours == pytest.approx(np.tanh(np.arctanh(0.5) + 0.3) - 0.5)
    theirs = np.arctanh(0.60) - np.arctanh(0.28)
    assert found.paper == pytest.approx(np.tanh(np.arctanh(0.5) + theirs) - 0.5)
    assert found.null == 0.0


def test_the_table_folds_the_parts_under_their_claim(tmp_path):
    record("er_lens", verdicts(), profile="cpu", root=tmp_path)
    soup = BeautifulSoup(claims_html("er_lens", "cpu", tmp_path), "html.parser")
    assert (
        soup.find("figure", id="er_lens-claims")
        .figcaption.get_text()
        .startswith("Claims. 24 claims")
    )
    folded = soup.find_all("details", class_="parts")
    assert folded[0].summary.get_text() == "2 parts"
    cells = [td.get_text() for td in folded[0].tbody.find_all("td")]
    assert cells[0] == "over ER+AttR" and cells[3:6] == ["3", "400", "✓ holds"]
    second = soup.tbody.find_all("tr", recursive=False)[1]
    assert second.find("a", string="Table 2")["href"] == "#er_lens-table-2"
    assert "Unit: F1 points." in second.get_text()


def test_every_verdict_has_a_badge_a_verb_and_a_place_in_the_tally():
    several = [{"verdict": v} for v in VERBS for _ in range(2)]
    assert tally(several).startswith(
        "2 hold, 2 hold in direction, 2 lean with the paper, 2 are open"
    )
    assert verdict_verb("not attempted", 1) == "is not attempted"


def test_the_summary_names_claims_by_verdict_and_numbers_of_the_core(tmp_path):
    assert summarise("er_lens", "cpu", tmp_path).startswith("None of the 24 claims")
    record("er_lens", verdicts(), profile="cpu", root=tmp_path)
    text = summarise("er_lens", "cpu", tmp_path, core=["ER-C1", "ER-C3"])
    assert text.startswith("24 claims in the cpu profile: ER-C1 holds; ER-C2 is open; ER-C3, ER-C4")
    assert text.endswith("ER-C1 holds (mean of all: 2, 1.75 to 2.25; paper 0.912).")


def test_the_index_shows_new_verdicts_and_says_what_chance_does(tmp_path):
    record("er_lens", verdicts(), profile="cpu", root=tmp_path)
    soup = BeautifulSoup(build_index("cpu", tmp_path).read_text(encoding="utf-8"), "html.parser")
    legend = [li.find(class_="badge").get_text() for li in soup.select(".verdicts li")]
    assert legend == ["✓ holds", "? open", "· not attempted"]
    assert (
        "Each claim has its own 5 %: of 2 claims attempted" in soup.find(class_="lead").get_text()
    )
    assert (
        soup.find(id="er_lens-ER-C2").find("details", class_="parts").summary.get_text()
        == "2 parts"
    )
    assert by_chance([{"verdict": "holds"}] * 80).endswith(
        "some 4 could be decided wrongly by chance."
    )


def test_what_decides_is_named_and_a_change_after_results_is_told(tmp_path):
    now = look("er_lens", [0, 1, 2], today=date(2026, 11, 18))
    assert foresight([], now).endswith("No results have been seen yet.")
    looks = looked("er_lens", "cpu", now, tmp_path)
    later = look("er_lens", [0, 1, 2], today=date(2026, 12, 1))
    assert looked("er_lens", "cpu", later, tmp_path) == looks == [now]
    said = foresight(looks, later)
    assert f"sha256 {now.claims}" in said and "rules: version 1" in said
    assert "None of them has changed since results were first seen, 2026-11-18" in said
    more = look("er_lens", [0, 1, 2, 3], today=date(2026, 12, 2))
    looks = looked("er_lens", "cpu", more, tmp_path)
    assert looks == [now, more] and changes(now, more) == ["the seeds planned (0, 1, 2)"]
    assert foresight(looks, more).endswith(
        "Changed since results were first seen, 2026-11-18: the seeds planned (0, 1, 2)."
    )


def test_looks_and_parts_reach_the_site_and_are_added_to_by_the_next_execution(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("erlib.reports.looks.project_root", lambda: tmp_path)
    for seeds in ([0], [0, 1]):
        with staged() as stage:
            record("er_lens", verdicts(), profile="cpu")
            looked("er_lens", "cpu", look("er_lens", seeds))
            publish("er_lens", "cpu", stage, tmp_path)
    assert (tmp_path / "reports/cpu/claims_parts.csv").exists()
    text = (tmp_path / "reports/cpu/er_lens.looks.json").read_text(encoding="utf-8")
    assert text.count('"date"') == 2


def test_readings_of_one_seed_are_recorded_without_an_interval(tmp_path):
    def read(cell):
        return None if cell.table == "footnote-14" else {0: Reading(50.0 + len(cell.row))}

    one = decide_claims("er_lens", read, profile="quick")
    record("er_lens", one, profile="quick", root=tmp_path)
    first = rows(tmp_path / "reports/quick/claims.csv")[0]
    assert first["our_value"] == "-2" and first["ci_low"] == "" and first["seeds"] == "1"
    assert first["verdict"] == "not attempted"
