"""hakmem replay: a trace, replayed on several mallocs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.sizes import counted
from hakmem.commands.arguments import INPUT, JSON, argument, duration, option, options, say
from hakmem.launch.contenders import HAKMEM, REPLAYER, Contender, Unusable, contender, with_settings
from hakmem.target.library import find_program

if TYPE_CHECKING:
    from hakmem.trace.file import Trace

DEFAULT_WITH = (HAKMEM, "glibc", "jemalloc", "mimalloc", "tcmalloc")
SETTINGS = "settings"  # in the place of a malloc


@click.command("replay")
@options
def command(
    path: Path = argument(type=INPUT),
    mallocs: str | None = option(
        "--with",
        metavar="NAME,…",
        help="Mallocs by name, libraries by path, settings: hakmem with each option that changes its memory "
        f"or time; default: those of {', '.join(DEFAULT_WITH)} that are installed.",
    ),
    rounds: int = option("--rounds", type=click.IntRange(1), default=5, help="Replays of each, at most."),
    within_s: float = option(
        "--for", type=duration(), default="1h", help="Time for all rounds: as many as fit, 2 at least."
    ),
    idle_s: float = option("--idle", type=duration(), default="3s", help="How long to idle at the end."),
    fast: bool = option(
        "--fast", help="Do not wait for the recorded times; memory is then not purged by age."
    ),
    as_json: bool = JSON,
) -> None:
    """Replay a trace on several mallocs, or with hakmem's settings, and compare them. The threads
    and times are the recorded ones.

    Each round replays it once on each; the table has medians, half the range, and ratios to hakmem. Time is
    the processor time of malloc, free and the first touch of their memory. With settings hakmem's defaults
    are there twice: ratios as close to 1 as theirs are chance.

    \b
    Examples:
      hakmem replay server.hkt
      hakmem replay server.hkt --with glibc,/opt/lib/libmymalloc.so --rounds 9
      hakmem replay server.hkt --with settings --for 2m
    """
    from hakmem.launch.replaying import ROUNDS_MIN, How, compare, fidelity, fit_written, replayer
    from hakmem.views.replay_text import fidelity_text, print_results, results_json, written_notes
    from hakmem.views.screen import console, print_json, progress_bar
    from hakmem.views.trace_text import notes_of

    began_s = time.monotonic()
    asked = [*DEFAULT_WITH] if mallocs is None else [word.strip() for word in mallocs.split(",")]
    chosen, missing = chosen_of([word for word in asked if word != SETTINGS], is_default=mallocs is None)
    names = ", ".join(one.name for one in chosen)
    if SETTINGS in asked:
        tried = with_settings(chosen[0])
        names += f", and hakmem with {counted(len(tried) - 1, 'setting')}"
        chosen[1:1] = tried
    trace = whole_trace(path)
    failed: list[str] = []
    with replayer(trace, How(idle_s, not fast)) as replays:
        notes = notes_of(trace.end, trace.lost) + missing
        round_s = len(chosen) * replays.seconds
        rounds = min(rounds, max(int(within_s / round_s), ROUNDS_MIN))
        needed = f"{counted(rounds, 'round')} of {names}: about {duration_text(rounds * round_s)}"
        if rounds * round_s > within_s:
            raise HakmemError(f"{needed}, more than --for {duration_text(within_s)}; --fast does not wait")
        say(needed)
        with progress_bar("replaying") as advance:
            fit_written(trace, replays, chosen[0])
            results = compare(replays, chosen, rounds, began_s + within_s, advance, failed.append)
        notes += written_notes(replays.how.written_bytes)
    if not results or results[0].contender is not chosen[0]:
        raise HakmemError(failed[0])
    found = fidelity(trace, replays.plan, results[0])
    if as_json:
        print_json(results_json(results, found, notes + failed))
    else:
        console().print(fidelity_text(found, results[0]), soft_wrap=True)
        print_results(console(), results)
        for note in notes + failed:
            say(note)
    if failed:
        raise SystemExit(ExitCode.FAILED)


def whole_trace(path: Path) -> Trace:
    """HakmemError if it is none of all events."""
    from hakmem.trace.file import is_sampled, read

    if is_sampled(path):
        raise HakmemError(f"{path} has sampled lives only: record all events, without --sampled")
    return read(path)


def chosen_of(asked: list[str], *, is_default: bool) -> tuple[list[Contender], list[str]]:
    """hakmem first, since the trace was recorded on it; and a note on each malloc of the default list that is
    not installed.  HakmemError if one that was asked for cannot take part: a replay takes minutes."""
    found, missing, program = [], [], find_program(REPLAYER)
    for word in dict.fromkeys([HAKMEM, *filter(None, asked)]):
        try:
            found.append(contender(word, program))
        except Unusable as error:
            missing.append(str(error))
            if word == HAKMEM or not is_default:
                raise
    return found, missing
