"""Is everything there that a start will need? Asked before the first step, and answered at once.

Every corpus, split and column, every model with its tokenizer and terms, word vectors, the room on
disk and on the GPU: what is missing is listed with the one thing that mends it. A set or a model
that cannot be had takes its own rows out of a report; a paper of which nothing is left, or a disk
that is too small, stops the start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch

from erlib.catalogue import paper as paper_named
from erlib.config import DataSpec, EvalSpec, RunSpec, load_profile, store_root
from erlib.data.absent import MissingCorpus, rows_may_be_missing
from erlib.data.corpora import corpora
from erlib.data.hub import hub_columns
from erlib.data.loading import splits_of
from erlib.models.places import what_is_missing
from erlib.parameters import Settings
from erlib.training.making import with_origins
from erlib.training.stages import Stage
from erlib.training.students import OWN

Grids = Mapping[str, Sequence[Stage]]


@dataclass(frozen=True)
class Lack:
    """Something that is not there: why, what mends it, and whose rows it takes."""

    what: str
    why: str
    mend: str
    papers: tuple[str, ...]
    stops: bool = False

    def __str__(self) -> str:
        ends = "nothing can be measured" if self.stops else "its rows will be empty"
        return f"{self.what} ({', '.join(self.papers)}; {ends}): {self.why}; to mend: {self.mend}"


def grids_of(settings: Mapping[str, Settings]) -> tuple[dict[str, Sequence[Stage]], list[Lack]]:
    """The stages of each paper, sets that are missing among them; and the papers that have none,
    for want of a file that they name (word vectors)."""
    rows_may_be_missing()
    grids: dict[str, Sequence[Stage]] = {}
    lacks = []
    for name, chosen in settings.items():
        try:
            grids[name] = paper_named(name).module("cells").grid(chosen)
        except FileNotFoundError as error:
            mend = "name a file that is there"
            lacks.append(Lack(f"paper {name}", str(error), mend, (name,), stops=True))
    return grids, lacks


def preflight(grids: Grids, gigabytes: float) -> list[Lack]:
    """All that is missing; `gigabytes`: what the models will take on disk at a time."""
    lacks = [*_lacking_sets(grids), *_lacking_models(grids)]
    return lacks + ([disk] if (disk := _disk(store_root(), gigabytes, tuple(grids))) else [])


def refuse_without_gpu(profile: str, device: str | None) -> None:
    """An error if a profile is made for a GPU, there is none, and no device was asked for."""
    made_for = load_profile(profile).get("device")
    if made_for == "cuda" and device is None and not torch.cuda.is_available():
        raise ValueError(
            f"profile '{profile}' is made for a GPU and torch sees none here; if it is to be "
            "computed on this CPU all the same, say so: --device cpu"
        )


def _lacking_sets(grids: Grids) -> Iterator[Lack]:
    """Of every paper, the sets that cannot be had; and the paper, if none of its sets can be."""
    wanted: dict[tuple[str, str, str], list[str]] = {}
    trained: dict[str, set[tuple[str, str]]] = {}
    for paper, stages in grids.items():
        for spec in specs_of(stages):
            for corpus, split, source in parts_of(spec):
                wanted.setdefault((corpus, split, source), []).append(paper)
            if isinstance(spec, RunSpec):
                trained.setdefault(paper, set()).add((spec.data.corpus, spec.data.source))
    lacking: dict[tuple[str, str], list[str]] = {}
    why: dict[tuple[str, str], str] = {}
    for corpus, split, source in wanted:
        if said := why_not(corpus, split, source):
            lacking.setdefault((corpus, source), []).append(split)
            why[corpus, source] = said
    for (corpus, source), splits in lacking.items():
        papers = dict.fromkeys(p for split in splits for p in wanted[corpus, split, source])
        reason, _, mend = why[corpus, source].partition("; to fix: ")
        yield Lack(f"corpus {corpus}, {' and '.join(splits)}", reason, mend, tuple(papers))
    for paper, sets in trained.items():
        if sets and all("train" in lacking.get(one, ()) for one in sets):
            why_all = "none of the sets that it trains on is there"
            yield Lack(f"paper {paper}", why_all, "any of the sets above", (paper,), stops=True)


def specs_of(stages: Iterable[Stage]) -> list[RunSpec | EvalSpec]:
    """Every description that is known, and the runs that it rests on."""
    found: dict[RunSpec | EvalSpec, None] = {}
    for stage in stages:
        every = stage.sample if isinstance(stage.sample, Sequence) else [stage.sample]
        runs = [run for s in every if (run := s.run if isinstance(s, EvalSpec) else s)]
        found.update(dict.fromkeys(with_origins(runs)))
        found.update(dict.fromkeys(each for run in runs for each in run.each_epoch))
        found.update(dict.fromkeys(every))
    return list(found)


def parts_of(spec: RunSpec | EvalSpec) -> Iterator[tuple[str, str, str]]:
    """(corpus, split, source) that a description reads."""
    data: DataSpec = spec.data
    splits = ("train", "dev") if isinstance(spec, RunSpec) else (spec.split,)
    for split in splits:
        part = OWN.get(split, split) if data.taught else split
        yield data.corpus, "test" if part in OWN.values() else part, data.source


@cache
def why_not(corpus: str, split: str, source: str) -> str:
    """Why a split cannot be had, and after "to fix:" what mends it; empty if it can be."""
    if source == "packaged":
        return ""
    try:
        if source == "hub":
            hub_columns(corpora()[corpus], split)
        elif split not in (there := splits_of(corpus, source)):
            here = ", ".join(there) or "nothing of it"
            return (
                f"under ERLIB_DATA there is {here}, and no {split}; to fix: add "
                f"{corpus}/{split}.jsonl.gz ({home_of(corpus)})"
            )
    except (MissingCorpus, ValueError) as error:
        return str(error)
    return ""


def home_of(corpus: str) -> str:
    """Where the original is to be had."""
    home = corpora()[corpus].home if corpus in corpora() else ""
    return f"format: docs/data.md; original home: {home}" if home else "format: docs/data.md"


def _lacking_models(grids: Grids) -> Iterator[Lack]:
    """The models that cannot be loaded."""
    wanted: dict[str, list[str]] = {}
    for paper, stages in grids.items():
        runs = (s for s in specs_of(stages) if isinstance(s, RunSpec))
        for name in dict.fromkeys(run.model.name for run in runs):
            wanted.setdefault(name, []).append(paper)
    lacking = {name: missing for name in wanted if (missing := what_is_missing(name))}
    for name, missing in lacking.items():
        yield Lack(f"model {name}", *missing, tuple(wanted[name]))
    for paper in grids:
        if lacking.keys() >= {name for name, papers in wanted.items() if paper in papers}:
            none_left = "none of its models is there"
            yield Lack(f"paper {paper}", none_left, "any of the models above", (paper,), stops=True)


def _disk(store: Path, gigabytes: float, papers: tuple[str, ...]) -> Lack | None:
    there = next(folder for folder in (store, *store.absolute().parents) if folder.exists())
    free, ours = shutil.disk_usage(there).free / 1e9, _taken(store / "runs") / 1e9
    if free + ours >= gigabytes:
        return None
    why = f"{free:.0f} GB are free in {store}, and models take up to {gigabytes:.0f} GB at a time"
    return Lack("disk", why, "set ERLIB_STORE to a larger one", papers, stops=True)


def _taken(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("**/*.safetensors"))


def told(lacks: Sequence[Lack], show: Callable[[str], None] = print) -> None:
    """One line each."""
    if lacks:
        show(f"erlib: {len(lacks)} thing{'s' * (len(lacks) != 1)} missing:")
    for lack in lacks:
        show(f"  {lack}")
