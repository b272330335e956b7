from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from bs4 import BeautifulSoup

from erlib.reports import heatmap
from erlib.reports.heatmap import heatmap_grid
from tests.reports.sample import NASTY


def text(tokens, scores, **more):
    return SimpleNamespace(tokens=tokens, scores=np.array(scores, dtype=float), **more)


def words(html):
    soup = BeautifulSoup(html, "html.parser")
    return soup, soup.select(".text span")


def colour(span):
    return tuple(
        map(int, re.search(r"background:rgb\((\d+),(\d+),(\d+)\)", span["style"]).groups())
    )


def test_every_character_is_text_and_nothing_else():
    soup, spans = words(heatmap([text([NASTY, "ok"], [1, -1])], titles=[NASTY]))
    assert [s.get_text() for s in spans] == [NASTY, "ok"]
    assert soup.find("script") is None and spans[0]["title"] == f"{NASTY}: 1"


def test_sign_and_size_are_in_the_colour():
    _, spans = words(heatmap([text(list("abcde"), [2, 1, 0, -1, -2])]))
    strong_for, weak_for, none, weak_against, strong_against = map(colour, spans)
    assert none == (255, 255, 255)
    assert strong_for[2] > strong_for[0] and strong_against[0] > strong_against[2]
    assert strong_for[0] < weak_for[0] < 255 and strong_against[2] < weak_against[2] < 255


def test_text_on_every_colour_can_be_read():
    def luminance(rgb):
        linear = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    _, spans = words(heatmap([text(["w"] * 41, np.linspace(-1, 1, 41))]))
    for span in spans:
        on = {"#000": 0.0, "#fff": 1.0}[re.search(r";color:(#\w+)", span["style"]).group(1)]
        low, high = sorted((luminance(colour(span)), on))
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_rationale_words_are_underlined_and_only_they():
    _, spans = words(heatmap([text(list("abc"), [1, 2, 3], rationale=[0, 1, 0])]))
    assert ["underline" in s["style"] for s in spans] == [False, True, False]
    given = heatmap([text(list("ab"), [1, 2])], rationales=[[1, 0]])
    assert ["underline" in s["style"] for s in words(given)[1]] == [True, False]


@pytest.mark.parametrize("scores", [[0, 0], [np.nan, np.nan], [np.nan, 1]])
def test_zero_and_undefined_scores_are_shown(scores):
    _, spans = words(heatmap([text(["a", "b"], scores)]))
    titles = [s["title"] for s in spans]
    assert titles[0] == ("a: undefined" if np.isnan(scores[0]) else "a: 0")


def test_two_thousand_words_and_an_empty_text():
    _, spans = words(heatmap([text(["word"] * 2000, np.arange(2000)), text([], [])]))
    assert len(spans) == 2000


def test_lengths_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match="2 tokens have 1 scores"):
        heatmap([text(["a", "b"], [1])])
    with pytest.raises(ValueError, match="titles"):
        heatmap([text(["a"], [1])], titles=["x", "y"])


def test_a_grid_has_each_attribution_in_its_row_and_column():
    rows = {
        NASTY: [text(["a", "b"], [1, 0]), text(["a", "b"], [0, 1])],
        "DX": [text(["a", "b"], [-1, 0]), text(["a", "b"], [0, 0])],
    }
    html = heatmap_grid(rows, columns=["one", "<two>"], title="<t>", rationale=[0, 1])
    soup = BeautifulSoup(html, "html.parser")
    assert [th.get_text() for th in soup.select("thead th")] == ["", "one", "<two>"]
    assert [th.get_text() for th in soup.select("tbody th")] == [NASTY, "DX"]
    cells = [[colour(s) for s in td.select("span")] for td in soup.select("td")]
    white = (255, 255, 255)
    assert [[c == white for c in cell] for cell in cells] == [
        [False, True], [True, False], [False, True], [True, True],
    ]  # fmt: skip
    assert cells[0][0][2] > cells[0][0][0] and cells[2][0][0] > cells[2][0][2]
    assert ["underline" in s["style"] for s in soup.select("td span")] == [False, True] * 4
