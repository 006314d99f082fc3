"""hakmem what: the contents of live blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import click

from hakmem.commands.arguments import (
    EVERY_CONTENT,
    EXAMPLES,
    FILES,
    JSON,
    TARGET,
    Parsed,
    argument,
    open_target,
    option,
    options_as,
    say,
)

ADDRESS = re.compile("0[xX][0-9a-fA-F]{1,64}")
ADDRESS_END = 1 << 64


def parse_address(word: str) -> int:
    """0x7f12…, as debuggers print it; without 0x a size or a PID would be taken for an address."""
    if not ADDRESS.fullmatch(word) or int(word, 16) >= ADDRESS_END:
        hint = f"0x{word}, if it is hexadecimal" if ADDRESS.fullmatch(f"0x{word}") else "0x7f12…"
        raise ValueError(f"{word!r} is not an address; write it as {hint}")
    return int(word, 16)


@dataclass(frozen=True)
class Asked:
    target: str = TARGET
    address: int | None = argument(
        type=Parsed("address", parse_address), required=False, metavar="[0xADDRESS]"
    )
    block_bytes: int | None = option(
        "--class",
        type=click.IntRange(min=1),
        metavar="BYTES",
        help="Only blocks of the size class that serves requests of BYTES.",
    )
    draws: int = option(
        "--draws",
        type=click.IntRange(100, 1_000_000),
        default=4000,
        help="Blocks to read: more give narrower intervals.",
    )
    examples: bool = EXAMPLES
    with_path: bool = option("--path", help="For an address: how the program reaches it.")
    files: tuple[Path, ...] = FILES
    as_json: bool = JSON
    everything: bool = EVERY_CONTENT


@click.command("what")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Tell what the live blocks of a process (PID) or of a core dump (CORE) contain: C++ classes, Python
    types, text, pointers, numbers. A few thousand blocks are drawn at random and read; shares have 95 %
    intervals.

    With an address: its block, its owner, what it contains, what points at it, and, if a profile has sampled
    it, where it was allocated.

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
    from hakmem.doctor.runtimes import hidden_in
    from hakmem.views.screen import console, print_json, progress_bar
    from hakmem.views.what_text import print_block, print_what

    if asked.address is None and asked.with_path:
        raise click.UsageError("--path needs an address: hakmem what PID 0x7f12… --path")
    opened = open_target(asked.target, asked.files)
    if asked.address is None or asked.with_path:
        for note in hidden_in(opened.process):
            say(note)
    if asked.address is not None:
        with progress_bar("scanning") as progress:
            block = what_is(opened, asked.address, asked.with_path, progress, asked.files)
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
