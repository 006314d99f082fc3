"""hakmem tune: a trace, replayed with each of hakmem's options that change memory or time."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.base.durations import duration_text
from hakmem.base.sizes import counted
from hakmem.commands.arguments import INPUT, JSON, argument, option, options, say
from hakmem.commands.replay import whole_trace

ROUNDS_MIN = 3


@click.command("tune")
@options
def command(
    path: Path = argument(type=INPUT),
    goal: str = option(
        "--for",
        type=click.Choice(["rss", "time", "both"]),
        default="both",
        help="The figure to reduce.",
    ),
    rounds: int = option(
        "--rounds", type=click.IntRange(ROUNDS_MIN), default=ROUNDS_MIN, help="Replays with each setting."
    ),
    fast: bool = option("--fast", help="Do not wait for the recorded times; nothing is purged by age then."),
    as_json: bool = JSON,
) -> None:
    """Replay a trace with each of hakmem's options that change memory or time, and compare them.

    The table has the change of each figure against the defaults: the median, and the range of the rounds.
    Its last row compares the defaults with themselves: changes as small as these are chance.

    \b
    Examples:
      hakmem tune server.hkt
      hakmem tune server.hkt --for rss
    """
    from hakmem.launch.replaying import How
    from hakmem.launch.tuning import SETTINGS, Goal, Tuner
    from hakmem.views.replay_text import outcome_json, print_outcome, written_notes
    from hakmem.views.screen import console, print_json, progress_bar
    from hakmem.views.trace_text import notes_of

    trace = whole_trace(path)
    notes: list[str] = []
    with progress_bar("tuning") as advance:
        tuner = Tuner(trace, How(idle_s=0.0, is_in_time=not fast), advance, notes.append)
        needed = "" if fast else f": about {duration_text(tuner.seconds(rounds))}"
        tried = counted(len(SETTINGS), "setting")
        say(f"{counted(rounds, 'round')} of {tried}, and of the defaults twice{needed}")
        notes += written_notes(tuner.fit())
        outcome = tuner.outcome(Goal(goal), rounds)
    notes += notes_of(trace.end, trace.lost)
    if as_json:
        print_json(outcome_json(outcome, notes))
    else:
        print_outcome(console(), outcome)
        for note in notes:
            say(note)
