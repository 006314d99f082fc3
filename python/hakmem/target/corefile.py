"""A core dump as memory.

A core holds the writable memory and omits what files hold anyway (code, constants).  Those pages are read
from the files that the note NT_FILE names, or from replacements given by the user.

    PT_LOAD    [ dumped … | not dumped: in the file that NT_FILE names, else zero ]
    PT_NOTE    NT_PRPSINFO  pid, command      NT_FILE  what was mapped where
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from hakmem.base.errors import DamagedFileError, HakmemError, MissingFileError, UnreadableError
from hakmem.layout.memory import PAGE_BYTES, Addresses, Bytes, Memory, Words
from hakmem.target.elf import ElfFile, elf_of, open_elf
from hakmem.target.elf_format import MAGIC, PT_NOTE, parsing
from hakmem.target.process import DELETED, Mapping

OURS = (b"\x1f", b"{")  # a heap profile or a recording begins so
READ_BYTES_MAX = 4 << 30  # at once: a damaged core may ask for anything
PRSTATUS, PRPSINFO, AUXV, FILES = 1, 3, 6, 0x46494C45
AUXV_ENTRY = struct.Struct("<QQ")  # type, value
# Mappings that have a name in /proc/PID/maps, by the auxiliary vector: AT_RANDOM, AT_SYSINFO_EHDR.
NAMED_BY = {25: "[stack]", 33: "[vdso]"}
OTHER_REGISTERS = (2, 0x202)  # NT_PRFPREG, NT_X86_XSTATE
PROGRAM = struct.Struct("<24xi12x16s80s")  # struct elf_prpsinfo: PID, name, command line
FILE_HEAD, FILE_ENTRY = struct.Struct("<QQ"), struct.Struct("<QQQ")  # number, page size; start, end, offset
MACHINES = {"x86-64": "x86_64", "aarch64": "aarch64"}


class CoreMemory(Memory):
    """The memory of a core dump and of the files it refers to."""

    def __init__(self, path: Path, files: Sequence[Path] = ()) -> None:
        """`files`, or directories of them, replace those of their names that NT_FILE has."""
        self.path = path
        self._moved = files
        self._path_of = cache(self._found_path)
        self._data = _mapped(path)
        core = _core(path, self._data)
        self.truncation = _truncation(path, core, len(self._data))
        self._segments = sorted(core.segments, key=lambda piece: piece.address)
        self._starts = np.array([piece.address for piece in self._segments], np.uint64)
        with parsing(str(path)):
            notes = [(kind, content) for _, kind, content in core.notes()]
            first = dict(reversed(notes))  # of each type: the crashed thread comes first
            self.pid, self.command = _program(first.get(PRPSINFO))
            self._files = _file_mappings(first.get(FILES))
            named = dict(AUXV_ENTRY.iter_unpack(first.get(AUXV, b"")))
            self._names = {named[kind]: name for kind, name in NAMED_BY.items() if kind in named}
        self.thread_notes = _thread_notes(notes)
        self.machine = MACHINES.get(core.machine, "")
        self.maps = self._all_maps()
        self.executable_path = self._guess_executable()

    @property
    def dumped(self) -> list[tuple[int, int]]:
        """The addresses [start, end) whose contents the core has."""
        whole = len(self._data)
        ends = ((piece, min(piece.file_bytes, whole - piece.offset)) for piece in self._segments)
        return [(piece.address, piece.address + count) for piece, count in ends if count > 0]

    @property
    def written(self) -> list[tuple[int, int]]:
        """The dumped parts that are not holes in the file: kernels and gdb skip pages of zeros."""
        found = []
        with self.path.open("rb") as file:
            for piece in self._segments:
                end = min(piece.offset + piece.file_bytes, len(self._data))
                for low, high in _without_holes(file.fileno(), piece.offset, end):
                    found.append((piece.address + low - piece.offset, piece.address + high - piece.offset))
        return found

    # ---- reading -----------------------------------------------------------------------------------

    def gather(self, addresses: Addresses, counts: Words) -> Bytes:
        if sum(counts.tolist()) > READ_BYTES_MAX:
            raise UnreadableError(int(addresses[0]), "no heap is that large; the core is damaged")
        parts = [
            self._piece(int(a), int(n)) for a, n in zip(addresses.tolist(), counts.tolist(), strict=True)
        ]
        return np.frombuffer(b"".join(parts), np.uint8).copy()

    def _piece(self, address: int, count: int) -> bytes:
        parts = []
        while count:
            part = self._read_some(address, count)
            parts.append(part)
            address, count = address + len(part), count - len(part)
        return b"".join(parts)

    def _read_some(self, address: int, count: int) -> bytes:
        """As much as is contiguous; at least one byte."""
        row = int(np.searchsorted(self._starts, address, "right")) - 1
        piece = self._segments[row] if row >= 0 else None
        if piece is None or address >= piece.end:
            return self._from_file(address, count, count, is_segment=False)
        into = address - piece.address
        if into < piece.file_bytes:
            start = piece.offset + into
            part = self._data[start : start + min(count, piece.file_bytes - into)]
            if not part:
                raise self.truncation or UnreadableError(address)
            return part
        return self._from_file(address, count, min(count, piece.end - address), is_segment=True)

    def _from_file(self, address: int, count: int, within: int, is_segment: bool) -> bytes:
        """Bytes that were not dumped: from the mapped file, else zeros where memory was mapped."""
        for mapping in self._files:
            if mapping.start <= address < mapping.end:
                return self._file_part(mapping, address, min(count, mapping.end - address))
        if is_segment:
            return bytes(within)
        raise UnreadableError(address, "not in the core dump")

    def _file_part(self, mapping: Mapping, address: int, count: int) -> bytes:
        path = self._path_of(mapping)
        if path is None:
            raise MissingFileError(
                address,
                f"the core dump omits the contents of {mapping.path}, which was not found, or is another "
                "build by now; name its copy with --files",
            )
        data = _mapped(path)
        start = mapping.offset + address - mapping.start
        part = data[start : start + count]
        return part or bytes(min(count, PAGE_BYTES - address % PAGE_BYTES))  # the tail of the last page

    # ---- files --------------------------------------------------------------------------------------

    def file_of(self, mapping: Mapping) -> ElfFile | None:
        path = self._path_of(mapping)
        return open_elf(path) if path else None

    def is_missing(self, mapping: Mapping) -> bool:
        """Neither the core nor this machine has the contents of the file."""
        return mapping.is_file and self._path_of(mapping) is None

    def _found_path(self, mapping: Mapping) -> Path | None:
        for given in self._moved:
            path = given / mapping.file_name if given.is_dir() else given
            if path.name == mapping.file_name and os.path.isfile(path):
                return path
        path = Path(mapping.path.removesuffix(DELETED))
        return path if os.path.isfile(path) and self._is_same(path, mapping) else None

    def _is_same(self, path: Path, mapping: Mapping) -> bool:
        """Compares build IDs: programs are built and installed again while they run."""
        was, now = _build_id(self._dumped_head(mapping)), _build_id(open_elf(path))
        return was == now if was and now else not mapping.path.endswith(DELETED)

    def _dumped_head(self, mapping: Mapping) -> ElfFile | None:
        """The file's first pages, which have its headers and its build ID: dumped of all files."""
        first = next((f.start for f in self._files if f.path == mapping.path and not f.offset), None)
        piece = next((piece for piece in self._segments if piece.address == first), None)
        if piece is None:
            return None
        return elf_of(self._data[piece.offset : piece.offset + piece.file_bytes], mapping.path)

    def _guess_executable(self) -> str:
        """The file that has the command's name; else the first one that is mapped."""
        name = Path(self.command[0]).name if self.command else ""
        named = (m.path for m in self._files if m.file_name == name)
        return next(named, self._files[0].path if self._files else "")

    def _all_maps(self) -> list[Mapping]:
        """As in /proc/PID/maps: the segments, with names and offsets from the notes."""
        found = []
        for piece in self._segments:
            file = next((f for f in self._files if f.start <= piece.address < f.end), None)
            offset = file.offset + piece.address - file.start if file else 0
            names = (name for at, name in self._names.items() if piece.address <= at < piece.end)
            path = file.path if file else next(names, "")
            found.append(
                Mapping(piece.address, piece.end, piece.permissions, offset, "", 1 if file else 0, path)
            )
        missing = (f for f in self._files if not any(p.address <= f.start < p.end for p in self._segments))
        return sorted([*found, *missing], key=lambda mapping: mapping.start)


def _without_holes(file: int, place: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of [place, end) that have data."""
    while place < end:
        try:
            low = os.lseek(file, place, os.SEEK_DATA)
            if low >= end:
                return
            place = min(os.lseek(file, low, os.SEEK_HOLE), end)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a file system that does not know its holes
                yield place, end
            return
        yield low, place


@lru_cache(64)
def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is empty"
        raise HakmemError(f"cannot read {path}: {reason}") from None


def _build_id(file: ElfFile | None) -> str | None:
    try:
        return file.build_id if file is not None else None
    except DamagedFileError:
        return None


def _truncation(path: Path, core: ElfFile, size: int) -> HakmemError | None:
    """The error to raise where something is read that a truncated core lacks; None for a whole core."""
    try:
        ends = [(one.kind, one.offset + one.file_bytes) for one in core.program_headers]
    except DamagedFileError:
        ends = []
    whole = max(core.headers_end, *(end for _, end in ends), 0)
    if whole <= size:
        return None
    error = HakmemError(
        f"{path} is truncated: it has {size:,} of {whole:,} bytes; dump the program again "
        "with a higher limit (ulimit -c unlimited) and room on the disk"
    )
    if size < max(core.headers_end, *(end for kind, end in ends if kind == PT_NOTE), 0):
        raise error  # gdb writes notes and section headers last
    return error


def _core(path: Path, data: mmap.mmap) -> ElfFile:
    if data[: len(MAGIC)] != MAGIC:
        is_ours = data[:1] in OURS
        hint = "; hakmem profile shows a heap profile, hakmem record a recording" if is_ours else ""
        raise HakmemError(f"{path} is not a core dump (not an ELF file){hint}")
    with parsing(str(path)):
        core = ElfFile(data, str(path))
    if core.kind != "ET_CORE":
        raise HakmemError(f"{path} is not a core dump but a program or library")
    if not core.is_ours:
        raise HakmemError(
            f"{path} is a core dump of an unsupported machine: hakmem needs 64-bit little-endian"
        )
    return core


def _thread_notes(notes: Sequence[tuple[int, bytes]]) -> list[tuple[bytes, list[bytes]]]:
    """Each thread's general registers (struct elf_prstatus), and its other ones."""
    threads: list[tuple[bytes, list[bytes]]] = []
    for kind, content in notes:
        if kind == PRSTATUS:
            threads.append((content, []))
        elif threads and kind in OTHER_REGISTERS:
            threads[-1][1].append(content)
    return threads


def _program(note: bytes | None) -> tuple[int, list[str]]:
    """Its PID and its command line."""
    if note is None:
        return 0, []
    pid, name, words = PROGRAM.unpack_from(note)
    return pid, _text(words).split() or [_text(name)]


def _file_mappings(note: bytes | None) -> list[Mapping]:
    if note is None:
        return []
    count, unit = FILE_HEAD.unpack_from(note)
    end = FILE_HEAD.size + count * FILE_ENTRY.size
    rows = FILE_ENTRY.iter_unpack(note[FILE_HEAD.size : end])
    names = note[end:].split(b"\0")[:count]
    return [
        Mapping(start, end, "r-xp", offset * unit, "", 1, _text(name))
        for (start, end, offset), name in zip(rows, names, strict=True)
    ]


def _text(value: bytes) -> str:
    return value.decode(errors="replace").split("\0")[0].strip()
