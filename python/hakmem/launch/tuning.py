"""`hakmem tune`: settings of hakmem, tried by replays of a trace.

1. Halving: all settings replay a prefix of the trace, the better ones a longer one, in more rounds.
2. The best one against the defaults, in rounds of their own: they measure its gain.

The first stage's gain is the prediction; it is the best of many, and so too good by chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from hakmem.base.errors import HakmemError
from hakmem.launch.contenders import HAKMEM, Contender, contender, find_replayer
from hakmem.launch.replaying import How, Result, compare, fit_written, replayer
from hakmem.trace.file import Trace
from hakmem.trace.plan import plan_of

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
RUNGS = ((1 / 8, 1, 4), (1 / 2, 2, 2), (1.0, 2, 1))  # share of the events, rounds, how many go on
GAIN_MIN = 0.02
# How much worse a figure may become that is not asked for.  Malloc is a small part of most programs' time.
RSS_MAX, TIME_MAX = 1.1, 1.5
Floats = NDArray[np.float64]
LEAST = 1e-6  # of both figures of a ratio; a shorter time is noise
PREFIX_S_MIN = 10.0  # or the whole trace: options act on memory that is free for a second and more


class Goal(StrEnum):
    """The figure that is to fall."""

    RSS = "rss"
    TIME = "time"
    BOTH = "both"


FIGURES = {Goal.RSS: "mean RSS", Goal.TIME: "time in malloc", Goal.BOTH: "mean RSS and time (geometric mean)"}


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

    @property
    def excess(self) -> float:
        """Above 1 if a figure became too much worse, by its median."""
        return max(1.0, float(np.median(self.rss)) / RSS_MAX, float(np.median(self.time)) / TIME_MAX)

    def gain(self, goal: Goal) -> float:
        return 1 - float(np.median(self.wanted(goal)))

    def score(self, goal: Goal) -> float:
        """Lower is better; above 1 for a setting that cannot be recommended."""
        return 1 - self.gain(goal) + (self.excess if self.excess > 1 else 0.0)


@dataclass(frozen=True)
class Advice:
    """The best setting, with shares of the defaults' figures.  The interval is the range of all rounds."""

    setting: dict[str, str]
    predicted: float
    gain: float
    interval: tuple[float, float]
    rss: float  # change of each figure
    time: float
    helps: bool


def advice_of(setting: dict[str, str], predicted: float, measured: Ratios, goal: Goal) -> Advice:
    """It helps where each round has a gain, and their median is not small.  With six rounds the median of all
    lies outside of their range once in 32 times."""
    gains = 1 - measured.wanted(goal)
    gain, low, high = float(np.median(gains)), float(gains.min()), float(gains.max())
    helps = low > 0 and gain >= GAIN_MIN and measured.excess == 1
    rss, time = float(np.median(measured.rss)) - 1, float(np.median(measured.time)) - 1
    return Advice(setting, predicted, gain, (low, high), rss, time, helps)


class Tuner:
    """A trace, and the replays of it so far."""

    def __init__(
        self, trace: Trace, how: How, progress: Callable[[float, str], None], note: Callable[[str], None]
    ) -> None:
        self._trace, self._how, self._progress, self._note = trace, how, progress, note
        self._hakmem = contender(HAKMEM, find_replayer())
        self._whole = plan_of(trace.lives, int(trace.head.get("pid", 0)))
        least = min(1.0, PREFIX_S_MIN / max(self._whole.seconds, PREFIX_S_MIN))
        self._rungs = [(max(least, share), rounds, count) for share, rounds, count in RUNGS]

    def seconds(self, rounds: int) -> float:
        """How long it will take, nearly, at the recorded times."""
        tried = (len(SETTINGS), *(count for _, _, count in RUNGS[:-1]))
        turns = [
            share * times * (1 + some) for (share, times, _), some in zip(self._rungs, tried, strict=True)
        ]
        return (sum(turns) + 2 * rounds + 1) * self._whole.seconds

    def ratios(self, share: float, settings: Sequence[dict[str, str]], rounds: int) -> list[Ratios | None]:
        """Those of each setting; None where hakmem failed with it."""
        main = int(self._trace.head.get("pid", 0))
        plan = self._whole if share == 1 else plan_of(self._trace.lives, main, share)
        ones = [Contender(text_of(setting), self._hakmem.library, setting) for setting in ({}, *settings)]
        with replayer(plan, self._how, self._trace) as replays:
            results = compare(replays, ones, rounds, self._progress, self._note)
        found = {result.contender.name: result for result in results}
        if ones[0].name not in found:
            raise HakmemError("this trace cannot be replayed with the defaults")
        defaults = found[ones[0].name]
        return [Ratios.of(found[one.name], defaults) if one.name in found else None for one in ones[1:]]

    def fit(self) -> int:
        with replayer(self._whole, self._how, self._trace) as replays:
            fit_written(self._trace, replays, self._hakmem)
            self._how = replays.how
        return self._how.written_bytes

    def advice(self, goal: Goal, rounds: int) -> Advice | None:
        """None where the defaults are best."""
        kept, predicted, score = SETTINGS, 0.0, 1.0
        for share, times, count in self._rungs:
            tried = kept + ([combined] if count == 1 and (combined := _combined(kept)) else [])
            ratios = self.ratios(share, tried, times)
            found = [(one.score(goal), one.gain(goal), place) for place, one in enumerate(ratios) if one]
            if not found:
                return None
            kept = [tried[place] for _, _, place in sorted(found)[:count]]
            score, predicted, _ = min(found)
        measured = self.ratios(1.0, kept, rounds)[0] if score < 1 else None
        return advice_of(kept[0], predicted, measured, goal) if measured else None


def _combined(settings: Sequence[dict[str, str]]) -> dict[str, str] | None:
    """Two settings of different options at once."""
    if len(settings) < 2 or settings[0].keys() & settings[1].keys():
        return None
    return settings[0] | settings[1]


def text_of(setting: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in setting.items()) or "the defaults"
