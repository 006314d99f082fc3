"""hakmem PID: the first answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import duration_text
from hakmem.base.sizes import bytes_text, counted
from hakmem.commands.arguments import JSON, PROCESS_ID, open_pid, options
from hakmem.commands.arguments import argument as argument_of
from hakmem.target.process import all_processes
from hakmem.target.target import Target, making_sense

if TYPE_CHECKING:
    from hakmem.blocks.leaks import Leaks
    from hakmem.blocks.size_growth import SizeGrowth
    from hakmem.census.explanation import Explanation

SCANNED_BYTES_MAX = 1 << 30  # of RSS: a larger process takes longer than a first answer may
WAIT_S, GROWTH_S = 1.0, 3.0
LINES_SHOWN = 5


def process_named(word: str) -> str:
    """The PID that a word is, or of the one running process that it names; else ""."""
    if word.isdigit():
        return word
    name = word[:15]  # the kernel keeps no more
    found = [str(one.pid) for one in all_processes() if one.name == name and one.pid != os.getpid()]
    if len(found) > 1:
        count = counted(len(found), "process", "processes")
        raise click.UsageError(f"{count} are named {word}: {', '.join(found)}")
    return "".join(found)


@click.command("PID")
@options
def command(pid: int = argument_of(type=PROCESS_ID, metavar="PID|NAME"), as_json: bool = JSON) -> None:
    """The first answer about any process, by its PID or its program's name: on which malloc it is, where its
    memory is, whether it leaks, and the next command. It is neither stopped nor changed.

    \b
    Examples:
      hakmem 1234
      hakmem redis-server
    """
    from dataclasses import asdict

    from hakmem.census.why import explain
    from hakmem.doctor.runtimes import hidden_in
    from hakmem.views.screen import console, print_json

    opened = open_pid(pid)
    with making_sense(opened):
        explanation = explain(opened)
        explanation.notes += hidden_in(opened.process)
    is_small = explanation.rss_bytes <= SCANNED_BYTES_MAX and not explanation.broken
    growth, leaks = looked_for_leaks(opened) if is_small else (None, None)
    following = next_command(opened, explanation, growth, leaks)
    if as_json:
        from hakmem.blocks.whose import as_json as plain

        found = {"growth": growth and asdict(growth), "leaks": leaks and plain(leaks), "next": following}
        print_json(asdict(explanation) | found)
        return
    out = console()
    for line in lines_of(opened, explanation, growth, leaks):
        out.print(line, markup=False)
    out.print(f"Next: {following}", style="bold", markup=False)


def looked_for_leaks(opened: Target) -> tuple[SizeGrowth | None, Leaks]:
    """A short look: `hakmem leaks` takes longer and knows more."""
    from hakmem.blocks.leaks import Options, find_leaks
    from hakmem.blocks.size_growth import watch_sizes
    from hakmem.views.screen import progress_bar

    growth = None
    if opened.malloc != "hakmem":
        with progress_bar("watching", GROWTH_S) as seconds:
            growth = watch_sizes(opened, GROWTH_S, seconds)
    with progress_bar("scanning") as progress:
        return growth, find_leaks(opened, Options(WAIT_S, progress=progress))


def lines_of(opened: Target, found: Explanation, growth: SizeGrowth | None, leaks: Leaks | None) -> list[str]:
    from hakmem.views.screen import one_line

    process = opened.process
    of = f"hakmem {opened.version}" if opened.malloc == "hakmem" else opened.version
    threads = counted(process.figures().threads, "thread") if process else ""
    lines = [f"{one_line(found.command[:1] or [opened.name])} (PID {opened.pid}): {of}, {threads}", ""]
    lines += [f"RSS {bytes_text(found.rss_bytes)}:"]
    lines += [f"  {bytes_text(one.bytes):>9}  {one.name}" for one in found.lines[:LINES_SHOWN]]
    if rest := sum(one.bytes for one in found.lines[LINES_SHOWN:]):
        lines.append(f"  {bytes_text(rest):>9}  others (hakmem why {opened.pid})")
    lines += ["", *found.notes, found.verdict]
    if growth is not None:
        lines.append(growth.verdict)
    if leaks is None:
        lines.append("Unreachable blocks were not looked for: that takes longer here (hakmem leaks).")
    elif leaks.definite.blocks:
        size, blocks = bytes_text(leaks.definite.bytes), counted(leaks.definite.blocks, "block")
        content = leaks.contents[0].title if leaks.contents else "of unknown content"
        lines.append(f"Leak: nothing points to {size} in {blocks}, mostly {content}.")
    else:
        lines.append(f"Nothing is definitely lost, in {duration_text(WAIT_S)} between two scans.")
    return [*lines, ""]


def next_command(opened: Target, found: Explanation, growth: SizeGrowth | None, leaks: Leaks | None) -> str:
    """Whatever tells most of the largest trouble."""
    is_leaking = (leaks and leaks.definite.blocks) or (growth and growth.sizes)
    if found.broken:
        return f"HAKMEM_HARDEN=1 hakmem run -- {opened.program} …: it stops at the write that breaks the heap"
    if is_leaking and opened.malloc == "hakmem":
        return f"hakmem leaks {opened.pid}: by call site"
    if is_leaking:
        return f"hakmem run -- {opened.program} …, then hakmem leaks: the same by call site"
    if leaks is None:
        return f"hakmem leaks {opened.pid}"
    return f"hakmem what {opened.pid}: the content of the live data"
