"""Recording a running process: from the switch to the file.

first frame: blocks that are live        on ── drain ── drain ── … ── off ── drain ── resolved, written anew
"""

from __future__ import annotations

import itertools
import platform
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.signals import Stopped, stoppable
from hakmem.blocks.block_map import read_block_map
from hakmem.layout.memory import Words
from hakmem.target.switch import Switch
from hakmem.target.target import Target
from hakmem.trace.file import Writer, resolved
from hakmem.trace.lives import Lives
from hakmem.trace.rings import Rings
from hakmem.trace.words import Events, Op

LEASE_S = 10.0
RENEW_EVERY_S = 3.0
PAUSE_S = 0.002  # a ring lasts 10 ms at 3 million events a second and thread
FIND_EVERY = 8  # pauses
FOLLOW_S = 0.05  # until busy threads have seen a change

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
    events = Events.none()
    events.addresses, events.sizes = found.starts_of(live), found.sizes_of(live).astype(np.uint64)
    events.ops = np.full(len(live), Op.LIVE, np.int8)
    events.alignments = np.zeros(len(live), np.uint8)
    events.threads = events.times_ns = np.zeros(len(live), np.int64)
    return events


def _head_of(target: Target) -> dict[str, Any]:
    assert target.process is not None
    return {
        "pid": target.pid,
        "command": target.process.command,
        "hakmem": target.schema.version,
        "machine": platform.machine(),
        "began": datetime.now(UTC).isoformat(timespec="seconds"),
    }


class _Session:
    """The words so far, in memory and in the file."""

    def __init__(self, target: Target, switch: Switch, writer: Writer) -> None:
        self.rings, self._switch, self._writer = Rings(target, switch), switch, writer
        self.words: dict[int, list[Words]] = {}
        self.count = 0

    def drain(self) -> None:
        for ring, words in self.rings.drain():
            self.words.setdefault(ring, []).append(words)
            self._writer.words(ring, words)
            self.count += len(words)

    def run_until(self, end_s: float, progress: Progress) -> None:
        began_s = renewed_s = now_s = time.monotonic()
        for turn in itertools.count():
            if turn % FIND_EVERY == 0:
                self.rings.find()
                progress(now_s - began_s, self.count)
            self.drain()
            now_s = time.monotonic()
            if now_s >= end_s:
                return
            if now_s - renewed_s > RENEW_EVERY_S:
                self._switch.trace(LEASE_S)
                renewed_s = now_s
            time.sleep(PAUSE_S)


def record(target: Target, path: Path, for_s: float, progress: Progress = lambda *_: None) -> Recorded:
    """Records all events of a process for so long, or until Ctrl-C or its end, into the file."""
    head, part = _head_of(target), path.with_name(path.name + ".part")
    writer = Writer(part, head)
    before, ended = Events.none(), "duration reached"
    with Switch(target) as switch:
        session = _Session(target, switch, writer)
        session.rings.find()
        session.rings.skip()
        began_s = time.monotonic()
        try:
            with stoppable():
                switch.trace(LEASE_S)
                session.run_until(began_s + FOLLOW_S, progress)
                before = _first_frame(target)
                session.run_until(began_s + for_s, progress)
        except Stopped:
            ended = "interrupted"
        except ProcessGoneError:
            ended = "the process ended"
        with suppress(HakmemError):
            switch.trace(0)
            session.run_until(time.monotonic() + FOLLOW_S, progress)
    words = [np.concatenate(parts) for parts in session.words.values()]
    lives, lost = resolved(words, before)
    end = writer.replace_by(lives, ended, lost, time.monotonic() - began_s)
    part.replace(path)
    return Recorded(lives, end)
