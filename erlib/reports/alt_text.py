"""What is seen in a figure, for who cannot see it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Polygon

LONGEST = 250  # characters: a screen reader cannot pause in an alt text
MOST = 5  # names of a list; the others are counted

KINDS: dict[str, Callable[[Axes], bool]] = {  # the first that applies
    "drawing": lambda panel: not panel.axison,
    "colour map": lambda panel: bool(panel.images) or _has(panel.collections, QuadMesh),
    "bar chart": lambda panel: _has(panel.containers, BarContainer),
    "box plot": lambda panel: _has(panel.patches, PathPatch),
    "histogram": lambda panel: _has(panel.patches, Polygon),
    "line chart": lambda panel: any(x.get_transform() == panel.transData for x in panel.lines),
    "scatter plot": lambda panel: _has(panel.collections, PathCollection),
    "blank panel": lambda panel: True,
}


def described(figure: Figure) -> str:
    """A figure's panels by kind, with the names on their axes, their titles and the legend.

    2 line charts: “AOPC” against “λ₄”; titled “sufficiency”, “comprehensiveness”; legend: “LIME”.
    """
    bars = [axes for axes in figure.axes if axes.get_label() == "<colorbar>"]
    panels = [axes for axes in figure.axes if axes not in bars and (axes.has_data() or axes.texts)]
    named = {
        "": _against(panels),
        "colour: ": _quoted(bar.get_ylabel() for bar in bars),
        "titled ": _quoted([figure.get_suptitle(), *(panel.get_title() for panel in panels)]),
        "the words ": _quoted(_phrases(panels)),
        "legend: ": _quoted(_legend(figure)),
    }
    details = "; ".join(lead + names for lead, names in named.items() if names)
    text = f"{_counted(panels)}: {details}." if details else f"{_counted(panels)}."
    return shorten(text, LONGEST, placeholder=" …")


def _has(parts: Iterable[object], kind: type) -> bool:
    return any(isinstance(part, kind) for part in parts)


def _counted(panels: Sequence[Axes]) -> str:
    """A drawing and 8 colour maps."""
    kinds = Counter(next(name for name, fits in KINDS.items() if fits(p)) for p in panels)
    said = " and ".join(f"{n} {kind}s" if n > 1 else f"a {kind}" for kind, n in kinds.items())
    return said[:1].upper() + said[1:]


def _against(panels: Sequence[Axes]) -> str:
    """What goes up against what goes across; panels share labels, so each is named once."""
    drawn = [panel for panel in panels if panel.axison]
    up, across = _names([p.yaxis for p in drawn]), _names([p.xaxis for p in drawn])
    return f"{up} against {across}" if up and across else up or across


def _names(axes: Sequence[Axis]) -> str:
    """Their labels or, where there is none, the words at their ticks."""
    ticks = (tick.get_text() for axis in axes for tick in axis.get_ticklabels())
    words = (tick for tick in ticks if any(map(str.isalpha, tick)) and not tick.startswith("$"))
    return _quoted(axis.get_label_text() for axis in axes) or _quoted(words)


def _phrases(panels: Sequence[Axes]) -> list[str]:
    """What is written in drawings, but for single words, which may be those of a text."""
    written = [text.get_text() for panel in panels if not panel.axison for text in panel.texts]
    return [text for text in written if len(text.split()) > 1]


def _legend(figure: Figure) -> list[str]:
    own = (panel.get_legend() for panel in figure.axes)
    legends = [*figure.legends, *(legend for legend in own if legend)]
    return [entry.get_text() for legend in legends for entry in legend.get_texts()]


def _quoted(names: Iterable[str]) -> str:
    """The first names, each once and without TeX's dollars; “a”, “b” and 3 more."""
    plain = (" ".join(name.replace("$", "").split()) for name in names)
    found = [name for name in dict.fromkeys(plain) if name]
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return ", ".join(f"“{name}”" for name in found[:MOST]) + more
