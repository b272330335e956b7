"""What stands at the end of a report: on what, from which runs, in how many seconds?"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from erlib.provenance import environment
from erlib.reports.artefacts import show
from erlib.reports.ledger import known_paper, reports_folder, write_whole
from erlib.reports.markup import Html
from erlib.training.listing import absent_lines, failed_lines, run_label, vanished_words
from erlib.training.store import Store, open_store

HOLES = "The cells that would rest on these are empty."
SHOWN = 12  # hashes listed before the rest is only counted


def footer(
    paper: str,
    *,
    profile: str,
    runs: Sequence[str] = (),
    evals: Sequence[str] = (),
    seconds: float | None = None,
    device: str | None = None,
    data: str = "",
    store: str | None = None,
    root: Path | str | None = None,
) -> None:
    """Show the provenance of a notebook and leave it as `<paper>.provenance.json` for the index.

    `runs`, `evals`: the hashes used; `data`: the source of the data (packaged, local, hub);
    `store`: where they are kept. What failed is named, and every run with a loss that moved no
    weight.
    """
    made: dict[str, Any] = {
        "paper": known_paper(paper),
        "profile": profile,
        "data": data,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "seconds": None if seconds is None else round(seconds, 1),
        "work": _work(open_store(store), {"runs": runs, "evals": evals}),
        "runs": list(dict.fromkeys(runs)),
        "evals": list(dict.fromkeys(evals)),
        "unmoved": _unmoved(dict.fromkeys(runs), open_store(store)),
        "failed": failed_lines(open_store(store), runs, evals),
        "lacking": _lacking(open_store(store), {"runs": runs, "evals": evals}),
        "absent": absent_lines(open_store(store), runs, evals),
        "environment": environment(device),
    }
    path = _file(paper, profile, root)
    write_whole(path, json.dumps(made, indent=1, sort_keys=True) + "\n")
    show(footer_html(made), f"{paper}: {len(made['runs'])} runs, {len(made['evals'])} evaluations")


def _unmoved(runs: Iterable[str], store: Store) -> list[str]:
    """Those of the runs that had a loss without effect, each with what was found."""
    kept = [sealed for name in runs if (sealed := store.get("runs", name))]
    return [f"{run_label(s)}: {said}" for s in kept if (said := vanished_words(s))]


def _work(store: Store, named: Mapping[str, Sequence[str]]) -> float:
    """Seconds that these took when they were made, workers added up."""
    every = [
        store.get(kind, name) for kind, names in named.items() for name in dict.fromkeys(names)
    ]
    made = [sealed.read("provenance.json") for sealed in every if sealed]
    return round(sum(one.get("seconds") or 0 for one in made), 1)


def _lacking(store: Store, named: Mapping[str, Sequence[str]]) -> list[str]:
    """Which of these are not in a store that is only read."""
    gone = set(store.lacking())
    every = [(kind, name) for kind, names in named.items() for name in dict.fromkeys(names)]
    return [name for kind, name in every if f"{kind}/{name}" in gone]


def _file(paper: str, profile: str, root: Path | str | None) -> Path:
    return reports_folder(profile, root) / f"{paper}.provenance.json"


def provenance(paper: str, profile: str, root: Path | str | None = None) -> dict[str, Any] | None:
    """What `footer` left of a notebook; None where it has not been run."""
    path = _file(paper, profile, root)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def short_revision(made: Mapping[str, Any]) -> str:
    """The revision of a provenance in ten digits, with the "+" of a changed source; "–": none."""
    revision = made["environment"]["revision"] or ""
    return revision[:10] + ("+" if revision.endswith("+") else "") or "–"


def footer_html(made: dict[str, Any]) -> Html:
    """The provenance as a folded list."""
    where = made["environment"]
    entries = {
        "Made": made["date"],
        **_cost(made),
        "Profile": made["profile"] + (f", {made['data']} data" if made["data"] else ""),
        "Revision": where["revision"] or "not run from a checkout",
        "Device": machine(where),
        "Versions": ", ".join(
            f"{name} {number}"
            for name, number in {"Python": where["python"], **where["packages"]}.items()
            if number
        ),
        "Runs": _hashes(made["runs"]),
        "Evaluations": _hashes(made["evals"]),
    }
    if failed := made.get("failed"):
        entries["Failed"] = f"{HOLES} {'; '.join(failed)}"
    if lacking := made.get("lacking"):
        entries["Not there yet"] = f"{HOLES} {_hashes(lacking)}"
    if absent := made.get("absent"):
        entries["Not there"] = f"{HOLES} {'; '.join(absent)}"
    if unmoved := made.get("unmoved"):
        entries["Without effect"] = "; ".join(unmoved)
    listed = Markup("").join(
        Markup("<dt>{}</dt><dd>{}</dd>").format(name, value) for name, value in entries.items()
    )
    return Html(
        Markup(
            '<section class="provenance" id="{}-provenance"><details open><summary>Provenance'
            "</summary><dl>{}</dl></details></section>"
        ).format(made["paper"], listed)
    )


def _cost(made: Mapping[str, Any]) -> dict[str, str]:
    """What the work took, and how much of it fell into this execution; only what is known."""
    known = {
        "Work": (made.get("work"), ", of all its runs and evaluations, workers added up"),
        "Last execution": (made["seconds"], ", with what was in the store already"),
    }
    return {name: duration(took) + note for name, (took, note) in known.items() if took}


def machine(where: Mapping[str, Any]) -> str:
    """The machine of an `environment`: cpu, 2 of 8 cores, Linux x86_64."""
    device = f"{where['device']} {where['device_name']}".strip()
    return f"{device}, {where['threads']} of {where['cores']} cores, {where['platform']}"


def duration(seconds: float) -> str:
    """Seconds as a reader says them: 42 s, 3 min 20 s, 1 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _hashes(hashes: Sequence[str]) -> str:
    if not hashes:
        return "none"
    listed = ", ".join(h[:8] for h in hashes[:SHOWN])
    more = f", and {len(hashes) - SHOWN} more" if len(hashes) > SHOWN else ""
    return f"{len(hashes)}: {listed}{more}"
