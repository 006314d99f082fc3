"""More than one hakmem in a process: which serves malloc, what the others hold, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hakmem.base.sizes import bytes_text
from hakmem.doctor.findings import Finding, advice
from hakmem.launch.preload import SEVERAL
from hakmem.layout.schema import read_head
from hakmem.target.live_memory import ProcessMemory
from hakmem.target.locate import executable_of, file_of, find, held_bytes, malloc_of
from hakmem.target.process import Mapping, Process

KEEP_ONE = "keep one: start the program without LD_PRELOAD, or build it without a hakmem of its own"
IDLE = "a copy that has held nothing is unused, and costs little"
COSTS = (
    "a block of one copy that is passed to the other's free ends the program (foreign free); each has "
    "its own caches and records, HAKMEM_LIMIT_* apply to each alone, and both write reports to the same file"
)


@dataclass(frozen=True)
class One:
    """One copy of hakmem in the process."""

    path: str
    version: str
    held_bytes: int  # at most, ever
    is_linked: bool  # into the program itself
    serves_malloc: bool

    def __str__(self) -> str:
        linked = "linked into it, " if self.is_linked else ""
        file = f"{self.path} ({linked}hakmem {self.version})"
        others = "serves the program's own calls at most" if self.is_linked else "serves hak_* at most"
        calls = "serves malloc" if self.serves_malloc else others
        held = f"has held {bytes_text(self.held_bytes)}" if self.held_bytes else "has held nothing"
        return f"{file} {calls}, and {held}"


def several_findings(process: Process, maps: Sequence[Mapping]) -> list[Finding]:
    """Empty where there is one at most."""
    ones = all_of(process, maps)
    if len(ones) <= 1:
        return []
    are_idle = sum(one.held_bytes > 0 for one in ones) <= 1
    return [advice(SEVERAL, "; ".join(map(str, ones)), f"{IDLE if are_idle else COSTS}; {KEEP_ONE}")]


def all_of(process: Process, maps: Sequence[Mapping]) -> list[One]:
    """The one that serves malloc first."""
    memory, executable = ProcessMemory(process), executable_of(process, maps)
    opened = partial(file_of, process)
    found = find(memory, maps, executable, opened, everywhere=True)
    serving = malloc_of(memory, maps, executable, opened) if len(found) > 1 else None
    ones = [
        One(
            path=path,
            version=read_head(memory, address).version_text,
            held_bytes=held_bytes(memory, address),
            is_linked=path == executable,
            serves_malloc=path == serving,
        )
        for address, path in found
    ]
    return sorted(ones, key=lambda one: not one.serves_malloc)
