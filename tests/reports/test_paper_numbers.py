from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from erlib.catalogue import papers
from erlib.reports import beside, paper_table

OURS = pd.DataFrame(
    [("Baseline", "snippets", 80.0), ("Baseline", "snippets", 84.0), ("ER+Att", "Movies", 85.0)],
    columns=["row", "column", "value"],
)


def cell(found, row, column):
    long = found.long
    return long[(long["row"] == row) & (long["column"] == column)].iloc[0]


def test_every_paper_table_can_be_read():
    tables = [(name, table) for name, paper in papers().items() for table in paper.tables()]
    assert len(tables) > 40
    for paper, table in tables:
        frame = paper_table(paper, table)
        assert len(frame) and not frame.duplicated(["row", "column", "metric"]).any(), table


def test_numbers_are_numbers_and_other_cells_keep_their_print():
    table2 = paper_table("er_lens", "table2").set_index(["row", "column"])
    assert table2.loc[("ER+Att", "Movies"), "mean"] == 93.10
    table6 = paper_table("er_lens", "table6").set_index(["row", "column"])
    assert np.isnan(table6.loc[("SST", "pct_positive"), "mean"])
    assert table6.loc[("SST", "pct_positive"), "printed"] == "~50"


def test_unknown_papers_and_tables_are_named():
    with pytest.raises(ValueError, match="did you mean 'table2'"):
        paper_table("er_lens", "tabel2")
    with pytest.raises(ValueError, match="unknown paper"):
        paper_table("er", "table2")


def test_ours_stand_beside_the_papers_with_their_difference():
    found = beside(OURS, "er_lens", "table2", stands_for={"snippets": "SST-Test"})
    one = cell(found, "Baseline", "SST-Test")
    assert (one["ours"], one["ours_std"], one["n"]) == (82.0, pytest.approx(8**0.5), 2)
    assert (one["paper"], one["paper_std"]) == (94.36, 0.48)
    assert one["difference"] == pytest.approx(82.0 - 94.36)
    alone = cell(found, "ER+Att", "Movies")
    assert alone["n"] == 1 and np.isnan(alone["ours_std"])


def test_the_wide_form_has_our_columns_first_and_says_what_stands_for_what():
    wide = beside(OURS, "er_lens", "table2", stands_for={"snippets": "SST-Test"}).wide()
    assert list(wide.index)[:3] == ["Baseline", "ER+Att", "ER+AttR"]
    assert list(wide.columns)[:3] == ["snippets\nfor SST-Test", "Movies", "SST-Dev"]
    text = wide.loc["Baseline", "snippets\nfor SST-Test"]
    assert text == "82.00 ± 2.83\npaper 94.36 ± 0.48\n−12.36, n=2"
    assert wide.loc["Baseline", "Movies"] == "–\npaper 91.01 ± 4.38"
    assert wide.loc["ER+Att", "Movies"] == "85.00\npaper 93.10 ± 2.44\n−8.10, n=1"


def test_cells_missing_from_the_paper_are_dashes_with_their_note():
    theirs = paper_table("er_lens", "table1")
    missing = theirs[theirs["printed"] == ""].iloc[0]
    ours = pd.DataFrame({"row": [missing["row"]], "column": [missing["column"]], "value": [-1.0]})
    found = beside(ours, "er_lens", "table1")
    assert found.wide().loc[missing["row"], missing["column"]] == "−1.00\npaper –\nn=1"
    assert any("AMBIGUOUS" in note for note in found.notes())


def test_metrics_stand_in_the_paper_s_order_and_a_row_of_ours_is_named_by_its_row():
    ours = pd.DataFrame(
        [("Ours", a, m, 0.5) for a in ("aGa", "DeepLift") for m in ("norm_comp", "norm_suff")],
        columns=["row", "column", "metric", "value"],
    )
    found = beside(ours, "regex", "table4")
    assert list(found.wide().index[:2]) == [
        ("Saliency (Mean)", "norm_suff"),
        ("Saliency (Mean)", "norm_comp"),
    ]
    assert found.notes() == ["Not in the paper: Ours."]


def test_a_metric_that_the_paper_does_not_have_is_named_and_not_its_rows():
    ours = pd.DataFrame(
        [
            (row, "SST-Dev", m, 0.5)
            for row in ("ATT/Joint", "ATT/Lexpl")
            for m in ("F1", "auc_x100")
        ],
        columns=["row", "column", "metric", "value"],
    )
    assert beside(ours, "er_lens", "table5").notes() == ["Not in the paper: F1."]


def test_a_row_of_a_table_with_one_column_is_named_and_not_the_column():
    ours = pd.DataFrame({"row": ["Ours", "REGEX"], "column": "Full-text", "value": 60.0})
    assert beside(ours, "regex", "table7").notes() == ["Not in the paper: Ours."]
    called = beside(ours, "regex", "table7", labels={"Ours": "Our row\nof two lines"})
    assert called.notes() == ["Not in the paper: Our row, of two lines."]


def test_rows_that_only_we_have_come_last():
    ours = pd.DataFrame({"row": ["Ours"], "column": ["Movies"], "value": [1.0]})
    found = beside(ours, "er_lens", "table2")
    assert found.long["row"].iloc[-1] == "Ours"
    assert found.long["note"].iloc[-1] == "not in the paper"


def test_tables_with_several_metrics_need_one_named():
    ours = pd.DataFrame({"row": ["ATT/Joint"], "column": ["SST-Dev"], "value": [0.05]})
    with pytest.raises(ValueError, match="several metrics"):
        beside(ours, "er_lens", "table5")
    found = beside(ours, "er_lens", "table5", metric="expl_loss", digits=3)
    assert cell(found, "ATT/Joint", "SST-Dev")["difference"] == pytest.approx(0.01)
    both = pd.concat([ours.assign(metric="expl_loss"), ours.assign(metric="auc_x100", value=70.0)])
    wide = beside(both, "er_lens", "table5").wide()
    assert wide.loc[("ATT/Joint", "auc_x100"), "SST-Dev"].startswith("70.00\npaper 78.60")


def test_names_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="unknown column"):
        beside(OURS, "er_lens", "table2", stands_for={"snippets": "SST-Tset"})
    with pytest.raises(ValueError, match="unknown row"):
        beside(OURS, "er_lens", "table2", rows=["Basline"])
    with pytest.raises(ValueError, match="unknown metric"):
        beside(OURS, "er_lens", "table2", metric="accuracy")
    with pytest.raises(ValueError, match="lacks the columns value"):
        beside(OURS.drop(columns="value"), "er_lens", "table2")


def test_a_remark_stands_in_its_own_cell_only():
    ours = OURS.assign(remark=["new", "new", ""])
    wide = beside(ours, "er_lens", "table2", stands_for={"snippets": "SST-Test"}).wide()
    assert wide.loc["Baseline", "snippets\nfor SST-Test"].endswith("\nnew")
    assert "new" not in wide.loc["ER+Att", "Movies"]
