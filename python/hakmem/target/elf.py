"""An ELF file: its symbols, needed libraries, build id, and how it is loaded.

pyelftools reads the headers; symbols are looked up in the raw tables with numpy, as a large program has a
million of them.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np
from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment, NoteSegment

from hakmem.base.errors import DamagedFileError
from hakmem.layout.memory import PAGE_BYTES
from hakmem.target.process import Mapping

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYMBOL = np.dtype(
    [("name", "u4"), ("info", "u1"), ("other", "u1"), ("section", "u2"), ("value", "u8"), ("size", "u8")]
)
RELOCATION = np.dtype([("offset", "u8"), ("info", "u8"), ("addend", "i8")])
SECTION_IS_CODE = 0x4
UNDEFINED_SECTION = 0
STT_OBJECT, STT_FUNC = 1, 2
DYNAMIC_LISTS = {"DT_NEEDED": "needed", "DT_RPATH": "rpath", "DT_RUNPATH": "runpath"}
FLAGS_1_PIE = 0x08000000
CACHED_FILES = 1024
# What pyelftools and numpy raise for invalid headers; neither documents less.
PARSER_ERRORS = (
    ELFError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    ConstructError,  # not always wrapped in ELFError
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """Turns every parser error inside into a DamagedFileError."""
    try:
        yield
    except PARSER_ERRORS as error:
        raise DamagedFileError(name, error) from error


@dataclass(frozen=True)
class Segment:
    """A PT_LOAD."""

    address: int
    offset: int
    file_bytes: int
    memory_bytes: int


@dataclass(frozen=True)
class CodeSection:
    """Machine code and its address before loading."""

    address: int
    data: bytes


class SymbolTable:
    """A .dynsym or .symtab with its names."""

    def __init__(self, symbols: NDArray[Any], names: bytes) -> None:
        self._symbols = symbols
        self._names = names

    @property
    def parts(self) -> tuple[NDArray[Any], bytes]:
        return self._symbols, self._names

    def named(self, name: bytes) -> NDArray[Any]:
        """All symbols of this name."""
        return self._symbols[self.numbers_of(name)]

    def numbers_of(self, name: bytes) -> NDArray[np.int64]:
        """Their numbers.  Names share tails, so one may start inside another."""
        places = []
        place = self._names.find(name + b"\0")
        while place >= 0:
            places.append(place)
            place = self._names.find(name + b"\0", place + 1)
        return np.flatnonzero(np.isin(self._symbols["name"], places))

    @cached_property
    def _by_address(self) -> NDArray[Any]:
        """Those of functions and objects that are defined here."""
        kind = self._symbols["info"] & 15
        named = (kind == STT_OBJECT) | (kind == STT_FUNC)
        chosen: NDArray[Any] = self._symbols[named & (self._symbols["section"] != UNDEFINED_SECTION)]
        return chosen[np.argsort(chosen["value"], kind="stable")]

    def at(self, address: int) -> tuple[str, int] | None:
        """The symbol that an address lies in, and how far."""
        row = int(np.searchsorted(self._by_address["value"], address, "right")) - 1
        if row < 0:
            return None
        symbol = self._by_address[row]
        into = address - int(symbol["value"])
        if into >= max(int(symbol["size"]), 1):
            return None
        start = int(symbol["name"])
        return self._names[start : self._names.find(b"\0", start)].decode(errors="replace"), into


class ElfFile:
    """An ELF file; symbols are read of 64-bit little-endian files only.  `open_elf` creates it.

    Only the first header is read at once; everything else may raise DamagedFileError."""

    def __init__(self, file: BinaryIO) -> None:
        self.name = str(file.name)
        if isinstance(file, BytesIO):
            self._data: mmap.mmap | bytes = file.getvalue()
            self._elf: Any = ELFFile(file)
        else:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._elf = ELFFile(cast(IO[bytes], self._data))
        self.machine: str = self._elf["e_machine"]  # EM_X86_64 …
        self.kind: str = self._elf["e_type"]  # ET_EXEC, ET_DYN, ET_CORE
        self.is_ours: bool = self._elf.elfclass == 64 and self._elf.little_endian

    @cached_property
    def segments(self) -> list[Segment]:
        with parsing(self.name):
            return [
                Segment(s["p_vaddr"], s["p_offset"], s["p_filesz"], s["p_memsz"])
                for s in self._elf.iter_segments()
                if s["p_type"] == "PT_LOAD"
            ]

    @cached_property
    def interpreter(self) -> str | None:
        """The dynamic loader; None for static programs and for most libraries."""
        with parsing(self.name):
            for segment in self._elf.iter_segments():
                if isinstance(segment, InterpSegment):
                    return str(segment.get_interp_name())
        return None

    @cached_property
    def dynamic(self) -> dict[str, list[str]]:
        """needed, rpath and runpath."""
        found: dict[str, list[str]] = {name: [] for name in DYNAMIC_LISTS.values()}
        with parsing(self.name):
            for tag in self._dynamic_tags():
                if tag.entry.d_tag in DYNAMIC_LISTS:
                    value = getattr(tag, tag.entry.d_tag.removeprefix("DT_").lower())
                    found[DYNAMIC_LISTS[tag.entry.d_tag]].append(value)
        return found

    @property
    def is_static(self) -> bool:
        """A program without a dynamic loader: nothing can be preloaded into it."""
        return self.interpreter is None and (self.kind == "ET_EXEC" or self._is_static_pie)

    @cached_property
    def _is_static_pie(self) -> bool:
        with parsing(self.name):
            flags = [tag.entry.d_val for tag in self._dynamic_tags() if tag.entry.d_tag == "DT_FLAGS_1"]
        return any(value & FLAGS_1_PIE for value in flags)

    def _dynamic_tags(self) -> list[Any]:
        for segment in self._elf.iter_segments():
            if segment["p_type"] == "PT_DYNAMIC":
                return list(segment.iter_tags())
        return []

    @cached_property
    def build_id(self) -> str | None:
        """Headers only, which a core has: pyelftools would read sections to construct other segments."""
        with parsing(self.name):
            for number in range(self._elf.num_segments()):
                header = self._elf._get_segment_header(number)
                if header["p_type"] == "PT_NOTE":
                    for note in NoteSegment(header, self._elf.stream, self._elf).iter_notes():
                        if note["n_type"] == "NT_GNU_BUILD_ID":
                            return str(note["n_desc"])
        return None

    @lru_cache(64)  # noqa: B019 - open_elf keeps the files anyway; most processes map the same files
    def symbol(self, name: str) -> int | None:
        """The address, before loading, of a symbol defined in this file."""
        with parsing(self.name):
            tables = self._symbol_tables
        for table in tables:
            symbols = table.named(name.encode())
            defined = symbols[symbols["section"] != UNDEFINED_SECTION]
            if len(defined):
                return int(defined["value"][0])
        return None

    def symbol_at(self, address: int) -> tuple[str, int] | None:
        """The function or object that an address, before loading, lies in, and how far."""
        with parsing(self.name):
            for table in self._symbol_tables:
                if found := table.at(address):
                    return found
        return None

    def slots_of(self, name: str) -> list[int]:
        """Addresses of the GOT slots through which it calls another file's function."""
        slots: list[int] = []
        with parsing(self.name):
            for section in self._sections:
                if section["sh_type"] == "SHT_RELA" and self.is_ours:
                    symbols = self._sections[section["sh_link"]]
                    if symbols["sh_type"] == "SHT_DYNSYM":
                        numbers = self._symbol_table(symbols).numbers_of(name.encode())
                        rows = self._rows(section, RELOCATION)
                        slots += rows["offset"][np.isin(rows["info"] >> np.uint64(32), numbers)].tolist()
        return slots

    @cached_property
    def code(self) -> list[CodeSection]:
        with parsing(self.name):
            return [
                CodeSection(s["sh_addr"], self._data[s["sh_offset"] : s["sh_offset"] + s["sh_size"]])
                for s in self._sections
                if s["sh_flags"] & SECTION_IS_CODE and s["sh_type"] == "SHT_PROGBITS"
            ]

    def symbol_tables(self) -> list[tuple[NDArray[Any], bytes]]:
        """The rows (SYMBOL) and the names of .dynsym and .symtab, where the file has them."""
        with parsing(self.name):
            return [table.parts for table in self._symbol_tables]

    def has_section(self, name: str) -> bool:
        """Whether it is there, with its content."""
        return self._section(name) is not None

    def section(self, name: str) -> bytes | None:
        """The content of a section; None if there is none, or none in this file."""
        found = self._section(name)
        if found is None:
            return None
        return self._data[found["sh_offset"] : found["sh_offset"] + found["sh_size"]]

    def _section(self, name: str) -> Any:  # noqa: ANN401 - pyelftools has no types
        with parsing(self.name):
            for section in self._sections:
                if self._elf._get_section_name(section) == name and section["sh_type"] != "SHT_NOBITS":
                    return section
        return None

    def address_of(self, offset: int) -> int | None:
        """The address, before loading, of a place in the file."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.file_bytes:
                return segment.address + offset - segment.offset
        return None

    @lru_cache(4)  # noqa: B019 - open_elf keeps the files anyway
    def contains(self, data: bytes) -> bool:
        """Does the file contain these bytes?"""
        return self._data.find(data, 0) >= 0

    def load_bias(self, mapping: Mapping) -> int | None:
        """The load bias of this file's addresses, given one of its mappings."""
        for segment in self.segments:
            start = _page_of(segment.offset)
            if start <= mapping.offset < segment.offset + segment.file_bytes:
                return mapping.start - _page_of(segment.address) - (mapping.offset - start)
        return None

    @cached_property
    def _sections(self) -> list[Any]:
        """Headers only: pyelftools would read a whole hash table to construct its section."""
        count, start = self._elf.num_sections(), self._elf["e_shoff"]
        if start + count * self._elf["e_shentsize"] > len(self._data):
            raise ValueError("its section headers are beyond its end")
        return [self._elf._get_section_header(number) for number in range(count)]

    @cached_property
    def _symbol_tables(self) -> list[SymbolTable]:
        tables = (s for s in self._sections if s["sh_type"] in ("SHT_DYNSYM", "SHT_SYMTAB") and s["sh_size"])
        return [self._symbol_table(section) for section in tables] if self.is_ours else []

    def _symbol_table(self, section: Any) -> SymbolTable:  # noqa: ANN401 - pyelftools has no types
        names = self._sections[section["sh_link"]]
        start, size = names["sh_offset"], names["sh_size"]
        return SymbolTable(self._rows(section, SYMBOL), self._data[start : start + size])

    def _rows(self, section: Any, dtype: np.dtype[Any]) -> NDArray[Any]:  # noqa: ANN401 - pyelftools has no types
        return np.frombuffer(self._data, dtype, section["sh_size"] // dtype.itemsize, section["sh_offset"])


def open_elf(path: str | Path) -> ElfFile | None:
    """The file as ELF; None if it is not one, or cannot be read."""
    try:
        status = Path(path).stat()
        return _open_elf(str(path), status.st_dev, status.st_ino, status.st_mtime_ns)
    except OSError:
        return None


def elf_of(data: bytes, name: str) -> ElfFile | None:
    """The same of a file's content."""
    file = BytesIO(data)
    file.name = name
    try:
        return ElfFile(file)
    except PARSER_ERRORS:
        return None


@lru_cache(CACHED_FILES)
def _open_elf(path: str, device: int, inode: int, time_ns: int) -> ElfFile | None:  # noqa: ARG001 - the key
    try:
        with Path(path).open("rb") as file:
            return ElfFile(file)
    except OSError:
        raise
    except PARSER_ERRORS:  # an empty file cannot be mapped: ValueError
        return None


def _page_of(address: int) -> int:
    return address // PAGE_BYTES * PAGE_BYTES
