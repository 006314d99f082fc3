"""Recording a running process: from the switch to the file.

frame: blocks that are live        on ── drain ── drain ── … ── off ── drain ── resolved, written anew

Words go to the file as they come, and from there to the file of events: both take memory for the blocks that
live, not for those that were.
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.base.signals import Stopped, deferred, stoppable
from hakmem.base.sizes import bytes_text, count_text
from hakmem.blocks.block_map import read_block_map
from hakmem.target.switch import Switch, monotonic_offset_ns
from hakmem.target.target import Target, open_process
from hakmem.trace.file import Trace, Writer, pieces_of, read, write
from hakmem.trace.lives import Frame, Lives
from hakmem.trace.memory import Sampler
from hakmem.trace.resolving import Resolver
from hakmem.trace.rings import Rings

BLOCKS_AT_ONCE = 1 << 16
LEASE_S = 10.0
RENEW_EVERY_S = 3.0
PAUSE_S = 0.002  # a ring lasts 20 ms at 3 million events a second and thread
FEW_WORDS = 1 << 10  # of one ring in a turn
SHORT_PAUSE_S, MANY_WORDS = 0.0005, 1 << 13  # of one ring: the next turn may come late
SHOWN_EVERY = 8  # pauses
URGENT = -10  # a nice value
FOLLOW_S = 0.05  # until busy threads have seen a change
MAX_BYTES = 1 << 30  # of the file while it is recorded: some 200 million events

Progress = Callable[[float, int], None]  # seconds; words, or sampled lives, so far
# A bar with its title, for a number of seconds or for a share; it is advanced to what is done.
Bar = Callable[[str, float | None], AbstractContextManager[Callable[..., None]]]


def _frame_of(target: Target) -> Frame:
    """The blocks that are live now, by the sizes of their classes."""
    found = read_block_map(target)
    live = found.live_blocks()
    frame = Frame(np.empty(len(live), np.uint64), np.empty(len(live), np.uint64))
    for start in range(0, len(live), BLOCKS_AT_ONCE):
        part = slice(start, start + BLOCKS_AT_ONCE)
        frame.addresses[part], frame.sizes[part] = found.starts_of(live[part]), found.sizes_of(live[part])
    return frame


def head_of(target: Target) -> dict[str, Any]:
    assert target.process is not None
    return {
        "pid": target.pid,
        "command": target.process.command,
        "hakmem": target.schema.version,
        "machine": platform.machine(),
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@contextmanager
def _urgent() -> Iterator[None]:
    """Raises this thread's priority where it may: on a busy machine rings fill up before its turn."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, URGENT))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


class Session:
    """A recording: its words are in the file."""

    def __init__(
        self, target: Target, switch: Switch, path: Path, pid: int, max_bytes: int = MAX_BYTES
    ) -> None:
        """`pid`: the program's; the target may be its keeper."""
        assert target.process is not None
        self.rings, self._switch = Rings(target, switch), switch
        self.memory = Sampler(target)
        self._head = head_of(target) | {"pid": pid}
        self.writer = Writer(path.with_name(path.name + ".part"), self._head)
        self.count = 0  # words
        self.counted: dict[str, int] = {}
        self.ended = ""  # why, before it was to end
        self.seconds = 0.0
        self._max_bytes, self._offset_ns = max_bytes, monotonic_offset_ns(target.process.memory_id)
        self._began_s = self._renewed_s = time.monotonic()
        self._frame, self._frame_read_ns = Frame(), 0

    def drain(self) -> int:
        """Reads all rings.  Returns the most words that came of one."""
        most, turn_ns = 0, self._now_ns()
        self.rings.find()
        with deferred():
            for ring, words in self.rings.drain():
                if not most:
                    self.writer.line({"turn": turn_ns})
                self.writer.words(ring, words)
                self.count += len(words)
                most = max(most, len(words))
        return most

    def _now_ns(self) -> int:
        """As the process's clock has it."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC) + self._offset_ns

    @_urgent()
    def run(self, is_over: Callable[[], bool], progress: Progress) -> None:
        """Empties the rings until the recording is over, and once more."""
        for turn in itertools.count():
            now_s = time.monotonic()
            self.seconds = now_s - self._began_s
            if self.writer.bytes > self._max_bytes:
                self.ended = f"the recording reached {bytes_text(self._max_bytes)} (--max-size)"
            if now_s - self._renewed_s > LEASE_S:
                self.ended = f"the tool did not run for {LEASE_S:.0f} s, which ends a trace"
            is_last = is_over() or bool(self.ended)
            if turn % SHOWN_EVERY == 0:
                progress(self.seconds, self.count)
            most = self.drain()
            if (samples := self.memory.look(self.rings.bytes, most < FEW_WORDS)) is not None:
                self.writer.memory(samples)
            if is_last:
                return
            if now_s - self._renewed_s > RENEW_EVERY_S:
                self._switch.trace(LEASE_S)
                self._renewed_s = now_s
            time.sleep(SHORT_PAUSE_S if most > MANY_WORDS else PAUSE_S)

    def run_until(self, end_s: float, progress: Progress) -> None:
        self.run(lambda: time.monotonic() >= end_s, progress)

    def read_frame(self, pid: int, progress: Progress) -> None:
        """The live blocks, read by another thread: the rings are full after some milliseconds."""
        with ThreadPoolExecutor(1) as pool:
            frame = pool.submit(lambda: (_frame_of(open_process(pid)), self._now_ns()))
            self.run(frame.done, progress)
            self._frame, self._frame_read_ns = frame.result()

    def write(self, path: Path, why: str, progress: Callable[[float], None]) -> dict[str, Any]:
        """A file of events, in place of the one of words.  Returns its last line, with the number of events.
        `progress`: gets the share of the words that are done."""
        self.writer.memory(self.memory.memory())
        part = self.writer.path
        resolver = Resolver(lambda: pieces_of(part), self._frame, self._frame_read_ns)
        head = self._head | {"libraries": self.memory.libraries}

        def lives() -> Iterator[Lives]:
            yield from resolver.lives(lambda done: progress(done / max(1, self.count)))
            trace.end = {"end": self.ended or why, "seconds": round(self.seconds, 3), "lost": resolver.lost,
                         "exchanged": resolver.exchanged, "unseen_frees": resolver.unseen_frees,
                         "unknown_frees": resolver.unknown_frees, **self.counted}  # fmt: skip

        trace = Trace(head, lives, 0, None, read(part).memory)
        events = write(path, trace, f"{part} has the events")
        self.writer.drop()  # not before: the words stay if the disk is full
        return {**(trace.end or {}), "events": events}


def ended_by(run: Callable[[], None]) -> str:
    """Runs it to its end, or that of the process, or Ctrl-C.  Returns which."""
    try:
        with stoppable():
            run()
    except Stopped:
        return "interrupted"
    except (ProcessGoneError, UnreadableError):
        return "the process ended, or runs another program"
    return "duration reached"


def record(target: Target, path: Path, for_s: float, bar: Bar, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Records all events of a process for this time, or until Ctrl-C or its end, into the file.  Returns its
    last line, with the number of events."""
    end_s = time.monotonic() + for_s
    with Switch(target) as switch:
        if switch.is_traced:
            raise HakmemError(f"process {target.pid} is traced by another command: wait until that has ended")
        session = Session(target, switch, path, target.pid, max_bytes)

        def run() -> None:
            with bar(f"recording process {target.pid}", for_s) as advance:
                progress = lambda seconds, words: advance(seconds, f"{count_text(words)} words")  # noqa: E731
                switch.trace(LEASE_S)
                session.run_until(time.monotonic() + FOLLOW_S, progress)
                session.read_frame(target.pid, progress)
                session.run_until(end_s, progress)

        try:
            session.rings.find()
            session.rings.skip()
            try:
                ended = ended_by(run)
            finally:
                with suppress(HakmemError):
                    switch.trace(0)
                    session.run_until(time.monotonic() + FOLLOW_S, lambda *_: None)
                    switch.wait_followed(FOLLOW_S)
                    session.drain()
                    session.counted = session.memory.counted()
                    switch.trace(0)  # once more: rings that have been read give their memory back
            with bar(f"writing {path.name}", None) as advance:
                return session.write(path, ended, advance)
        finally:
            session.writer.close()
