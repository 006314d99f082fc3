"""The symbols of ELF files by address, from their symbol tables: for a file of 100 MB within a second.

A stripped file may carry its functions compressed in .gnu_debugdata (Fedora's do), or have them in a separate
debug file: several tables are asked in turn."""

from __future__ import annotations

import lzma

import numpy as np

from hakmem.base.errors import DamagedFileError
from hakmem.layout.memory import Records
from hakmem.target.elf import ElfFile, elf_of
from hakmem.target.elf_format import UNDEFINED_SECTION
from hakmem.target.symbol_table import SYMBOL, SYMBOL_FIELDS

FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
FUNCTIONS_AND_OBJECTS = (*FUNCTIONS, 1)  # STT_OBJECT
PREFERRED_BINDINGS = (0, 2, 1)  # of names of one address, the last that is there: local, weak, global
STEPS_BACK_MAX = 16  # over functions inside a function, or without a size
MINI_DEBUG_BYTES_MAX = 256 << 20
NAME_BYTES_MAX = 1 << 16


class Symbols:
    """The symbols of one file, of some types, sorted by address; addresses are those before loading."""

    def __init__(self, file: ElfFile, types: tuple[int, ...]) -> None:
        """DamagedFileError if its tables are."""
        tables = [_rows_of(rows, number, types) for number, (rows, _) in enumerate(file.symbol_tables())]
        rows = np.concatenate(tables) if tables else np.empty(0, _ROW)
        rows = rows[np.lexsort((rows["rank"], rows["size"] > 0, rows["start"]))]
        self._rows = rows
        self._starts = np.ascontiguousarray(rows["start"])
        self._names = [names for _, names in file.symbol_tables()]

    def __len__(self) -> int:
        return len(self._rows)

    def at(self, address: int) -> tuple[str, int] | None:
        """The symbol that an address lies in, and how far."""
        place = int(np.searchsorted(self._starts, np.uint64(max(address, 0)), side="right")) - 1
        for number in range(place, max(-1, place - STEPS_BACK_MAX), -1):
            row = self._rows[number]
            start, size = int(row["start"]), int(row["size"])
            # One without a size (assembler) reaches to the next.
            if address < start + size or (size == 0 and number == place):
                names, offset = self._names[int(row["table"])], int(row["name"])
                end = names.find(b"\0", offset, offset + NAME_BYTES_MAX)
                return (names[offset:end].decode(errors="replace"), address - start) if end > offset else None
        return None


_ROW = np.dtype([("start", "u8"), ("size", "u8"), ("name", "u4"), ("rank", "u1"), ("table", "u1")])
assert np.dtype(list(SYMBOL_FIELDS)).itemsize == SYMBOL.size  # as in the file


def _rows_of(symbols: Records, table: int, types: tuple[int, ...]) -> Records:
    kept = symbols[np.isin(symbols["info"] & 0xF, types) & (symbols["section"] != UNDEFINED_SECTION)]
    rows = np.empty(len(kept), _ROW)
    rows["start"], rows["size"], rows["name"] = kept["value"], kept["size"], kept["name"]
    rows["table"], rows["rank"] = table, 0
    for rank, binding in enumerate(PREFERRED_BINDINGS):
        rows["rank"][kept["info"] >> 4 == binding] = rank
    return rows


def symbols_of(file: ElfFile, types: tuple[int, ...] = FUNCTIONS) -> Symbols | None:
    """Those of .symtab and .dynsym, and of .gnu_debugdata where there is no .symtab; None if damaged."""
    try:
        found = Symbols(file, types)
        inner = _mini_debug_file(file)
        more = Symbols(inner, types) if inner is not None else None
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
