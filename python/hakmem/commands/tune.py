"""hakmem tune: the options with which hakmem does a trace with less memory, or in less time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hakmem.base.durations import duration_text
from hakmem.commands.arguments import INPUT, JSON, argument, option, options, say
from hakmem.commands.replay import whole_trace


@click.command("tune")
@options
def command(
    path: Path = argument(type=INPUT),
    goal: str = option(
        "--for",
        type=click.Choice(["rss", "time", "both"]),
        default="both",
        help="The figure that is to fall.",
    ),
    rounds: int = option("--rounds", type=click.IntRange(5), default=6, help="Replays of the last stage."),
    fast: bool = option("--fast", help="Do not wait for the recorded times; nothing is purged by age then."),
    as_json: bool = JSON,
) -> None:
    """Try hakmem's options on a trace, and print the one that helps.

    Options are tried by replays of growing parts of the trace; then the best one is measured against the
    defaults. It is recommended if each round has a gain, and the median is at least 2 %.

    \b
    Examples:
      hakmem tune server.hkt
      hakmem tune server.hkt --for rss
    """
    from hakmem.launch.replaying import How
    from hakmem.launch.tuning import Goal, Tuner
    from hakmem.views.replay_text import advice_text, written_notes
    from hakmem.views.screen import print_json, progress_bar
    from hakmem.views.trace_text import notes_of

    trace = whole_trace(path)
    notes = notes_of(trace.end, trace.lost)
    with progress_bar("tuning") as advance:
        tuner = Tuner(trace, How(idle_s=0.0, is_in_time=not fast), advance, notes.append)
        if not fast:
            say(f"this takes {duration_text(tuner.seconds(rounds))}, nearly")
        notes += written_notes(tuner.fit())
        advice = tuner.advice(Goal(goal), rounds)
    if as_json:
        print_json({"advice": asdict(advice) if advice else None, "notes": notes})
    else:
        click.echo(advice_text(advice, Goal(goal)))
        for note in notes:
            say(note)
