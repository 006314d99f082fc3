"""hakmem record: snapshots over a time, into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.commands.arguments import pid_argument
from hakmem.durations import Duration

if TYPE_CHECKING:
    from hakmem.figures import Snapshot

EVERY_MIN_S = 0.01


@contextmanager
def recording_bar(what: str, for_s: float) -> Iterator[Callable[[Snapshot], None]]:
    """A bar on standard error, moved on by each snapshot; nothing where that is no terminal."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from hakmem.screen import console
    from hakmem.sizes import bytes_text

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[seen]}"),
        TimeRemainingColumn(),
    )
    errors = console(stderr=True)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task(what, total=for_s, seen="")
        first: list[float] = []

        def advance(sample: Snapshot) -> None:
            first.append(sample.monotonic_s)
            rss = bytes_text(sample.process.rss_bytes) if sample.process else "unknown"
            progress.update(
                task, completed=sample.monotonic_s - first[0], seen=f"{len(first)} samples, RSS {rss}"
            )

        yield advance


@click.command("record")
@pid_argument
@click.option(
    "--for", "for_s", type=Duration(), default="60s", show_default=True, help="How long: 60s, 5m, 1h30m."
)
@click.option(
    "--every",
    "every_s",
    type=Duration(EVERY_MIN_S),
    default="1s",
    show_default=True,
    help="How often: 1s, 500ms.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The file to write.",
)
def command(pid: int, for_s: float, every_s: float, output: Path) -> None:
    """Record process PID into a file for `hakmem report`.

    Ends when the time is over, when the process ends, or on Ctrl-C; what was seen until then is kept. In
    very large processes the slabs are walked less often than asked for, so that it takes a tenth of one
    core at most.

    \b
    Examples:
      hakmem record 1234 --for 60s -o run.json
      hakmem record $(pgrep -o redis-server) --for 1h --every 10s -o day.json
    """
    from hakmem.durations import duration_text
    from hakmem.files import check_writable
    from hakmem.recording import record
    from hakmem.target import open_process

    check_writable(output)
    target = open_process(pid)
    with recording_bar(f"recording {pid}", for_s) as progress:
        recording = record(target, every_s, for_s, progress)
    recording.write(output)
    samples = recording.samples
    seconds = samples[-1].monotonic_s - samples[0].monotonic_s if samples else 0.0
    click.echo(
        f"{output}: {len(samples)} samples over {duration_text(seconds)}; ended because {recording.ended}. "
        f"Look at it with: hakmem report {output} -o {output.with_suffix('.html')}"
    )
