"""hakmem stat: one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.errors import HakmemError
from hakmem.commands.arguments import (
    EVERY_FIGURE,
    FILES,
    JSON,
    TARGET,
    open_target,
    options,
    warn,
)
from hakmem.target.target import Target, making_sense

if TYPE_CHECKING:
    from hakmem.blocks.guards import GuardReport


@click.command("stat")
@options
def command(
    target: str = TARGET,
    files: tuple[Path, ...] = FILES,
    as_json: bool = JSON,
    everything: bool = EVERY_FIGURE,
) -> None:
    """Print one snapshot of a process (PID) or of a core dump (CORE): memory, size classes, threads,
    counters, system calls, and the last report of a guarded block, its stacks with functions.

    The process is not stopped and need not cooperate; it may hang. Figures may be a few operations apart.
    Core dumps omit the contents of the program's files: these are read too.

    \b
    Examples:
      hakmem stat 1234
      hakmem stat $(pgrep -o redis-server) --json | jq .memory
      coredumpctl -o core dump server && hakmem stat core
      hakmem stat core --files ./server --files ./lib
    """
    from hakmem.views.snapshot_text import show_snapshot

    opened = open_target(target, files)
    report = report_of(opened, files) if opened.malloc == "hakmem" else None
    more = {"guard_report": asdict(report)} if report else {}
    show_snapshot(opened, as_json=as_json, everything=everything, more=more)
    if report and not as_json:
        from hakmem.views.guard_text import guard_lines

        click.echo()
        click.echo("\n".join(guard_lines(report)))


def report_of(target: Target, moved: Sequence[Path]) -> GuardReport | None:
    """None if there was none, or, with a message, if the dump holds too little of it."""
    from hakmem.blocks.guards import last_report

    try:
        with making_sense(target):
            return last_report(target, moved, warn)
    except HakmemError as error:
        warn(f"the last report of a guarded block cannot be read: {error}")
        return None
