"""hakmem symbolize: functions and lines for the call stacks in a report."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO, Any, BinaryIO

import click

from hakmem.base.errors import HakmemError
from hakmem.commands.arguments import FILES, argument, options, warn


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


REPORT = InputFile("rb")


@click.command("symbolize")
@options
def command(report: BinaryIO = argument(type=REPORT, default="-"), files: tuple[Path, ...] = FILES) -> None:
    """Resolve each frame in REPORT (default: standard input) to function, file and line, with inlined calls.

    The report is hakmem's output on standard error, possibly mixed with other output. Files and lines need a
    program compiled with -g, or its debug information in /usr/lib/debug; functions need a program that is not
    stripped.

    \b
    Examples:
      ./server 2>&1 | hakmem symbolize
      hakmem symbolize server.log --files ./build
    """
    from hakmem.views.symbolize import Symbolizer

    if sys.stdout is None:
        raise HakmemError("standard output is closed")
    for line in Symbolizer(files, warn).lines(report):
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
