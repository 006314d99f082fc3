"""hakmem leaks: blocks that nothing reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import Duration
from hakmem.commands.arguments import (
    DEPTH,
    EVERY_CONTENT,
    EXAMPLES,
    EXECUTABLE,
    INTERNALS,
    JSON,
    LIBRARIES,
    PERIOD,
    TARGET,
    moved_files,
    open_target,
)
from hakmem.commands.profile import profile_bar

if TYPE_CHECKING:
    from hakmem.blocks.conclusion import Conclusion
    from hakmem.blocks.growing import Watch, Watched
    from hakmem.blocks.leaks import Options
    from hakmem.target.target import Target


@click.command("leaks")
@TARGET
@click.option(
    "--for",
    "for_s",
    type=Duration(),
    help="How long to watch for growth.  [default: 10s to 60s, until the growing sites are known; a profile "
    "that is on is read as it is]",
)
@click.option(
    "--no-profile", is_flag=True, help="Switch no profile on; growth is known only if one is on already."
)
@PERIOD
@click.option(
    "--cost", "cost_percent", type=click.IntRange(1, 100), metavar="PERCENT",
    help="Sampling's limit, in percent of the process's processor time.  [default: 5]",
)  # fmt: skip
@click.option(
    "--wait",
    "wait_s",
    type=Duration(),
    default="2s",
    show_default=True,
    help="Time between two scans for unreachable blocks.",
)
@click.option(
    "--freeze",
    is_flag=True,
    help="Stop the process for one scan instead: certain, and registers are seen too.",
)
@click.option("--swapped", is_flag=True, help="Read swapped-out memory too: it becomes resident.")
@DEPTH
@INTERNALS
@EXAMPLES
@EXECUTABLE
@LIBRARIES
@JSON
@EVERY_CONTENT
def command(
    target: str,
    for_s: float | None,
    no_profile: bool,
    period_bytes: int | None,
    cost_percent: int | None,
    wait_s: float,
    freeze: bool,
    swapped: bool,
    depth: int,
    with_internals: bool,
    examples: bool,
    executable: Path | None,
    libraries: tuple[Path, ...],
    as_json: bool,
    everything: bool,
) -> None:  # fmt: skip
    """Find out what a process (PID) leaks, or did when it died (CORE): which call sites keep growing, how
    long their blocks live, and which live blocks no pointer leads to any more.

    Allocations are sampled, as by `hakmem profile`, until it is known whose growth it is, or for 60 s: a site
    is named if it grew by more than chance and frees nothing that is older than some age. Then all memory of
    the program is read for words that may be pointers. A running process is scanned until a scan agrees with
    all before it, six times at most: a block unreachable and unchanged in each of them is lost, or perhaps
    lost if none agrees. --freeze stops it for one scan instead, as a debugger does, and lets it go on
    whatever happens to the tool; a few system calls, such as epoll_wait, then return EINTR to the program.
    Ctrl-C ends the sampling early.

    \b
    Examples:
      hakmem leaks 1234
      hakmem leaks 1234 --for 5m --cost 20
      hakmem leaks 1234 --no-profile --freeze
      hakmem leaks core.1234 --json | jq -r .verdict
    """
    from hakmem.base.signals import die_of
    from hakmem.blocks.growing import Watch
    from hakmem.blocks.leaks import Options
    from hakmem.target.switch import Settings
    from hakmem.views.leaks_text import print_leaks
    from hakmem.views.screen import console, print_json

    opened = open_target(target, executable, libraries)
    if freeze and opened.process is None:
        raise click.UsageError("--freeze is for processes; a core dump does not change")
    if no_profile and (for_s is not None or period_bytes or cost_percent):
        raise click.UsageError(
            "--no-profile samples nothing; leave out --for, --period and --cost, or --no-profile"
        )
    if period_bytes and cost_percent:
        raise click.UsageError("--period fixes what --cost adapts; use one of them")
    settings = Settings(period_bytes or 0, cost_percent=cost_percent or 0)
    how = Watch(for_s, settings, may_switch=not no_profile)
    options = Options(wait_s, freeze, swapped, examples)
    moved = moved_files(executable, libraries)
    found, stopped_by = conclude(opened, how, options, moved, depth, with_internals=with_internals)
    if as_json:
        print_json(found.to_json())
    else:
        print_leaks(console(), found, everything)
    if stopped_by is not None:
        die_of(stopped_by)


def conclude(
    opened: Target,
    how: Watch,
    options: Options,
    moved: Sequence[Path],
    depth: int,
    *,
    with_internals: bool,
) -> tuple[Conclusion, int | None]:
    """Reads the samples, scans for unreachable blocks; and the signal that ended it early, if any."""
    from hakmem.base.errors import HakmemError
    from hakmem.blocks.conclusion import Conclusion
    from hakmem.blocks.evidence import gather_evidence
    from hakmem.blocks.growing import watch
    from hakmem.blocks.leaks import find_leaks
    from hakmem.blocks.samples import sources_of
    from hakmem.blocks.whose import Whose
    from hakmem.views.screen import progress_bar

    sources = sources_of(opened, moved, warn)

    def is_told(watched: Watched) -> bool:
        evidence = gather_evidence(watched, None, sources, depth, with_internals=with_internals)
        return evidence is None or evidence.is_told

    with profile_bar(how.seconds) as seconds:
        watched = watch(opened, replace(how, is_told=is_told), seconds)
    reached, samples = None, watched.places
    if not watched.is_gone and watched.stopped_by is None:
        try:
            with progress_bar("scanning") as progress:
                asked = replace(options, samples=samples, described=watched.described)
                reached = find_leaks(opened, replace(asked, progress=progress))
        except HakmemError as error:
            if not samples:
                raise
            watched.notes.append(f"unreachable blocks are not known: {error}")
    evidence = gather_evidence(watched, reached, sources, depth, with_internals=with_internals)
    head = Whose.head_of(opened)
    found = Conclusion(**head, evidence=evidence, reached=reached, notes=watched.notes, spent=watched.spent)
    return found, watched.stopped_by


def warn(what: str) -> None:
    click.echo(f"hakmem: warning: {what}", err=True)
