"""The command line of bench/profilers/run."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from .measure import Answer, answer, costs
from .programs import Program, programs
from .tools import TOOLS, Tool

EPILOGUE = """\
What is not installed is named and left out.  The table goes to standard output as Markdown, progress to
standard error.  Exit status: 0, or 2 when the command line is wrong.
"""
HEADER = [
    "program",
    "tool",
    "needs before",
    "restart",
    "first answer",
    "CPU off",
    "CPU on",
    "top 10",
    "error",
]


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def chosen(names: list[str], known: list[str], what: str, parser: argparse.ArgumentParser) -> list[str]:
    for name in names:
        if not any(name.lower() in one.lower() for one in known):
            parser.error(f"no {what} is called {name}; there are {', '.join(known)}")
    return [one for one in known if not names or any(name.lower() in one.lower() for name in names)]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="bench/profilers/run",
        description="Compares heap profilers on the same leaking programs.",
        epilog=EPILOGUE,
    )
    parser.add_argument("--program", action="append", default=[], help="only this one (again for more)")
    parser.add_argument("--tool", action="append", default=[], help="only this one (again for more)")
    parser.add_argument("--rounds", type=int, default=3, help="of processor time, interleaved (default: 3)")
    parser.add_argument(
        "--answers", type=int, default=3, help="questions; the median one counts (default: 3)"
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="that a tool looks (default: 5)")
    arguments = parser.parse_args(words)
    tool_names = chosen(arguments.tool, [tool.name for tool in TOOLS], "tool", parser)
    left_out: list[str] = []
    tools = []
    for tool in (tool for tool in TOOLS if tool.name in tool_names):
        if why := tool.missing():
            left_out.append(f"{tool.name}: {why}")
        else:
            tools.append(tool)
    every = programs()
    names = chosen(arguments.program, [one.name for one in every], "program", parser)
    rows = []
    for program in every:
        if program.name not in names:
            continue
        if program.missing:
            left_out.append(f"{program.name}: {program.missing}")
            continue
        rows += rows_of(program, [tool for tool in tools if program.name in tool.runs], arguments)
    print(markdown(rows))
    for line in left_out:
        print(f"\nLeft out: {line}.")
    return 0


def rows_of(program: Program, tools: list[Tool], arguments: argparse.Namespace) -> list[list[str]]:
    seconds = costs(program, tools, arguments.rounds, say) if arguments.rounds else {}
    plain = seconds.get("plain")
    rows = [[program.name, "none", "", "", "", f"{plain:.2f} s" if plain else "", "", "", ""]]
    for tool in tools:
        answers: list[Answer] = []
        failures: list[str] = []
        for _ in range(arguments.answers):
            say(f"{program.name}: {tool.name} is asked")
            try:
                answers.append(answer(program, tool, arguments.seconds))
            except (RuntimeError, OSError, ValueError, subprocess.SubprocessError) as error:
                failures.append(str(error))
                say(f"{tool.name}: {error}")
        rows.append(row_of(program, tool, answers, failures, relative(tool, seconds, plain)))
    return rows


def row_of(
    program: Program, tool: Tool, answers: list[Answer], failures: list[str], cost: list[str]
) -> list[str]:
    about = [program.name, tool.name, tool.needs, "no" if tool.attaches else "yes"]
    if not answers:
        return [*about, f"failed: {failures[-1] if failures else 'not asked'}", *cost, "", ""]
    middle = sorted(answers, key=lambda one: one.seconds)[len(answers) // 2]
    tried = len(answers) + len(failures)
    failed = f" ({len(failures)} of {tried} failed)" if failures else ""
    error = f"{100 * middle.score.error:.0f} %" if middle.score.error is not None else ""
    return [*about, f"{middle.seconds:.1f} s{failed}", *cost, f"{middle.score.found} of 10", error]


def relative(tool: Tool, seconds: dict[str, float], plain: float | None) -> list[str]:
    """The processor time off and on, of the program's on its own."""
    if not plain or not tool.has_cost:
        return ["", ""]
    off = seconds.get(f"{tool.name} off") if tool.is_there_when_off else plain
    on = seconds.get(f"{tool.name} on")
    return [f"{value / plain:.2f}" if value else "failed" for value in (off, on)]


def markdown(rows: list[list[str]]) -> str:
    lines = [HEADER, ["---"] * 2 + ["---", "---"] + ["---:"] * 5, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
