"""How what takes long says how far it is."""

from __future__ import annotations

from collections.abc import Callable

# Called with the part that is done, 0 to 1.
Progress = Callable[[float], None]


def no_progress(_done: float) -> None:
    """Says nothing."""
