"""Corpora with their rationales, from packages, from a local folder or from the hub."""

from erlib.data.corpora import CorpusInfo, corpora
from erlib.data.encoding import (
    Batch,
    Encoded,
    batch_indices,
    collate,
    encode,
    truncated_share,
)
from erlib.data.loading import (
    CorpusReport,
    check_corpora,
    corpus_report,
    fingerprint,
    list_corpora,
    load_data,
    report_or_none,
    select_rows,
)
from erlib.data.packages import fetch_all

__all__ = [
    "Batch",
    "CorpusInfo",
    "CorpusReport",
    "Encoded",
    "batch_indices",
    "check_corpora",
    "collate",
    "corpora",
    "corpus_report",
    "encode",
    "fetch_all",
    "fingerprint",
    "list_corpora",
    "load_data",
    "report_or_none",
    "select_rows",
    "truncated_share",
]
