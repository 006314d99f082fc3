"""Sampled lives: of one block in many its birth, site, size and thread, and when and where it was freed.

A heap profile draws the blocks (src/profile/sampler.h); the process keeps those that are freed in a log of
4,096 places (src/profile/lives.h), which is read ten times a second.  Blocks that still live are read at the
end.  A block of S bytes is drawn with probability p = 1 - e^(-S/R), and stands for 1/p blocks."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Records
from hakmem.profile.estimate import probabilities
from hakmem.profile.labels import Labels
from hakmem.profile.live import read_profile, read_stacks
from hakmem.profile.model import Profile, Sample, Stack
from hakmem.profile.names import mappings_of
from hakmem.profile.watch import Names
from hakmem.target.switch import NS_PER_MS, STATE, Settings, Switch, monotonic_ms, read_state
from hakmem.target.target import Target
from hakmem.trace.file import Writer, contents
from hakmem.trace.record import LEASE_S, RENEW_EVERY_S, Progress, ended_by, head_of

COLUMNS = {
    "site": "<u4",
    "size": "<u8",  # bytes requested
    "blocks": "<f8",  # that this one stands for
    "born_ns": "<u8",  # since the beginning
    "lived_ns": "<u8",  # until it was freed, or until the end
    "is_freed": "<u1",
    "thread": "<u4",
    "freed_by": "<u4",  # a thread
}
DEPTH_MAX = 32  # frames of a site, from the first that is the program's own
LOG = "life_log"
READ_EVERY_S, NAMES_EVERY_S = 0.1, 5.0


class Log:
    """The process's log of freed samples, read on from where it was."""

    def __init__(self, target: Target) -> None:
        target.schema.need(STATE, LOG)
        self._target, self._log = target, target.schema.dtype(LOG)
        self._next: int | None = None
        self.lost = 0

    def read(self, is_last: bool = False) -> Records:
        """The lives since the last reading; those that are still being written follow with the next."""
        address = int(read_state(self._target)[LOG])
        if not address:
            self._next = 0
            return np.empty(0, self._log["lives"].base)
        log = self._target.memory.array(address, self._log, 1)[0]  # `taken` first
        taken, room = int(log["taken"]), len(log["lives"])
        if self._next is None:  # an earlier recording has left these
            self._next = taken
        numbers = np.arange(max(self._next, taken - room), taken)
        found = log["lives"][numbers % room]
        is_whole = found["turn"] == (numbers + 1).astype(np.uint64)
        now = self._target.memory.word(address + self._target.schema.offset(LOG, "taken"))
        is_whole &= numbers > now - room  # not overwritten meanwhile
        if not is_last and not is_whole.all():  # wait for it for half a round
            young = np.flatnonzero(~is_whole & (numbers > taken - room // 2))
            if young.size:
                numbers, found, is_whole = (each[: young[0]] for each in (numbers, found, is_whole))
        end = int(numbers[-1]) + 1 if len(numbers) else self._next
        self.lost += end - self._next - int(is_whole.sum())
        self._next = end
        return np.asarray(found[is_whole])


@dataclass
class _Session:
    """A recording: lives go to the file as they come, sites when they have names."""

    target: Target
    writer: Writer
    log: Log
    names: Names
    began_ns: int
    count: int = 0
    sites: dict[Stack, int] = field(default_factory=dict)  # their numbers in the file
    _stacks: dict[int, Stack] = field(default_factory=dict)  # by the process's numbers
    _named: set[Stack] = field(default_factory=set)

    def read(self, *, is_last: bool = False) -> None:
        rows = self.log.read(is_last)
        sample = rows["sample"]
        rows, sample = (each[sample["born_ns"] >= self.began_ns] for each in (rows, sample))
        if not len(rows):
            return
        if not set(sample["site"].tolist()) <= self._stacks.keys():
            self._stacks = read_stacks(self.target)
        sizes, periods = (sample[name].astype(np.float64) for name in ("block_bytes", "period_bytes"))
        self._write(
            site=[self._site(self._stacks.get(number, ())) for number in sample["site"].tolist()],
            size=sample["requested_bytes"],
            blocks=2.0 ** rows["halvings"].astype(np.float64) / probabilities(sizes, periods),
            born_ns=sample["born_ns"] - np.uint64(self.began_ns),
            lived_ns=rows["lived_ns"],
            is_freed=np.ones(len(rows)),
            thread=sample["thread_id"],
            freed_by=rows["thread_id"],
        )

    def read_living(self) -> None:
        """The samples that were born since the beginning, and live."""
        now_ns = monotonic_ms(self.target.pid) * NS_PER_MS
        profile = read_profile(self.target, with_counts=False)
        rows = [
            (self._site(one.stack), one.requested_bytes, one.weight_blocks, at - self.began_ns,
             max(0, now_ns - at), 0, one.thread_id, 0)
            for at, one in zip(profile.births_ns, profile.samples, strict=True)
            if at >= self.began_ns
        ]  # fmt: skip
        self._write(**dict(zip(COLUMNS, np.array(rows).reshape(-1, len(COLUMNS)).T, strict=True)))

    def write_names(self, *, is_last: bool = False) -> None:
        """Names are looked up in the background until the end."""
        new = [stack for stack in self.sites if stack not in self._named]
        if not new:
            return
        profile = Profile(mappings=mappings_of(self.target.maps(), self.target.file_of))
        profile.samples = [Sample(stack, 0, 0, 0, 0.0, 1.0) for stack in new]
        (self.names.find if is_last else self.names.find_soon)(profile)
        self.names.use(profile)
        named = [stack for stack in new if is_last or all(at in profile.names for at in stack)]
        labels = Labels(profile)
        texts = {
            str(self.sites[stack]): [[*vars(one).values()] for one in labels.site(stack, DEPTH_MAX)]
            for stack in named
        }
        self._named.update(named)
        if texts:
            self.writer.line({"sites": texts})

    def _site(self, stack: Stack) -> int:
        return self.sites.setdefault(stack, len(self.sites))

    def _write(self, **columns: Any) -> None:  # noqa: ANN401 - lists and arrays of numbers
        self.count += len(columns["site"])
        self.writer.table("lives", {n: np.asarray(columns[n]).astype(COLUMNS[n]) for n in COLUMNS})


def record_sampled(
    target: Target, path: Path, for_s: float, progress: Progress, period_bytes: int = 0
) -> dict[str, Any]:
    """Records for this time, or until Ctrl-C or the process's end.  Returns the file's last line.
    `period_bytes`: R; 0: as a profile adapts it."""
    assert target.process is not None
    log = Log(target)
    with Switch(target) as switch:
        was_on = switch.is_on
        writer = Writer(path, {**head_of(target), "sampled": True})
        session = _Session(target, writer, log, Names(target.process), monotonic_ms(target.pid) * NS_PER_MS)
        began_s = time.monotonic()
        try:
            log.read()
            if not was_on:
                switch.on(Settings(period_bytes, lease_s=LEASE_S))
            switch.keep_lives(True)
            ended = ended_by(lambda: _run(session, None if was_on else switch, began_s + for_s, progress))
        finally:
            with suppress(HakmemError):
                session.read(is_last=True)
                session.read_living()
                switch.keep_lives(False)
                if not was_on:
                    switch.off()
            with suppress(HakmemError):
                session.write_names(is_last=True)
        end = {"end": ended, "seconds": round(time.monotonic() - began_s, 3), "lost": log.lost}
        writer.line(end)
        writer.close()
        return end | {"lives": session.count}


def _run(session: _Session, switch: Switch | None, end_s: float, progress: Progress) -> None:
    began_s = named_s = renewed_s = time.monotonic()
    while (now_s := time.monotonic()) < end_s:
        session.read()
        progress(now_s - began_s, session.count)
        if now_s - named_s > NAMES_EVERY_S:
            session.write_names()
            named_s = now_s
        if switch is not None and now_s - renewed_s > RENEW_EVERY_S:
            switch.renew(LEASE_S)
            renewed_s = now_s
        time.sleep(min(READ_EVERY_S, max(0.0, end_s - time.monotonic())))


# ---- reading ----------------------------------------------------------------------------------------


@dataclass
class SampledLives:
    head: dict[str, Any]
    columns: dict[str, Records]  # COLUMNS
    sites: dict[int, list[tuple[str, str, int]]]  # innermost first; without those that got no names
    end: dict[str, Any] | None  # None: it was cut off
    lost: int


def read_sampled(path: Path) -> SampledLives:
    """HakmemError if it is not a trace."""
    found = contents(path, COLUMNS)
    sites = {
        int(number): [(function, file, int(line)) for function, file, line in rows]
        for names in found.all("sites")
        for number, rows in names.items()
    }
    return SampledLives(found.head, found.columns, sites, found.end, (found.end or {}).get("lost", 0))
