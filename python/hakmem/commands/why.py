"""hakmem why: RSS in lines that add up to it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from hakmem.commands.arguments import FILES, JSON, TARGET, open_target, option, options
from hakmem.target.target import making_sense


@click.command("why")
@options
def command(
    target: str = TARGET,
    files: tuple[Path, ...] = FILES,
    as_json: bool = JSON,
    everything: bool = option("--all", help="Show advice for every line and all details."),
) -> None:
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
    from hakmem.doctor.runtimes import hidden_in
    from hakmem.views.screen import console, print_json
    from hakmem.views.why_text import print_explanation

    opened = open_target(target, files)
    with making_sense(opened):
        explanation = explain(opened)
        explanation.notes += hidden_in(opened.process)
    if as_json:
        print_json(asdict(explanation))
    else:
        print_explanation(console(), explanation, everything)
