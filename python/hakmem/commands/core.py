"""hakmem core: the snapshot in a core dump."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.commands.arguments import EVERY_FIGURE, EXECUTABLE, JSON, LIBRARIES


@click.command("core")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@EXECUTABLE
@LIBRARIES
@JSON
@EVERY_FIGURE
def command(
    file: Path, executable: Path | None, libraries: tuple[Path, ...], as_json: bool, everything: bool
) -> None:
    """Print the snapshot of `hakmem stat` from the core dump FILE.

    Core dumps omit the contents of the program's files: these are read too.

    \b
    Examples:
      hakmem core core.1234
      coredumpctl -o core dump server && hakmem core core
      hakmem core core --executable ./server --library ./lib
    """
    from hakmem.census.snapshot import open_core
    from hakmem.views.snapshot_text import show_snapshot

    target = open_core(file, executable, libraries)
    show_snapshot(target, str(file), as_json=as_json, everything=everything)
