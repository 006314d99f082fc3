"""hakmem record: snapshots at an interval, into a file."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import duration_text
from hakmem.base.files import Output, is_standard_output
from hakmem.base.signals import die_of, stoppable
from hakmem.base.sizes import bytes_text, counted
from hakmem.commands.arguments import OUTPUT_OR_DASH, PROCESS, duration, open_pid, option, options, say

if TYPE_CHECKING:
    from hakmem.census.figures import Snapshot

EVERY_MIN_S = 0.01


@contextmanager
def recording_bar(what: str, for_s: float) -> Iterator[Callable[[Snapshot], None]]:
    """A bar that is advanced by each snapshot."""
    from hakmem.views.screen import progress_bar

    first: list[float] = []
    with progress_bar(what, for_s) as advance:

        def seen(sample: Snapshot) -> None:
            first.append(sample.monotonic_s)
            rss = bytes_text(sample.process.rss_bytes) if sample.process else "unknown"
            advance(sample.monotonic_s - first[0], f"{counted(len(first), 'sample')}, RSS {rss}")

        yield seen


@click.command("record")
@options
def command(
    pid: int = PROCESS,
    for_s: float = option("--for", type=duration(), default="60s", help="Duration: 60s, 5m, 1h30m."),
    every_s: float = option("--every", type=duration(EVERY_MIN_S), default="1s", help="Interval: 1s, 500ms."),
    output: Path = option("-o", "--output", type=OUTPUT_OR_DASH, required=True, help="The file to write."),
    with_profile: bool = option(
        "--profile", help="Also sample allocations, and record which call sites hold the memory over time."
    ),
) -> None:
    """Record process PID into a file for `hakmem report`.

    Recording stops after the duration, when the process ends, or on Ctrl-C. Each sample is written at once,
    so an interruption loses at most the current one. In very large processes slabs are walked less often than
    requested, so that recording takes at most a tenth of one core.

    With --profile sampling is switched on as by `hakmem profile`, and off again at the end; the page then has
    the sites over time.

    FILE may be - or a FIFO; the first sample replaces an existing recording.

    \b
    Examples:
      hakmem record 1234 --for 60s -o run.json
      hakmem record $(pgrep -o redis-server) --for 1h --every 10s -o day.json
      hakmem record 1234 --for 1h --profile -o run.json
      hakmem record 1234 -o - | hakmem report - -o run.html
    """
    from hakmem.views.recording import record
    from hakmem.views.recording_sites import SiteRecorder

    # The first sample starts the file; messages must not get between its lines.
    with stoppable(), Output(output) as file:
        target = open_pid(pid)
        with ExitStack() as stack:
            sites = stack.enter_context(SiteRecorder(target, every_s)) if with_profile else None
            progress = stack.enter_context(recording_bar(f"recording {pid}", for_s))
            recorded = record(target, every_s, for_s, file, progress, sites)
    for note in sites.notes if sites else []:
        say(note)
    if recorded.stopped_by not in (None, signal.SIGINT):
        die_of(recorded.stopped_by)
    hint = f" View it with: hakmem report {output} -o {output.with_suffix('.html')}"
    length = f"{counted(recorded.samples, 'sample')} over {duration_text(recorded.seconds)}"
    click.echo(
        f"{output}: recording finished ({recorded.ended}): {length}.{hint if output.is_file() else ''}",
        err=is_standard_output(output),
    )
