"""Replaying a plan on several mallocs, in rounds: each round has each of them once, so that a machine that
becomes slower does so for all.  Every other round has them in reverse order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.launch.contenders import Contender, Unusable, find_replayer, output_of
from hakmem.launch.scratch import Scratch
from hakmem.layout.memory import Integers
from hakmem.trace.figures import NS_PER_S
from hakmem.trace.file import Trace
from hakmem.trace.plan import Plan

NO_MALLOC, AT_ONCE, IN_TIME = 0, 1, 2  # modes of replay/replay.c
ALL_BYTES = 1 << 48
WRITTEN_BYTES = (ALL_BYTES, 1 << 20, 1 << 16, 1 << 12, 1 << 6)
CLOSE_ENOUGH = 0.03
WITHOUT_MALLOC = Contender("no malloc")


@dataclass(frozen=True)
class Round:
    """One replay's figures."""

    seconds: float  # processor time in malloc, free and the first touch of their memory
    peak_bytes: float
    mean_bytes: float
    idle_bytes: float  # after idling at the end
    faults: float
    curve: list[float]  # bytes at each window's end


@dataclass
class Result:
    """All rounds of a contender."""

    contender: Contender
    rounds: list[Round] = field(default_factory=list)

    def values(self, name: str) -> list[float]:
        return [getattr(one, name) for one in self.rounds]

    def median(self, name: str) -> float:
        return float(np.median(self.values(name)))

    def spread(self, name: str) -> float:
        """Half the range, as a share of the median."""
        values, middle = self.values(name), self.median(name)
        return (max(values) - min(values)) / 2 / middle if middle else 0.0


@dataclass(frozen=True)
class _Raw:
    """The figures that the program printed."""

    cpu_ns: int
    faults: int
    base_bytes: int
    idle_bytes: int
    left: int  # events that were not replayed
    curve: Integers


@dataclass(frozen=True)
class How:
    """The settings of a replay."""

    idle_s: float = 3.0
    is_in_time: bool = True
    written_bytes: int = ALL_BYTES  # at the beginning of each block


class Replayer:
    """A plan's file, and the program for it."""

    def __init__(self, plan: Plan, path: Path, program: Path, how: How) -> None:
        self.plan, self.program, self.how = plan, program, how
        self._path, self._mode = path, IN_TIME if how.is_in_time else AT_ONCE

    @property
    def seconds(self) -> float:
        """How long a replay takes, nearly."""
        return self.how.idle_s + (self.plan.seconds if self._mode == IN_TIME else self.plan.events / 1e7)

    def raw(self, one: Contender, mode: int) -> _Raw:
        words = (str(mode), str(int(1000 * self.how.idle_s)), str(self.how.written_bytes))
        try:
            printed = map(int, output_of(self.program, one, self._path, *words).split())
            cpu_ns, faults, base_bytes, idle_bytes, left, *curve = printed
        except ValueError:
            raise Unusable(f"{one.name} prints lines of its own between the figures of the replay") from None
        if left:
            raise HakmemError(f"{left} events were not replayed")
        return _Raw(cpu_ns, faults, base_bytes, idle_bytes, left, np.array(curve, np.int64))

    def empty(self) -> _Raw:
        """The same work without a malloc: its time is not malloc's, and its memory is the program's own."""
        return self.raw(WITHOUT_MALLOC, NO_MALLOC)

    def round(self, one: Contender, empty: _Raw) -> Round:
        raw = self.raw(one, self._mode)
        curve = raw.curve - empty.base_bytes
        return Round(
            (raw.cpu_ns - empty.cpu_ns) / NS_PER_S,
            float(curve.max()),
            self.plan.mean(curve),
            float(raw.idle_bytes - empty.base_bytes),
            float(raw.faults - empty.faults),
            curve.tolist(),
        )


@contextmanager
def replayer(plan: Plan, how: How) -> Iterator[Replayer]:
    program, folder = find_replayer(), Scratch.make()
    try:
        path = folder.path / "plan"
        plan.write(path)
        yield Replayer(plan, path, program, how)
    finally:
        folder.remove()


def compare(
    with_plan: Replayer,
    contenders: Iterable[Contender],
    rounds: int,
    progress: Callable[[float, str], None],
    unusable: Callable[[str], None],
) -> list[Result]:
    """A contender that fails is out, and the others go on."""
    results = [Result(one) for one in contenders]
    failed: set[str] = set()
    for turn in range(rounds):
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


def fidelity(trace: Trace, plan: Plan, result: Result) -> Fidelity | None:
    """By the growth since the first sample of the process's memory: free memory of then, and others of
    the program's, are not in the trace.  None without samples."""
    memory = trace.memory
    if memory is None:
        return None
    first_ns = int(trace.lives.events.times_ns[trace.lives.life_of_row >= 0][0])
    times = np.asarray(memory.times_ns, np.int64) - first_ns
    inside = np.flatnonzero((times >= 0) & (times <= plan.end_ns))
    if inside.size < 2:
        return None
    seen = np.asarray(memory.anonymous_bytes, np.float64)[inside]
    spans = np.diff(times[inside], append=plan.end_ns)
    mean = float(np.average(seen, weights=spans)) if spans.any() else float(seen.mean())
    offset = seen[0] - float(np.median([plan.at(one.curve, int(times[inside[0]])) for one in result.rounds]))
    return Fidelity(
        (result.median("peak_bytes") + offset) / float(seen.max()) - 1,
        (result.median("mean_bytes") + offset) / mean - 1,
    )


def fit_written(trace: Trace, replays: Replayer, hakmem: Contender) -> None:
    """How much of its blocks a program writes is not in the trace: the replay takes that with which hakmem's
    memory comes closest to what was recorded."""
    found: list[tuple[float, int]] = []
    asked = replays.how
    for written in WRITTEN_BYTES:
        replays.how = replace(asked, idle_s=0.0, written_bytes=written)
        error = fidelity(trace, replays.plan, Result(hakmem, [replays.round(hakmem, replays.empty())]))
        found.append((max(abs(error.peak), abs(error.mean)) if error else 0.0, written))
        if found[-1][0] <= CLOSE_ENOUGH:
            break
    replays.how = replace(asked, written_bytes=min(found, key=lambda one: one[0])[1])
