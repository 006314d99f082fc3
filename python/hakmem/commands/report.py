"""hakmem report: a page with charts of a recording."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("report")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The page; RECORDING with .html otherwise.",
)
def command(recording: Path, output: Path | None) -> None:
    """Make a page of what `hakmem record` wrote: one file, with charts, that loads nothing from anywhere.

    \b
    Examples:
      hakmem report run.json
      hakmem report run.json -o /var/www/html/run.html
    """
    from hakmem.files import write_atomically
    from hakmem.recording import Recording
    from hakmem.report import render

    page = output or recording.with_suffix(".html")
    write_atomically(page, render(Recording.read(recording)))
    click.echo(f"wrote {page}")
