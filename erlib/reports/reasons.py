"""Why does a part have its verdict, in a sentence that belongs to its rule and its scale?"""

from __future__ import annotations

import math
from collections.abc import Sequence

from erlib.metrics.estimates import Correlation, Mean, Share
from erlib.metrics.needs import MOST, Need
from erlib.metrics.rules import Question
from erlib.reports.markup import counted
from erlib.reports.parts import Part


def reason(part: Part, hours: float | None = None) -> str:
    """The finding, why it gives the verdict, and what an open one would need.

    `hours`: the cost of one more seed of everything that the claim compares.
    """
    if part.question is None or part.estimate is None or not part.tested.decides:
        return f"{part.why}." if part.why else "Not measured."
    said = f"{finding(part)}: {because(part)}."
    return " ".join(filter(None, (said, _texts_short(part), outlook(part, hours))))


def finding(part: Part) -> str:
    """The estimate, its interval, and what it rests on."""
    what = {
        "difference": f"Mean difference {signed(part.ours)}",
        "ratio": f"Ratio {plain(part.ours)}",
        "share": f"Share {percent(part.ours)}",
        "correlation": f"ρ {signed(part.ours)}",
    }[part.kind]
    if part.contrast.rule == "SPREAD":
        what = f"Ratio of variances {plain(part.ours)}"
    if isinstance(part.estimate, Share):
        what = f"{part.estimate.successes} of {counted(part.seeds, 'seed')}"
    if isinstance(part.estimate, Correlation):
        what += f", pooled over {counted(part.estimate.systems, 'system')}"
    rests = [] if isinstance(part.estimate, Share) else [counted(part.seeds, part.unit)]
    if part.texts:
        rests.append(counted(part.texts, "text"))
    return f"{what} ({'; '.join([shown(part, part.confidence), ', '.join(rests)]).rstrip('; ')})"


def because(part: Part) -> str:
    """Why the numbers give this verdict."""
    question = part.question
    assert question is not None
    if question.sided:
        return _of_effect(part, question)
    if question.rule == "CORR":
        return _of_no_relation(part, question)
    return _of_margin(part, question)


def _of_effect(part: Part, question: Question) -> str:
    null = number(part, part.null)
    claimed, other = ("above", "below") if question.side > 0 else ("below", "above")
    size = asked(part, question)
    match part.tested.word:
        case "holds":
            tail = f", and the estimate reaches at least half of {size}" if size else ""
            return f"the interval lies {claimed} {null}, as claimed{tail}"
        case "holds (direction)":
            return (
                f"the interval lies {claimed} {null}, as claimed, but the estimate is less than "
                f"half of {size}"
            )
        case "fails":
            return f"the interval lies {other} {null}, and the claim says {claimed}"
        case "no difference":
            return (
                f"{shown(part, 0.90)} lies within {bounds(part, question)}, a quarter of {size}"
                if part.kind == "difference"
                else f"{shown(part, 0.90)} lies within {bounds(part, question)}, next to no effect "
                f"beside {size}"
            )
        case "leans with":
            return f"the 80 % interval lies {claimed} {null}, the 95 % interval includes it"
        case "leans against":
            return f"the 80 % interval lies {other} {null}, the 95 % interval includes it"
    return f"even the 80 % interval includes {null}"


def _of_margin(part: Part, question: Question) -> str:
    two_sided = question.low is not None and question.high is not None
    margin = bounds(part, question)
    inside, outside = ("within", "outside") if two_sided else _sides(question)
    match part.tested.word:
        case "holds":
            return f"it lies {inside} {margin}"
        case "fails":
            return f"the 95 % interval lies {outside} {margin}"
        case "leans with":
            return f"the 80 % interval lies {inside} {margin}, the 90 % interval does not"
        case "leans against":
            return f"the 80 % interval lies {outside} {margin}, the 95 % interval does not"
    return f"even the 80 % interval crosses {'a bound of ' if two_sided else ''}{margin}"


def _sides(question: Question) -> tuple[str, str]:
    return ("above", "below") if question.low is not None else ("below", "above")


def _of_no_relation(part: Part, question: Question) -> str:
    margin = bounds(part, question)
    match part.tested.word:
        case "holds":
            return f"it lies within {margin}"
        case "fails":
            return "the 95 % interval excludes 0: they are related"
        case "leans with":
            return f"the 80 % interval lies within {margin}, the 90 % interval does not"
        case "leans against":
            return "the 80 % interval excludes 0, the 95 % interval does not"
    return f"it includes 0, but also values beyond {margin}"


def asked(part: Part, question: Question) -> str:
    """The effect asked for, in words; empty where the side alone decides."""
    if not question.asked:
        return ""
    size = number(part, part.printed(question.null + question.asked))
    return f"the {size} that explanation loss alone gains" if part.capped else f"the paper's {size}"


def bounds(part: Part, question: Question) -> str:
    """The margin as printed: ±0.05 where both sides are alike, else both ends."""
    ends = [part.printed(b) for b in (question.low, question.high) if b is not None]
    if len(ends) == 2 and part.kind != "share" and math.isclose(-ends[0], ends[1], rel_tol=0.02):
        return f"±{plain(ends[1])}"
    return " to ".join(number(part, end) for end in ends)


def _texts_short(part: Part) -> str:
    if not part.undecided or not isinstance(part.estimate, Mean) or part.estimate.of_texts <= 0.5:
        return ""
    return (
        f"Texts, not {part.unit}s, are short: they make {part.estimate.of_texts:.0%} of the "
        "uncertainty."
    ).replace("%", " %")


def outlook(part: Part, hours: float | None = None) -> str:
    """What an undecided part could have shown, and what would decide it."""
    if not part.undecided:
        return ""
    said = []
    if not math.isnan(found := part.detectable):
        if part.question and part.question.sided:
            said.append(f"An effect of {number(part, found)} could be found with 80 % power.")
        else:
            said.append(f"A margin of {_size(part, found)} could be met with 80 % power.")
    said.append(takes(part, part.needs, hours))
    return " ".join(said)


def _size(part: Part, margin: float) -> str:
    return f"±{plain(abs(margin))}" if part.contrast.rule == "NIL" else number(part, margin)


def takes(part: Part, need: Need | None, hours: float | None = None) -> str:
    """What the present estimate would need in seeds, texts and hours."""
    if need is None:
        return f"If the present estimate is the truth, not even {MOST} {part.unit}s decide it."
    wanted = []
    if need.seeds > part.seeds:
        wanted.append(f"{counted(need.seeds, part.unit)} in place of {part.seeds}")
    if need.texts > part.texts > 0:
        wanted.append(f"{counted(need.texts, 'text')} in place of {part.texts}")
    cost = ""
    if hours is not None and need.seeds > part.seeds:
        cost = f", some {(need.seeds - part.seeds) * hours:.2g} more hours here"
    return f"If the present estimate is the truth, it takes {' and '.join(wanted)}{cost}."


def shown(part: Part, confidence: float) -> str:
    """An interval with its level."""
    found = part.interval(confidence)
    if math.isnan(found.low):
        return "no interval"
    ends = f"{number(part, found.low)} to {number(part, found.high)}"
    return f"{100 * confidence:.3g} % interval {ends}"


def number(part: Part, value: float) -> str:
    """A value in the manner of the part's kind: +0.12, 1.31, or 33 %."""
    return {"ratio": plain, "share": percent}.get(part.kind, signed)(value)


def signed(value: float) -> str:
    """Three digits with a sign; 0 has none."""
    text = f"{round(value, 9):+.3g}".replace("-", "−")
    return "0" if text in ("+0", "−0") else text


def plain(value: float) -> str:
    """Three digits."""
    return f"{round(value, 9):.3g}".replace("-", "−")


def percent(value: float) -> str:
    """A share in percent."""
    return f"{100 * value:.3g} %"


def listed(names: Sequence[str]) -> str:
    """Names as a reader says them: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
