"""Perf map files: names of code that a JIT compiler made, `START SIZE name` a line, in hexadecimal.

node (--perf-basic-prof), Java's agents, .NET and CPython since 3.12 (-X perf) write /tmp/perf-PID.map, with
the PID and in the /tmp that the process itself knows."""

from __future__ import annotations

from bisect import bisect_right

from hakmem.target.process import Process

BYTES_MAX = 256 << 20


class PerfMap:
    """The functions of one file.  Code is moved and replaced: of two at an address the later line counts."""

    def __init__(self, text: str) -> None:
        found: dict[int, tuple[int, str]] = {}
        for line in text.splitlines():
            parts = line.split(" ", 2)
            if len(parts) == 3:
                try:
                    start, size = int(parts[0], 16), int(parts[1], 16)
                except ValueError:
                    continue
                found[start] = (start + size, parts[2].strip())
        self._starts = sorted(found)
        self._found = found

    def __len__(self) -> int:
        return len(self._starts)

    def name_at(self, address: int) -> str | None:
        place = bisect_right(self._starts, address) - 1
        if place < 0:
            return None
        end, name = self._found[self._starts[place]]
        return name if address < end else None


def perf_map_of(process: Process) -> PerfMap | None:
    """None if the process has none, or it cannot be read."""
    try:
        path = process.path("root") / "tmp" / f"perf-{process.own_id(process.pid)}.map"
        if not path.is_file():  # a FIFO or a device of this name is not opened: it would wait
            return None
        with path.open("rb") as file:
            return PerfMap(file.read(BYTES_MAX).decode(errors="replace"))
    except (OSError, StopIteration, ValueError):
        return None
