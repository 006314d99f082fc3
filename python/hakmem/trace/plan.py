"""A trace as the plan that replay/replay.c carries out: each thread's events, in windows.

A window ends after a thousandth of the events or of the time, or after blocks of a share of the live bytes:
events of different threads in one window may come in any order, and memory is read at its end."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Doubles, Integers, Records
from hakmem.trace.figures import NS_PER_S, live_bytes_of
from hakmem.trace.lives import Lives
from hakmem.trace.words import MOVED, Events, Op

HEADER = struct.Struct("<8sQQII")  # struct plan
MAGIC = b"hkreplay"
OP = np.dtype([("what", "<u8"), ("slot", "<u4"), ("window", "<u4")])
ROW = np.dtype([("first_op", "<u8"), ("op_count", "<u8"), ("first_window", "<u4"), ("stays", "<u4")])
KINDS = np.array([0, 1, 2, 0], np.uint64)  # Op.TAKE, FREE, RESIZE; LIVE is taken
SIZE_BITS = 48
WINDOWS, WINDOW_EVENTS_MIN = 1000, 64
WINDOWS_BY_BYTES_MAX, BYTES_SHARE = 8000, 200
STAYS_SHARE = 0.99  # of the time; a thread with events after that is there at the end


@dataclass(frozen=True)
class Plan:
    """As the file has it."""

    starts_ns: Integers  # of each window, since the recording began; window 0 makes the live blocks
    rows: Records
    ops: Records
    slots: int
    end_ns: int

    @property
    def events(self) -> int:
        """Without the blocks that were live at the start."""
        return int((self.ops["window"] > 0).sum())

    @property
    def seconds(self) -> float:
        return self.end_ns / NS_PER_S

    def write(self, path: Path) -> None:
        head = HEADER.pack(MAGIC, len(self.ops), self.slots, len(self.rows), len(self.starts_ns))
        try:
            with path.open("wb") as file:
                for part in (self.starts_ns.astype("<u8"), self.rows, self.ops):
                    file.write(head + part.tobytes())
                    head = b""
        except OSError as error:
            raise HakmemError(f"{path} cannot be written: {error.strerror}; set TMPDIR") from None

    def at(self, curve: list[float], times_ns: Integers) -> Doubles:
        """A figure read at each window's end, at the ends of the windows of these times."""
        return np.asarray(curve, np.float64)[np.searchsorted(self.starts_ns[1:], times_ns, "right")]

    def mean(self, curve: Integers) -> float:
        """Over the recorded time, of a figure read at each window's end."""
        spans = np.diff(self.starts_ns[1:], append=self.end_ns)
        return float(np.average(curve[1:], weights=spans)) if spans.any() else float(curve[-1])


def plan_of(lives: Lives, main_thread: int, share: float = 1.0) -> Plan:
    """The first `share` of the events.  HakmemError if they contradict themselves."""
    rows = np.flatnonzero(lives.life_of_row >= 0)
    timed = np.flatnonzero(lives.events.ops[rows] != Op.LIVE)
    if not timed.size:
        raise HakmemError("this trace has no events to replay")
    rows = rows[: timed[max(0, int(len(timed) * share) - 1)] + 1]
    events, numbers = _with_resizes(lives.events.at(rows), lives.life_of_row[rows])
    is_timed = events.ops != Op.LIVE
    times = events.times_ns[is_timed] - events.times_ns[0]
    windows = np.zeros(len(events), np.int64)
    starts, windows[is_timed] = _windows(times, events.sizes[is_timed], int(live_bytes_of(lives).max()))
    ops = np.empty(len(events), OP)
    what = KINDS[events.ops] | events.alignments.astype(np.uint64) << np.uint64(8)
    ops["what"] = what | events.sizes << np.uint64(16)
    ops["slot"], ops["window"] = _slots(events.ops, numbers, events.sizes), windows
    threads = np.where(is_timed, events.threads, main_thread)
    order, table = _by_thread(threads, main_thread, windows, len(starts))
    return Plan(starts, table, ops[order], int(ops["slot"].max()) + 1, int(times[-1]))


def _with_resizes(events: Events, numbers: Integers) -> tuple[Events, Integers]:
    """Where realloc moved a block, its life goes on in that of the new one."""
    order = np.argsort(events.threads, kind="stable")
    before = np.full(len(events), -1)  # the thread's event before
    before[order[1:]] = order[:-1]
    frees = np.flatnonzero((events.ops == Op.FREE) & (events.sizes == MOVED))
    takes, kept = before[frees], np.flatnonzero(events.ops != Op.FREE)
    last = np.zeros(numbers.max() + 1, np.int64)
    last[numbers[kept]] = kept
    # Times of threads are not exact: a block may seem to be taken later.
    is_move = (events.ops[takes] == Op.TAKE) & (events.threads[takes] == events.threads[frees])
    is_move &= last[numbers[frees]] < takes
    takes, frees = takes[is_move], frees[is_move]
    first = np.arange(len(last))
    first[numbers[takes]] = numbers[frees]
    while (first[first] != first).any():
        first = first[first]
    events.ops[takes] = Op.RESIZE
    rows = np.delete(np.arange(len(events)), frees)
    return events.at(rows), first[numbers[rows]]


def _windows(times: Integers, sizes: Records, peak_bytes: int) -> tuple[Integers, Integers]:
    """The time at which each begins, and the window of each event.  Some pass without events."""
    count, end = len(times), int(times[-1])
    taken = np.cumsum(sizes.astype(np.float64))
    step_bytes = max(peak_bytes / BYTES_SHARE, taken[-1] / WINDOWS_BY_BYTES_MAX, 1.0)
    step_ns = max(1, end // WINDOWS)
    keys = (
        np.arange(count) // max(count // WINDOWS, WINDOW_EVENTS_MIN),
        times // step_ns,
        taken // step_bytes,
    )
    begins = np.append(True, np.any([np.diff(key) != 0 for key in keys], axis=0))
    own = times[begins]
    idle = np.setdiff1d(np.arange(0, end, step_ns), own // step_ns * step_ns)
    starts = np.sort(np.concatenate((own, idle)), kind="stable")
    of_equal = np.arange(len(own)) - np.searchsorted(own, own, "left")  # the place among equal ones
    of_own = np.searchsorted(starts, own, "left") + of_equal
    return np.append(0, starts), of_own[np.cumsum(begins) - 1] + 1


def _slots(ops: Records, numbers: Integers, sizes: Records) -> Integers:
    """A life's slots follow each other: its birth's, then one for each resize; a free reads the last one."""
    order = np.argsort(numbers, kind="stable")
    sorted_ops, sorted_numbers = ops[order], numbers[order]
    is_first = np.append(True, np.diff(sorted_numbers) != 0)
    is_last = np.append(is_first[1:], True)
    is_begin = (sorted_ops == Op.TAKE) | (sorted_ops == Op.LIVE)
    is_end = sorted_ops == Op.FREE
    if (is_begin != is_first).any() or (is_end & ~is_last).any() or (sizes >> np.uint64(SIZE_BITS - 1)).any():
        raise HakmemError("this trace contradicts itself: it is damaged")
    slots = np.empty(len(ops), np.int64)
    slots[order] = np.cumsum(~is_end) - 1
    if len(slots) >= 1 << 32:
        raise HakmemError("this trace has too many events to replay")
    return slots


def ranks(first: int, values: Integers) -> Integers:
    """0 for `first`, then 1 and more in the order in which values appear."""
    _, firsts, places = np.unique(np.append(first, values), return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(firsts))[places[1:]])


def _by_thread(threads: Integers, main: int, windows: Integers, end: int) -> tuple[Integers, Records]:
    """The events' order in the plan, and a row for each thread: the main one, then by their first event."""
    of_event = ranks(main, threads)
    order = np.argsort(of_event, kind="stable")
    counts = np.bincount(of_event)
    table = np.zeros(len(counts), ROW)
    table["op_count"] = counts
    table["first_op"] = np.append(0, np.cumsum(table["op_count"])[:-1])
    has_ops = np.flatnonzero(table["op_count"])
    sorted_windows = windows[order]
    table["first_window"][has_ops] = sorted_windows[table["first_op"][has_ops].astype(np.int64)]
    last_ops = (table["first_op"] + table["op_count"] - 1)[has_ops].astype(np.int64)
    table["stays"][has_ops] = sorted_windows[last_ops] >= STAYS_SHARE * (end - 1)
    return order, table
