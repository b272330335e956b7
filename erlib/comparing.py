"""Which attribution methods explain this model best on these texts? `erlib.compare(…)`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from erlib import checks
from erlib.attributions import METHODS, Attribution, attribute_encoded, equal_by_construction
from erlib.attributions.elsewhere import from_elsewhere
from erlib.attributions.explained import Target, class_of
from erlib.attributions.registry import method as registered
from erlib.data.encoding import Encoded
from erlib.metrics.agreement import agreement, kendall, pair_means
from erlib.metrics.erasure import predicted, whole
from erlib.metrics.method_ranks import FEWEST, above_floor, method_ranks
from erlib.metrics.normalised_aopc import drops, normalised
from erlib.metrics.plausibility import auc
from erlib.metrics.word_erasure import WordEraser, erasers, leave_one_out, word_faithfulness
from erlib.models.classifier import Classifier
from erlib.reports.heatmap import heatmap_grid
from erlib.reports.markup import Html, counted, table_html
from erlib.reports.pages import page

LONGEST = 128  # words of a text whose words are left out one by one
EVERY_ORDER = 8  # words of a text of which every set is removed, to normalise by: 256 passes
SHOWN = 5  # texts whose heat maps are shown
FLOOR = "random"

# What a reader calls each column of `to_pandas`, and which way is better.
TITLES = {
    "rank": "rank",
    "ranks": "ranks (95 %)",
    "faithfulness": "faithfulness ↑",
    "interval": "95 % interval",
    "comprehensiveness": "comprehensiveness ↑",
    "sufficiency": "sufficiency ↓",
    "normalised_aopc": "normalised AOPC ↑",
    "leave_one_out": "τ with leave-one-out ↑",
    "plausibility": "plausibility, AUC ↑",
    "agreement": "τ with the others",
    "seconds": "seconds per text",
    "equal_to": "equal to",
}
PER_TEXT = ("normalised_aopc", "leave_one_out", "plausibility")  # NaN where a text has none
LATEX = {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "τ": r"$\tau$", "−": "$-$"}
LEGEND = (
    "Faithfulness is comprehensiveness less sufficiency: by how much surer of the explained class "
    "the model is with the best words alone than without them, a mean over 1, 5, 10, 20 and 50 % "
    "of the words. AOPC is normalised by the best and the worst of all orders, for texts of at "
    f"most {EVERY_ORDER} words whose predicted class is explained. Intervals and ranks are over "
    "texts drawn again. τ is Kendall’s, of the sizes of scores. Plausibility is measured against "
    "the rationales given."
)


def compare(
    classifier: Classifier,
    texts: Any,
    methods: str | Sequence[str] = "all",
    *,
    target: Target = "predicted",
    labels: Sequence[int] | None = None,
    rationales: Sequence[Sequence[int] | None] | None = None,
    scores: Mapping[str, Sequence[Any]] | None = None,
    options: Mapping[str, Mapping[str, int]] | None = None,
    seed: int = 0,
) -> Comparison:
    """Explain texts with many methods, measure each, and rank them.

    texts: as for `attribute`: strings, word lists, pairs, or a `Dataset` from `load_data`, which
        brings its labels and rationales.
    methods: names, or "all". What cannot explain this classifier is listed with the reason.
    target: the class to explain, as for `attribute`; what is measured is its probability.
    rationales: for each text one 0 or 1 per word (of a pair: of both texts), or None.
    scores: attributions made elsewhere, under any name: for each text one number per token or word,
        or (pieces, numbers); see `erlib.attributions.elsewhere.from_elsewhere`.
    options: how much a method spends, such as {"lime": {"samples": 50}}.

    >>> model = erlib.load_classifier("path/or/hub-id")                      # doctest: +SKIP
    >>> table = erlib.compare(model, ["a gripping and funny film"])          # doctest: +SKIP
    >>> table.to_pandas(); table.save("comparison.html")                     # doctest: +SKIP
    """
    if not isinstance(classifier, Classifier):
        raise ValueError(
            f"compare takes a classifier, not {checks.shown(classifier)}: "
            "erlib.compare(erlib.load_classifier(…), texts)"
        )
    names, made = _names(methods), dict(scores or {})
    for name in [n for n in options or {} if n not in names]:
        raise ValueError(f"options for '{name}', which is not among the methods: {names}")
    encoded = classifier.encode(texts, labels=labels)
    if not encoded:
        raise ValueError("no texts to compare methods on")
    explained = class_of(target, classifier, texts)
    found: dict[str, list[Attribution]] = {}
    refused: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name in names:
        began = time.perf_counter()
        try:
            found[name] = attribute_encoded(
                classifier,
                encoded,
                name,
                target=explained,
                seed=seed,
                options=(options or {}).get(name),
            )
        except ValueError as error:  # cannot explain this classifier, and says why
            refused[name] = str(error)
        seconds[name] = (time.perf_counter() - began) / len(encoded)
    if not found and refused:
        raise ValueError("; ".join(f"{name}: {why}" for name, why in refused.items()))
    if found:
        targets = [one.target for one in next(iter(found.values()))]
    else:  # scores made elsewhere alone
        targets = [
            one.target
            for one in attribute_encoded(classifier, encoded, FLOOR, target=explained, seed=seed)
        ]
    for name, arrays in made.items():
        if name in names or len(arrays) != len(encoded):
            raise ValueError(
                f"scores of '{name}': {len(arrays)} for {counted(len(encoded), 'text')}, and its "
                f"name must not be a method's"
            )
        found[name] = [
            from_elsewhere(name, *each) for each in zip(arrays, encoded, targets, strict=True)
        ]
    equal = _equal(classifier, [name for name in found if name in METHODS])
    marks = _rationales(encoded, rationales)
    asked = erasers(classifier, encoded, [_as_tuple(t) for t in targets])
    per_text = _measured(asked, found, marks)
    return Comparison(classifier, encoded, found, refused, equal, per_text, seconds, marks)


def _names(methods: str | Sequence[str]) -> list[str]:
    wanted = list(METHODS) if methods == "all" else methods
    wanted = [wanted] if isinstance(wanted, str) else list(dict.fromkeys(wanted))
    return [registered(name).name for name in wanted]


def _as_tuple(target: int | tuple[int, int]) -> tuple[int, ...]:
    return target if isinstance(target, tuple) else (target,)


def _equal(classifier: Classifier, names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """For each method that scores every text as an earlier one does: which, and why."""
    same: dict[str, tuple[str, str]] = {}
    for one, other in combinations(names, 2):
        reason = equal_by_construction((one, None), (other, None), classifier)
        if reason and one not in same and other not in same:
            same[other] = (one, reason)
    return same


def _rationales(
    encoded: Sequence[Encoded], given: Sequence[Sequence[int] | None] | None
) -> list[list[int] | None]:
    """One bit per word that is read, of the rationales given or of those that the texts bring."""
    if given is not None and len(given) != len(encoded):
        raise ValueError(f"{len(given)} rationales for {counted(len(encoded), 'text')}")
    marks: list[list[int] | None] = []
    for i, text in enumerate(encoded):
        tokens = list(zip(text.segment, text.word_ids, strict=True))
        read = [place for place in dict.fromkeys(tokens) if place[0] >= 0]
        bits = None if given is None else given[i]
        if bits is not None:
            words = [(s, w) for s, part in enumerate(text.words) for w in range(len(part))]
            if len(bits) != len(words) or not set(bits) <= {0, 1}:
                raise ValueError(
                    f"the rationale of text '{text.id}' must be {len(words)} times 0 or 1, one for "
                    f"each word, not {checks.shown(bits)}"
                )
            marked = {place for place, bit in zip(words, bits, strict=True) if bit}
        elif text.rationale is not None:
            marked = {p for p, bit in zip(tokens, text.rationale, strict=True) if bit}
        marks.append(
            None
            if bits is None and text.rationale is None
            else [int(place in marked) for place in read]
        )
    return marks


def _measured(
    asked: Sequence[WordEraser],
    found: Mapping[str, Sequence[Attribution]],
    marks: Sequence[Sequence[int] | None],
) -> pd.DataFrame:
    """One row per method and text; a further metric is one more column."""
    scores = {name: [one.scores for one in each] for name, each in found.items()}
    frame = word_faithfulness(asked, scores)
    frame.insert(1, "text", np.tile(np.arange(len(asked)), len(scores)))
    frame["faithfulness"] = frame["comprehensiveness"] - frame["sufficiency"]
    short = [i for i, text in enumerate(asked) if text.words <= LONGEST]
    left = {i: np.abs(leave_one_out(asked[i])) for i in short}
    all_sets = {i: drops(text.witness.classifier, text.text) for i, text in _short(asked)}
    columns: dict[str, list[float]] = {name: [] for name in PER_TEXT}
    for arrays in scores.values():
        sizes = [np.abs(array) for array in arrays]
        tau = dict(zip(short, kendall([sizes[i] for i in short], list(left.values())), strict=True))
        columns["leave_one_out"] += [float(tau.get(i, np.nan)) for i in range(len(asked))]
        columns["normalised_aopc"] += [
            normalised(all_sets[i], array)[0] if i in all_sets else np.nan
            for i, array in enumerate(arrays)
        ]
        columns["plausibility"] += [
            np.nan if bits is None else auc(size, bits)
            for size, bits in zip(sizes, marks, strict=True)
        ]
    return frame.assign(**columns)


def _short(asked: Sequence[WordEraser]) -> list[tuple[int, WordEraser]]:
    """The texts whose AOPC is normalised: few words, and the class explained is predicted."""
    return [
        (i, text)
        for i, text in enumerate(asked)
        if text.words <= EVERY_ORDER
        and text.target == predicted(text.witness.ask([whole(text.text)])[0])
    ]


@dataclass(frozen=True)
class Comparison:
    """What `compare` found: `attributions` by word, `per_text` with a row per method and text."""

    classifier: Classifier
    encoded: list[Encoded]
    attributions: Mapping[str, list[Attribution]]
    refused: Mapping[str, str]
    equal: Mapping[str, tuple[str, str]]
    per_text: pd.DataFrame
    seconds: Mapping[str, float]
    rationales: list[list[int] | None]

    def to_pandas(self) -> pd.DataFrame:
        """One row per method, the best first: means over texts, intervals, ranks and cost."""
        names = list(self.attributions)
        same = {name: other for name, (other, _) in self.equal.items()}
        ranks = method_ranks(self._faithfulness(), same)
        measured = ["comprehensiveness", "sufficiency", *PER_TEXT]
        means = self.per_text.groupby("method")[measured].mean()
        table = ranks.rename(columns={"mean": "faithfulness"}).join(means)
        if len(names) > 1:
            table["agreement"] = self.agreement().mean()
        table["seconds"] = pd.Series(self.seconds)
        table["equal_to"] = [self.equal.get(name, ("",))[0] for name in names]
        table.index.name = "method"
        return table.sort_values("rank", kind="stable").dropna(axis=1, how="all")

    def _faithfulness(self) -> pd.DataFrame:
        """[text, method]."""
        table = self.per_text.pivot(index="text", columns="method", values="faithfulness")
        return table[list(self.attributions)]

    def agreement(self) -> pd.DataFrame:
        """[method, method]: mean τ of the sizes of scores over texts; NaN with itself."""
        names = list(self.attributions)
        table = pd.DataFrame(np.nan, index=names, columns=names)
        scores = {name: [one.scores for one in each] for name, each in self.attributions.items()}
        for (one, other), tau in pair_means(agreement(scores))["kendall"].items():
            table.loc[one, other] = table.loc[other, one] = tau
        return table

    def words(self) -> list[pd.DataFrame]:
        """For each text its words, and what each method gives them; the best method first."""
        best_first = self.to_pandas().index
        return [
            pd.DataFrame(
                {
                    "word": self.attributions[best_first[0]][i].tokens,
                    **{name: self.attributions[name][i].scores for name in best_first},
                }
            )
            for i in range(len(self.encoded))
        ]

    def findings(self) -> list[str]:
        """What the numbers say, in sentences."""
        table, texts = self.to_pandas(), counted(len(self.encoded), "text")
        best = table.index[0]
        said = [
            f"On {texts}, {best} is the most faithful of {counted(len(table), 'method')}: "
            f"{_signed(table['faithfulness'].iloc[0])}"
        ]
        if "low" in table:
            rivals = table.index[(table["rank_low"] == 1) & (table["equal_to"] == "")]
            rivals = [name for name in rivals if name != best]
            said[0] += (
                f", 95 % interval {_signed(table['low'].iloc[0])} to "
                f"{_signed(table['high'].iloc[0])}"
            )
            said.append(
                f"Other texts like these could put first: {', '.join(rivals)}"
                if rivals
                else "Other texts like these would put it first, too"
            )
        else:
            said.append(f"For intervals and what follows from them give {FEWEST} texts or more")
        if FLOOR in table.index and len(self.encoded) >= FEWEST:
            above = above_floor(self._faithfulness(), FLOOR)
            if below := [n for n in table.index if n != FLOOR and not above[n]]:
                said.append(f"Not shown to be better than random scores: {', '.join(below)}")
        for name, (other, reason) in self.equal.items():
            said.append(f"{name} equals {other} by construction: {reason}")
        if cut := sum(text.truncated for text in self.encoded):
            said.append(
                f"Texts that were cut to the {self.classifier.max_length} tokens that the model "
                f"reads, and are judged by what is left: {cut}"
            )
        if none := int(self.per_text.groupby("text")["leave_one_out"].count().eq(0).sum()):
            said.append(f"Texts too short or too long for τ with leave-one-out: {none}")
        for why in dict.fromkeys(self.refused.values()):
            names = ", ".join(name for name, reason in self.refused.items() if reason == why)
            said.append(f"Not applicable to this model: {names} ({why.rstrip('.')})")
        return [f"{sentence.rstrip('.')}." for sentence in said]

    def to_latex(self) -> str:
        """The table for a paper."""
        table = self._readable().reset_index()
        said = table.to_latex(index=False, escape=True, float_format="%.2f", na_rep="--")
        for sign, command in LATEX.items():
            said = said.replace(sign, command)
        return str(said)

    def save(self, path: str | Path) -> Path:
        """Write a page that needs no other file."""
        path = Path(path)
        if path.suffix != ".html":
            raise ValueError(f"a comparison is saved as .html, not as '{path.name}'")
        body = Html(self._repr_html_())
        path.write_text(page("comparison.html.j2", title="Methods compared", body=body), "utf-8")
        return path

    def _readable(self) -> pd.DataFrame:
        """The table under the names that readers know, intervals in one cell."""
        table = self.to_pandas()
        table["rank"] = table["rank"].astype(int)
        if "low" in table:
            table["interval"] = [
                f"{_signed(low)} to {_signed(high)}"
                for low, high in zip(table["low"], table["high"], strict=True)
            ]
            table["ranks"] = [
                f"{low:.0f} to {high:.0f}"
                for low, high in zip(table["rank_low"], table["rank_high"], strict=True)
            ]
        if not self.equal:
            table = table.drop(columns="equal_to")
        return table[[name for name in TITLES if name in table]].rename(columns=TITLES)

    def _repr_html_(self) -> str:
        said = Markup("").join(Markup("<li>{}</li>").format(line) for line in self.findings())
        parts = [
            Markup('<ul class="findings">{}</ul>').format(said),
            table_html(self._readable(), "comparison-table-1", "Methods, the most faithful first.",
                       notes=[LEGEND]),
            *self._heat_maps(),
        ]  # fmt: skip
        if len(self.attributions) > 1:
            matrix = table_html(
                self.agreement(), "comparison-table-2", "Kendall’s τ between methods."
            )
            parts.append(matrix)
        return str(Markup('<div class="comparison">{}</div>').format(Markup("").join(parts)))

    def _heat_maps(self) -> list[Html]:
        """The first texts, a line per method."""
        shown = min(SHOWN, len(self.encoded))
        order = list(self.to_pandas().index)
        return [
            heatmap_grid(
                {name: [self.attributions[name][i]] for name in order},
                columns=[self._class(self.attributions[order[0]][i].target)],
                title=f"Text {i + 1} of {len(self.encoded)}",
                rationale=self.rationales[i],
                legend=i == 0,
            )
            for i in range(shown)
        ]

    def _class(self, target: int | tuple[int, int]) -> str:
        """What the scores are for and against."""
        if isinstance(target, tuple):
            return "for and against the answer"
        return f"for and against “{self.classifier.classes[target]}”"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
