"""hakmem core: the snapshot out of a core dump."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.commands.arguments import JSON


@click.command("core")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--executable", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The program, where it has moved since.",
)  # fmt: skip
@click.option(
    "--library", "libraries", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="A library that the program mapped, or a folder of such, where they have moved since.",
)  # fmt: skip
@JSON
@click.option("--all", "everything", is_flag=True, help="Zero counters, empty classes and every thread, too.")
def command(
    file: Path, executable: Path | None, libraries: tuple[Path, ...], as_json: bool, everything: bool
) -> None:
    """The same snapshot as `hakmem stat`, out of the core dump FILE.

    Core dumps leave out what is in the program's files anyway: those are read too.

    \b
    Examples:
      hakmem core core.1234
      coredumpctl -o core dump server && hakmem core core
      hakmem core core --executable ./server --library ./lib
    """
    from hakmem.screen import console, print_json, progress_bar
    from hakmem.snapshot import open_core, take
    from hakmem.snapshot_text import print_snapshot

    target = open_core(file, executable, libraries)
    with progress_bar(f"reading {file}") as progress:
        snapshot = take(target, progress=progress)
    if as_json:
        print_json(snapshot.to_json())
    else:
        print_snapshot(console(), snapshot, target.schema.counter_meta, everything)
