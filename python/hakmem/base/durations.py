"""Durations as people write them: 60s, 5m, 500ms, 1h30m, or plain seconds."""

from __future__ import annotations

import re

SECONDS_BY_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
NUMBER = r"[0-9]+(?:\.[0-9]+)?"
PIECE = re.compile(rf"({NUMBER})(ms|s|m|h|d)")
LONGEST_S = 366 * SECONDS_BY_UNIT["d"]
EXAMPLES = "60s, 5m, 500ms, 1h30m"


def parse_duration_s(text: str, min_s: float = 0.001) -> float:
    """The duration in seconds, at least `min_s`; ValueError with a sentence for the user otherwise."""
    compact = text.strip().lower()
    if re.fullmatch(NUMBER, compact):
        compact += "s"
    pieces = PIECE.findall(compact)
    if not pieces or "".join(number + unit for number, unit in pieces) != compact:
        raise ValueError(f"{text!r} is not a duration; examples: {EXAMPLES}")
    seconds = sum(float(number) * SECONDS_BY_UNIT[unit] for number, unit in pieces)
    if seconds < min_s:
        raise ValueError(f"{text!r} is too short; it must be at least {duration_text(min_s)}")
    if seconds > LONGEST_S:
        raise ValueError(f"{text!r} is too long; the maximum is one year")
    return seconds


def duration_text(seconds: float) -> str:
    """A duration in its two largest units."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s" if rest_s else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
