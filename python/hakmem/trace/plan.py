"""A trace as the plan that replay/replay.c carries out: each thread's events, in windows.

A window ends after a thousandth of the events or of the time, or after blocks of a share of the live bytes:
events of different threads in one window may come in any order, and memory is read at its end.

The trace is read twice: its totals tell how long windows are, and where in the file each thread's events
lie."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Doubles, Integers, Records
from hakmem.trace.figures import NS_PER_S
from hakmem.trace.file import Extent, Trace
from hakmem.trace.lives import Lives
from hakmem.trace.living import Groups, Living, Step, contradiction, steps
from hakmem.trace.table import Table
from hakmem.trace.words import MOVED, Events, Op

HEADER = struct.Struct("<8sQQII")  # struct plan
MAGIC = b"hkreplay"
OP = np.dtype([("what", "<u8"), ("slot", "<u4"), ("window", "<u4")])
ROW = np.dtype([("first_op", "<u8"), ("op_count", "<u8"), ("first_window", "<u4"), ("stays", "<u4")])
KINDS = np.array([0, 1, 2, 0], np.uint64)  # Op.TAKE, FREE, RESIZE; LIVE is taken
FROM = 3  # before a RESIZE: the slot of the block
SIZE_BITS = 48
WINDOWS, WINDOW_EVENTS_MIN = 1000, 64
WINDOWS_BY_BYTES_MAX, BYTES_SHARE = 8000, 200
STAYS_SHARE = 0.99  # of the time; a thread with events after that is there at the end


@dataclass(frozen=True)
class Plan:
    """A file, which begins with the rows, goes on with all threads' operations and ends with the windows."""

    path: Path
    starts_ns: Integers  # of each window, since the recording began; window 0 makes the live blocks
    rows: Records
    events: int  # without the blocks that were live at the start
    end_ns: int

    @property
    def seconds(self) -> float:
        return self.end_ns / NS_PER_S

    def at(self, curve: list[float], times_ns: Integers) -> Doubles:
        """A figure read at each window's end, at the ends of the windows of these times."""
        return np.asarray(curve, np.float64)[np.searchsorted(self.starts_ns[1:], times_ns, "right")]

    def mean(self, curve: Integers) -> float:
        """Over the recorded time, of a figure read at each window's end."""
        spans = np.diff(self.starts_ns[1:], append=self.end_ns)
        return float(np.average(curve[1:], weights=spans)) if spans.any() else float(curve[-1])


def plan_of(trace: Trace, path: Path) -> Plan:
    """HakmemError if events contradict each other."""
    if not trace.extent.events:
        raise HakmemError("this trace has no events to replay")
    survey, extent = _Survey(int(trace.head.get("pid", 0))), trace.extent
    for step in steps(trace, Living()):
        survey.add(step)
    windows, slots = _Windows(survey, extent), _Slots()
    with _File(path, survey.op_counts) as file:
        for lives in filter(len, trace.lives()):
            events, numbers, roots = _with_resizes(lives)
            is_timed = events.ops != Op.LIVE
            of_event = np.zeros(len(events), np.int64)
            of_event[is_timed] = windows.of(events.times_ns[is_timed], events.sizes[is_timed])
            filled, before = slots.of(events, numbers, roots)
            threads = survey.ranks.of(np.where(is_timed, events.threads, survey.main))
            file.add(threads, *_ops(events, filled, before, of_event))
        starts_ns = windows.starts_ns
        rows = file.finish(starts_ns, slots.count)
    return Plan(path, starts_ns, rows, extent.events, extent.last_ns - extent.first_ns)


class Ranks:
    """Numbers of threads: 0 for `first`, then 1 and more in the order in which they appear."""

    def __init__(self, first: int) -> None:
        self.known = {first: 0}

    def of(self, threads: Integers) -> Integers:
        found, firsts, places = np.unique(threads, return_index=True, return_inverse=True)
        for thread in found[np.argsort(firsts)].tolist():
            self.known.setdefault(thread, len(self.known))
        return np.array([self.known[thread] for thread in found.tolist()], np.int64)[places]


@dataclass
class _Survey:
    main: int  # a thread
    taken_bytes: float = 0.0
    peak_bytes: int = 0
    op_counts: Integers = field(default_factory=lambda: np.zeros(1, np.int64))  # of each thread

    def __post_init__(self) -> None:
        self.ranks = Ranks(self.main)

    def add(self, step: Step) -> None:
        events = step.lives.events
        is_timed = events.ops != Op.LIVE
        self.taken_bytes += float(events.sizes[is_timed].astype(np.float64).sum())
        self.peak_bytes = max(self.peak_bytes, int(step.live_bytes.max()))
        threads = self.ranks.of(np.where(is_timed, events.threads, self.main))
        counts = np.bincount(threads, 1 + (events.ops == Op.RESIZE), len(self.ranks.known)).astype(np.int64)
        counts[: len(self.op_counts)] += self.op_counts
        self.op_counts = counts


def _with_resizes(lives: Lives) -> tuple[Events, Integers, Integers]:
    """Where realloc moved a block, its life goes on in that of the new one: the first of those blocks is the
    event's root.  A pair of which the other half comes later stays an allocation and a free."""
    events = lives.events.at(slice(None))
    events.ops = events.ops.copy()
    known, local = np.unique(lives.numbers, return_inverse=True)
    order = np.argsort(events.threads, kind="stable")
    before = np.full(len(events), -1)  # the thread's event before
    before[order[1:]] = order[:-1]
    frees = np.flatnonzero((events.ops == Op.FREE) & (events.sizes == MOVED))
    takes, kept = before[frees], np.flatnonzero(events.ops != Op.FREE)
    last = np.full(len(known), -1, np.int64)
    last[local[kept]] = kept
    # Times of threads are not exact: a block may seem to be taken later.
    is_move = (events.ops[takes] == Op.TAKE) & (events.threads[takes] == events.threads[frees])
    is_move &= (last[local[frees]] < takes) & (takes >= 0)
    takes, frees = takes[is_move], frees[is_move]
    first = np.arange(len(known))
    first[local[takes]] = local[frees]
    while (first[first] != first).any():
        first = first[first]
    events.ops[takes] = Op.RESIZE
    rows = np.delete(np.arange(len(events)), frees)
    return events.at(rows), lives.numbers[rows], known[first[local[rows]]]


class _Windows:
    """The window of each event.  Some windows pass without events."""

    def __init__(self, survey: _Survey, extent: Extent) -> None:
        bytes_least = survey.taken_bytes / WINDOWS_BY_BYTES_MAX
        self._step_bytes = max(survey.peak_bytes / BYTES_SHARE, bytes_least, 1.0)
        self._step_events = max(extent.events // WINDOWS, WINDOW_EVENTS_MIN)
        self._first_ns, self._end_ns = extent.first_ns, extent.last_ns - extent.first_ns
        self._step_ns = max(1, self._end_ns // WINDOWS)
        self._events, self._taken = 0, 0.0
        self._keys = np.full((3, 1), -1.0)  # of the last event
        self._own = np.empty(0, np.int64)  # the times at which windows begin with an event
        self._spans = 0  # of step_ns each, in which such a window begins
        self._number = 0  # of the last window

    def of(self, times_ns: Integers, sizes: Records) -> Integers:
        if not len(times_ns):
            return np.empty(0, np.int64)
        times = times_ns - self._first_ns
        taken = self._taken + np.cumsum(sizes.astype(np.float64))
        counts = self._events + np.arange(len(times))
        keys = np.array(
            [counts // self._step_events, times // self._step_ns, taken // self._step_bytes], np.float64
        )
        begins = np.diff(keys, axis=1, prepend=self._keys).any(axis=0)
        own, before = times[begins], len(self._own)
        spans = own // self._step_ns
        last = self._own[-1:] // self._step_ns if before else np.full(1, -1)
        is_new = np.diff(spans, prepend=last) != 0
        passed = self._spans + np.cumsum(is_new) - 1  # spans before this one in which a window begins
        numbers = 1 + before + np.arange(len(own)) + spans - passed
        numbers = np.append(self._number, numbers)
        self._events, self._taken, self._keys = int(counts[-1]) + 1, float(taken[-1]), keys[:, -1:]
        self._own = np.append(self._own, own)
        self._spans += int(is_new.sum())
        self._number = int(numbers[-1])
        return np.asarray(numbers[np.cumsum(begins)])

    @property
    def starts_ns(self) -> Integers:
        step = self._step_ns
        idle = np.setdiff1d(np.arange(0, self._end_ns, step), self._own // step * step)
        return np.append(0, np.sort(np.concatenate((self._own, idle)), kind="stable"))


class _Slots:
    """A block has a slot from its birth to its next resize, which has another, and so on."""

    def __init__(self) -> None:
        none = np.empty(0, np.int64)
        self._of_block = Table(none, none)
        self.count = 0

    def of(self, events: Events, numbers: Integers, roots: Integers) -> tuple[Integers, Integers]:
        """The slot that each event fills, or, by a free, reads; and that of the block before it."""
        groups = Groups.of(events.ops, roots)
        firsts, lasts, is_free = groups.firsts, groups.lasts, events.ops == Op.FREE
        is_born = (events.ops[firsts] == Op.TAKE) | (events.ops[firsts] == Op.LIVE)
        places, is_old = self._of_block.find(roots[firsts])
        if (is_born == is_old).any() or (events.sizes >> np.uint64(SIZE_BITS - 1)).any():
            raise contradiction()
        slots = self.count + np.cumsum(~is_free) - 1
        before = groups.before(slots, np.where(is_old, self._of_block.at(0, places), 0))
        self.count += int((~is_free).sum())
        if self.count >= 1 << 32:
            raise HakmemError("this trace has too many events to replay")
        # A block that realloc moved goes on under the number of the new one.
        stays, goes_on = ~is_free[lasts], is_old & (numbers[lasts] == roots[firsts])
        self._of_block.put(0, places[goes_on], slots[lasts[goes_on]])
        self._of_block.remove(places[is_old & ~(stays & goes_on)])
        ends = lasts[stays & ~goes_on]
        ends = ends[np.argsort(numbers[ends])]
        self._of_block.add(numbers[ends], slots[ends])
        return np.where(is_free, before, slots), before


def _ops(events: Events, filled: Integers, before: Integers, windows: Integers) -> tuple[Records, Integers]:
    """The operations, and the event of each."""
    is_resize = events.ops == Op.RESIZE
    rows = np.repeat(np.arange(len(events)), 1 + is_resize)
    is_from = np.append(rows[1:] == rows[:-1], False)[: len(rows)]
    what = KINDS[events.ops] | events.alignments.astype(np.uint64) << np.uint64(8)
    ops = np.empty(len(rows), OP)
    ops["what"] = np.where(is_from, FROM, (what | events.sizes << np.uint64(16))[rows])
    ops["slot"], ops["window"] = np.where(is_from, before[rows], filled[rows]), windows[rows]
    return ops, rows


class _File:
    """Threads' operations, each thread's in a range of its own."""

    def __init__(self, path: Path, op_counts: Integers) -> None:
        self._path, self._counts = path, op_counts
        self._rows = np.zeros(len(op_counts), ROW)
        self._rows["first_op"] = np.append(0, np.cumsum(op_counts)[:-1])
        self._last_windows = np.zeros(len(op_counts), np.int64)

    def __enter__(self) -> _File:
        with self._trouble():
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def add(self, threads: Integers, ops: Records, rows: Integers) -> None:
        of_op = threads[rows]
        order = np.argsort(of_op, kind="stable")
        found, starts = np.unique(of_op[order], return_index=True)
        ops, table = ops[order], self._rows
        for thread, start, end in zip(found.tolist(), starts, [*starts[1:], len(ops)], strict=True):
            row, own = table[thread], ops[start:end]
            if not row["op_count"]:
                row["first_window"] = own["window"][0]
            self._write(self._ops_at + OP.itemsize * int(row["first_op"] + row["op_count"]), own.tobytes())
            row["op_count"] += len(own)
            self._last_windows[thread] = own["window"][-1]

    def finish(self, starts_ns: Integers, slots: int) -> Records:
        rows, count = self._rows, int(self._counts.sum())
        rows["stays"] = (rows["op_count"] > 0) & (self._last_windows >= STAYS_SHARE * (len(starts_ns) - 1))
        head = HEADER.pack(MAGIC, count, slots, len(rows), len(starts_ns))
        self._write(0, head + rows.tobytes())
        self._write(self._ops_at + OP.itemsize * count, starts_ns.astype("<u8").tobytes())
        return rows

    @property
    def _ops_at(self) -> int:
        return HEADER.size + self._rows.nbytes

    def _write(self, at: int, data: bytes) -> None:
        with self._trouble():
            while data:
                written = os.pwrite(self._file, data, at)
                at, data = at + written, data[written:]

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise HakmemError(f"{self._path} cannot be written: {error.strerror}; set TMPDIR") from None
