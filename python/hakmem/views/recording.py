"""A recording: snapshots at a steady interval, and their file, one line each.

    run.json   {"format": "hakmem-run", "format_version": 2, "pid": …, "command": …, "version": …,
                "every_s": …, "began_s": …, "meta": {counter: unit, role, meaning}}
               a snapshot, as `hakmem stat --json` has it
               …
               {"ended": "why it ended"}

Lines may carry readings of a heap profile, too: recording_sites.py.

Each line is written as soon as its snapshot exists, so an interruption (SIGKILL, a full disk, a power
failure) loses at most the current line; a file without the last line was interrupted.

A full snapshot walks all slabs, a quick one does not.  In a process so large that the walk would take more
than a tenth of the time, most samples are quick ones: recording must not slow the process down."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from hakmem import __version__
from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.base.files import Output
from hakmem.base.signals import Stopped, stoppable
from hakmem.base.sizes import bytes_text, counted
from hakmem.base.validity import UNFIT, built, check_format, undamaged, what_is_wrong
from hakmem.census.figures import Snapshot, ThreadFigures
from hakmem.census.heap_figures import few_heaps
from hakmem.census.snapshot import take
from hakmem.layout.schema import FieldMeta
from hakmem.profile.json_format import RECORDING_NAME
from hakmem.target.target import Target
from hakmem.views.recording_sites import SiteHistory, SiteRecorder

FORMAT_NAME = RECORDING_NAME
FORMAT_VERSION = 2
WALK_SHARE_MAX = 0.1
THREADS_KEPT = 64
HEAPS_KEPT = 20
OTHERS_NAME = "other threads"
LINE_BYTES_MAX = 1 << 30
HEADER_NAMES = ("pid", "command", "version", "every_s", "began_s")

ENDED_IN_TIME = "duration reached"
ENDED_BY_USER = "stopped by the user"
ENDED_WITH_PROCESS = "the process ended"
ENDED_CUT = "the recorder was killed, or the disk was full"


@dataclass
class Recording:
    pid: int
    command: list[str]
    version: str
    every_s: float
    began_s: float
    ended: str = ENDED_CUT
    meta: dict[str, FieldMeta] = field(default_factory=dict)
    samples: list[Snapshot] = field(default_factory=list)
    sites: SiteHistory = field(default_factory=SiteHistory)

    @classmethod
    def of(cls, target: Target, every_s: float) -> Recording:
        return cls(
            pid=target.pid,
            command=target.command,
            version=target.schema.version,
            every_s=every_s,
            began_s=time.time(),
            meta=target.schema.counter_meta,
        )

    def header(self) -> dict[str, Any]:
        """The first line."""
        return {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "tool_version": __version__,
            **{name: getattr(self, name) for name in HEADER_NAMES},
            "meta": {name: asdict(meta) for name, meta in self.meta.items()},
        }

    @classmethod
    def read(cls, path: Path) -> Recording:
        """As far as it was written; HakmemError if it is damaged, or not a recording."""
        if str(path) == "-":
            return Reader("standard input", sys.stdin.buffer).read()
        try:
            with path.open("rb") as file:
                return Reader(str(path), file).read()
        except OSError as error:
            raise HakmemError(f"cannot read {path}: {error.strerror}") from None


def line(value: Mapping[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":")) + "\n"


@dataclass
class Reader:
    _name: str
    _file: BinaryIO

    def read(self) -> Recording:
        begin: bytes = self._file.peek(1)[:1]  # type: ignore[attr-defined]
        header = parsed(self._file.readline(LINE_BYTES_MAX)) if begin in (b"{", b"[", b'"', b" ") else None
        if header is None:
            self._is_none("is not JSON")
        if not isinstance(header, dict) or header.get("format") != FORMAT_NAME:
            self._is_none("is not a recording")
        check_format(header, self._name, FORMAT_VERSION)
        with undamaged(self._name):
            recording = built(Recording, {name: header[name] for name in (*HEADER_NAMES, "meta")})
        self._read_samples(recording)
        return recording

    def _read_samples(self, recording: Recording) -> None:
        """To the end, or to the line that was being written when the recorder was killed."""
        number = 1
        while text := self._file.readline(LINE_BYTES_MAX):
            number += 1
            data = parsed(text)
            if data is None or not text.endswith(b"\n"):
                if self._file.readline(1):
                    self._damaged(number, "not JSON")
                return
            if not isinstance(data, dict):
                self._damaged(number, "not a sample")
            try:
                recording.sites.read(data)
                if "ended" in data:
                    recording.ended = built(str, data["ended"], "ended")
                    if self._file.readline(1):
                        self._damaged(number + 1, "data after the end")
                    return
                recording.samples.append(built(Snapshot, data))
            except UNFIT as error:
                self._damaged(number, what_is_wrong(error))

    def _damaged(self, number: int, why: str) -> NoReturn:
        raise HakmemError(
            f"{self._name} is damaged in line {number}: {why}. To keep the lines before it: "
            f"head -n {number - 1} {self._name} > whole.json"
        )

    def _is_none(self, what: str) -> NoReturn:
        raise HakmemError(f"{self._name} {what}; use a file from `hakmem record`")


def parsed(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """None for anything but JSON; refuses NaN, which Python accepts as a number."""
    try:
        return json.loads(text, parse_constant=not_a_number)
    except (ValueError, RecursionError):
        return None


def not_a_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def bounded(sample: Snapshot) -> Snapshot:
    """The threads that cache most, the heaps that hold most, and one row for all others: files stay small."""
    return replace(with_few_threads(sample), heaps=few_heaps(sample.heaps, HEAPS_KEPT))


def with_few_threads(sample: Snapshot) -> Snapshot:
    if len(sample.threads) <= THREADS_KEPT:
        return sample
    by_cache = sorted(sample.threads, key=lambda thread: thread.cached_bytes, reverse=True)
    kept, rest = by_cache[: THREADS_KEPT - 1], by_cache[THREADS_KEPT - 1 :]
    tiers = {tier for thread in rest for tier in thread.magazine_bytes}
    sums = ("quarantine_bytes", "bytes_out", "slow_paths")
    others = ThreadFigures(
        number=0,
        thread_id=0,
        name=f"{len(rest)} {OTHERS_NAME}",
        state="running",
        magazine_bytes={tier: sum(t.magazine_bytes.get(tier, 0) for t in rest) for tier in sorted(tiers)},
        **{name: sum(getattr(thread, name) for thread in rest) for name in sums},
    )
    return replace(sample, threads=[*kept, others])


@dataclass
class Pace:
    """Chooses between full and quick snapshots, so that walks take at most a tenth of the time."""

    next_walk_s: float = 0.0

    def take(self, target: Target) -> Snapshot:
        began_s = time.monotonic()
        if began_s < self.next_walk_s:
            return take(target, detail="counters")
        snapshot = take(target)
        ended_s = time.monotonic()
        self.next_walk_s = began_s + (ended_s - began_s) / WALK_SHARE_MAX
        return snapshot


def samples(target: Target, every_s: float, for_s: float) -> Iterator[Snapshot]:
    """Snapshots at a steady interval, the first at once; ends after `for_s`.  A moment that was missed
    because the machine was busy is skipped, not caught up."""
    pace = Pace()
    began_s = time.monotonic()
    due_s = began_s
    while due_s <= began_s + for_s:
        time.sleep(max(0.0, due_s - time.monotonic()))
        yield pace.take(target)
        missed = int((time.monotonic() - due_s) / every_s)
        due_s += every_s * (1 + missed)


@dataclass(frozen=True)
class Recorded:
    samples: int
    seconds: float
    ended: str
    stopped_by: int | None = None  # a signal's number


def record(
    target: Target,
    every_s: float,
    for_s: float,
    output: Output,
    progress: Callable[[float, str], None],
    sites: SiteRecorder | None = None,
) -> Recorded:
    """Records until the duration is reached, the process ends, or a signal arrives; each sample is written, a
    piece of its own, as soon as it is taken.  If the end comes before the first sample, nothing is written,
    and the reason is raised."""
    header = line(Recording.of(target, every_s).header())
    why, stopped_by, first_s, last_s = ENDED_IN_TIME, None, 0.0, 0.0
    try:
        with stoppable():
            for sample in samples(target, every_s, for_s):
                text = line({**asdict(bounded(sample)), **(sites.taken() if sites else {})})
                last_s = sample.monotonic_s
                if not output.pieces:  # the first one replaces the old content
                    text, first_s = header + text, last_s
                output.write(text)
                rss = bytes_text(sample.process.rss_bytes) if sample.process else "unknown"
                progress(last_s - first_s, f"{counted(output.pieces, 'sample')}, RSS {rss}")
    except (Stopped, HakmemError) as error:
        if not output.pieces:
            raise
        if isinstance(error, Stopped):
            stopped_by = error.number  # Ctrl-C comes from the user; the sender of others is unknown
            is_by_user, name = stopped_by == signal.SIGINT, signal.Signals(stopped_by).name
            why = ENDED_BY_USER if is_by_user else f"stopped by {name}"
        elif has_ended(target, error):
            why = ENDED_WITH_PROCESS
        else:
            message = f"{error}; {counted(output.pieces, 'sample')} recorded before it"
            raise HakmemError(message) from None
    written = output.pieces
    output.write(line({"ended": why, **(sites.last() if sites else {})}))
    return Recorded(written, last_s - first_s, why, stopped_by)


def has_ended(target: Target, error: HakmemError) -> bool:
    return isinstance(error, ProcessGoneError) or (isinstance(error, UnreadableError) and target.is_gone)
