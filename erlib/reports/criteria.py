"""What decides each claim, fixed before the results that it judges are read?

Criteria are data: the table `[claim.criterion]` of each entry of a paper's `claims.toml`; the
head of er_lens.toml explains the fields. Here they are read, checked against the paper's printed
tables, and given the effect that the paper has in the cells that they name.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from itertools import product
from statistics import fmean
from typing import Any, Literal

from erlib.catalogue import paper as paper_named
from erlib.errors import unknown
from erlib.metrics.scales import SCALES
from erlib.reports.cells import AXES, Cell, Pattern, matching, printed

SIDED = ("PAIR", "NONINFERIOR", "SPREAD", "SHARE")
WITH_MARGIN = ("NIL", "NONINFERIOR", "CORR")
RULES = (*SIDED, "NIL", "CORR", "SAME")
JOINS = ("one", "all", "best", "most")
UNITS = ("seeds", "distance", "models", "repetitions")
PROFILES = ("quick", "cpu", "night", "gpu", "paper")
SEEDS = {"CORR": 5, "SPREAD": 8}  # the fewest with which a claim is attempted; else three
TEXTS = 50  # the fewest with which a cell counts as measured
CRITERION = ("where", "says", "why", "rule", "join", "by", "side", "margin", "because", "contrast",
             "claims", "metrics", "pool", "seeds", "texts", "excludes", "given", "cannot",
             "night")  # fmt: skip
COMMON = ("scales", "given", "cannot", "night")
DEFAULTS: dict[str, Any] = {
    "rule": "PAIR", "join": "one", "by": "seeds", "texts": TEXTS, "given": "", "scales": {},
    "claims": (), "metrics": (), "excludes": (),
}  # fmt: skip
OF_PART = ("rule", "side", "margin", "of", "because", "ceiling")
CONTRAST = (*AXES, "at", "from", "to", "each", "level", "less", "paper", "scale", "part", *OF_PART)


@dataclass(frozen=True)
class Difference:
    """after − before, or after − the contrast's level; less the same difference elsewhere."""

    after: Cell
    before: Cell | None
    less: tuple[Cell, Cell] | None  # (before, after)
    paper: float | None  # what the paper has, on the contrast's scale; None: not printed


@dataclass(frozen=True)
class Contrast:
    """One thing to decide: the mean of its differences, seed by seed, on a scale.

    `margin` is in the metric's own unit (a share on the log scale), or in units of the estimate of
    the contrast that `of` names. `ceiling` is the explanation-only system whose lead over `before`
    caps what is asked.
    """

    name: str
    differences: tuple[Difference, ...]
    scale: str
    pool: str
    rule: str
    side: int | None = None
    margin: float | None = None
    of: str | None = None
    because: str = ""
    level: float | None = None
    ceiling: str | None = None

    @property
    def asked(self) -> float | None:
        """The paper's effect on the scale, the mean over the differences that it prints."""
        effects = [d.paper for d in self.differences if d.paper is not None]
        return fmean(effects) if effects else None


@dataclass(frozen=True)
class Criterion:
    """How a claim is decided: its contrasts, and how they make one verdict."""

    paper: str
    claim: str
    where: str
    says: str
    why: str
    night: str
    given: str
    rule: str
    join: str
    by: str
    seeds: int
    texts: int
    contrasts: tuple[Contrast, ...]
    claims: tuple[str, ...]
    metrics: tuple[str, ...]
    excludes: tuple[str, ...]
    cannot: Mapping[str, str] = field(default_factory=dict)


@cache
def criteria(paper: str) -> dict[str, Criterion]:
    """The criterion of every claim of a paper, by the claim's id."""
    return read_criteria(paper, paper_named(paper).claims_text())


def read_criteria(paper: str, text: str) -> dict[str, Criterion]:
    """The criteria in the text of a paper's list of claims; a mistake is told with its claim."""
    written = tomllib.loads(text)
    entries = {entry["id"]: entry for entry in written["claim"]}
    return {
        claim: _criterion(paper, entry, written["criteria"], entries)
        for claim, entry in entries.items()
    }


def _criterion(
    paper: str, claim: Mapping[str, Any], common: Mapping[str, Any], ids: Collection[str]
) -> Criterion:
    try:
        if "criterion" not in claim:
            raise ValueError("no criterion: add a table [claim.criterion] to its entry")
        own = claim["criterion"]
        _known("field of [criteria]", common, COMMON)
        _known("field of a criterion", own, CRITERION)
        entry = {**DEFAULTS, **common, **own, "cannot": common["cannot"] | own.get("cannot", {})}
        _check(entry, ids)
        contrasts = () if entry["rule"] == "SAME" else _contrasts(paper, entry)
        _check_join(entry, contrasts)
    except ValueError as error:
        raise ValueError(f"{claim['id']}: {error}") from error
    kept = {f.name: entry[f.name] for f in fields(Criterion) if f.name in entry}
    listed = {name: tuple(entry[name]) for name in ("claims", "metrics", "excludes")}
    seeds = entry.get("seeds", SEEDS.get(entry["rule"], 3))
    return Criterion(
        **{**kept, **listed, "seeds": seeds}, paper=paper, claim=claim["id"], contrasts=contrasts
    )


def _contrasts(paper: str, entry: Mapping[str, Any]) -> tuple[Contrast, ...]:
    """The criterion's contrasts. Differences whose part has the same name are pooled into one."""
    pooled: dict[Contrast, list[Difference]] = {}
    for written in _listed(entry["contrast"]):
        _known("field of a contrast", written, CONTRAST)
        line = {**{name: entry[name] for name in OF_PART if name in entry}, **written}
        _known("rule", [line["rule"]], RULES)
        for labels, before, after in _pairs(paper, line):
            if {c.row for c in (before, after) if c} & set(entry["excludes"]):
                continue
            scale = line.get("scale") or _scale(line["rule"], after.metric, entry["scales"])
            _known("scale", [scale], SCALES)
            level = _level(paper, line, after)
            part = line.get("part", _spelt(before, after)).format(**labels)
            contrast = Contrast(
                name="mean of all" if entry["join"] == "most" else part,
                differences=(),
                scale=scale,
                pool=f"{paper}/{entry.get('pool') or _metric(before, after)}/{scale}",
                rule=line["rule"],
                side=line.get("side"),
                margin=line.get("margin"),
                of=line["of"].format(**labels) if "of" in line else None,
                because=line.get("because", ""),
                level=level,
                ceiling=line.get("ceiling"),
            )
            pooled.setdefault(contrast, []).append(
                _difference(paper, line, contrast, before, after)
            )
    found = tuple(replace(c, differences=tuple(d)) for c, d in pooled.items())
    for contrast in found:
        _check_contrast(contrast, [other.name for other in found])
    return found


def _pairs(
    paper: str, line: Mapping[str, Any]
) -> Iterator[tuple[dict[str, str], Cell | None, Cell]]:
    """(names for the part, before, after) for all that a line names by lists and *."""
    named = {axis: _listed(line[axis]) for axis in AXES if axis in line}
    for names in product(*named.values(), _listed(line.get("from")), _listed(line.get("to"))):
        common, (start, end) = dict(zip(named, names[:-2], strict=True)), names[-2:]
        labels = {**common, "from": start, "to": end}
        first, last = _placed(common, start), _placed(common, end)
        if "at" in line:
            nowhere = dict.fromkeys(AXES[1:], "")
            cells = [Cell(line["at"], **{**nowhere, **place}) for place in (first, last)]
            yield labels, cells[0] if start else None, cells[1]
            continue
        for after, stars in matching(paper, last):
            if "each" in line and not set(stars.values()) & set(line["each"]):
                continue
            if start is None:
                yield labels, None, after
                continue
            sought = {axis: name.replace("*", stars.get(axis, "*")) for axis, name in first.items()}
            for before, _ in matching(paper, sought):
                if before != after:
                    yield labels, before, after


def _placed(common: Pattern, end: str | Pattern | None) -> dict[str, str]:
    """The coordinates of one end: a name is that of the first axis left open, a table overrides."""
    if not isinstance(end, str):
        return {**common, **(end or {})}
    left_open = [axis for axis in AXES[1:] if axis not in common]
    if not left_open:
        raise ValueError(f"'{end}': leave open one of row, column and metric for it to name")
    return {**common, left_open[0]: end}


def _level(paper: str, line: Mapping[str, Any], after: Cell) -> float | None:
    """The level that `after` is held against: a number, or of the cells named the nearest one."""
    level = line.get("level")
    if not isinstance(level, Mapping):
        return level
    values = [printed(paper, cell) for cell, _ in matching(paper, {**asdict(after), **level})]
    return min(values) if line["side"] < 0 else max(values)


def _difference(
    paper: str, line: Mapping[str, Any], contrast: Contrast, before: Cell | None, after: Cell
) -> Difference:
    less = None
    if "less" in line and before:
        less = (replace(before, **line["less"]), replace(after, **line["less"]))
        for cell in less:
            matching(paper, asdict(cell))
    if contrast.ceiling and before and "table" in line:
        matching(paper, {**asdict(before), "row": contrast.ceiling})
    what: Literal["mean", "std"] = "std" if contrast.rule == "SPREAD" else "mean"

    def value(cell: Cell) -> float:
        number = line.get("paper", math.nan) if "at" in line else printed(paper, cell, what)
        return number if math.isnan(number) else _scaled(number, contrast.scale)

    start = value(before) if before else _scaled(contrast.level or 0.0, contrast.scale)
    effect = value(after) - start
    if less:
        effect -= value(less[1]) - value(less[0])
    if contrast.rule == "SPREAD":
        effect *= 2  # log of a ratio of variances
    return Difference(after, before, less, None if math.isnan(effect) else effect)


def _scaled(number: float, scale: str) -> float:
    try:
        return SCALES[scale].forward(number)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{number} has no {scale}: exclude what is so by identity") from None


def _scale(rule: str, metric: str, scales: Mapping[str, str]) -> str:
    return "log" if rule == "SPREAD" else scales.get(metric, "identity")


def _metric(before: Cell | None, after: Cell) -> str:
    if before is None or before.metric == after.metric:
        return after.metric
    return f"{after.metric}-{before.metric}"


def _spelt(before: Cell | None, after: Cell) -> str:
    """The name of a part that has none: the cell, and what it is compared with."""
    if before is None:
        return " ".join(filter(None, asdict(after).values()))
    old, new = asdict(before), asdict(after)
    same = [new[axis] for axis in AXES if new[axis] and new[axis] == old[axis]]
    differ = [axis for axis in AXES if new[axis] != old[axis]]
    ends = (" ".join(end[axis] for axis in differ) for end in (old, new))
    return f"{' '.join(same)}: {' → '.join(ends)}".replace("{", "{{").replace("}", "}}")


def _check(entry: Mapping[str, Any], ids: Collection[str]) -> None:
    if missing := [name for name in ("where", "says", "why") if not entry.get(name)]:
        raise ValueError(f"'{missing[0]}' is missing")
    _known("rule", [entry["rule"]], RULES)
    _known("join", [entry["join"]], JOINS)
    _known("unit to resample ('by')", [entry["by"]], UNITS)
    _known("profile ('cannot')", entry["cannot"], PROFILES)
    _known("claim", entry["claims"], ids)
    if (entry["rule"] == "SAME") != bool(entry["claims"] and entry["metrics"]):
        raise ValueError("SAME, and no other rule, has 'claims' and 'metrics'")
    if (entry["rule"] == "SAME") == ("contrast" in entry):
        raise ValueError("every rule but SAME needs a 'contrast'")
    if entry.get("seeds", math.inf) < (fewest := SEEDS.get(entry["rule"], 3)):
        raise ValueError(f"{entry['seeds']} seeds: {entry['rule']} needs at least {fewest}")


def _check_contrast(contrast: Contrast, names: Collection[str]) -> None:
    name, rule, side = contrast.name, contrast.rule, contrast.side
    if list(names).count(name) > 1:
        raise ValueError(f"'{name}' pools contrasts of different rules, sides, margins or metrics")
    if (side is not None) != (rule in SIDED) or side not in (1, -1, None):
        raise ValueError(
            f"'{name}': side {side} with {rule}; {', '.join(SIDED)} have 1 or -1, other rules none"
        )
    if (contrast.margin is not None and bool(contrast.because)) != (rule in WITH_MARGIN):
        raise ValueError(
            f"'{name}': {', '.join(WITH_MARGIN)}, and no other rule, have a 'margin' and its "
            "reason, 'because'"
        )
    if contrast.of is not None and contrast.of not in names:
        raise unknown("part ('of')", contrast.of, names)
    if rule != "NONINFERIOR" and side and (contrast.asked or 0.0) * side < 0:
        raise ValueError(f"'{name}': side {side}, but the paper's effect is {contrast.asked:.3g}")


def _check_join(entry: Mapping[str, Any], contrasts: Collection[Contrast]) -> None:
    if contrasts and (len(contrasts) > 1) != (entry["join"] in ("all", "best")):
        raise ValueError(
            f"join '{entry['join']}' with {len(contrasts)} contrasts: 'all' and 'best' join "
            "several, 'one' and 'most' have one"
        )


def _known(kind: str, names: Collection[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise unknown(kind, name, known)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
