"""hakmem core: the snapshot in a core dump."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.base.errors import HakmemError
from hakmem.commands.arguments import (
    EVERY_FIGURE,
    EXECUTABLE,
    INPUT,
    JSON,
    LIBRARIES,
    argument,
    moved_files,
    open_core_file,
    options,
    warn,
)
from hakmem.target.target import Target, making_sense

if TYPE_CHECKING:
    from hakmem.blocks.guards import GuardReport
    from hakmem.profile.model import Profile

SITES_SHOWN = 10


@click.command("core")
@options
def command(
    file: Path = argument(type=INPUT),
    executable: Path | None = EXECUTABLE,
    libraries: tuple[Path, ...] = LIBRARIES,
    as_json: bool = JSON,
    everything: bool = EVERY_FIGURE,
) -> None:
    """Print the snapshot of `hakmem stat` from the core dump FILE, the call sites that held most of the
    memory if a heap profile was on, and the last report of a guarded block, its stacks with functions.

    Core dumps omit the contents of the program's files: these are read too. `hakmem profile FILE` has more of
    the heap profile.

    \b
    Examples:
      hakmem core core.1234
      coredumpctl -o core dump server && hakmem core core
      hakmem core core --executable ./server --library ./lib
    """
    from hakmem.profile.json_format import sites_to_json
    from hakmem.views.guard_text import guard_lines
    from hakmem.views.profile_text import show_profile
    from hakmem.views.snapshot_text import show_snapshot

    target = open_core_file(file, executable, libraries)
    moved = moved_files(executable, libraries)
    profile, report = profile_of(target, moved), report_of(target, moved)
    more = {"profile": sites_to_json(profile)} if profile else {}
    more |= {"guard_report": asdict(report)} if report else {}
    show_snapshot(target, str(file), as_json=as_json, everything=everything, more=more)
    if profile and not as_json:
        click.echo()
        show_profile(profile, rows_max=SITES_SHOWN)
    if report and not as_json:
        click.echo()
        click.echo("\n".join(guard_lines(report)))


def report_of(target: Target, moved: Sequence[Path]) -> GuardReport | None:
    """None if there was none, or, with a message, if the dump holds too little of it."""
    from hakmem.blocks.guards import last_report

    try:
        with making_sense(target):
            return last_report(target, moved, warn)
    except HakmemError as error:
        warn(f"the last report of a guarded block cannot be read: {error}")
        return None


def profile_of(target: Target, moved: Sequence[Path]) -> Profile | None:
    """The profile with names.  None if none was on, or, with a message, if the dump holds too little."""
    from hakmem.profile.live import is_known, read_profile
    from hakmem.profile.names import Sources, name_addresses
    from hakmem.profile.session import is_on, python_notes

    try:
        with making_sense(target):
            if not is_known(target.schema) or not is_on(target):
                return None
        profile = read_profile(target)
        name_addresses(profile, Sources(complain=warn, moved=moved))
        for note in python_notes(target):
            warn(note)
    except HakmemError as error:
        warn(f"the heap profile in {target.command[0]}'s dump cannot be read: {error}")
        return None
    return profile
