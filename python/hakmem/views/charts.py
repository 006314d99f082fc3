"""Charts over time as inline SVG: no library, no request, colours from the page's own style.

Every series has a colour by its index: class s0 … s9 in the page's CSS, which handles light and dark themes.
Missing values (None) leave a gap in a line; in a stack they are interpolated."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import numpy as np

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text

WIDTH, HEIGHT = 920, 280
LEFT, RIGHT, TOP, BOTTOM = 84, 12, 10, 28
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
TICKS_WANTED = 5
COLOUR_COUNT = 10
BINARY_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
DECIMAL_STEPS = (1, 2, 2.5, 5, 10)
TIME_STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400),  # 1 to 30 minutes, 1 to 24 hours
)

Values = Sequence[float | None]
Format = Callable[[float], str]


@dataclass(frozen=True)
class Series:
    """One line, or one layer of a stack."""

    name: str
    values: Values
    is_line: bool = False  # in a stacked chart: drawn over the stack, not as a layer


@dataclass(frozen=True)
class Chart:
    """A chart of the page: its title, how to read it, and its series over `times_s`."""

    key: str
    title: str
    explanation: str
    times_s: Sequence[float]
    series: Sequence[Series]
    format: Format
    is_stacked: bool = False

    @property
    def svg(self) -> str:
        return draw(self)

    @property
    def legend(self) -> list[tuple[int, str]]:
        """Colour number and name of each series, in order."""
        return [(colour(index), series.name) for index, series in enumerate(self.series)]

    @property
    def data(self) -> dict[str, Any]:
        """The data for the page's tooltip script."""
        return {
            "times": [round(time, 3) for time in self.times_s],
            "left": LEFT,
            "width": WIDTH,
            "plot": PLOT_WIDTH,
            "series": [
                {
                    "name": series.name,
                    "colour": colour(index),
                    "texts": ["–" if value is None else self.format(value) for value in series.values],
                }
                for index, series in enumerate(self.series)
            ],
        }


Kind = TypeVar("Kind", int, tuple[str, str, str])


def largest(tables: Iterable[Mapping[Kind, float]], count: int) -> list[Kind]:
    """The keys that have most in any of the tables."""
    most: dict[Kind, float] = {}
    for table in tables:
        most |= {key: max(most.get(key, 0), value) for key, value in table.items()}
    return sorted((key for key in most if most[key]), key=lambda key: (-most[key], key))[:count]


def colour(index: int) -> int:
    return index % COLOUR_COUNT


def draw(chart: Chart) -> str:
    layers = [series for series in chart.series if chart.is_stacked and not series.is_line]
    lines = [(index, s) for index, s in enumerate(chart.series) if s.is_line or not chart.is_stacked]
    heights = [filled(chart.times_s, layer.values) for layer in layers]
    tops: list[list[float]] = np.cumsum(heights, axis=0).tolist()  # the upper edge of each layer
    known = (value for _, series in lines for value in series.values if value is not None)
    peak = max([0.0, *(value for top in tops[-1:] for value in top), *known])
    step = tick_step(peak, is_binary=chart.format is bytes_text)
    limit = step * max(1, math.ceil(peak / step))
    end_s = max(chart.times_s[-1], 1e-9) if chart.times_s else 1.0
    xs = [LEFT + PLOT_WIDTH * time / end_s for time in chart.times_s]

    def y_of(value: float) -> float:
        return TOP + PLOT_HEIGHT * (1 - value / limit)

    parts = [*grid(limit, step, chart.format, y_of), *time_axis(end_s)]
    below = [0.0] * len(xs)
    for index, top in enumerate(tops):
        parts.append(area(xs, [y_of(v) for v in below], [y_of(v) for v in top], colour(index)))
        below = top
    parts += [line(xs, [None if v is None else y_of(v) for v in s.values], colour(i)) for i, s in lines]
    label = html.escape(chart.title, quote=True)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}" data-chart="{chart.key}">'
        f'{"".join(parts)}<line class="cursor" y1="{TOP}" y2="{TOP + PLOT_HEIGHT}" x1="-9" x2="-9"/></svg>'
    )


def filled(times_s: Sequence[float], values: Values) -> list[float]:
    """None replaced by linear interpolation."""
    known = [(time, float(value)) for time, value in zip(times_s, values, strict=True) if value is not None]
    if not known:
        return [0.0] * len(values)
    known_s, known_values = np.transpose(known)
    between: list[float] = np.interp(times_s, known_s, known_values).tolist()
    return between


def tick_step(peak: float, is_binary: bool) -> float:
    """A round distance between grid lines; in powers of two for bytes."""
    if peak <= 0:
        return 1.0
    base = 1024 if is_binary else 10
    raw = peak / TICKS_WANTED
    scale = float(base ** math.floor(math.log(raw, base)))
    steps = BINARY_STEPS if is_binary else DECIMAL_STEPS
    return next((step * scale for step in steps if step * scale >= raw * (1 - 1e-9)), base * scale)


def grid(limit: float, step: float, text: Format, y_of: Callable[[float], float]) -> list[str]:
    """Horizontal lines with their values."""
    parts = []
    for number in range(round(limit / step) + 1):
        y = y_of(number * step)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        where = f'x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end"'
        parts.append(f'<text class="tick" {where}>{text(number * step)}</text>')
    return parts


def time_axis(end_s: float) -> list[str]:
    """Seconds, minutes or hours since the start."""
    step_s = next((step for step in TIME_STEPS_S if end_s / step <= 10), TIME_STEPS_S[-1])
    parts = []
    for number in range(int(end_s / step_s * (1 + 1e-9)) + 1):
        x = LEFT + PLOT_WIDTH * number * step_s / end_s
        anchor = "end" if x > WIDTH - RIGHT - 20 else "middle"
        where = f'x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}"'
        parts.append(f'<text class="tick" {where}>{duration_text(number * step_s)}</text>')
    return parts


def area(xs: Sequence[float], bottoms: Sequence[float], tops: Sequence[float], number: int) -> str:
    points = [*zip(xs, tops, strict=True), *reversed(list(zip(xs, bottoms, strict=True)))]
    return f'<polygon class="area s{number}" points="{points_text(points)}"/>'


def line(xs: Sequence[float], ys: Values, number: int) -> str:
    """A line, broken where values are missing; an isolated value is a dot."""
    runs = groupby(zip(xs, ys, strict=True), key=lambda point: point[1] is None)
    pieces = ([(x, y) for x, y in run if y is not None] for _, run in runs)
    return "".join(stroke(piece, number) for piece in pieces if piece)


def stroke(piece: Sequence[tuple[float, float]], number: int) -> str:
    """One segment of a line without gaps."""
    if len(piece) == 1:
        return f'<circle class="dot s{number}" cx="{piece[0][0]:.1f}" cy="{piece[0][1]:.1f}" r="2.5"/>'
    return f'<polyline class="stroke s{number}" points="{points_text(piece)}"/>'


def points_text(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
