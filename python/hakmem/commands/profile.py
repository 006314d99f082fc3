"""hakmem profile: which call sites hold the memory of a running process."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.files import check_writable
from hakmem.base.signals import Stopped, die_of, stoppable
from hakmem.commands.arguments import (
    COST,
    DEPTH,
    FILES,
    INTERNALS,
    JSON,
    OUTPUT,
    PERIOD,
    SITES_MAX,
    TARGET,
    duration,
    one_of,
    open_target,
    option,
    options_as,
    say,
    warn,
)
from hakmem.target.target import Target

if TYPE_CHECKING:
    from hakmem.profile.files import Write
    from hakmem.profile.model import Profile
    from hakmem.profile.session import Gathered
    from hakmem.target.switch import Settings

MODES = {
    "live": "Blocks that the program holds now (the default).",
    "new": "Live blocks allocated since the profile began.",
    "allocated": "All blocks allocated since the profile began.",
    "peak": "Live blocks at the peak (checked about once a second during --for).",
}
SWITCH = {
    "on": "Switch sampling on and leave it on (--for: for that long).",
    "off": "Switch sampling off.",
}
FOR_S = 10.0
ADVICE = "use --for 1m or --period 4096"


@dataclass(frozen=True)
class Asked:
    target: str = TARGET
    for_s: float | None = option("--for", type=duration(), help="How long to sample.  [default: 10s]")
    mode: str | None = one_of(MODES)
    switch: str | None = one_of(SWITCH)
    outputs: tuple[Path, ...] = option(
        "-o",
        "--output",
        type=OUTPUT,
        metavar="FILE",
        help="Also write it to FILE: .pb.gz (pprof), .folded, .html or .json.",
    )
    period_bytes: int | None = PERIOD
    cost_percent: int | None = COST
    depth: int = DEPTH
    rows_max: int = SITES_MAX
    with_internals: bool = INTERNALS
    files: tuple[Path, ...] = FILES
    as_json: bool = JSON

    @property
    def settings(self) -> Settings:
        from hakmem.target.switch import Settings

        return Settings(self.period_bytes or 0, self.for_s or 0.0, self.cost_percent or 0)


@click.command("profile")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Show which call sites hold the memory of process PID, by sampling its allocations.

    Sampling is switched on from outside: bytes are written into hakmem's own control record, with the same
    rights as reading. The process is not stopped, and no code is injected. Sampling ends with
    the command, and by itself if the command is killed. It takes at most 5 % of the process's processor time
    (--cost), or 0.5 % with --on. Each figure comes with the interval that contains the true one in 95 of 100
    profiles; what was allocated before is a row of its own.

    A profile that is on (--on) and a core file show the samples so far.

    \b
    Examples:
      hakmem profile $(pgrep -o redis-server)
      hakmem profile 1234 --for 60s --allocated -o x.pb.gz
      hakmem profile 1234 --cost 20 --for 5m
      hakmem profile 1234 --on, later hakmem profile 1234 --live, then --off
    """
    from hakmem.profile.session import require_profiles
    from hakmem.views.profile_text import show_profile

    writers = checked(asked)
    opened = open_target(asked.target, asked.files)
    require_profiles(opened)
    if asked.switch:
        click.echo(turn(opened, asked.settings if asked.switch == "on" else None))
        return
    gathered = gathered_as(asked, opened)
    name_unless_stopped(opened, gathered, asked.files)
    is_saved = saved(gathered.profile, writers)
    for note in gathered.notes:
        say(note)
    show_profile(
        gathered.profile,
        depth=asked.depth,
        rows_max=asked.rows_max,
        as_json=asked.as_json,
        advice=ADVICE if opened.process is not None else "",
        with_internals=asked.with_internals,
    )
    if not is_saved:
        raise SystemExit(ExitCode.FAILED)
    if gathered.stopped_by is not None:
        die_of(gathered.stopped_by)


def checked(asked: Asked) -> dict[Path, Write]:
    """The writers of the files; whatever can be refused is refused before the work."""
    from hakmem.views.profile_file import writer

    settings = asked.settings
    if asked.switch == "off" and any(vars(settings).values()):
        raise click.UsageError(
            "--off ends a profile: it has no length and no rate; leave the other options out"
        )
    if settings.period_bytes and settings.cost_percent:
        raise click.UsageError("--period fixes what --cost adapts; use one of them")
    if asked.switch and (asked.mode or asked.outputs):
        raise click.UsageError(
            f"--{asked.switch} shows nothing; ask for a table or a file afterwards, without it"
        )
    writers = {path: writer(path) for path in asked.outputs}
    for path in asked.outputs:
        check_writable(path)
    return writers


def gathered_as(asked: Asked, opened: Target) -> Gathered:
    """A profile that is on is read as it is; else one is gathered, with a progress bar on the terminal."""
    from hakmem.doctor.runtimes import hidden_in
    from hakmem.profile.model import Mode
    from hakmem.profile.session import Plan, gather, is_on, last_profile, own_settings
    from hakmem.views.screen import progress_bar

    wanted, settings = Mode(asked.mode or Mode.LIVE), asked.settings
    if opened.process is None:
        return last_profile(opened, wanted)
    if is_on(opened) and asked.for_s is None:
        gathered = last_profile(opened, wanted)
        gathered.notes += own_settings(settings)
    else:
        for_s = asked.for_s or FOR_S
        with progress_bar("profiling", for_s) as progress:
            gathered = gather(opened, Plan(wanted, for_s, replace(settings, lease_s=0.0)), progress)
    gathered.notes += hidden_in(opened.process)
    return gathered


def saved(profile: Profile, writers: dict[Path, Write]) -> bool:
    """Writes the files before anything else can fail; a failure is reported at once."""
    from hakmem.profile.files import save_all

    try:
        save_all(profile, writers)
    except HakmemError as error:
        say(error)
        return False
    return True


def name_unless_stopped(target: Target, gathered: Gathered, moved: Sequence[Path]) -> None:
    """The samples are there: a signal while their names are looked up ends only that."""
    from hakmem.blocks.samples import sources_of
    from hakmem.profile.names import name_addresses

    try:
        with stoppable():
            name_addresses(gathered.profile, sources_of(target, moved, warn))
    except Stopped as stop:
        gathered.notes.append("interrupted while names were looked up: functions are addresses")
        gathered.stopped_by = None if stop.number == signal.SIGINT else stop.number


def turn(target: Target, settings: Settings | None) -> str:
    """Switches sampling on, or off without settings; returns what to say."""
    from hakmem.target.switch import Switch

    with Switch(target) as switch:
        if settings is None:
            switch.off()
            return f"process {target.pid}: sampling is off"
        switch.on(settings)
        end = f"for {duration_text(settings.lease_s)}" if settings.lease_s else "until --off"
        if switch.is_stopped:
            return f"process {target.pid} is stopped: sampling starts when it continues, {end}"
        followed = switch.wait_followed()
        return (
            f"process {target.pid}: sampling is on {end}, in {followed.following} of {followed.heaps} threads"
            f"{'' if followed.is_all else '; the others follow when they allocate or free'}"
        )
