"""Quantities as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
DECIMAL_UNITS = ("", "k", "M", "G", "T")
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
SPARKS = "▁▂▃▄▅▆▇█"


def bytes_text(count: float) -> str:
    """1536 → 1.50 KiB; three digits are enough for comparing."""
    return scaled(count, 1024, BINARY_UNITS)


def parse_bytes(text: str, least: int = 1) -> int:
    """512M, 1.5GiB, or plain bytes; ValueError with a sentence for the user otherwise."""
    found = SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size; examples: 512M, 1.5G, 1073741824")
    count = float(found[1]) * 1024 ** " KMGT".index(found[2].upper() or " ")
    if not least <= count < 1 << 62:
        raise ValueError(f"{text!r} is out of range; it must be at least {bytes_text(least)}")
    return int(count)


def count_text(count: float) -> str:
    """1234567 → 1.23 M; below a thousand as it is."""
    return scaled(count, 1000, DECIMAL_UNITS)


def counted(count: int, thing: str, things: str = "") -> str:
    """1 thread, 2 threads; `things` for irregular plurals."""
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


def scaled(value: float, step: int, units: Sequence[str]) -> str:
    """`value` in the largest unit in which it is at least 1."""
    sign, rest, unit = ("-" if value < 0 else ""), abs(value), 0
    while rest >= step and unit < len(units) - 1:
        rest, unit = rest / step, unit + 1
    digits = 0 if (unit == 0 and float(rest).is_integer()) or rest >= 100 else 1 if rest >= 10 else 2
    return f"{sign}{rest:.{digits}f} {units[unit]}".rstrip()


def share_text(part: float, whole: float) -> str:
    """A percentage with one digit where it is small."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.1f} %" if abs(percent) < 9.95 else f"{percent:.0f} %"


def sparkline(values: Sequence[float], width: int) -> str:
    """The last `width` values as bars, scaled to the largest."""
    shown = list(values)[-width:]
    top = max(shown, default=0)
    if top <= 0:
        return (SPARKS[0] * len(shown)).rjust(width)
    bars = (SPARKS[min(len(SPARKS) - 1, int(value / top * len(SPARKS)))] for value in shown)
    return "".join(bars).rjust(width)
