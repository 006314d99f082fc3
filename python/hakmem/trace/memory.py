"""The resident and the committed memory of a process while it is recorded."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields

import numpy as np

from hakmem.census.reading import read_quick
from hakmem.census.scan import map_addresses, window_bounds
from hakmem.census.snapshot import read_counters
from hakmem.layout.memory import Integers
from hakmem.target.process import library_sums, resident_of
from hakmem.target.switch import monotonic_offset_ns
from hakmem.target.target import Target

EVERY_NS = 10_000_000
SAMPLES_A_LINE = 1000
ROWS_MAX = 1 << 19  # an hour and a half; a longer trace is read at longer intervals
OTHER_EVERY_NS, OTHER_SHARE = 100_000_000, 6  # at most a sixth of the time, waiting for a processor included
OWN_FILE = "/libhakmem"
OTHER_RARELY_NS, OTHER_CHANGE = 8 * OTHER_EVERY_NS, 0.01  # while it stays the same
EARLY_LOOKS = 4  # a program maps most when it begins
COUNTERS = ("refills", "remote_freed_blocks")


@dataclass
class Memory:
    """One row a sample; in the file lists of the same names."""

    times_ns: Integers  # CLOCK_MONOTONIC, as the events have it
    anonymous_bytes: Integers  # resident
    committed_bytes: Integers  # by hakmem
    file_bytes: Integers  # resident, of files and shared
    other_bytes: Integers  # of both kinds, those of mappings that are not hakmem's; 0: not known

    @property
    def rss_bytes(self) -> Integers:
        return self.anonymous_bytes + self.file_bytes

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> Memory:
        """From samples, each in the order of the columns."""
        return cls(*np.array(rows, np.int64).reshape(-1, len(fields(cls))).T)

    @classmethod
    def of_line(cls, line: dict[str, list[int]]) -> Memory:
        return cls.of(list(zip(*(line[field.name] for field in fields(cls)), strict=True)))

    @classmethod
    def joined(cls, parts: list[Memory]) -> Memory | None:
        """None if there is no part.  More than ROWS_MAX rows are thinned."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        found = [np.concatenate(column) for column in columns]
        step = -(-len(found[0]) // ROWS_MAX) if found else 1
        return cls(*(column[::step] for column in found)) if found else None


@dataclass
class _Look:
    time_ns: int
    bytes: int
    beside: int | None = None  # RSS less committed bytes in the sample after it


class Sampler:
    """Reads the process's figures when they are due."""

    def __init__(self, target: Target) -> None:
        schema = target.schema
        assert target.process is not None
        self._process, self._memory, self._target = target.process, target.memory, target
        self._committed = schema.root("totals") + schema.offset("totals", "committed_bytes")
        self._offset_ns = monotonic_offset_ns(target.process.memory_id)
        self._look_count = 0
        self._next_ns, self._other_next_ns, self._pause_ns = 0, 0, OTHER_EVERY_NS
        self._rows: list[tuple[int, ...]] = []
        self._others: list[_Look] = []
        self.libraries: dict[str, int] = {}  # resident bytes
        self._pool = ThreadPoolExecutor(1)  # the kernel takes milliseconds for a look
        self._looks = self._pool.submit(lambda: None)
        self._before: dict[str, int] = {}
        self._before = self.counted()

    def look(self, ring_bytes: int, is_calm: bool = True) -> Memory | None:
        """Called often.  Returns the last samples when they fill a line of the file.  The rings' bytes do not
        count, as they come with the recording.  Other memory is read rarely while many events come: it keeps
        this thread from them."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if now_ns < self._next_ns:
            return None
        committed = self._memory.word(self._committed)
        anonymous, of_files = self._process.resident_bytes()
        self._rows.append((now_ns + self._offset_ns, anonymous - ring_bytes, committed, of_files, 0))
        self._next_ns = now_ns + EVERY_NS
        self._know_beside()
        is_soon = is_calm or self._look_count < EARLY_LOOKS
        if self._looks.done() and now_ns >= self._other_next_ns + (0 if is_soon else OTHER_RARELY_NS):
            self._looks = self._pool.submit(self._look_at_others)
        full = self._rows[SAMPLES_A_LINE - 1 :][:1]
        return self.memory(SAMPLES_A_LINE) if full and full[0][0] <= self._others[-1].time_ns else None

    def memory(self, count: int | None = None) -> Memory:
        """The first samples, or all, that were not returned yet.  Other memory is read less often.  Between
        two readings, and within both, it is RSS less what hakmem has touched: all it has committed, but for
        a part that is steady."""
        self._know_beside()
        found, looks = Memory.of(self._rows[:count]), self._others
        if not len(found.times_ns):
            return found
        times, others, then = np.array([[one.time_ns, one.bytes, one.beside or 0] for one in looks]).T
        beside = found.rss_bytes - found.committed_bytes
        guess = beside + np.interp(found.times_ns, times, others - then)
        after = np.searchsorted(times, found.times_ns)
        ends = others[np.maximum(after - 1, 0)], others[np.minimum(after, len(others) - 1)]
        found.other_bytes = np.clip(guess, np.minimum(*ends), np.maximum(*ends)).astype(np.int64)
        self._rows = self._rows[len(found.times_ns) :]
        del looks[: max(0, int(np.searchsorted(times, found.times_ns[-1], "right")) - 1)]
        return found

    def _know_beside(self) -> None:
        for look in self._others:
            if look.beside is None and self._rows:
                _, anonymous, committed, of_files, _ = self._rows[-1]
                look.beside = anonymous + of_files - committed

    def _look_at_others(self) -> None:
        began_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        start, end = window_bounds(self._target)
        maps, others, own_end = map_addresses(self._target), 0, 0
        mappings = resident_of(self._process.smaps_text())
        self.libraries = library_sums([one for one in mappings if OWN_FILE not in one[2]])
        for low, high, path, rss_bytes in mappings:
            is_own = OWN_FILE in path or (
                not path and (start <= low < end or low == own_end or any(low <= one < high for one in maps))
            )
            own_end = high if is_own else 0  # the library's zero-initialised data follow
            others += 0 if is_own else rss_bytes
        ended_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        is_new = not self._others or abs(others - self._others[-1].bytes) > others * OTHER_CHANGE
        self._pause_ns = OTHER_EVERY_NS if is_new else min(2 * self._pause_ns, OTHER_RARELY_NS)
        self._others.append(_Look((began_ns + ended_ns) // 2 + self._offset_ns, others))
        self._look_count += 1
        self._other_next_ns = ended_ns + max(self._pause_ns, OTHER_SHARE * (ended_ns - began_ns))

    def counted(self) -> dict[str, int]:
        """The program's refills and remote frees, since the beginning; and a last look at other memory."""
        self._look_at_others()
        found = read_counters(read_quick(self._target))
        return {name: found[name] - self._before.get(name, 0) for name in COUNTERS}
