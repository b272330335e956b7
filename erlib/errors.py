"""How does erlib say that a name is not known?"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def unknown(kind: str, name: object, known: Iterable[str]) -> ValueError:
    """A `ValueError` naming what was asked for, the nearest valid name, and all valid names.

    >>> str(unknown("method", "alt", ["alti", "lime"]))
    "unknown method 'alt'; did you mean 'alti'? known: alti, lime"
    """
    names = sorted(known)
    close = get_close_matches(str(name), names, n=1)
    hint = f" did you mean '{close[0]}'?" if close else ""
    return ValueError(f"unknown {kind} '{name}';{hint} known: {', '.join(names)}")


EXTRAS = {
    "notebooks": {"jupyter_client", "latex2mathml", "nbconvert", "nbformat", "papermill"},
    "explorer": {"anywidget", "ipywidgets"},
}


def lacking(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """The same error, naming the extra of erlib that brings the library, if one does."""
    library = (error.name or "").partition(".")[0]
    for extra, brings in EXTRAS.items():
        if library in brings:
            said = f"this needs the library {library}: pip install 'erlib[{extra}]'"
            return ModuleNotFoundError(said, name=error.name)
    return error
