"""hakmem library: where the library is."""

from __future__ import annotations

import click


@click.command("library")
def command() -> None:
    """Print the path of libhakmem.so: $HAKMEM_LIBRARY, the one that came with this tool, or an installed one.

    \b
    Examples:
      LD_PRELOAD=$(hakmem library) gunicorn app:app
      echo "LD_PRELOAD=$(hakmem library)" >> /etc/default/server
    """
    from hakmem.target.library import find_library

    click.echo(find_library())
