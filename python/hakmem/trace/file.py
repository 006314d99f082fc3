"""The file of a trace: lines of JSON, and after some of them compressed columns (docs/TRACES.md).

However the writer ended, the file is readable up to its last complete block."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.base.files import writing
from hakmem.layout.memory import Numbers, Records
from hakmem.target.target import NONSENSE
from hakmem.trace.lives import Lives
from hakmem.trace.memory import COUNTERS, SAMPLES_A_LINE, Memory
from hakmem.trace.resolving import Piece, Resolver
from hakmem.trace.words import Events, Op

VERSION = 1
EVENTS_AT_ONCE = 1 << 16
LINE_BYTES_MAX = 1 << 20
LINES_KEPT = {"sites", "memory", "end"}  # a recording has millions of others
COLUMNS = {
    "op": "<u1",  # Op
    "thread": "<u4",
    "delay_ns": "<u8",  # since the event before; of the first one CLOCK_MONOTONIC
    "age": "<u8",  # of a free or resize: blocks taken since its own
    "size": "<u8",  # bytes requested; of a free 0, or MOVED
    "alignment": "<u1",  # log2
}


class Writer:
    """Appends blocks; each is on its way to the disk when its call returns."""

    def __init__(self, path: Path, head: dict[str, Any], kept: str = "it is complete up to here") -> None:
        self.path, self._kept, self._is_empty = path, kept, True  # kept: where events are if the disk is full
        self.bytes = 0
        self._begun = self._time_ns = 0  # blocks, and the last event's time
        with writing(path):
            self._file: IO[bytes] = path.open("wb", 0)
        self.line({"hakmem_trace": VERSION} | head)
        self._is_empty = True

    def words(self, ring: int, words: Numbers) -> None:
        """As they are: the rings are emptied meanwhile.  A line "turn" comes before those of a turn."""
        data = words.astype("<u4").tobytes()
        self.line({"words32": len(words), "ring": ring, "bytes": len(data)})
        self._write(data)

    def lives(self, lives: Lives) -> None:
        columns = self._columns_of(lives)
        for start in range(0, len(lives), EVENTS_AT_ONCE):
            part = slice(start, start + EVENTS_AT_ONCE)
            self.table("events", {name: column[part] for name, column in columns.items()})

    def _columns_of(self, lives: Lives) -> dict[str, Records]:
        events = lives.events
        is_begin = (events.ops == Op.TAKE) | (events.ops == Op.LIVE)
        begun = self._begun + np.cumsum(is_begin)
        columns = {
            "op": events.ops,
            "thread": events.threads,
            "delay_ns": np.diff(events.times_ns, prepend=self._time_ns),
            "age": np.where(is_begin, 0, begun - lives.numbers),
            "size": events.sizes,
            "alignment": events.alignments,
        }
        if len(lives):
            self._begun, self._time_ns = int(begun[-1]), int(events.times_ns[-1])
        return {name: np.asarray(column).astype(COLUMNS[name]) for name, column in columns.items()}

    def table(self, kind: str, columns: dict[str, Records]) -> None:
        """Columns of one length, compressed: first all lowest bytes, which are much alike."""
        packed = {
            name: zlib.compress(column.view("u1").reshape(-1, column.itemsize).T.tobytes(), 6)
            for name, column in columns.items()
        }
        self.line(
            {
                kind: len(next(iter(columns.values()))),
                "columns": {name: len(data) for name, data in packed.items()},
            }
        )
        for data in packed.values():
            self._write(data)

    def memory(self, memory: Memory) -> None:
        for start in range(0, len(memory.times_ns), SAMPLES_A_LINE):
            part = slice(start, start + SAMPLES_A_LINE)
            self.line({"memory": {name: column[part].tolist() for name, column in vars(memory).items()}})

    def close(self) -> None:
        self._file.close()
        if self._is_empty:  # but for its head
            self.path.unlink(missing_ok=True)

    def drop(self) -> None:
        self._is_empty = True
        self.close()

    def line(self, what: dict[str, Any]) -> None:
        self._write(json.dumps(what, separators=(",", ":")).encode() + b"\n")
        self._is_empty = False

    def _write(self, data: bytes) -> None:
        try:
            while data:  # a disk that is nearly full takes a part
                written = self._file.write(data)
                self.bytes, data = self.bytes + written, data[written:]
        except OSError as error:
            if self._is_empty:
                self.drop()
            raise HakmemError(f"{self.path} cannot be written: {error.strerror}; {self._kept}") from None


# ---- reading ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Extent:
    """The events of a trace, without the blocks that were live at its start."""

    first_ns: int  # CLOCK_MONOTONIC; 0 without any row
    last_ns: int
    events: int
    live_blocks: int  # at the start


@dataclass
class Trace:
    """A file's contents.  Its events are read anew by each call of `lives`, some at a time."""

    head: dict[str, Any]
    lives: Callable[[], Iterator[Lives]]
    lost: (
        int  # events for which a ring had no room; of a file that was cut off known once all lives were read
    )
    end: dict[str, Any] | None  # None: it was cut off
    memory: Memory | None  # None: the file has none

    @cached_property
    def extent(self) -> Extent:
        first, last, events, rows = None, 0, 0, 0
        for lives in self.lives():
            if len(lives):
                first = int(lives.events.times_ns[0]) if first is None else first
                last, rows = int(lives.events.times_ns[-1]), rows + len(lives)
                events += int((lives.events.ops != Op.LIVE).sum())
        return Extent(first or 0, last, events, rows - events)


def write(path: Path, trace: Trace, kept: str = "it was not made") -> int:
    """The whole file, or nothing.  Returns the number of events.  `kept`: as Writer has it."""
    new, events = path.with_name(path.name + ".new"), 0
    writer = Writer(new, trace.head, kept)
    try:
        for lives in trace.lives():
            writer.lives(lives)
            events += int((lives.events.ops != Op.LIVE).sum())
        if trace.memory is not None:
            writer.memory(trace.memory)
        if trace.end is not None:
            writer.line(trace.end)
        writer.close()
        with writing(path):
            new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return events


def _blocks(file: IO[bytes]) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Each line with the bytes after it, up to the first incomplete one."""
    while line := file.readline(LINE_BYTES_MAX):
        try:
            what = json.loads(line)
            lengths = list(what.get("columns", {}).values()) or [what.get("bytes", 0)]
            parts = [file.read(int(length)) for length in lengths]
        except (ValueError, KeyError, AttributeError):
            return
        if not line.endswith(b"\n") or [len(part) for part in parts] != lengths:
            return
        yield what, parts


def _column(part: bytes, kind: str) -> Records:
    width = np.dtype(kind).itemsize
    return np.frombuffer(zlib.decompress(part), "u1").reshape(width, -1).T.copy().view(kind)[:, 0]


def _columns(what: dict[str, Any], parts: list[bytes], kinds: dict[str, str]) -> dict[str, Records]:
    return {name: _column(part, kinds[name]) for name, part in zip(what["columns"], parts, strict=True)}


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    try:
        yield
    except (*NONSENSE, zlib.error):
        raise HakmemError(f"{path} is damaged: its columns contradict each other") from None


def _head_of(file: IO[bytes], path: Path) -> dict[str, Any]:
    try:
        head = json.loads(file.readline(LINE_BYTES_MAX))
        version = head["hakmem_trace"]
    except (ValueError, KeyError, TypeError):
        raise HakmemError(f"{path} is not a trace: hakmem trace PID -o FILE makes one") from None
    if version != VERSION:
        raise HakmemError(
            f"{path} has version {version} of the format, and this tool reads {VERSION}: use a newer hakmem"
        )
    return dict(head)


def is_sampled(path: Path) -> bool:
    """Whether it has the lives of samples (trace/sampled.py).  HakmemError if it is not a trace."""
    with path.open("rb") as file:
        return bool(_head_of(file, path).get("sampled"))


@dataclass
class Contents:
    """The parts of a file, without its events."""

    head: dict[str, Any]
    columns: dict[str, Records]  # of sampled lives
    lines: list[dict[str, Any]]
    has_words: bool

    def all(self, kind: str) -> list[Any]:
        return [what[kind] for what in self.lines if kind in what]

    @property
    def end(self) -> dict[str, Any] | None:
        return next((what for what in self.lines if "end" in what), None)


def contents(path: Path, kinds: dict[str, str]) -> Contents:
    """HakmemError if it is not a trace.  `kinds`: its columns of sampled lives."""
    tables: dict[str, list[Records]] = {name: [np.empty(0, kind)] for name, kind in kinds.items()}
    lines, has_words = [], False
    with path.open("rb") as file, _undamaged(path):
        head = _head_of(file, path)
        for what, parts in _blocks(file):
            has_words |= "words32" in what
            lines += [what] if what.keys() & LINES_KEPT else []
            for name, column in _columns(what, parts, kinds).items() if "lives" in what else ():
                tables[name].append(column)
    return Contents(head, {name: np.concatenate(found) for name, found in tables.items()}, lines, has_words)


def read(path: Path) -> Trace:
    """HakmemError if it is not a trace.  A file of words lacks the blocks that were live at its start."""
    found = contents(path, {})
    with _undamaged(path):
        end = found.end or {}
        # All must be numbers.
        sum([*dict(found.head.get("libraries", {})).values(), *(end.get(name, 0) for name in COUNTERS)])
        lost, memory = int(end.get("lost", 0)), Memory.joined(list(map(Memory.of_line, found.all("memory"))))
    trace = Trace(found.head, lambda: _lives_of(path), lost, found.end, memory)
    if found.has_words:
        resolver = Resolver(lambda: pieces_of(path))

        def resolved() -> Iterator[Lives]:
            with _undamaged(path):
                yield from resolver.lives()
            trace.lost = resolver.lost

        trace.lives = resolved
    return trace


def pieces_of(path: Path) -> Iterator[Piece]:
    """The words of a file that is being recorded, or was left."""
    turn_ns = 0
    with path.open("rb") as file:
        _head_of(file, path)
        for what, parts in _blocks(file):
            turn_ns = int(what.get("turn", turn_ns))
            if "words32" in what:
                yield Piece(turn_ns, int(what["ring"]), np.frombuffer(parts[0], "<u4"))


def _lives_of(path: Path) -> Iterator[Lives]:
    begun = time_ns = 0
    with path.open("rb") as file, _undamaged(path):
        _head_of(file, path)
        for what, parts in _blocks(file):
            if "events" not in what or not what["events"]:
                continue
            columns = _columns(what, parts, COLUMNS)
            ops = columns["op"].astype(np.int8)
            is_begin = (ops == Op.TAKE) | (ops == Op.LIVE)
            taken = begun + np.cumsum(is_begin)
            numbers = np.where(is_begin, taken - 1, taken - columns["age"].astype(np.int64))
            times = time_ns + np.cumsum(columns["delay_ns"].astype(np.int64))
            if (np.diff(times, prepend=time_ns) < 0).any():
                raise HakmemError("this trace is damaged: an event is older than the one before it")
            if ((numbers < 0) | (numbers >= taken)).any():
                raise HakmemError(
                    "this trace is damaged: an event is of a block that was not allocated before"
                )
            begun, time_ns = int(taken[-1]), int(times[-1])
            events = Events(ops, numbers.astype(np.uint64), columns["size"], columns["alignment"],
                            columns["thread"].astype(np.int64), times)  # fmt: skip
            yield Lives(events, numbers)
