"""hakmem profile: which call sites hold the memory of a running process."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hakmem.base.durations import duration_text
from hakmem.base.errors import ExitCode, HakmemError
from hakmem.base.files import check_writable
from hakmem.base.signals import Stopped, die_of, stoppable
from hakmem.commands.arguments import (
    DEPTH,
    FILES,
    INPUT,
    INTERNALS,
    JSON,
    OUTPUT,
    PERIOD,
    PID,
    SITES_MAX,
    argument,
    complete_pids,
    duration,
    open_target,
    option,
    options_as,
    say,
    warn,
)
from hakmem.target.elf_format import MAGIC
from hakmem.target.target import Target

if TYPE_CHECKING:
    from hakmem.profile.files import Write
    from hakmem.profile.model import Profile
    from hakmem.profile.session import Gathered
    from hakmem.target.switch import Settings

FOR_S = 10.0
ADVICE = "use --for 1m or --period 4096"


@dataclass(frozen=True)
class Asked:
    target: str = argument(metavar="PID|CORE|FILE", shell_complete=complete_pids)
    for_s: float | None = option("--for", type=duration(), help="How long to sample.  [default: 10s]")
    mode: str | None = option(
        "--of",
        type=click.Choice(["live", "new", "allocated", "peak"]),
        help="Live blocks; those allocated since the profile began; all allocated since, freed or not; or "
        "live blocks at the peak (checked about once a second during --for).  [default: live]",
    )
    switch: bool | None = option(
        "--on/--off", default=None, help="Switch sampling on and leave it on (--for: for that long), or off."
    )
    outputs: tuple[Path, ...] = option(
        "-o",
        "--output",
        type=OUTPUT,
        metavar="FILE",
        help="Also write it to FILE: .pb.gz (pprof), .folded, .html or .json.",
    )
    rate: Settings | None = PERIOD
    depth: int = DEPTH
    rows_max: int = SITES_MAX
    with_internals: bool = INTERNALS
    against: Path | None = option(
        "--against",
        type=INPUT,
        metavar="BEFORE",
        help="Show the sites that grew or shrank since this profile, by more than chance.",
    )
    everything: bool = option("--all", help="With --against: also sites whose change may be chance.")
    files: tuple[Path, ...] = FILES
    debuginfod: bool = option(
        "--debuginfod", help="For a file: also ask the servers in DEBUGINFOD_URLS, for 20 s at most."
    )
    as_json: bool = JSON

    @property
    def settings(self) -> Settings:
        from hakmem.target.switch import Settings

        return replace(self.rate or Settings(), lease_s=self.for_s or 0.0)


@click.command("profile")
@options_as(Asked)
def command(asked: Asked) -> None:
    """Show which call sites hold the memory of process PID, by sampling its allocations; or those of a heap
    profile in a core dump or FILE, also of another tool in pprof's format.

    Sampling is switched on from outside: bytes are written into hakmem's own control record, with the same
    rights as reading. The process is not stopped, and no code is injected. Sampling ends with
    the command, and by itself if the command is killed. It takes at most 5 % of the process's processor time
    (--period), or 0.5 % with --on. Each figure comes with the interval that contains the true one in 95 of
    100 profiles; what was allocated before is a row of its own.

    A profile that is on (--on) and a core file show the samples so far. FILE is named from the program's
    files: build ids tell whether one is the right one.

    Profiles are samples, so most sites differ a little by chance. With --against a site is shown if it
    changed by more than three standard errors. Sites are matched by functions and lines; in rebuilt files, by
    functions.

    \b
    Examples:
      hakmem profile $(pgrep -o redis-server)
      hakmem profile 1234 --for 60s --of allocated -o x.pb.gz
      hakmem profile 1234 --period 20% --for 5m
      hakmem profile 1234 --on, later hakmem profile 1234, then --off
      hakmem profile server.pb.gz --files ./build -o server.html
      hakmem profile friday.pb.gz --against monday.pb.gz
    """
    from hakmem.profile.files import load
    from hakmem.profile.session import Gathered, require_profiles
    from hakmem.views.profile_text import show_difference, show_profile

    writers, advice = checked(asked), ""
    before = load(asked.against) if asked.against else None
    if is_profile(asked.target):
        gathered = Gathered(load_named(asked))
    else:
        opened = open_target(asked.target, asked.files)
        require_profiles(opened)
        if asked.switch is not None:
            click.echo(turn(opened, asked.settings if asked.switch else None))
            return
        gathered = gathered_as(asked, opened)
        name_unless_stopped(opened, gathered, asked.files)
        advice = ADVICE if opened.process is not None else ""
    is_saved = saved(gathered.profile, writers)
    for note in gathered.notes:
        say(note)
    shown: dict[str, Any] = {
        "depth": asked.depth,
        "rows_max": asked.rows_max,
        "with_internals": asked.with_internals,
    }
    if before is not None:
        everything = asked.everything
        show_difference(before, gathered.profile, everything=everything, as_json=asked.as_json, **shown)
    else:
        show_profile(gathered.profile, as_json=asked.as_json, advice=advice, **shown)
    if not is_saved:
        raise SystemExit(ExitCode.FAILED)
    if gathered.stopped_by is not None:
        die_of(gathered.stopped_by)


def is_profile(target: str) -> bool:
    """Any file but a core is taken for one."""
    path = Path(target)
    if PID.fullmatch(target) or not os.path.isfile(path):
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) != MAGIC


def load_named(asked: Asked) -> Profile:
    """A file's; one that is compared keeps the names that it has, as the other does."""
    from hakmem.profile.debug_files import Debuginfod, servers
    from hakmem.profile.files import load
    from hakmem.profile.names import Sources, name_addresses

    if asked.mode or asked.switch is not None or any(vars(asked.settings).values()):
        raise click.UsageError("a file is shown as it is: leave out what is for sampling")
    profile = load(Path(asked.target))
    if asked.debuginfod and not servers():
        warn("DEBUGINFOD_URLS is not set: no server is asked")
    debuginfod = Debuginfod(servers(), complain=warn) if asked.debuginfod else None
    if asked.against is None:
        name_addresses(profile, Sources(debuginfod=debuginfod, complain=warn, moved=asked.files))
    return profile


def checked(asked: Asked) -> dict[Path, Write]:
    """The writers of the files; whatever can be refused is refused before the work."""
    from hakmem.views.profile_file import writer

    settings = asked.settings
    if asked.switch is False and any(vars(settings).values()):
        raise click.UsageError(
            "--off ends a profile: it has no length and no rate; leave the other options out"
        )
    if asked.switch is not None and (asked.mode or asked.outputs):
        raise click.UsageError(
            "--on and --off show nothing; ask for a table or a file afterwards, without them"
        )
    if asked.everything and not asked.against:
        raise click.UsageError("--all needs --against: a table has all sites up to --top")
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
