"""The file of a trace: lines of JSON, and after some of them compressed columns (docs/TRACES.md).

However the writer ended, the file is complete up to its last whole block."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from hakmem.base.errors import HakmemError
from hakmem.layout.memory import Numbers, Records
from hakmem.target.target import NONSENSE
from hakmem.trace.lives import Lives, lives_of, merged
from hakmem.trace.memory import COUNTERS, SAMPLES_A_LINE, Memory
from hakmem.trace.words import Events, Op, events_of, set_times

VERSION = 1
EVENTS_AT_ONCE = 1 << 16
LINE_BYTES_MAX = 1 << 20
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

    def __init__(self, path: Path, head: dict[str, Any], kept: str = "it is whole up to here") -> None:
        self.path, self._kept, self._is_empty = path, kept, True  # kept: where events are if the disk is full
        self._file: IO[bytes] = path.open("wb", 0)
        self.line({"hakmem_trace": VERSION} | head)
        self._is_empty = True

    def words(self, ring: int, words: Numbers) -> None:
        """As they are: the rings are emptied meanwhile."""
        data = words.astype("<u4").tobytes()
        self.line({"words32": len(words), "ring": ring, "bytes": len(data)})
        self._write(data)

    def table(self, kind: str, columns: dict[str, Records]) -> None:
        """Columns of one length, compressed: first all lowest bytes, which are much alike."""
        packed = {
            name: zlib.compress(column.view("u1").reshape(len(column), -1).T.tobytes(), 6)
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
                data = data[self._file.write(data) :]
        except OSError as error:
            if self._is_empty:
                self.drop()
            raise HakmemError(f"{self.path} cannot be written: {error.strerror}; {self._kept}") from None


def _columns_of(lives: Lives) -> dict[str, Records]:
    """Without the events of blocks that are not known."""
    kept = np.flatnonzero(lives.life_of_row >= 0)
    events, numbers = lives.events.at(kept), lives.life_of_row[kept]
    is_begin = (events.ops == Op.TAKE) | (events.ops == Op.LIVE)
    columns = {
        "op": events.ops,
        "thread": events.threads,
        "delay_ns": np.diff(events.times_ns, prepend=0),
        "age": np.where(is_begin, 0, np.cumsum(is_begin) - numbers),
        "size": events.sizes,
        "alignment": events.alignments,
    }
    return {name: np.asarray(column).astype(COLUMNS[name]) for name, column in columns.items()}


# ---- reading ----------------------------------------------------------------------------------------


@dataclass
class Trace:
    """A file's contents."""

    head: dict[str, Any]
    lives: Lives
    lost: int  # events for which a ring had no room
    end: dict[str, Any] | None  # None: it was cut off
    memory: Memory | None  # None: the file has none


def write(path: Path, trace: Trace, kept: str = "it was not made") -> None:
    """The whole file, or nothing.  `kept`: as Writer has it."""
    new = path.with_name(path.name + ".new")
    try:
        writer = Writer(new, trace.head, kept)
        columns = _columns_of(trace.lives)
        for start in range(0, len(columns["op"]), EVENTS_AT_ONCE):
            part = slice(start, start + EVENTS_AT_ONCE)
            writer.table("events", {name: column[part] for name, column in columns.items()})
        if trace.memory is not None:
            writer.memory(trace.memory)
        if trace.end is not None:
            writer.line(trace.end)
        writer.close()
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def _blocks(file: IO[bytes]) -> Iterator[tuple[dict[str, Any], list[bytes]]]:
    """Each line with the bytes after it, up to the first that is not whole."""
    while line := file.readline(LINE_BYTES_MAX):
        try:
            what = json.loads(line)
            columns = what.get("columns", {})
            lengths = list(columns.values()) or [what.get("bytes", 0)]
            parts = [file.read(int(length)) for length in lengths]
            if not line.endswith(b"\n") or [len(part) for part in parts] != lengths:
                return
            yield what, [zlib.decompress(part) for part in parts] if columns else parts
        except (ValueError, KeyError, AttributeError, zlib.error):
            return


def _joined(parts: list[bytes], kind: str) -> Records:
    """A column from its parts."""
    width = np.dtype(kind).itemsize
    found = [np.frombuffer(part, "u1").reshape(width, -1).T.copy().view(kind)[:, 0] for part in parts]
    return np.concatenate([np.empty(0, kind), *found])


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
    """The parts of a file of either kind."""

    head: dict[str, Any]
    columns: dict[str, Records]
    lines: list[tuple[dict[str, Any], list[bytes]]]  # with the bytes after each

    def all(self, kind: str) -> list[Any]:
        return [what[kind] for what, _ in self.lines if kind in what]

    @property
    def end(self) -> dict[str, Any] | None:
        return next((what for what, _ in self.lines if "end" in what), None)


def contents(path: Path, kinds: dict[str, str]) -> Contents:
    """HakmemError if it is not a trace.  `kinds`: its columns."""
    parts: dict[str, list[bytes]] = {name: [] for name in kinds}
    with path.open("rb") as file:
        head, lines = _head_of(file, path), list(_blocks(file))
    for what, data in lines:
        for name, part in zip(what["columns"], data, strict=True) if "columns" in what else ():
            parts[name].append(part)
    return Contents(head, {name: _joined(parts[name], kind) for name, kind in kinds.items()}, lines)


def read(path: Path) -> Trace:
    """HakmemError if it is not a trace."""
    try:
        found = contents(path, COLUMNS)
        if len(found.columns["op"]):
            lives, lost = _from_columns(found.columns), 0
        else:
            rings: dict[int, list[bytes]] = {}
            for what, parts in found.lines:
                if "words32" in what:
                    rings.setdefault(int(what["ring"]), []).extend(parts)
            lives, lost = resolved([np.frombuffer(b"".join(parts), "<u4") for parts in rings.values()])
        end = found.end or {}
        lost = int(end.get("lost", lost))
        # All must be numbers.
        sum([*dict(found.head.get("libraries", {})).values(), *(end.get(name, 0) for name in COUNTERS)])
        return Trace(found.head, lives, lost, found.end, Memory.joined(found.all("memory")))
    except NONSENSE:
        raise HakmemError(f"{path} is damaged: its columns contradict each other") from None


def resolved(rings: list[Numbers], before: Events | None = None) -> tuple[Lives, int]:
    """The lives that the words of all rings tell, and how many events are missing.  `before`: blocks that
    were live already."""
    found = [events_of(words) for words in rings]
    if found:
        set_times(found)
    parts = [one.events for one in found] or [Events.none()]
    if before is not None and len(before):
        starts = [part.times_ns[0] for part in parts if len(part)]
        before.times_ns = np.full(len(before), min(starts, default=0), np.int64)
        parts.insert(0, before)
    return lives_of(merged(parts)), sum(one.lost for one in found)


def _from_columns(columns: dict[str, Records]) -> Lives:
    ops = columns["op"].astype(np.int8)
    is_begin = (ops == Op.TAKE) | (ops == Op.LIVE)
    taken = np.cumsum(is_begin)
    numbers = np.where(is_begin, taken - 1, taken - columns["age"].astype(np.int64))
    if ((numbers < 0) | (numbers >= taken)).any():
        raise HakmemError("this trace is damaged: an event is of a block that was not allocated before")
    times = np.cumsum(columns["delay_ns"].astype(np.int64))
    events = Events(ops, numbers.astype(np.uint64), columns["size"], columns["alignment"],
                    columns["thread"].astype(np.int64), times)  # fmt: skip
    return Lives.numbered(events, numbers, 0, 0, 0)
