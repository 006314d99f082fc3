"""The command line of bench/run."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .allocators import Allocator, find_allocators
from .build import BuildError
from .campaign import Outcome, Plan, run_campaign, step_count
from .files import read_json, write_csv, write_json
from .machine import describe_machine
from .markdown import to_markdown
from .paths import LAST_RESULT
from .suite import SUITE, select
from .summary import Document, summarise
from .tables import show

EPILOGUE = """\
Each benchmark runs on every allocator in turn, in interleaved rounds whose order rotates.  Tables go to
standard output, progress to standard error; the whole result is kept in build/bench/last.json.
Exit status: 0, or 1 when a run failed, or 2 when the command line is wrong.
"""
FULL_ROUNDS, FULL_SECONDS = 5, 1.0
QUICK_ROUNDS, QUICK_SECONDS = 2, 0.4


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _duration(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0 and up to 60")
    return value


def _named_library(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE with a file that exists")
    return name, Path(path).resolve()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/run",
        description="Benchmarks hakmem against every allocator found on this machine.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--only", nargs="+", default=[], metavar="NAME", help="only these benchmarks; larson means larson-*")
    add("--allocators", nargs="+", default=[], metavar="NAME", help="only these allocators")
    add("--alloc", action="append", default=[], type=_named_library, metavar="NAME=FILE",
        help="also this library (a NAME that begins with hakmem is not counted as a peer)")  # fmt: skip
    add("--rounds", type=_positive, metavar="N", help=f"rounds ({FULL_ROUNDS}; quick {QUICK_ROUNDS})")
    add("--seconds", type=_duration, metavar="S",
        help=f"length of a timed run ({FULL_SECONDS:g}; quick {QUICK_SECONDS:g})")  # fmt: skip
    add("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0"),
        help="short runs, less certain figures; also QUICK=1 in the environment")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write the whole result")
    add("--csv", type=Path, metavar="FILE", help="write one line for every timed run")
    add("--markdown", action="store_true", help="print Markdown instead of tables")
    add("--from", dest="saved", type=Path, metavar="FILE", help="run nothing, show a result of --json")
    add("--list", action="store_true", help="list the benchmarks and allocators, run nothing")
    return parser


def _choose_allocators(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> tuple[list[Allocator], list[str]]:
    found, missing = find_allocators(dict(options.alloc))
    unknown = [name for name in options.allocators if name not in [a.name for a in found]]
    if unknown:
        parser.error(f"no such allocator here: {', '.join(unknown)}; {'; '.join(missing)}")
    if not options.allocators:
        return found, missing
    return [a for a in found if a.name in options.allocators], []


def _plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> tuple[Plan, list[str]]:
    benchmarks, unknown = select(options.only)
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)} (see --list)")
    allocators, missing = _choose_allocators(parser, options)
    plan = Plan(
        benchmarks,
        allocators,
        rounds=options.rounds or (QUICK_ROUNDS if options.quick else FULL_ROUNDS),
        seconds=options.seconds or (QUICK_SECONDS if options.quick else FULL_SECONDS),
        quick=options.quick,
    )
    return plan, missing


def _list(plan: Plan, missing: list[str], console: Console) -> None:
    width = max(len(bench.name) for bench in SUITE)
    for bench in plan.benchmarks:
        command = " ".join([bench.program, *bench.command(plan.seconds, plan.quick)])
        console.print(f"{bench.name:{width}}  {command}", highlight=False)
    for allocator in plan.allocators:
        console.print(f"{allocator.name:{width}}  {allocator.library or 'the C library'}", highlight=False)
    for sentence in missing:
        console.print(f"missing: {sentence}", highlight=False)


def _run_with_lines(plan: Plan) -> Outcome:
    """For logs: one line on standard error for each round."""
    shown = set()

    def step(description: str) -> None:
        phase = description.partition(":")[0]
        if phase not in shown:
            shown.add(phase)
            print(phase, file=sys.stderr, flush=True)

    return run_campaign(plan, step)


def _run_with_progress(plan: Plan) -> Outcome:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("building", total=step_count(plan))

        def step(description: str) -> None:
            progress.update(task, advance=1, description=description)

        return run_campaign(plan, step)


def _output_console() -> Console:
    """A file or a pipe is as wide as the tables want to be."""
    console = Console()
    return console if console.is_terminal else Console(width=200)


def _deliver(document: Document, options: argparse.Namespace) -> int:
    """Writes the files that were asked for and shows the result; returns the exit status."""
    unwritten = False
    for write, path in ((write_json, options.json), (write_csv, options.csv)):
        try:
            if path is not None:
                write(document, path)
        except OSError as error:
            unwritten = True
            print(f"bench/run: {error}", file=sys.stderr)
    if options.markdown:
        print(to_markdown(document))
    else:
        show(document, _output_console())
    return 1 if document["failures"] or unwritten else 0


def main(arguments: list[str]) -> int:
    """Returns the exit status; leaves by SystemExit(2) when the command line is wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.saved is not None:
        try:
            return _deliver(read_json(options.saved), options)
        except (OSError, ValueError) as error:
            parser.error(f"{options.saved}: {error}")
    plan, missing = _plan(parser, options)
    if options.list:
        _list(plan, missing, _output_console())
        return 0
    machine = describe_machine()  # first: later the load would be our own
    try:
        outcome = _run_with_progress(plan) if sys.stderr.isatty() else _run_with_lines(plan)
    except BuildError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False)
        return 1
    document = summarise(plan, outcome, machine, missing)
    write_json(document, LAST_RESULT)
    return _deliver(document, options)
