from __future__ import annotations

import re

import pandas as pd
import pytest

from erlib.catalogue import papers
from erlib.reports.criteria import criteria
from erlib.reports.markup import table_html
from erlib.reports.names import NAMES, readable, readable_part
from erlib.reports.paper_numbers import paper_table


def test_names_of_files_and_words_of_a_sentence_are_left_alone():
    assert readable("kendall_tau of auc_x100, tables/auc_x100.csv, my_auc_x100") == (
        "Kendall’s τ of AUC (%), tables/auc_x100.csv, my_auc_x100"
    )


def test_a_part_of_a_claim_is_said_as_a_reader_would():
    assert readable_part("table2 SST f1_macro: Baseline|a → SaLoss|a") == (
        "Table 2 SST F1-macro: Baseline, a → SaLoss, a"
    )
    assert readable_part("table1b_dbert SUBJ: kendall_tau → pearson_r").startswith(
        "Table 1b (DBERT) SUBJ: Kendall’s τ"
    )


def test_a_table_has_no_raw_name_in_its_headings_rows_or_cells():
    frame = pd.DataFrame({"pearson_r": ["norm_comp"]}, index=pd.Index(["f1_macro"], name="row"))
    html = table_html(frame, "er_lens-table-1", "")
    assert not re.search(r"[a-z]_[a-z]", html.replace("er_lens", ""))
    assert "Pearson’s r" in html and "normalised comprehensiveness" in html and "F1-macro" in html


@pytest.mark.parametrize("paper", papers())
def test_every_metric_with_an_underscore_has_a_name_for_readers(paper):
    metrics = {
        metric
        for table in papers()[paper].tables()
        for metric in paper_table(paper, table)["metric"]
    }
    assert {m for m in metrics if "_" in m} <= NAMES.keys()
    parts = [c.name for one in criteria(paper).values() for c in one.contrasts]
    assert [p for p in map(readable_part, parts) if re.search(r"[a-z0-9]_[a-z]", p)] == []
