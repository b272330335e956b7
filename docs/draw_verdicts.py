"""Tables and figure of verdicts.md, from what `measure_verdicts.py` measured."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from erlib.reports.style import BLACK, BLUE, GREY, ORANGE, figure_style

HERE = Path(__file__).parent
COLOURS = {"old: t": GREY, "moderated": ORANGE, "new: the larger": BLUE}


def table(frame: pd.DataFrame) -> str:
    """One line per kind of variances, pool, n and rule; sizes in percent."""
    head = ("variances", "pool", "n", "rule", "size", "noisy group", "1 SD", "2 SD", "4 SD")
    lines = [_line(head), _line(["---", "--:", "--:", "---", *["--:"] * 5])]
    for row in frame.to_dict("records"):
        noisy = "–" if pd.isna(row["noisy"]) else f"{row['noisy']:.1%}"
        power = [f"{row[f'power {effect} SD']:.2f}" for effect in (1, 2, 4)]
        cells = [row["variances"], row["pool"], row["n"], row["rule"], f"{row['size']:.1%}", noisy]
        lines.append(_line([*map(str, cells), *power]))
    return "\n".join(lines)


def joined_table(frame: pd.DataFrame) -> str:
    """Chance that ten true effects are all found."""
    lines = [_line(["ten true effects", *frame.columns]), _line(["---", *["--:"] * frame.shape[1]])]
    lines += [_line([name, *(f"{v:.2f}" for v in row)]) for name, row in frame.iterrows()]
    return "\n".join(lines)


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def drawn(frame: pd.DataFrame) -> Figure:
    """Above the size by n, below the power at two standard deviations, a column per kind."""
    pools = frame[frame["pool"] == 20]
    with figure_style():
        figure = Figure(figsize=(9, 5.2), layout="constrained")
        axes = figure.subplots(2, 3, sharex=True, sharey="row")
        for column, (kind, part) in enumerate(pools.groupby("variances", sort=False)):
            _lines(axes[0][column], part, "size")
            axes[0][column].axhspan(0.03, 0.06, color="#E8F1E8", zorder=0)
            axes[0][column].set_title(f"variances {kind}")
            _lines(axes[1][column], part, "power 2 SD")
            axes[1][column].set_xlabel("seeds")
        noisy = pools[pools["noisy"].notna()]
        for rule, part in noisy.groupby("rule", sort=False):
            axes[0][2].plot(part["n"], part["noisy"], ":", marker="o", color=COLOURS[rule])
        (dotted,) = axes[0][2].plot([], [], ":", color=BLACK)
        axes[0][2].legend([dotted], ["of the noisy fifth"], loc="upper right")
        axes[0][0].set_ylim(0, 0.22)
        axes[1][0].set_ylim(0, 1.04)
        axes[0][0].set_ylabel("wrong, no effect")
        axes[1][0].set_ylabel("found, 2 SD")
        axes[1][0].legend(loc="lower right")
    return figure


def _lines(axes: Axes, part: pd.DataFrame, what: str) -> None:
    for rule, line in part.groupby("rule", sort=False):
        axes.plot(line["n"], line[what], marker="o", color=COLOURS[rule], label=rule)
    axes.set_xticks([3, 5, 10])


def main() -> None:
    """Write verdicts.png, and the tables into verdicts.md."""
    frame = pd.read_csv(HERE / "verdicts.csv")
    drawn(frame).savefig(HERE / "verdicts.png", dpi=130)
    page = HERE / "verdicts.md"
    text = page.read_text(encoding="utf-8")
    joined = joined_table(pd.read_csv(HERE / "verdicts_joined.csv", index_col=0))
    for name, lines in (("table", table(frame)), ("joined", joined)):
        between = rf"(?<=<!-- {name} -->\n\n).*?(?=\n\n<!-- end -->)"
        text = re.sub(between, lambda _, lines=lines: lines, text, flags=re.S)
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
