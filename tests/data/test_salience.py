"""Salience agrees with other people's PageRank, tf-idf and χ², and with small graphs by hand."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2

from erlib.data.salience import salience, textrank

RNG = np.random.default_rng(0)
TEXTS = [RNG.integers(0, 30, size=n).tolist() for n in (2, 7, 24, 60)]


def graph_of(text: list[int], window: int) -> networkx.Graph:
    """Built edge by edge from the definition: i < j and j − i < window."""
    graph = networkx.Graph()
    for i in range(len(text)):
        for j in range(i + 1, min(i + window, len(text))):
            graph.add_edge(text[i], text[j])
    return graph


@pytest.mark.parametrize("window", [4, 8])
@pytest.mark.parametrize("text", TEXTS)
def test_textrank_converges_to_networkx_pagerank_of_the_same_graph(text, window):
    graph = graph_of(text, window)
    ranks = networkx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=1000)
    ours = textrank(text, window=window, steps=500, tolerance=1e-13)
    # networkx's sum to 1 over pieces, ours to their number
    assert ours == pytest.approx([ranks[piece] * len(graph) for piece in text], rel=1e-8)


@pytest.mark.parametrize("text", TEXTS)
def test_ten_steps_are_ten_steps_of_power_iteration_from_equal_scores(text):
    graph = graph_of(text, 4)
    transition = networkx.google_matrix(graph, alpha=0.85)
    walk = np.full(len(graph), 1 / len(graph))
    for _ in range(10):
        walk = walk @ transition
    expected = dict(zip(graph, walk * len(graph), strict=True))
    ours = textrank(text, steps=10, tolerance=0)
    assert ours == pytest.approx([expected[piece] for piece in text], rel=1e-12)


def test_a_piece_in_the_middle_is_more_salient_by_the_amount_of_the_hand_computed_case():
    # Window 2 on a b c: the path a – b – c. One step from ones: G b = 1/1 + 1/1, G a = 1/2.
    ends, middle = 0.15 + 0.85 * 0.5, 0.15 + 0.85 * 2
    assert textrank([5, 6, 7], window=2, steps=1) == pytest.approx([ends, middle, ends])


def test_the_walk_stops_once_no_score_moves():
    # A complete graph is at rest at once: every score stays 1.
    assert textrank([1, 2, 3], window=4, steps=10).tolist() == pytest.approx([1, 1, 1])
    assert textrank([9], window=4) == pytest.approx([0.15])  # no neighbour, so nothing flows


def test_repeats_share_one_score_and_only_the_text_matters():
    scores = salience("textrank").score([3, 8, 3, 5, 9, 3])
    assert scores[0] == scores[2] == scores[5] > scores[1]


LABELS = [0, 1, 0, 1]


def as_strings(texts: list[list[int]]) -> list[str]:
    return [" ".join(f"piece{p}" for p in text) for text in texts]


def test_tf_idf_is_scikit_learns_and_unseen_pieces_have_none():
    ours = salience("tfidf")
    ours.fit(TEXTS, LABELS)
    vectoriser = TfidfVectorizer().fit(as_strings(TEXTS))
    new = [TEXTS[2][0], 999, *TEXTS[3][:5]]
    weights = vectoriser.transform(as_strings([new])).toarray()[0]
    columns = vectoriser.vocabulary_
    expected = [weights[columns[f"piece{p}"]] if p != 999 else 0.0 for p in new]
    assert ours.score(new) == pytest.approx(expected) and ours.score(new)[1] == 0


def test_chi_squared_is_scikit_learns_over_tf_idf_and_the_same_in_every_text():
    ours = salience("chi_squared")
    ours.fit(TEXTS, LABELS)
    vectoriser = TfidfVectorizer()
    weights = vectoriser.fit_transform(as_strings(TEXTS))
    statistic = SelectKBest(chi2, k="all").fit(weights, LABELS).scores_
    columns = vectoriser.vocabulary_
    text = TEXTS[1]
    assert ours.score(text) == pytest.approx([statistic[columns[f"piece{p}"]] for p in text])
    assert ours.score([*text, 999])[-1] == 0 and ours.score(text[:1])[0] == ours.score(text)[0]


def test_uniform_salience_prefers_nothing_and_unknown_names_are_refused():
    assert salience("uniform").score([4, 5, 4]).tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="unknown salience 'textrnk'; did you mean 'textrank'"):
        salience("textrnk")
