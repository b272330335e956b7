"""One module per paper: its systems, its grid, and its tables and figures."""

NOTEBOOKS = {
    "er_lens": "01_er_lens",
    "regex": "02_regex",
    "ivra": "03_ivra",
    "saloss": "04_saloss",
    "agreement": "05_agreement",
}
