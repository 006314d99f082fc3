"""hakmem diff: the changes between two heap profiles."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.commands.arguments import DEPTH, INPUT, INTERNALS, JSON, SITES_MAX, argument, option, options


@click.command("diff")
@options
def command(
    before: Path = argument(type=INPUT),
    after: Path = argument(type=INPUT),
    as_json: bool = JSON,
    everything: bool = option("--all", help="Also show sites whose change may be chance."),
    depth: int = DEPTH,
    rows_max: int = SITES_MAX,
    with_internals: bool = INTERNALS,
) -> None:
    """Show which sites grew or shrank from profile BEFORE to profile AFTER.

    Profiles are samples, so most sites differ a little by chance. A site is shown if it changed by more than
    three standard errors; its interval contains the true change in 95 of 100 comparisons. Sites are matched
    by functions and lines; in rebuilt files, by functions. So the profiles may come from two runs, or two
    versions, of a program.

    Both files may be .pb.gz or .json of `hakmem profile`, or heap profiles of other tools in pprof's format.

    \b
    Examples:
      hakmem diff monday.pb.gz friday.pb.gz
      hakmem diff before.json after.json --all --depth 1
    """
    from hakmem.profile.files import load
    from hakmem.views.profile_text import show_difference

    show_difference(
        load(before),
        load(after),
        depth=depth,
        rows_max=rows_max,
        everything=everything,
        as_json=as_json,
        with_internals=with_internals,
    )
