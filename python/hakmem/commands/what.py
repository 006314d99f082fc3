"""hakmem what: the contents of live blocks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from hakmem.commands.arguments import (
    EVERY_CONTENT,
    EXAMPLES,
    EXECUTABLE,
    JSON,
    LIBRARIES,
    TARGET,
    moved_files,
    open_target,
    options_as,
)

ADDRESS_END = 1 << 64


class Address(click.ParamType):  # type: ignore[type-arg]  # click 8.1 has none
    """0x7f12…, as debuggers print it."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            number = int(str(value), 16)
        except ValueError:
            number = -1
        if not 0 <= number < ADDRESS_END:
            self.fail(f"{value!r} is not an address; write it as 0x7f12…", param, ctx)
        return number


@dataclass(frozen=True)
class Asked:
    """The command line."""

    target: str
    address: int | None
    block_bytes: int | None
    draws: int
    examples: bool
    with_path: bool
    executable: Path | None
    libraries: tuple[Path, ...]
    as_json: bool
    everything: bool


@click.command("what")
@TARGET
@click.argument("address", type=Address(), required=False, metavar="[0xADDRESS]")
@click.option(
    "--class",
    "block_bytes",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="Only blocks of the size class that serves requests of BYTES.",
)
@click.option(
    "--draws",
    type=click.IntRange(100, 1_000_000),
    metavar="N",
    default=4000,
    show_default=True,
    help="Blocks to read: more give narrower intervals.",
)
@EXAMPLES
@click.option("--path", "with_path", is_flag=True, help="For an address: how the program reaches it.")
@EXECUTABLE
@LIBRARIES
@JSON
@EVERY_CONTENT
@options_as(Asked)
def command(asked: Asked) -> None:
    """Tell what the live blocks of a process (PID) or of a core dump (CORE) contain: C++ classes, Python
    types, text, pointers, numbers. A few thousand blocks are drawn at random and read; shares have 95 %
    intervals.

    With an address: its block, its owner, what it contains, what points at it, and, if a profile has sampled
    it, where it was asked for.

    The process is not stopped. Contents are not shown unless --examples is given.

    \b
    Examples:
      hakmem what 1234
      hakmem what 1234 --class 320
      hakmem what core.1234 --json | jq '.contents[] | {kind, name, bytes_share}'
      hakmem what 1234 0x7f30a4c01200 --path
    """
    from hakmem.blocks.one_block import what_is
    from hakmem.blocks.what import what_lives
    from hakmem.blocks.whose import as_json
    from hakmem.views.screen import console, print_json, progress_bar
    from hakmem.views.what_text import print_block, print_what

    if asked.address is None and asked.with_path:
        raise click.UsageError("--path needs an address: hakmem what PID 0x7f12… --path")
    opened = open_target(asked.target, asked.executable, asked.libraries)
    if asked.address is not None:
        with progress_bar("scanning") as progress:
            moved = moved_files(asked.executable, asked.libraries)
            block = what_is(opened, asked.address, asked.with_path, progress, moved)
        if asked.as_json:
            print_json(block.to_json(asked.examples))
        else:
            print_block(console(), block, asked.examples)
        return
    with progress_bar("reading") as progress:
        answer = what_lives(opened, asked.block_bytes, asked.draws, asked.examples, progress)
    if asked.as_json:
        print_json(as_json(answer))
    else:
        print_what(console(), answer, asked.everything)
