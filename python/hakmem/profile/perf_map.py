"""Perf map files: names of code that a JIT compiler made, `START SIZE name` a line, in hexadecimal.

node (--perf-basic-prof), Java's agents, .NET and CPython since 3.12 (-X perf) write /tmp/perf-PID.map, with
the PID and in the /tmp that the process itself knows."""

from __future__ import annotations

from contextlib import suppress

from hakmem.profile.model import ByAddress, Mapping
from hakmem.target.process import Process

BYTES_MAX = 256 << 20
PerfMap = ByAddress[Mapping]  # with the function's name in place of a path


def parsed(text: str) -> PerfMap:
    """The functions of one file.  Code is moved and replaced: if two lines have one address, the later one
    counts."""
    found: dict[int, Mapping] = {}
    for line in text.splitlines():
        with suppress(ValueError):
            start, size, name = line.split(" ", 2)
            found[int(start, 16)] = Mapping(int(start, 16), int(start, 16) + int(size, 16), 0, name.strip())
    return ByAddress(found.values())


def perf_map_of(process: Process) -> PerfMap | None:
    """None if the process has none, or it cannot be read."""
    try:
        path = process.path("root") / "tmp" / f"perf-{process.own_id(process.pid)}.map"
        if not path.is_file():  # a FIFO or a device of this name is not opened: it would wait
            return None
        with path.open("rb") as file:
            return parsed(file.read(BYTES_MAX).decode(errors="replace"))
    except (OSError, StopIteration, ValueError):
        return None
