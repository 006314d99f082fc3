"""hakmem report: a recording as a page with charts."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.base.errors import HakmemError
from hakmem.base.files import check_writable, is_standard_output, write_atomically
from hakmem.commands.arguments import OUTPUT_OR_DASH, argument, option, options


@click.command("report")
@options
def command(
    recording: Path = argument(type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)),
    output: Path | None = option(
        "-o", "--output", type=OUTPUT_OR_DASH, help="The page; default: RECORDING with the suffix .html."
    ),
) -> None:
    """Turn a recording of `hakmem record` into a page with charts: one self-contained file.

    \b
    Examples:
      hakmem report run.json
      hakmem report run.json -o /var/www/html/run.html
      hakmem report - -o - < run.json > run.html
    """
    from hakmem.views.recording import Recording
    from hakmem.views.report import render

    if str(recording) == "-" and output is None:
        raise click.UsageError("a recording from standard input has no name; set the page's name with -o")
    page = output or recording.with_suffix(".html")
    if recording.is_file() and page.is_file() and page.samefile(recording):
        raise HakmemError(f"the page would overwrite the recording {recording}; choose another file with -o")
    check_writable(page)
    write_atomically(page, render(Recording.read(recording)))
    click.echo(f"wrote {page}", err=is_standard_output(page))
