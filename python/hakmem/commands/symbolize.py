"""hakmem symbolize: functions and lines for the call stacks in a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import click

from hakmem.commands.arguments import EXECUTABLE, LIBRARIES


@click.command("symbolize")
@click.argument("report", type=click.File("rb"), default="-")
@EXECUTABLE
@LIBRARIES
def command(report: BinaryIO, executable: Path | None, libraries: tuple[Path, ...]) -> None:
    """Resolve each frame in REPORT (default: standard input) to function, file and line, with inlined calls.

    The report is hakmem's output on standard error, possibly mixed with other output. Files and lines need a
    program compiled with -g, or its debug information in /usr/lib/debug; functions need a program that is not
    stripped.

    \b
    Examples:
      ./server 2>&1 | hakmem symbolize
      hakmem symbolize server.log
      hakmem symbolize server.log --executable ./build/server --library ./build
    """
    from hakmem.base.errors import HakmemError
    from hakmem.views.symbolize import Symbolizer

    def complain(what: str) -> None:
        click.echo(f"hakmem: warning: {what}", err=True)

    if sys.stdout is None:
        raise HakmemError("standard output is closed")
    for line in Symbolizer(executable, libraries, complain).lines(report):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
