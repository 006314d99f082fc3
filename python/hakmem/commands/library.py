"""hakmem library: where the library is."""

from __future__ import annotations

import click

from hakmem.commands.arguments import warn
from hakmem.launch.preloadable import is_preloadable
from hakmem.target.library import find_library


@click.command("library")
def command() -> None:
    """Print the path of libhakmem.so: $HAKMEM_LIBRARY, the one that came with this tool, or an installed one.

    \b
    Examples:
      LD_PRELOAD=$(hakmem library) gunicorn app:app
      echo "LD_PRELOAD=$(hakmem library)" >> /etc/default/server
    """
    library = find_library()
    if not is_preloadable(library):
        warn(
            "LD_PRELOAD has no way to write the space, colon or dollar sign in this path; "
            "start programs by hakmem run, or install hakmem into another folder"
        )
    click.echo(library)
