"""hakmem why: RSS in lines that add up to it."""

from __future__ import annotations

import re
from pathlib import Path

import click

from hakmem.commands.arguments import JSON, complete_pids

PID = re.compile("[0-9]{1,19}")


@click.command("why")
@click.argument("target", metavar="PID|CORE", shell_complete=complete_pids)
@JSON
@click.option("--all", "everything", is_flag=True, help="Show advice for every line and all details.")
def command(target: str, as_json: bool, everything: bool) -> None:
    """Explain the RSS of process PID: lines that add up to it, largest first, each with what reduces it, and
    a verdict.

    For a core file (CORE) only hakmem's part is known, and estimated.

    \b
    Examples:
      hakmem why 1234
      hakmem why $(pgrep -o redis-server) --json | jq '.lines[] | {name, bytes}'
      hakmem why core.1234
    """
    from hakmem.census.why import explain
    from hakmem.target.target import making_sense, open_core, open_process
    from hakmem.views.screen import console, print_json
    from hakmem.views.why_text import print_explanation

    if PID.fullmatch(target):
        opened = open_process(int(target))
    elif Path(target).is_file():
        opened = open_core(Path(target))
    else:
        raise click.BadParameter(f"{target!r} is neither a PID nor a core file", param_hint="PID|CORE")
    with making_sense(opened):
        explanation = explain(opened)
    if as_json:
        print_json(explanation.to_json())
    else:
        print_explanation(console(), explanation, everything)
