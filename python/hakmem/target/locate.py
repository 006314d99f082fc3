"""Finds hakmem's block in a program.

1  a mapped library named like hakmem's: by its symbol
2  the executable, linked with libhakmem.a: by its symbol
3  any other mapped library: by its symbol
4  a stripped executable, or deleted files: by the block's magic in memory
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from hakmem.base.errors import DamagedFileError, NotHakmemError, ProcessGoneError, UnreadableError
from hakmem.layout.memory import Memory
from hakmem.layout.schema import FORMAT, MAGIC, Head
from hakmem.target.elf import ElfFile, open_elf
from hakmem.target.process import Mapping, Process

if TYPE_CHECKING:
    from hakmem.target.corefile import CoreMemory

SYMBOL = "hak_stats_block"
LIBRARY_NAME = "hakmem"  # in the name of a mapped file
SCAN_BYTES = 16 << 20  # read at once
ALIGNMENT = 8

# Opens the file of a mapping on this machine; None if not found.
FileOf = Callable[[Mapping], ElfFile | None]


def find_in_process(process: Process, memory: Memory, maps: Sequence[Mapping] | None = None) -> int:
    """The block's address; NotHakmemError if there is none.  `maps`: if already read."""
    if not process.has_memory:
        if process.state == "Z":
            raise ProcessGoneError(
                f"process {process.pid} has ended; its parent has not waited for it yet (zombie)"
            )
        raise NotHakmemError(f"{process.pid} is a kernel thread: it has no malloc")
    maps = process.maps() if maps is None else maps
    address = find(memory, maps, executable_of(process, maps), lambda mapping: file_of(process, mapping))
    if address is None:
        raise NotHakmemError(
            f"process {process.pid} ({process.name}) does not run on hakmem; start it with: hakmem run -- "
            f"{Path(process.command[0]).name} …"
        )
    return address


def find_in_core(core: CoreMemory) -> int:
    address = find(core, core.maps, core.executable_path, core.file_of)
    if address is None:
        raise NotHakmemError(f"the program of {core.path} did not run on hakmem")
    return address


def find(memory: Memory, maps: Sequence[Mapping], executable: str, file_of: FileOf) -> int | None:
    """The block's address by any of the ways above."""
    files = _files(maps)
    ours = [path for path in files if LIBRARY_NAME in path.rsplit("/", 1)[-1] and path != executable]
    others = [path for path in files if path != executable and path not in ours]
    by_symbol = (
        _by_symbol(files[path][0], file_of) for path in (*ours, executable, *others) if path in files
    )
    by_magic = (
        place
        for path in (*ours, executable)
        if path in files and _may_hold_block(file_of(files[path][0]))
        for place in _by_magic(memory, files[path])
    )
    for address in chain(filter(None, by_symbol), by_magic):
        if is_block(memory, address):
            return address
    return None


def is_block(memory: Memory, address: int) -> bool:
    """Is it a block?  Also true of an unknown format, so that the error can name it.

    Segments share pages of their file, so a position-independent static program has a second copy of the
    block that was not relocated: its addresses are invalid."""
    try:
        head = Head.at(memory, address)
        if head.is_plausible and head.format == FORMAT:
            for table in (head.entries, head.roots, head.texts):
                memory.read(table, 1)
    except UnreadableError:
        return False
    return head.is_plausible


def file_of(process: Process, mapping: Mapping) -> ElfFile | None:
    """The mapped file itself where the kernel permits (map_files: also in containers, also deleted files),
    else the file at its path, if it is still the same."""
    name = f"map_files/{mapping.start:x}-{mapping.end:x}"
    for path in (process.path(name), process.path("root") / mapping.path.lstrip("/"), Path(mapping.path)):
        try:
            status = path.stat()
        except OSError:
            continue
        if status.st_ino == mapping.inode and (file := open_elf(path)) is not None:
            return file
    return None


def executable_of(process: Process, maps: Sequence[Mapping]) -> str:
    """The path in the maps: that of /proc/PID/exe, else of the lowest mapping (a static program)."""
    try:
        return str(process.path("exe").readlink())
    except OSError:
        return next((mapping.path for mapping in maps if mapping.is_file), "")


def _files(maps: Iterable[Mapping]) -> dict[str, list[Mapping]]:
    """The mappings by file, of programs and libraries only: files with an executable mapping."""
    files: dict[str, list[Mapping]] = {}
    for mapping in maps:
        if mapping.is_file:
            files.setdefault(mapping.path, []).append(mapping)
    return {
        path: pieces for path, pieces in files.items() if any("x" in piece.permissions for piece in pieces)
    }


def _by_symbol(mapping: Mapping, file_of: FileOf) -> int | None:
    """Also None if the file's headers are damaged: another file may have the block."""
    file = file_of(mapping)
    try:
        value = file.symbol(SYMBOL) if file else None
        if file is None or value is None:
            return None
        bias = file.load_bias(mapping)
    except DamagedFileError:
        return None
    return None if bias is None else bias + value


def _may_hold_block(file: ElfFile | None) -> bool:
    """Without the magic in the file there is none in memory; the file is searched quickly, and once."""
    return file is None or file.contains(MAGIC)


def _by_magic(memory: Memory, pieces: list[Mapping]) -> Iterator[int]:
    """Where the magic occurs in a file's mappings: data first, code last."""
    for mapping in sorted(pieces, key=lambda piece: ("w" not in piece.permissions, "x" in piece.permissions)):
        if "r" in mapping.permissions:
            yield from _scan(memory, mapping)


def _scan(memory: Memory, mapping: Mapping) -> Iterator[int]:
    for start in range(mapping.start, mapping.end, SCAN_BYTES):
        try:
            data = memory.read(start, min(SCAN_BYTES + ALIGNMENT, mapping.end - start))
        except UnreadableError:
            continue
        yield from _places(data, start)


def _places(data: bytes, start: int) -> Iterator[int]:
    place = data.find(MAGIC)
    while place >= 0:
        if place % ALIGNMENT == 0:
            yield start + place
        place = data.find(MAGIC, place + 1)
