"""A .dynsym or .symtab, by name.

A large program has a million symbols: a name is searched in the names first, and only one that is there in
the rows."""

from __future__ import annotations

import mmap
import struct
from typing import TYPE_CHECKING, Final

from hakmem.base.lazy import Lazy
from hakmem.layout.memory import Records
from hakmem.target.elf_format import UNDEFINED_SECTION

if TYPE_CHECKING:
    import numpy as np
else:
    np = Lazy("numpy")

SYMBOL = struct.Struct("<IBBHQQ")  # its fields:
SYMBOL_FIELDS = (
    ("name", "u4"),
    ("info", "u1"),
    ("other", "u1"),
    ("section", "u2"),
    ("value", "u8"),
    ("size", "u8"),
)
NAME: Final = "I"  # its first


class SymbolTable:
    """A .dynsym or .symtab with its names."""

    def __init__(self, rows: memoryview, data: mmap.mmap | bytes, names_at: int, names_end: int) -> None:
        """The names are a part of `data`, the file: they may be many megabytes, and are not copied."""
        self._rows = rows
        self._data, self._names_at, self._names_end = data, names_at, names_end

    @property
    def parts(self) -> tuple[Records, bytes]:
        rows = np.frombuffer(self._rows, np.dtype(list(SYMBOL_FIELDS)))
        return rows, self._data[self._names_at : self._names_end]

    def defined(self, name: bytes) -> int | None:
        """The value of the first symbol of this name that is defined here.  Names share tails, so one may
        start inside another."""
        places = set()
        place = self._data.find(name + b"\0", self._names_at, self._names_end)
        while place >= 0:
            places.add(place - self._names_at)
            place = self._data.find(name + b"\0", place + 1, self._names_end)
        names = self._rows.cast(NAME)[:: SYMBOL.size // struct.calcsize(NAME)] if places else ()
        for number, place in enumerate(names):
            if place in places:
                _, _, _, section, value, _ = SYMBOL.unpack_from(self._rows, number * SYMBOL.size)
                if section != UNDEFINED_SECTION:
                    return int(value)
        return None
