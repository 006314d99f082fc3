"""hakmem top: a live view of a process."""

from __future__ import annotations

import os
import time
from functools import partial

import click

from hakmem.base.errors import HakmemError, ProcessGoneError
from hakmem.base.sizes import counted
from hakmem.commands.arguments import PROCESS_ID, argument, complete_pids, duration, option, options, say
from hakmem.target.allocators import HAKMEM
from hakmem.target.fleet import Fleet
from hakmem.target.target import Target, open_process

ROWS_SHOWN = 20


@click.command("top")
@options
def command(
    pid: int | None = argument(type=PROCESS_ID, required=False, shell_complete=complete_pids),
    interval_s: float = option("--every", type=duration(0.1), default="1s", help="Time between two updates."),
) -> None:
    """Watch process PID live: rates by size class, RSS, caches, remote frees, slow paths, faults, threads,
    sites of a heap profile, the program's own heaps.

    Without PID, choose among the hakmem processes of this machine, the largest first. Keys: 1-7 or Tab switch
    tables, Left and Right scroll them, s sorts by the next column, r reverses the order, p pauses, + and -
    change the interval, b chooses another process, q quits. Without a terminal, as in a pipe, or on a dumb
    one, it prints the rates over one interval as plain tables.

    Table 6 shows which call sites hold the memory, if a heap profile is on. There o switches one on, without
    stopping the process, and off again, as does leaving top. z counts growth from now.

    A process on glibc's malloc has one page: its arenas, its blocks by size, and the sizes that have grown
    since; Ctrl-C ends it.

    Table 7 appears if the program has made heaps, or named those of its threads (hak_heap_new,
    hak_heap_set_name): the bytes that each holds, its limit, and its allocations per second.

    \b
    Examples:
      hakmem top
      hakmem top 1234 --every 500ms
      hakmem top 1234 | head -20
    """
    fleet = Fleet()  # one for all choices: known processes are not examined again
    targets = [open_process(pid)] if pid is not None else choices(fleet)
    if pid is not None and targets[0].malloc != HAKMEM:
        from hakmem.views.glibc_text import watch_glibc

        watch_glibc(targets[0], interval_s, once=not has_terminal())
        return
    if not has_terminal():
        for target in targets:
            try:
                print_once(target, interval_s)
            except ProcessGoneError:
                if pid is not None:
                    raise
        return
    from hakmem.views.top import TopApp
    from hakmem.views.top_signals import leaving_in_order

    app = TopApp(targets, interval_s, partial(choices, fleet))
    with leaving_in_order(app):
        try:
            app.run()
        finally:
            app.leave_sites()
    app.raise_error()


def has_terminal() -> bool:
    """With cursor control, on all streams: textual reads standard input and draws on standard error."""
    if os.environ.get("TERM", "") in ("", "dumb", "unknown"):
        return False
    return all(os.isatty(number) for number in (0, 1, 2))


def choices(fleet: Fleet) -> list[Target]:
    """All hakmem processes; HakmemError if there are none."""
    targets = fleet.targets()
    if targets:
        return targets
    denied = f" (access denied to {counted(fleet.refused, 'process', 'processes')}; use sudo)"
    raise HakmemError(
        f"no process runs on hakmem{denied if fleet.refused else ''}; start one with: hakmem run -- COMMAND"
    )


def print_once(target: Target, interval_s: float) -> None:
    """The gauges and two tables, over one interval; a third one if there are heaps."""
    from rich.markup import escape

    from hakmem.views.screen import Sheet, console, one_line
    from hakmem.views.watching import CLASSES, COUNTERS, GAUGES, HEAPS, Watch, beyond_rss

    watch = Watch(target)
    moment = watch.poll()
    while moment is None:
        time.sleep(interval_s)
        moment = watch.poll()
    out = console()
    out.print(f"[bold]{target.pid}[/] {escape(one_line(target.command))}")
    out.print(Sheet("", [gauge.name for gauge in GAUGES], [[g.text(g.pick(moment)) for g in GAUGES]]))
    if said := beyond_rss(moment):
        out.print(said)
    for view in (CLASSES, COUNTERS, *([HEAPS] if moment.snapshot.heaps else [])):
        rows = view.sorted_rows(moment)
        out.print(Sheet(view.name, view.columns, rows[:ROWS_SHOWN]))
        if rows[ROWS_SHOWN:]:
            out.print(f"… and {len(rows) - ROWS_SHOWN} more", style="dim")
    print_sites(target)


def print_sites(target: Target) -> None:
    """The table of `hakmem profile`, if a heap profile is on."""
    from hakmem.profile.watch import SiteWatch
    from hakmem.views.profile_text import show_profile

    with SiteWatch(target) as watch:
        if watch.is_on:
            profile = watch.read()
            watch.names.find(profile)
            for note in watch.notes:
                say(note)
            show_profile(profile, rows_max=ROWS_SHOWN)
