"""One module per paper: its systems, its grid, and its tables and figures."""

NOTEBOOKS = {"er_lens": "01_er_lens"}
