"""hakmem core: the snapshot in a core dump."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hakmem.commands.arguments import EVERY_FIGURE, EXECUTABLE, JSON, LIBRARIES

if TYPE_CHECKING:
    from hakmem.profile.model import Profile
    from hakmem.target.target import Target

SITES_SHOWN = 10


@click.command("core")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@EXECUTABLE
@LIBRARIES
@JSON
@EVERY_FIGURE
def command(
    file: Path, executable: Path | None, libraries: tuple[Path, ...], as_json: bool, everything: bool
) -> None:
    """Print the snapshot of `hakmem stat` from the core dump FILE, and the call sites that held most of the
    memory if a heap profile was on.

    Core dumps omit the contents of the program's files: these are read too. `hakmem profile FILE` has more of
    the heap profile.

    \b
    Examples:
      hakmem core core.1234
      coredumpctl -o core dump server && hakmem core core
      hakmem core core --executable ./server --library ./lib
    """
    from hakmem.census.snapshot import open_core
    from hakmem.profile.json_format import sites_to_json
    from hakmem.views.profile_text import show_profile
    from hakmem.views.snapshot_text import show_snapshot

    target = open_core(file, executable, libraries)
    profile = profile_of(target, [*([executable] if executable else []), *libraries])
    more = {"profile": sites_to_json(profile)} if profile else {}
    show_snapshot(target, str(file), as_json=as_json, everything=everything, more=more)
    if profile and not as_json:
        click.echo()
        show_profile(profile, rows_max=SITES_SHOWN)


def profile_of(target: Target, moved: Sequence[Path]) -> Profile | None:
    """With names.  None if no profile was on, or the dump holds too little of it, which is said."""
    from hakmem.base.errors import HakmemError
    from hakmem.profile.live import is_known, read_profile
    from hakmem.profile.names import Sources, name_addresses
    from hakmem.profile.session import is_on
    from hakmem.target.target import making_sense

    def complain(what: str) -> None:
        click.echo(f"hakmem: warning: {what}", err=True)

    try:
        with making_sense(target):
            if not is_known(target.schema) or not is_on(target):
                return None
        profile = read_profile(target)
        name_addresses(profile, Sources(complain=complain, moved=moved))
    except HakmemError as error:
        complain(f"the heap profile in {target.command[0]}'s dump cannot be read: {error}")
        return None
    return profile
