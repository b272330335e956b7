"""Salience agrees with other people's PageRank, tf-idf and χ², and with small texts by hand."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, chi2

from erlib.data.salience import Tokens, salience, textrank

RNG = np.random.default_rng(0)
TEXTS = [[f"piece{n}" for n in RNG.integers(0, 30, size=size)] for size in (2, 7, 24, 60)]


def tokens(pieces: list[str]) -> Tokens:
    """Between [CLS] and [SEP]; a "[SEP]" among the pieces is a special too."""
    strings = ("[CLS]", *pieces, "[SEP]")
    return Tokens(strings, tuple(s in ("[CLS]", "[SEP]") for s in strings))


def graph_of(text: list[str], window: int, two_way: int = 2) -> networkx.Graph:
    """Built pair by pair from the definition: i < j and j − i < window."""
    pairs = {(a, b) for i, a in enumerate(text) for b in text[i + 1 : i + window]}
    graph = networkx.Graph()
    for a, b in pairs:
        graph.add_edge(a, b, weight=two_way if a != b and (b, a) in pairs else 1)
    return graph


@pytest.mark.parametrize("two_way", [1, 2])
@pytest.mark.parametrize("window", [4, 8])
@pytest.mark.parametrize("text", TEXTS)
def test_textrank_converges_to_networkx_pagerank_of_the_same_graph(text, window, two_way):
    graph = graph_of(text, window, two_way)
    ranks = networkx.pagerank(graph, alpha=0.85, tol=1e-12, max_iter=1000)
    ours = textrank(text, window=window, two_way=two_way, steps=500, tolerance=1e-13)
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
    assert textrank(list("abc"), window=2, steps=1) == pytest.approx([ends, middle, ends])


def test_neighbours_in_either_order_are_joined_twice_and_a_loop_once_by_hand():
    # Window 2 on a b a c: a before b and b before a, a before c. Columns of a: 2/3 to b, 1/3 to c.
    a, b, c = 0.15 + 0.85 * 2, 0.15 + 0.85 * 2 / 3, 0.15 + 0.85 / 3
    assert textrank(list("abac"), window=2, steps=1) == pytest.approx([a, b, a, c])
    even = 0.15 + 0.85 / 2
    unweighted = textrank(list("abac"), window=2, steps=1, two_way=1)
    assert unweighted == pytest.approx([a, even, a, even])
    # a a b: a's column is 1/2 to itself, 1/2 to b, whatever a two-way pair weighs
    loop = [0.15 + 0.85 * 1.5, 0.15 + 0.85 * 1.5, 0.15 + 0.85 * 0.5]
    assert textrank(list("aab"), window=2, steps=1) == pytest.approx(loop)


def test_the_walk_stops_once_no_score_moves():
    # A complete graph is at rest at once: every score stays 1.
    assert textrank(list("abc"), window=4, steps=10).tolist() == pytest.approx([1, 1, 1])
    assert textrank(["a"], window=4) == pytest.approx([0.15])  # no neighbour, so nothing flows


def test_repeats_share_one_score_specials_have_none_and_a_pair_s_separator_is_a_piece():
    scores = salience("textrank").score(tokens(list("abacda")))
    assert scores[1] == scores[3] == scores[6] > scores[2]
    assert scores[0] == scores[-1] == 0
    pair = salience("textrank").score(tokens(["good", "[SEP]", "bad", "film"]))
    assert pair[1:-1] == pytest.approx(textrank(["good", "[SEP]", "bad", "film"]))
    assert pair[2] > 0 and pair[0] == pair[-1] == 0


LABELS = [0, 1, 0, 1]
# Three training texts, 8, 7 and 6 tokens long with their specials: 0, 1 and 2 pads.
WRITTEN = [
    ["a", "great", "##ly", "great", "film", "."],
    ["ly", "don", "'", "t", "film"],
    ["dull", "film", "s1", "!"],
]
STRINGS = [
    "[CLS] a great ##ly great film . [SEP]",
    "[CLS] ly don ' t film [SEP] [PAD]",
    "[CLS] dull film s1 ! [SEP] [PAD] [PAD]",
]


def test_tf_idf_counts_the_words_that_scikit_learn_finds_in_the_joined_tokens():
    ours = salience("tfidf")
    ours.fit([tokens(text) for text in WRITTEN], [0, 1, 1])
    counter = CountVectorizer()
    counts = counter.fit_transform(STRINGS).toarray()
    names = list(counter.get_feature_names_out())
    assert names == ["cls", "don", "dull", "film", "great", "ly", "pad", "s1", "sep"]
    idf = np.log((1 + 3) / (1 + (counts > 0).sum(axis=0))) + 1
    for text, row in zip(WRITTEN, counts * idf, strict=True):
        weights = dict(zip(names, row / np.sqrt((row**2).sum()), strict=True))
        # "##ly" is counted as "ly" and read as nothing; one letter and punctuation are no words
        expected = [0.0, *(weights.get(piece, 0.0) for piece in text), 0.0]
        assert ours.score(tokens(text)) == pytest.approx(expected)
    scores = dict(zip(WRITTEN[0], ours.score(tokens(WRITTEN[0]))[1:-1], strict=True))
    assert [piece for piece, score in scores.items() if score == 0] == ["a", "##ly", "."]


def test_chi_squared_is_scikit_learns_over_that_tf_idf_and_the_same_in_every_text():
    ours = salience("chi_squared")
    ours.fit([tokens(text) for text in WRITTEN], [0, 1, 1])
    vectoriser = TfidfVectorizer()
    statistic = chi2(vectoriser.fit_transform(STRINGS), [0, 1, 1])[0]
    column = vectoriser.vocabulary_
    for text in WRITTEN:
        expected = [statistic[column[piece]] if piece in column else 0.0 for piece in text]
        assert ours.score(tokens(text))[1:-1] == pytest.approx(expected)
    assert statistic[column["great"]] > 0
    assert ours.score(tokens(["##ly", "new"])).tolist() == [0, 0, 0, 0]


def test_with_every_piece_a_word_tf_idf_is_scikit_learns_and_unseen_pieces_have_none():
    ours = salience("tfidf", every_piece=True)
    ours.fit([tokens(text) for text in TEXTS], LABELS)
    vectoriser = TfidfVectorizer().fit([" ".join(text) for text in TEXTS])
    new = [TEXTS[2][0], "piece999", *TEXTS[3][:5]]
    weights = vectoriser.transform([" ".join(new)]).toarray()[0]
    columns = vectoriser.vocabulary_
    expected = [weights[columns[p]] if p != "piece999" else 0.0 for p in new]
    assert ours.score(tokens(new)) == pytest.approx([0, *expected, 0])
    assert expected[0] > 0 == expected[1]
    ours.fit([tokens(text) for text in WRITTEN], [0, 1, 1])
    assert (ours.score(tokens(WRITTEN[0]))[1:-1] > 0).all()


def test_with_every_piece_a_word_chi_squared_is_scikit_learns_over_tf_idf():
    ours = salience("chi_squared", every_piece=True)
    ours.fit([tokens(text) for text in TEXTS], LABELS)
    vectoriser = TfidfVectorizer()
    weights = vectoriser.fit_transform([" ".join(text) for text in TEXTS])
    statistic = SelectKBest(chi2, k="all").fit(weights, LABELS).scores_
    columns = vectoriser.vocabulary_
    text = TEXTS[1]
    assert ours.score(tokens(text))[1:-1] == pytest.approx([statistic[columns[p]] for p in text])


def test_uniform_salience_prefers_nothing_and_unknown_names_are_refused():
    assert salience("uniform").score(tokens(list("aba"))).tolist() == [0] * 5
    with pytest.raises(ValueError, match="unknown salience 'textrnk'; did you mean 'textrank'"):
        salience("textrnk")
