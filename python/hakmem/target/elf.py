"""An ELF file: its symbols, needed libraries, build id, notes, and how it is loaded."""

from __future__ import annotations

import mmap
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from hakmem.layout.memory import PAGE_BYTES, Records
from hakmem.target import elf_format as elf
from hakmem.target.elf_format import MAGIC, PARSER_ERRORS, Header, ProgramHeader, Section, parsing
from hakmem.target.process import Mapping
from hakmem.target.symbol_table import SYMBOL, SymbolTable

P = ParamSpec("P")
R = TypeVar("R")
CACHED_FILES = 1024
RELEASED_BYTES = 1 << 20  # of larger files nothing is kept in memory
SCAN_BYTES = 8 << 20  # of a file, at once


def parsed(read: Callable[Concatenate[ElfFile, P], R]) -> Callable[Concatenate[ElfFile, P], R]:
    """Turns errors of a reading into a DamagedFileError that names the file."""

    @wraps(read)
    def checked(file: ElfFile, /, *given: P.args, **named: P.kwargs) -> R:
        with parsing(file.name):
            return read(file, *given, **named)

    return checked


class ElfFile:
    """An ELF file; sections, symbols and dynamic tags are read of 64-bit little-endian files only.
    `open_elf` creates it.

    Only the first header is read at once; everything else may raise DamagedFileError."""

    def __init__(self, data: mmap.mmap | bytes, name: str) -> None:
        self.name = name
        self._data = data
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("not an ELF file")
        self._is_64 = data[elf.CLASS] == elf.CLASS_64
        self._order = "<" if data[elf.DATA] == elf.LITTLE_ENDIAN else ">"
        self.is_ours = self._is_64 and self._order == "<"
        form = elf.HEADER if self._is_64 else elf.HEADER_32
        self._header = Header(*struct.unpack_from(self._order + form, data))
        self.machine = elf.MACHINES.get(self._header.machine, f"machine {self._header.machine}")
        self.kind = elf.KINDS.get(self._header.kind, "")

    @property
    def headers_end(self) -> int:
        head = self._header
        return max(
            head.segments_at + head.segments * head.segment_bytes,
            head.sections_at + head.sections * head.section_bytes,
        )

    @cached_property
    @parsed
    def program_headers(self) -> list[ProgramHeader]:
        head = self._header
        # 65,535 and more, which a core may have, are counted in the first section header.
        count = self._sections[0].info if head.segments == elf.EXTENDED and self._sections else head.segments
        places = range(head.segments_at, head.segments_at + count * head.segment_bytes, head.segment_bytes)
        if places.stop > len(self._data):
            raise ValueError("its program headers are beyond its end")
        form = struct.Struct(self._order + (elf.PROGRAM_HEADER if self._is_64 else elf.PROGRAM_HEADER_32))
        rows = (form.unpack_from(self._data, place) for place in places)
        return [ProgramHeader(*(row if self._is_64 else (row[0], row[-1], *row[1:-1]))) for row in rows]

    @cached_property
    def segments(self) -> list[ProgramHeader]:
        return [one for one in self.program_headers if one.kind == elf.PT_LOAD]

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Owner, type and content of each; of a 64-bit little-endian file."""
        for header in self.program_headers if self.is_ours else ():
            data, at = self._content(header) if header.kind == elf.PT_NOTE else b"", 0
            while at + elf.NOTE.size <= len(data):
                name_bytes, content_bytes, kind = elf.NOTE.unpack_from(data, at)
                name, content = at + elf.NOTE.size, at + elf.NOTE.size + _whole_words(name_bytes)
                at = content + _whole_words(content_bytes)
                if content + content_bytes > len(data):
                    raise ValueError("a note is beyond its end")
                owner = data[name : name + name_bytes].rstrip(b"\0")
                yield owner, kind, data[content : content + content_bytes]

    @cached_property
    @parsed
    def interpreter(self) -> str | None:
        """The dynamic loader; None for static programs and for most libraries."""
        found = (self._content(one) for one in self.program_headers if one.kind == elf.PT_INTERP)
        return next((text.split(b"\0")[0].decode(errors="replace") for text in found), None)

    @cached_property
    @parsed
    def dynamic(self) -> dict[str, list[str]]:
        """needed, soname, rpath and runpath."""
        found: dict[str, list[str]] = {name: [] for name in elf.DYNAMIC_LISTS.values()}
        tags = self._dynamic_tags
        texts = next((self._offset_of(value) for tag, value in tags if tag == elf.DT_STRTAB), None)
        for tag, value in tags:
            if tag in elf.DYNAMIC_LISTS and texts is not None:
                found[elf.DYNAMIC_LISTS[tag]].append(self._text(texts + value))
        return found

    @property
    def dynamic_address(self) -> int | None:
        """Where its dynamic tags are, before loading."""
        return next((one.address for one in self.program_headers if one.kind == elf.PT_DYNAMIC), None)

    @property
    def is_static(self) -> bool:
        """A program without a dynamic loader: nothing can be preloaded into it."""
        flags = (value for tag, value in self._dynamic_tags if tag == elf.DT_FLAGS_1)
        is_program = self.kind == "ET_EXEC" or any(value & elf.FLAGS_1_PIE for value in flags)
        return self.interpreter is None and is_program

    @cached_property
    @parsed
    def _dynamic_tags(self) -> list[tuple[int, int]]:
        for one in self.program_headers:
            if one.kind == elf.PT_DYNAMIC and self.is_ours:
                data = self._content(one)
                size = elf.DYNAMIC_TAG.size
                return list(elf.DYNAMIC_TAG.iter_unpack(data[: len(data) // size * size]))
        return []

    def _content(self, header: ProgramHeader) -> bytes:
        return self._data[header.offset : header.offset + header.file_bytes]

    def _offset_of(self, address: int) -> int | None:
        """The place in the file of an address before loading."""
        inside = (one for one in self.segments if one.address <= address < one.address + one.file_bytes)
        return next((address - one.address + one.offset for one in inside), None)

    def _text(self, place: int) -> str:
        end = self._data.find(b"\0", place)
        return self._data[place : end if end >= 0 else None].decode(errors="replace")

    @cached_property
    @parsed
    def build_id(self) -> str | None:
        known = (elf.GNU, elf.NT_GNU_BUILD_ID)
        return next((text.hex() for *which, text in self.notes() if tuple(which) == known), None)

    @lru_cache(64)  # noqa: B019 - open_elf keeps the files anyway; most processes map the same files
    @parsed
    def symbol(self, name: str) -> int | None:
        """The address, before loading, of a symbol defined in this file."""
        found = self._defined(name, elf.SHT_DYNSYM, elf.SHT_SYMTAB)
        if len(self._data) > RELEASED_BYTES:
            self.release()
        return found

    @parsed
    def exports(self, name: str) -> bool:
        """Does the dynamic loader find this symbol here?"""
        return self._defined(name, elf.SHT_DYNSYM) is not None

    def _defined(self, name: str, *types: int) -> int | None:
        values = (table.defined(name.encode()) for table in self._symbol_tables(*types))
        return next((value for value in values if value is not None), None)

    @parsed
    def symbol_tables(self) -> list[tuple[Records, bytes]]:
        """The rows (SYMBOL) and the names of .dynsym and .symtab, where the file has them."""
        return [table.parts for table in self._symbol_tables(elf.SHT_DYNSYM, elf.SHT_SYMTAB)]

    def has_section(self, name: str) -> bool:
        """Whether it is there, with its content."""
        return self._section(name) is not None

    def section(self, name: str) -> bytes | None:
        """The content of a section; None if there is none, or none in this file."""
        found = self._section(name)
        if found is None:
            return None
        return self._data[found.offset : found.offset + found.size]

    @parsed
    def _section(self, name: str) -> Section | None:
        sections = self._sections
        if not sections:
            return None
        number = self._header.names_section
        names = sections[sections[0].link if number == elf.EXTENDED else number].offset
        for section in sections:
            if self._text(names + section.name) == name and section.type != elf.SHT_NOBITS:
                return section
        return None

    def address_of(self, offset: int) -> int | None:
        """The address, before loading, of a place in the file."""
        inside = (one for one in self.segments if one.offset <= offset < one.offset + one.file_bytes)
        return next((one.address + offset - one.offset for one in inside), None)

    @lru_cache(4)  # noqa: B019 - open_elf keeps the files anyway
    def contains(self, data: bytes) -> bool:
        for start in range(0, len(self._data), SCAN_BYTES):
            if self._data.find(data, start, start + SCAN_BYTES + len(data)) >= 0:
                return True
            self.release()
        return False

    def search(self, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """The first place in the file that fits."""
        found = pattern.search(self._data)
        self.release()
        return found

    def release(self) -> None:
        """The pages that were read leave the tool's memory; they come back where they are read again."""
        if isinstance(self._data, mmap.mmap):
            self._data.madvise(mmap.MADV_DONTNEED)

    @cached_property
    def memory_end(self) -> int:
        """The end of its data, .bss included, before loading."""
        return max((one.end for one in self.segments), default=0)

    def load_bias(self, mapping: Mapping) -> int | None:
        """The load bias of this file's addresses, given one of its mappings."""
        for segment in self.segments:
            start = _page_of(segment.offset)
            if start <= mapping.offset < segment.offset + segment.file_bytes:
                return mapping.start - _page_of(segment.address) - (mapping.offset - start)
        return None

    @cached_property
    def _sections(self) -> list[Section]:
        if not self.is_ours or not self._header.sections_at:
            return []
        start, size, count = self._header.sections_at, self._header.section_bytes, self._header.sections
        first = Section(*elf.SECTION_HEADER.unpack_from(self._data, start))
        count = count or first.size  # of 65,280 and more
        if start + count * size > len(self._data):
            raise ValueError("its section headers are beyond its end")
        places = range(start, start + count * size, size)
        return [Section(*elf.SECTION_HEADER.unpack_from(self._data, place)) for place in places]

    def _symbol_tables(self, *types: int) -> list[SymbolTable]:
        return [self._symbol_table(one) for one in self._sections if one.type in types and one.size]

    def _symbol_table(self, section: Section) -> SymbolTable:
        names = self._sections[section.link]
        return SymbolTable(self._rows(section, SYMBOL), self._data, names.offset, names.offset + names.size)

    def _rows(self, section: Section, row: struct.Struct) -> memoryview:
        start, size = section.offset, section.size // row.size * row.size
        if start + size > len(self._data):
            raise ValueError("a table is beyond its end")
        return memoryview(self._data)[start : start + size]


def open_elf(path: str | Path) -> ElfFile | None:
    """The file as ELF; None if it is not one, or cannot be read."""
    try:
        status = Path(path).stat()
        file = _open_elf(Place(status.st_dev, status.st_ino, status.st_mtime_ns, str(path)))
    except OSError:
        return None
    if file is not None:
        file.name = str(path)  # the one that it was opened by first may have ended with its process
    return file


def elf_of(data: bytes, name: str) -> ElfFile | None:
    """`open_elf` for a file's content."""
    try:
        return ElfFile(data, name)
    except PARSER_ERRORS:
        return None


@dataclass(frozen=True)
class Place:
    """Identified by device and inode, not by path: a process may see it under a path of its own."""

    device: int
    inode: int
    time_ns: int
    path: str = field(compare=False)


@lru_cache(CACHED_FILES)
def _open_elf(place: Place) -> ElfFile | None:
    with Path(place.path).open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            return ElfFile(data, place.path)
        except (ValueError, LookupError, struct.error):  # it is empty, or not ELF, or cut off
            return None


def _whole_words(count: int) -> int:
    return (count + 3) // 4 * 4


def _page_of(address: int) -> int:
    return address // PAGE_BYTES * PAGE_BYTES
