"""hakmem trace: record every allocation and free of a running process, and show what was recorded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hakmem.base.errors import HakmemError
from hakmem.base.files import replaceable
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.commands.arguments import (
    INPUT,
    JSON,
    OUTPUT,
    PID,
    TRACE,
    argument,
    complete_pids,
    duration,
    open_pid,
    option,
    options,
    parse_pid,
    say,
    size,
)


@click.command("trace")
@options
def command(
    source: str = argument(metavar="PID|FILE", shell_complete=complete_pids),
    for_s: float | None = option(
        "--for", type=duration(0.1), help="How long to record a process.  [default: 10s]"
    ),
    is_sampled: bool = option(
        "--sampled", help="Record sampled blocks only, with their call stacks: cheap enough for hours."
    ),
    max_bytes: int | None = option(
        "--max-size",
        type=size(1 << 20),
        metavar="BYTES",
        help="The recording ends before it takes more disk space: 5 bytes an event.  [default: 1G]",
    ),
    output: Path | None = option(
        "-o",
        "--output",
        type=OUTPUT,
        metavar="FILE",
        help="The recording, trace.PID.hkt if not given; of a FILE a copy.",
    ),
    is_anonymous: bool = option(
        "--anonymous",
        help="Leave out command line, process number, date and addresses of a FILE, to share it.",
    ),
    as_json: bool = JSON,
) -> None:
    """Record every allocation and free of process PID into a file; or show a FILE: rates, sizes, lifetimes,
    threads, live bytes.

    Each call of malloc and free takes some 20 ns more meanwhile. No call waits: where events come faster than
    they are read the missing ones are counted. The blocks that are live already come first.

    \b
    Examples:
      hakmem trace $(pgrep -o server) --for 30s -o server.hkt
      hakmem trace server.hkt
      hakmem trace server.hkt --anonymous -o sent.hkt
    """
    if not PID.fullmatch(source):
        if for_s or is_sampled or max_bytes:
            raise click.UsageError("--for, --sampled and --max-size are for a process; a file has its own")
        show(Path(INPUT.convert(source, None, None)), output, is_anonymous=is_anonymous, as_json=as_json)
        return
    if is_anonymous or as_json:
        raise click.UsageError("--anonymous and --json are for a file: hakmem trace FILE --anonymous -o FILE")
    record(parse_pid(source), output or Path(f"trace.{source}{TRACE}"), for_s or 10.0, is_sampled, max_bytes)


def record(pid: int, path: Path, for_s: float, is_sampled: bool, max_bytes: int | None) -> None:
    from hakmem.profile.session import require_profiles
    from hakmem.trace.record import MAX_BYTES
    from hakmem.trace.record import record as recorded
    from hakmem.trace.sampled import record_sampled
    from hakmem.views.screen import progress_bar
    from hakmem.views.trace_text import notes_of

    file = replaceable(path)
    target = open_pid(pid)
    require_profiles(target)
    if is_sampled:
        with progress_bar(f"sampling process {pid}", for_s) as advance:
            told = lambda seconds, lives: advance(seconds, counted(lives, "life", "lives"))  # noqa: E731
            end = record_sampled(target, file, for_s, told)
        what = counted(end["lives"], "sampled life", "sampled lives")
    else:
        end = recorded(target, file, for_s, progress_bar, max_bytes or MAX_BYTES)
        what = f"{count_text(end['events'])} events"
    say(f"{path}: {what}, {bytes_text(path.stat().st_size)}; {end['end']}")
    for note in notes_of(end, end["lost"]):
        say(note)


def show(path: Path, output: Path | None, *, is_anonymous: bool, as_json: bool) -> None:
    from hakmem.trace.anonymous import anonymized
    from hakmem.trace.figures import figures_of
    from hakmem.trace.file import Trace, is_sampled, read, write
    from hakmem.trace.sampled import read_sampled
    from hakmem.trace.sampled_figures import sampled_figures_of
    from hakmem.views.screen import console, print_json
    from hakmem.views.trace_text import notes_of, print_trace

    if is_sampled(path) and (output is not None or is_anonymous):
        raise HakmemError(f"{path} has sampled lives: -o and --anonymous are for full traces")
    if output is not None and output.suffix != TRACE:
        raise HakmemError(f"-o is for a trace, FILE{TRACE}; charts of a process: hakmem record PID")
    file = output and replaceable(output)
    found = read_sampled(path) if is_sampled(path) else read(path)
    if isinstance(found, Trace) and is_anonymous:
        found = anonymized(found)
    if isinstance(found, Trace) and file is not None:
        write(file, found)
        click.echo(f"wrote {output}")
        return
    figures = figures_of(found) if isinstance(found, Trace) else sampled_figures_of(found)
    if as_json:
        print_json({"head": found.head, "figures": asdict(figures), "end": found.end})
    else:
        print_trace(console(), found.head, figures, notes_of(found.end, found.lost))
