"""The cpu profile's reports as they are committed: small, whole, and giving no texts away.

The quick profile's quote the same texts, so the rule for quotations is tested on both.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from erlib.catalogue import papers
from erlib.data import snippets
from erlib.data.packaged import BUILDERS, prepare
from tests.browser import NEEDS_CHROMIUM, chromium
from tests.excerpts import quoted
from tests.readable import faults

ROOT = Path(__file__).parents[1]
MEGABYTES = 10
EXCERPTS, LONGEST = 12, 50  # texts that may be quoted, and words of one
NOT_TO_BE_QUOTED = ("tweets", "news_snippets")
SEEDS = 15  # rows that differ in nothing but their numbers are seeds; more of them are texts


def git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)


def published() -> list[Path]:
    """What of reports/ and figures/ is committed, or would be by `git add`."""
    listed = git(
        "ls-files", "--cached", "--others", "--exclude-standard", "--", "reports", "figures"
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


FILES = published()
PAGES = [file for file in FILES if file.suffix == ".html"]
committed = pytest.mark.skipif(not PAGES, reason="no reports are committed")
pytestmark = pytest.mark.report


@cache
def soup(page: Path) -> BeautifulSoup:
    return BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Every packaged text by an id that begins with its corpus; and passages made of them."""
    found = {}
    for corpus in ("movie_snippets", "amazon_snippets", "news_snippets", "tweets"):
        found.update({f"{corpus}:{s.id}": s.text for s in snippets.read_snippets(corpus)})
    for corpus in ("imdb_reviews", "reuters_r8", "newsgroups20", "find_review"):
        column = "context" if corpus == "find_review" else "text"
        rows = [row for split in prepare(corpus).splits.values() for row in split]
        found.update({f"{corpus}:{row['id']}": row[column] for row in rows})
    return found


@pytest.mark.parametrize(
    ("path", "kept_out"),
    [
        ("reports/quick/index.html", True),
        ("reports/cpu/index.html", False),
        ("reports/cpu/01_er_lens.html", False),
        ("reports/cpu/01_er_lens.ipynb", True),
        ("reports/cpu/er_lens.sources.json", False),
        ("reports/cpu/.claims.csv.lock", True),
        ("reports/cpu/tables/er_lens-table-2.csv", False),
        ("reports/cpu/tables/agreement-figure-3.csv", True),
        ("reports/cpu/tables/.er_lens-table-2.csv.x7", True),
        ("figures/quick/er_lens-figure-2.png", True),
        ("figures/cpu/er_lens-figure-2.png", False),
        ("figures/cpu/er_lens-figure-2.pdf", True),
        ("store/runs/00ab/model.safetensors", True),
    ],
)
def test_git_keeps_out_what_is_made_again_and_takes_what_is_read(path: str, kept_out: bool):
    if git("rev-parse").returncode:
        pytest.skip("not a Git checkout")
    assert (git("check-ignore", "-q", "--no-index", path).returncode == 0) == kept_out


@pytest.mark.skipif(
    not PAGES and os.environ.get("CI") != "true",
    reason="no reports are committed, which is a failure with CI=true",
)
def test_the_cpu_profile_s_index_and_every_report_of_it_are_there():
    pages = ["index.html", *(f"{paper.notebook}.html" for paper in papers().values())]
    assert [name for name in pages if not (ROOT / "reports" / "cpu" / name).exists()] == []


@committed
def test_they_are_small_and_of_the_kinds_that_are_read():
    assert {file.suffix for file in FILES} <= {".html", ".png", ".csv", ".json"}
    assert sum(file.stat().st_size for file in FILES) <= MEGABYTES * 1e6


@committed
def test_they_are_made_with_packaged_data_and_say_at_which_revision():
    for page in (file for file in PAGES if file.name != "index.html"):
        paper = page.stem.partition("_")[2]
        made = json.loads((page.parent / f"{paper}.provenance.json").read_text(encoding="utf-8"))
        assert made["data"] == "packaged" and made["profile"] == "cpu"
        assert made["environment"]["revision"][:10] in soup(page.parent / "index.html").get_text()


@committed
def test_every_link_and_picture_of_theirs_is_committed_too():
    for page in PAGES:
        html = soup(page)
        targets = [tag["href"] for tag in html.find_all("a", href=True)]
        for target in targets + [tag["src"] for tag in html.find_all("img")]:
            name, _, anchor = target.partition("#")
            if name.startswith(("http:", "https:", "data:")):
                continue
            file = (page.parent / name).resolve() if name else page
            assert file in FILES, f"{page.name}: {target}"
            assert not anchor or soup(file).find(id=anchor), f"{page.name}: {target}"


@pytest.mark.parametrize("profile", ["quick", "cpu"])
def test_they_quote_few_short_excerpts_and_none_from_tweets_or_a_newspaper(texts, profile):
    """Words drawn in a picture are looked for in the numbers behind it, where those are here."""
    reports = ROOT / "reports" / profile
    pages = [soup(page).get_text(" ") for page in sorted(reports.glob("*.html"))]
    if not pages:
        pytest.skip(f"there are no reports of {profile}")
    tables = [
        pd.read_csv(file, dtype=str, keep_default_na=False)
        for file in sorted((reports / "tables").glob("*.csv"))
    ]
    columns = [" ".join(table[name]) for table in tables for name in table.columns]
    found = quoted([*pages, *columns], texts)
    assert not [name for name in found if name.startswith(NOT_TO_BE_QUOTED)]
    assert max(found.values(), default=0) <= LONGEST, found
    assert len(found) <= EXCERPTS, found


@committed
def test_no_file_of_theirs_has_a_row_for_each_text(texts):
    ids = {
        row["id"]
        for corpus in BUILDERS
        for split in prepare(corpus).splits.values()
        for row in split
    }
    columns = []
    for file in (file for file in FILES if file.suffix == ".csv"):
        table = pd.read_csv(file)
        named = table.select_dtypes(exclude="float").astype(object).fillna("").astype(str)
        assert not set(named.to_numpy().ravel()) & ids, f"{file.name} names texts"
        alike = max(Counter(named.itertuples(index=False, name=None)).values(), default=0)
        assert alike <= SEEDS, f"{file.name} has {alike} rows that only numbers tell apart"
        columns += [" ".join(named[column]) for column in named]
    assert quoted(columns, texts) == {}


@committed
@pytest.mark.browser
@NEEDS_CHROMIUM
def test_they_open_cleanly_in_a_browser():
    with chromium() as browser:
        assert [fault for page in PAGES for fault in faults(browser, page)] == []
