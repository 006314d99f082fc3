"""The chart: speed of every subject by number of threads, and page reuse."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from .verdicts import MANY, REUSE_TARGET, Cells

SHADES = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")
REFERENCE_COLOUR, LOW_COLOUR, HIGH_COLOUR = "#999999", "#d6604d", "#4393c3"


def _speeds(axes: Axes, names: list[str], threads: list[int], cells: Cells) -> None:
    height = 0.8 / len(threads)
    for i, count in enumerate(threads):
        row = [cells[name, count] for name in names]
        speeds = [cell.ops_per_s / 1e6 for cell in row]
        spread = [
            [(cell.ops_per_s - cell.ops_low) / 1e6 for cell in row],
            [(cell.ops_high - cell.ops_per_s) / 1e6 for cell in row],
        ]
        places = [at + (i - (len(threads) - 1) / 2) * height for at in range(len(names))]
        axes.barh(places, speeds, height, xerr=spread, color=SHADES[i % len(SHADES)],
                  error_kw={"elinewidth": 0.6, "ecolor": "#555555"}, label=f"{count}")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("million operations a second (logarithmic; lines: all rounds)")
    axes.legend(title="threads", frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(threads))


def _reuse(axes: Axes, names: list[str], threads: int, cells: Cells) -> None:
    row = [cells[name, threads] for name in names]
    colours = [LOW_COLOUR if (cell.reuse or 0) < REUSE_TARGET else HIGH_COLOUR for cell in row]
    bars = axes.barh(range(len(names)), [100 * (cell.reuse or 0) for cell in row], 0.7, color=colours)
    labels = [
        "not counted" if cell.reuse is None else f"{cell.reuse:.1%}, {cell.new_pages_per_s:,.0f} new/s"
        for cell in row
    ]
    axes.bar_label(bars, labels, padding=3, fontsize=8)
    axes.axvline(100 * REUSE_TARGET, color=REFERENCE_COLOUR, linewidth=0.8, linestyle="--")
    axes.set_xlim(0, 150)
    axes.set_xlabel(f"page reuse %, {threads} threads (dashed: target), new pages a second")
    axes.set_xticks(range(0, 101, 20))


def draw(cells: Cells, path: Path) -> None:
    """Writes the chart as PNG."""
    names = list(dict.fromkeys(name for name, _ in cells))
    threads = sorted({count for _, count in cells})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(13, 0.55 * len(names) + 1.5), sharey=True, width_ratios=(3, 2), layout="constrained"
    )
    _speeds(left, names, threads, cells)
    _reuse(right, names, MANY if MANY in threads else threads[-1], cells)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="x", linewidth=0.3)
        axes.set_axisbelow(True)
    figure.savefig(path, dpi=110)
    plt.close(figure)
