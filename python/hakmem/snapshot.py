"""All figures of one process at one moment.

    take(target)                      full: walks SuperSlabs and ranges too
    take(target, detail="counters")   heaps and totals only: what `top` reads again and again

The target runs on meanwhile, so figures may be a few operations apart; none is ever negative.
"""

from __future__ import annotations

from typing import Literal

from hakmem.figures import (
    TIERS,
    BigFigures,
    ClassFigures,
    MemoryFigures,
    Snapshot,
    ThreadFigures,
)
from hakmem.target import Target, open_core, open_process

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


def take(target: Target, detail: Detail = "full") -> Snapshot:
    raise NotImplementedError
