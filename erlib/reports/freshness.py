"""Is a report older than the notebook, profile, claims, numbers or methods that it was made from?

What a report was made from is kept beside it, in `reports/<profile>/<paper>.sources.json`: hashes
of the notebook's cells, of the profile's entry for the paper, of the paper's claims with their
rules and of its printed numbers, the version of every method that its runs and evaluations used,
and the seconds that these took. That is what readers ask (`out_of_date`). Whether executing it
again here could give anything else (`why_again`) also depends on every line of erlib, on the
parameters, on the machine's libraries and on what the store has.
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
from erlib.config import digest, load_profile, store_root
from erlib.data.known import results_only
from erlib.losses import OBJECTIVES
from erlib.models.heads import HEADS
from erlib.models.jwa import placeless
from erlib.models.learned_attention import EXPLAINERS, VERSION
from erlib.parameters import Settings
from erlib.provenance import source_hash, surroundings
from erlib.reports.footer import provenance
from erlib.reports.ledger import read_rows, reports_folder, write_whole
from erlib.reports.staging import own_files
from erlib.training import kinds, pilot  # noqa: F401  (registered below)
from erlib.training.evaluations import KINDS
from erlib.training.store import read_seal
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
MADE_WITH = {  # what a report depends on besides, where it is executed
    "erlib": "erlib's source",
    "parameters": "a parameter",
    "surroundings": "the device, a library or a file of your own",
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


def made_with(settings: Settings) -> dict[str, str]:
    """Hashes of what an execution depends on, named as in `MADE_WITH`."""
    about = paper_named(settings.paper)
    return {
        "erlib": source_hash(about.folder),
        "parameters": digest([vars(settings), results_only()]),
        "surroundings": digest(surroundings(settings.device)),
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
    """Keep what a report was made from; `written` is `text_sources`, and `made_with` where that is
    to be known, before it was executed."""
    results = _results(paper, profile, root, store)
    specs = [_json(folder / "spec.json") for folder in results]
    seconds = sum(_json(folder / "provenance.json").get("seconds", 0) for folder in results)
    sources = {
        **written,
        **used(specs),
        "seconds": round(seconds, 1),
        "results": _seals(results),
        "files": sorted(map(str, own_files(paper, profile, root))),
    }
    text = json.dumps(sources, indent=1, ensure_ascii=False)
    write_whole(sources_file(paper, profile, root), text + "\n")


def _results(paper: str, profile: str, root: Path, store: Path) -> set[Path]:
    """The folders of the results that a report rests on, with those that these were made from."""
    made = provenance(paper, profile, root) or {"runs": [], "evals": []}
    results = {store / kind / name for kind in ("runs", "evals") for name in made[kind]}
    made_from = {_json(folder / "provenance.json").get("made_from") for folder in results}
    return results | {store / "evals" / name for name in made_from if name}


def _seals(results: Iterable[Path]) -> str:
    """One hash of all results as they are sealed, whether or not their models were dropped since;
    empty where one is missing."""
    try:
        seals = {f"{f.parent.name}/{f.name}": read_seal(f) for f in results}
    except (OSError, ValueError):
        return ""
    return digest(
        {n: [s["status"], {**s["sha256"], **s.get("dropped", {})}] for n, s in seals.items()}
    )


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


def why_again(settings: Settings, root: Path) -> list[str]:
    """Why executing a report again could change it; nothing where it could not."""
    paper, profile = settings.paper, settings.profile
    if reasons := out_of_date(paper, profile, root):
        return reasons
    then, now = _json(sources_file(paper, profile, root)), made_with(settings)
    if "results" not in then:
        return ["it was made before its results were recorded"]
    reasons = [
        f"{said} has changed" for what, said in MADE_WITH.items() if then.get(what) != now[what]
    ]
    folder, name = reports_folder(profile, root), paper_named(paper).notebook
    files = [folder / f"{name}.html", folder / f"{name}.ipynb", *map(root.joinpath, then["files"])]
    listed = {row["paper"] for row in read_rows(folder / "artefacts.csv")}
    if paper not in listed or not all(file.exists() for file in files):
        reasons.append("a file of it is missing")
    if (folder / f"{name}.failed.ipynb").exists():
        reasons.append("its last execution failed")
    results = _results(paper, profile, root, store_root(settings.store))
    if not then["results"] or then["results"] != _seals(results):
        reasons.append("the store has other results")
    return reasons
