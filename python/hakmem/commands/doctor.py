"""hakmem doctor: finds obstacles to hakmem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from hakmem.base.sizes import counted
from hakmem.commands.arguments import JSON, PID, argument, options

if TYPE_CHECKING:
    from hakmem.doctor.findings import Finding

STYLES = {"ok": "green", "advice": "yellow", "problem": "bold red"}


@click.command("doctor", context_settings={"ignore_unknown_options": True})
@options
def command(
    as_json: bool = JSON,
    words: tuple[str, ...] = argument(
        nargs=-1, type=click.UNPROCESSED, metavar="[PID | -- PROGRAM [ARGUMENT]…]"
    ),
) -> None:
    """Check for obstacles to hakmem: settings of the kernel, the container and this session.

    With PID, check that process instead: whether it uses hakmem, obstacles, its limits and options. With
    PROGRAM, also check whether hakmem can be preloaded into it, and which of its memory hakmem would not
    serve. The program is not run; its dynamic loader lists its libraries, as with ldd.

    The exit status is 1 if there is a problem.

    \b
    Examples:
      hakmem doctor
      hakmem doctor 1234
      hakmem doctor -- ./server
      hakmem doctor --json | jq '.findings[] | select(.verdict != "ok")'
    """
    from hakmem.doctor.checks import machine_findings, program_findings
    from hakmem.doctor.findings import Verdict
    from hakmem.doctor.process_checks import process_findings
    from hakmem.views.screen import print_json

    if words and words[0].startswith("-"):
        raise click.NoSuchOption(words[0], ctx=click.get_current_context())
    # The program first: a wrong name should fail at once.
    if len(words) == 1 and PID.fullmatch(words[0]):
        findings = process_findings(int(words[0]))
    else:
        findings = [*(program_findings(words) if words else []), *machine_findings()]
    problems = sum(finding.verdict == Verdict.PROBLEM for finding in findings)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "problems": problems})
    else:
        print_findings(findings)
    raise click.exceptions.Exit(1 if problems else 0)


def print_findings(findings: Sequence[Finding]) -> None:
    from rich.text import Text

    from hakmem.views.screen import Sheet, console

    rows = [
        (
            Text(finding.verdict, STYLES[finding.verdict]),
            finding.name,
            Text(finding.found).append(f"\n→ {finding.advice}" if finding.advice else "", "yellow"),
        )
        for finding in findings
    ]
    out = console()
    out.print(Sheet("", ["<verdict", "<check", "<found"], rows))
    counts = {name: sum(finding.verdict == name for finding in findings) for name in STYLES}
    problems = counted(counts["problem"], "problem")
    out.print(Text(f"\n{counts['ok']} ok, {counts['advice']} advice, {problems}", "dim"))
