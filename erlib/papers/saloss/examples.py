"""Which span does each model point at in a single text?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from erlib.config import RunSpec
from erlib.metrics.fresh import contiguous
from erlib.metrics.ranking import at_least_one
from erlib.papers.holes import REMARK, as_text, or_hole
from erlib.papers.saloss.cells import example_scores, prediction_spec
from erlib.papers.saloss.systems import BASELINE, SALOSS, Task, run_spec, tasks
from erlib.papers.study import Study
from erlib.reports.markup import Html
from erlib.training.rows import rows_of

# The texts of Table 4 in its order, by words that no other text of their set has
SHOWN = {
    "topics": "will make their Nasdaq stock market debut on Thursday",
    "sentences": "unusual kind of psychological horror",
    "document_query": "the efficacy of fentanyl along with LA field infiltration",
}
WORDS = (10, 60)  # of a text that can be read at a glance, where the paper's is not among ours
MARK = "background:#9ecae9;color:#000;padding:.05em .1em"


def table_4(study: Study) -> tuple[Html, pd.DataFrame]:
    """Three test texts with the contiguous rationale of either model (α∇α), and where it is."""
    by_role = {task.role: task for task in tasks(study.settings)}
    blocks, rows = [], []
    for number, role in enumerate(SHOWN, start=1):
        block, spans = _example(study, by_role[role], number)
        blocks.append(block)
        rows += spans
    return Html(Markup("").join(blocks)), pd.DataFrame(rows)


def _hole(why: str) -> tuple[Markup, list[dict[str, object]]]:
    return as_text(why), [{REMARK: why}]


@or_hole(_hole)
def _example(study: Study, task: Task, number: int) -> tuple[Markup, list[dict[str, object]]]:
    settings = study.settings
    runs = {
        BASELINE: run_spec(settings, task, BASELINE, settings.seeds[0]),
        SALOSS: run_spec(settings, task, SALOSS, settings.seeds[0], task.weight),
    }
    texts = rows_of(runs[BASELINE].data, "test", settings.grid.get("example_rows"))
    document = "words_a" if "words_a" in texts.column_names else "words"
    chosen = shown_text(texts[document][:], SHOWN[task.role])
    text, lines, rows = texts[chosen], [], []
    names = texts.features["label"].names
    for system, name in ((BASELINE, "Baseline"), (SALOSS, "SaLoss")):
        answers = study.texts(prediction_spec(settings, runs[system]))
        answer = names[answers["predicted"].iloc[chosen]]
        words, span = _span(study, task, runs[system], text[document], chosen)
        lines.append(
            Markup("<p><strong>{}</strong> ({}) {}{}</p>").format(
                name, answer, _marked(words, span), " …" if len(words) < len(text[document]) else ""
            )
        )
        rows.append(
            {"set": task.paper, "corpus": task.corpus, "id": text["id"], "system": name}
            | {"first word": span[0], "last word": span[-1]}
            | {"rationale": " ".join(words[i] for i in span)}
            | {"predicted": answer, "gold": names[text["label"]]}
        )
    gold = Markup("<p>gold: {}").format(names[text["label"]])
    query = Markup("<br>query: {}").format(" ".join(text["words_b"])) if "words_b" in text else ""
    head = Markup("<h4>Example {}: {}, {}</h4>").format(number, task.label, text["id"])
    return head + Markup("").join(lines) + gold + query + Markup("</p>"), rows


def shown_text(documents: Sequence[Sequence[str]], phrase: str) -> int:
    """The index of the paper's text if it is there, or of the first that is short enough to read.

    Blanks, punctuation and case do not count: corpora come tokenised in many ways.
    """
    wanted = _letters(phrase)
    for i, words in enumerate(documents):
        if wanted in _letters("".join(words)):
            return i
    fit = [i for i, words in enumerate(documents) if WORDS[0] <= len(words) <= WORDS[1]]
    return fit[0] if fit else 0


def _letters(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def _span(
    study: Study, task: Task, run: RunSpec, words: list[str], index: int
) -> tuple[list[str], list[int]]:
    """The words that the model saw, and the places of its best window among them."""
    scores = study.texts(example_scores(study.settings, run))["scores"].iloc[index]
    span = contiguous(scores, at_least_one(task.percent, len(scores)))
    return words[: len(scores)], span


def _marked(words: list[str], span: list[int]) -> Markup:
    first, last = span[0], span[-1] + 1
    return Markup('{} <mark style="{}">{}</mark> {}').format(
        " ".join(words[:first]), MARK, " ".join(words[first:last]), " ".join(words[last:])
    )
