"""The time that a campaign may take: whole rounds, as long as the next one will fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

AFTERWARDS_SECONDS = 8.0  # tables, charts and the page


class Budget:
    """A deadline, and what every workload's runs took in their latest round."""

    def __init__(self, minutes: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start = clock()
        self._limit = minutes * 60 - AFTERWARDS_SECONDS
        self.costs: dict[str, float] = {}

    def elapsed(self) -> float:
        """Seconds since the budget was made."""
        return self._clock() - self._start

    def over(self) -> bool:
        """There is no time left."""
        return self.elapsed() >= self._limit

    def note(self, name: str, seconds: float) -> None:
        """A workload's runs on all allocators took so long."""
        self.costs[name] = seconds

    def fits(self, names: Iterable[str]) -> bool:
        """Another round of these workloads ends in time, if it goes as their latest did."""
        return self.elapsed() + sum(self.costs.get(name, 0.0) for name in names) <= self._limit
