"""Which numbers do the notebook's sentences tell?"""

from __future__ import annotations

import pandas as pd
from scipy.stats import binomtest

from erlib.data import report_or_none
from erlib.data.parts_of_speech import TAGGER_NAMES, installed_tagger
from erlib.papers.means import Facts, means
from erlib.papers.saloss.cells import FRESH_COLUMNS, SHAPES, chosen, search_fractions, searched
from erlib.papers.saloss.described import flip_tests
from erlib.papers.saloss.figures import importance
from erlib.papers.saloss.systems import AUDITED, EQ3, SHOWN, power, tasks
from erlib.papers.study import Study

NAMES = {"TextRank": "TextRank", "TFIDF": "TF-IDF", "ChiSquared": "χ²"}


def data(study: Study) -> Facts:
    """Which corpus stands for which set, the length of rationales, and what rules left out."""
    every = tasks(study.settings)
    reports = (report_or_none(t.corpus, t.source) for t in every)
    dropped = {report.name: report.dropped for report in reports if report}
    return {
        "stands": ", ".join(f"{t.corpus} for {t.paper}" for t in every),
        "ratios": ", ".join(f"{t.paper} {t.percent} %" for t in every),
        "dropped": "; ".join(
            f"of {corpus} " + ", ".join(f"{n:,} {rule}" for rule, n in rules.items())
            for corpus, rules in dropped.items()
            if rules
        )
        or "nothing",
    }


def search(study: Study) -> Facts:
    """Which λ the development texts chose, and by which attributions."""
    weights = chosen(study.settings, study.results)
    found = search_fractions(study.results).set_index(["corpus", "system"])["fraction"]
    said = []
    for (corpus, system), tried in searched(study.settings).items():
        name = f"{corpus}, {system}" if system == EQ3 else corpus
        why = f"of {', '.join(map(power, tried))}" if len(tried) > 1 else "the only one tried"
        if (corpus, system) in found.index:
            each = found[corpus, system]
            why += f"; fractions {each.min():.2f} to {each.max():.2f}"
        said.append(f"{name} {power(weights[corpus, system])} ({why})")
    signs = ", ".join(SHOWN[s] for s in study.settings.grid["search_attributions"])
    return {"weights": ", ".join(said), "signs": signs}


def flips(study: Study) -> Facts:
    """In how many cells SaLoss needs fewer tokens, and where tests over texts agree.

    Of the sets whose models are all trained. `least`: with fewer texts no signed-rank test can pass
    Holm's correction, since n texts that all agree have p = 2 / 2ⁿ.
    """
    every = flip_tests(study)
    table = every[every["trained"] == "yes"]
    better = table[table["SaLoss"] < table["Baseline"]]
    least = next(n for n in range(1, 99) if 2 / 2**n * len(every) < 0.05)
    under = {name: (table[f"{name}\nunder random"] < 0.05).sum() for name in ("Baseline", "SaLoss")}
    return {
        "sets": ", ".join(table["set"].unique()) or "none",
        "cells": len(table),
        "better": len(better),
        "rank_sum": (better["rank-sum"] < 0.05).sum(),
        "holm": (better["Holm"] < 0.05).sum(),
        "baseline_under": under["Baseline"],
        "saloss_under": under["SaLoss"],
        "least": least,
        "few": ", ".join(every.loc[every["texts"] < least, "set"].unique()) or "none",
    }


def fresh(study: Study) -> Facts:
    """Mean F1 of the classifiers of rationales by shape and support.

    Of trained ones, over the sets that have one of every support, each by its mean over seeds.
    """
    found = {}
    for shape, (table, _) in SHAPES.items():
        whole = means(study, table).reindex(columns=list(FRESH_COLUMNS.values())).dropna()
        scores = ", ".join(f"{column} {whole[column].mean():.2f}" for column in whole)
        said = f"{scores} (over {', '.join(whole.index)})" if len(whole) else "none"
        found[shape] = said.replace("SaLoss-", "")
    return found


def functions(study: Study) -> Facts:
    """In how many cells one salience function needs fewer tokens than another, with sign tests.

    Of trained models.
    """

    def fractions(function: str) -> pd.Series:
        block = means(study, "table8", start=f"{function}|")
        return block.rename(index=lambda row: row.partition("|")[2]).stack()

    cells = pd.DataFrame({name: fractions(name) for name in NAMES}).dropna()
    said = []
    for a, b in (("TextRank", "TFIDF"), ("TextRank", "ChiSquared"), ("TFIDF", "ChiSquared")):
        fewer, more = (cells[a] < cells[b]).sum(), (cells[a] > cells[b]).sum()
        p = binomtest(fewer, fewer + more).pvalue if fewer + more else 1.0
        said.append(f"{NAMES[a]} under {NAMES[b]} in {fewer} of {len(cells)} (sign test p {p:.2f})")
    return {"compared": ", ".join(said)}


def tags(study: Study) -> Facts:
    """The tagger, and of trained models the tags whose importance SaLoss moves most."""
    found, moves = importance(study), []
    for name, mine in found.groupby("set", sort=False):
        if mine["system"].nunique() == 2 and mine["trained"].all():
            means = mine.pivot_table(index="tag", columns="system", values="importance")
            moved = means["SaLoss"] - means["Baseline"]
            up, down = moved.idxmax(), moved.idxmin()
            moves.append(f"{name} {up} ({moved[up]:+.3f}) and {down} ({moved[down]:+.3f})")
    return {"tagger": TAGGER_NAMES[installed_tagger()], "moves": ", ".join(moves) or "no set"}


def audited(study: Study) -> Facts:
    """On which corpus, and at which λ, the departures are measured."""
    weights, corpus = chosen(study.settings, study.results), study.settings.roles[AUDITED]
    paper = next(task.weight for task in tasks(study.settings) if task.role == AUDITED)
    return {"corpus": corpus, "eq3": power(weights[corpus, EQ3]), "paper": power(paper)}
