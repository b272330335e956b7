"""Does every citation of docs/methods lead to a section that is there?

A citation is the page's name and its sections: `regex.md §4.23`, `saloss.md §4.1, 4.2 and 4.4`,
`agreement.md §4.2 to 4.4`. Sections of the papers are cited by the paper's name: `REGEX §3.3`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
METHODS = ROOT / "docs/methods"
PAGES = ("er_lens", "regex", "ivra", "saloss", "agreement", "metrics", "attributions")
PAPERS = ("ER lens", "REGEX", "IvRA", "SaLoss", "Agreement")
SOURCES = ("erlib", "tests", "docs", "notebooks", "README.md", "CONTRIBUTING.md", "pyproject.toml")
SUFFIXES = (".py", ".toml", ".md", ".ipynb")

GAP = r"(?:[\s#\"\\]|\\n)*"  # a citation may go on in the next line of a comment or a notebook
NUMBER = r"\d+(?:\.\d+)?"
PAGE = rf"(?<![\w-])({'|'.join(PAGES)})\.md\b"
CITATION = re.compile(rf"{PAGE}(?:`?{GAP}§({NUMBER}(?:(?:,| and| to){GAP}{NUMBER})*))?")
OF_A_PAPER = re.compile(rf"(?:{'|'.join(PAPERS)}),?{GAP}§")
LINK = re.compile(r"\]\([^)]*\)")


class Citation(NamedTuple):
    """`sections` as they are written; None where a page is named without any."""

    line: int
    page: str
    sections: str | None


def headings(page: Path) -> set[str]:
    """The numbers of a page's sections."""
    found = re.findall(r"^#{2,3} (\d+(?:\.\d+)?)\.? \S", page.read_text(encoding="utf-8"), re.M)
    return set(found)


def without_links(text: str) -> str:
    """Where a link leads is for another test; its words may be a citation."""
    return LINK.sub("]", text)


def citations(text: str) -> Iterator[Citation]:
    text = without_links(text)
    for match in CITATION.finditer(text):
        yield Citation(text.count("\n", 0, match.start()) + 1, *match.groups())


def numbers(sections: str) -> list[str]:
    """All that is cited: "4.2 to 4.4" is 4.2, 4.3 and 4.4."""
    parts = re.split(rf"(,| and| to){GAP}", sections)
    cited = parts[:1]
    for word, number in zip(parts[1::2], parts[2::2], strict=True):
        if word.strip() == "to":
            *outer, first = cited[-1].split(".")
            last = int(number.split(".")[-1])
            cited += [".".join([*outer, str(n)]) for n in range(int(first) + 1, last)]
        cited.append(number)
    return cited


def faults(name: str, text: str, pages: dict[str, set[str]]) -> list[str]:
    """`file:line: what` of every citation that leads nowhere, and of sections of nothing."""
    found = []
    for line, page, sections in citations(text):
        if page not in pages:
            found.append(f"{name}:{line}: there is no docs/methods/{page}.md")
        elif sections is None:
            found.append(f"{name}:{line}: {page}.md is cited without a section")
        else:
            missing = [n for n in numbers(sections) if n not in pages[page]]
            found += [f"{name}:{line}: {page}.md has no section {n}" for n in missing]
    rest = without_links(text)
    for pattern in (CITATION, OF_A_PAPER):
        rest = pattern.sub(lambda match: "\n" * match.group().count("\n"), rest)
    lines = enumerate(rest.splitlines(), start=1)
    return found + [f"{name}:{n}: a section of what? {x.strip()}" for n, x in lines if "§" in x]


def sources() -> list[Path]:
    """What is tracked, or would be by `git add`, without this file, whose examples are wrong."""
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*command, "--", *SOURCES], capture_output=True, text=True, check=True)
    files = [ROOT / name for name in listed.stdout.splitlines()]
    here = Path(__file__).resolve()
    return [f for f in files if f.suffix in SUFFIXES and f.exists() and f.resolve() != here]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """By their path in the repository."""
    found = {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in sources()}
    assert len(found) > 100
    return found


@pytest.fixture(scope="module")
def pages() -> dict[str, set[str]]:
    return {p.stem: headings(p) for p in METHODS.glob("*.md")}


def test_every_citation_leads_to_a_section(texts: dict[str, str], pages: dict[str, set[str]]):
    # A page may name another as a whole, in a link; code says which section it means.
    found = [
        fault
        for name, text in texts.items()
        for fault in faults(name, text, pages)
        if not (name.endswith(".md") and fault.endswith("without a section"))
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_cited_by_the_code(page: str, texts: dict[str, str]):
    code = (text for name, text in texts.items() if name.startswith("erlib/"))
    assert any(c.page == page and c.sections for text in code for c in citations(text))


def test_there_is_no_page_that_nobody_looks_at(pages: dict[str, set[str]]):
    assert set(pages) == set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_sections_are_numbered_without_gaps_and_none_twice(page: str):
    text = (METHODS / f"{page}.md").read_text(encoding="utf-8")
    written = re.findall(r"^(##+) (\S+)", text, re.M)
    section = part = 0
    for level, number in written:
        if level == "##":
            section, part = section + 1, 0
            assert number == f"{section}."
        else:
            part += 1
            assert (level, number) == ("###", f"{section}.{part}")
    assert section >= 3


def test_a_citation_that_leads_nowhere_is_told_with_its_file_and_line():
    known = {"regex": {"1", "4", "4.1", "4.2"}, "ivra": {"3"}}
    text = (
        "# right: regex.md §4.2, ivra.md §3\n"
        "x = 1  # regex.md §4.9\n"
        "# saloss.md §4.1\n"
        "# `regex.md` §4.1 to 4.4\n"
        "# as in §4.1\n"
        "# REGEX §9.9 and (IvRA, §H) are the papers' own\n"
        "# regex.md\n"
        "# [ivra.md §4](regex.md)\n"
        "# regex.md §4.1,\n"
        "# 4.2 and 5\n"
    )
    assert sorted(faults("some.py", text, known)) == [
        "some.py:2: regex.md has no section 4.9",
        "some.py:3: there is no docs/methods/saloss.md",
        "some.py:4: regex.md has no section 4.3",
        "some.py:4: regex.md has no section 4.4",
        "some.py:5: a section of what? # as in §4.1",
        "some.py:7: regex.md is cited without a section",
        "some.py:8: ivra.md has no section 4",
        "some.py:9: regex.md has no section 5",
    ]
