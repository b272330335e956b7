"""How does an executed notebook become one HTML page that asks no other host for anything?

nbconvert's own HTML loads MathJax and require.js from elsewhere; here only its filters are used
(Markdown, code highlighting, terminal colours), and the page around them is ours.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from bs4 import BeautifulSoup
from latex2mathml.converter import convert as latex_to_mathml
from markupsafe import Markup
from nbconvert.filters import Highlight2HTML, ansi2html
from nbconvert.filters.markdown import markdown2html
from pygments.formatters import HtmlFormatter  # type: ignore[import-untyped]

from erlib.reports.artefacts import DPI
from erlib.reports.ledger import write_whole
from erlib.reports.markup import png_uri
from erlib.reports.pages import page
from erlib.reports.sanitised import sanitised

SCALE = 96 / DPI  # CSS has 96 pixels to the inch: a figure is shown at the size it was drawn for


def render_notebook(notebook: Path | str) -> Path:
    """Write the executed notebook as HTML beside it; the path of the page."""
    source = Path(notebook)
    target = source.with_suffix(".html")
    cells = nbformat.read(source, as_version=4).cells
    body = BeautifulSoup(sanitised("\n".join(_cells_html(cells))), "html.parser")
    _link_files(body, target.parent)
    _fold_repeated(body)
    for table in body.select("div.text table"):  # on a phone the table scrolls, not the page
        table.wrap(body.new_tag("div", attrs={"class": "scroll"}))
    contents = _contents(body)
    first = body.find("h1")
    title = _heading_text(first) if first else source.stem
    html = page(
        "notebook.html.j2",
        title=title,
        profile=target.parent.name,
        body=Markup(str(body)),
        contents=contents,
        highlighting=Markup(_highlighting()),
    )
    write_whole(target, html)
    return target


def _cells_html(cells: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Prose, and code with its outputs; code cells that only lead to the next share its fold, which
    is open for a cell with the tag "shown"."""
    waiting: list[str] = []
    for cell in cells:
        if cell["cell_type"] == "markdown":
            yield _code_html(waiting)
            waiting = []
            yield f'<div class="text">{prose_html(cell["source"])}</div>'
        elif cell["cell_type"] == "code" and cell["source"].strip():
            waiting.append(cell["source"])
            if outputs := cell.get("outputs", ()):
                shown = "shown" in cell["metadata"].get("tags", ())
                code = _code_html(waiting, shown=shown)
                yield code + "".join(_output_html(output) for output in outputs)
                waiting = []
    yield _code_html(waiting)


def prose_html(source: str) -> str:
    """Markdown with its equations ($$…$$ on lines of their own, $…$ within) as MathML, which
    browsers draw by themselves."""
    equations: list[str] = []

    def kept(found: re.Match[str]) -> str:
        display = "block" if found[1] is not None else "inline"
        drawn = latex_to_mathml(found[1] or found[2], display=display)
        equations.append(f'<span class="equation">{drawn}</span>' if found[1] else drawn)
        return f"equation{len(equations) - 1}equation"

    html = markdown2html(re.sub(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", kept, source, flags=re.DOTALL))
    return re.sub(r"equation(\d+)equation", lambda found: equations[int(found[1])], html)


def _code_html(sources: Sequence[str], *, shown: bool = False) -> str:
    if not sources:
        return ""
    code = Highlight2HTML(pygments_lexer="python")("\n\n".join(sources))
    return f'<details class="code"{" open" * shown}><summary>Code</summary>{code}</details>'


def _output_html(output: Mapping[str, Any]) -> str:
    kind = output["output_type"]
    if kind == "stream":
        text = ansi2html(_last_state(_joined(output["text"])))
        if output["name"] == "stderr":
            return f'<details class="log"><summary>Log</summary><pre>{text}</pre></details>'
        return f'<pre class="output">{text}</pre>'
    if kind == "error":
        return f'<pre class="output error">{ansi2html(_joined(output["traceback"], chr(10)))}</pre>'
    data = output["data"]
    if "text/html" in data:
        return f'<div class="output">{_joined(data["text/html"])}</div>'
    if "text/markdown" in data:
        return f'<div class="text">{markdown2html(_joined(data["text/markdown"]))}</div>'
    if "image/png" in data:
        picture = _joined(data["image/png"]).replace("\n", "")
        alt = ansi2html(_joined(data.get("text/plain", "")))
        return (
            f'<div class="output"><img src="data:image/png;base64,{picture}" '
            f'alt="Figure: {Markup.escape(Markup(alt).striptags())}"></div>'
        )
    return f'<pre class="output">{ansi2html(_joined(data.get("text/plain", "")))}</pre>'


def _joined(text: str | Sequence[str], separator: str = "") -> str:
    """A notebook's text may be stored as one string or as lines."""
    return text if isinstance(text, str) else separator.join(text)


def _last_state(text: str) -> str:
    """What a terminal shows in the end: a carriage return starts its line again."""
    return "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))


def _link_files(body: BeautifulSoup, reports: Path) -> None:
    """Figures come from their files instead of a copy in the page, and tables name their CSV."""
    figures = reports.parent.parent / "figures" / reports.name
    for artefact in body.find_all("figure", class_="artefact"):
        file = figures / f"{artefact['id']}.png"
        image = artefact.find("img", recursive=False)
        if image and file.is_file() and image["src"] == png_uri(png := file.read_bytes()):
            image["src"] = f"../../figures/{reports.name}/{file.name}"
            width, height = struct.unpack(">II", png[16:24])
            image["width"], image["height"] = round(width * SCALE), round(height * SCALE)
            image["loading"] = "lazy"
            image.wrap(body.new_tag("a", href=image["src"]))
        table = artefact.find("div", class_="scroll", recursive=False)
        numbers = f"tables/{artefact['id']}.csv"
        if table and (reports / numbers).is_file():
            tools = body.new_tag("p", attrs={"class": "tools"})
            tools.append(body.new_tag("a", href=numbers, string="CSV"))
            table.insert_before(tools)


def _fold_repeated(body: BeautifulSoup) -> None:
    """What is less than in the paper is said in full once; the same again unfolds on demand."""
    said = set()
    for line in body.find_all("p", class_="reduced"):
        if line.get_text() in said:
            fold = line.wrap(body.new_tag("details", attrs={"class": "reduced"}))
            fold.insert(0, body.new_tag("summary", string="Reduced as above"))
            del line["class"]
        said.add(line.get_text())


def _contents(body: BeautifulSoup) -> list[dict[str, str]]:
    """The headings below the title, each with an id that no other element has."""
    taken: set[str] = {str(tag["id"]) for tag in body.find_all(id=True) if tag.name not in HEADINGS}
    entries = []
    for heading in body.find_all(HEADINGS):
        name = str(heading.get("id") or _heading_text(heading).replace(" ", "-"))
        unique, count = name, 1
        while unique in taken:
            count += 1
            unique = f"{name}-{count}"
        taken.add(unique)
        heading["id"] = unique
        for link in heading.find_all("a", class_="anchor-link"):
            link["href"] = f"#{unique}"
        if heading.name in ("h2", "h3"):
            entries.append({"level": heading.name, "id": unique, "text": _heading_text(heading)})
    return entries


HEADINGS = ["h1", "h2", "h3", "h4"]


def _heading_text(heading: Any) -> str:
    return str(heading.get_text()).replace("¶", "").strip()


def _highlighting() -> str:
    """Pygments' colours for code, light and dark; the background is the page's."""
    light = HtmlFormatter(style="default", nobackground=True).get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark", nobackground=True).get_style_defs(".highlight")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
