"""The block by which a hakmem library describes itself, read into numpy dtypes.

    hakmem-stats │ format │ … │ entries ──▶ one entry per field, constant and record: offset, type, texts
                               │ roots   ──▶ name → address of a structure
                               │ texts   ──▶ names, units and meanings

Tool and library agree on nothing but this head and the layout of entries and roots.  Everything else is
looked up by name, so that a newer library is understood as far as both know the names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from hakmem import __version__
from hakmem.base.errors import NotHakmemError, VersionError
from hakmem.base.lazy import Lazy
from hakmem.layout.memory import PAGE_BYTES, Memory

if TYPE_CHECKING:
    import numpy as np
else:
    np = Lazy("numpy")

MAGIC = b"hakmem-stats".ljust(16, b"\0")
FORMAT = 1
HEAD = struct.Struct("=16sIIIIQIIQQQ16s")
# text           offset in the texts: name, unit and meaning, each terminated by a 0
# record_text    likewise, of the record that it belongs to
# kind           r record, f field, c constant
# role           of ROLES
# type           u unsigned, i signed, d double, p address, t address of a text, r record
# value          of a field its offset, of a record its size, of a constant what it is
# element_bytes, element_count
ENTRY = struct.Struct("=IIcccxIII")
ROOT = struct.Struct("=24sQ")  # name, address
FORMATS_MAX, HEAD_BYTES_MIN = 1000, 24  # of any format, now or later
# A head that claims more than this is invalid.
ROWS_MAX, ROW_BYTES_MAX, TEXT_BYTES_MAX = 1 << 16, 1 << 12, 1 << 24
LIBRARIES_KEPT = 8


class Head(NamedTuple):
    """struct stats_block."""

    magic: bytes
    format: int
    block_bytes: int
    entry_bytes: int
    entry_count: int
    entries: int
    root_bytes: int
    root_count: int
    roots: int
    texts: int
    text_bytes: int
    version: bytes

    @classmethod
    def at(cls, memory: Memory, address: int) -> Head:
        """The bytes at the address, unchecked."""
        return cls(*HEAD.unpack(memory.read(address, HEAD.size)))

    @property
    def is_plausible(self) -> bool:
        """Is it a head, of any format?  The magic also occurs in the code of its readers."""
        return (
            self.magic == MAGIC
            and self.format < FORMATS_MAX
            and HEAD_BYTES_MIN <= self.block_bytes <= PAGE_BYTES
        )

    @property
    def version_text(self) -> str:
        return _text(self.version)


@dataclass(frozen=True)
class FieldMeta:
    unit: str
    role: str  # "counter" (only grows), "gauge", "structure" (not for display), "writable" (likewise)
    meaning: str


@dataclass(frozen=True)
class Entry:
    """struct stats_entry, its texts looked up: a field, a record or a constant."""

    record: str
    name: str
    kind: str
    type: str  # u unsigned, i signed, d double, p address, t address of text, r nested record
    offset: int  # of a record its size, of a constant its value
    element_bytes: int
    count: int
    meta: FieldMeta  # of type r: the meaning is the record's name

    @classmethod
    def of(cls, row: tuple[Any, ...], texts: bytes) -> Entry:
        text, record_text, *letters, value, element_bytes, count = row
        ((record,), (name, unit, meaning)) = _texts(texts, record_text, 1), _texts(texts, text, 3)
        kind, role, letter = map(_text, letters)
        meta = FieldMeta(unit, ROLES.get(role, "structure"), meaning)
        return cls(record, name, kind, letter, value, element_bytes, count, meta)


def _texts(pool: bytes, offset: int, count: int) -> list[str]:
    """`count` consecutive names, units or meanings."""
    texts = []
    for _ in range(count):
        end = pool.find(b"\0", offset)
        end = len(pool) if end < 0 else end
        texts.append(pool[offset:end].decode(errors="replace"))
        offset = end + 1
    return texts


def read_head(memory: Memory, address: int) -> Head:
    """NotHakmemError if there is no block, VersionError if this tool cannot read it."""
    head = Head.at(memory, address)
    if head.magic != MAGIC:
        raise NotHakmemError(f"no hakmem block at {address:#x}")
    version = head.version_text
    if head.format != FORMAT:
        raise VersionError(
            f"the program uses hakmem {version}, whose statistics have format {head.format}; this tool "
            f"({__version__}) reads format {FORMAT}: use the tool that came with that library"
        )
    rows = (head.entry_bytes, ENTRY.size), (head.root_bytes, ROOT.size)
    is_sane = all(known_bytes <= row_bytes <= ROW_BYTES_MAX for row_bytes, known_bytes in rows)
    is_sane &= max(head.entry_count, head.root_count) <= ROWS_MAX
    if not (is_sane and 0 < head.text_bytes <= TEXT_BYTES_MAX):
        raise VersionError(f"the statistics of hakmem {version} are not valid format {FORMAT}")
    return head


@dataclass
class Record:
    name: str
    size_bytes: int = 0
    fields: dict[str, Entry] = field(default_factory=dict)


ROLES = {"c": "counter", "g": "gauge", "s": "structure", "w": "writable"}
# Letters of types in numpy; all others are unsigned numbers.
NUMPY_KINDS = {"i": "i", "d": "f"}


class Schema:
    """One library's description of its structures."""

    def __init__(self, version: str, number: int, entries: Iterable[Entry], roots: Mapping[str, int]) -> None:
        self.version = version
        self.format = number
        self.roots = dict(roots)
        self.constants: dict[str, int] = {}
        self.records: dict[str, Record] = {}
        self._dtypes: dict[str, np.dtype[Any]] = {}
        for entry in entries:
            if entry.kind == "c":
                self.constants[entry.name] = entry.offset
            elif entry.kind in ("r", "f"):
                record = self.records.setdefault(entry.record, Record(entry.record))
                if entry.kind == "f":
                    record.fields[entry.name] = entry
                else:
                    record.size_bytes = entry.offset

    @classmethod
    def read(cls, memory: Memory, address: int) -> Schema:
        """The schema of the library whose block is at `address`; VersionError if this tool cannot read it."""
        head = read_head(memory, address)
        entries = memory.read(head.entries, head.entry_bytes * head.entry_count)
        roots = memory.read(head.roots, head.root_bytes * head.root_count)
        known = _entries(entries, head.entry_bytes, memory.read(head.texts, head.text_bytes))
        addresses = {_text(name): place for name, place in _rows(ROOT, roots, head.root_bytes)}
        return cls(head.version_text, head.format, known, addresses)

    # ---- lookups --------------------------------------------------------------------------------------

    def constant(self, name: str) -> int:
        if name not in self.constants:
            raise self._missing(f"the constant {name}")
        return self.constants[name]

    def root(self, name: str) -> int:
        if not self.roots.get(name):
            raise self._missing(name)
        return self.roots[name]

    def has(self, record: str, *fields: str) -> bool:
        known = self.records.get(record)
        return known is not None and all(name in known.fields for name in fields)

    def need(self, record: str, *fields: str) -> None:
        for name in fields:
            if not self.has(record, name):
                raise self._missing(f"{record}.{name}")

    def offset(self, record: str, name: str) -> int:
        self.need(record, name)
        return self.records[record].fields[name].offset

    def meta(self, record: str) -> dict[str, FieldMeta]:
        """Unit, role and meaning of each field of a record, in the library's order; empty if unknown."""
        known = self.records.get(record)
        return {name: entry.meta for name, entry in known.fields.items()} if known else {}

    @cached_property
    def counter_meta(self) -> dict[str, FieldMeta]:
        """Metadata of the figures in Snapshot.counters and Snapshot.totals."""
        return self.meta("counters") | self.meta("totals")

    def dtype(self, record: str) -> np.dtype[Any]:
        """The record as a numpy dtype, nested records and arrays included."""
        if record not in self._dtypes:
            known = self.records.get(record)
            if known is None or not known.size_bytes:
                raise self._missing(record)
            self._dtypes[record] = self._layout(known)
        return self._dtypes[record]

    def structure(self, memory: Memory, root: str) -> np.void:
        """The record of that name at the root of that name."""
        found: np.void = memory.array(self.root(root), self.dtype(root), 1)[0]
        return found

    def numbers(self, memory: Memory, root: str) -> dict[str, int]:
        """The same, where all fields are numbers."""
        row = self.structure(memory, root)
        return {name: int(row[name]) for name in row.dtype.names or ()}

    def _layout(self, known: Record) -> np.dtype[Any]:
        """VersionError for the impossible: odd numbers, fields beyond a record, a record inside itself."""
        fields = known.fields.values()
        try:
            return np.dtype(
                {
                    "names": [entry.name for entry in fields],
                    "formats": [self._format(entry) for entry in fields],
                    "offsets": [entry.offset for entry in fields],
                    "itemsize": known.size_bytes,
                }
            )
        except (TypeError, ValueError, RecursionError, OverflowError, MemoryError) as error:
            raise self._missing(f"a valid layout of {known.name!r}") from error

    def _format(self, entry: Entry) -> np.dtype[Any]:
        if entry.type == "r":
            element = self.dtype(entry.meta.meaning)
        else:
            element = np.dtype(f"{NUMPY_KINDS.get(entry.type, 'u')}{entry.element_bytes}")
        return np.dtype((element, (entry.count,))) if entry.count > 1 else element

    def _missing(self, what: str) -> VersionError:
        return VersionError(
            f"hakmem {self.version} does not provide {what}, which this tool needs; use the tool that came "
            "with that library"
        )


@lru_cache(LIBRARIES_KEPT)
def _entries(data: bytes, row_bytes: int, texts: bytes) -> tuple[Entry, ...]:
    """Kept: all processes of one library have the same."""
    return tuple(Entry.of(row, texts) for row in _rows(ENTRY, data, row_bytes))


def _rows(kind: struct.Struct, data: bytes, row_bytes: int) -> Iterator[tuple[Any, ...]]:
    """Rows may be longer than their known fields: a newer library may have appended fields."""
    return (kind.unpack_from(data, start) for start in range(0, len(data), row_bytes))


def _text(value: bytes) -> str:
    return value.split(b"\0")[0].decode(errors="replace")
