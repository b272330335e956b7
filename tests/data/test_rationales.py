"""Do the four kinds of evidence become the right bits?"""

import pytest

from erlib.data.rationales import (
    evidence_rationale,
    indexed_rationale,
    lexicon_rationale,
    majority,
    parse_tree,
    phrase_rationale,
    starred_rationale,
    valences,
)


def bits(tree):
    return phrase_rationale(parse_tree(tree))


def test_a_phrase_stronger_than_all_below_it_explains_with_all_its_words():
    # (4 …) has |s| = 1; below it nothing is stronger than 0.5: the whole phrase is the rationale.
    assert bits("(3 (2 a) (4 (2 very) (3 good)))") == [0, 1, 1]


def test_a_phrase_no_stronger_than_a_descendant_hands_on_to_its_children():
    # Root |s| = 1, but 'superb' has 1 as well, not strictly less: ask the children.
    assert bits("(4 (2 a) (4 superb))") == [0, 1]


def test_both_extremes_below_count():
    # Root 3 (|s| = .5) has a descendant 0 (|s| = 1): recurse. 'film' is neutral.
    assert bits("(3 (0 awful) (2 film))") == [1, 0]


def test_a_weak_root_over_neutral_words_is_its_own_explanation():
    assert bits("(3 (2 it) (2 works))") == [1, 1]  # |s| = .5 > 0, and .5 is enough


def test_a_neutral_tree_has_no_rationale():
    assert bits("(2 (2 a) (2 film))") == [0, 0]


def test_a_real_sst_tree_by_hand():
    # 'lovely film' is 4 over leaves 3 and 2: explanatory. So is 'lovely performances by Buy and
    # Accorsi', 4 over a 3 at most. Every phrase above holds a 4, so none of them is.
    tree = (
        "(3 (2 It) (4 (4 (2 's) (4 (3 (2 a) (4 (3 lovely) (2 film))) (3 (2 with) (4 (3 (3 lovely)"
        " (2 performances)) (2 (2 by) (2 (2 (2 Buy) (2 and)) (2 Accorsi))))))) (2 .)))"
    )
    assert bits(tree) == [0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0]


def test_escapes_and_no_break_spaces_in_leaves():
    leaves = parse_tree("(2 (2 -LRB-) (2 (2 and\\/or) (2 2\xa01\\/2)))").leaves()
    assert [leaf.word for leaf in leaves] == ["(", "and/or", "2\xa01/2"]


@pytest.mark.parametrize(
    "bad", ["", "(2 a", "(2 a))", "(2 a) (2 b)", "(2)", "no tree", "(2 a (2 b))", "(2 a b)"]
)
def test_a_broken_tree_is_refused(bad):
    with pytest.raises(ValueError, match="not a labelled tree"):
        parse_tree(bad)


def test_evidence_is_marked_wherever_it_occurs_and_missing_spans_are_counted():
    words = ["a", "fine", "film", ",", "a", "fine", "film", "indeed"]
    marked, missing = evidence_rationale(words, ["fine film", "not there"])
    assert (marked, missing) == ([0, 1, 1, 0, 0, 1, 1, 0], 1)


def test_overlapping_evidence_is_the_union():
    assert evidence_rationale(list("abcd"), ["a b", "b c"])[0] == [1, 1, 1, 0]


def test_stars_mark_words_in_either_style():
    sentence = "Two women hug a to go package."
    assert starred_rationale(sentence, "*Two* women hug a *to* *go* package.")[:6] == [
        1, 0, 0, 0, 1, 1,
    ]  # fmt: skip
    assert starred_rationale(sentence, "Two women hug a *to go package*.") == [0, 0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("bad", ["A *cat sits", "A dog *sits*"])
def test_stars_that_do_not_fit_the_sentence_are_refused(bad):
    with pytest.raises(ValueError, match="with words starred"):
        starred_rationale("A cat sits", bad)


def test_indices_are_the_other_notation():
    assert indexed_rationale("A cat sits", "0,2") == [1, 0, 1]
    assert indexed_rationale("A cat sits", "{}") == [0, 0, 0]
    with pytest.raises(ValueError, match="outside"):
        indexed_rationale("A cat sits", "3")


def test_a_majority_is_more_than_half():
    assert majority([[1, 1, 0], [1, 0, 0], [1, 0, 1]]) == [1, 0, 0]
    assert majority([[1, 0], [0, 0]]) == [0, 0]


def test_the_lexicon_has_the_valences_its_paper_prints():
    lexicon = valences()  # Hutto and Gilbert (2014): okay .9, good 1.9, great 3.1, horrible −2.5
    assert [lexicon[w] for w in ("okay", "good", "great", "horrible")] == [0.9, 1.9, 3.1, -2.5]
    assert 7_400 < len(lexicon) < 7_600


@pytest.mark.parametrize(
    ("text", "sign", "marked"),
    [
        ("a good film", 1, ["good"]),
        ("a good film", -1, []),
        ("not a very good film", -1, ["good"]),
        ("not a very good film", 1, []),
        (
            "not a single dull and good",
            1,
            ["dull", "good"],
        ),  # 'good' is the fifth word: not negated
        ("It isn't good.", -1, ["good."]),
        ("Never. A GOOD film!", 1, ["GOOD"]),  # the full stop ends the negation
        ("hated it :(", -1, ["hated", ":("]),
    ],
)
def test_lexicon_words_agree_with_the_label_after_negation(text, sign, marked):
    words = text.split()
    chosen = [w for w, bit in zip(words, lexicon_rationale(words, sign), strict=True) if bit]
    assert chosen == marked
