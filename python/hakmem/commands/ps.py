"""hakmem ps: processes and their allocators."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import click

from hakmem.commands.arguments import JSON

if TYPE_CHECKING:
    from hakmem.census.limits import LimitFigures
    from hakmem.target.process import Process

OTHERS_SHOWN = 15
COMMAND_SHOWN = 100


@dataclass(frozen=True)
class Line:
    pid: int
    allocator: str
    version: str | None
    is_bundled: bool
    rss_bytes: int
    user_id: int
    command: list[str]
    limits: LimitFigures | None = None  # of those on hakmem


@dataclass(frozen=True)
class Listing:
    lines: list[Line]  # those on hakmem first, then by RSS
    refused: int  # processes to which access was denied


@click.command("ps")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Every process, not only those on hakmem and the largest others.",
)
@JSON
def command(everything: bool, as_json: bool) -> None:
    """List processes by allocator: hakmem, glibc, musl, jemalloc, mimalloc, tcmalloc …

    For those on hakmem the closest memory limit (HAKMEM_LIMIT_SOFT, HAKMEM_LIMIT_HARD, the cgroup's) and the
    number of refused requests are shown.

    "static" is a program linked statically with a C library's malloc. Processes to which the kernel denies
    access are counted.

    \b
    Examples:
      hakmem ps
      sudo hakmem ps --all
      hakmem ps --json | jq '.processes[] | select(.allocator == "hakmem") | .pid'
    """
    from hakmem.views.screen import print_json

    found = listing()
    if as_json:
        print_json({"processes": [asdict(line) for line in found.lines], "refused": found.refused})
    else:
        print_listing(found, everything)


def listing() -> Listing:
    from hakmem.base.errors import AccessRefusedError, ProcessGoneError
    from hakmem.target.process import all_processes

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
    return Listing(lines, refused)


def _line(process: Process) -> Line:
    from hakmem.base.errors import UnreadableError, VersionError
    from hakmem.target.allocators import HAKMEM, Allocator, detect

    try:
        allocator = detect(process)
    except VersionError:
        allocator = Allocator(HAKMEM, "not this tool's format")
    except UnreadableError:
        process.check_same()
        allocator = Allocator("unknown")
    return Line(
        pid=process.pid,
        allocator=allocator.name,
        version=allocator.version,
        is_bundled=allocator.is_bundled,
        rss_bytes=process.figures().rss_bytes,
        user_id=process.path("").stat().st_uid,
        command=process.command,
        limits=_limits(process) if allocator.name == HAKMEM else None,
    )


def _limits(process: Process) -> LimitFigures | None:
    from hakmem.base.errors import HakmemError
    from hakmem.census.snapshot import open_process, take

    try:
        return take(open_process(process.pid), detail="counters").limits
    except HakmemError:
        return None  # of another format, or just started: listed anyway


def print_listing(found: Listing, everything: bool) -> None:
    from hakmem.base.sizes import bytes_text, counted
    from hakmem.census.limits import limit_mark
    from hakmem.target.allocators import HAKMEM
    from hakmem.views.screen import console, one_line, table

    ours = [line for line in found.lines if line.allocator == HAKMEM]
    others = [line for line in found.lines if line.allocator != HAKMEM]
    shown = others if everything else others[:OTHERS_SHOWN]
    marks = {line.pid: limit_mark(line.limits) for line in ours if line.limits}
    has_marks = any(marks.values())
    rows = [
        (
            str(line.pid),
            _allocator_text(line),
            bytes_text(line.rss_bytes),
            *([marks.get(line.pid, "")] if has_marks else []),
            one_line(line.command, None if everything else COMMAND_SHOWN),
        )
        for line in [*ours, *shown]
    ]
    out = console()
    out.print(table("", ["PID", "<malloc", "RSS", *(["<limit"] if has_marks else []), "<command"], rows))
    if len(shown) < len(others):
        counts = Counter(line.allocator for line in others[len(shown) :])
        out.print(
            f"… and {', '.join(f'{n} on {name}' for name, n in counts.most_common())} (--all)", style="dim"
        )
    if found.refused:
        fix = "" if os.geteuid() == 0 else "; use sudo"
        out.print(f"access denied by the kernel: {counted(found.refused, 'process', 'processes')}{fix}")


def _allocator_text(line: Line) -> str:
    if line.version:
        return f"{line.allocator} {line.version}"
    return f"{line.allocator} (bundled)" if line.is_bundled else line.allocator
