"""How does a notebook tell a paper's story? One object that trains, shows, says and decides.

report = erlib.report("regex", globals())
report.table("table-1", caption="Normalised sufficiency and comprehensiveness.")
report.say("REGEX is ahead in {ahead} of {pairs} pairs.", facts.ahead(report.study))
report.verdicts()
report.close()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from time import monotonic
from typing import Any

import pandas as pd
from IPython.display import Markdown
from matplotlib.figure import Figure

from erlib import reports
from erlib.catalogue import Paper, paper
from erlib.config import ModelSpec, RunSpec
from erlib.data import report_or_none
from erlib.data.absent import rows_may_be_missing
from erlib.papers import frozen, rests_on
from erlib.papers.cells import Cell
from erlib.papers.evidence import decide_claims
from erlib.papers.hours import hours_per_seed
from erlib.papers.one_batch import OneBatch
from erlib.papers.ranked import claims_first
from erlib.papers.rests_on import cells_of
from erlib.papers.study import Study
from erlib.papers.trained import RULE, has_task, judged_by, why_untrained
from erlib.parameters import Settings, settings
from erlib.reports.criteria import criteria
from erlib.reports.findings import findings_html
from erlib.reports.looks import foresight, look, looked
from erlib.reports.markup import Html, plain
from erlib.reports.paper_numbers import ABSENT, Beside, beside
from erlib.reports.recorded import claim_rows, claims_table, record, summarise
from erlib.sizes import against_the_paper
from erlib.training.stages import carry_out

NOTHING_FOLLOWS = "*Nothing to tell: what this rests on failed, or no model of it is trained.*"


class Report:
    """One execution of a paper's notebook: its settings, its finished study, what it shows."""

    def __init__(self, about: Paper, chosen: Settings) -> None:
        self.started = monotonic()
        self.paper, self.settings = about, chosen
        self.sources: list[str] = []

    @cached_property
    def study(self) -> Study:
        """What the paper's grid measures: what is missing is trained when it is first asked for."""
        stages = self.paper.module("cells").grid(self.settings)
        order = partial(claims_first, self.paper, self.settings)
        results = carry_out(stages, **self.settings.where, order=order)
        return Study(self.paper, self.settings, results)

    def one_batch(self, **model: Any) -> OneBatch:
        """Four packaged texts on which the notebook shows the method; `model`: what is not MiniLM
        under the head "er"."""
        return OneBatch(self.settings, ModelSpec(**{"name": "minilm", "head": "er", **model}))

    @cached_property
    def _decided(self) -> None:
        """Every claim, decided by its criterion and put down."""
        name, study = self.paper.name, self.study
        has_more = (self.paper.folder / "claims.py").exists()
        given = self.paper.module("claims").given(study) if has_more else {}
        waiting = [c for c, one in criteria(name).items() if study.waits(cells_of(study, one))]
        given = {c: found for c, found in given.items() if c not in waiting}
        hours = hours_per_seed(study)
        found = decide_claims(
            name, study.read, given, profile=self.settings.profile, hours=hours,
            lost=rests_on.lost(study),
        )  # fmt: skip
        record(name, found, profile=self.settings.profile, notes=rests_on.notes(study))

    def findings(self) -> Html:
        """What came of the claims, in a few sentences."""
        _, study = self._decided, self.study
        there = len(study.rows) - len(study.lacking)
        unfinished = (
            f"Not finished: {there:,} of {len(study.rows):,} runs and evaluations are there. What "
            "rests on the others is empty, and a claim is decided when all that it rests on is "
            "there."
        )
        rows = claim_rows(self.paper.name, self.settings.profile)
        return findings_html(rows, first=unfinished if study.lacking else "")

    def profile(self) -> None:
        """What this profile has less of than the paper, and what its corpora are to the paper's."""
        less = against_the_paper(self.paper, self.settings.grid)
        self.table(
            "table-profile",
            less if len(less) else pd.DataFrame({"what": ["nothing: the paper's own sizes"]}),
            caption=f"This profile ({self.settings.profile}) against the paper.",
        )
        self.table(
            "table-corpora",
            rests_on.table(self.study),
            caption="The corpora: official, a sample of the paper's, or in the place of it.",
        )

    def table(
        self,
        id: str,
        content: pd.DataFrame | Beside | None = None,
        *,
        caption: str,
        digits: int | Mapping[str, int] = 2,
        rows: Sequence[str] | None = None,
        stands_for: Mapping[str, str] | None = None,
        metric: str | None = None,
        labels: Mapping[str, str] | None = None,
        absent: str = ABSENT,
        data: pd.DataFrame | None = None,
        sources: Sequence[str] | None = None,
        source: str | None = None,
        printed: str | None = None,
        less: str = "",
    ) -> None:
        """Show and keep a table: the cells of that name beside the paper's, or `content`.

        `source`: the name of the cells' table, where it is not that of the id; `printed`: that of
        the paper's table, where it is not that of the cells. `rows`,
        `stands_for`, `metric`, `labels` and `absent` as in `reports.beside`. `less`: what is less
        here than in the paper and stands in no size of the profile.
        """
        source = source or id.replace("table-", "table")
        cells = self.study.of(source)
        if content is None:
            content = beside_printed(
                self.study, cells, printed or source, rows=rows, stands_for=stands_for,
                metric=metric, digits=digits, labels=labels, absent=absent,
            )  # fmt: skip
        said = ", ".join(filter(None, (counts(self.study.numbers(cells)), less)))
        self._artefact(
            id, content, caption=caption, data=data, reduced=said,
            digits=digits if isinstance(digits, int) else 2,
            sources=self.study.hashes(cells) if sources is None else sources,
        )  # fmt: skip

    def figure(
        self,
        id: str,
        drawn: tuple[Figure, pd.DataFrame],
        *,
        caption: str,
        alt: str = "",
        source: str | None = None,
        less: str = "",
    ) -> None:
        """Show and keep a figure and the numbers behind it; `source`: whose cells it draws."""
        image, data = drawn
        cells = self.study.of(source or id)
        said = ", ".join(filter(None, (counts(self.study.numbers(cells)), less)))
        self._artefact(
            id, image, caption=caption, data=data, reduced=said, alt=alt,
            sources=self.study.hashes(cells),
        )  # fmt: skip

    def examples(
        self, id: str, shown: str, *, caption: str, data: pd.DataFrame | None = None, less: str = ""
    ) -> None:
        """Show and keep texts with their explanations."""
        self._artefact(id, Html(shown), caption=caption, data=data, reduced=less)

    def say(self, text: str, facts: Mapping[str, Any] | None = None, **more: Any) -> Markdown:
        """A sentence with the numbers in their places; minus signs are minus signs, and a number
        that there is none of is a dash. Facts that are empty, {}, cannot be told."""
        if facts is not None and not facts:
            return Markdown(NOTHING_FOLLOWS)
        told = {**(facts or {}), **more}
        said = text.format(**{k: plain(v) if isinstance(v, str) else v for k, v in told.items()})
        said = re.sub(r"(?<![\w.])[+-]?nan\b", "–", said)
        return Markdown(re.sub(r"(?<![\w.])-(?=[\d.])", "−", said))

    def left_out(
        self, corpora: Iterable[str], sources: Mapping[str, str] | None = None
    ) -> Markdown:
        """Which texts of these corpora a rule dropped before anything was counted.

        `sources`: where those are read that are not read where the settings say.
        """
        lines = []
        for corpus in dict.fromkeys(corpora):
            source = (sources or {}).get(corpus) or self.settings.source_of(corpus)
            report = report_or_none(corpus, source)
            found = report.dropped.items() if report else ()
            dropped = ", ".join(f"{n:,} {rule}" for rule, n in found)
            said = plain(f"Left out of {corpus} by rule: {dropped}.")
            lines += [f"* {said}"] if dropped else []
        return Markdown("\n".join(lines))

    def learnt(self) -> Markdown:
        """How many models learnt their task, and which did not: nothing follows from these.

        Of those that are judged by another model nothing is said.
        """
        told, study = partial(_counted, self.paper, self.settings), self.study
        every = [s for s in study.runs["spec"] if s.optimiser.lr > 0 and has_task(s)]
        runs = [spec for spec in every if judged_by(spec) == spec]
        ended = {status: study.ended(status) for status in ("lost", "failed")}
        runs = [
            spec
            for spec in runs
            if spec not in [*ended["lost"], *ended["failed"]] and spec not in study.lacking
        ]
        weak = [spec for spec in runs if spec in study.untrained]
        text = f"{len(runs) - len(weak)} of {len(runs)} models learnt their task."
        if runs and len(weak) == len(runs):
            text = (
                f"None of {len(runs)} models is known to have learnt its task ({RULE}): nothing "
                "follows from their numbers."
            )
        elif weak:
            text += f" {why_untrained(weak, told)} Nothing follows from these."
        if ended["lost"]:
            text += f" Lost, since no epoch met the checkpoint rule: {told(ended['lost'])}."
        if ended["failed"]:
            text += f" Failed (why, see the end): {told(ended['failed'])}."
        return Markdown(plain(text))

    def encoder(self, metric: str) -> Markdown:
        """What the frozen encoder knows beside what the Baselines have learnt."""
        baselines = self.paper.module("cells").baselines(self.settings)
        table, probes = frozen.encoder_table(self.settings, baselines, metric)
        self._artefact(
            "table-encoder", table, caption=frozen.caption(metric), digits=1, sources=probes
        )
        return Markdown(plain(frozen.about_encoder(table)))

    def verdicts(self) -> Markdown:
        """The verdict of every claim, with its parts."""
        _, name, profile = self._decided, self.paper.name, self.settings.profile
        claims_table(name, profile)
        now = look(name, self.settings.seeds)
        told = foresight(looked(name, profile, now), now)
        return Markdown(f"{plain(summarise(name, profile))}\n\n{plain(told)}")

    def close(self) -> None:
        """Show what the report was made from, and keep that for the index."""
        rows = self.study.rows.values()
        runs = [row["run"] for row in rows if "eval" not in row]
        evals = [row["eval"] for row in rows if "eval" in row]
        reports.footer(
            self.paper.name,
            profile=self.settings.profile,
            data=self.settings.source,
            device=self.settings.device,
            store=self.settings.store,
            runs=runs,
            evals=[*evals, *(source for source in self.sources if source not in runs)],
            seconds=monotonic() - self.started,
        )

    def _artefact(self, id: str, content: Any, **options: Any) -> None:
        """Show and keep it; what names no cells of its own rests on the whole study."""
        sources = options.pop("sources", ()) or self.study.hashes(self.study.cells)
        self.sources += [s for s in sources if s not in self.sources]
        reports.artefact(
            self.paper.name, id, content, profile=self.settings.profile,
            seeds=self.settings.seeds, sources=sources, **options,
        )  # fmt: skip


def report(name: str, namespace: Mapping[str, Any]) -> Report:
    """The report of a notebook: call it with `globals()` right after the parameters cell."""
    rows_may_be_missing()
    return Report(paper(name), settings(name, namespace))


def beside_printed(study: Study, cells: Sequence[Cell], source: str, **options: Any) -> Beside:
    """The numbers of cells beside the paper's table `source`, untrained models marked."""
    ours = remarked(study.numbers(cells))
    if metric := options.get("metric"):
        ours = ours[ours["metric"] == metric]
    return beside(ours, study.paper.name, source, **options)


def remarked(numbers: pd.DataFrame) -> pd.DataFrame:
    """With "not trained", or of how many seeds that is so, among the remarks of each cell.

    Where it is so of the whole table, `counts` says it once.
    """
    if not numbers["trained"].any():
        return numbers
    place = [numbers[axis] for axis in ("row", "column", "metric")]
    measured = numbers["value"].notna()
    weak = (measured & ~numbers["trained"]).groupby(place).transform("sum")
    n = measured.groupby(place).transform("sum")
    partly = weak.astype(str) + " of " + n.astype(str) + " not trained"
    said = partly.mask(weak == n, "not trained").mask(weak == 0, "")
    joined = [", ".join(filter(None, both)) for both in zip(numbers["remark"], said, strict=True)]
    return numbers.assign(remark=joined)


def counts(numbers: pd.DataFrame) -> str:
    """On how many seeds and texts these numbers rest: "1 to 3 seeds, 16 to 40 texts"; and whether
    no model of them is trained."""
    measured = numbers[numbers["value"].notna()]
    if measured.empty:
        return ""
    seeds = measured.groupby(["table", "row", "column", "metric"])["seed"].nunique()
    texts = measured.loc[measured["texts"] > 0, "texts"]
    said = [_range(seeds, "seed"), _range(texts, "text") if len(texts) else ""]
    said += [] if measured["trained"].any() else ["no model is trained"]
    return ", ".join(filter(None, said))


def _range(values: pd.Series, what: str) -> str:
    low, high = int(values.min()), int(values.max())
    plural = "s" if high != 1 else ""
    return f"{low} {what}{plural}" if low == high else f"{low} to {high} {what}s"


def _counted(about: Paper, chosen: Settings, specs: Sequence[RunSpec]) -> str:
    named, found = about.module("systems").named, dict[str, int]()
    for spec in specs:
        name = named(chosen, spec)
        found[name] = found.get(name, 0) + 1
    return ", ".join(f"{n} of {name}" if n > 1 else name for name, n in found.items())
