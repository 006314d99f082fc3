"""hakmem diff: the changes between two heap profiles."""

from __future__ import annotations

from pathlib import Path

import click

from hakmem.commands.arguments import DEPTH, INTERNALS, JSON, SITES_MAX

PROFILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("diff")
@click.argument("before", type=PROFILE)
@click.argument("after", type=PROFILE)
@JSON
@click.option("--all", "everything", is_flag=True, help="Also show sites whose change may be chance.")
@DEPTH
@SITES_MAX
@INTERNALS
def command(
    before: Path,
    after: Path,
    as_json: bool,
    everything: bool,
    depth: int,
    rows_max: int,
    with_internals: bool,
) -> None:
    """Show which sites grew or shrank from profile BEFORE to profile AFTER.

    Profiles are samples, so most sites differ a little by chance. A site is shown if it changed by more than
    three standard errors; its interval contains the true change in 95 of 100 comparisons. Sites are matched
    by the names of their functions, so the profiles may come from two runs, or two versions, of a program.

    Both files may be .pb.gz or .json of `hakmem profile`, or heap profiles of other tools in pprof's format.

    \b
    Examples:
      hakmem diff monday.pb.gz friday.pb.gz
      hakmem diff before.json after.json --all --depth 1
    """
    from hakmem.profile.files import load
    from hakmem.views.profile_text import show_difference

    old, new = load(before), load(after)
    show_difference(
        old,
        new,
        depth=depth,
        rows_max=rows_max,
        everything=everything,
        as_json=as_json,
        with_internals=with_internals,
    )
