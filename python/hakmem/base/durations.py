"""Durations as people write them: 60s, 5m, 500ms, 1h30m, or plain seconds."""

from __future__ import annotations

import re

import click

SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
PIECE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
LONGEST_S = 366 * SECONDS_BY_UNIT["d"]
EXAMPLES = "60s, 5m, 500ms, 1h30m"


def parse_duration_s(text: str) -> float:
    """The duration in seconds; ValueError with a sentence for the user otherwise."""
    compact = text.strip().lower()
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", compact):
        return float(compact)
    pieces = PIECE.findall(compact)
    if not pieces or "".join(number + unit for number, unit in pieces) != compact:
        raise ValueError(f"{text!r} is not a duration; examples: {EXAMPLES}")
    return sum(float(number) * SECONDS_BY_UNIT[unit] for number, unit in pieces)


def duration_text(seconds: float) -> str:
    """A duration in its two largest units."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s" if rest_s else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


class Duration(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """A click parameter of at least `min_s` seconds."""

    name = "duration"

    def __init__(self, min_s: float = 0.0) -> None:
        self.min_s = min_s

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Called by click; a float is a default and needs no parsing."""
        try:
            seconds = value if isinstance(value, float) else parse_duration_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds < self.min_s or seconds <= 0:
            least = f"at least {duration_text(self.min_s)}" if self.min_s else "longer than 0"
            self.fail(f"{value!r} is too short; it must be {least}", param, ctx)
        if seconds > LONGEST_S:
            self.fail(f"{value!r} is too long; the maximum is one year", param, ctx)
        return seconds
