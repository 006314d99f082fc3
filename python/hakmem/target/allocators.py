"""Which allocator a process uses, by the libraries that it maps and the executable's symbols."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import DamagedFileError, NotHakmemError
from hakmem.layout.schema import Head, read_head
from hakmem.target.elf import ElfFile
from hakmem.target.live_memory import ProcessMemory
from hakmem.target.locate import all_in_process, executable_of, file_of
from hakmem.target.process import Mapping, Process

HAKMEM, GLIBC, STATIC, UNKNOWN = "hakmem", "glibc", "static", "unknown"

# Names of mapped files, in the order of their precedence.
LIBRARIES = (
    (re.compile(r"lib(clang_rt\.)?asan"), "AddressSanitizer"),
    (re.compile(r"lib(clang_rt\.)?tsan"), "ThreadSanitizer"),
    (re.compile(r"libjemalloc"), "jemalloc"),
    (re.compile(r"libmimalloc"), "mimalloc"),
    (re.compile(r"libtcmalloc"), "tcmalloc"),
    (re.compile(r"libtbbmalloc_proxy"), "tbbmalloc"),
    (re.compile(r"libsnmalloc"), "snmalloc"),
    (re.compile(r"librpmalloc"), "rpmalloc"),
    (re.compile(r"libhardened_malloc"), "hardened_malloc"),
    (re.compile(r"libscudo"), "scudo"),
)
C_LIBRARIES = (
    (re.compile(r"libc\.so\.6$|libc-2\.\d+\.so$"), GLIBC),
    (re.compile(r"(ld|libc)[-.]musl|libc\.so$"), "musl"),
    (re.compile(r"linker64$"), "bionic"),
)
# Symbols of the executable.
BUNDLED = (
    ("mi_malloc", "mimalloc"),
    ("je_malloc", "jemalloc"),
    ("_rjem_malloc", "jemalloc"),
    ("mallctl", "jemalloc"),  # hakmem has mallocx as well
    ("tc_malloc", "tcmalloc"),
    ("scalable_malloc", "tbbmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("sn_malloc", "snmalloc"),
    ("runtime.mallocgc", "Go"),
)


@dataclass(frozen=True)
class Allocator:
    name: str
    version: str | None = None  # hakmem's
    is_bundled: bool = False  # in the executable itself

    @property
    def may_be_glibc(self) -> bool:
        return self.name in (GLIBC, STATIC) and not self.is_bundled


def not_readable(process: Process, malloc: Allocator) -> NotHakmemError:
    """Why a process has neither hakmem's heap nor glibc's."""
    executable = _executable(process, process.maps())
    subject = f"process {process.pid} ({process.name})"
    if executable and not executable.is_ours:
        return NotHakmemError(f"{subject} is a 32-bit program; only 64-bit ones can be read")
    is_known = malloc.name not in (STATIC, UNKNOWN)
    another = f"on {malloc.name}" if is_known else "on a malloc that is not known"
    said = f"{subject} does not run on hakmem, nor on glibc's malloc, but {another}"
    if not malloc.is_bundled and malloc.name != STATIC:
        said += f"; start it with: hakmem run -- {Path(process.command[0]).name} …"
    return NotHakmemError(said)


def bundled_in(file: ElfFile) -> str | None:
    """The allocator that a file contains, by its symbols."""
    return next((name for symbol, name in BUNDLED if file.symbol(symbol) is not None), None)


def detect(process: Process) -> Allocator:
    """Raises AccessRefusedError or ProcessGoneError like every access to a process."""
    maps = process.maps()
    # Only code that can run: a tool that reads a library maps it as well, this one for example.
    code = {mapping.path for mapping in maps if "x" in mapping.permissions}
    names = [mapping.file_name for mapping in maps if mapping.is_file and mapping.path in code]
    if head := hakmem_in(process, maps):
        return Allocator(HAKMEM, head.version_text)
    if name := _first(LIBRARIES, names):
        return Allocator(name)
    executable = _executable(process, maps)
    try:
        if executable and (name := bundled_in(executable)):
            return Allocator(name, is_bundled=True)
        if name := _first(C_LIBRARIES, names):
            return Allocator(name)
        return Allocator(STATIC if executable and executable.is_static else UNKNOWN)
    except DamagedFileError:
        return Allocator(UNKNOWN)


def hakmem_in(process: Process, maps: Sequence[Mapping]) -> Head | None:
    memory = ProcessMemory(process)
    try:
        return read_head(memory, all_in_process(process, memory, maps)[0].address)
    except NotHakmemError:
        return None


def _first(table: Sequence[tuple[re.Pattern[str], str]], names: Sequence[str]) -> str | None:
    return next((name for pattern, name in table if any(pattern.match(file) for file in names)), None)


def _executable(process: Process, maps: Sequence[Mapping]) -> ElfFile | None:
    path = executable_of(process, maps)
    mapping = next((mapping for mapping in maps if mapping.path == path), None)
    return file_of(process, mapping) if mapping else None
