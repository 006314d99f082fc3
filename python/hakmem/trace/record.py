"""Recording a running process: from the switch to the file.

first frame: blocks that are live        on ── drain ── drain ── … ── off ── drain ── resolved, written anew
"""

from __future__ import annotations

import itertools
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.base.signals import Stopped, deferred, stoppable
from hakmem.blocks.block_map import read_block_map
from hakmem.layout.memory import PAGE_BYTES, Words
from hakmem.target.switch import Switch
from hakmem.target.target import Target, open_process
from hakmem.trace.file import Writer, resolved
from hakmem.trace.lives import Lives
from hakmem.trace.memory import Memory, Sampler
from hakmem.trace.rings import Rings
from hakmem.trace.words import Events, Op

LEASE_S = 10.0
RENEW_EVERY_S = 3.0
PAUSE_S = 0.002  # a ring lasts 20 ms at 3 million events a second and thread
SHORT_PAUSE_S, MANY_WORDS = 0.0005, 1 << 13  # of one ring: the next turn may come late
SHOWN_EVERY = 8  # pauses
FOLLOW_S = 0.05  # until busy threads have seen a change
# An event takes some 200 bytes while lives are resolved.
WORDS_MAX = os.sysconf("SC_AVPHYS_PAGES") * PAGE_BYTES // 300

Progress = Callable[[float, int], None]  # seconds, words so far


@dataclass
class Recorded:
    """A trace that was taken."""

    lives: Lives
    end: dict[str, Any]  # the file's last line


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


class Session:
    """The words so far, in memory and in the file."""

    def __init__(self, target: Target, switch: Switch, writer: Writer) -> None:
        self.rings, self._switch, self._writer = Rings(target, switch), switch, writer
        self.memory = Sampler(target)
        self.words: dict[int, list[Words]] = {}
        self.count = 0
        self.ended = ""  # why, before it was to end
        self._renewed_s = time.monotonic()

    def drain(self) -> int:
        """The most words that came of one ring."""
        most = 0
        with deferred():
            for ring, words in self.rings.drain():
                self.words.setdefault(ring, []).append(words)
                self._writer.words(ring, words)
                self.count += len(words)
                most = max(most, len(words))
        return most

    def take_words(self) -> list[Words]:
        """Those of each ring; they are not kept."""
        return [np.concatenate(self.words.pop(ring)) for ring in list(self.words)]

    def run(self, is_over: Callable[[], bool], progress: Progress) -> None:
        """Empties the rings until it is over, and once more."""
        began_s = time.monotonic()
        for turn in itertools.count():
            now_s = time.monotonic()
            if self.count > WORDS_MAX:
                self.ended = "as many events as fit into memory"
            if now_s - self._renewed_s > LEASE_S:
                self.ended = f"the tool did not run for {LEASE_S:.0f} s, which ends a trace"
            is_last = is_over() or bool(self.ended)
            self.rings.find()
            if turn % SHOWN_EVERY == 0:
                progress(now_s - began_s, self.count)
            most = self.drain()
            if (samples := self.memory.look(self.rings.bytes)) is not None:
                self._writer.memory(samples)
            if is_last:
                return
            if now_s - self._renewed_s > RENEW_EVERY_S:
                self._switch.trace(LEASE_S)
                self._renewed_s = now_s
            time.sleep(SHORT_PAUSE_S if most > MANY_WORDS else PAUSE_S)

    def run_for(self, seconds: float, progress: Progress) -> None:
        end_s = time.monotonic() + seconds
        self.run(lambda: time.monotonic() >= end_s, progress)

    def first_frame(self, pid: int, progress: Progress) -> Events:
        """The live blocks, read by another thread: the rings are full after some milliseconds."""
        with ThreadPoolExecutor(1) as pool:
            frame = pool.submit(lambda: _first_frame(open_process(pid)))
            self.run(frame.done, progress)
            return frame.result()


def record(target: Target, path: Path, for_s: float, progress: Progress = lambda *_: None) -> Recorded:
    """Records all events of a process for so long, or until Ctrl-C or its end, into the file."""
    with Switch(target) as switch:
        if switch.is_traced:
            raise HakmemError(f"process {target.pid} is traced by another command: wait until that has ended")
        writer, began_s = Writer(path.with_name(path.name + ".part"), head_of(target)), time.monotonic()
        try:
            session = Session(target, switch, writer)
            before, ended = _record(session, switch, target.pid, began_s + for_s, progress)
            seconds = time.monotonic() - began_s
            lives, lost = resolved(session.take_words(), before)
            memory = Memory.of(session.memory.rows)
            return Recorded(lives, writer.replace_by(path, lives, memory, ended, lost, seconds))
        finally:
            writer.close()


def _record(
    session: Session, switch: Switch, pid: int, end_s: float, progress: Progress
) -> tuple[Events, str]:
    """The blocks that were live at its beginning, and why it ended."""
    before, ended = Events.none(), "duration reached"
    session.rings.find()
    session.rings.skip()
    try:
        with stoppable():
            switch.trace(LEASE_S)
            session.run_for(FOLLOW_S, progress)
            before = session.first_frame(pid, progress)
            session.run_for(end_s - time.monotonic(), progress)
    except Stopped:
        ended = "interrupted"
    except (ProcessGoneError, UnreadableError):
        ended = "the process ended, or runs another program"
    finally:
        with suppress(HakmemError):
            switch.trace(0)
            session.run_for(FOLLOW_S, progress)
            switch.wait_followed(FOLLOW_S)
            session.drain()
            switch.trace(0)  # once more: rings that have been read give their memory back
    return before, session.ended or ended
