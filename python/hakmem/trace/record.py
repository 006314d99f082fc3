"""Recording a running process: from the switch to the file.

first frame: blocks that are live        on ── drain ── drain ── … ── off ── drain ── resolved, written anew
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.base.signals import Stopped, deferred, stoppable
from hakmem.blocks.block_map import read_block_map
from hakmem.layout.memory import PAGE_BYTES, Numbers
from hakmem.target.switch import Switch
from hakmem.target.target import Target, open_process
from hakmem.trace.file import Trace, Writer, resolved, write
from hakmem.trace.memory import Sampler
from hakmem.trace.rings import Rings
from hakmem.trace.words import Events, Op

LEASE_S = 10.0
RENEW_EVERY_S = 3.0
PAUSE_S = 0.002  # a ring lasts 20 ms at 3 million events a second and thread
FEW_WORDS = 1 << 10  # of one ring in a turn
SHORT_PAUSE_S, MANY_WORDS = 0.0005, 1 << 13  # of one ring: the next turn may come late
SHOWN_EVERY = 8  # pauses
URGENT = -10  # a nice value
FOLLOW_S = 0.05  # until busy threads have seen a change
# An event takes some 200 bytes while lives are resolved.
WORDS_MAX = os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES // 300

Progress = Callable[[float, int], None]  # seconds; words, or sampled lives, so far


def _first_frame(target: Target) -> Events:
    """The blocks that are live now, by the sizes of their classes; of no thread."""
    found = read_block_map(target)
    live = found.live_blocks()
    zeros = np.zeros(len(live), np.int64)
    starts, sizes = found.starts_of(live), found.sizes_of(live).astype(np.uint64)
    ops, alignments = np.full(len(live), Op.LIVE, np.int8), np.zeros(len(live), np.uint8)
    return Events(ops, starts, sizes, alignments, zeros, zeros)


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
    """This thread runs before others, where it may: on a busy machine rings are full before its turn."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, min(before, URGENT))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


class Session:
    """The words so far, in memory and in the file."""

    def __init__(self, target: Target, switch: Switch, path: Path, pid: int) -> None:
        """`pid`: the program's; the target may be its keeper."""
        self.rings, self._switch = Rings(target, switch), switch
        self.memory = Sampler(target)
        self._head = head_of(target) | {"pid": pid}
        self.writer = Writer(path.with_name(path.name + ".part"), self._head)
        self.words: dict[int, list[Numbers]] = {}
        self.count = 0
        self.counted: dict[str, int] = {}
        self.ended = ""  # why, before it was to end
        self.seconds = 0.0
        self._began_s = self._renewed_s = time.monotonic()

    def drain(self) -> int:
        """The most words that came of one ring."""
        most = 0
        with deferred():
            for ring, words in self.rings.drain():
                self.words.setdefault(ring, []).append(words)
                self.writer.words(ring, words)
                self.count += len(words)
                most = max(most, len(words))
        return most

    @_urgent()
    def run(self, is_over: Callable[[], bool], progress: Progress) -> None:
        """Empties the rings until it is over, and once more."""
        for turn in itertools.count():
            now_s = time.monotonic()
            self.seconds = now_s - self._began_s
            if self.count > WORDS_MAX:
                self.ended = "as many events as fit into memory"
            if now_s - self._renewed_s > LEASE_S:
                self.ended = f"the tool did not run for {LEASE_S:.0f} s, which ends a trace"
            is_last = is_over() or bool(self.ended)
            self.rings.find()
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

    def first_frame(self, pid: int, progress: Progress) -> Events:
        """The live blocks, read by another thread: the rings are full after some milliseconds."""
        with ThreadPoolExecutor(1) as pool:
            frame = pool.submit(lambda: _first_frame(open_process(pid)))
            self.run(frame.done, progress)
            return frame.result()

    def write(self, path: Path, why: str, before: Events | None = None) -> Trace:
        """A file of events, in place of the one of words.  `before`: blocks that were live already."""
        # They are not kept.
        lives, lost = resolved([np.concatenate(self.words.pop(ring)) for ring in list(self.words)], before)
        end = {"end": self.ended or why, "seconds": round(self.seconds, 3), "lost": lost,
               "exchanged": lives.exchanged, "unseen_frees": lives.unseen_frees,
               "unknown_frees": lives.unknown_frees, **self.counted}  # fmt: skip
        trace = Trace(
            self._head | {"libraries": self.memory.libraries}, lives, lost, end, self.memory.memory()
        )
        write(path, trace, f"{self.writer.path} has the events")
        self.writer.drop()  # not before: the words stay if the disk is full
        return trace


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


def record(target: Target, path: Path, for_s: float, progress: Progress = lambda *_: None) -> Trace:
    """Records all events of a process for so long, or until Ctrl-C or its end, into the file."""
    end_s = time.monotonic() + for_s
    with Switch(target) as switch:
        if switch.is_traced:
            raise HakmemError(f"process {target.pid} is traced by another command: wait until that has ended")
        session, before = Session(target, switch, path, target.pid), Events.none()

        def run() -> None:
            nonlocal before
            switch.trace(LEASE_S)
            session.run_until(time.monotonic() + FOLLOW_S, progress)
            before = session.first_frame(target.pid, progress)
            session.run_until(end_s, progress)

        try:
            session.rings.find()
            session.rings.skip()
            try:
                ended = ended_by(run)
            finally:
                with suppress(HakmemError):
                    switch.trace(0)
                    session.run_until(time.monotonic() + FOLLOW_S, progress)
                    switch.wait_followed(FOLLOW_S)
                    session.drain()
                    session.counted = session.memory.counted()
                    switch.trace(0)  # once more: rings that have been read give their memory back
            return session.write(path, ended, before)
        finally:
            session.writer.close()
