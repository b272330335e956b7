"""How much is spent on explaining a text, where that is another size than the variant's?

`steps` are the points of integrated gradients' path, `samples` those of GradSHAP and the masked
copies of LIME and Kernel SHAP. They are sizes, as the rows of an evaluation are, and so no
variants; nothing else about a method may be changed beside its variant.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral

from erlib.attributions.registry import METHODS, method
from erlib.errors import unknown


def check_spending(options: Mapping[str, int], *methods: str) -> None:
    """Refuse an option that none of the methods reads, and a count that is none."""
    known = {option for name in methods if (option := method(name).spends)}
    for option, count in options.items():
        if not known:
            what = " and ".join(methods) or "an evaluation without a method"
            spending = ", ".join(f"{m.name} ({m.spends})" for m in METHODS.values() if m.spends)
            raise ValueError(f"{what} takes no '{option}'; methods with options: {spending}")
        if option not in known:
            raise unknown(f"option of {' and '.join(methods)}", option, known)
        if not isinstance(count, Integral) or isinstance(count, bool) or count < 1:
            raise ValueError(f"{option} must be a whole number of at least 1, not {count!r}")


def own_spending(options: Mapping[str, int], name: str) -> dict[str, int]:
    """Of options that several methods are given, the one that this method reads."""
    return {option: n for option, n in options.items() if option == method(name).spends}
