"""The ELF format as far as hakmem's tool reads it itself: the headers of 64-bit little-endian files.

Where a file is invalid, what goes wrong becomes a DamagedFileError (`parsing`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from hakmem.base.errors import DamagedFileError

MAGIC, CLASS_64, LITTLE_ENDIAN = b"\x7fELF", 2, 1
CLASS, DATA = 4, 5  # places of the two
HEADER = struct.Struct("<16xHH4x8xQQ4x2xHHHHH")
PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
DYNAMIC_TAG = struct.Struct("<qQ")
EXTENDED = 0xFFFF  # the number did not fit
KINDS = {1: "ET_REL", 2: "ET_EXEC", 3: "ET_DYN", 4: "ET_CORE"}
MACHINES = {62: "EM_X86_64", 183: "EM_AARCH64"}
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
PT_KINDS = {"PT_LOAD": PT_LOAD, "PT_DYNAMIC": PT_DYNAMIC, "PT_INTERP": PT_INTERP}
SHT_PROGBITS, SHT_SYMTAB, SHT_RELA, SHT_NOBITS, SHT_DYNSYM = 1, 2, 4, 8, 11
SECTION_IS_CODE = 0x4
UNDEFINED_SECTION = 0
STT_OBJECT, STT_FUNC = 1, 2
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FLAGS_1 = 1, 5, 14, 15, 29, 0x6FFFFFFB
DYNAMIC_LISTS = {DT_NEEDED: "needed", DT_SONAME: "soname", DT_RPATH: "rpath", DT_RUNPATH: "runpath"}
FLAGS_1_PIE = 0x08000000
# Raised for invalid headers; pyelftools and numpy document no narrower set.
PARSER_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)
PARSER_MODULE = "elftools."  # whose own errors have no common type


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """Turns every parser error inside into a DamagedFileError."""
    try:
        yield
    except Exception as error:
        if not is_parser_error(error):
            raise
        raise DamagedFileError(name, error) from error


def is_parser_error(error: Exception) -> bool:
    """Is the file invalid?  pyelftools' errors are known by where they are from: it may not be imported."""
    return isinstance(error, PARSER_ERRORS) or type(error).__module__.startswith(PARSER_MODULE)


class Header(NamedTuple):
    """The first header's fields that are used here."""

    kind: int
    machine: int
    segments_at: int
    sections_at: int
    segment_bytes: int
    segments: int
    section_bytes: int
    sections: int
    names_section: int


class ProgramHeader(NamedTuple):
    """A program header without its flags."""

    kind: int
    offset: int
    address: int
    physical_address: int
    file_bytes: int
    memory_bytes: int
    alignment: int


class Section(NamedTuple):
    """A section header."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int
