"""Replaying a plan on several mallocs, in rounds: each round has each of them once, so that a machine that
slows down does so for all. Every other round has them in reverse order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.launch.contenders import REPLAYER, Contender, Unusable, output_of
from hakmem.launch.scratch import Scratch
from hakmem.layout.memory import Integers
from hakmem.target.library import find_program
from hakmem.target.process import library_sums, resident_of
from hakmem.trace.figures import NS_PER_S
from hakmem.trace.file import Trace
from hakmem.trace.memory import COUNTERS
from hakmem.trace.plan import Plan, plan_of

NO_MALLOC, AT_ONCE, IN_TIME = 0, 1, 2  # modes of replay/replay.c
ALL_BYTES = 1 << 48
USUAL_BYTES = 1 << 16
WRITTEN_BYTES = (ALL_BYTES, 1 << 21, 1 << 20, USUAL_BYTES, 1 << 12, 1 << 6)
CLOSE_ENOUGH, TOO_MUCH = 0.03, 0.15
ROUNDS_MIN = 2  # one has no spread
WITHOUT_MALLOC = Contender("no malloc")


@dataclass(frozen=True)
class Round:
    seconds: float  # processor time in malloc, free and the first touch of their memory; then RSS
    peak_bytes: float
    mean_bytes: float
    idle_bytes: float  # after idling at the end
    faults: float
    curve: list[float]  # RSS at each window's end
    late_ns: int = 0  # after the recorded times, on average
    latest_ns: int = 0
    refills: int = 0  # of hakmem
    remote_freed_blocks: int = 0


@dataclass
class Result:
    contender: Contender
    rounds: list[Round] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        return [getattr(one, name) for one in self.rounds]

    def median(self, name: str) -> float:
        return float(np.median(self.values(name)))

    def spread(self, name: str) -> float:
        """Half the range, as a share of the median."""
        middle = self.median(name)
        return float(np.ptp(self.values(name))) / 2 / middle if middle else 0.0


@dataclass(frozen=True)
class _Raw:
    libraries: dict[str, int]  # resident bytes
    curve: Integers
    last: list[int]  # the last columns of Round
    cpu_ns: int
    faults: int
    idle_bytes: int
    left: int  # events that were not replayed


@dataclass(frozen=True)
class How:
    idle_s: float = 3.0
    is_in_time: bool = True
    written_bytes: int = ALL_BYTES  # at the beginning of each block


class Replayer:
    def __init__(self, plan: Plan, program: Path, how: How) -> None:
        self.plan, self.program, self.how = plan, program, how
        # RSS that is not malloc's, at each window's end, and the libraries in it.
        self.others, self.libraries = np.zeros(len(plan.starts_ns), np.int64), dict[str, int]()
        self._mode = IN_TIME if how.is_in_time else AT_ONCE

    @property
    def seconds(self) -> float:
        """About how long a replay takes."""
        return self.how.idle_s + (self.plan.seconds if self._mode == IN_TIME else self.plan.events / 1e7)

    def raw(self, one: Contender, mode: int) -> _Raw:
        words = (str(mode), str(int(1000 * self.how.idle_s)), str(self.how.written_bytes))
        printed = output_of(self.program, one, self.plan.path, *words)
        numbers = [int(line) for line in takewhile(str.isdecimal, printed.split("\n"))]
        if len(numbers) != 8 + len(self.plan.starts_ns):
            raise Unusable(f"{one.name} prints lines of its own between the figures of the replay")
        curve = np.array(numbers[8:], np.int64)
        raw = _Raw(library_sums(resident_of(printed)), curve, numbers[4:8], *numbers[:4])
        if raw.left:
            raise HakmemError(f"{raw.left} events were not replayed")
        return raw

    def empty(self) -> _Raw:
        """The same work without a malloc: its time is not malloc's, and its memory is the program's own."""
        return self.raw(WITHOUT_MALLOC, NO_MALLOC)

    def round(self, one: Contender, empty: _Raw) -> Round:
        raw = self.raw(one, self._mode)
        there = [self.libraries, empty.libraries]  # of the program, or of any
        added = (rss - max(one.get(name, 0) for one in there) for name, rss in raw.libraries.items())
        others = self.others + sum(max(0, rss) for rss in added)
        curve = raw.curve - empty.curve + others
        return Round(
            (raw.cpu_ns - empty.cpu_ns) / NS_PER_S,
            float(curve.max()),
            self.plan.mean(curve),
            float(raw.idle_bytes - empty.idle_bytes + others[-1]),
            float(raw.faults - empty.faults),
            curve.tolist(),
            *raw.last,
        )


@contextmanager
def replayer(trace: Trace, how: How) -> Iterator[Replayer]:
    """RSS is that of the trace's program, if it has samples of other memory than malloc's."""
    program, folder = find_program(REPLAYER), Scratch.make()
    try:
        plan = plan_of(trace, folder.path / "plan")
        replays = Replayer(plan, program, how)
        if (memory := trace.memory) is not None and len(memory.times_ns):
            times = plan.starts_ns + trace.extent.first_ns
            replays.others += np.interp(times, memory.times_ns, memory.other_bytes).astype(np.int64)
            replays.libraries.update(trace.head.get("libraries", {}))
        yield replays
    finally:
        folder.remove()


def compare(
    with_plan: Replayer,
    contenders: Iterable[Contender],
    rounds: int,
    until_s: float,
    progress: Callable[[float, str], None],
    unusable: Callable[[str], None],
) -> list[Result]:
    """As many rounds as end before `until_s` of the monotonic clock, ROUNDS_MIN at least. A contender that
    fails is dropped, and the others continue."""
    results = [Result(one) for one in contenders]
    failed: set[str] = set()
    began_s = time.monotonic()
    for turn in range(rounds):
        now_s = time.monotonic()
        if turn >= ROUNDS_MIN and now_s + (now_s - began_s) / turn > until_s:
            break
        empty = with_plan.empty()
        for place, result in enumerate(results[:: -1 if turn % 2 else 1]):
            name = result.contender.name
            progress((turn + place / len(results)) / rounds, name)
            if name not in failed:
                try:
                    result.rounds.append(with_plan.round(result.contender, empty))
                except Unusable as error:
                    failed.add(name)
                    unusable(str(error))
    return [result for result in results if result.contender.name not in failed]


# ---- its own error -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fidelity:
    """How far hakmem's replay is from what was recorded, as shares of that."""

    peak: float
    mean: float
    refills: float | None = None  # None: not in the trace, or none
    remote_frees: float | None = None


def fidelity(trace: Trace, plan: Plan, result: Result) -> Fidelity | None:
    """None without samples.  Where blocks were live already, or other memory is not known, by the growth
    since the first sample: free memory of then is not in the trace."""
    memory = trace.memory
    if memory is None:
        return None
    times = memory.times_ns - trace.extent.first_ns
    inside = np.flatnonzero((times >= 0) & (times <= plan.end_ns))
    if inside.size < 2:
        return None
    seen = memory.rss_bytes[inside].astype(np.float64)
    replayed = np.median([plan.at(one.curve, times[inside]) for one in result.rounds], axis=0)
    spans = np.diff(times[inside], append=plan.end_ns)
    weights = spans if spans.any() else None
    counts, offset = trace.end or {}, 0.0
    if trace.extent.live_blocks or not memory.other_bytes.any():
        offset = seen[0] - replayed[0]
    return Fidelity(
        (result.median("peak_bytes") + offset) / float(seen.max()) - 1,
        (np.average(replayed, weights=weights) + offset) / np.average(seen, weights=weights) - 1,
        *(result.median(name) / counts[name] - 1 if counts.get(name) else None for name in COUNTERS),
    )


def fit_written(trace: Trace, replays: Replayer, hakmem: Contender) -> None:
    """How much of its blocks a program writes is not in the trace: the replay uses the amount with which
    hakmem's peak is closest to the recorded one, if that halves the error of whole blocks.  Less than
    USUAL_BYTES only if whole blocks are far more."""
    found: list[tuple[float, int]] = []
    asked, least = replays.how, 0
    for written in WRITTEN_BYTES:
        if written < least:
            break
        replays.how = replace(asked, idle_s=0.0, written_bytes=written)
        error = fidelity(trace, replays.plan, Result(hakmem, [replays.round(hakmem, replays.empty())]))
        found.append((abs(error.peak) if error else 0.0, written))
        if not error or error.peak <= CLOSE_ENOUGH:
            break
        if written == ALL_BYTES and min(error.peak, error.mean) <= TOO_MUCH:
            least = USUAL_BYTES
    best = min(found, key=lambda one: one[0])
    replays.how = replace(asked, written_bytes=best[1] if 2 * best[0] <= found[0][0] else ALL_BYTES)
