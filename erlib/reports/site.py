"""What was run, and what came of it, on one page? (`reports/<profile>/index.html`)"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from erlib.catalogue import papers as known_papers
from erlib.config import project_root
from erlib.reports.findings import findings_html
from erlib.reports.footer import duration, machine, provenance, short_revision
from erlib.reports.interval_plot import KEY, interval_svg
from erlib.reports.ledger import figures_folder, read_rows, reports_folder, write_whole
from erlib.reports.markup import badge_html, counted, label
from erlib.reports.names import readable, readable_part
from erlib.reports.pages import page
from erlib.reports.recorded import Row, by_chance, folded, interval, short, tally
from erlib.reports.staging import finish
from erlib.reports.trust import how_far_to_trust

LEGEND = {
    "holds": "as claimed, and large enough",
    "holds (direction)": "on the claimed side, but smaller",
    "leans with": "towards the paper, not surely",
    "open": "the runs do not decide",
    "inconclusive": "the runs do not decide",  # reports made by older rules
    "leans against": "against the paper, not surely",
    "no difference": "next to nothing of what is claimed",
    "fails": "the other way, or beyond the margin",
    "not attempted": "too little measured to decide",
}
FILES = ("claims.csv", "claims_parts.csv", "artefacts.csv")


def build_index(profile: str, root: Path | str | None = None) -> Path:
    """Write the profile's index from what its notebooks left there; the path of the page.

    It links only to files that exist.
    """
    finish(profile, Path(root or project_root()))
    site = _Site(reports_folder(profile, root), figures_folder(profile, root))
    made = [one for name in known_papers() if (one := provenance(name, profile, root))]
    papers = [paper for name in known_papers() if (paper := site.paper(name))]
    html = page(
        "index.html.j2",
        profile=profile,
        lead=_lead(profile, made, site.claims),
        facts=_facts(made, site.sources),
        papers=papers,
        verdicts=_given(site.claims),
        costs=[_cost(one, site.sources.get(one["paper"], {})) for one in made],
        versions=_versions(made),
        trust=how_far_to_trust(site.reports, site.claims, site.parts),
        key=KEY,
        files=[f for f in FILES if (site.reports / f).exists()],
    )
    write_whole(site.reports / "index.html", html)
    return site.reports / "index.html"


@dataclass(frozen=True)
class _Site:
    """The folders of a profile and what lies in them."""

    reports: Path
    figures: Path

    @property
    def claims(self) -> list[dict[str, str]]:
        return read_rows(self.reports / "claims.csv")

    @property
    def parts(self) -> list[dict[str, str]]:
        return read_rows(self.reports / "claims_parts.csv")

    @property
    def sources(self) -> dict[str, dict[str, Any]]:
        """What each paper's report was made from (`erlib.reports.freshness`)."""
        files = {name: self.reports / f"{name}.sources.json" for name in known_papers()}
        return {n: json.loads(p.read_text("utf-8")) for n, p in files.items() if p.exists()}

    def page_of(self, paper: str) -> str:
        """The paper's rendered notebook, `01_er_lens.html`; empty if there is none."""
        pages = sorted(self.reports.glob(f"*_{paper}.html")) or [self.reports / f"{paper}.html"]
        return pages[0].name if pages[0].exists() else ""

    def paper(self, name: str) -> dict[str, Any] | None:
        """All that the template shows of a paper; None where nothing of it was run."""
        rows = [r for r in read_rows(self.reports / "artefacts.csv") if r["paper"] == name]
        claims = [r for r in self.claims if r["paper"] == name]
        own_page = self.page_of(name)
        failed = any(self.reports.glob(f"*_{name}.failed.ipynb"))
        if not (rows or claims or own_page or failed):
            return None
        anchors = {r["id"]: f"{own_page}#{name}-{r['id']}" for r in rows} if own_page else {}
        return {
            "name": name,
            "title": known_papers()[name].title,
            "short": known_papers()[name].short,
            "page": own_page,
            "failed": failed,
            "findings": findings_html(claims, on_index=True),
            "claims": [_claim(r, anchors, self._parts(r)) for r in claims],
            "tables": [self._table(r, anchors) for r in rows if r["kind"] != "figure"],
            "figures": [
                figure
                for r in rows
                if r["kind"] == "figure" and (figure := self._figure(r, anchors))
            ],
        }

    def _parts(self, claim: Row) -> list[dict[str, str]]:
        return [
            r for r in self.parts if (r["paper"], r["claim"]) == (claim["paper"], claim["claim"])
        ]

    def _table(self, row: Row, anchors: Mapping[str, str]) -> dict[str, str]:
        csv = f"tables/{row['paper']}-{row['id']}.csv"
        return {
            "label": label(row["id"]),
            "caption": row["caption"],
            "href": anchors.get(row["id"], ""),
            "csv": csv if row["kind"] == "table" and (self.reports / csv).exists() else "",
        }

    def _figure(self, row: Row, anchors: Mapping[str, str]) -> dict[str, str] | None:
        stem = f"{row['paper']}-{row['id']}"
        if not (self.figures / f"{stem}.png").exists():
            return None
        there = f"../../figures/{self.figures.name}/{stem}"
        return {
            "label": label(row["id"]),
            "caption": row["caption"],
            "alt": row.get("alt") or row["caption"],  # reports made before figures were described
            "png": f"{there}.png",
            "href": anchors.get(row["id"], f"{there}.png"),
        }


def _claim(row: Row, anchors: Mapping[str, str], parts: Sequence[Row]) -> dict[str, Any]:
    sources = [
        {"label": label(source), "href": anchors.get(source, "")}
        for source in row["source"].split()
    ]
    lost = int(row["lost"] or 0)
    notes = [row["note"], f"{counted(lost, 'seed')} lost" if lost else ""]
    return {
        "id": row["claim"],
        "anchor": f"{row['paper']}-{row['claim']}",
        "statement": row["statement"],
        "verdict": row["verdict"],
        "badge": badge_html(row["verdict"]),
        "paper": short(row["paper_value"]),
        "ours": short(row["our_value"]),
        "interval": interval(row),
        "unit": f"{row['unit']} ({readable_part(row['part'])})" if row["part"] else row["unit"],
        "seeds": row["seeds"],
        "reason": readable(" ".join(f"{t.rstrip('.')}." for t in (row["reason"], *notes) if t)),
        "parts": folded(parts) if len(parts) > 1 else "",
        "picture": interval_svg(row),
        "sources": sources,
        "href": next((s["href"] for s in sources if s["href"]), ""),
    }


def _given(claims: Sequence[Row]) -> list[dict[str, Any]]:
    """The verdicts that were given: what each means, and how many claims have it."""
    given = [r["verdict"] for r in claims]
    return [
        {"verdict": v, "badge": badge_html(v), "count": given.count(v), "meaning": meaning}
        for v, meaning in LEGEND.items()
        if v in given
    ]


def _facts(
    made: Sequence[Mapping[str, Any]], sources: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, str]]:
    """On what it was run, how much work it was and at which revision; only what is known."""
    work = sum(one.get("seconds", 0) for one in sources.values())
    facts = {
        "Models": {name for one in sources.values() for name in one["models"]},
        "Corpora": {name for one in sources.values() for name in one["corpora"]},
        "Machine": {machine(one["environment"]) for one in made},
        "Work": {f"{duration(work)}, workers added up"} if work else set(),
        "Revision": {short_revision(one) for one in made} - {"–"},
    }
    return [(name, ", ".join(sorted(values))) for name, values in facts.items() if values]


def _lead(profile: str, made: Sequence[Mapping[str, Any]], claims: Sequence[Row]) -> str:
    """The page in two sentences, from the files."""
    text = f"Profile {profile}. "
    if made:
        runs = {h for one in made for h in one["runs"]}
        evals = {h for one in made for h in one["evals"]}
        sources = sorted({one["data"] for one in made if one["data"]})
        devices = sorted({one["environment"]["device"] for one in made})
        text = (
            f"The {profile} profile: {counted(len(made), 'notebook')}, "
            f"{counted(len(runs), 'training run')} "
            f"and {counted(len(evals), 'evaluation')} on {' and '.join(devices)}"
            + (f" with {' and '.join(sources)} data" if sources else "")
            + f", last made {max(one['date'] for one in made)}. "
        )
    few = [r for r in claims if int(r["seeds"]) < 3]
    if claims:
        text += f"{counted(len(claims), 'claim')} evaluated: {tally(claims)}."
    older = any(r["verdict"] == "inconclusive" for r in claims)  # made by older rules
    if claims and not older:
        text += f" {by_chance(claims)}"
    if few and older:
        which = "All" if len(few) == len(claims) else f"{len(few)} of them"
        rest = "rests" if len(few) == 1 < len(claims) else "rest"
        text += f" {which} {rest} on fewer than three seeds, which decide nothing."
    return text.strip()


def _cost(made: Mapping[str, Any], sources: Mapping[str, Any]) -> dict[str, Any]:
    where = made["environment"]
    return {
        "name": known_papers()[made["paper"]].short,
        "date": made["date"],
        "work": duration(sources["seconds"]) if "seconds" in sources else "–",
        "time": duration(made["seconds"]) if made["seconds"] is not None else "–",
        "runs": len(made["runs"]),
        "evals": len(made["evals"]),
        "device": f"{where['device']} {where['device_name']}".strip()
        + f", {counted(where['threads'], 'thread')}",
        "revision": short_revision(made),
    }


def _versions(made: Sequence[Mapping[str, Any]]) -> str:
    """Each package's versions, once where all notebooks had the same."""
    found: dict[str, set[str]] = {}
    for one in made:
        where = one["environment"]
        for name, number in {"Python": where["python"], **where["packages"]}.items():
            if number:
                found.setdefault(name, set()).add(number)
    return ", ".join(f"{name} {' / '.join(sorted(numbers))}" for name, numbers in found.items())
