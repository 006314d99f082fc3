"""Replays against the programs themselves: peak RSS of real programs on five mallocs, each run for real, and
in a replay of what was recorded of it on hakmem.

First come rounds of runs, then rounds of replays; every other round has the mallocs in reverse order."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from hakmem.launch.contenders import HAKMEM, Contender
from hakmem.launch.replaying import How, compare, fidelity, fit_written, replayer
from hakmem.launch.replaying import Result as Replayed
from hakmem.layout.memory import Integers
from hakmem.trace.file import Trace, read
from hakmem.trace.lives import Lives
from harness.allocators import Allocator, find_allocators
from harness.execute import Sample
from harness.workload import Length, Workload

from traces.record import OUTPUT, record

MALLOCS = (HAKMEM, "glibc", "jemalloc", "mimalloc", "tcmalloc")
PROGRAMS = (
    *("redis", "sqlite", "python", "python-texts", "perl", "lua", "jq", "xmllint", "xsltproc", "g++"),
    *("git-gc", "gawk", "ruby"),
)
TRIES = 5  # of a recording without lost events
CLOSE = 0.05
EQUAL = 0.02  # of two peaks that are closer neither is called lower


@dataclass(frozen=True)
class Peaks:
    """Medians in bytes, by malloc."""

    program: str
    real: dict[str, float]
    replayed: dict[str, float]
    notes: str = ""

    @property
    def errors(self) -> dict[str, float]:
        return {name: self.replayed[name] / real - 1 for name, real in self.real.items()}

    @property
    def is_close(self) -> bool:
        """On each malloc but hakmem."""
        return all(abs(error) <= CLOSE for name, error in self.errors.items() if name != HAKMEM)

    @property
    def exchanged(self) -> list[str]:
        """The pairs of mallocs of which the replay says that the other one has the lower peak."""
        pairs = itertools.combinations(sorted(self.real, key=self.real.__getitem__), 2)
        return [
            f"{low} < {high}"
            for low, high in pairs
            if self.real[high] > self.real[low] * (1 + EQUAL)
            if self.replayed[high] < self.replayed[low] * (1 - EQUAL)
        ]

    @property
    def has_same_order(self) -> bool:
        """Even of mallocs that are nearly equal."""
        return sorted(self.real, key=self.real.__getitem__) == sorted(
            self.replayed, key=self.replayed.__getitem__
        )

    def row(self) -> str:
        cells = (f"{self.real[name] / 2**20:.1f} {100 * error:+.1f} %" for name, error in self.errors.items())
        ranking = ", ".join(self.exchanged) or ("same" if self.has_same_order else "same but for equals")
        return f"| {' | '.join((self.program, *cells, ranking, self.notes))} |"


def record_best(workload: Workload, length: Length) -> Path:
    """On a busy machine events are lost: the recording that lost the fewest."""
    best, least = OUTPUT / f"{workload.name}.best", math.inf
    for _ in range(TRIES):
        made = record(workload, length)
        if (lost := read(made).lost) < least:
            made.rename(best)
            least = lost
        if not lost:
            break
    return best.rename(made)


def contenders() -> tuple[list[tuple[Allocator, Contender]], list[str]]:
    """hakmem first, and one sentence for each malloc that is missing."""
    found, missing = find_allocators({}, wanted=MALLOCS)
    by_name = {one.name: one for one in found}
    pairs = [(by_name[name], Contender(name, by_name[name].library)) for name in MALLOCS if name in by_name]
    return pairs, missing


def own_error(trace: Trace, hakmem: Contender) -> tuple[How, str]:
    """The replay that comes closest to the recording, and how close."""
    with replayer(trace, How(idle_s=0.0)) as replays:
        fit_written(trace, replays, hakmem)
        found = fidelity(trace, replays.plan, Replayed(hakmem, [replays.round(hakmem, replays.empty())]))
        return replays.how, f"{100 * found.peak:+.1f} / {100 * found.mean:+.1f} %" if found else ""


def hastened(trace: Trace, factor: float) -> Trace:
    """The same in less time."""
    assert trace.memory is not None
    began_ns = trace.extent.first_ns

    def sooner(times_ns: Integers) -> Integers:
        return began_ns + ((times_ns - began_ns) * factor).astype(np.int64)

    def lives() -> Iterator[Lives]:
        for some in trace.lives():
            events = replace(some.events, times_ns=sooner(some.events.times_ns))
            yield Lives(events, some.numbers)

    memory = replace(trace.memory, times_ns=sooner(trace.memory.times_ns))
    return Trace(trace.head, lives, trace.lost, trace.end, memory)


def ran(
    workload: Workload, length: Length, allocators: Sequence[Allocator], rounds: int
) -> dict[str, list[Sample]]:
    """The samples of all runs, by malloc."""
    found: dict[str, list[Sample]] = {one.name: [] for one in allocators}
    for turn in range(rounds):
        for one in allocators[:: -1 if turn % 2 else 1]:
            found[one.name].append(workload.timed(one, length))
    return found


def measure(workload: Workload, recording: Path, length: Length, rounds: int) -> Peaks:
    """Raises RunError, or HakmemError.  The recorded program ran more slowly than it does alone, most of all
    on a busy machine; the replay takes the time of a run, as memory is purged by age."""
    pairs, trace = contenders()[0], read(recording)
    real = ran(workload, length, [allocator for allocator, _ in pairs], rounds)
    how, error = own_error(trace, pairs[0][1])
    seconds = float(np.median([sample["seconds"] for sample in real[HAKMEM]]))
    factor = min(1.0, seconds / (trace.end or {})["seconds"])
    with replayer(hastened(trace, factor), how) as replays:
        results = compare(replays, [one for _, one in pairs], rounds, math.inf, lambda *_: None, print)
    replayed = {one.contender.name: one.median("peak_bytes") for one in results}
    return Peaks(
        workload.name.removeprefix("real-"),
        {name: float(np.median([one["peak_rss_kib"] for one in real[name]])) * 1024 for name in replayed},
        replayed,
        f"{error} | {factor:.2f} | {trace.lost:,}",
    )


def markdown(all_peaks: Sequence[Peaks]) -> str:
    """A row a program: each malloc's peak in MiB, and how far the replay's is from it."""
    names = list(all_peaks[0].real)
    head = ("program", *names, "ranking", "replay against recording: peak / mean", "time", "lost")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(one.row() for one in all_peaks)]
    count, close = len(all_peaks), sum(one.is_close for one in all_peaks)
    same, strict = sum(not one.exchanged for one in all_peaks), sum(one.has_same_order for one in all_peaks)
    return "\n".join(lines) + (
        f"\n\nPeak within {100 * CLOSE:.0f} % on all peers: {close} of {count} programs; "
        f"same ranking: {same}, where peaks within {100 * EQUAL:.0f} % are equal, {strict} where none are."
    )
