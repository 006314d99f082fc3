"""hakmem trace: record every allocation and free of a running process, and show what was recorded."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hakmem.base.errors import HakmemError
from hakmem.base.files import check_writable, is_standard_output, write_atomically
from hakmem.base.sizes import bytes_text, count_text, counted
from hakmem.commands.arguments import (
    INPUT,
    JSON,
    OUTPUT_OR_DASH,
    PROCESS,
    argument,
    duration,
    open_pid,
    option,
    options,
    say,
    size,
)


class TraceGroup(click.Group):
    """`hakmem trace PID …` is `hakmem trace record PID …`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = ["record", *args]
        return super().resolve_command(ctx, args)


TRACE = ".hkt"


@click.group("trace", cls=TraceGroup)
def command() -> None:
    """Record every allocation and free of a running process, and show them.

    `hakmem trace PID` is `hakmem trace record PID`.

    \b
    Examples:
      hakmem trace $(pgrep -o server) --for 30s -o server.hkt
      hakmem trace show server.hkt
      hakmem trace show server.hkt --anonymous -o sent.hkt
    """


@command.command("record")
@options
def record(
    pid: int = PROCESS,
    for_s: float = option("--for", type=duration(0.1), default="10s", help="How long to record."),
    output: Path | None = option("--output", "-o", type=Path, help="The file; default trace.PID.hkt."),
    is_sampled: bool = option(
        "--sampled", is_flag=True, help="Sampled blocks only, with their call stacks: cheap enough for hours."
    ),
    max_bytes: int = option(
        "--max-size",
        type=size(1 << 20),
        default="1G",
        metavar="BYTES",
        help="The recording ends before it takes more disk space than this: 5 bytes an event.",
    ),
) -> None:
    """Record every allocation and free of process PID into a file.

    Each call of malloc and free takes some 20 ns more meanwhile. No call waits: where events come faster than
    they are read the missing ones are counted. The blocks that are live already come first.
    """
    from hakmem.profile.session import require_profiles
    from hakmem.trace.record import record as recorded
    from hakmem.trace.sampled import record_sampled
    from hakmem.views.screen import progress_bar
    from hakmem.views.trace_text import notes_of

    path = output or Path(f"trace.{pid}{TRACE}")
    check_writable(path)
    target = open_pid(pid)
    require_profiles(target)
    if is_sampled:
        with progress_bar(f"sampling process {pid}", for_s) as advance:
            told = lambda seconds, lives: advance(seconds, counted(lives, "life", "lives"))  # noqa: E731
            end = record_sampled(target, path, for_s, told)
        what = counted(end["lives"], "sampled life", "sampled lives")
    else:
        end = recorded(target, path, for_s, progress_bar, max_bytes)
        what = f"{count_text(end['events'])} events"
    say(f"{path}: {what}, {bytes_text(path.stat().st_size)}; {end['end']}")
    for note in notes_of(end, end["lost"]):
        say(note)


@command.command("show")
@options
def show(
    path: Path = argument(type=INPUT),
    as_json: bool = JSON,
    is_anonymous: bool = option(
        "--anonymous", help="Without command line, process number, date and addresses: to share it."
    ),
    output: Path | None = option(
        "-o", "--output", type=OUTPUT_OR_DASH, metavar="FILE", help="Write it: a trace (.hkt), else a page."
    ),
) -> None:
    """Show a trace: rates, sizes, lifetimes, threads, live bytes."""
    from hakmem.trace.anonymous import anonymized
    from hakmem.trace.figures import figures_of
    from hakmem.trace.file import Trace, is_sampled, read, write
    from hakmem.trace.sampled import read_sampled
    from hakmem.trace.sampled_figures import sampled_figures_of
    from hakmem.views.screen import console, print_json
    from hakmem.views.trace_text import notes_of, print_trace

    if is_sampled(path) and (output is not None or is_anonymous):
        raise HakmemError(f"{path} has sampled lives: -o and --anonymous are for full traces")
    if output is not None:
        check_writable(output)
    found = read_sampled(path) if is_sampled(path) else read(path)
    if isinstance(found, Trace) and is_anonymous:
        found = anonymized(found)
    if isinstance(found, Trace) and output is not None:
        from hakmem.views.trace_page import render

        if output.suffix == TRACE:
            write(output, found)
        else:
            write_atomically(output, render(found))
        click.echo(f"wrote {output}", err=is_standard_output(output))
        return
    figures = figures_of(found) if isinstance(found, Trace) else sampled_figures_of(found)
    if as_json:
        print_json({"head": found.head, "figures": asdict(figures), "end": found.end})
    else:
        print_trace(console(), found.head, figures, notes_of(found.end, found.lost))
