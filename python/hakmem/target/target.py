"""A target: a running process or a core dump, with the library's description of itself.

target = open_process(PID)           AccessRefusedError, ProcessGoneError, NotHakmemError, VersionError
target = open_core(Path("core"))
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hakmem.base.errors import (
    DamagedFileError,
    HakmemError,
    NotHakmemError,
    ProcessGoneError,
    UnreadableError,
)
from hakmem.layout.memory import Memory
from hakmem.layout.schema import MAGIC, Schema
from hakmem.target.live_memory import ProcessMemory
from hakmem.target.process import Mapping, Process

if TYPE_CHECKING:
    from hakmem.target.corefile import CoreMemory
    from hakmem.target.elf import ElfFile


@dataclass
class Target:
    """A memory and the layout of hakmem's structures in it."""

    memory: Memory
    _schema: Schema | None  # None: not hakmem's heap
    pid: int
    command: list[str]
    process: Process | None = None  # None for a core
    core: CoreMemory | None = None  # its memory; None for a process
    time_s: float | None = None  # of a core: when it was written
    address: int = 0  # of the library's block; 0: not checked again
    places: Sequence[str] = ()  # the file with this hakmem, and those with others in the same process
    python: Any = None  # of target/python_frames.py, kept from one reading to the next
    libc: str = ""  # "glibc 2.36": whose malloc it is, if not hakmem's

    @property
    def schema(self) -> Schema:
        if self._schema is None:
            raise NotHakmemError(f"{self.name}: {self.lacks}")
        return self._schema

    @property
    def lacks(self) -> str:
        """The answers that another malloc than hakmem does not have."""
        does = f"hakmem run -- {self.program} … does"
        return f"{self.libc}'s malloc keeps no call sites, counters or events; {does}"

    @property
    def program(self) -> str:
        return Path(self.command[0]).name if self.command else "PROGRAM"

    @property
    def malloc(self) -> str:
        return "hakmem" if self._schema else "glibc"

    @property
    def version(self) -> str:
        """That of hakmem, or another malloc with its own."""
        return self._schema.version if self._schema else self.libc

    @property
    def name(self) -> str:
        return f"process {self.pid}" if self.process else "the program of the core dump"

    def maps(self) -> list[Mapping]:
        """A process's mappings now; a core's when it was written."""
        return self.core.maps if self.core else self.process.maps() if self.process else []

    def file_of(self, mapping: Mapping) -> ElfFile | None:
        """The file of a mapping; None if it cannot be read."""
        from hakmem.target.locate import file_of

        if self.process is not None:
            return file_of(self.process, mapping)
        return self.core.file_of(mapping) if self.core else None

    def loaded(self, mapping: Mapping) -> tuple[ElfFile, int] | None:
        """A mapping's program or library, and its load bias; None for other, damaged or missing files."""
        file = self.file_of(mapping)
        try:
            bias = file.load_bias(mapping) if file is not None and file.is_ours else None
        except DamagedFileError:
            return None
        return (file, bias) if file is not None and bias is not None else None

    def data_end(self, mapping: Mapping) -> float:
        """Where the data of a mapped file end, .bss included; infinity if that is not known."""
        loaded = self.loaded(mapping)
        return loaded[0].memory_end + loaded[1] if loaded else math.inf

    def check_same(self) -> None:
        """Raises if the process that was opened has ended, or runs another program."""
        if self.process is None:
            return
        self.process.check_same()
        if self.address and not self._has_block():
            raise ProcessGoneError(
                f"process {self.pid} runs another program now: it called exec while it was being read"
            )

    @property
    def is_gone(self) -> bool:
        """Does `check_same` raise?"""
        try:
            self.check_same()
        except ProcessGoneError:
            return True
        return False

    def _has_block(self) -> bool:
        try:
            return self.memory.read(self.address, len(MAGIC)) == MAGIC
        except UnreadableError:
            return False


# numpy and Python raise these for impossible figures: negative lengths, invalid addresses.
NONSENSE = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@contextmanager
def making_sense(target: Target) -> Iterator[None]:
    """The target is read inside.  If it has ended or runs another program by now, the error says so; other
    impossible figures are a HakmemError."""
    try:
        yield
    except HakmemError:
        target.check_same()
        raise
    except NONSENSE as error:
        target.check_same()
        what = f"process {target.pid}" if target.process else "the core dump"
        raise HakmemError(
            f"hakmem's structures in {what} are inconsistent ({type(error).__name__}: {error}): its memory "
            "is corrupted, or changed while it was read; try again, or find the corruption with "
            "HAKMEM_HARDEN=1"
        ) from error
    target.check_same()


def open_process(pid: int) -> Target:
    from hakmem.target.allocators import detect, not_readable
    from hakmem.target.locate import all_in_process, file_of, libc_of

    process = Process(pid)
    memory = ProcessMemory(process)
    try:
        try:
            found = all_in_process(process, memory)
        except NotHakmemError:
            if not process.has_memory:
                raise
            maps, malloc = process.maps(), detect(process)
            libc = libc_of(maps, lambda one: file_of(process, one)) if malloc.may_be_glibc else None
            if not maps:
                raise ProcessGoneError(f"process {pid} ended while it was being read") from None
            if libc is None:
                raise not_readable(process, malloc) from None
            return Target(memory, None, pid, process.command, process, libc=libc)
        schema = Schema.read(memory, found[0].address)
    except HakmemError:
        process.check_same()  # it has ended: the better answer
        raise
    process.check_same()
    places = [one.path for one in found]
    return Target(memory, schema, pid, process.command, process, address=found[0].address, places=places)


def open_core(path: Path, files: Sequence[Path] = ()) -> Target:
    """`files`, or directories of them, replace those of the program that have moved."""
    from hakmem.target.corefile import CoreMemory
    from hakmem.target.locate import find_in_core, libc_of

    memory = CoreMemory(path, files)
    schema, libc = None, None
    try:
        schema = Schema.read(memory, find_in_core(memory))
    except NotHakmemError:
        libc = libc_of(memory.maps, memory.file_of)
        if libc is None:
            raise
    time_s = path.stat().st_mtime
    return Target(memory, schema, memory.pid, memory.command, core=memory, time_s=time_s, libc=libc or "")
