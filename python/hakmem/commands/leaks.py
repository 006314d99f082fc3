"""hakmem leaks: blocks that nothing reaches."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.base.durations import Duration
from hakmem.commands.arguments import (
    EVERY_CONTENT,
    EXAMPLES,
    EXECUTABLE,
    JSON,
    LIBRARIES,
    TARGET,
    open_target,
)


@click.command("leaks")
@TARGET
@click.option(
    "--wait",
    "wait_s",
    type=Duration(),
    default="2s",
    show_default=True,
    help="Time between the two scans of a running process.",
)
@click.option(
    "--freeze",
    is_flag=True,
    help="Stop the process for one scan instead: certain, and registers are seen too.",
)
@click.option("--swapped", is_flag=True, help="Read what is swapped out too: it becomes resident.")
@EXAMPLES
@EXECUTABLE
@LIBRARIES
@JSON
@EVERY_CONTENT
def command(
    target: str,
    wait_s: float,
    freeze: bool,
    swapped: bool,
    examples: bool,
    executable: Path | None,
    libraries: tuple[Path, ...],
    as_json: bool,
    everything: bool,
) -> None:  # fmt: skip
    """Find the live blocks of a process (PID) or of a core dump (CORE) that no pointer leads to any more,
    by size and by content.

    All memory of the program is read for words that may be pointers, from outside. A running process is
    scanned until a scan agrees with all before it, six times at most: only what is unreachable and unchanged
    in each of them counts. --freeze stops it for one scan instead, as a debugger does, and lets it go on
    whatever happens to the tool; a few system calls, such as epoll_wait, then return EINTR to the program.

    \b
    Examples:
      hakmem leaks 1234
      hakmem leaks 1234 --freeze
      hakmem leaks core.1234 --json | jq .definite
    """
    from hakmem.blocks.leaks import Options, find_leaks
    from hakmem.views.leaks_text import print_leaks
    from hakmem.views.screen import console, print_json, progress_bar

    opened = open_target(target, executable, libraries)
    if freeze and opened.process is None:
        raise click.UsageError("--freeze is for processes; a core dump does not change")
    with progress_bar("scanning") as progress:
        found = find_leaks(opened, Options(wait_s, freeze, swapped, examples, progress))
    if as_json:
        print_json(found.to_json())
    else:
        print_leaks(console(), found, everything)
