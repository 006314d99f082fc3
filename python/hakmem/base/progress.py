"""Progress of a long operation."""

from __future__ import annotations

from collections.abc import Callable

# Called with the fraction that is done, 0 to 1.
Progress = Callable[[float], None]


def no_progress(_done: float) -> None:
    """Reports nothing."""
