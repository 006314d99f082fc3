"""hakmem symbolize: names for the frames of a report's call stacks."""

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
    """Name function, file and line of each frame in REPORT (else standard input), inlined calls included.

    The report is what hakmem wrote on standard error, whatever is around it. Files and lines need a program
    compiled with -g, or its debug information below /usr/lib/debug; functions are known without, but of
    stripped programs.

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
