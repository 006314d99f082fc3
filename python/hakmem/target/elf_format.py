"""The ELF format as far as hakmem's tool reads it: of 32-bit and big-endian files only the headers.

Where a file is invalid, what goes wrong becomes a DamagedFileError (`parsing`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from hakmem.base.errors import DamagedFileError

MAGIC, CLASS_64, LITTLE_ENDIAN = b"\x7fELF", 2, 1
CLASS, DATA = 4, 5  # places of the two
HEADER, PROGRAM_HEADER = "16xHH4x8xQQ4x2xHHHHH", "IIQQ8xQQ8x"  # without their byte order
HEADER_32, PROGRAM_HEADER_32 = "16xHH4x4xII4x2xHHHHH", "III4xIII4x"  # the flags come last
NOTE = struct.Struct("<III")  # bytes of the name, of the content; type
SECTION_HEADER = struct.Struct("<IIQQQQII16x")
DYNAMIC_TAG = struct.Struct("<qQ")
EXTENDED = 0xFFFF  # the number did not fit
KINDS = {1: "ET_REL", 2: "ET_EXEC", 3: "ET_DYN", 4: "ET_CORE"}
MACHINES = {
    3: "386", 8: "mips", 20: "ppc", 21: "ppc64", 22: "s390", 40: "arm", 62: "x86-64", 183: "aarch64",
    243: "riscv", 258: "loongarch",
}  # fmt: skip
PERMISSIONS = (("r", 4), ("w", 2), ("x", 1))  # flags of a segment
PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
NT_GNU_BUILD_ID, GNU = 3, b"GNU"
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
UNDEFINED_SECTION = 0
DT_NEEDED, DT_STRTAB, DT_SONAME, DT_RPATH, DT_RUNPATH, DT_FLAGS_1 = 1, 5, 14, 15, 29, 0x6FFFFFFB
DYNAMIC_LISTS = {DT_NEEDED: "needed", DT_SONAME: "soname", DT_RPATH: "rpath", DT_RUNPATH: "runpath"}
FLAGS_1_PIE = 0x08000000
# Raised for invalid headers; numpy documents no narrower set.
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


@contextmanager
def parsing(name: str) -> Iterator[None]:
    """Turns every parser error inside into a DamagedFileError."""
    try:
        yield
    except PARSER_ERRORS as error:
        raise DamagedFileError(name, error) from error


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
    kind: int
    flags: int
    offset: int
    address: int
    file_bytes: int
    memory_bytes: int

    @property
    def end(self) -> int:
        return self.address + self.memory_bytes

    @property
    def permissions(self) -> str:
        """As in /proc/PID/maps."""
        return "".join(letter if self.flags & bit else "-" for letter, bit in PERMISSIONS) + "p"


class Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
