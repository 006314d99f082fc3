"""Finds hakmem's block in a program.

1  in mapped libraries named like hakmem's, and in the executable, linked with libhakmem.a: by its symbol, or
   by the block's magic in memory where the file is stripped, or deleted
2  else in any other mapped library: by its symbol

If there are several, the one that holds most is meant: an idle one has nothing to tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hakmem.base.errors import (
    DamagedFileError,
    HakmemError,
    MissingFileError,
    NotHakmemError,
    ProcessGoneError,
    UnreadableError,
)
from hakmem.layout.memory import Memory
from hakmem.layout.schema import FORMAT, MAGIC, Head, Schema
from hakmem.target.elf import ElfFile, open_elf
from hakmem.target.loader import load_order
from hakmem.target.process import Mapping, Process

if TYPE_CHECKING:
    from hakmem.target.corefile import CoreMemory

SYMBOL = "hak_stats_block"
LIBRARY_NAME = "hakmem"  # in the name of a mapped file
SCAN_BYTES = 16 << 20  # read at once
ALIGNMENT = 8

# Opens the file of a mapping on this machine; None if not found.
FileOf = Callable[[Mapping], ElfFile | None]


class Found(NamedTuple):
    """A hakmem in a program."""

    address: int  # of its block
    path: str  # of the file that it is in


def all_in_process(process: Process, memory: Memory, maps: Sequence[Mapping] | None = None) -> list[Found]:
    """The one that is meant, and the others; NotHakmemError if there is none.  `maps`: if already read."""
    if not process.has_memory:
        if process.state == "Z":
            raise ProcessGoneError(
                f"process {process.pid} has ended; its parent has not waited for it yet (zombie)"
            )
        if not process.is_kernels:
            raise ProcessGoneError(f"process {process.pid} is ending: its memory is gone")
        raise NotHakmemError(f"{process.pid} is a kernel thread: it has no malloc")
    maps = process.maps() if maps is None else maps
    found = find(memory, maps, executable_of(process, maps), lambda mapping: file_of(process, mapping))
    if not found:
        raise NotHakmemError(
            f"process {process.pid} ({process.name}) does not run on hakmem; start it with: hakmem run -- "
            f"{Path(process.command[0]).name} …"
        )
    return found


def find_in_core(core: CoreMemory) -> int:
    found = find(core, core.maps, core.executable_path, core.file_of)
    if not found:
        raise core.truncation or NotHakmemError(f"the program of {core.path} did not run on hakmem")
    return found[0].address


def find(
    memory: Memory, maps: Sequence[Mapping], executable: str, file_of: FileOf, everywhere: bool = False
) -> list[Found]:
    """All by the first of the ways above that finds one, or by both; the one that is meant first."""
    files = _files(maps)
    ours = [path for path in files if LIBRARY_NAME in path.rsplit("/", 1)[-1] and path != executable]
    others = [path for path in files if path != executable and path not in ours]
    found: list[Found] = []
    for path in (*ours, executable):
        address = _in_file(memory, files[path], file_of, is_only=not found) if path in files else None
        if address is not None:
            found.append(Found(address, path))
    if everywhere or not found:
        by_symbol = ((path, _by_symbol(files[path][0], file_of)) for path in others)
        more = (Found(at, path) for path, at in by_symbol if at is not None and is_block(memory, at))
        found += more if everywhere else islice(more, 1)
    return sorted(found, key=lambda one: -held_bytes(memory, one.address)) if len(found) > 1 else found


def held_bytes(memory: Memory, address: int) -> int:
    """The most that this hakmem has held; 0, too, where this tool cannot read it."""
    try:
        return Schema.read(memory, address).numbers(memory, "totals")["committed_peak_bytes"]
    except (HakmemError, LookupError, ValueError):
        return 0


def malloc_of(memory: Memory, maps: Sequence[Mapping], executable: str, file_of: FileOf) -> str | None:
    """The file whose malloc the program calls: the first in the loader's order that exports one; None where
    that is not known."""
    pieces = {path: found[0] for path, found in _files(maps).items()}
    files = {path: file for path, piece in pieces.items() if (file := file_of(piece)) is not None}
    program = files.get(executable)
    if program is None or program.dynamic_address is None:
        return executable if program else None
    try:
        biases = {path: file.load_bias(pieces[path]) for path, file in files.items()}
        paths = {bias: path for path, bias in biases.items()}
        order = load_order(memory, (biases[executable] or 0) + program.dynamic_address)
        found = (path for bias in order if (path := paths.get(bias)) is not None)
        return next((path for path in found if files[path].exports("malloc")), None)
    except DamagedFileError:
        return None


def _in_file(memory: Memory, pieces: list[Mapping], file_of: FileOf, is_only: bool) -> int | None:
    """`is_only`: no other has been found, so memory is searched even where the file is missing."""
    address = _by_symbol(pieces[0], file_of)
    if address is not None and is_block(memory, address):
        return address
    # Without the magic in the file there is none in memory; the file is searched quickly, and once.
    file = file_of(pieces[0])
    if not (is_only if file is None else file.contains(MAGIC)):
        return None
    return next((at for at in _by_magic(memory, pieces) if is_block(memory, at)), None)


def is_block(memory: Memory, address: int) -> bool:
    """Is it a block?  Also true of an unknown format, so that the error can name it.

    Segments share pages of their file, so a position-independent static program has a second copy of the
    block that was not relocated: its addresses are invalid."""
    try:
        head = Head.at(memory, address)
        if head.is_plausible and head.format == FORMAT:
            for table in (head.entries, head.roots, head.texts):
                memory.read(table, 1)
    except MissingFileError:
        raise
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


def _by_magic(memory: Memory, pieces: list[Mapping]) -> Iterator[int]:
    """Where the magic occurs in a file's mappings: data first, code last."""
    for mapping in sorted(pieces, key=lambda piece: ("w" not in piece.permissions, "x" in piece.permissions)):
        for start in range(mapping.start, mapping.end, SCAN_BYTES) if "r" in mapping.permissions else ():
            try:
                data = memory.read(start, min(SCAN_BYTES + ALIGNMENT, mapping.end - start))
            except UnreadableError:
                continue
            places = (found.start() for found in re.finditer(re.escape(MAGIC), data))
            yield from (start + place for place in places if place % ALIGNMENT == 0)


# ---- glibc ------------------------------------------------------------------------------------------

GLIBC_BANNER = re.compile(rb"GNU C Library [^\n]{0,80}? version (\d+\.\d+)")
GLIBC_MESSAGE = b"corrupted size vs. prev_size"  # of its malloc: a static program has no banner
GLIBC_FILE = re.compile(r"libc(\.so\.6|-2\.\d+\.so)$")


def libc_of(maps: Sequence[Mapping], file_of: FileOf) -> str | None:
    """ "glibc 2.36" if the program has that C library, or is linked with it; None for any other."""
    code = [one for one in maps if "x" in one.permissions and one.is_file]
    named = [one for one in code if GLIBC_FILE.match(one.file_name)]
    for mapping in named or code[:1]:
        file = file_of(mapping)
        found = file.search(GLIBC_BANNER) if file else None
        if found:
            return f"glibc {found[1].decode()}"
        if named or (file and file.contains(GLIBC_MESSAGE)):
            return "glibc"
    return None
