"""A run over time: snapshots taken at a steady pace, and the file that they are kept in.

    run.json   {"format": "hakmem-run", "format_version": 1, "pid": …, "command": …, "version": …,
                "every_s": …, "began_s": …, "ended": "why it ended", "meta": {counter: unit, role, meaning},
                "samples": [a snapshot each]}

A full snapshot walks all slabs, a quick one does not.  In a process so large that the walk would take more
than a tenth of the time, most samples are quick ones: what is watched shall not suffer from being watched."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from hakmem import __version__
from hakmem.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.figures import Snapshot, ThreadFigures
from hakmem.files import write_atomically
from hakmem.schema import FieldMeta
from hakmem.snapshot import take
from hakmem.target import Target

FORMAT_NAME = "hakmem-run"
FORMAT_VERSION = 1
WALK_SHARE_MAX = 0.1
THREADS_KEPT = 64
OTHERS_NAME = "other threads"

ENDED_IN_TIME = "the time was over"
ENDED_BY_USER = "stopped by the user"
ENDED_WITH_PROCESS = "the process ended"


@dataclass
class Recording:
    """What `record` writes and `report` reads."""

    pid: int
    command: list[str]
    version: str
    every_s: float
    began_s: float
    ended: str = ENDED_IN_TIME
    meta: dict[str, FieldMeta] = field(default_factory=dict)
    samples: list[Snapshot] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Without the samples' repetitions: each thread list is bounded."""
        return {
            "format": FORMAT_NAME,
            "format_version": FORMAT_VERSION,
            "tool_version": __version__,
            **{
                name: getattr(self, name)
                for name in ("pid", "command", "version", "every_s", "began_s", "ended")
            },
            "meta": {name: asdict(meta) for name, meta in self.meta.items()},
            "samples": [with_few_threads(sample).to_json() for sample in self.samples],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Recording:
        """The recording that `to_json` made."""
        return cls(
            **{name: data[name] for name in ("pid", "command", "version", "every_s", "began_s", "ended")},
            meta={name: FieldMeta(**meta) for name, meta in data["meta"].items()},
            samples=[Snapshot.from_json(sample) for sample in data["samples"]],
        )

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        write_atomically(path, json.dumps(self.to_json(), separators=(",", ":")) + "\n")

    @classmethod
    def read(cls, path: Path) -> Recording:
        """HakmemError with what is wrong if the file is none of ours."""
        try:
            data = json.loads(path.read_text())
        except OSError as error:
            raise HakmemError(f"cannot read {path}: {error.strerror}") from None
        except ValueError:
            raise HakmemError(f"{path} is not JSON; give a file that `hakmem record` wrote") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT_NAME:
            raise HakmemError(f"{path} is no recording; give a file that `hakmem record` wrote")
        if data["format_version"] != FORMAT_VERSION:
            raise HakmemError(
                f"{path} has format {data['format_version']}, this tool reads {FORMAT_VERSION}; "
                f"use hakmem {data.get('tool_version', '')} to report it"
            )
        try:
            return cls.from_json(data)
        except (KeyError, TypeError) as error:
            raise HakmemError(f"{path} is damaged: {error} is missing or wrong") from None


def with_few_threads(sample: Snapshot) -> Snapshot:
    """The threads that hold most, and one line for all others: a file of bounded size."""
    if len(sample.threads) <= THREADS_KEPT:
        return sample
    by_cache = sorted(sample.threads, key=lambda thread: thread.cached_bytes, reverse=True)
    kept, rest = by_cache[: THREADS_KEPT - 1], by_cache[THREADS_KEPT - 1 :]
    tiers = {tier for thread in rest for tier in thread.magazine_bytes}
    others = ThreadFigures(
        number=0,
        thread_id=0,
        name=f"{len(rest)} {OTHERS_NAME}",
        state="running",
        magazine_bytes={tier: sum(t.magazine_bytes.get(tier, 0) for t in rest) for tier in sorted(tiers)},
        outbox_bytes=sum(thread.outbox_bytes for thread in rest),
        quarantine_bytes=sum(thread.quarantine_bytes for thread in rest),
        bytes_out=sum(thread.bytes_out for thread in rest),
        slow_paths=sum(thread.slow_paths for thread in rest),
    )
    return replace(sample, threads=[*kept, others])


class Pace:
    """Chooses between full and quick snapshots, so that walks take a tenth of the time at most."""

    def __init__(self) -> None:
        self.next_walk_s = 0.0

    def take(self, target: Target) -> Snapshot:
        """The next snapshot."""
        began_s = time.monotonic()
        if began_s < self.next_walk_s:
            return take(target, detail="counters")
        snapshot = take(target)
        ended_s = time.monotonic()
        self.next_walk_s = began_s + (ended_s - began_s) / WALK_SHARE_MAX
        return snapshot


def samples(target: Target, every_s: float, for_s: float) -> Iterator[Snapshot]:
    """Snapshots at a steady pace, the first at once; ends after `for_s`.  A moment that passed while the
    machine was busy is left out, not made up for."""
    pace = Pace()
    began_s = time.monotonic()
    due_s = began_s
    while due_s <= began_s + for_s:
        time.sleep(max(0.0, due_s - time.monotonic()))
        yield pace.take(target)
        missed = int((time.monotonic() - due_s) / every_s)
        due_s += every_s * (1 + missed)


def record(target: Target, every_s: float, for_s: float, progress: Callable[[Snapshot], None]) -> Recording:
    """Records until the time is over, the process ends, or the user interrupts; keeps what it has."""
    recording = Recording(
        pid=target.pid,
        command=target.command,
        version=target.schema.version,
        every_s=every_s,
        began_s=time.time(),
        meta=target.schema.counter_meta,
    )
    try:
        for sample in samples(target, every_s, for_s):
            recording.samples.append(sample)
            progress(sample)
    except KeyboardInterrupt:
        recording.ended = ENDED_BY_USER
    except ProcessGoneError:
        recording.ended = ENDED_WITH_PROCESS
    except UnreadableError:
        if not has_ended(target):
            raise
        recording.ended = ENDED_WITH_PROCESS
    return recording


def has_ended(target: Target) -> bool:
    """Whether what was being read is there no more."""
    try:
        target.check_same()
    except ProcessGoneError:
        return True
    return False
