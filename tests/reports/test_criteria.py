from __future__ import annotations

import re
from math import atanh, log

import pytest

from erlib.reports.criteria import criteria, read_criteria
from erlib.reports.recorded import statements

ALL = {paper: criteria(paper) for paper in ("er_lens", "agreement", "regex", "ivra", "saloss")}
EVERY = [one for found in ALL.values() for one in found.values()]


def logit(share):
    return log(share / (1 - share))


def asked(claim, part=None):
    one = next(c for c in EVERY if c.claim == claim)
    effects = {c.name: c.asked for c in one.contrasts}
    return effects[part] if part else next(iter(effects.values()))


def test_each_of_the_eighty_claims_has_a_criterion():
    for paper, found in ALL.items():
        assert list(found) == list(statements(paper))
    assert len(EVERY) == 80


# The cells as they are printed, put together by hand.
@pytest.mark.parametrize(
    ("claim", "part", "by_hand"),
    [
        # a mean over four sets
        ("ER-C1", None, (2.09 + 0.68 + 0.67 + 0.21) / 4),
        # a ratio of variances
        ("ER-C3", None, 2 * (log(2.44 / 4.38) + log(0.44 / 0.99) + log(1.10 / 1.63)
                             + log(0.56 / 0.89)) / 4),
        # one pair of cells
        ("ER-C4", "table3 SST-Dev/ATT auc_x100: Baseline → ER+Att", 78.6 - 35.6),
        # a * that both ends share
        ("ER-C9", "table5 SST-Dev expl_loss: IXG/Joint → IXG/Lexpl", 0.349 - 0.432),
        # a gain less the same gain elsewhere
        ("ER-C15", "IXG weaker than in domain", ((61.6 - 58.1) + (69.8 - 51.5)) / 2
                                                - (81.5 - 50.7)),
        # a share that stands in a footnote, against a level
        ("ER-C18", None, logit(1 / 3) - logit(2 / 3)),
        # two metrics of one cell
        ("AG-C1", "table1b_dbert G-SHAP vs Int-Grad TREC: kendall_tau → pearson_r",
         atanh(0.71) - atanh(0.42)),
        # below the lowest of the exception's cells
        ("AG-C3", "table1b_dbert DeepLIFT vs Int-Grad IMDB pearson_r", atanh(0.27) - atanh(0.54)),
        # systems in columns
        ("AG-C4", "table2 JWA|TREC pearson_r: Base → Tying", atanh(0.93) - atanh(0.52)),
        # from nothing, the mean over what * stands for
        ("AG-C10", "Min dist|*|closeness", (atanh(0.79) + 3 * atanh(0.70)) / 4),
        # a row that the paper leaves empty is left out of the mean
        ("RX-C4", "AmazPantry", ((0.14 - 0.31) + (0.13 - 0.40)) / 2),
        # from and to in other rows and columns, for some of what * could be
        ("RX-C7", "aGa against the full text, in domain",
         (88.9 - 90.1 + 88.9 - 91.1 + 96.3 - 96.9 + 67.9 - 70.6 + 67.8 - 70.2 + 69.5 - 71.5) / 6),
        # pairs of models, none with itself
        ("RX-C8", None, (0.44 + 0.54 + 0.56 + 0.45 + 0.41 + 0.56
                         - 0.33 - 0.34 - 0.34 - 0.44 - 0.34 - 0.36) / 6),
        # a percentage
        ("RX-C14", None, logit(0.0323) - logit(0.1171)),
        # a share
        ("IV-C3", None, (logit(0.944) - logit(0.928) + logit(0.939) - logit(0.922)
                         + logit(0.897) - logit(0.888)) / 3),
        # two tables
        ("SL-C8", "SaLoss-Uniform: contiguous below top-k",
         (0.80 + 0.89 + 0.78 + 0.71 + 0.42 - 0.82 - 0.92 - 0.78 - 0.75 - 0.43) / 5),
        # one method against another, mean over sets
        ("SL-C4", "below SaLoss|aGa", (0.42 + 0.53 + 0.14 + 0.19 + 0.39
                                       - 0.48 - 0.50 - 0.12 - 0.24 - 0.41) / 5),
        # nothing is printed
        ("IV-C5", None, None),
    ],
)  # fmt: skip
def test_the_effect_asked_for_is_the_papers(claim, part, by_hand):
    assert asked(claim, part) == (None if by_hand is None else pytest.approx(by_hand, abs=1e-9))


def test_best_is_against_each_of_the_others_and_never_against_itself():
    rates = next(c for c in EVERY if c.claim == "IV-C16")
    assert len(rates.contrasts) == 4 * 15
    assert all(d.before != d.after for c in rates.contrasts for d in c.differences)


def test_eighteen_pairs_are_eighteen_parts_of_all_and_one_of_most():
    every, most = ALL["regex"]["RX-C1"], ALL["regex"]["RX-C2"]
    assert len(every.contrasts) == 18 and len(most.contrasts) == 1
    assert len(most.contrasts[0].differences) == 18


def test_an_identity_is_part_of_no_contrast():
    rows = {
        cell.row
        for one in ALL["agreement"].values()
        for contrast in one.contrasts
        for d in contrast.differences
        for cell in (d.before, d.after)
        if cell
    }
    assert "DeepLIFT vs G-SHAP" in rows and "DeepLIFT vs D-SHAP" not in rows


def test_relations_and_spreads_need_more_seeds_than_effects():
    seeds = {one.claim: one.seeds for one in EVERY}
    assert (seeds["ER-C1"], seeds["ER-C19"], seeds["ER-C3"], seeds["ER-C18"]) == (3, 5, 8, 10)


def test_correlations_and_shares_are_never_on_their_own_scale():
    scales = {d.after.metric: c.scale for one in EVERY for c in one.contrasts
              for d in c.differences}  # fmt: skip
    bounded = {m: s for m, s in scales.items() if re.search("pearson|kendall|spearman", m)}
    assert set(bounded.values()) == {"fisher-z"} and len(bounded) == 4
    assert scales["attack"] == "logit-percent" and scales["simulatability"] == "logit"


def test_quotations_are_short():
    for one in EVERY:
        quoted = re.findall(r"(?:^|[ (])'(.+?)'(?=$|[ ,;.)])", one.says)
        assert sum(len(q.split()) for q in quoted) <= 12, one.claim


WRITTEN = """
[criteria]
cannot = {{ quick = "few seeds" }}
night = "can"

[[claim]]
id = "ER-C1"
[claim.criterion]
where = "section 5"
says = "more"
why = "new"
{fields}
"""
GOOD = 'side = 1\ncontrast = {{ table = "table3", column = "SST-Dev/ATT", from = "{}", to = "{}" }}'
PAIR = GOOD.format("Baseline", "ER+Att")


def read(fields):
    return read_criteria("er_lens", WRITTEN.format(fields=fields))["ER-C1"]


def test_an_ordinary_criterion_needs_a_side_and_a_contrast():
    (only,) = read(PAIR).contrasts
    assert (only.rule, only.scale, only.pool) == ("PAIR", "identity", "er_lens/auc_x100/identity")
    assert only.asked == pytest.approx(43.0)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ('rule = "PAIRS"\n' + PAIR, "unknown rule 'PAIRS'; did you mean 'PAIR'"),
        ('join = "each"\n' + PAIR, "unknown join 'each'"),
        ('by = "texts"\n' + PAIR, "unknown unit to resample"),
        ('cannot = { laptop = "slow" }\n' + PAIR, "unknown profile .* 'laptop'"),
        ('sides = 1\n' + PAIR, "unknown field of a criterion 'sides'; did you mean 'side'"),
        (GOOD.format("Baseline", "ER+Attn"), "unknown row of er_lens table3 'ER.Attn'; did you"),
        (PAIR.replace("SST-Dev/ATT", "SST/ATT"), "unknown column of er_lens table3 'SST/ATT'"),
        (PAIR.replace("table3", "table33"), "unknown table of er_lens 'table33'"),
        (PAIR.replace("table3", "table5").replace("SST-Dev/ATT", "SST-Dev"), "several metrics"),
        (PAIR.replace("side = 1", "side = 2"), "side 2 with PAIR"),
        (PAIR.replace("side = 1\n", ""), "side None with PAIR"),
        (PAIR.replace("side = 1", "side = -1"), "side -1, but the paper's effect is 43"),
        (PAIR.replace(' }', ', scale = "logits" }'), "unknown scale 'logits'"),
        (PAIR.replace(' }', ', ceiling = "Lexpl" }'), "unknown row of er_lens table3 'Lexpl'"),
        (PAIR.replace(' }', ', scale = "fisher-z" }'), "has no fisher-z"),
        (PAIR.replace("side = 1", 'rule = "NIL"\nmargin = 2.0'), "'margin' and its reason"),
        (PAIR.replace("side = 1", 'side = 1\nmargin = 2.0\nbecause = "small"'), "no other rule"),
        ('join = "all"\n' + PAIR, "join 'all' with 1 contrasts"),
        (PAIR.replace('"ER+Att"', '["ER+Att", "ER-C+Att"]'), "join 'one' with 2 contrasts"),
        ('rule = "SPREAD"\nseeds = 5\n' + PAIR, "5 seeds: SPREAD needs at least 8"),
        ('rule = "SAME"\nclaims = ["ER-C1"]\nmetrics = ["ap"]\n' + PAIR, "every rule but SAME"),
        ('claims = ["ER-C1"]\nmetrics = ["ap"]\n' + PAIR, "SAME, and no other rule"),
        ('rule = "SAME"\nclaims = ["ER-C9"]\nmetrics = ["ap"]', "unknown claim 'ER-C9'"),
        (PAIR.replace("from", 'row = "Baseline", metric = "auc_x100", from'), "leave open one of"),
        ('side = 1\ncontrast = { from = "Baseline", to = "ER+Att" }', "needs a 'table'"),
    ],
)  # fmt: skip
def test_a_bad_criterion_is_refused_with_its_claim(fields, said):
    with pytest.raises(ValueError, match=f"ER-C1: .*{said}"):
        read(fields)


def test_a_margin_in_units_of_a_part_needs_that_part():
    nil = PAIR.replace("side = 1", 'rule = "NIL"\nmargin = 0.25\nbecause = "a quarter"')
    with pytest.raises(ValueError, match=r"unknown part \('of'\) 'top'"):
        read(nil.replace(" }", ', of = "top" }'))


def test_a_claim_without_a_criterion_is_named():
    written = WRITTEN.format(fields=PAIR) + '\n[[claim]]\nid = "ER-C2"\n'
    with pytest.raises(ValueError, match="ER-C2: no criterion"):
        read_criteria("er_lens", written)
