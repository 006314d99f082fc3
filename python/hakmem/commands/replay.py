"""hakmem replay: a trace, done again on several mallocs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import HakmemError
from hakmem.commands.arguments import INPUT, JSON, argument, duration, option, options, say
from hakmem.launch.contenders import HAKMEM, Contender, Unusable, contender, find_replayer

if TYPE_CHECKING:
    from hakmem.trace.file import Trace

DEFAULT_WITH = "hakmem,glibc,jemalloc,mimalloc,tcmalloc"


@click.command("replay")
@options
def command(
    path: Path = argument(type=INPUT),
    mallocs: str = option(
        "--with", default=DEFAULT_WITH, metavar="NAME,…", help="Mallocs by name, or libraries by their path."
    ),
    rounds: int = option("--rounds", type=click.IntRange(1), default=5, help="Replays of each."),
    idle_s: float = option("--idle", type=duration(), default="3s", help="How long to idle at the end."),
    fast: bool = option(
        "--fast", help="Do not wait for the recorded times; memory is then not purged by age."
    ),
    as_json: bool = JSON,
) -> None:
    """Replay a trace on several mallocs, with the recorded threads and times, and compare them.

    Each round replays it once on each; the table has medians, half the range, and ratios to hakmem. Time is
    the processor time of malloc, free and the first touch of their memory.

    \b
    Examples:
      hakmem replay server.hkt
      hakmem replay server.hkt --with glibc,/opt/lib/libmymalloc.so --rounds 9
    """
    from hakmem.launch.replaying import How, compare, fidelity, fit_written, replayer
    from hakmem.trace.plan import plan_of
    from hakmem.views.replay_text import fidelity_text, print_results, results_json, written_notes
    from hakmem.views.screen import console, print_json, progress_bar
    from hakmem.views.trace_text import notes_of

    trace = whole_trace(path)
    plan = plan_of(trace.lives, int(trace.head.get("pid", 0)))
    notes = notes_of(trace.end, trace.lost)
    with replayer(plan, How(idle_s, not fast), trace) as replays:
        chosen = chosen_of(mallocs, notes)
        needed_s = rounds * len(chosen) * replays.seconds
        say(f"{rounds} rounds of {', '.join(one.name for one in chosen)}: {duration_text(needed_s)}, nearly")
        with progress_bar("replaying") as advance:
            fit_written(trace, replays, chosen[0])
            results = compare(replays, chosen, rounds, advance, notes.append)
        notes += written_notes(replays.how.written_bytes)
    if not results or results[0].contender is not chosen[0]:
        raise HakmemError(notes[-1])
    found = fidelity(trace, plan, results[0])
    if as_json:
        print_json(results_json(results, found, notes))
        return
    console().print(fidelity_text(found, results[0]), soft_wrap=True)
    print_results(console(), results)
    for note in notes:
        say(note)


def whole_trace(path: Path) -> Trace:
    """HakmemError if it is none of all events."""
    from hakmem.trace.file import is_sampled, read

    if is_sampled(path):
        raise HakmemError(f"{path} has sampled lives only: record all events, without --sampled")
    return read(path)


def chosen_of(mallocs: str, notes: list[str]) -> list[Contender]:
    """hakmem first: it is what was recorded.  Others that cannot be had get a note."""
    found, program = [], find_replayer()
    for word in dict.fromkeys([HAKMEM, *(word.strip() for word in mallocs.split(",") if word.strip())]):
        try:
            found.append(contender(word, program))
        except Unusable as error:
            if word == HAKMEM:
                raise
            notes.append(str(error))
    return found
