"""What is looked into: a running process or a core dump, with the library's description of itself.

target = open_process(PID)           AccessRefusedError, ProcessGoneError, NotHakmemError, VersionError
target = open_core(Path("core"))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hakmem.base.errors import HakmemError, ProcessGoneError, UnreadableError
from hakmem.layout.memory import Memory
from hakmem.layout.schema import MAGIC, Schema
from hakmem.target.live_memory import ProcessMemory
from hakmem.target.process import Process


@dataclass
class Target:
    """Where to read, and how it is laid out there."""

    memory: Memory
    schema: Schema
    pid: int
    command: list[str]
    process: Process | None = None  # None for a core
    time_s: float | None = None  # of a core: when it was written
    address: int = 0  # of the library's block; 0: not looked at again

    @property
    def own_pid(self) -> int:
        """As the program itself knows it; in a container another one than ours."""
        return self.process.own_id(self.pid) if self.process else self.pid

    def check_same(self) -> None:
        """Raises when what was read is not, or no longer, the process that was opened."""
        if self.process is None:
            return
        self.process.check_same()
        if self.address and not self._has_block():
            raise ProcessGoneError(
                f"process {self.pid} runs another program by now: it called exec while it was being read"
            )

    def _has_block(self) -> bool:
        try:
            return self.memory.read(self.address, len(MAGIC)) == MAGIC
        except UnreadableError:
            return False


# What numpy and Python make of figures that cannot be: lengths below 0, addresses of nowhere.
NONSENSE = (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


@contextmanager
def making_sense(target: Target) -> Iterator[None]:
    """The target is read in here.  When that fails, and it has ended or runs another program by now, that is
    the better answer; figures that cannot be are a HakmemError."""
    try:
        yield
    except HakmemError:
        target.check_same()
        raise
    except NONSENSE as error:
        target.check_same()
        what = f"process {target.pid}" if target.process else "the core dump"
        raise HakmemError(
            f"hakmem's structures in {what} make no sense ({type(error).__name__}: {error}): its memory is "
            "damaged, or changed while it was read; try again, or find what damages it with HAKMEM_HARDEN=1"
        ) from error


def open_process(pid: int) -> Target:
    from hakmem.target.locate import find_in_process

    process = Process(pid)
    memory = ProcessMemory(pid)
    try:
        address = find_in_process(process, memory)
        schema = Schema.read(memory, address)
    except HakmemError:
        process.check_same()  # it ended: that is the better answer
        raise
    process.check_same()
    return Target(memory, schema, pid, process.command, process, address=address)


def open_core(path: Path, executable: Path | None = None, libraries: Sequence[Path] = ()) -> Target:
    """`executable` and `libraries` stand for the files that the program ran, where those have moved."""
    from hakmem.target.corefile import CoreMemory
    from hakmem.target.locate import find_in_core

    memory = CoreMemory(path, executable, libraries)
    schema = Schema.read(memory, find_in_core(memory))
    return Target(memory, schema, memory.pid, memory.command, time_s=path.stat().st_mtime)
