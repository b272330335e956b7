"""Does a claim of a paper hold in our runs? (rules: metrics.md §13)

A verdict is computed here and nowhere else. Every rule first asks for three seeds; with fewer the
verdict is `inconclusive`, whatever the numbers say. With 3 to 9 seeds the t interval and, where
per-text differences are given, the two-level bootstrap must both support the verdict: the interval
reported is then the smallest one that has both in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, norm

from erlib.metrics import stats
from erlib.metrics.stats import NOWHERE, Interval, Statistic

Verdict = Literal["holds", "holds (direction)", "fails", "inconclusive"]
VERDICTS: tuple[Verdict, ...] = ("holds", "holds (direction)", "inconclusive", "fails")
MIN_SEEDS = 3
FEW_SEEDS = 9  # up to here the t interval alone is not enough
CORR_BOUND = 0.5


@dataclass(frozen=True)
class Decision:
    """A verdict and the numbers it was computed from.

    `p` is the test's own p (PAIR: exact sign-flip permutation); `interval_p` is the p of the test
    that the interval inverts, by which Holm orders the parts of a claim; `null` is the value that
    stands for no effect (0, or 1 for a ratio).
    """

    estimate: float
    ci_low: float
    ci_high: float
    n: int
    p: float
    verdict: Verdict
    reason: str
    interval_p: float
    paper: float | None = None
    null: float = 0.0
    confidence: float = 0.95
    part: str = ""
    parts: Mapping[str, Decision] = field(default_factory=dict)


def decide_pair(
    differences: ArrayLike,
    *,
    paper_effect: float | None = None,
    margin: float | None = None,
    side: int | None = None,
    per_text: Sequence[ArrayLike] | None = None,
    statistic: Statistic | None = None,
    same_texts: bool = True,
    alpha: float = 0.05,
) -> Decision:
    """PAIR: is the mean of the per-seed differences on the claimed side, and large enough?

    The claimed side is the sign of `paper_effect`, or `side` (+1, -1) where the paper prints no
    number. Large enough is half the paper's effect, or `margin` where one is given (with `side`
    alone: required; 0 asks for the side only). `per_text`, `statistic`, `same_texts` go to
    `two_level_bootstrap`; per seed they must give the very differences passed.
    """
    d = stats.vector(differences, "differences")
    claim = _Effect.of(paper_effect, margin, side)
    interval, words = _intervals(d, per_text, statistic, same_texts, 1 - alpha)
    verdict, why = claim.verdict(float(d.mean()), interval)
    return _decision(
        d.mean(),
        interval,
        d.size,
        verdict,
        f"{words}; {why}",
        p=stats.sign_flip_p(d),
        interval_p=stats.t_p(d),
        paper=paper_effect,
        alpha=alpha,
    )


def decide_nil(
    differences: ArrayLike,
    margin: float,
    *,
    paper_effect: float | None = None,
    per_text: Sequence[ArrayLike] | None = None,
    statistic: Statistic | None = None,
    same_texts: bool = True,
    few_texts: bool = False,
    alpha: float = 0.05,
) -> Decision:
    """NIL: is there no effect beyond ±margin? TOST: the 1 − 2α interval must lie inside.

    Fails if the 1 − α interval, which is the one reported, lies outside. `few_texts`: the two-level
    bootstrap counts with any number of seeds.
    """
    d = stats.vector(differences, "differences")
    _positive(margin)
    most = d.size if few_texts else FEW_SEEDS
    interval, words = _intervals(d, per_text, statistic, same_texts, 1 - alpha, most)
    narrow, _ = _intervals(d, per_text, statistic, same_texts, 1 - 2 * alpha, most)
    verdict: Verdict = "inconclusive"
    why = f"the interval crosses the margin of ±{margin:g}"
    if narrow.inside(margin):
        verdict, why = (
            "holds",
            f"its {_percent(1 - 2 * alpha)} interval lies inside ±{margin:g} (TOST)",
        )
    elif interval.low > margin or interval.high < -margin:
        verdict, why = "fails", f"the interval lies outside ±{margin:g}"
    p = stats.tost_p(d, margin)
    return _decision(
        d.mean(),
        interval,
        d.size,
        verdict,
        f"{words}; {why}",
        p=p,
        interval_p=p,
        paper=paper_effect,
        alpha=alpha,
    )


def decide_corr(
    x: ArrayLike,
    y: ArrayLike,
    *,
    system: Sequence[object] | None = None,
    seeds: Sequence[object] | None = None,
    paper_rho: float | None = None,
    alpha: float = 0.05,
) -> Decision:
    """CORR: is y unrelated to x? One point per seed (and system).

    With several systems the estimate is partial ρ with system as factor. Holds: its interval has 0
    in it and stays below .5 in size. Fails: its interval excludes 0, or the intervals within most
    systems do. Below ten seeds Fisher's interval must agree with the bootstrap, which calls three
    points on a line certain.
    """
    a, b = stats.vector(x, "x"), stats.vector(y, "y")
    names = list(dict.fromkeys(system)) if system is not None else []
    n = min((list(system).count(s) for s in names), default=a.size) if system else a.size
    if n < MIN_SEEDS:
        rho = stats.spearman(a, b, system)
        return _decision(
            rho,
            NOWHERE,
            n,
            "inconclusive",
            f"ρ = {rho:.2f}",
            p=1.0,
            interval_p=1.0,
            paper=paper_rho,
            alpha=alpha,
        )
    rho, interval = _rho(a, b, system, seeds, n, alpha)
    within = {}
    for name in names:
        rows = [i for i, s in enumerate(system or ()) if s == name]
        within[name] = _rho(a[rows], b[rows], None, None, n, alpha)[1]
    related = [str(name) for name, found in within.items() if 0.0 not in found]
    most = len(related) > len(within) / 2 if within else False
    verdict: Verdict = "inconclusive"
    why = f"the interval has 0 in it but reaches beyond ±{CORR_BOUND:g}"
    if not np.isfinite(rho):
        why = "one side is constant"
    elif 0.0 not in interval:
        verdict, why = "fails", "the interval excludes 0"
    elif most:
        verdict, why = "fails", f"the intervals within {', '.join(related)} exclude 0"
    elif interval.inside(CORR_BOUND):
        verdict, why = "holds", f"the interval has 0 in it and stays inside ±{CORR_BOUND:g}"
    kind = "partial ρ (system as factor)" if names else "ρ"
    words = f"Spearman's {kind} = {rho:.2f} {_show(interval, 1 - alpha)}"
    p = _rho_p(rho, a.size, len(names))
    return _decision(
        rho,
        interval,
        n,
        verdict,
        f"{words}; {why}",
        p=p,
        interval_p=p,
        paper=paper_rho,
        alpha=alpha,
    )


def decide_spread(
    treated: ArrayLike, baseline: ArrayLike, *, paper_ratio: float, alpha: float = 0.05
) -> Decision:
    """Is the ratio of variances, treated to baseline, on the paper's side of 1?

    The PAIR rule on the logarithm, with the F interval; a ratio counts as different from 1 only if
    Brown and Forsythe's test says so too. Estimate and interval are reported as ratios.
    """
    a, b = stats.vector(treated, "treated"), stats.vector(baseline, "baseline")
    n = min(a.size, b.size)
    logs = stats.log_variance_ratio_interval(a, b, 1 - alpha)
    p = stats.brown_forsythe_p(a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(a.var(ddof=1) / b.var(ddof=1)) if n > 1 else float("nan")
        log_ratio = float(np.log(ratio))
    verdict, why = _Effect.of(float(np.log(paper_ratio)), None, None).verdict(log_ratio, logs)
    if verdict != "inconclusive" and p > alpha and 0.0 not in logs:
        verdict, why = "inconclusive", "but the two tests disagree"
    interval = Interval(float(np.exp(logs.low)), float(np.exp(logs.high)))
    words = f"ratio of variances {ratio:.2f} {_show(interval, 1 - alpha)}, Brown-Forsythe p {p:.3f}"
    return _decision(
        ratio,
        interval,
        n,
        verdict,
        f"{words}; {why}",
        p=p,
        interval_p=p,
        paper=paper_ratio,
        alpha=alpha,
        null=1.0,
    )


def decide_quartile(
    treated: ArrayLike,
    baseline: ArrayLike,
    *,
    paper_effect: float | None = None,
    margin: float | None = None,
    side: int | None = None,
    alpha: float = 0.05,
) -> Decision:
    """The PAIR rule on the lower quartile over seeds (are the bad seeds better?), by bootstrap.

    Inconclusive below ten seeds, where a quartile rests on two or three of them.
    """
    a, b = stats.vector(treated, "treated"), stats.vector(baseline, "baseline")
    effect = _Effect.of(paper_effect, margin, side)
    estimate = float(np.quantile(a, 0.25) - np.quantile(b, 0.25))
    drawn = stats.paired_bootstrap(a, b, lambda seeds: np.quantile(seeds, 0.25, axis=1))
    interval = stats.percentile(drawn, 1 - alpha)
    verdict, why = effect.verdict(estimate, interval)
    if a.size <= FEW_SEEDS:
        verdict, why = "inconclusive", f"{a.size} seeds are too few for a quartile"
    words = f"difference of lower quartiles {_number(estimate)} {_show(interval, 1 - alpha)}"
    p = min(1.0, 2 * float(min((drawn <= 0).mean(), (drawn >= 0).mean())))
    return _decision(
        estimate,
        interval,
        a.size,
        verdict,
        f"{words}; {why}",
        p=p,
        interval_p=p,
        paper=paper_effect,
        alpha=alpha,
    )


def decide_share(
    successes: int, trials: int, *, paper_share: float, limit: float, alpha: float = 0.05
) -> Decision:
    """Is the share of seeds that succeed on the paper's side of `limit`?

    Holds if the exact binomial interval lies on that side and has the paper's share in it; without
    the paper's share, holds in direction; fails if it lies on the other side.
    """
    interval = stats.binomial_interval(successes, trials, 1 - alpha)
    share = successes / trials
    claimed = interval.high < limit if paper_share < limit else interval.low > limit
    other = interval.low > limit if paper_share < limit else interval.high < limit
    verdict: Verdict = "inconclusive"
    why = f"the interval has {limit:.2f} in it"
    if claimed and paper_share in interval:
        verdict, why = "holds", f"on the paper's side of {limit:.2f}, with its {paper_share:.2f}"
    elif claimed:
        verdict = "holds (direction)"
        why = f"on the paper's side of {limit:.2f}, without its {paper_share:.2f}"
    elif other:
        verdict, why = "fails", f"on the other side of {limit:.2f}"
    words = f"{successes} of {trials} {_show(interval, 1 - alpha)}"
    p = float(binomtest(successes, trials, limit).pvalue)
    return _decision(
        share,
        interval,
        trials,
        verdict,
        f"{words}; {why}",
        p=p,
        interval_p=p,
        paper=paper_share,
        alpha=alpha,
        null=limit,
    )


Rule = Callable[..., Decision]


def decide_parts(
    parts: Mapping[str, Rule], *, need: Literal["all", "most"] = "all", alpha: float = 0.05
) -> Decision:
    """One verdict for a claim of several parts (sets, techniques, layers), Holm within the claim.

    `parts`: name → a rule that takes `alpha`, `partial(decide_pair, d, paper_effect=2.1)` say. Each
    part is decided at the level that Holm's procedure gives its `interval_p`. Then `combine`.
    """
    if not parts:
        raise ValueError("a claim needs at least one part")
    first = [rule(alpha=alpha) for rule in parts.values()]
    levels = stats.holm_levels([d.interval_p for d in first], alpha)
    decided = {
        name: replace(rule(alpha=float(level)), part=name)
        for (name, rule), level in zip(parts.items(), levels, strict=True)
    }
    return combine(decided, need=need)


def combine(parts: Mapping[str, Decision], *, need: Literal["all", "most"] = "all") -> Decision:
    """The verdict of a claim from those of its parts.

    need="all": any part fails → fails; else any inconclusive → inconclusive; else any in direction
    only → holds (direction); else holds. need="most": the verdict, if there is one, that more than
    half of the parts have (a hold in direction counts for holding; the claim then holds in
    direction); else inconclusive.
    The numbers are those of the deciding part: of the parts with that verdict the weakest (largest
    p), or for fails the strongest. n is the smallest of all parts.
    """
    if not parts:
        raise ValueError("a claim needs at least one part")
    given = [d.verdict for d in parts.values()]
    worst: tuple[Verdict, ...] = ("fails", "inconclusive", "holds (direction)", "holds")
    verdict: Verdict = next(v for v in worst if v in given)
    if need == "most":
        half = len(given) / 2
        holding = given.count("holds") + given.count("holds (direction)")
        verdict = "inconclusive"
        if given.count("fails") > half:
            verdict = "fails"
        elif holding > half:
            verdict = "holds" if given.count("holds") > half else "holds (direction)"
    n = min(d.n for d in parts.values())
    if n < MIN_SEEDS:
        verdict = "inconclusive"
    same = {name: d for name, d in parts.items() if d.verdict == verdict} or dict(parts)
    pick = min if verdict == "fails" else max
    name = pick(same, key=lambda key: _last_if_nan(same[key].interval_p, verdict))
    reason = parts[name].reason
    if len(parts) > 1:
        counts = ", ".join(f"{given.count(v)} {v}" for v in VERDICTS if v in given)
        reason = f"{len(parts)} parts ({counts}); decided by {name}: {reason}"
    return replace(parts[name], verdict=verdict, n=n, part=name, parts=dict(parts), reason=reason)


@dataclass(frozen=True)
class _Effect:
    """What a PAIR rule compares with: the claimed side, the size asked for, and what is nil."""

    side: int
    enough: float
    nil: float
    words: str

    @classmethod
    def of(cls, effect: float | None, margin: float | None, side: int | None) -> _Effect:
        if margin is not None and margin != 0:
            _positive(margin)
        if effect is not None:
            if effect == 0:
                raise ValueError("a paper effect of 0 is a claim of no effect: use decide_nil")
            if side is not None and side != np.sign(effect):
                raise ValueError(f"side {side} contradicts the paper's effect {effect:g}")
            enough = abs(effect) / 2 if margin is None else margin
            words = f"half the paper's {effect:+g}" if margin is None else f"the margin {margin:g}"
            return cls(int(np.sign(effect)), enough, abs(effect) / 4, words)
        if side not in (-1, 1) or margin is None:
            raise ValueError("without the paper's effect, side (+1 or -1) and margin are needed")
        return cls(side, margin, margin / 2, f"the margin {margin:g}")

    def verdict(self, estimate: float, interval: Interval) -> tuple[Verdict, str]:
        claimed = interval.low > 0 if self.side > 0 else interval.high < 0
        other = interval.high < 0 if self.side > 0 else interval.low > 0
        if other:
            return "fails", "the interval lies on the other side of 0"
        if interval.inside(self.nil):
            return "fails", f"the interval lies inside ±{self.nil:g}, next to nothing"
        if claimed and abs(estimate) >= self.enough:
            return "holds", f"on the claimed side and at least {self.words}"
        if claimed:
            return "holds (direction)", f"on the claimed side, but smaller than {self.words}"
        return "inconclusive", "the interval has 0 in it"


def _intervals(
    d: stats.Floats,
    per_text: Sequence[ArrayLike] | None,
    statistic: Statistic | None,
    same_texts: bool,
    confidence: float,
    most: int = FEW_SEEDS,
) -> tuple[Interval, str]:
    """The interval to decide by, and the words that say how it came about.

    With more than `most` seeds the texts are left out of it.
    """
    interval = stats.t_interval(d, confidence)
    words = f"mean difference {_number(d.mean())} {_show(interval, confidence)}, t"
    if per_text is None:
        return interval, words
    of_seed = stats.per_seed(per_text, statistic)
    if of_seed.shape != d.shape or not np.allclose(of_seed, d, rtol=1e-6, atol=1e-9):
        raise ValueError(
            f"per_text gives per-seed values {of_seed.round(4).tolist()}, but differences are "
            f"{d.round(4).tolist()}: pass the per-text values or the statistic of these differences"
        )
    if not MIN_SEEDS <= d.size <= most:
        return interval, words
    drawn = stats.two_level_bootstrap(
        per_text, statistic=statistic, same_texts=same_texts, confidence=confidence
    )
    words += f"; two-level bootstrap [{_number(drawn.low)}, {_number(drawn.high)}]"
    return interval.hull(drawn), words


def _rho(
    x: stats.Floats,
    y: stats.Floats,
    system: Sequence[object] | None,
    seeds: Sequence[object] | None,
    n: int,
    alpha: float,
) -> tuple[float, Interval]:
    rho = stats.spearman(x, y, system)
    interval = stats.spearman_interval(x, y, system=system, seeds=seeds, confidence=1 - alpha)
    factors = len(set(system)) - 1 if system is not None else 0
    fisher = stats.fisher_interval(rho, x.size, factors=factors, confidence=1 - alpha)
    return rho, interval.hull(fisher) if n <= FEW_SEEDS else interval


def _rho_p(rho: float, points: int, systems: int) -> float:
    freedom = points - 3 - max(systems - 1, 0)
    if freedom <= 0 or not np.isfinite(rho):
        return 1.0
    z = abs(np.arctanh(np.clip(rho, -1 + 1e-12, 1 - 1e-12))) / np.sqrt(1.06 / freedom)
    return float(2 * norm.sf(z))


def _decision(
    estimate: float | np.floating,
    interval: Interval,
    n: int,
    verdict: Verdict,
    reason: str,
    *,
    p: float,
    interval_p: float,
    paper: float | None,
    alpha: float,
    null: float = 0.0,
) -> Decision:
    """The one place where fewer than three seeds become inconclusive."""
    if n < MIN_SEEDS:
        verdict = "inconclusive"
        reason = f"{n} seed{'s' if n != 1 else ''}, fewer than {MIN_SEEDS}; {reason.split(';')[0]}"
    return Decision(
        estimate=float(estimate),
        ci_low=interval.low,
        ci_high=interval.high,
        n=int(n),
        p=float(p),
        verdict=verdict,
        reason=reason,
        interval_p=float(interval_p),
        paper=paper,
        null=null,
        confidence=1 - alpha,
    )


def _positive(margin: float) -> None:
    if not margin > 0:
        raise ValueError(f"a margin is a size above 0, got {margin:g}")


def _last_if_nan(p: float, verdict: Verdict) -> float:
    if np.isfinite(p):
        return p
    return float("inf") if verdict == "fails" else float("-inf")


def _number(value: float | np.floating) -> str:
    return f"{round(float(value), 9):+.3g}".replace("-", "−")


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _show(interval: Interval, confidence: float) -> str:
    if not np.isfinite(interval.low):
        return "(no interval)"
    return f"({_percent(confidence)} interval {_number(interval.low)} to {_number(interval.high)})"
