"""Is a report older than the notebook, profile, claims, numbers or methods that it was made from?

What a report was made from is kept beside it, in `reports/<profile>/<paper>.sources.json`: hashes
of the notebook's cells, of the profile's entry for the paper, of the paper's claims with their
rules and of its printed numbers, the version of every method that its runs and evaluations used,
and the seconds that these took.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat

from erlib.attributions.registry import METHODS
from erlib.catalogue import paper as paper_named
from erlib.config import digest, load_profile
from erlib.losses import OBJECTIVES
from erlib.models.heads import HEADS
from erlib.models.jwa import placeless
from erlib.models.learned_attention import EXPLAINERS, VERSION
from erlib.reports.footer import provenance
from erlib.reports.ledger import reports_folder, write_whole
from erlib.training.evaluations import KINDS
from erlib.training.updates import UPDATES

REGISTRIES: dict[str, Mapping[str, Any]] = {
    "attribution": METHODS,
    "evaluation": KINDS,
    "head": HEADS,
    "objective": OBJECTIVES,
    "update": UPDATES,
}
WRITTEN = {  # what a report is made from besides methods, as a reader calls it
    "notebook": "the notebook",
    "profile": "the profile",
    "claims": "the list of claims",
    "paper_tables": "the copy of the paper's tables",
}
KEYS = {  # under which a description names a thing, wherever it stands
    "evaluation": "kind",
    "attribution": "method",
    "corpus": "corpus",
    "explainer": "explainer",
}


def text_sources(paper: str, profile: str, root: Path) -> dict[str, str]:
    """Hashes of what is written for a report, named as in `WRITTEN`."""
    name = f"{paper_named(paper).notebook}.ipynb"
    notebook = nbformat.read(root / "notebooks" / name, as_version=4)
    chosen = load_profile(profile)
    return {
        "notebook": digest([[cell.cell_type, cell.source] for cell in notebook.cells]),
        "profile": digest({"source": chosen["source"], paper: chosen[paper]}),
        "claims": digest(_claims(paper)),
        "paper_tables": digest(_paper_tables(paper)),
    }


def _claims(paper: str) -> dict[str, Any]:
    return tomllib.loads(paper_named(paper).claims_text())


def _paper_tables(paper: str) -> dict[str, str]:
    tables = paper_named(paper).tables().values()
    return {file.name: file.read_text(encoding="utf-8") for file in tables}


def used(specs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The models, the corpora and the methods (with their versions) that these `spec.json` name."""
    names = {found for spec in specs for found in _named(spec)}
    names |= {("evaluation", KINDS[n].uses or n) for what, n in names if what == "evaluation"}
    return {
        "models": sorted(n for what, n in names if what == "model"),
        "corpora": sorted(n for what, n in names if what == "corpus"),
        "versions": {
            f"{what} {n}": version
            for what, n in sorted(names)
            if (version := _version(what, n)) is not None
        },
    }


def _version(what: str, name: str) -> int | None:
    """The version of a method as it is now; None of what has no version, or is gone."""
    if what == "explainer":
        return VERSION if name in EXPLAINERS else None
    return getattr(REGISTRIES.get(what, {}).get(name), "version", None)


def _named(spec: Any) -> Iterator[tuple[str, str]]:
    """(what, name) of everything in a description, in the runs that it rests on too."""
    if isinstance(spec, list):
        for part in spec:
            yield from _named(part)
    if not isinstance(spec, Mapping):
        return
    if "objective" in spec:
        yield from (("objective", term["name"]) for term in spec["objective"])
        yield "head", spec["model"]["head"]
        yield "model", placeless(spec["model"]["name"])
        yield "update", spec["update"]["name"]
    if spec.get("extract"):  # rationales and lessons come from evaluations that no spec names
        yield "evaluation", "word_scores"
    if lessons := spec.get("taught"):
        yield "evaluation", "predictions"
        if lessons.get("method"):
            yield "evaluation", "attributions"
    for what, key in KEYS.items():
        if spec.get(key):
            yield what, spec[key]
    for part in spec.values():
        yield from _named(part)


def record_sources(
    paper: str, profile: str, written: Mapping[str, str], *, root: Path, store: Path
) -> None:
    """Keep what a report was made from; `written` is `text_sources` before it was executed."""
    made = provenance(paper, profile, root) or {"runs": [], "evals": []}
    results = {store / kind / name for kind in ("runs", "evals") for name in made[kind]}
    specs = [_json(folder / "spec.json") for folder in results]
    made_from = {_json(folder / "provenance.json").get("made_from") for folder in results}
    results |= {store / "evals" / name for name in made_from if name}
    seconds = sum(_json(folder / "provenance.json").get("seconds", 0) for folder in results)
    sources = {**written, **used(specs), "seconds": round(seconds, 1)}
    text = json.dumps(sources, indent=1, ensure_ascii=False)
    write_whole(sources_file(paper, profile, root), text + "\n")


def _json(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def sources_file(paper: str, profile: str, root: Path | str | None = None) -> Path:
    """Where a report's sources are kept."""
    return reports_folder(profile, root) / f"{paper}.sources.json"


def out_of_date(paper: str, profile: str, root: Path) -> list[str]:
    """What has changed since the report was made; nothing where it would come out the same."""
    file = sources_file(paper, profile, root)
    if not file.exists():
        return ["what it was made from is not known"]
    then, now = json.loads(file.read_text(encoding="utf-8")), text_sources(paper, profile, root)
    changed = [
        f"{said} has changed" if what in then else f"it was made before {said} was recorded"
        for what, said in WRITTEN.items()
        if then.get(what) != now[what]
    ]
    for method, version in then["versions"].items():
        current = _version(*method.split(" ", 1))
        if current is None:
            changed.append(f"{method} is gone")
        elif current != version:
            changed.append(f"{method} was version {version} and is {current}")
    return changed
