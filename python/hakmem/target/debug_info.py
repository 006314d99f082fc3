"""The source location of an address in an ELF file: function, file and line, with inlined calls.

From DWARF where available: in the file itself or in a separate debug file, found by build id or by name where
debuggers look for it.  Else from the symbol tables, which contain functions only.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.descriptions import describe_form_class
from elftools.dwarf.ranges import BaseAddressEntry
from elftools.elf.elffile import ELFFile

from hakmem.target.demangle import demangled
from hakmem.target.elf import open_elf
from hakmem.target.functions import Functions, functions_of

DEBUG_ROOT = Path("/usr/lib/debug")
# pyelftools raises these for a damaged file; there is no common base class.
DAMAGED = (
    ELFError, DWARFError, OSError, ValueError, LookupError, AttributeError, AssertionError, TypeError,
    OverflowError, NotImplementedError, RecursionError, struct.error,
)  # fmt: skip
SCOPES = ("DW_TAG_namespace", "DW_TAG_class_type", "DW_TAG_structure_type", "DW_TAG_union_type")
WITH_CODE = ("DW_TAG_lexical_block", "DW_TAG_try_block", "DW_TAG_catch_block", *SCOPES)
ORIGINS = ("DW_AT_abstract_origin", "DW_AT_specification")
VERSION_OF_COUNTING_FROM_0 = 5  # of DWARF: its file tables
ORIGINS_DEEP = 4


@dataclass(frozen=True)
class Place:
    """A line of a function; unknown parts are None."""

    function: str | None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        where = f" at {self.file}:{self.line}" if self.file else ""
        return f"{self.function or '??'}{where}"


class DebugInfo:
    """Debug information of one file; `open_debug_info` creates it.  Addresses are those before loading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._elf: Any = ELFFile(path.open("rb"))
        self._lines: dict[int, Lines] = {}
        loads = [s["p_vaddr"] for s in self._elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        # The address of its first segment: the file's base for the loader.
        self.first_address = min(loads, default=0) & ~0xFFF

    def places(self, address: int) -> list[Place]:
        """Innermost first: inlined calls, then the function itself; [] if unknown."""
        try:
            found = self._from_dwarf(address)
        except DAMAGED:
            found = []
        if found and found[-1].function:
            return found
        function = self._symbol(address)
        if not found:
            return [Place(function)] if function else []
        return [*found[:-1], Place(function, found[-1].file, found[-1].line)]

    # ---- symbols ----------------------------------------------------------------------------------

    @cached_property
    def _functions(self) -> list[Functions]:
        files = [self.path, *([Path(self._separate.stream.name)] if self._separate is not None else [])]
        opened = (open_elf(path) for path in files)
        found = (functions_of(file) for file in opened if file is not None)
        return [functions for functions in found if functions is not None]

    def _symbol(self, address: int) -> str | None:
        for functions in self._functions:
            [name] = functions.names_at([address])
            if name:
                return demangled([name])[name]
        return None

    # ---- DWARF ------------------------------------------------------------------------------------

    @cached_property
    def _separate(self) -> Any:  # noqa: ANN401 - pyelftools has no types
        """The separate debug file, as Debian's -dbgsym packages install it."""
        for path in self._debug_files():
            try:
                return ELFFile(path.open("rb"))
            except DAMAGED:
                continue
        return None

    def _debug_files(self) -> Iterator[Path]:
        for section in self._elf.iter_sections():
            if section.name == ".note.gnu.build-id":
                for note in section.iter_notes():
                    if note["n_type"] == "NT_GNU_BUILD_ID":
                        build_id = str(note["n_desc"])
                        yield DEBUG_ROOT / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"
        link = self._elf.get_section_by_name(".gnu_debuglink")
        if link is not None:
            name = link.data().split(b"\0")[0].decode(errors="surrogateescape")
            folder = self.path.resolve().parent
            for place in (folder, folder / ".debug", DEBUG_ROOT / folder.relative_to("/")):
                if name and (place / name).resolve() != self.path.resolve():
                    yield place / name

    @cached_property
    def _dwarf(self) -> Any:  # noqa: ANN401 - pyelftools has no types
        for elf in (self._elf, self._separate):
            if elf is not None and elf.has_dwarf_info(strict=True):
                return elf.get_dwarf_info(follow_links=False)
        return None

    def _from_dwarf(self, address: int) -> list[Place]:
        unit = self._unit_of(address) if self._dwarf is not None else None
        if unit is None:
            return []
        if unit.cu_offset not in self._lines:
            self._lines[unit.cu_offset] = Lines(self._dwarf, unit)
        lines = self._lines[unit.cu_offset]
        file, line = lines.at(address)
        places: list[Place] = []
        for entry in reversed(list(self._entries_at(unit.get_top_DIE(), address))):
            places.append(Place(_name_of(entry), file, line))
            call_file, call_line = (entry.attributes.get(f"DW_AT_call_{what}") for what in ("file", "line"))
            file = lines.file_name(call_file.value) if call_file else None
            line = call_line.value if call_line else None
        return places or [Place(None, file, line)]

    @cached_property
    def _aranges(self) -> Any:  # noqa: ANN401 - pyelftools has no types
        return self._dwarf.get_aranges()

    @cached_property
    def _units(self) -> list[Any]:
        return list(self._dwarf.iter_CUs())

    def _unit_of(self, address: int) -> Any:  # noqa: ANN401 - pyelftools has no types
        offset = self._aranges.cu_offset_at_addr(address) if self._aranges else None
        if offset is not None:
            return self._dwarf.get_CU_at(offset)
        # clang writes no .debug_aranges.
        return next((unit for unit in self._units if self._covers(unit.get_top_DIE(), address)), None)

    def _covers(self, entry: Any, address: int) -> bool:  # noqa: ANN401 - pyelftools has no types
        low, high = (entry.attributes.get(f"DW_AT_{name}_pc") for name in ("low", "high"))
        if low and high:
            is_length = describe_form_class(high.form) == "constant"
            end = low.value + high.value if is_length else high.value
            return bool(low.value <= address < end)
        ranges = entry.attributes.get("DW_AT_ranges")
        return ranges is not None and any(b <= address < e for b, e in self._ranges(entry, ranges))

    def _ranges(self, entry: Any, ranges: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401
        top = entry.cu.get_top_DIE().attributes.get("DW_AT_low_pc")
        base = top.value if top else 0
        table = self._dwarf.range_lists()
        is_new = entry.cu["version"] >= VERSION_OF_COUNTING_FROM_0
        found = table.get_range_list_at_offset(ranges.value, *([entry.cu] if is_new else []))
        for item in found:
            if isinstance(item, BaseAddressEntry):
                base = item.base_address
            else:
                start = 0 if getattr(item, "is_absolute", False) else base
                yield start + item.begin_offset, start + item.end_offset

    def _entries_at(self, entry: Any, address: int) -> Iterator[Any]:  # noqa: ANN401
        """The functions that contain the address, outermost first: one, and those inlined into it."""
        for child in entry.iter_children():
            if child.tag in ("DW_TAG_subprogram", "DW_TAG_inlined_subroutine"):
                if self._covers(child, address):
                    yield child
                    yield from self._entries_at(child, address)
                    return
            elif child.tag in WITH_CODE and child.has_children:
                inside = list(self._entries_at(child, address))
                if inside:
                    yield from inside
                    return


class Lines:
    """The line table of one unit."""

    def __init__(self, dwarf: Any, unit: Any) -> None:  # noqa: ANN401 - pyelftools has no types
        self._program = dwarf.line_program_for_CU(unit)
        top = unit.get_top_DIE().attributes
        self._folder = _text(top["DW_AT_comp_dir"].value) if "DW_AT_comp_dir" in top else ""
        name = top.get("DW_AT_name")
        self._name = _text(name.value) if name else None

    @cached_property
    def _rows(self) -> list[tuple[int, int, int, bool]]:
        """(address, file, line, ends a sequence), sorted."""
        if self._program is None:
            return []
        states = (entry.state for entry in self._program.get_entries())
        rows = [(s.address, s.file, s.line, s.end_sequence) for s in states if s is not None]
        # At the same address the end of one sequence comes before the start of another.
        return sorted(rows, key=lambda row: (row[0], not row[3]))

    @cached_property
    def _addresses(self) -> list[int]:
        return [row[0] for row in self._rows]

    def at(self, address: int) -> tuple[str | None, int | None]:
        number = bisect_right(self._addresses, address) - 1
        if number < 0 or self._rows[number][3]:
            return None, None
        _, file, line, _ = self._rows[number]
        return self.file_name(file), line or None

    def file_name(self, number: int) -> str | None:
        if self._program is None:
            return None
        header = self._program.header
        first = 0 if header.version >= VERSION_OF_COUNTING_FROM_0 else 1
        if not first <= number < first + len(header.file_entry):
            return self._name
        entry = header.file_entry[number - first]
        folder = self._folder_name(header, entry.dir_index, first)
        return str(PurePosixPath(self._folder, folder, _text(entry.name)))

    @staticmethod
    def _folder_name(header: Any, number: int, first: int) -> str:  # noqa: ANN401
        folders = header.include_directory
        return _text(folders[number - first]) if first <= number < first + len(folders) else ""


def _name_of(entry: Any) -> str | None:  # noqa: ANN401 - pyelftools has no types
    """Qualified with its namespaces and classes."""
    for _ in range(ORIGINS_DEEP):
        name = entry.attributes.get("DW_AT_name")
        origin = next((form for form in ORIGINS if form in entry.attributes), None)
        if name is not None and origin is None:
            return "::".join([*_scopes_of(entry), _text(name.value)])
        if origin is None:
            return None
        entry = entry.get_DIE_from_attribute(origin)
    return None


def _scopes_of(entry: Any) -> list[str]:  # noqa: ANN401 - pyelftools has no types
    scopes: list[str] = []
    parent = entry.get_parent()
    while parent is not None:
        if parent.tag in SCOPES:
            name = parent.attributes.get("DW_AT_name")
            is_elsewhere = "DW_AT_signature" in parent.attributes  # with -fdebug-types-section
            if name or not is_elsewhere:
                scopes.insert(0, _text(name.value) if name else "(anonymous)")
        parent = parent.get_parent()
    return scopes


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def open_debug_info(path: Path) -> DebugInfo | None:
    """None if it is not an ELF file, or cannot be read."""
    try:
        return DebugInfo(path)
    except DAMAGED:
        return None
