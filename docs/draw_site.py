"""Table and figure of site.md, from what `measure_site.py` measured: `python docs/draw_site.py`.

Measure first only if a method has changed; this takes a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.attributions.variants import DEFAULTS
from erlib.reports.style import BLACK, BLUE, VERMILION, figure_style

HERE = Path(__file__).parent
HEAD = ("model", "method", "baseline", "at x", "at E", "E − x", "gap at x", "gap at E")


def table(frame: pd.DataFrame) -> str:
    """One line per model, method and baseline; what `attribute` does by default is bold."""
    lines = [_line(HEAD), _line(["---"] * 3 + ["--:"] * 5)]
    for row in frame.fillna({"baseline": "–"}).to_dict("records"):
        shown = {n: f"{row[n]:+.3f} ({row[n + '_t']:+.1f})" for n in ("x", "entry", "difference")}
        if row["difference"] == 0:  # wherever the position is simply added, and cancels
            shown["difference"] = "equal"
        if row["baseline"] != "[PAD]" and "ℓ2" not in row["method"]:
            at_entry = row["method"] in DEFAULTS and DEFAULTS[row["method"]].site == "entry"
            default = "entry" if at_entry else "x"
            shown[default] = f"**{shown[default]}**"
        gaps = ["–" if np.isnan(gap) else f"{gap:.2f}" for gap in (row["x_gap"], row["entry_gap"])]
        model = f"{row['model']} ({row['accuracy']:.1%})"
        method = row["method"].replace("deeplift", "deeplift, deepshap")
        lines.append(_line([model, method, row["baseline"], *shown.values(), *gaps]))
    return "\n".join(lines)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def drawn(tokens: pd.DataFrame, frame: pd.DataFrame) -> Figure:
    """Left one sentence at both sites, right every method at both, with 95 % intervals."""
    with figure_style():
        figure = Figure(figsize=(11, 4.6), layout="constrained")
        left, *right = figure.subplots(1, 4, width_ratios=[1.9, 1, 1, 1])
        _sentence(left, tokens)
        zero = frame[(frame["baseline"] != "[PAD]") & ~frame["method"].str.contains("ℓ2")]
        low = zero[["x_low", "entry_low"]].min(axis=None)
        high = zero[["x_high", "entry_high"]].max(axis=None)
        for axes, (model, part) in zip(right, zero.groupby("model", sort=False), strict=True):
            _sites(axes, part)
            axes.set_title(model)
            axes.set_xlim(low - 0.02, high + 0.02)
            axes.tick_params(labelleft=axes is right[0])
        right[1].set_xlabel("drop of p, over random deletion")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower left", ncols=3)
        figure.legend(*right[0].get_legend_handles_labels(), loc="outside lower right", ncols=2)
    return figure


def _sentence(axes: Axes, tokens: pd.DataFrame) -> None:
    """x and −(position + type) on one scale, E on its own: each over its largest."""
    places, at_x = np.arange(len(tokens)), tokens["x"].abs().max()
    axes.barh(places - 0.2, tokens["x"] / at_x, 0.4, color=VERMILION, label="x · g")
    dots = tokens["minus_rest"] / at_x
    axes.plot(dots, places - 0.2, "o", color=BLACK, ms=4, label="−(position + type) · g")
    largest = tokens["entry"].abs().max()
    axes.barh(places + 0.2, tokens["entry"] / largest, 0.4, color=BLUE, label="E · g")
    axes.set_yticks(places, tokens["token"])
    axes.invert_yaxis()
    axes.set_xlabel("score, over the largest")
    axes.set_title("input × gradient of one sentence")


def _sites(axes: Axes, part: pd.DataFrame) -> None:
    places = np.arange(len(part))
    for shift, site, colour, label in (
        (-0.15, "x", VERMILION, "at the word embedding x"),
        (0.15, "entry", BLUE, "at E, which enters the first layer"),
    ):
        sides = [part[site] - part[f"{site}_low"], part[f"{site}_high"] - part[site]]
        axes.errorbar(part[site], places + shift, xerr=sides, fmt="o", color=colour, label=label)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    axes.set_yticks(places, part["method"].str.replace("_", " "))
    axes.set_ylim(len(part) - 0.5, -0.5)


def main() -> None:
    """Write site.png, and the table into site.md."""
    frame = pd.read_csv(HERE / "site.csv")
    drawn(pd.read_csv(HERE / "site_sentence.csv"), frame).savefig(HERE / "site.png", dpi=130)
    page = HERE / "site.md"
    between = r"(?<=<!-- table -->\n\n).*(?=\n\n<!-- end -->)"
    text = page.read_text(encoding="utf-8")
    page.write_text(re.sub(between, lambda _: table(frame), text, flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    main()
