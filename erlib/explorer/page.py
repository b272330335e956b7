"""How is what was computed shown? HTML in which every character that is not ours is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from markupsafe import Markup

from erlib.attributions import METHODS, Attribution
from erlib.explorer.chart import chart_svg, key_html
from erlib.explorer.reading import Prediction, Reading, label, places
from erlib.explorer.survey import Survey
from erlib.explorer.texts import Text
from erlib.reports.heatmap import FOR, legend_html, line_html
from erlib.reports.markup import cell_text

CLASSES_SHOWN = 5


def joined(parts: Sequence[Markup]) -> Markup:
    """Parts of a page one after the other."""
    return Markup("").join(parts)


def text_html(text: Text) -> Markup:
    """The whole text, each word with its place; rationale words are underlined."""
    facts = [f"{text.words:,} words", "click a word to remove it, again to put it back"]
    if text.label:
        facts.insert(1, f"the corpus says: {text.label}")
    if text.rationale is not None:
        marked = any(any(bits) for bits in text.rationale)
        said = "underlined:" if marked else "no word is in its"
        facts.insert(-1, f"{said} {text.rationale_kind} rationale")
    lines = []
    for segment, words in enumerate(text.segments):
        marks = text.rationale[segment] if text.rationale else [0] * len(words)
        spans = Markup(" ").join(
            Markup('<span data-place="{}:{}"{}>{}</span>').format(
                segment, i, Markup(' class="rationale"') if mark else "", word
            )
            for i, (word, mark) in enumerate(zip(words, marks, strict=True))
        )
        lines.append(Markup('<p class="words" dir="auto">{}</p>').format(spans))
    return _section("The text", " · ".join(facts), joined(lines))


def predictions_html(
    readings: Sequence[Reading], after: Sequence[Prediction] | None = None, removed: int = 0
) -> Markup:
    """What each model predicts for the whole text and, if given, without the removed words."""
    less = "without clicked words"
    if removed:
        less = f"without {removed} word" if removed == 1 else f"without {removed} words"
    head = joined([Markup('<th scope="col">{}</th>').format(h) for h in ["whole text", less]])
    rows = []
    for i, reading in enumerate(readings):
        cells = [_bars(reading.prediction, reading.prediction)]
        cells.append(_bars(after[i], reading.prediction) if after else Markup("–"))
        notes = [reading.model.note] if reading.model.note else []
        if reading.words_read < reading.text.words:
            notes.append(f"read {reading.words_read:,} of {reading.text.words:,} words")
        small = joined([Markup("<small>{}</small>").format(note) for note in notes])
        rows.append(
            Markup('<tr><th scope="row">{}{}</th>{}</tr>').format(
                reading.model.label,
                small,
                joined([Markup("<td>{}</td>").format(cell) for cell in cells]),
            )
        )
    table = Markup(
        '<div class="scroll"><table class="predictions"><thead><tr><th></th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(head, joined(rows))
    return _section("Predictions", "", table)


def _bars(shown: Prediction, order: Prediction) -> Markup:
    """Probabilities as bars, classes in the order of another prediction so that both compare."""
    p = dict(shown.answers)
    names = [name for name, _ in order.answers if name in p] or list(p)
    kept = names[:CLASSES_SHOWN]
    winner = shown.answers[0][0]
    if winner not in kept:
        kept[-1] = winner
    bars = [
        Markup(
            '<div class="bar{}"><span class="name" dir="auto" title="{}">{}</span>'
            '<span class="track">'
            '<span style="width:{}%"></span></span><span class="p">{}</span></div>'
        ).format(
            Markup(" winner") if name == winner else "",
            name,
            name,
            f"{100 * p[name]:.1f}",
            f"{p[name]:.3f}",
        )  # fmt: skip
        for name in kept
    ]
    if len(names) > len(kept):
        bars.append(Markup("<small>and {} other classes</small>").format(len(names) - len(kept)))
    return joined(bars)


def heatmaps_html(readings: Sequence[Reading], methods: Sequence[str], level: str) -> Markup:
    """Models side by side, methods below each other; a cell that is not ready shows dots."""
    text = readings[0].text
    shown = [reading.at(level) for reading in readings]
    head = joined([Markup('<th scope="col">{}</th>').format(r.model.label) for r in readings])
    rows = [
        Markup('<tr><th scope="row" title="{}">{}</th>{}</tr>').format(
            METHODS[method].summary,
            label(method),
            joined(
                [
                    Markup("<td>{}</td>").format(_cell(reading, scores.get(method), method))
                    for reading, scores in zip(readings, shown, strict=True)
                ]
            ),
        )
        for method in methods
    ]
    signed = any(np.any(one.scores < 0) for scores in shown for one in scores.values())
    table = Markup(
        '{}<div class="scroll"><table class="heatmaps"><thead><tr><th></th>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>"
    ).format(legend_html(signed, text.rationale is not None), head, joined(rows))
    hint = f"{_explained(readings)}; one score per {level}, hover for the value"
    return _section("Heat maps", hint, table + _identical(readings, methods))


def _explained(readings: Sequence[Reading]) -> str:
    """Which class the scores are of, and what the colours say of it."""
    targets = {reading.target: reading.model.label for reading in readings}
    if len(targets) == 1:
        [target] = targets
        return f"blue words speak for “{target}”, orange ones against it"
    each = "; ".join(f"“{target}”, {model}" for target, model in targets.items())
    return f"blue words speak for the class explained, orange ones against it ({each})"


def _identical(readings: Sequence[Reading], methods: Sequence[str]) -> Markup:
    """Which of these methods cannot but agree, why and, where not on all models, on which."""
    found: dict[tuple[tuple[str, str], str], list[str]] = {}
    for reading in readings:
        for pair, reason in reading.identical(methods).items():
            found.setdefault((pair, reason), []).append(reading.model.label)
    notes = []
    for (pair, reason), models in found.items():
        on = "" if len(models) == len(readings) else f" on {', '.join(models)}"
        said = f"{' and '.join(pair)} are identical by construction{on}: {reason}."
        notes.append(Markup('<p class="hint">{}</p>').format(said))
    return joined(notes)


def _cell(reading: Reading, one: Attribution | None, method: str) -> Markup:
    if method in reading.refused:
        return Markup('<em class="refused">{}</em>').format(reading.refused[method])
    if one is None:
        return Markup("…")
    named, rationale = places(one), reading.text.rationale
    bits = None
    if rationale is not None:
        where = zip(one.segment, one.word_ids, strict=True)
        bits = [rationale[segment][word] if segment >= 0 else 0 for segment, word in where]
    return line_html(one, "", bits, named)


def agreement_html(readings: Sequence[Reading], level: str) -> Markup:
    """For each model, the correlations of every pair of methods."""
    tables = [_matrix(r.model.label, r.agreement(level)) for r in readings if len(r.explained) > 1]
    if not tables:
        return Markup("")
    hint = (
        f"correlation of the sizes of two methods’ scores over the {level}s: "
        "above the diagonal Pearson’s r, below it Kendall’s τ"
    )
    return _section("Agreement of the methods", hint, joined(tables))


def _matrix(label: str, table: pd.DataFrame) -> Markup:
    head = joined([Markup('<th scope="col">{}</th>').format(name) for name in table.columns])
    rows = [
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            name, joined([_correlation(float(value), i == j) for j, value in enumerate(values)])
        )
        for i, (name, *values) in enumerate(table.itertuples(name=None))
    ]
    return Markup(
        '<div class="scroll"><table class="matrix"><caption>{}</caption><thead><tr><th></th>{}'
        "</tr></thead><tbody>{}</tbody></table></div>"
    ).format(label, head, joined(rows))


def _correlation(value: float, diagonal: bool) -> Markup:
    if math.isnan(value):
        return Markup("<td>{}</td>").format("" if diagonal else "–")
    strength = 0.5 * max(value, 0.0)  # half as strong as a heat map: the number stays readable
    colour = "rgba({},{},{},{:.2f})".format(*FOR, strength)
    return Markup('<td style="background:{}">{}</td>').format(
        colour, f"{value:.2f}".replace("-", "−")
    )


def curves_html(readings: Sequence[Reading]) -> Markup:
    """For each model, what is left of its prediction when the best tokens are kept or removed."""
    measured = [reading for reading in readings if reading.measured]
    if not measured:
        return Markup("")
    methods = list(dict.fromkeys(m for reading in measured for m in reading.measured))
    charts = []
    for reading in measured:
        frame = reading.curves()
        full = float(frame["p_full"].iloc[0])
        pair = joined(
            [
                chart_svg(frame, column, full, methods, title)
                for column, title in (
                    ("p_kept", "only the best tokens are kept"),
                    ("p_removed", "the best tokens are removed"),
                )
            ]
        )
        charts.append(
            Markup("<figure><figcaption>{}</figcaption>{}</figure>").format(
                reading.model.label, pair
            )
        )
    hint = (
        f"{_measured(measured)} by share of tokens; a faithful explanation rises early on "
        "the left and falls early on the right; dashed: the whole text"
    )
    tables = joined([_faithfulness(reading) for reading in measured])
    return _section("Faithfulness on this text", hint, key_html(methods) + joined(charts) + tables)


def _measured(readings: Sequence[Reading]) -> str:
    targets = list(dict.fromkeys(reading.target for reading in readings))
    return f"probability of {' or '.join(f'“{target}”' for target in targets)}"


def _faithfulness(reading: Reading) -> Markup:
    """The curves as numbers, the best of each column marked."""
    table = reading.faithfulness()
    better = {"comprehensiveness ↑": 1, "sufficiency ↓": -1, "difference ↑": 1}
    best = [(table[name.split()[0]] * sign).max() for name, sign in better.items()]
    head = joined([Markup('<th scope="col">{}</th>').format(name) for name in better])
    rows = [
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            label(str(method)),
            joined(
                [
                    _number(value, value * sign >= top - 1e-9)
                    for value, sign, top in zip(values, better.values(), best, strict=True)
                ]
            ),
        )
        for method, *values in table.itertuples(name=None)
    ]
    caption = "means over the shares of tokens; bold: the best"
    return Markup(
        '<div class="scroll"><table class="numbers"><caption>{}: {}</caption><thead><tr><th></th>'
        "{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(reading.model.label, caption, head, joined(rows))


def _number(value: float, best: bool) -> Markup:
    said = f"{value:.3f}".replace("-", "−")
    return Markup("<td><strong>{}</strong></td>" if best else "<td>{}</td>").format(said)


def files(readings: Sequence[Reading], level: str) -> dict[str, str]:
    """The scores that are shown as files: name → content."""
    table = pd.DataFrame([row for reading in readings for row in reading.rows(level)])
    if table.empty:
        return {}
    return {
        "scores.csv": table.to_csv(index=False),
        "scores.json": table.to_json(orient="records", force_ascii=False, indent=1),
        "scores.tex": table.to_latex(index=False, escape=True, float_format="%.3f"),
    }


def survey_html(found: Survey) -> Markup:
    """The texts of a corpus, those first on which the scores agree least; and marked words."""
    table = found.table.sort_values("disagreement", ascending=False, kind="stable")
    shown = [name for name in table.columns if name != "text"]
    head = joined([Markup('<th scope="col">{}</th>').format(name) for name in ["text", *shown]])
    rows = [
        Markup('<tr data-disagreement="{}" data-error="{}" data-confidence="{}">{}{}</tr>').format(
            row["disagreement"],
            row["error"],
            row["confidence"],
            Markup('<th scope="row"><button data-row="{}" dir="auto">{}</button></th>').format(
                number, row["text"]
            ),
            joined([Markup("<td>{}</td>").format(cell_text(row[name], 3)) for name in shown]),
        )
        for number, row in table.iterrows()
    ]
    orders = joined(
        [
            Markup('<button data-order="{}">{}</button>').format(name, said)
            for name, said in (
                ("disagreement", "most disagreement first"),
                ("error", "largest error first"),
                ("-confidence", "least confidence first"),
            )
        ]
    )
    hint = (
        f"{len(table)} texts no model was trained on; open one by its text. Error: 1 − probability "
        "of the corpus’s label; disagreement: 1 − mean τ between methods, and between models"
    )
    body = Markup(
        '<div class="toolbar">{}</div><div class="scroll tall"><table class="texts"><thead><tr>{}'
        "</tr></thead><tbody>{}</tbody></table></div>{}"
    ).format(orders, head, joined(rows), _marked(found))
    return _section("The corpus", hint, body)


def _marked(found: Survey) -> Markup:
    """The words marked most, a line for each model, method and class."""
    line = Markup('<tr><th scope="row">{}</th><td>{}</td><td>{}</td><td dir="auto">{}</td></tr>')
    lines = [
        line.format(*key, ", ".join(f"{row.word} {row.share:.2f}" for row in rows.itertuples()))
        for key, rows in found.words.groupby(["model", "method", "class"], sort=False)
    ]
    head = ("model", "method", "predicted class", "words marked most (mean share of the largest)")
    return Markup(
        '<div class="scroll"><table class="marked"><thead><tr>{}</tr></thead><tbody>{}</tbody>'
        "</table></div>"
    ).format(joined([Markup('<th scope="col">{}</th>').format(h) for h in head]), joined(lines))


def _section(title: str, hint: str, content: Markup) -> Markup:
    small = Markup('<p class="hint">{}</p>').format(hint) if hint else ""
    return Markup("<h3>{}</h3>{}{}").format(title, small, content)
