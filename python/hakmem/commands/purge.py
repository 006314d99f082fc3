"""hakmem purge: ask a process to give free memory back."""

from __future__ import annotations

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import ExitCode
from hakmem.base.sizes import bytes_text
from hakmem.commands.arguments import JSON, PROCESS, duration, open_pid, option, options, say


@click.command("purge")
@options
def command(
    pid: int = PROCESS,
    wait_s: float = option("--for", type=duration(), default="5s", help="How long to wait for it."),
    as_json: bool = JSON,
) -> None:
    """Ask hakmem in process PID to give free memory back to the system, as malloc_trim does.

    A number is written into hakmem's own control record, with the same rights as reading; the next thread
    that allocates or frees does it. Blocks in the magazines of others stay there. RSS is printed
    before and after.

    \b
    Example:
      hakmem purge $(pgrep -o redis-server)
    """
    from hakmem.profile.session import require_profiles
    from hakmem.target.switch import Switch
    from hakmem.views.screen import print_json

    target = open_pid(pid)
    require_profiles(target)
    assert target.process is not None
    before_bytes = target.process.figures().rss_bytes
    with Switch(target) as switch:
        is_done = switch.wait_purged(switch.purge(), wait_s)
        is_stopped = switch.is_stopped
    after_bytes = target.process.figures().rss_bytes
    if as_json:
        print_json(
            {"pid": pid, "done": is_done, "rss_before_bytes": before_bytes, "rss_after_bytes": after_bytes}
        )
    elif is_done:
        click.echo(f"process {pid}: RSS {bytes_text(before_bytes)} before, {bytes_text(after_bytes)} after")
    if not is_done:
        idle = f"no thread has allocated or freed within {duration_text(wait_s)}"
        why = "it is stopped" if is_stopped else idle
        say(f"process {pid} has not purged yet: {why}; it does so when one allocates")
        raise click.exceptions.Exit(ExitCode.FAILED)
