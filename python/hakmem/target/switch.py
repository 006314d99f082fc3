"""The switch of heap profiles: bytes written into fields that the library has marked as writable.

    settings ── control record ──▶ its generation, last ──▶ one byte of each heap: its thread reads the record

Through one descriptor of /proc/PID/mem, which holds the memory and not the number: after exec or the end of
the process it leads nowhere.  No signal, no stop, no code.  The same rights as reading.  A lease ends the
profile in the process by itself, should the tool die.  The library takes any value in these fields
(src/profile/profile.h).
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.layout.heaps import FIRST_HEAP_NUMBER, heap_addresses, heap_column
from hakmem.layout.memory import Records, Words
from hakmem.layout.schema import MAGIC
from hakmem.target.access import refused
from hakmem.target.target import Target

CONTROL, STATE = "profile_control", "profile_state"
NS_PER_MS, MS_PER_S = 1_000_000, 1000
PATIENCE_S = 2.0  # for what the process does at its next slow path
STEP_S = 0.02
RENEWAL_MS = 100  # longer than a lease's end and its renewal may cross
STOPPED = "Tt"


@dataclass(frozen=True)
class Settings:
    """The request to the sampler; 0 leaves it to the library."""

    period_bytes: int = 0  # mean bytes between two samples; 0 adapts
    lease_s: float = 0.0  # the profile ends by itself then; 0: it stays on
    cost_percent: int = 0  # of processor time, for samples that adapt


@dataclass(frozen=True)
class Followed:
    """How far the process has followed the last change."""

    heaps: int  # of running threads
    following: int  # of those, the ones that have seen it; the others have allocated nothing since

    @property
    def is_all(self) -> bool:
        return self.following == self.heaps


class Switch(AbstractContextManager["Switch"]):
    """The control record of one process; a context manager that closes its descriptor."""

    def __init__(self, target: Target) -> None:
        if target.process is None:
            raise HakmemError("a core dump cannot be switched: give the PID of a running process")
        schema = target.schema
        schema.need(CONTROL, "generation", "flags", "lease_ms", "period_bytes", "purge_request")
        self.target = target
        self._process = target.process
        self._file = target.process.open("mem", os.O_RDWR)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """The last request stays in force."""
        os.close(self._file)

    # ---- what can be asked for -----------------------------------------------------------------------

    def on(self, settings: Settings) -> None:
        """Asks for a profile; the threads follow at their next calls (`wait_followed`)."""
        self.check_permitted()
        if not self.is_on:
            self._note_end(int(self._record()["lease_ms"]))
        self._set("period_bytes", settings.period_bytes)
        self._set("cost_percent", settings.cost_percent)
        self._lease(settings.lease_s)
        self.tell_python()
        self._set("flags", int(self._record()["flags"]) | self._constant("profile_on"))
        self._announce()

    def tell_python(self) -> None:
        """How samples find functions of Python, where the process has an interpreter of a known kind."""
        from hakmem.target.python_recipe import WORDS, UnknownPythonError, recipe_of

        with suppress(UnknownPythonError):
            if found := recipe_of(self.target):
                for name, word in reversed(list(zip(WORDS, found.words, strict=True))):
                    self._set(f"python_{name}", word)

    def _lease(self, lease_s: float) -> None:
        end_ms = monotonic_ms(self._process.memory_id) + int(lease_s * MS_PER_S) if lease_s else 0
        self._set("lease_ms", end_ms)

    def renew(self, lease_s: float) -> None:
        """The lease ends `lease_s` from now; 0: never. Threads that saw it end are asked to continue."""
        now_ms, end_ms = monotonic_ms(self._process.memory_id), int(self._record()["lease_ms"])
        self._lease(lease_s)
        self.tell_python()  # an interpreter may have been loaded since
        if end_ms and end_ms <= now_ms + RENEWAL_MS:
            self._announce()

    def off(self) -> None:
        self._set("flags", 0)
        self._note_end(monotonic_ms(self._process.memory_id))
        self._announce()

    def _note_end(self, ended_ms: int) -> None:
        """As the first thread that looks would note it: until then the next profile would be the same one."""
        if read_state(self.target)["status"] == self._constant("profile_is_on"):
            self._set("ended_ms", ended_ms, STATE)
            self._set("status", self._constant("profile_is_off"), STATE)

    @property
    def is_traced(self) -> bool:
        self.target.schema.need(CONTROL, "trace_lease_ms")
        return int(self._record()["trace_lease_ms"]) > monotonic_ms(self._process.memory_id)

    def trace(self, lease_s: float) -> None:
        """Records all allocations and frees for this time from now; 0 ends that.  Threads follow at their
        next calls; one that records already sees a new lease by itself."""
        self.check_permitted()
        now_ms, before_ms = monotonic_ms(self._process.memory_id), int(self._record()["trace_lease_ms"])
        self._set("trace_lease_ms", now_ms + int(lease_s * MS_PER_S) if lease_s else 0)
        if not lease_s or before_ms <= now_ms + RENEWAL_MS:
            self._announce()

    def keep_lives(self, is_on: bool) -> None:
        """Whether samples that are freed are kept in the process's log (src/profile/lives.h)."""
        bit, flags = self._constant("profile_lives"), int(self._record()["flags"])
        self._set("flags", flags | bit if is_on else flags & ~bit)

    def write_number(self, address: int, value: int) -> None:
        """Into a field of 8 bytes that the library has marked as writable."""
        self._write(value.to_bytes(8, sys.byteorder), address)

    def purge(self) -> int:
        """Asks the process to give free memory back; returns the request's number for `purges_done`."""
        number = (int(self._record()["purge_request"]) + 1) & 0xFF or 1
        self._set("purge_request", number)
        self._announce()
        return number

    # ---- what came of it ------------------------------------------------------------------------------

    @property
    def is_on(self) -> bool:
        return is_asked_for(self.target, monotonic_ms(self._process.memory_id))

    def check_permitted(self) -> None:
        if read_state(self.target)["status"] == self._constant("profile_is_refused"):
            raise HakmemError(
                f"process {self.target.pid} refuses heap profiles: it was started with HAKMEM_PROFILE=never; "
                "start it again without that"
            )

    def followed(self) -> Followed:
        """Which running threads have seen the last change."""
        heaps = heap_addresses(self.target.memory, self.target.schema)
        # The starter heap has no thread, and never follows; the first thread's number is not asked for.
        has_thread = self._column(heaps, "thread_id") != 0
        has_thread |= self._column(heaps, "owner", "number") == FIRST_HEAP_NUMBER
        state = self._column(heaps, "owner", "state")
        is_running = (state == self.target.schema.constant("owner_running")) & has_thread
        seen = self._column(heaps, "profile_generation") == self._record()["generation"]
        return Followed(int(is_running.sum()), int((is_running & seen).sum()))

    def _column(self, heaps: Words, *path: str) -> Records:
        return heap_column(self.target.memory, self.target.schema, heaps, *path)

    def wait_followed(self, patience_s: float = PATIENCE_S) -> Followed:
        """Waits until all running threads have, for this time at most: a thread that does not allocate
        follows later. Those that have not are poked again: they may have been in the middle of another call
        of theirs."""

        def is_all() -> bool:
            if self.followed().is_all:
                return True
            self._poke()
            return False

        self._wait(is_all, patience_s)
        return self.followed()

    def wait_purged(self, number: int, patience_s: float) -> bool:
        """False if no thread has come to it by then: none allocates or frees."""
        return self._wait(lambda: int(read_state(self.target)["purges_done"]) & 0xFF == number, patience_s)

    @property
    def is_stopped(self) -> bool:
        """Stopped by a signal or a debugger: a request is carried out when the process goes on."""
        return self._process.state in STOPPED

    # ---- bytes ----------------------------------------------------------------------------------------

    def _announce(self) -> None:
        """The generation, and a byte in each heap, for threads that only hit their magazines.

        Never 0, which a heap begins with, nor what a sleeping thread saw last: they would not look.
        """
        heaps = heap_addresses(self.target.memory, self.target.schema)
        seen = {0, *self._column(heaps, "profile_generation").tolist()}
        now = int(self._record()["generation"])
        following = [(now + step) & 0xFF for step in range(1, 256)]
        self._set("generation", next((one for one in following if one not in seen), following[0] or 1))
        self._poke()

    def _poke(self) -> None:
        schema = self.target.schema
        schema.need("heap", "poke")
        place, value = schema.records["heap"].fields["poke"], schema.constant("heap_poke")
        addresses = heap_addresses(self.target.memory, schema)
        running = [schema.constant("owner_running"), schema.constant("owner_dormant")]
        wanted = addresses[np.isin(self._column(addresses, "owner", "state"), running)]
        self._write(bytes([value]), *(wanted + np.uint64(place.offset)).tolist())

    def _record(self) -> np.void:
        return self.target.schema.structure(self.target.memory, CONTROL)

    def _set(self, name: str, value: int, record: str = CONTROL) -> None:
        schema = self.target.schema
        field = schema.records[record].fields[name]
        if field.meta.role != "writable":
            raise HakmemError(f"hakmem in process {self.target.pid} does not permit writing {name}")
        self._write(value.to_bytes(field.element_bytes, sys.byteorder), schema.root(record) + field.offset)

    def _constant(self, name: str) -> int:
        return self.target.schema.constant(name)

    def _write(self, data: bytes, *addresses: int) -> None:
        """Into the memory that the descriptor was opened for, where the library's block still is."""
        try:
            is_there = os.pread(self._file, len(MAGIC), self.target.address) == MAGIC
            # If the memory is gone, each call returns at once with nothing.
            if not is_there or not all(os.pwrite(self._file, data, address) for address in addresses):
                raise ProcessGoneError(
                    f"process {self.target.pid} ended, or runs another program now: nothing was written"
                )
        except OSError as error:
            self.target.check_same()
            if error.errno in (errno.EPERM, errno.EACCES):
                raise refused(self.target.pid) from None
            raise HakmemError(
                f"writing into process {self.target.pid} failed: {error.strerror}; this kernel may forbid it "
                "(proc_mem.force_override=never): start the program with HAKMEM_PROFILE=1 instead"
            ) from None

    def _wait(self, is_so: Callable[[], bool], patience_s: float) -> bool:
        until_s = time.monotonic() + patience_s
        while not is_so():
            if time.monotonic() > until_s:
                return False
            self.target.check_same()
            time.sleep(STEP_S)
        return True


def read_state(target: Target) -> np.void:
    """profile_state, of a process or a core: as the last thread that looked found it."""
    return target.schema.structure(target.memory, STATE)


def is_asked_for(target: Target, now_ms: int) -> bool:
    """Read from the control record, which holds at once: a sleeping thread has not looked at it."""
    control = target.schema.structure(target.memory, CONTROL)
    is_switched_on = int(control["flags"]) & target.schema.constant("profile_on")
    return bool(is_switched_on) and not 0 < int(control["lease_ms"]) <= now_ms


def monotonic_ms(pid: int) -> int:
    """CLOCK_MONOTONIC of a process, which has its own in a time namespace."""
    return (time.clock_gettime_ns(time.CLOCK_MONOTONIC) + monotonic_offset_ns(pid)) // NS_PER_MS


def monotonic_offset_ns(pid: int) -> int:
    """How far the process's CLOCK_MONOTONIC is ahead of the tool's."""
    return _namespace_offset_ns(str(pid)) - _namespace_offset_ns("self")


def _namespace_offset_ns(pid: str) -> int:
    """The offset of the time namespace; 0 without one, or on a kernel without them."""
    with suppress(OSError, ValueError, StopIteration):
        lines = (line.split() for line in Path(f"/proc/{pid}/timens_offsets").read_text().splitlines())
        _, seconds, nanoseconds = next(line for line in lines if line[0] == "monotonic")
        return int(seconds) * 10**9 + int(nanoseconds)
    return 0
