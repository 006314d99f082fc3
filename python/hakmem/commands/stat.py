"""hakmem stat: one snapshot."""

from __future__ import annotations

import click

from hakmem.commands.arguments import EVERY_FIGURE, JSON, PROCESS, open_pid, options


@click.command("stat")
@options
def command(pid: int = PROCESS, as_json: bool = JSON, everything: bool = EVERY_FIGURE) -> None:
    """Print one snapshot of process PID: memory, size classes, threads, counters, system calls.

    The process is not stopped and need not cooperate; it may hang. Figures may be a few operations apart.

    \b
    Examples:
      hakmem stat 1234
      hakmem stat $(pgrep -o redis-server) --json | jq .memory
    """
    from hakmem.views.snapshot_text import show_snapshot

    show_snapshot(open_pid(pid), f"process {pid}", as_json=as_json, everything=everything)
