"""The functions of ELF files by address, from their symbol tables: for a file of 100 MB within a second.

A stripped file may carry its functions compressed in .gnu_debugdata (Fedora's do), or have them in a separate
debug file: several tables are asked in turn."""

from __future__ import annotations

import lzma
from collections.abc import Sequence

import numpy as np

from hakmem.base.errors import DamagedFileError
from hakmem.layout.memory import Records
from hakmem.target.elf import ElfFile, elf_of
from hakmem.target.elf_format import UNDEFINED_SECTION
from hakmem.target.symbol_table import SYMBOL, SYMBOL_FIELDS

FUNCTION_TYPES = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
PREFERRED_BINDINGS = (0, 2, 1)  # of names of one address, the last that is there: local, weak, global
STEPS_BACK_MAX = 16  # over functions inside a function, or without a size
MINI_DEBUG_BYTES_MAX = 256 << 20
NAME_BYTES_MAX = 1 << 16


class Functions:
    """The functions of one file, sorted by address; addresses are those before loading."""

    def __init__(self, file: ElfFile) -> None:
        """DamagedFileError if its tables are."""
        tables = [_functions_of(rows, number) for number, (rows, _) in enumerate(file.symbol_tables())]
        rows = np.concatenate(tables) if tables else np.empty(0, _ROW)
        rows = rows[np.lexsort((rows["rank"], rows["size"] > 0, rows["start"]))]
        self._rows = rows
        self._starts = np.ascontiguousarray(rows["start"])
        self._names = [names for _, names in file.symbol_tables()]

    def __len__(self) -> int:
        return len(self._rows)

    def names_at(self, addresses: Sequence[int]) -> list[str | None]:
        """The function that contains each address, None for unknown."""
        places = np.searchsorted(self._starts, np.array(addresses, np.uint64), side="right") - 1
        return [self._name(int(place), address) for place, address in zip(places, addresses, strict=True)]

    def _name(self, place: int, address: int) -> str | None:
        for at in range(place, max(-1, place - STEPS_BACK_MAX), -1):
            row = self._rows[at]
            size = int(row["size"])
            # One without a size (assembler) reaches to the next.
            if address < int(row["start"]) + size or (size == 0 and at == place):
                return self._text(int(row["table"]), int(row["name"]))
        return None

    def _text(self, table: int, offset: int) -> str | None:
        names = self._names[table]
        end = names.find(b"\0", offset, offset + NAME_BYTES_MAX)
        return names[offset:end].decode(errors="replace") if end > offset else None


_ROW = np.dtype([("start", "u8"), ("size", "u8"), ("name", "u4"), ("rank", "u1"), ("table", "u1")])
assert np.dtype(list(SYMBOL_FIELDS)).itemsize == SYMBOL.size  # as in the file


def _functions_of(symbols: Records, table: int) -> Records:
    kinds = symbols["info"] & 0xF
    kept = symbols[np.isin(kinds, FUNCTION_TYPES) & (symbols["section"] != UNDEFINED_SECTION)]
    rows = np.empty(len(kept), _ROW)
    rows["start"], rows["size"], rows["name"], rows["table"] = (
        kept["value"],
        kept["size"],
        kept["name"],
        table,
    )
    rows["rank"] = 0
    for rank, binding in enumerate(PREFERRED_BINDINGS):
        rows["rank"][kept["info"] >> 4 == binding] = rank
    return rows


def functions_of(file: ElfFile) -> Functions | None:
    """Functions of .symtab and .dynsym, and of .gnu_debugdata where there is no .symtab; None if damaged."""
    try:
        found = Functions(file)
        inner = _mini_debug_file(file)
        more = Functions(inner) if inner is not None else None
    except DamagedFileError:
        return None
    return more if more is not None and len(more) > len(found) else found


def _mini_debug_file(file: ElfFile) -> ElfFile | None:
    packed = file.section(".gnu_debugdata")
    if packed is None:
        return None
    try:
        data = lzma.LZMADecompressor(memlimit=1 << 30).decompress(packed, MINI_DEBUG_BYTES_MAX)
    except lzma.LZMAError:
        return None
    return elf_of(data, f"{file.name} (.gnu_debugdata)")
