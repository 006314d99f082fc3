"""hakmem record: snapshots at an interval, as a page with charts or as a file."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from pathlib import Path

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.base.files import Output, check_writable, is_standard_output, write_atomically
from hakmem.base.signals import die_of, stoppable
from hakmem.base.sizes import counted
from hakmem.commands.arguments import (
    OUTPUT_OR_DASH,
    PID,
    argument,
    complete_pids,
    duration,
    open_pid,
    option,
    options,
    say,
)

EVERY_MIN_S = 0.01
PAGE = ".html"


@click.command("record")
@options
def command(
    source: str = argument(metavar="PID|RECORDING", shell_complete=complete_pids),
    for_s: float | None = option("--for", type=duration(), help="Duration: 60s, 5m, 1h30m.  [default: 60s]"),
    every_s: float | None = option(
        "--every", type=duration(EVERY_MIN_S), help="Interval: 1s, 500ms.  [default: 1s]"
    ),
    output: Path | None = option(
        "-o",
        "--output",
        type=OUTPUT_OR_DASH,
        help="The file: a page if it ends in .html, else a recording.  [default: record.PID.html]",
    ),
    with_profile: bool = option(
        "--profile", help="Also sample allocations, and record which call sites hold the memory over time."
    ),
) -> None:
    """Record process PID into a page with charts, one self-contained file; or into a RECORDING, of which a
    page can be made later.

    Recording stops after the duration, when the process ends, or on Ctrl-C. Each sample is written at once,
    to FILE.part for a page, so an interruption loses at most the current one. In very large processes slabs
    are walked less often than requested, so that recording takes at most a tenth of one core.

    With --profile sampling is switched on as by `hakmem profile`, and off again at the end; the page then has
    the sites over time.

    FILE and RECORDING may be - or a FIFO; the first sample replaces an existing recording.

    \b
    Examples:
      hakmem record 1234 --for 60s -o run.html
      hakmem record $(pgrep -o redis-server) --for 1h --every 10s --profile -o day.json
      hakmem record day.json -o day.html
      hakmem record 1234 -o - | ssh host hakmem record - -o run.html
    """
    if PID.fullmatch(source):
        output = output or Path(f"record.{source}{PAGE}")
        record_process(int(source), for_s or 60.0, every_s or 1.0, output, with_profile)
        return
    recording = Path(source)
    if source != "-" and not os.path.exists(recording):
        message = f"{source!r} is neither a PID nor a recording; `hakmem ps` lists processes"
        raise click.BadParameter(message, param_hint="PID|RECORDING")
    if for_s or every_s or with_profile:
        raise click.UsageError("--for, --every and --profile are for a process; a recording has its own")
    page = output or (recording if source == "-" else recording.with_suffix(PAGE))
    if os.path.isfile(recording) and os.path.isfile(page) and page.samefile(recording):
        raise HakmemError(f"the page would overwrite the recording {recording}; choose another file with -o")
    write_page(recording, page)
    click.echo(f"wrote {page}", err=is_standard_output(page))


def write_page(recording: Path, page: Path) -> None:
    from hakmem.views.recording import Recording
    from hakmem.views.report import render

    check_writable(page)
    write_atomically(page, render(Recording.read(recording)))


def record_process(pid: int, for_s: float, every_s: float, output: Path, with_profile: bool) -> None:
    from hakmem.views.recording import record
    from hakmem.views.recording_sites import SiteRecorder
    from hakmem.views.screen import progress_bar

    check_writable(output)
    is_page = output.suffix == PAGE
    path = output.with_name(f"{output.name}.part") if is_page else output
    # The first sample starts the file; messages must not get between its lines.
    with stoppable(), Output(path) as file:
        target = open_pid(pid)
        with ExitStack() as stack:
            sites = stack.enter_context(SiteRecorder(target, every_s)) if with_profile else None
            progress = stack.enter_context(progress_bar(f"recording {pid}", for_s))
            recorded = record(target, every_s, for_s, file, progress, sites)
    for note in sites.notes if sites else []:
        say(note)
    if is_page:
        write_page(path, output)
        path.unlink()
    if recorded.stopped_by not in (None, signal.SIGINT):
        die_of(recorded.stopped_by)
    hint = "" if is_page or not output.is_file() else f" View it with: hakmem record {output}"
    length = f"{counted(recorded.samples, 'sample')} over {duration_text(recorded.seconds)}"
    click.echo(
        f"{output}: recording finished ({recorded.ended}): {length}.{hint}", err=is_standard_output(output)
    )
