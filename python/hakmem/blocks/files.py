"""Addresses in the files that a target has mapped: which file, which symbol."""

from __future__ import annotations

from functools import cache

from hakmem.base.errors import DamagedFileError
from hakmem.profile.model import ByAddress
from hakmem.target.demangle import cxx_name
from hakmem.target.elf import ElfFile
from hakmem.target.functions import FUNCTIONS_AND_OBJECTS, symbols_of
from hakmem.target.mappings import continues_file
from hakmem.target.process import Mapping
from hakmem.target.target import Target


class Files:
    """The mappings of a target, by address."""

    def __init__(self, target: Target) -> None:
        self._target = target
        by_address = ByAddress(target.maps())
        self.mappings, self.mapping_at = by_address.mappings, by_address.at
        self._symbols_of = cache(lambda file: symbols_of(file, FUNCTIONS_AND_OBJECTS))
        self._data_end = cache(target.data_end)
        self._opened: dict[str, tuple[ElfFile, int] | None] = {}
        self.missing: set[str] = set()  # of a core: names of files in which symbols were sought but not found

    def owner_of(self, mapping: Mapping) -> Mapping | None:
        """The mapping of a file; of .bss, which has none, the one right before it."""
        if mapping.is_file:
            return mapping
        before = self.mapping_at(mapping.start - 1)
        is_bss = before is not None and not mapping.path and continues_file(mapping, before, self._data_end)
        return before if is_bss else None

    def is_code(self, address: int) -> bool:
        mapping = self.mapping_at(address)
        return mapping is not None and "x" in mapping.permissions

    def is_data_of_file(self, address: int) -> bool:
        """Constants or static data: mapped from a file, and not code."""
        mapping = self.mapping_at(address)
        return mapping is not None and "x" not in mapping.permissions and self.owner_of(mapping) is not None

    def symbol_at(self, address: int) -> tuple[str, int] | None:
        """The symbol that an address lies in, demangled, and how far."""
        mapping = self.mapping_at(address)
        owner = self.owner_of(mapping) if mapping else None
        opened = self._open(owner) if owner else None
        if opened is None:
            return None
        file, bias = opened
        symbols = self._symbols_of(file)
        found = symbols.at(address - bias) if symbols else None
        return (cxx_name(found[0]) or found[0], found[1]) if found else None

    def address_of(self, symbol: str, *names: str) -> int | None:
        """The address of a symbol in the first file that defines it; those whose name contains one of
        `names` first."""
        files = {mapping.path: mapping for mapping in self.mappings if mapping.is_file}.values()
        for mapping in sorted(files, key=lambda one: not any(name in one.file_name for name in names)):
            opened = self._open(mapping)
            try:
                value = opened[0].symbol(symbol) if opened else None
            except DamagedFileError:
                continue
            if opened is not None and value is not None:
                return opened[1] + value
        return None

    def describe(self, address: int) -> str:
        """libx.so.1: name+0x10, or the mapping's name."""
        mapping = self.mapping_at(address)
        if mapping is None:
            return "not mapped"
        owner = self.owner_of(mapping)
        if owner is None:
            return mapping.path or f"anonymous mapping {mapping.start:#x}"
        symbol = self.symbol_at(address)
        start = next((one.start for one in self.mappings if one.path == owner.path), owner.start)
        place = f"{symbol[0]}+{symbol[1]:#x}" if symbol else f"+{address - start:#x}"
        return f"{owner.file_name}: {place}"

    def _open(self, mapping: Mapping) -> tuple[ElfFile, int] | None:
        """The file as ELF, and its load bias; None if it is not one, or cannot be read."""
        if mapping.path not in self._opened:
            if self._target.core is not None and self._target.core.is_missing(mapping):
                self.missing.add(mapping.file_name)
            self._opened[mapping.path] = self._target.loaded(mapping)
        return self._opened[mapping.path]
