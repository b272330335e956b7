"""How does content become a page that asks no other host for anything?"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

FAVICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E"
    "%3Crect width='16' height='16' rx='3' fill='%230072B2'/%3E%3Cpath d='M3 5h10M3 8h4M3 11h7' "
    "stroke='white' stroke-width='2'/%3E%3C/svg%3E"
)


def template_text(name: str) -> str:
    """A file of `reports/templates`."""
    return (files("erlib.reports") / "templates" / name).read_text(encoding="utf-8")


def page(template: str, **content: Any) -> str:
    """A template filled in; everything that is not `Markup` is escaped."""
    environment = Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    css = Markup(template_text("page.css"))  # this and the script are ours, and put in unescaped
    script = Markup(template_text("page.js"))
    return environment.get_template(template).render(
        favicon=FAVICON, css=css, script=script, **content
    )
