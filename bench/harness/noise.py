"""Disturbances of a run: other load, told by the kernel and by a loop that should always take the same time.

Each figure is judged against the row's own runs on the same allocator: a program of many threads makes
pressure itself, and on a machine that is always busy all runs are equally disturbed."""

from __future__ import annotations

import os
import re
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

PRESSURE, STAT = Path("/proc/pressure/cpu"), Path("/proc/stat")
LOOP_STEPS = 60_000  # about 2 ms
HISTORY_MIN = 5  # runs before any is judged
# By figure: how far above the median of earlier runs, as a factor and in its unit, a run counts as disturbed.
BOUNDS = {"pressure": (1.5, 0.15), "steal": (1.5, 0.05), "switches": (2.0, 50.0), "loop": (1.1, 0.0)}

Noise = dict[str, float]
Result = TypeVar("Result")


def loop_seconds() -> float:
    """Processor time of a fixed amount of work, the faster of two."""
    times = []
    for _ in range(2):
        start = time.thread_time()
        total = 0
        for number in range(LOOP_STEPS):
            total ^= number
        times.append(time.thread_time() - start)
    return min(times)


def _pressure_us() -> float | None:
    """The time that any task waited for a processor; None where the kernel does not count it."""
    try:
        found = re.search(r"^some .*total=(\d+)", PRESSURE.read_text(), re.MULTILINE)
    except OSError:
        return None
    return float(found[1]) if found else None


def _steal_seconds() -> float:
    """Processor time that the host gave to other machines."""
    try:
        fields = STAT.read_text().split("\n", 1)[0].split()
    except OSError:
        return 0.0
    return float(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else 0.0


@dataclass(frozen=True)
class Reading:
    """The counts at one time."""

    seconds: float
    pressure_us: float | None
    steal_seconds: float
    switches: int  # involuntary ones, of children that have been waited for

    @classmethod
    def take(cls) -> Reading:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return cls(time.monotonic(), _pressure_us(), _steal_seconds(), usage.ru_nivcsw)

    def since(self, before: Reading) -> Noise:
        """Shares of the time, and switches a second."""
        seconds = max(self.seconds - before.seconds, 1e-6)
        noise = {
            "steal": (self.steal_seconds - before.steal_seconds) / seconds,
            "switches": (self.switches - before.switches) / seconds,
        }
        if self.pressure_us is not None and before.pressure_us is not None:
            noise["pressure"] = (self.pressure_us - before.pressure_us) * 1e-6 / seconds
        return noise


def watched(run: Callable[[], Result]) -> tuple[Result, Noise]:
    """The run's result and its noise; `loop`: the slower of the loop's times before and after, in seconds."""
    loop, before = loop_seconds(), Reading.take()
    result = run()
    noise = Reading.take().since(before)
    return result, {**noise, "loop": max(loop, loop_seconds())}


def disturbance(noise: Noise, history: Sequence[Noise]) -> str:
    """The figure by which the run stands out from earlier ones, or ""."""
    if len(history) < HISTORY_MIN:
        return ""
    for figure, (factor, more) in BOUNDS.items():
        usual = [each[figure] for each in history if figure in each]
        if figure in noise and usual and noise[figure] > median(usual) * factor + more:
            return figure
    return ""
