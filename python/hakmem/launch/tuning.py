"""`hakmem tune`: settings of hakmem, tried by replays of a trace.

Each round replays the whole trace once with each setting, and twice with the defaults: those two differ by
chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from hakmem.base.errors import HakmemError
from hakmem.launch.contenders import HAKMEM, Contender, contender, find_replayer
from hakmem.launch.replaying import How, Result, compare, fit_written, replayer
from hakmem.trace.figures import NS_PER_S
from hakmem.trace.file import Trace
from hakmem.trace.plan import check_events

# Options that change time or memory and nothing else.
VALUES = {
    "HAKMEM_DECAY_MS": ("0", "100", "300", "5000"),
    "HAKMEM_HELPER_THREAD": ("0", "1"),
    "HAKMEM_BIG_CACHE_BYTES": ("0", "16M", "1G"),
    "HAKMEM_THP": ("0",),
    "HAKMEM_PREFAULT": ("1",),
    "HAKMEM_ROUTE_P": ("0",),
}
SETTINGS = [{name: value} for name, values in VALUES.items() for value in values]
GAIN_MIN = 0.02
Floats = NDArray[np.float64]
LEAST = 1e-6  # of both figures of a ratio; a shorter time is noise
DEFAULTS, AGAIN = "the defaults", "the defaults again"


class Goal(StrEnum):
    """The figure to reduce."""

    RSS = "rss"
    TIME = "time"
    BOTH = "both"


@dataclass(frozen=True)
class Ratios:
    """A setting's figures as shares of the defaults', one a round."""

    rss: Floats
    time: Floats
    peak: Floats

    @classmethod
    def of(cls, one: Result, defaults: Result) -> Ratios:
        figures = ("mean_bytes", "seconds", "peak_bytes")
        pairs = ([np.maximum(each.values(name), LEAST) for each in (one, defaults)] for name in figures)
        return cls(*(mine / base for mine, base in pairs))

    def wanted(self, goal: Goal) -> Floats:
        if goal is Goal.BOTH:
            return np.asarray(np.sqrt(self.rss * self.time))
        return self.rss if goal is Goal.RSS else self.time


@dataclass(frozen=True)
class Tried:
    """A setting, and its figures in each round."""

    setting: dict[str, str]
    ratios: Ratios

    def change(self, goal: Goal) -> float:
        return float(np.median(self.ratios.wanted(goal))) - 1


@dataclass(frozen=True)
class Outcome:
    """All settings, the best one first, and the defaults against themselves."""

    goal: Goal
    tried: list[Tried]
    again: Tried

    @property
    def chance(self) -> float:
        """The largest difference between two replays with the defaults."""
        return float(np.abs(self.again.ratios.wanted(self.goal) - 1).max())

    @property
    def best(self) -> Tried | None:
        """The setting that cuts the figure: by GAIN_MIN in the median, and in each round by more than
        chance.  Other figures do not count: they stand beside it."""
        first = next(iter(self.tried), None)
        if first is None or first.change(self.goal) > -GAIN_MIN:
            return None
        return first if 1 - float(first.ratios.wanted(self.goal).max()) > self.chance else None


class Tuner:
    """A trace, and how it is replayed."""

    def __init__(
        self, trace: Trace, how: How, progress: Callable[[float, str], None], note: Callable[[str], None]
    ) -> None:
        self._trace, self._how, self._progress, self._note = trace, how, progress, note
        check_events(trace)
        self._hakmem = contender(HAKMEM, find_replayer())

    def seconds(self, rounds: int) -> float:
        """How long it takes at the recorded times, with one replay that fits the writes of blocks."""
        extent = self._trace.extent
        return (rounds * (len(SETTINGS) + 2) + 1) * (extent.last_ns - extent.first_ns) / NS_PER_S

    def _ratios(self, settings: Sequence[dict[str, str]], rounds: int) -> list[Ratios | None]:
        """Those of each setting; None where hakmem failed with it."""
        ones = [Contender(text_of(setting), self._hakmem.library, setting) for setting in settings]
        base = Contender(DEFAULTS, self._hakmem.library)
        with replayer(self._trace, self._how) as replays:
            results = compare(replays, [base, *ones], rounds, self._progress, self._note)
        found = {result.contender.name: result for result in results}
        if DEFAULTS not in found:
            raise HakmemError("this trace cannot be replayed with the defaults")
        return [Ratios.of(found[one.name], found[DEFAULTS]) if one.name in found else None for one in ones]

    def fit(self) -> int:
        with replayer(self._trace, self._how) as replays:
            fit_written(self._trace, replays, self._hakmem)
            self._how = replays.how
        return self._how.written_bytes

    def outcome(self, goal: Goal, rounds: int) -> Outcome:
        """HakmemError if the trace cannot be replayed with the defaults."""
        again, *found = self._ratios([{}, *SETTINGS], rounds)
        tried = [Tried(setting, one) for setting, one in zip(SETTINGS, found, strict=True) if one]
        if again is None:
            raise HakmemError("this trace cannot be replayed twice with the defaults")
        return Outcome(goal, sorted(tried, key=lambda one: one.change(goal)), Tried({}, again))


def text_of(setting: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items()) or AGAIN
