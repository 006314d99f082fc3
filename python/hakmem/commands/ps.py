"""hakmem ps: processes and their allocators."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import click

from hakmem.base.errors import (
    AccessRefusedError,
    HakmemError,
    ProcessGoneError,
    UnreadableError,
    VersionError,
)
from hakmem.base.sizes import bytes_text, counted
from hakmem.commands.arguments import JSON, option, options
from hakmem.target.allocators import HAKMEM, Allocator, detect
from hakmem.target.container import container_of
from hakmem.target.process import Process, all_processes

if TYPE_CHECKING:
    from hakmem.census.limits import LimitFigures

By = Literal["process", "command", "container"]

OTHERS_SHOWN = 15
COMMAND_SHOWN = 100
GROUP_SHOWN = 40


@dataclass(frozen=True)
class Line:
    pid: int
    allocator: str
    version: str | None
    is_bundled: bool
    rss_bytes: int
    pss_bytes: int | None  # RSS, with each shared page divided among the processes that map it
    user_id: int
    name: str
    container: str  # its ID; the cgroup's path outside any
    command: list[str]
    limits: LimitFigures | None = None  # of those on hakmem
    live_bytes: int | None = None  # of blocks, where the heap can be read
    free_bytes: int | None = None  # the rest of what the heap holds


@dataclass(frozen=True)
class Group:
    """The processes of a command or a container."""

    name: str
    processes: int
    allocators: dict[str, int]  # how many processes use each
    rss_bytes: int
    pss_bytes: int


@click.command("ps")
@options
def command(
    everything: bool = option(
        "--all", help="Every process, not only those on hakmem and the largest others."
    ),
    by: By = option(
        "--by",
        type=click.Choice(["process", "command", "container"]),
        default="process",
        help="A line for each process, or sums of the processes of a command or of a container.",
    ),
    as_json: bool = JSON,
) -> None:
    """List processes by allocator: hakmem, glibc, musl, jemalloc, mimalloc, tcmalloc …

    PSS is RSS with each shared page divided among the processes that map it, so it can be summed.

    Live and free are the bytes of blocks, where the heap can be read: hakmem's and glibc's.

    For those on hakmem the closest memory limit (HAKMEM_LIMIT_SOFT, HAKMEM_LIMIT_HARD, the cgroup's) and the
    number of refused requests are shown.

    "static" is a program linked statically with a C library's malloc. Processes to which the kernel denies
    access are counted.

    \b
    Examples:
      hakmem ps
      sudo hakmem ps --all
      sudo hakmem ps --by container
      hakmem ps --json | jq '.processes[] | select(.allocator == "hakmem") | .pid'
    """
    from hakmem.views.screen import console, print_json

    lines, refused = listing()
    if by != "process":
        groups = grouped(lines, by)
        if as_json:
            print_json({"groups": [asdict(group) for group in groups], "refused": refused})
        else:
            print_groups(groups, by, everything)
    elif as_json:
        print_json({"processes": [asdict(line) for line in lines], "refused": refused})
    else:
        print_listing(lines, everything)
    if refused and not as_json:
        fix = "" if os.geteuid() == 0 else "; use sudo"
        console().print(f"access denied by the kernel: {counted(refused, 'process', 'processes')}{fix}")


def listing() -> tuple[list[Line], int]:
    """Those on hakmem first, then by RSS; and how many processes denied access."""
    lines, refused = [], 0
    for process in all_processes():
        try:
            if process.has_memory:
                lines.append(_line(process))
        except AccessRefusedError:
            refused += 1
        except ProcessGoneError:
            continue
    lines.sort(key=lambda line: (line.allocator != "hakmem", -line.rss_bytes))
    return lines, refused


def _line(process: Process) -> Line:
    container = container_of(process.path("cgroup"))
    try:
        allocator = detect(process)
    except VersionError:
        allocator = Allocator(HAKMEM, "not this tool's format")
    except UnreadableError:
        process.check_same()
        allocator = Allocator("unknown")
    sums = process.smaps_rollup()  # RSS and PSS of one instant: those of a growing process stay in order
    return Line(
        pid=process.pid,
        allocator=allocator.name,
        version=allocator.version,
        is_bundled=allocator.is_bundled,
        rss_bytes=sums.get("Rss", 0),
        pss_bytes=sums.get("Pss"),
        user_id=int(process.status()["Uid"].split()[1]),
        name=process.name,
        container=container.id or container.cgroup,
        command=process.command,
        **_heap_of(process, allocator),
    )


def _heap_of(process: Process, allocator: Allocator) -> dict[str, Any]:
    """Its limits, live and free bytes; of another format, just started, or without numpy it is listed
    without."""
    if allocator.name != HAKMEM and not allocator.may_be_glibc:
        return {}
    try:
        if allocator.name == HAKMEM:
            from hakmem.census.snapshot import open_process, take

            snapshot = take(open_process(process.pid), detail="counters")
            live_bytes, held = snapshot.memory.live_bytes, snapshot.totals
            free_bytes = max(0, held["committed_bytes"] - held["metadata_bytes"] - live_bytes)
            return {"limits": snapshot.limits, "live_bytes": live_bytes, "free_bytes": free_bytes}
        from hakmem.target.glibc import walk_of

        heap = walk_of(process.pid)
        free = sum(map(heap.sum, ("free_bytes", "top_bytes", "tcache_bytes", "fastbin_bytes")))
        return {"live_bytes": heap.sum("live_bytes") + heap.mmapped_bytes, "free_bytes": free}
    except (HakmemError, ModuleNotFoundError, LookupError):
        return {}


def print_listing(lines: Sequence[Line], everything: bool) -> None:
    from hakmem.census.limits import limit_mark
    from hakmem.views.screen import Sheet, console, one_line

    ours = [line for line in lines if line.allocator == HAKMEM]
    others = [line for line in lines if line.allocator != HAKMEM]
    shown = others if everything else others[:OTHERS_SHOWN]
    marks = {line.pid: limit_mark(line.limits) for line in ours if line.limits}
    has_marks = any(marks.values())
    rows = [
        (
            str(line.pid),
            _allocator_text(line),
            bytes_text(line.rss_bytes),
            *(
                "–" if count is None else bytes_text(count)
                for count in (line.pss_bytes, line.live_bytes, line.free_bytes)
            ),
            *([marks.get(line.pid, "")] if has_marks else []),
            one_line(line.command, None if everything else COMMAND_SHOWN),
        )
        for line in [*ours, *shown]
    ]
    out = console()
    columns = ["PID", "<malloc", "RSS", "PSS", "live", "free", *(["<limit"] if has_marks else []), "<command"]
    out.print(Sheet("", columns, rows))
    if len(shown) < len(others):
        counts = Counter(line.allocator for line in others[len(shown) :])
        more = ", ".join(f"{count} on {name}" for name, count in counts.most_common())
        out.print(f"… and {more} (--all)", style="dim")
    if ours and not find_spec("numpy"):
        out.print("limits need numpy: pip install 'hakmem[numpy]'", style="dim", markup=False)


def grouped(lines: Sequence[Line], by: By) -> list[Group]:
    """Most PSS first."""
    members: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        members[line.name if by == "command" else line.container].append(line)
    groups = [
        Group(
            name,
            len(those),
            dict(Counter(line.allocator for line in those).most_common()),
            sum(line.rss_bytes for line in those),
            sum(line.pss_bytes or 0 for line in those),
        )
        for name, those in members.items()
    ]
    return sorted(groups, key=lambda group: -group.pss_bytes)


def print_groups(groups: Sequence[Group], by: By, everything: bool) -> None:
    from hakmem.views.screen import Sheet, console, one_line

    shown = groups if everything else groups[:OTHERS_SHOWN]
    rows = [
        (
            one_line([group.name], None if everything else GROUP_SHOWN),
            str(group.processes),
            bytes_text(group.rss_bytes),
            bytes_text(group.pss_bytes),
            ", ".join(f"{name} {count}" for name, count in group.allocators.items()),
        )
        for group in shown
    ]
    out = console()
    out.print(Sheet("", [f"<{by}", "processes", "RSS", "PSS", "<malloc"], rows))
    if len(shown) < len(groups):
        out.print(f"… and {len(groups) - len(shown)} more (--all)", style="dim")


def _allocator_text(line: Line) -> str:
    if line.version:
        return f"{line.allocator} {line.version}"
    return f"{line.allocator} (bundled)" if line.is_bundled else line.allocator
