"""Which HTML of an executed notebook may stand on a page? What shows something, and does nothing.

Prose, outputs and the names in them may come from anywhere: scripts, handlers, forms and frames are
taken out by nh3, and so is all that would be fetched from elsewhere. Equations (MathML) and plain
drawings (SVG) stay.
"""

from __future__ import annotations

import re

import nh3

MATHML = (
    "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub "
    "msubsup msup mtable mtd mtext mtr munder munderover"
)
OF_MATHML = (
    "accent accentunder columnalign columnlines depth display displaystyle fence form height "
    "linethickness lspace mathcolor mathsize mathvariant maxsize minsize notation rowspacing "
    "rspace scriptlevel separator stretchy symmetric voffset width xmlns"
)
SVG = "svg circle desc ellipse g line path polygon polyline rect text title tspan"
OF_SVG = (
    "cx cy d fill fill-opacity font-size font-weight height opacity points preserveAspectRatio r "
    "rx ry stroke stroke-dasharray stroke-linecap stroke-linejoin stroke-opacity stroke-width "
    "text-anchor transform viewBox width x x1 x2 xmlns y y1 y2"
)
ANYWHERE = "aria-hidden aria-label class dir id lang role style title"
TAGS = {*nh3.ALLOWED_TAGS, "section", *MATHML.split(), *SVG.split()}
ATTRIBUTES = {
    **nh3.ALLOWED_ATTRIBUTES,
    "*": set(ANYWHERE.split()),
    "details": {"open"},
    **{tag: set(OF_MATHML.split()) for tag in MATHML.split()},
    **{tag: set(OF_SVG.split()) for tag in SVG.split()},
}
PICTURE = re.compile(r"data:image/(png|jpeg|gif);base64,")
FETCHES = re.compile(r"url|image|\\|/\*|@", re.IGNORECASE)  # in a style, however it is spelt


def sanitised(html: str) -> str:
    """The HTML without what could run or be fetched."""
    return nh3.clean(
        html,
        tags=TAGS,
        attributes=ATTRIBUTES,
        attribute_filter=_allowed,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel=None,
    )


def _allowed(tag: str, attribute: str, value: str) -> str | None:
    """The attribute's value, or None to leave it out."""
    if attribute == "src":
        return value if PICTURE.match(value) else None
    if attribute == "href" and value.strip().lower().startswith("data:"):
        return None
    if attribute == "style" and FETCHES.search(value):
        return None
    return value
