"""hakmem stat: one snapshot."""

from __future__ import annotations

import click

from hakmem.commands.arguments import JSON, pid_argument


@click.command("stat")
@pid_argument
@JSON
@click.option("--all", "everything", is_flag=True, help="Zero counters, empty classes and every thread, too.")
def command(pid: int, as_json: bool, everything: bool) -> None:
    """One snapshot of process PID: memory, size classes, threads, counters, system calls.

    The process is not stopped and takes no part; it may hang. Figures may be a few operations apart.

    \b
    Examples:
      hakmem stat 1234
      hakmem stat $(pgrep -o redis-server) --json | jq .memory
    """
    from hakmem.screen import console, print_json, progress_bar
    from hakmem.snapshot import open_process, take
    from hakmem.snapshot_text import print_snapshot

    target = open_process(pid)
    with progress_bar(f"reading process {pid}") as progress:
        snapshot = take(target, progress=progress)
    if as_json:
        print_json(snapshot.to_json())
    else:
        print_snapshot(console(), snapshot, target.schema.counter_meta, everything)
