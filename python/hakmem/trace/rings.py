"""The rings of a process's threads, emptied while it runs (src/profile/trace_ring.h).

thread ──▶ words, `written` ─────▶ drain() reads them and writes `read`: then the thread may overwrite them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hakmem.layout.heaps import heap_addresses, heap_column
from hakmem.layout.memory import Numbers
from hakmem.target.switch import Switch
from hakmem.target.target import Target

RING = "trace_ring"
WORD_BYTES = 4


@dataclass
class Ring:
    """One heap's: its place in the process, and how far it has been read."""

    address: int
    read: int  # words
    began: int  # likewise, when it was found


class Rings:
    """All rings of a process; those that appear meanwhile as well."""

    def __init__(self, target: Target, switch: Switch) -> None:
        schema = target.schema
        schema.need("heap", RING)
        schema.need(RING, "written", "read", "words")
        fields = schema.records[RING].fields
        self._target, self._switch = target, switch
        self._written, self._read, self._words = (
            fields[name].offset for name in ("written", "read", "words")
        )
        self._room = fields["words"].count
        self._rings: dict[int, Ring] = {}

    def find(self) -> None:
        """Looks for rings that are new.  What they hold of an earlier recording is passed over by `skip`."""
        heaps = heap_addresses(self._target.memory, self._target.schema)
        for address in heap_column(self._target.memory, self._target.schema, heaps, RING).tolist():
            if address and address not in self._rings:
                read = self._target.memory.word(address + self._read)
                self._rings[address] = Ring(address, read, read)

    @property
    def bytes(self) -> int:
        """The memory that events were written into since then."""
        return sum(WORD_BYTES * min(ring.read - ring.began, self._room) for ring in self._rings.values())

    def skip(self) -> None:
        """Forgets what is in the rings."""
        for ring in self._rings.values():
            self._advance(ring, self._target.memory.word(ring.address + self._written))

    def drain(self) -> Iterator[tuple[int, Numbers]]:
        """The words that each ring has got since, with the ring's number."""
        rings = list(self._rings.values())
        places = np.array([ring.address + self._written for ring in rings], np.uint64)
        counts = self._target.memory.records(places, np.dtype("u8")).tolist()
        for number, (ring, written) in enumerate(zip(rings, counts, strict=True)):
            if written == ring.read:
                continue
            yield number, self._words_of(ring, written)
            self._advance(ring, written)

    def _words_of(self, ring: Ring, written: int) -> Numbers:
        first, count = ring.read % self._room, written - ring.read
        pieces = [(first, min(count, self._room - first))]
        if pieces[0][1] < count:
            pieces.append((0, count - pieces[0][1]))
        memory, start = self._target.memory, ring.address + self._words
        parts = [memory.read(start + WORD_BYTES * place, WORD_BYTES * some) for place, some in pieces]
        return np.frombuffer(b"".join(parts), "<u4")

    def _advance(self, ring: Ring, written: int) -> None:
        ring.read = written
        self._switch.write_number(ring.address + self._read, written)
