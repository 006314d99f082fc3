"""The resident and the committed memory of a process while it is recorded."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields

import numpy as np

from hakmem.layout import memory as layout
from hakmem.layout.memory import Integers
from hakmem.target.switch import monotonic_offset_ns
from hakmem.target.target import Target

EVERY_NS = 10_000_000
SAMPLES_A_LINE = 1000


@dataclass
class Memory:
    """One row a sample; in the file lists of the same names."""

    times_ns: Integers  # CLOCK_MONOTONIC, as the events have it
    anonymous_bytes: Integers  # resident
    committed_bytes: Integers  # by hakmem

    @classmethod
    def of(cls, rows: list[tuple[int, ...]]) -> Memory:
        """From samples, each in the order of the columns."""
        return cls(*np.array(rows, np.int64).reshape(-1, len(fields(cls))).T)

    @classmethod
    def joined(cls, lines: list[dict[str, list[int]]]) -> Memory | None:
        """From the lines of a file; None if it has none."""
        names = [field.name for field in fields(cls)]
        rows = (row for line in lines for row in zip(*(line[name] for name in names), strict=True))
        return cls.of(list(rows)) if lines else None


def number_at(memory: layout.Memory, address: int) -> int:
    return int.from_bytes(memory.read(address, 8), "little")


class Sampler:
    """Reads the process's figures when they are due."""

    def __init__(self, target: Target) -> None:
        schema = target.schema
        assert target.process is not None
        self._process, self._memory = target.process, target.memory
        self._committed = schema.root("totals") + schema.offset("totals", "committed_bytes")
        self._offset_ns = monotonic_offset_ns(target.process.memory_id)
        self._next_ns = 0
        self.rows: list[tuple[int, ...]] = []

    def look(self, ring_bytes: int) -> Memory | None:
        """Called often.  Returns the last samples when they fill a line of the file.  The rings' bytes do not
        count, as they come with the recording."""
        now_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        if now_ns < self._next_ns:
            return None
        committed = number_at(self._memory, self._committed)
        anonymous = self._process.anonymous_bytes() - ring_bytes
        self.rows.append((now_ns + self._offset_ns, anonymous, committed))
        self._next_ns = now_ns + EVERY_NS
        is_full = len(self.rows) % SAMPLES_A_LINE == 0
        return Memory.of(self.rows[-SAMPLES_A_LINE:]) if is_full else None
