"""The profile of a running process, as a tool that looks in from outside switches it and reads it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from hakmem.layout.heaps import read_class_counters, read_heaps
from hakmem.target.target import Target, open_process

if TYPE_CHECKING:
    from numpy.typing import NDArray

Record: TypeAlias = "np.void"

PATIENCE_S = 120.0


def wait_for(is_so: Callable[[], bool], what: str) -> None:
    """Until it is so; however slow the machine."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, f"waited {PATIENCE_S:g} s for {what}"
        time.sleep(0.005)


def probability(samples: NDArray[Any]) -> NDArray[np.float64]:
    return -np.expm1(-(samples["block_bytes"].astype(float) / samples["period_bytes"].astype(float)))


@dataclass
class Outside:
    """One process, its memory open for reading and for writing."""

    target: Target
    descriptor: int

    # ---- reading

    def record(self, name: str) -> Record:
        schema = self.target.schema
        return self.target.memory.array(schema.root(name), schema.dtype(name), 1)[0]

    @property
    def state(self) -> Record:
        return self.record("profile_state")

    @property
    def control(self) -> Record:
        return self.record("profile_control")

    def heaps(self) -> NDArray[Any]:
        return read_heaps(self.target.memory, self.target.schema)

    def in_use(self) -> list[int]:
        """States of heaps that threads have."""
        return [self.target.schema.constant(name) for name in ("owner_running", "owner_dormant")]

    def running(self) -> NDArray[Any]:
        heaps = self.heaps()
        return heaps[np.isin(heaps["owner"]["state"], self.in_use())]

    def class_counters(self) -> dict[str, NDArray[np.int64]]:
        return read_class_counters(self.target.memory, self.target.schema, self.heaps())

    def samples(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[Any]]:
        """Addresses, how often each was doubled, and the samples."""
        schema, memory = self.target.schema, self.target.memory
        places = self.state["sample_segments"]
        segments = memory.records(places[places != 0], schema.dtype("sample_segment"))
        keys, samples = segments["keys"].reshape(-1), segments["samples"].reshape(-1)
        shift = np.uint64(schema.constant("sample_halvings_shift"))
        is_live = keys > 1
        keys = keys[is_live]
        addresses = keys & ((np.uint64(1) << shift) - np.uint64(1))
        return addresses, 2.0 ** (keys >> shift).astype(float), samples[is_live]

    def live_bytes(self, block_bytes: int) -> float:
        """Live bytes of this size by the samples, allocated while the profile was on."""
        _, doubled, samples = self.samples()
        weights = samples["block_bytes"] * doubled / probability(samples)
        return float(weights[samples["block_bytes"] == block_bytes].sum())

    def sites(self) -> NDArray[Any]:
        schema, memory = self.target.schema, self.target.memory
        places = self.state["site_segments"]
        segments = memory.records(places[places != 0], schema.dtype("site_segment"))
        return segments["sites"].reshape(-1)[: int(self.state["site_count"])]

    def frames(self, site: Record) -> list[int]:
        return self.target.memory.array(
            int(site["frames"]), np.dtype("u8"), int(site["frame_count"])
        ).tolist()

    # ---- writing

    def write(self, record: str, field: str, value: int, at: int = 0) -> None:
        """A field that the library marks as writable; `at` is the record's address if it is not a root."""
        schema = self.target.schema
        entry = schema.records[record].fields[field]
        assert entry.meta.role == "writable", f"{record}.{field}"
        place = (at or schema.root(record)) + entry.offset
        data = (value % (1 << 8 * entry.element_bytes)).to_bytes(entry.element_bytes, "little")
        assert os.pwrite(self.descriptor, data, place) == len(data)

    def publish(self) -> int:
        """The control record is written: slow paths take it up.  By a generation that no thread saw last."""
        seen = set(self.running()["profile_generation"].tolist())
        generation = int(self.control["generation"]) % 255 + 1
        while generation in seen:
            generation = generation % 255 + 1
        self.write("profile_control", "generation", generation)
        return generation

    def heap_addresses(self) -> list[int]:
        """The addresses of all heaps that were ever made; they stay."""
        schema, memory = self.target.schema, self.target.memory
        found = []
        owner = int.from_bytes(memory.read(schema.root("owners"), 8), "little")
        while owner:
            found.append(owner - schema.offset("heap", "owner"))
            link = owner + schema.offset("owner", "next_of_all")
            owner = int.from_bytes(memory.read(link, 8), "little")
        return found

    def poke(self, heaps: Sequence[int]) -> None:
        """Their threads come the slow way at their next free; for a heap without a thread it does nothing."""
        place = self.target.schema.offset("heap", "poke")
        byte = bytes([self.target.schema.constant("heap_poke")])
        for heap in heaps:
            os.pwrite(self.descriptor, byte, heap + place)

    def switch(
        self, is_on: bool, period_bytes: float = 0, rate: float = 0, lease_s: float = 0, depth: float = 0
    ) -> int:
        lease_ms = int((time.monotonic() + lease_s) * 1000) if lease_s else 0
        fields = {"period_bytes": period_bytes, "samples_per_second": rate, "lease_ms": lease_ms}
        fields |= {"stack_depth": depth, "flags": self.target.schema.constant("profile_on") if is_on else 0}
        fields["trace_lease_ms"] = 0
        for field, value in fields.items():
            self.write("profile_control", field, int(value))
        heaps = self.heap_addresses()
        generation = self.publish()
        self.poke(heaps)
        return generation

    def switch_and_wait(self, is_on: bool, heaps: int = 1, **how: float) -> None:
        """Until this number of heaps has followed, poked again and again."""
        generation = self.switch(is_on, **how)

        def have_followed() -> bool:
            running = self.running()
            followed = (running["profile_generation"] == generation) & (running["armed"] == is_on)
            if int(followed.sum()) >= heaps:
                return True
            self.poke(self.heap_addresses())
            return False

        wait_for(have_followed, f"{heaps} heaps to follow generation {generation}")


@contextmanager
def outside(pid: int) -> Iterator[Outside]:
    descriptor = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    try:
        yield Outside(open_process(pid), descriptor)
    finally:
        os.close(descriptor)
