"""The command line of bench/run."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from . import instructions, tlb, versus
from .allocators import DEBIAN, GLIBC, PEER_KINDS, Allocator, find_allocators, peer_names
from .arguments import IS_QUICK, positive_number
from .build import BuildError
from .campaign import Outcome, Plan, run_campaign, uncertain
from .counting import Count, Row, to_table
from .counting import to_tsv as counts_to_tsv
from .execute import RunError
from .files import read_json, write_csv, write_json
from .kept import Kept, place_of
from .machine import describe_machine
from .markdown import to_markdown, to_tsv
from .paths import HAKMEM_LIBRARY, LAST_CSV, LAST_JSON, OUTPUT, REPORT, RESULTS
from .progress import steps
from .real_program import CommandProgram
from .report import write_report
from .scaling import scaling_workloads
from .selection import ALL, matches_any, select
from .summary import Document, summarise
from .tables import output_console, show
from .workload import Length

EPILOGUE = """\
Pairs of runs, one on hakmem and one on a peer, are made until the 95 % interval of each ratio of processor
times is narrower than 3 %, or the time is over.  Ctrl-C stops it; the same command goes on.  Tables go to
standard output, progress to standard error; the whole result, with charts and a page, is kept in build/bench.
Exit status: 0, or 1 when a run failed, or 2 when the command line is wrong.
"""


@dataclass(frozen=True)
class Pace:
    """How much is done when nothing else is said."""

    seconds: float
    minutes: float


FULL = Pace(seconds=0.25, minutes=28)
QUICK = Pace(seconds=0.15, minutes=2.8)


def _named_library(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not name or not Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE with a file that exists")
    return name, Path(path).resolve()


def _library(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"{text!r} is not a file: name two builds of libhakmem.so")
    return Path(text).resolve()


def _peer_kind(text: str) -> str:
    if text not in PEER_KINDS:
        raise argparse.ArgumentTypeError(f"{text!r} is neither {' nor '.join(PEER_KINDS)} (also PEERS=)")
    return text


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
    add("--self-test", action="store_true",
        help="whether equal builds are found equal, and 3 %% found as 3 %%, in real programs beside two busy "
        "loops")  # fmt: skip
    add("--peers", type=_peer_kind, default=os.environ.get("PEERS") or DEBIAN, metavar="KIND",
        help="debian: Debian's packages of the peers; new: today's versions, built into build/peers; also "
        "PEERS=new in the environment")  # fmt: skip
    add("--alloc", action="append", default=[], type=_named_library, metavar="NAME=FILE",
        help="also this library (a NAME that begins with hakmem is not counted as a peer)")  # fmt: skip
    add("--pairs", nargs=2, type=_library, metavar=("A.so", "B.so"),
        help="only these two builds: time and peak memory of B / A, with intervals")  # fmt: skip
    add("--seconds", type=positive_number("seconds", 60), metavar="S",
        help=f"length of a timed run ({FULL.seconds:g}; quick {QUICK.seconds:g})")  # fmt: skip
    add("--minutes", type=positive_number("minutes"), metavar="N",
        default=os.environ.get("BUDGET") or None,
        help=f"time for all runs ({FULL.minutes:g}; quick {QUICK.minutes:g}); also BUDGET=N in the "
        "environment")  # fmt: skip
    add("--quick", action="store_true", default=IS_QUICK,
        help="short runs, less certain figures; also QUICK=1 in the environment")  # fmt: skip
    add("--scaling", action="store_true",
        help="some loads on one thread to twice the processors; results: build/bench/scaling")  # fmt: skip
    add("--instructions", action="store_true",
        help="of the real programs: the allocators' instructions and misses of simulated caches (callgrind), "
        "page faults, system calls")  # fmt: skip
    add("--tlb", action="store_true",
        help="page walks and first-level misses of a simulated data TLB in the real programs")  # fmt: skip
    add("--json", type=Path, metavar="FILE", help="write the whole result")
    add("--csv", type=Path, metavar="FILE", help="write one line for every timed run")
    add("--report", type=Path, metavar="FOLDER", default=REPORT, help="where the page and the charts go")
    add("--markdown", action="store_true", help="print Markdown instead of tables")
    add("--tsv", action="store_true", help="print the tables as docs/performance/campaign.tsv has them")
    add("--from", dest="saved", type=Path, metavar="FILE", help="run nothing, show a result of --json")
    add("--list", action="store_true", help="list the benchmarks and allocators, run nothing")
    return parser


def _tell(line: str) -> None:
    print(f"bench/run: {line}", file=sys.stderr, flush=True)


def _choose_allocators(
    parser: argparse.ArgumentParser, options: argparse.Namespace
) -> tuple[list[Allocator], list[str]]:
    known = {"hakmem", "glibc", *dict(options.alloc), *peer_names(options.peers)}
    unknown = [name for name in options.allocators if name not in known]
    if unknown:
        parser.error(f"no such allocator: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    found, missing = find_allocators(
        dict(options.alloc), options.peers, options.allocators, None if options.list else _tell
    )
    unknown = [name for name in options.allocators if name not in [a.name for a in found]]
    if unknown:
        parser.error(f"no such allocator here: {', '.join(unknown)}; {'; '.join(missing)}")
    if not options.allocators:
        return found, missing
    return [a for a in found if a.name in options.allocators], []


def _plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> tuple[Plan, list[str]]:
    workloads, unknown = select(options.only, options.quick)
    if options.scaling:
        workloads = [each for each in scaling_workloads() if matches_any(each.name, options.only)]
        unknown = [] if workloads else options.only
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)} (see --list)")
    if options.pairs:
        allocators, missing = versus.sides(options.pairs), list[str]()
    else:
        allocators, missing = _choose_allocators(parser, options)
    pace = QUICK if options.quick else FULL
    plan = Plan(
        [each for each in workloads if not each.missing()],
        allocators,
        minutes=options.minutes or pace.minutes,
        length=Length(options.seconds or pace.seconds, options.quick),
    )
    return plan, [*missing, *(sentence for each in workloads if (sentence := each.missing()))]


def _estimate(plan: Plan) -> str:
    minutes = sum(map(plan.turn_seconds, plan.workloads)) / 60
    return (
        f"{len(plan.workloads)} benchmarks, {len(plan.allocators)} allocators: about {minutes:.0f} minutes "
        f"for one pair of each, {plan.minutes:g} for all"
    )


def _count(plan: Plan, options: argparse.Namespace, count: Count) -> int:
    """Counts in each real program that is a command; returns the exit status."""
    if sentence := count.missing():
        _tell(sentence)
        return 1
    allocators = [each for each in plan.allocators if not each.wrapper]  # valgrind starts the program itself
    if all(each.library for each in allocators):
        allocators = [*allocators, GLIBC]
    rows: list[Row] = []
    good = True
    for program in plan.workloads:
        if isinstance(program, CommandProgram):
            _tell(f"{program.name} under {count.tool}")
            try:
                rows += count.rows(program, allocators, plan.length, _tell)
            except RunError as error:
                good = False
                _tell(f"{program.name}: {error}")
    if rows and options.tsv:
        print(counts_to_tsv(rows, count), end="")
    elif rows:
        output_console().print(to_table(rows, count))
    return 0 if rows and good else 1


def _list(plan: Plan, missing: list[str], console: Console) -> None:
    width = max(len(each.name) for each in ALL)
    for each in plan.workloads:
        console.print(f"{each.name:{width}}  {each.command_text(plan.length)}", highlight=False, markup=False)
    for allocator in plan.allocators:
        console.print(f"{allocator.name:{width}}  {allocator.library or 'the C library'}", highlight=False)
    for sentence in missing:
        console.print(f"missing: {sentence}", highlight=False)
    console.print(_estimate(plan), highlight=False)


Target = tuple[Callable[[Document, Path], None], Path]


def _written(document: Document, targets: list[Target]) -> bool:
    """Writes the files; complains of each that could not be written, and returns whether all were."""
    good = True
    for write, path in targets:
        try:
            write(document, path)
        except OSError as error:
            good = False
            print(f"bench/run: {error}", file=sys.stderr)
    return good


def _deliver(document: Document, options: argparse.Namespace) -> int:
    """Writes what was asked for and shows the result; returns the exit status."""
    if options.scaling:  # the campaign's stay
        options.report = OUTPUT / "scaling"
        options.json = options.json or options.report / "last.json"
    dated = RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json"  # the next campaign overwrites the last
    kept: list[Target] = []
    if not options.saved and not options.scaling:
        kept = [(write_json, LAST_JSON), (write_csv, LAST_CSV), (write_json, dated)]
    asked = [(write_json, options.json), (write_csv, options.csv), (write_report, options.report)]
    targets = [*kept, *((write, path) for write, path in asked if path)]
    good = _written(document, targets)
    if options.markdown:
        print(to_markdown(document))
    elif options.tsv:
        print(to_tsv(document), end="")
    else:
        show(document, output_console())
        for path in (options.report / "index.html", *(path for _, path in kept)):
            print(path)
    return 1 if document["failures"] or not good else 0


def _measured(plan: Plan) -> Outcome:
    """Says what is still uncertain.  Raises BuildError."""
    kept = Kept(place_of(plan.allocators, plan.length))
    with steps() as step:
        outcome = run_campaign(plan, step, kept=kept)
    _tell(uncertain(plan, outcome))
    return outcome


def _versus(plan: Plan) -> int:
    outcome = _measured(plan)
    output_console().print(versus.to_table(plan, outcome))
    for (row, side), why in outcome.failures.items():
        _tell(f"{row} on {side}: {why}")
    return 1 if outcome.failures else 0


def _self_test(plan: Plan) -> int:
    """Each part in half of the time; the exit status."""
    workloads = [each for each in plan.workloads if isinstance(each, CommandProgram)]
    copies = versus.sides((HAKMEM_LIBRARY, HAKMEM_LIBRARY))
    verdicts = []
    for percent in versus.SPINS:
        sides = [versus.spinning(copies[0], 0), versus.spinning(copies[1], percent)]
        part = replace(plan, workloads=workloads, allocators=sides, minutes=plan.minutes / len(versus.SPINS))
        with versus.busy_loops():
            outcome = _measured(part)
        output_console().print(versus.to_table(part, outcome))
        sentence, is_good = versus.judged(part, outcome, percent)
        print(sentence)
        verdicts.append(is_good)
    return 0 if all(verdicts) else 1


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
        _list(plan, missing, output_console())
        return 0
    try:
        if options.instructions or options.tlb:
            return _count(plan, options, tlb.COUNT if options.tlb else instructions.COUNT)
        if options.self_test or options.pairs:
            return _versus(plan) if options.pairs else _self_test(plan)
        machine = describe_machine()  # first: later the load would be our own
        outcome = _measured(plan)
    except BuildError as error:
        Console(stderr=True).print(str(error), markup=False, highlight=False)
        return 1
    document = summarise(plan, outcome, machine, missing)
    return _deliver(document, options)
