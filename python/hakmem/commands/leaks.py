"""hakmem leaks: blocks that nothing reaches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.signals import die_of
from hakmem.commands.arguments import (
    DEPTH,
    EVERY_CONTENT,
    EXAMPLES,
    FILES,
    INTERNALS,
    JSON,
    PERIOD,
    TARGET,
    duration,
    open_target,
    option,
    options_as,
    warn,
)
from hakmem.target.target import Target

if TYPE_CHECKING:
    from hakmem.blocks.conclusion import Conclusion
    from hakmem.blocks.growing import Watched
    from hakmem.target.switch import Settings


@dataclass(frozen=True)
class Asked:
    target: str = TARGET
    for_s: float | None = option(
        "--for",
        type=duration(0.0),
        help="How long to watch for growth; 0s: switch no profile on.  [default: 10s to 60s, until the "
        "growing sites are known; a profile that is on is read as it is]",
    )
    rate: Settings | None = PERIOD
    wait_s: float = option(
        "--wait", type=duration(), default="2s", help="Time between two scans for unreachable blocks."
    )
    freeze: bool = option(
        "--freeze", help="Stop the process once instead: certain, and registers are seen too."
    )
    swapped: bool = option("--swapped", help="Read swapped-out memory too: it becomes resident.")
    depth: int = DEPTH
    with_internals: bool = INTERNALS
    examples: bool = EXAMPLES
    files: tuple[Path, ...] = FILES
    check: bool = option("--check", help="Exit with status 1 if a site leaks, or blocks are definitely lost.")
    as_json: bool = JSON
    everything: bool = EVERY_CONTENT


@click.command("leaks")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Find the leaks of a process (PID), or of one that died (CORE): which call sites keep growing, how long
    their blocks live, and which live blocks are unreachable.

    Allocations are sampled, as by `hakmem profile`, until the growing sites are known, for 60 s at most: a
    site is named if it grew by more than chance and frees nothing that is older than some age. Then all
    memory of the program is read for words that may be pointers. A running process is scanned until a scan
    agrees with all before it, six times at most: a block unreachable and unchanged in each of them is lost,
    or perhaps lost if none agrees. --freeze stops it once instead, as a debugger does; it continues
    even if the tool dies. A few system calls, such as epoll_wait, then return EINTR to the program. Ctrl-C
    ends the sampling early.

    \b
    Examples:
      hakmem leaks 1234
      hakmem leaks 1234 --for 5m --period 20%
      hakmem leaks 1234 --for 0s --freeze
      hakmem leaks 1234 --freeze --check || exit 1
      hakmem leaks core.1234 --json | jq -r .verdict
    """
    from hakmem.views.leaks_text import print_leaks
    from hakmem.views.screen import console, print_json

    found, stopped_by = conclude(checked(asked), asked)
    if asked.as_json:
        print_json(found.to_json())
    else:
        print_leaks(console(), found, asked.everything)
    if stopped_by is not None:
        die_of(stopped_by)
    if asked.check and found.has_leaks:
        raise SystemExit(ExitCode.FAILED)


def checked(asked: Asked) -> Target:
    opened = open_target(asked.target, asked.files)
    if asked.freeze and opened.process is None:
        raise click.UsageError("--freeze is for processes; a core dump does not change")
    if asked.for_s == 0 and asked.rate:
        raise click.UsageError("--for 0s samples nothing; leave out --period, or give a time")
    return opened


def conclude(opened: Target, asked: Asked) -> tuple[Conclusion, int | None]:
    """Reads the samples, scans for unreachable blocks; and the signal that ended it early, if any."""
    from hakmem.blocks.conclusion import Conclusion
    from hakmem.blocks.evidence import gather_evidence
    from hakmem.blocks.growing import Watch, Watched, watch
    from hakmem.blocks.leaks import Options, find_leaks
    from hakmem.blocks.samples import sources_of
    from hakmem.blocks.size_growth import watch_sizes
    from hakmem.blocks.whose import Whose
    from hakmem.doctor.runtimes import hidden_in
    from hakmem.target.switch import Settings
    from hakmem.views.screen import progress_bar

    how = Watch(asked.for_s, asked.rate or Settings())
    sources = sources_of(opened, asked.files, warn)
    evidence_of = partial(
        gather_evidence, sources=sources, depth=asked.depth, with_internals=asked.with_internals
    )

    def is_told(watched: Watched) -> bool:
        evidence = evidence_of(watched, None)
        return evidence is None or evidence.is_told

    sizes = None
    with progress_bar("profiling", how.seconds) as seconds:
        if opened.malloc == "hakmem":
            watched = watch(opened, replace(how, is_told=is_told), seconds)
        else:
            watched = Watched(notes=[f"growth is known by size, not by call site: {opened.lacks}"])
            if opened.process is not None and asked.for_s != 0:
                sizes = watch_sizes(opened, asked.for_s, seconds)
    reached, samples = None, watched.after.blocks if watched.after else []
    if not watched.is_gone and watched.stopped_by is None:
        try:
            with progress_bar("scanning") as progress:
                options = Options(asked.wait_s, asked.freeze, asked.swapped, asked.examples)
                births = watched.after.births_ns if watched.after else []
                known = replace(options, samples=samples, births_ns=births, described=watched.described)
                reached = find_leaks(opened, replace(known, progress=progress))
        except HakmemError as error:
            if not samples:
                raise
            watched.notes.append(f"unreachable blocks are not known: {error}")
    evidence = evidence_of(watched, reached)
    head, notes = Whose.head_of(opened), watched.notes + hidden_in(opened.process)
    spent = watched.spent
    found = Conclusion(**head, evidence=evidence, reached=reached, notes=notes, spent=spent, sizes=sizes)
    return found, watched.stopped_by
