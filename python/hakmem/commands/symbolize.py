"""hakmem symbolize: functions and lines for the call stacks in a report, or in a heap profile."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

import click

from hakmem.base.errors import HakmemError
from hakmem.base.files import check_writable
from hakmem.commands.arguments import (
    FILES,
    INTERNALS,
    OUTPUT,
    argument,
    option,
    options_as,
    warn,
)


class InputFile(click.File):
    """Standard input may be closed."""

    def convert(
        self,
        value: str | os.PathLike[str] | IO[Any],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> IO[Any]:
        if value == "-" and sys.stdin is None:
            self.fail("standard input is closed; name a file", param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True)
class Asked:
    report: BinaryIO = argument(type=InputFile("rb"), default="-")
    files: tuple[Path, ...] = FILES
    with_internals: bool = INTERNALS
    output: Path | None = option(
        "-o",
        "--output",
        type=OUTPUT,
        help="For a heap profile: the file to write, .pb.gz, .json, .folded or .html.",
    )
    debuginfod: bool = option(
        "--debuginfod", help="For a heap profile: also ask the servers in DEBUGINFOD_URLS, for 20 s at most."
    )


@click.command("symbolize")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Resolve each frame in REPORT (default: standard input) to function, file and line, with inlined calls.

    The report is hakmem's output on standard error, possibly mixed with other output. Files and lines need a
    program compiled with -g, or its debug information in /usr/lib/debug; functions need a program that is not
    stripped.

    REPORT may also be a heap profile that was taken elsewhere. Its build ids tell whether a file is the right
    one. It is printed, or with -o written in the format that the name tells, with whole stacks.

    \b
    Examples:
      ./server 2>&1 | hakmem symbolize
      hakmem symbolize server.log
      hakmem symbolize server.log --files ./build
      hakmem symbolize server.pb.gz --files ./build -o server.html
    """
    from hakmem.views.symbolize import Symbolizer

    if sys.stdout is None:
        raise HakmemError("standard output is closed")
    if is_profile(asked.report):
        name_profile(asked)
        return
    if asked.output is not None or asked.debuginfod or asked.with_internals:
        raise HakmemError(
            f"{asked.report.name} is not a heap profile; -o, --debuginfod and --internals are for those only"
        )
    for line in Symbolizer(asked.files, warn).lines(asked.report):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def is_profile(report: BinaryIO) -> bool:
    """Judged by its first bytes: reports are text."""
    peek = getattr(report, "peek", None)
    return peek is not None and peek(16)[:16].startswith((b"\x1f\x8b", b'{"format":'))


def name_profile(asked: Asked) -> None:
    """Prints the profile with names, or writes it."""
    from hakmem.profile.debug_files import Debuginfod, servers
    from hakmem.profile.files import loaded
    from hakmem.profile.names import Sources, name_addresses
    from hakmem.views.profile_file import save_profile, writer
    from hakmem.views.profile_text import show_profile

    output = asked.output
    if output is not None and asked.with_internals:
        raise click.UsageError("files have whole stacks: use --internals without -o, for printed tables")
    if output is not None:
        writer(output)
        check_writable(output)
    if asked.debuginfod and not servers():
        warn("DEBUGINFOD_URLS is not set: no server is asked")
    debuginfod = Debuginfod(servers(), complain=warn) if asked.debuginfod else None
    profile = loaded(asked.report.read(), asked.report.name)
    name_addresses(profile, Sources(debuginfod=debuginfod, complain=warn, moved=asked.files))
    if output is None:
        show_profile(profile, with_internals=asked.with_internals)
        return
    save_profile(profile, output)
    click.echo(f"wrote {output}")
