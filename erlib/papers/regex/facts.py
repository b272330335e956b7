"""Which numbers do the report's sentences need?

Each function gives a dictionary of numbers and short words. It is empty, and nothing is said, where
what it would tell of failed.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range

from erlib.metrics.faithfulness import aopc
from erlib.papers.holes import remark_of
from erlib.papers.means import Facts, means
from erlib.papers.regex import systems
from erlib.papers.regex.audit import OTHER_DEEPLIFTS, deeplifts
from erlib.papers.regex.evaluations import FIVE, MEASURES, UNTRAINED, WORDS
from erlib.papers.regex.figures import swept
from erlib.papers.regex.systems import ATTRIBUTIONS, BEST, MAIN, RATIO, SHORT_RUN
from erlib.papers.study import Study
from erlib.reports.markup import counted

PARTS = {
    "robustness": "w/o robustness improvement",
    "adversarial": "w/o virtual adversarial training",
    "gradient": "w/o input gradient regularization",
    "guidance": "w/o explanation guided training",
}


def in_domain(study: Study) -> Facts:
    """Means in SST's domain: sufficiency_aGa_REGEX and so on."""
    found = {m: means(study, "table1", m, start="SST->SST|", every=True) for m in WORDS}
    return {
        f"{WORDS[m]}_{a}_{system}": found[m].loc[f"SST->SST|{system}", a]
        for m in WORDS
        for a in BEST
        for system in MAIN
    }


def ahead(study: Study) -> Facts:
    """In how many pairs with trained models REGEX is ahead of the Baseline, and attributions of
    random under REGEX, by attribution."""
    found = _compared(study)
    facts: Facts = {"pairs": found["pair"].nunique()}
    for m, word in WORDS.items():
        means = found[found["metric"] == m].pivot_table(
            index="pair", columns=["system", "column"], values="value"
        )
        if means.empty:
            return {}
        gains = (means["REGEX"] > means["Baseline"]).sum()
        useful = means["REGEX"].gt(means["REGEX", "RAND"], axis=0).sum()
        facts[f"{word}_gains"] = ", ".join(f"{gains[a]} ({_symbol(a)})" for a in ATTRIBUTIONS)
        facts[f"{word}_useful"] = ", ".join(f"{useful[a]} ({_symbol(a)})" for a in FIVE)
    return facts


def ranking(study: Study, metric: str) -> Facts:
    """Friedman's test over pairs and seeds under REGEX, and Nemenyi's critical difference of mean
    ranks."""
    found = _compared(study).query("metric == @metric and system == 'REGEX'")
    blocks = found.pivot_table(index=["pair", "seed"], columns="column", values="value")
    blocks = blocks.reindex(columns=FIVE).dropna()
    n, k = blocks.shape
    if n < 2:
        return {}
    ranks = rankdata(-blocks.to_numpy(), axis=1).mean(axis=0)
    by_rank = sorted(zip(ranks, blocks.columns, strict=True))
    quantile = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    return {
        "metric": WORDS[metric],
        "ranks": ", ".join(f"{_symbol(name)} {rank:.1f}" for rank, name in by_rank),
        "blocks": n,
        "p": friedmanchisquare(*blocks.to_numpy().T).pvalue,
        "critical": quantile * np.sqrt(k * (k + 1) / (6 * n)),
    }


def undefined(study: Study) -> Facts:
    """Per cent of texts whose value is 0 by definition (metrics.md §2): REGEX_home and so on."""
    shares: dict[str, list[float]] = {}
    for cell in study.of("table1"):
        if cell.column == BEST[0]:  # a model's texts, once
            pair, system = cell.row.split("|")
            key = f"{system}_{'home' if pair == 'SST->SST' else 'away'}"
            shares.setdefault(key, []).append(100 * study.value(cell.specs[0], "undefined"))
    return {key: np.nanmean(found) for key, found in shares.items()}


def rationales(study: Study) -> Facts:
    """Mean F1 over the pairs of FRESH's sources, of the full text and by attribution."""
    sources, found = study.settings.grid["fresh"]["sources"], means(study, "table2", every=True)
    facts: Facts = {"sources": " and ".join(sources)}
    for system in MAIN:
        names = [f"{s}->{t}|{system}" for s in sources for t in RATIO]
        mean = found.reindex(names).mean()
        facts[system] = ", ".join(f"{_symbol(a)} {mean[a]:.1f}" for a in ("Full-text", *FIVE))
    return facts


def agreement(study: Study, table: str) -> Facts:
    """Mean Jaccard@25 % of trained models with each other and with the untrained one, by system;
    and of how many pairs."""
    cells = [c for c in study.of(table) if c.row.split("|")[0] < c.column]  # each pair once
    found = study.numbers(cells)
    found[["initialisation", "system"]] = found["row"].str.split("|", expand=True)
    found = found.dropna(subset="value")
    odd = found["initialisation"] == UNTRAINED
    means = found.groupby(["system", np.where(odd, "untrained", "trained")])["value"].mean()
    wanted = [(system, kind) for system in MAIN for kind in ("trained", "untrained")]
    facts: Facts = {"_".join(key): means.get(key, np.nan) for key in wanted}
    return {**facts, "pairs": counted(int((~odd & (found["system"] == "REGEX")).sum()), "pair")}


def parts(study: Study) -> Facts:
    """What sufficiency, mean of the two best attributions, loses without each part, against REGEX
    trained for as long."""
    found = study.numbers(c for c in study.of("table10") if c.column in BEST)
    means = found[found["metric"] == "norm_suff"].groupby("row")["value"].mean()
    short = "REGEX" + SHORT_RUN

    def against(system: str) -> str:
        return "REGEX" if systems.is_long(study.settings, system) or short not in means else short

    return {part: means[system] - means[against(system)] for part, system in PARTS.items()}


def sweep(study: Study, figure: str) -> Facts:
    """Where the mean over a sweep's attributions is best, and by how much values differ."""
    means = swept(study, figure).groupby(["metric", "value"])["AOPC"].mean().dropna()
    if set(means.index.get_level_values("metric")) < WORDS.keys():
        return {}
    return {
        **{word: means[m].idxmax() for m, word in WORDS.items()},
        **{f"{word}_spread": np.ptp(means[m]) for m, word in WORDS.items()},
    }


def attack(study: Study) -> Facts:
    """Both systems' flips of the first seed, and McNemar's exact test on the texts that both
    classified correctly."""
    first = {c.column: c.specs[0] for c in study.of("table6") if c.seed == study.settings.seeds[0]}
    if not study.has(*first.values()):
        return {}
    tables = {system: study.texts(spec).set_index("id") for system, spec in first.items()}
    right = {system: t["before"] == t["label"] for system, t in tables.items()}
    flipped = {system: right[system] & (t["after"] != t["label"]) for system, t in tables.items()}
    both = right["REGEX"] & right["Baseline"]
    alone = {
        "REGEX_alone": int((flipped["REGEX"] & ~flipped["Baseline"] & both).sum()),
        "Baseline_alone": int((flipped["Baseline"] & ~flipped["REGEX"] & both).sum()),
    }
    differ = sum(alone.values())
    kinds = " ".join(" ".join(t["kinds"]) for t in tables.values()).split()
    return {
        **{system: f"{flipped[system].sum()} of {right[system].sum()}" for system in MAIN},
        **alone,
        "both": int(both.sum()),
        "p": binomtest(alone["REGEX_alone"], differ).pvalue if differ else 1.0,
        "changes": ", ".join(f"{kinds.count(k)} {k}" for k in dict.fromkeys(kinds)) or "none",
    }


def guide(check: pd.DataFrame) -> Facts:
    """How alike the remembered guide and a fresh one are."""
    if remark_of(check):
        return {}
    rho, shared = check["rank correlation"], check["masked by both"]
    return {"mean": rho.mean(), "first": rho.iloc[0], "last": rho.iloc[-1], "batches": len(rho),
            "shared": 100 * shared.mean()}  # fmt: skip


def cost(table: pd.DataFrame) -> Facts:
    """How many times a step of the Baseline one of the others takes."""
    if remark_of(table):
        return {}
    times = table.set_index("system")["times Baseline"]
    return {"regex": times["REGEX"], "paper": times["REGEX, 50 points per batch"],
            "robust": times["with robustness terms"]}  # fmt: skip


def perturbation(check: pd.DataFrame) -> Facts:
    """What the ascent is worth, at the paper's step size and at larger ones."""
    if remark_of(check):
        return {}
    paper, *larger = check.to_dict("records")
    others = ", ".join(f"{r['times']:.1f} at η = {r['step size η']:g}" for r in larger)
    return {"cosine": paper["cosine with the random start"], "times": paper["times"],
            "larger": others}  # fmt: skip


def over_random(study: Study) -> Facts:
    """What each way to DeepLift gains over random order, text by text: mean ± standard error, in
    sufficiency and in comprehensiveness."""
    found = deeplifts(study.settings)
    if not study.has(*found.values()):
        return {}
    ways = {"regex": "straight into the encoder", **OTHER_DEEPLIFTS}

    def by_text(system: str, variant: str, measure: str) -> pd.Series:
        return aopc(study.texts(found[system, variant]), measure).droplevel("method")

    said: Facts = {}
    for system in MAIN:
        gains = []
        for variant, way in ways.items():
            each = [
                by_text(system, variant, m) - by_text(system, "random", m)
                for m in MEASURES.values()
            ]
            gains.append(f"{way} " + " and ".join(f"{d.mean():+.3f} ± {d.sem():.3f}" for d in each))
        said |= {system: "; ".join(gains), "texts": len(each[0])}
    return said


def _symbol(attribution: str) -> str:
    return systems.SYMBOLS.get(attribution, attribution)


def _compared(study: Study) -> pd.DataFrame:
    """Table 1 in pairs and seeds of which both systems are trained, and all attributions taken."""
    found = study.numbers(study.of("table1"))
    found[["pair", "system"]] = found["row"].str.split("|", expand=True)
    found = found[found.groupby(["pair", "seed"])["trained"].transform("all")]
    return found[found["pair"].isin(found.loc[found["column"] == "RAND", "pair"])]
