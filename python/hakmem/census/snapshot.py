"""All figures of one process at one moment.

    take(target)                      full: walks SuperSlabs and ranges too
    take(target, detail="counters")   heaps and totals only: what `top` reads again and again

The target runs on meanwhile, so figures may be a few operations apart; none is ever negative.
"""

from __future__ import annotations

from typing import Literal

from hakmem.base.progress import Progress, no_progress
from hakmem.census.figures import (
    TIERS,
    BigFigures,
    ClassFigures,
    MemoryFigures,
    Snapshot,
    ThreadFigures,
)
from hakmem.census.measure import take_counters, take_full
from hakmem.target.target import Target, making_sense, open_core, open_process

__all__ = [
    "TIERS",
    "BigFigures",
    "ClassFigures",
    "MemoryFigures",
    "Snapshot",
    "Target",
    "ThreadFigures",
    "open_core",
    "open_process",
    "take",
]

Detail = Literal["full", "counters"]


def take(target: Target, detail: Detail = "full", progress: Progress = no_progress) -> Snapshot:
    """Raises ProcessGoneError when the process ends, or becomes another program, meanwhile."""
    with making_sense(target):
        return take_counters(target) if detail == "counters" else take_full(target, progress)
