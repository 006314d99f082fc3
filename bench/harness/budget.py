"""The time that a campaign may take."""

from __future__ import annotations

import time
from collections.abc import Callable

AFTERWARDS_SECONDS = 8.0  # tables, charts and the page


class Budget:
    """A deadline."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._limit = minutes * 60 - AFTERWARDS_SECONDS

    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return self._clock() - self._start

    def over(self) -> bool:
        """There is no time left."""
        return self.elapsed() >= self._limit
