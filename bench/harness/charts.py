"""The result as charts: ratios to the best peer, geometric means, tail latency, memory after idle."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # no display

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from .extras import AFTER_IDLE, LATENCY, MEMORY
from .text import TITLES, digits

Document = dict[str, Any]

# Colours that remain apart for the colour-blind (Okabe and Ito), and markers that do so in print.
STYLES = {
    "hakmem": ("#d55e00", "D"),
    "glibc": ("#555555", "o"),
    "mimalloc": ("#0072b2", "s"),
    "jemalloc": ("#009e73", "^"),
    "tcmalloc": ("#cc79a7", "v"),
    "tbbmalloc": ("#56b4e9", "P"),
    "mimalloc2": ("#003d66", "<"),
    "snmalloc": ("#b8a500", ">"),
    "rpmalloc": ("#7f4fc9", "*"),
    "scudo": ("#000000", "x"),
}
SPARE_STYLES = (("#e69f00", "X"), ("#8c6d31", "p"), ("#6a3d9a", "h"))
SETTINGS = {
    "font.size": 9,
    "text.parse_math": False,  # names are names
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "xtick.color": "#444444",
    "ytick.color": "#222222",
    "legend.frameon": False,
    "figure.facecolor": "white",
}
WIDTH = 9.5  # inches
ROW = 0.23


@dataclass(frozen=True)
class Chart:
    """A chart in both forms."""

    name: str
    title: str
    svg: str
    png: bytes


def style_of(name: str, names: list[str]) -> tuple[str, str]:
    """Colour and marker of an allocator: the same in all charts."""
    if name in STYLES:
        return STYLES[name]
    unknown = [each for each in names if each not in STYLES]
    return SPARE_STYLES[unknown.index(name) % len(SPARE_STYLES)]


def _plain(value: float, _position: int | None = None) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _log_axis(axis: Any, subs: tuple[float, ...]) -> None:  # noqa: ANN401 - an XAxis or a YAxis
    axis.set_major_locator(LogLocator(10, subs=subs))
    axis.set_major_formatter(FuncFormatter(_plain))
    axis.set_minor_formatter(NullFormatter())


def ratio_chart(document: Document, measure: str) -> Figure | None:
    """A line of dots for every benchmark: each allocator's ratio to the best peer, on a log scale."""
    rows = [row for row in document["benchmarks"] if measure in row["best_peer"]]
    if not rows:
        return None
    names = list(document["allocators"])
    figure, axes = plt.subplots(figsize=(WIDTH, 1.4 + ROW * len(rows)), layout="constrained")
    axes.axvspan(1 / 1.1, 1.1, color="#f2f2f2", linewidth=0)
    axes.axvline(1, color="#777777", linewidth=1)
    for name in [*(n for n in names if n != "hakmem"), *(n for n in names if n == "hakmem")]:
        points = [
            (row["cells"][name][measure]["ratio"], height)
            for height, row in enumerate(rows)
            if name in row["cells"]
        ]
        colour, marker = style_of(name, names)
        own = name == "hakmem"
        axes.plot(
            [ratio for ratio, _ in points],
            [height for _, height in points],
            marker,
            color=colour,
            markersize=7.5 if own else 5,
            alpha=1 if own else 0.75,
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=name,
        )
    axes.set_xscale("log")
    _log_axis(axes.xaxis, (1.0, 2.0, 5.0))
    axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(True)
    axes.set_xlabel(
        "ratio to the best peer, log scale; left of 1 is better than every peer; grey: within 10 %"
    )
    axes.set_title(f"{TITLES[measure].split(',')[0]}, against the best peer of each benchmark", pad=24)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.3,
        ncols=len(names),
        handletextpad=0.2,
        columnspacing=1.2,
    )
    return figure


def _labelled_bars(
    axes: Axes, values: dict[str, float], names: list[str], spread: dict[str, Any] | None
) -> None:
    """Horizontal bars from 0, the value after each; with the spread as a thin line."""
    shown = [name for name in names if name in values]
    lengths = [values[name] for name in shown]
    axes.barh(range(len(shown)), lengths, color=[style_of(name, names)[0] for name in shown], height=0.7)
    for height, name in enumerate(shown):
        end = values[name]
        if spread is not None:
            axes.plot([spread[name]["min"], spread[name]["max"]], [height] * 2, color="#222222", linewidth=1)
            end = max(end, spread[name]["max"])
        axes.annotate(
            digits(values[name]),
            (end, height),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontweight="bold" if name == "hakmem" else "normal",
        )
    axes.set_yticks(range(len(shown)), shown)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlim(left=0)


def means_chart(document: Document) -> Figure | None:
    """The geometric means of time, CPU time and peak memory."""
    means = document["geometric_means"]["all loads"]
    if not any(means["benchmarks"].values()):
        return None
    names = list(document["allocators"])
    figure, panels = plt.subplots(1, len(TITLES), figsize=(WIDTH, 2.6), layout="constrained")
    for axes, (measure, title) in zip(panels, TITLES.items(), strict=True):
        _labelled_bars(axes, means[measure], names, None)
        axes.axvline(1, color="#777777", linewidth=1)
        axes.set_title(title.split(",")[0], fontsize=10)
    figure.suptitle(
        f"Geometric mean of the ratios to the best peer, {means['rows']} benchmarks",
        x=0.01,
        ha="left",
        fontsize=11,
        fontweight="bold",
    )
    return figure


def _panels(count: int, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    columns = min(columns, count)
    lines = math.ceil(count / columns)
    figure, grid = plt.subplots(
        lines, columns, figsize=(WIDTH, height * lines + 0.6), layout="constrained", squeeze=False
    )
    panels = list(grid.flat)
    for unused in panels[count:]:
        unused.set_visible(False)
    return figure, panels[:count]


def _extra_rows(document: Document, title: str) -> list[dict[str, Any]]:
    return [row for table in document["extras"] if table["title"] == title for row in table["rows"]]


def latency_chart(document: Document) -> Figure | None:
    """A panel for every benchmark: the percentiles of single calls."""
    rows = _extra_rows(document, LATENCY)
    benchmarks = list(dict.fromkeys(row["benchmark"] for row in rows))
    if not benchmarks:
        return None
    names = list(document["allocators"])
    figure, panels = _panels(len(benchmarks), 3, 2.9)
    for axes, benchmark in zip(panels, benchmarks, strict=True):
        own = [row for row in rows if row["benchmark"] == benchmark]
        labels = [row["label"] for row in own]
        for name in names:
            points = [(n, row["cells"][name]["median"]) for n, row in enumerate(own) if name in row["cells"]]
            colour, marker = style_of(name, names)
            axes.plot(
                [n for n, _ in points],
                [max(value, 1) for _, value in points],
                marker=marker,
                color=colour,
                linewidth=2.2 if name == "hakmem" else 1.1,
                markersize=5,
                zorder=3 if name == "hakmem" else 2,
                label=name,
            )
        axes.set_yscale("log")
        _log_axis(axes.yaxis, (1.0,))
        axes.set_xticks(range(len(labels)), labels)
        axes.grid(True, axis="y")
        axes.set_title(benchmark, fontsize=10)
    for axes in panels[::3]:
        axes.set_ylabel("ns a call")
    panels[0].legend(loc="upper left")  # where no curve comes
    return figure


def bars_chart(document: Document, title: str) -> Figure | None:
    """A panel for every row of an extra table."""
    rows = _extra_rows(document, title)
    if not rows:
        return None
    names = list(document["allocators"])
    figure, panels = _panels(len(rows), 3, 1.9)
    for axes, row in zip(panels, rows, strict=True):
        medians = {name: cell["median"] for name, cell in row["cells"].items()}
        _labelled_bars(axes, medians, names, row["cells"])
        unit = f", {row['unit']}" if row["unit"] else ""
        axes.set_title(
            "\n".join(filter(None, (row["benchmark"], f"{row['label']}{unit}".lstrip(", ")))), fontsize=9
        )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return figure


def scaling_chart(document: Document) -> Figure | None:
    """A panel for every load that was run on three numbers of threads or more: throughput by threads."""
    loads: dict[str, dict[int, dict[str, Any]]] = {}
    for row in document["benchmarks"]:
        if named := re.fullmatch(r"(.+)-(\d+)t", row["name"]):
            loads.setdefault(named[1], {})[int(named[2])] = row["cells"]
    loads = {load: rows for load, rows in loads.items() if len(rows) >= 3}
    if not loads:
        return None
    names = list(document["allocators"])
    figure, panels = _panels(len(loads), 3, 2.9)
    for axes, (load, rows) in zip(panels, loads.items(), strict=True):
        for name in names:
            points = [
                (n, 1e3 / cells[name]["ns_per_op"]["median"])
                for n, cells in sorted(rows.items())
                if name in cells
            ]
            colour, marker = style_of(name, names)
            width, order = (2.2, 3) if name == "hakmem" else (1.1, 2)
            axes.plot(*zip(*points, strict=True), color=colour, marker=marker, markersize=5,
                linewidth=width, zorder=order, label=name)  # fmt: skip
        axes.axvline(float(document["machine"]["cores"]), color="#777777", linewidth=0.8, linestyle="--")
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted(rows), [str(n) for n in sorted(rows)])
        axes.set_ylim(bottom=0)
        axes.grid(True, axis="y")
        axes.set_title(load, fontsize=10)
    for axes in panels[::3]:
        axes.set_ylabel("million operations a second")
    panels[0].legend(loc="upper left", fontsize=7)
    return figure


MAKERS: tuple[tuple[str, str, Callable[[Document], Figure | None]], ...] = (
    ("means", "Geometric means", means_chart),
    ("time", "Time against the best peer", lambda document: ratio_chart(document, "cpu_ns_per_op")),
    ("memory", "Peak memory against the best peer", lambda document: ratio_chart(document, "peak_rss_kib")),
    ("scaling", "Throughput by threads (dashed: the machine's processors)", scaling_chart),
    ("latency", LATENCY, latency_chart),
    ("idle", AFTER_IDLE, lambda document: bars_chart(document, AFTER_IDLE)),
    ("live", MEMORY, lambda document: bars_chart(document, MEMORY)),
)


def _as_svg(figure: Figure) -> str:
    """Without the XML head, to stand within HTML."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]


def _as_png(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=130)
    return out.getvalue()


def charts(document: Document) -> Iterator[Chart]:
    """Those for which the result has figures."""
    for name, title, make in MAKERS:
        with plt.rc_context({**SETTINGS, "svg.hashsalt": name}):
            figure = make(document)
            if figure is not None:
                yield Chart(name, title, _as_svg(figure), _as_png(figure))
                plt.close(figure)


def write_charts(made: list[Chart], folder: Path) -> None:
    """One PNG a chart."""
    for chart in made:
        (folder / f"{chart.name}.png").write_bytes(chart.png)
