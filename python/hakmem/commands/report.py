"""hakmem report: a page with charts of a recording."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    help="The page; RECORDING with .html otherwise.",
)
def command(recording: Path, output: Path | None) -> None:
    """Make a page of what `hakmem record` wrote: one file, with charts, that loads nothing from anywhere.

    \b
    Examples:
      hakmem report run.json
      hakmem report run.json -o /var/www/html/run.html
      hakmem report - -o - < run.json > run.html
    """
    from hakmem.base.errors import HakmemError
    from hakmem.base.files import is_standard_output, write_atomically
    from hakmem.views.recording import Recording
    from hakmem.views.report import render

    if str(recording) == "-" and output is None:
        raise click.UsageError("a recording from standard input has no name; name the page with -o")
    page = output or recording.with_suffix(".html")
    if recording.is_file() and page.is_file() and page.samefile(recording):
        raise HakmemError(f"the page would replace the recording {recording}; name another file with -o")
    write_atomically(page, render(Recording.read(recording)))
    click.echo(f"wrote {page}", err=is_standard_output(page))
